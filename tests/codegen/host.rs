//! Host drivers: rank loops, devices, arguments.

use pld::ir::Program;

use crate::compare::assert_same;
use crate::ranks::{Arg, Bytes, Options, Ranks};
use crate::text::program;

/// A driver around two entries: one leaves traces in a rank's output and window, one shows the window.
fn driver(body: &str) -> Program {
    program(&format!(
        "program test
entry mark(y: tensor[2] i64 inout, w: window[2] i64, me: i32, amount: i64) {{
  at task {{
    y[0] = y[0] + amount
    w[1] = w[1] * 10 + me + 1
  }}
}}
entry copy_out(y: tensor[2] i64 inout, w: window[2] i64) {{
  at task {{ y[1] = w[1] }}
}}
host (ys: tensor[world, 2] i64 inout, n: i32, s: f32, on: bool) {{
  one = alloc_window [2] i64
  two = alloc_window [2] i64
{body}
}}
"
    ))
}

fn check(body: &str, nranks: u32) -> Vec<Vec<i64>> {
    let program = driver(body);
    let y = (0..nranks).map(|r| i64::bytes(&[i64::from(r) * 1000, 7])).collect();
    let args = [Arg::Ranked(y), Arg::Bits(3), Arg::Bits(2.5f32.to_bits().into()), Arg::Bits(1)];
    assert_same(&program, nranks, &args, &[]);
    let outcome = Ranks::compile(&program, nranks, Options::default()).launch(&args, &[], &[], &[]);
    outcome.assert_done();
    outcome.args[0].iter().map(|bytes| i64::values(bytes)).collect()
}

#[test]
fn each_rank_runs_its_own_dispatches_in_order() {
    let body = "  ranks r in 0..world {
    w = window one [2] i64
    dispatch mark(ys[r], w, r, 5) device r
    dispatch mark(ys[r], w, r + 1, r * 2) device r
    dispatch copy_out(ys[r], w) device r
  }";
    assert_eq!(check(body, 3), [[5, 12], [1007, 23], [2009, 34]]);
}

/// One entry gets different windows, so where they lie is passed.
#[test]
fn windows_differ_between_dispatches() {
    let body = "  ranks r in 0..world {
    a = window one [2] i64
    b = window two [2] i64
    dispatch mark(ys[r], a, r, 1) device r
    dispatch mark(ys[r], b, r, 2) device r
    dispatch mark(ys[r], b, r, 2) device r
    dispatch copy_out(ys[r], b) device r
  }";
    assert_eq!(check(body, 2), [[5, 11], [1005, 22]]);
}

#[test]
fn host_scalars_loops_and_conditions() {
    let body = "  total = var i64 = 0
  for k in 0..n {
    total = total + k * k
    if on and s > 2.0 {
      ranks r in 0..world {
        w = window one [2] i64
        dispatch mark(ys[r], w, r, total + r) device r
      }
    } else {
      total = total + 1000000
    }
  }
  ranks r in 0..world {
    w = window one [2] i64
    dispatch copy_out(ys[r], w) device r
  }";
    assert_eq!(check(body, 2), [[6, 111], [1009, 222]]);
}

/// The loops count ranks up; what one turn leaves in a variable the next one finds.
#[test]
fn turns_that_depend_on_each_other() {
    let body = "  sum = var i64 = 0
  ranks r in 0..world {
    sum = sum + r + 1
    w = window one [2] i64
    dispatch mark(ys[r], w, r, sum) device r
  }";
    assert_eq!(check(body, 4), [[1, 7], [1003, 7], [2006, 7], [3010, 7]]);
}

