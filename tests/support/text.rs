//! Programs of tests, as text.

use pld::ir::Program;
use pld::ir::parse::parse;

pub fn program(text: &str) -> Program {
    parse(text, "test.pld").unwrap_or_else(|mistakes| panic!("{}\n{text}", mistakes[0]))
}

/// A program around the body of one task, which every rank runs. Windows `w: [4, 8] i32`, `f: [4, 8] f32` and
/// `sig: [4, 1] i32`; tensors `x: [4, 8] i32` (in) and `y: [4, 8] i32` (out), one a rank; scalars `a` and `b` of the
/// launch, `me` the rank.
pub fn task(body: &str) -> Program {
    program(&format!(
        "program test
entry e(x: tensor[4, 8] i32 in, y: tensor[4, 8] i32 out, w: window[4, 8] i32, f: window[4, 8] f32,
        sig: window[4, 1] i32, me: i32, a: i64, b: i64) {{
  at task {{
{body}
  }}
}}
host (xs: tensor[world, 4, 8] i32 in, ys: tensor[world, 4, 8] i32 out, a: i64, b: i64) {{
  w_buf = alloc_window [4, 8] i32
  f_buf = alloc_window [4, 8] f32
  sig_buf = alloc_window [4, 1] i32
  ranks r in 0..world {{
    w = window w_buf [4, 8] i32
    f = window f_buf [4, 8] f32
    sig = window sig_buf [4, 1] i32
    dispatch e(xs[r], ys[r], w, f, sig, r, a, b) device r
  }}
}}
"
    ))
}
