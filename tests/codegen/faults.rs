//! Every run-time mistake ends the launch, says what is wrong, and writes nothing.

use pld::codegen::cpu::abi::{Exit, FaultKind};
use pld::ir::Program;

use crate::compare::assert_same;
use crate::ranks::{Arg, Bytes, Options, Outcome, Ranks};
use crate::text::{program, task};

fn args(nranks: u32, a: i64, b: i64) -> Vec<Arg> {
    let x = |rank: u32| i32::bytes(&(0..32).map(|i| (rank * 100 + i) as i32).collect::<Vec<_>>());
    let zeros = vec![vec![0; 128]; nranks as usize];
    vec![Arg::Ranked((0..nranks).map(x).collect()), Arg::Ranked(zeros), Arg::Bits(a as u64), Arg::Bits(b as u64)]
}

fn launch(program: &Program, a: i64, b: i64) -> (Outcome, Ranks) {
    let ranks = Ranks::compile(program, 1, Options::default());
    (ranks.launch(&args(1, a, b), &[], &[], &[]), ranks)
}

/// What a fault says, apart from its op.
#[derive(Debug, PartialEq)]
struct Report<'a> {
    kind: FaultKind,
    operand: u32,
    dim: u32,
    offsets: &'a [i64],
    extents: &'a [i64],
}

#[track_caller]
fn assert_fault(body: &str, a: i64, b: i64, text: &str, report: Report) {
    let program = task(body);
    let (outcome, ranks) = launch(&program, a, b);
    assert_eq!(outcome.exits, [Exit::Fault as i32], "{body}");
    let fault = &outcome.faults[0];
    let site = &ranks.code[0].sites[fault.site as usize];
    assert_eq!((site.text.as_str(), site.task.as_str()), (text, "task"));
    assert_eq!(fault.kind, report.kind as u32);
    if report.kind == FaultKind::Bounds {
        assert_eq!((fault.operand, fault.dim), (report.operand, report.dim));
    }
    assert_eq!(&fault.offsets[..report.offsets.len()], report.offsets);
    assert_eq!(&fault.extents[..report.extents.len()], report.extents);
    assert!(outcome.windows[0].iter().all(|&b| b == 0), "{body} wrote a window");
    assert!(outcome.args[1][0].iter().all(|&b| b == 0), "{body} wrote an output");
    // The interpreter finds the same.
    assert_same(&program, 1, &args(1, a, b), &[]);
}

fn bounds<'a>(operand: u32, dim: u32, offsets: &'a [i64], extents: &'a [i64]) -> Report<'a> {
    Report { kind: FaultKind::Bounds, operand, dim, offsets, extents }
}

fn other(kind: FaultKind, offsets: &'static [i64], extents: &'static [i64]) -> Report<'static> {
    Report { kind, operand: 0, dim: 0, offsets, extents }
}

#[test]
fn elements() {
    assert_fault("w[a, b] = 1", 4, 0, "w[a, b] = 1", bounds(0, 0, &[4, 0], &[1, 1]));
    assert_fault("w[a, b] = 1", 3, 8, "w[a, b] = 1", bounds(0, 1, &[3, 8], &[1, 1]));
    assert_fault("w[a, b] = 1", -1, 0, "w[a, b] = 1", bounds(0, 0, &[-1, 0], &[1, 1]));
    assert_fault("w[a, b] = 1", i64::MIN, i64::MAX, "w[a, b] = 1", bounds(0, 0, &[i64::MIN, i64::MAX], &[1, 1]));
    assert_fault("v = x[a, b]\ny[0, 0] = v", 0, -8, "v = x[a, b]", bounds(0, 1, &[0, -8], &[1, 1]));
}

#[test]
fn tiles() {
    let load = "t = load x[a, b] [2, 4]\nstore t -> y[0, 0]";
    assert_fault(load, 3, 4, "t = load x[a, b] [2, 4]", bounds(0, 0, &[3, 4], &[2, 4]));
    assert_fault(load, 2, 5, "t = load x[a, b] [2, 4]", bounds(0, 1, &[2, 5], &[2, 4]));
    let store = "t = full i32 [2, 4] 7\nstore t -> y[a, b]";
    assert_fault(store, i64::MAX, 0, "store t -> y[a, b]", bounds(0, 0, &[i64::MAX, 0], &[2, 4]));
    let remote = "t = full i32 [2, 4] 7\nremote_store t -> w[a, 0] @me";
    assert_fault(remote, -2, 0, "remote_store t -> w[a, 0] @me", bounds(0, 0, &[-2, 0], &[2, 4]));
}