/// Devices that the verifier allows only where no window is used: numbers, parts of the world, other expressions.
#[test]
fn devices() {
    let text = "program test
entry mark(y: tensor[4] i64 inout, amount: i64) {
  at task { y[0] = y[0] * 10 + amount }
}
host (ys: tensor[world, 4] i64 inout, n: i64) {
  dispatch mark(ys[1], 3) device 1
  ranks r in 1..n { dispatch mark(ys[r], 1) device r }
  ranks r in 2..9 { dispatch mark(ys[r], 2) device r }
  ranks r in 0..2 { dispatch mark(ys[r + 1], 4) device r + 1 }
  ranks r in 0..2 { ranks q in 0..world { dispatch mark(ys[q], r + 5) device q } }
  ranks r in -3..1 { dispatch mark(ys[r], 8) device r }
}
";
    let program = program(text);
    let args = [Arg::Ranked(vec![vec![0; 32]; 4]), Arg::Bits(3)];
    for each in [false, true] {
        let outcome = Ranks::compile(&program, 4, Options { each, ..Options::default() }).launch(&args, &[], &[], &[]);
        outcome.assert_done();
        let first: Vec<i64> = outcome.args[0].iter().map(|bytes| i64::values(bytes)[0]).collect();
        assert_eq!(first, [568, 31456, 12456, 256]);
    }
}

/// Variables and arrays of an entry are shared by its tasks, large arrays too; slices of an entry as well.
#[test]
fn tasks_share_what_their_entry_has() {
    let text = "program test
entry e(y: tensor[4, 4] i64 out, w: window[8, 4] i64, me: i32) {
  count = var i32 = 3
  flag = var bool = false
  small = array i64 [4] = 1
  large = array i64 [1000] = 2
  row = slice w[me + 1, 0] [3, 4]
  part = slice row[1, 2] [2, 2]
  half = slice y[2, 0] [2, 4]
  at first {
    count = count + me
    small[me] = 50
    large[999 - me] = 60
    flag = me == 1
    part[1, 1] = 70 + me
    t = load w[0, 0] [8, 4]
    u = add t, 1
    store u -> w[0, 0]
  }
  twice = count * 2
  for k in 0..2 {
    at second {
      y[k, 0] = twice + k
      y[k, 1] = small[0] + small[1] * 1000
      y[k, 2] = large[999] + large[998] * 1000 + large[0]
      y[k, 3] = part[1, 1] * 1000 + row[2, 3]
      half[k, me] = cast(flag, i64) + 5
      count = count + 1
    }
  }
  at third { half[1, 3] = count }
}
host (ys: tensor[world, 4, 4] i64 out) {
  buf = alloc_window [8, 4] i64
  ranks r in 0..world {
    w = window buf [8, 4] i64
    dispatch e(ys[r], w, r) device r
  }
}
";
    let program = program(text);
    let args = [Arg::Ranked(vec![vec![0; 128]; 2])];
    assert_same(&program, 2, &args, &[]);
    let outcome = Ranks::compile(&program, 2, Options::default()).launch(&args, &[], &[], &[]);
    let y = i64::values(&outcome.args[0][1]);
    assert_eq!(y[..4], [8, 50001, 60004, 72072]);
    assert_eq!(y[15], 6);
}

/// Ranks tell each other the numbers of their tasks, so these must not depend on what is checked for a rank.
#[test]
fn all_ranks_number_tasks_alike() {
    let text = "program test
entry e(x: tensor[2] i32 in, w: window[2] i32, me: i32) {
  part = slice x[me] [1]
  at first { w[0] = part[0] }
  at second { w[1] = 1 }
}
host (xs: tensor[world, 2] i32 in) {
  buf = alloc_window [2] i32
  ranks r in 0..world {
    w = window buf [2] i32
    dispatch e(xs[r], w, r) device r
  }
}
";
    let ranks = Ranks::compile(&program(text), 4, Options { each: true, ..Options::default() });
    let tasks = |code: &pld::codegen::cpu::Code| -> Vec<String> {
        let tasks = code.sites.iter().enumerate().filter(|(_, site)| site.text.starts_with("at "));
        tasks.map(|(number, site)| format!("{number}: {}", site.text)).collect()
    };
    assert_ne!(ranks.code[0].sites.len(), ranks.code[3].sites.len(), "only the later ranks need a check");
    for code in &ranks.code {
        assert_eq!(tasks(code), ["0: at first", "1: at second"]);
    }
}
