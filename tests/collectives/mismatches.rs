//! Ranks that call different things.

use std::sync::Arc;
use std::time::Duration;

use pld::error::{Error, ErrorKind};
use pld::ir::DType;
use pld::runtime::{CompileOptions, Executable, World, WorldOptions};

use crate::case::{Case, Tensor};
use crate::numbers::{Number, encode};

const RANKS: usize = 4;

/// The ranks with `x` 1 make the first call, those with 0 the second one.
fn program(first: &str, second: &str) -> String {
    format!(
        "program mismatch
entry e(x: tensor[1] i32 in, done: tensor[1] i32 inout, a: window[world, 128] f32, b: window[world, 128] i32,
        s: window[world, 2] i32, few: tensor[100] f32 in, all: tensor[128] f32 in, me: i32) {{
  at calls {{
    row = slice a[0, 0] [1, 128]
    part = slice a[0, 0] [1, 100]
    ints = slice b[0, 0] [1, 128]
    if x[0] == 1 {{
      {first}
    }} else {{
      {second}
    }}
    done[0] = done[0] + 1
  }}
}}
host (xs: tensor[world, 1] i32 in, dones: tensor[world, 1] i32 inout, few: tensor[world, 100] f32 in, all: tensor[world, 128] f32 in) {{
  a_buf = alloc_window [world, 128] f32
  b_buf = alloc_window [world, 128] i32
  s_buf = alloc_window [world, 2] i32
  ranks r in 0..world {{
    a = window a_buf [world, 128] f32
    b = window b_buf [world, 128] i32
    s = window s_buf [world, 2] i32
    dispatch e(xs[r], dones[r], a, b, s, few[r], all[r], r) device r
  }}
}}
"
    )
}

/// Where the calls of [`program`] stand, the second one behind a first one of one line.
const LINES: (&str, &str) = ("case.pld:9", "case.pld:11");

/// The case in which these ranks make the first call.
pub fn case(first: &str, second: &str, ranks: &[usize]) -> Case {
    let ints = |name: &str, value: &dyn Fn(usize) -> i64| {
        let part = |rank| {
            let mut bytes = Vec::new();
            encode(DType::I32, Number::Int(value(rank)), &mut bytes);
            bytes
        };
        let parts: Vec<_> = (0..RANKS).map(part).collect();
        let (before, after) = (parts.clone(), parts);
        Tensor { name: name.into(), dtype: DType::I32, shape: vec![1], before, after, tolerance: 0.0 }
    };
    let floats = |name: &str, count: usize| {
        let parts = vec![vec![0; count * 4]; RANKS];
        let (before, after, shape) = (parts.clone(), parts, vec![count as i64]);
        Tensor { name: name.into(), dtype: DType::F32, shape, before, after, tolerance: 0.0 }
    };
    let mut done = ints("done", &|_| 0);
    done.after = ints("", &|_| 1).before;
    let x = ints("x", &|rank| ranks.contains(&rank).into());
    Case {
        text: program(first, second),
        nranks: RANKS as u32,
        tensors: vec![x, done, floats("few", 100), floats("all", 128)],
    }
}

fn world() -> Arc<World> {
    let options = WorldOptions { timeout: Duration::from_secs(3), ..WorldOptions::default() };
    World::create(RANKS as u32, &options).unwrap()
}

fn assert_mismatch(error: &Error, names: [&str; 2]) {
    assert_eq!(error.kind, ErrorKind::Mismatch, "{error}");
    let calls = [format!("{} ({})", names[0], LINES.0), format!("{} ({})", names[1], LINES.1)];
    assert!(calls.iter().all(|call| error.message.contains(call)), "{error}\nnot {calls:?}");
}

/// One launch ends, with both calls; others where all ranks agree go well, before and after.
fn assert_told(first: &str, second: &str, names: [&str; 2]) {
    let world = world();
    for ranks in [&[3][..], &[0], &[0, 2]] {
        let (wrong, right) = (case(first, second, ranks), case(first, second, &[]));
        for persistent in [false, true] {
            let executable = wrong.compile(&world, &CompileOptions { persistent, ..CompileOptions::default() });
            let launch = |executable: &Executable| right.compare(&right.launched(executable).unwrap(), "compiled");
            launch(&executable);
            assert_mismatch(&wrong.launched(&executable).unwrap_err(), names);
            if persistent {
                executable.reset().unwrap();
            }
            launch(&executable);
        }
    }
}

/// C28: operations, types, counts; and everything else that calls can differ in.
#[test]
fn c28_ranks_that_call_different_things() {
    let sum = "allreduce sum row mode mesh signal s";
    let sum_name = "allreduce_sum_1x128_f32_mesh";
    for (other, name) in [
        ("allreduce max row mode mesh signal s", "allreduce_max_1x128_f32_mesh"),
        ("allreduce sum part mode mesh signal s", "allreduce_sum_1x100_f32_mesh"),
        ("allreduce sum ints mode mesh signal s", "allreduce_sum_1x128_i32_mesh"),
        ("allreduce sum row mode ring signal s", "allreduce_sum_1x128_f32_ring"),
        ("allreduce sum row mode two_phase signal s", "allreduce_sum_1x128_f32_two_phase"),
        ("broadcast row root 1 mode direct signal s", "broadcast_1x128_f32_root_1_direct"),
        ("reduce_scatter sum a mode direct signal s", "reduce_scatter_sum_4x128_f32_direct"),
        ("allgather a <- all mode mesh signal s", "allgather_4x128_f32_mesh"),
        ("barrier of a signal s", "barrier"),
    ] {
        assert_told(other, sum, [name, sum_name]);
    }
}

/// The root is compared when it runs.
#[test]
fn roots_that_differ() {
    let (first, second) = ("broadcast row root x[0] + 1 signal s", "broadcast row root x[0] + 1 signal s");
    let wrong = case(first, second, &[2]);
    let executable = wrong.compile(&world(), &CompileOptions::default());
    let error = wrong.launched(&executable).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Mismatch, "{error}");
    assert!(error.message.contains("with root 1") && error.message.contains("with root 2"), "{error}");
}

/// Without checks the numbers of the calls do not fit, and the launch ends in time.
#[test]
fn unchecked_ranks_run_into_the_timeout() {
    for (first, second) in [
        ("allreduce max row mode mesh signal s", "allreduce sum row mode mesh signal s"),
        ("barrier of a signal s", "allreduce sum row mode two_phase signal s"),
        ("allgather a <- all mode direct signal s", "broadcast row root 0 mode direct signal s"),
    ] {
        let (wrong, right) = (case(first, second, &[1]), case(first, second, &[]));
        let executable = wrong.compile(&world(), &CompileOptions { unchecked: true, ..CompileOptions::default() });
        right.compare(&right.launched(&executable).unwrap(), "compiled");
        let error = wrong.launched(&executable).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
        assert!(error.message.contains("s_buf_cells[") && error.message.contains("case.pld:"), "{error}");
        right.compare(&right.launched(&executable).unwrap(), "compiled");
    }
}

/// C54: a rank that does not come is the one that is named.
#[test]
fn c54_who_is_missing() {
    let calls = "allgather a <- all signal s";
    let case = case("done[0] = 0", calls, &[3]);
    let executable = case.compile(&world(), &CompileOptions::default());
    let error = case.launched(&executable).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert!(error.message.contains("=> rank 3 has ended launch 1"), "{error}");
}