#[test]
fn transfers() {
    let put = "put w[a, 0] @me <- x[b, 0] [2, 8]";
    assert_fault(put, 3, 0, put, bounds(0, 0, &[3, 0], &[2, 8]));
    assert_fault(put, 0, 3, put, bounds(1, 0, &[3, 0], &[2, 8]));
    // The end overflows.
    let long = "put w[a, 0] @me <- x[0, 0] [b, 8]";
    assert_fault(long, i64::MAX, i64::MAX, long, bounds(0, 0, &[i64::MAX, 0], &[i64::MAX, 8]));
    assert_fault(long, 2, i64::MAX, long, bounds(0, 0, &[2, 0], &[i64::MAX, 8]));
    assert_fault(long, 0, -1, long, bounds(0, 0, &[0, 0], &[-1, 8]));
    let get = "get y[0, 0] <- w[a, b] @me [1, 4]";
    assert_fault(get, 0, 5, get, bounds(1, 1, &[0, 5], &[1, 4]));
    assert_fault("part = slice x[a, 0] [2, 8]", 3, 0, "part = slice x[a, 0] [2, 8]", bounds(0, 0, &[3, 0], &[2, 8]));
    let nested = "part = slice w[2, 0] [2, 8]\npart[a, 0] = 1";
    assert_fault(nested, 2, 0, "part[a, 0] = 1", bounds(0, 0, &[2, 0], &[1, 1]));
    assert_fault(nested, -1, 0, "part[a, 0] = 1", bounds(0, 0, &[-1, 0], &[1, 1]));
}

#[test]
fn peers_signals_and_arrays() {
    for (peer, offsets) in [(1, &[1]), (-1, &[-1]), (1 << 32, &[1 << 32])] {
        let put = "put w @a <- x";
        assert_fault(put, peer, 0, put, other(FaultKind::Peer, offsets, &[]));
        let notify = "notify sig[0, 0] @a += 1";
        assert_fault(notify, peer, 0, notify, other(FaultKind::Peer, offsets, &[]));
    }
    assert_fault("notify sig[a, 0] @me += 1", 4, 0, "notify sig[a, 0] @me += 1", bounds(0, 0, &[4, 0], &[1, 1]));
    assert_fault("wait sig[a, 0] >= 0", -1, 0, "wait sig[a, 0] >= 0", bounds(0, 0, &[-1, 0], &[1, 1]));
    let array = "s = array i32 [3] = 0\ns[a] = 1";
    assert_fault(array, 3, 0, "s[a] = 1", other(FaultKind::Array, &[3], &[3]));
    assert_fault(array, -1, 0, "s[a] = 1", other(FaultKind::Array, &[-1], &[3]));
}

/// What one check has shown spares the next one only where the first one always comes before, and says enough.
#[test]
fn checks_that_have_held() {
    let shorter = "s = array i32 [3] = 0\nr = array i32 [2] = 0\ns[a] = 1\nr[a] = 2";
    assert_fault(shorter, 2, 0, "r[a] = 2", other(FaultKind::Array, &[2], &[2]));
    let maybe = "s = array i32 [3] = 0\nif b == 1 { s[a] = 1 }\ns[a] = 2";
    assert_fault(maybe, 3, 0, "s[a] = 2", other(FaultKind::Array, &[3], &[3]));
    let never = "s = array i32 [3] = 0\nfor k in 0..b { s[a] = 1 }\ns[a] = 2";
    assert_fault(never, 3, 0, "s[a] = 2", other(FaultKind::Array, &[3], &[3]));
}

#[test]
fn arithmetic() {
    let divide = "v = a / b\nw[0, 0] = v";
    assert_fault(divide, 5, 0, "v = a / b", other(FaultKind::Division, &[], &[]));
    assert_fault("v = a % b\nw[0, 0] = v", 5, 0, "v = a % b", other(FaultKind::Division, &[], &[]));
    let tile = "t = load x[0, 0] [1, 8]\nu = div t, t\nstore u -> y[0, 0]";
    assert_fault(tile, 0, 0, "u = div t, t", other(FaultKind::Division, &[], &[]));
    let by = "t = load x[0, 0] [1, 8]\nu = div t, a\nstore u -> y[0, 0]";
    assert_fault(by, 0, 0, "u = div t, a", other(FaultKind::Division, &[], &[]));
    let steps = "for k in 0..8 step a { w[0, 0] = k }";
    assert_fault(steps, 0, 0, "for k in 0..8 step a", other(FaultKind::Step, &[0], &[]));
    assert_fault(steps, -3, 0, "for k in 0..8 step a", other(FaultKind::Step, &[-3], &[]));
}

/// A literal that does not fit 32 bits wraps where they are needed, and what is known of the result follows.
#[test]
fn wide_literals_wrap() {
    let index = "k = cast(a, i32)\nj = k / 4294967295\nw[clamp(k, 0, 3), 0] = 0\ns = array i32 [3] = 0\ns[j] = 1";
    assert_fault(index, 5, 0, "s[j] = 1", other(FaultKind::Array, &[-5], &[3]));
    let zero = "k = cast(a, i32)\nj = k / 4294967296\nw[0, 0] = j";
    assert_fault(zero, 5, 0, "j = k / 4294967296", other(FaultKind::Division, &[], &[]));
    let select = "k = cast(a, i32)\nj = select(k == 5, k, 4294967297)\ns = array i32 [3] = 0\ns[j + 2] = 1";
    assert_fault(select, 1, 0, "s[j + 2] = 1", other(FaultKind::Array, &[3], &[3]));
}

/// Where nothing is wrong, the same programs run: the last legal place, and regions without elements anywhere.
#[test]
fn the_edge_is_legal() {
    for (body, a, b) in [
        ("w[a, b] = 1", 3, 7),
        ("t = load x[a, b] [2, 4]\nstore t -> y[a, b]", 2, 4),
        ("put w[a, 0] @me <- x[b, 0] [2, 8]", 2, 2),
        ("put w[a, 0] @me <- x[0, 0] [b, 8]", 0, 4),
        ("put w[a, 0] @me <- x[0, 0] [b, 8]", 4, 0),
        ("put w[a, 0] @me <- x[0, 0] [b, 8]", 5, 0),
        ("put w[0, 0] @me <- x[a, 0] [2, b]", i64::MIN, 0),
        ("put w[a, 0] @me <- x[0, 0] [b, 8] add", -7, 0),
        ("s = array i32 [3] = 4\ns[a] = 1\nw[0, 0] = s[a] + s[b]", 2, 0),
        ("v = a / b\nw[0, 0] = cast(v % 1000, i32)", i64::MIN, -1),
        ("v = a % b\nw[0, 0] = cast(v, i32) + 3", i64::MIN, -1),
        ("for k in a..b step 4611686018427387904 { w[0, 0] = w[0, 0] + 1 }", i64::MIN, i64::MAX),
    ] {
        assert_same(&task(body), 1, &args(1, a, b), &[]);
        let (outcome, _) = launch(&task(body), a, b);
        outcome.assert_done();
    }
}

/// One rank's mistake is reported by that rank; the others wait for it in vain.
#[test]
fn only_the_rank_that_fails_reports() {
    let program = task("if me == 1 { w[a, 0] = 1 }\nw[0, 1] = 5");
    for each in [false, true] {
        let ranks = Ranks::compile(&program, 3, Options { each, ..Options::default() });
        let outcome = ranks.launch(&args(3, 4, 0), &[], &[], &[]);
        assert_eq!(outcome.exits, [0, 1, 0]);
        assert_eq!(outcome.faults[1].offsets[..2], [4, 0]);
        for rank in 0..3 {
            assert_eq!(i32::values(&outcome.windows[rank][..8]), [0, if rank == 1 { 0 } else { 5 }]);
        }
    }
}

/// Without checks nothing is compared, and correct programs mean the same.
#[test]
fn unchecked_code_is_shorter_and_right() {
    let program = task("put w[a, 0] @b <- x[a, 0] [1, 8]\nw[a, b] = 77");
    let run = |checked| {
        let ranks = Ranks::compile(&program, 1, Options { checked, ..Options::default() });
        let outcome = ranks.launch(&args(1, 2, 0), &[], &[], &[]);
        outcome.assert_done();
        (outcome.windows, ranks.code[0].code_bytes)
    };
    let (checked, unchecked) = (run(true), run(false));
    assert_eq!(checked.0, unchecked.0);
    assert!(unchecked.1 < checked.1, "{} and {} bytes", unchecked.1, checked.1);
    // Arithmetic is checked all the same.
    let divide = task("w[0, 0] = cast(a / b, i32)");
    let ranks = Ranks::compile(&divide, 1, Options { checked: false, ..Options::default() });
    assert_eq!(ranks.launch(&args(1, 1, 0), &[], &[], &[]).exits, [Exit::Fault as i32]);
}

/// Shapes that are bound at launch are checked with their values.
#[test]
fn dynamic_shapes() {
    let text = "program test
dim n
entry e(x: tensor[n, 4] i32 in, y: tensor[n, 4] i32 out, w: window[8, 4] i32, k: i64) {
  part = slice x[n - 1, 0] [1, 4]
  at task {
    put w[0, 0] @rank(w) <- x[0, 0] [n, 4]
    get y[k, 0] <- w[0, 0] @rank(w) [n - k, 4]
    y[n - 1, 3] = part[0, 0] + cast(n / k, i32)
  }
}
host (xs: tensor[world, n, 4] i32 in, ys: tensor[world, n, 4] i32 out, k: i64) {
  buf = alloc_window [8, 4] i32
  ranks r in 0..world {
    w = window buf [8, 4] i32
    dispatch e(xs[r], ys[r], w, k) device r
  }
}
";
    let program = program(text);
    // The rows fit; too many rows for the window; no rows at all; an offset past the end; division by zero.
    for (n, k) in [(8, 3), (8, 8), (9, 1), (0, 1), (5, 6), (5, 0), (5, -1)] {
        let x = i32::bytes(&(0..4 * n as i32).map(|i| 10 + i).collect::<Vec<_>>());
        let zeros = vec![0; x.len()];
        let args = [Arg::Ranked(vec![x]), Arg::Ranked(vec![zeros]), Arg::Bits(k as u64)];
        assert_same(&program, 1, &args, &[n]);
    }
}
