//! Cases about sizes and counts: collectives written as programs, with any number of ranks.

use pld::ir::DType;
use pld::runtime::{Arg, Executable};

use super::{compile, compile_as, tensor, world};

/// Element `i` of rank `r` in launch `launch`; small enough for sums of all ranks.
fn value(launch: usize, r: usize, i: usize) -> i32 {
    (launch * 31 + (r + 1) * 100_003 + i * 7) as i32
}

/// An all-reduce of `n` elements on windows that stay: each rank sends to all, and adds up.
const MESH: &str = "program mesh
dim n
const MOST = 65536
entry e(x: tensor[1, n] i32 in, y: tensor[1, n] i32 out, parts: window[world, MOST] i32, ready: window[world, 1] i32, consumed: window[world, 1] i32, me: i32, epoch: i32) {
  at reduce {
    for peer in 0..world { if peer != me { wait consumed[peer, 0] >= epoch - 1 } }
    for peer in 0..world {
      put parts[me, 0] @peer <- x[0, 0] [1, n]
      if peer != me { notify ready[me, 0] @peer += 1 }
    }
    for src in 0..world { if src != me { wait ready[src, 0] >= epoch } }
    for i in 0..n {
      sum = var i32 = 0
      for src in 0..world { sum = sum + parts[src, i] }
      y[0, i] = sum
    }
    for src in 0..world { if src != me { notify consumed[me, 0] @src += 1 } }
  }
}
host (xs: tensor[world, 1, n] i32 in, ys: tensor[world, 1, n] i32 out, epoch: i32) {
  parts_buf = alloc_window [world, MOST] i32
  ready_buf = alloc_window [world, 1] i32
  consumed_buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    parts = window parts_buf [world, MOST] i32
    ready = window ready_buf [world, 1] i32
    consumed = window consumed_buf [world, 1] i32
    dispatch e(xs[r], ys[r], parts, ready, consumed, r, epoch) device r
  }
}
";

/// A ring all-reduce of `n` elements: segment `s` begins at `s * n / world`, so some may be empty.
const RING: &str = "program ring
dim n
const MOST = 1028
entry e(x: tensor[1, n] i32 in, y: tensor[1, n] i32 inout, inbox: window[2 * world, MOST] i32, arrived: window[2 * world, 1] i32, me: i32) {
  at reduce {
    for i in 0..n { y[0, i] = x[0, i] }
    for step in 0..2 * (world - 1) {
      adding = step < world - 1
      sent = (select(adding, me - step, me - step + world) + 2 * world) % world
      put inbox[step, 0] @((me + 1) % world) <- y[0, sent * n / world] [1, (sent + 1) * n / world - sent * n / world]
      notify arrived[step, 0] @((me + 1) % world) += 1
      wait arrived[step, 0] >= 1
      came = (sent + world - 1) % world
      first = came * n / world
      for i in first..(came + 1) * n / world {
        if adding { y[0, i] = y[0, i] + inbox[step, i - first] } else { y[0, i] = inbox[step, i - first] }
      }
    }
  }
}
host (xs: tensor[world, 1, n] i32 in, ys: tensor[world, 1, n] i32 inout) {
  inbox_buf = alloc_window [2 * world, MOST] i32
  arrived_buf = alloc_window [2 * world, 1] i32
  ranks r in 0..world {
    inbox = window inbox_buf [2 * world, MOST] i32
    arrived = window arrived_buf [2 * world, 1] i32
    dispatch e(xs[r], ys[r], inbox, arrived, r) device r
  }
}
";

/// Rows of different lengths for each peer. The length rides on the signal, so an empty row is a signal and nothing else.
const ALL_TO_ALL_V: &str = "program all_to_all_v
const MOST = 16
entry e(x: tensor[world, MOST] u8 in, counts: tensor[world] i32 in, y: tensor[world, MOST] u8 out, got: tensor[world] i32 out, inbox: window[world, MOST] u8, arrived: window[world, 1] i32, me: i32) {
  at exchange {
    for dst in 0..world {
      put inbox[me, 0] @dst <- x[dst, 0] [1, counts[dst]]
      notify arrived[me, 0] @dst += 1 + counts[dst]
    }
    for src in 0..world {
      wait arrived[src, 0] >= 1
      n = arrived[src, 0] - 1
      got[src] = n
      get y[src, 0] <- inbox[src, 0] @me [1, n]
    }
  }
}
host (xs: tensor[world, world, MOST] u8 in, counts: tensor[world, world] i32 in, ys: tensor[world, world, MOST] u8 out, got: tensor[world, world] i32 out) {
  inbox_buf = alloc_window [world, MOST] u8
  arrived_buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    inbox = window inbox_buf [world, MOST] u8
    arrived = window arrived_buf [world, 1] i32
    dispatch e(xs[r], counts[r], ys[r], got[r], inbox, arrived, r) device r
  }
}
";

/// Bytes of a row.
const MOST: usize = 16;

/// What is in a row where nothing was received.
const UNTOUCHED: u8 = 0xEE;

/// One exchange of rows of `count(src, dst)` bytes, whose contents depend on `launch` too.
fn exchange_rows(executable: &Executable, p: usize, launch: usize, count: impl Fn(usize, usize) -> usize) {
    let byte = |src: usize, dst: usize, i: usize| (launch * 11 + src * 67 + dst * 29 + i * 3) as u8;
    let pairs = || (0..p).flat_map(|a| (0..p).map(move |b| (a, b)));
    let mut xs: Vec<u8> = pairs().flat_map(|(src, dst)| (0..MOST).map(move |i| byte(src, dst, i))).collect();
    let mut counts: Vec<i32> = pairs().map(|(src, dst)| count(src, dst) as i32).collect();
    let (mut ys, mut got) = (vec![UNTOUCHED; p * p * MOST], vec![-1; p * p]);
    let (table, rows) = ([p as i64; 2], [p as i64, p as i64, MOST as i64]);
    let args = [
        tensor(&mut xs, DType::U8, &rows),
        tensor(&mut counts, DType::I32, &table),
        tensor(&mut ys, DType::U8, &rows),
        tensor(&mut got, DType::I32, &table),
    ];
    executable.launch(&args).unwrap();
    for (dst, src) in pairs() {
        let sent = count(src, dst);
        assert_eq!(got[dst * p + src] as usize, sent, "launch {launch}: from {src} to {dst} of {p}");
        for i in 0..MOST {
            let expected = if i < sent { byte(src, dst, i) } else { UNTOUCHED };
            let came = ys[(dst * p + src) * MOST + i];
            assert_eq!(came, expected, "launch {launch}: from {src} to {dst} of {p}, byte {i}");
        }
    }
}

fn all_to_all_v(nranks: u32, count: impl Fn(usize, usize) -> usize) {
    let executable = compile(ALL_TO_ALL_V, &world(nranks));
    for launch in 0..3 {
        exchange_rows(&executable, nranks as usize, launch, &count);
    }
}

/// The inputs of an all-reduce, and its outputs.
fn sums(p: usize, n: usize, launch: usize) -> (Vec<i32>, Vec<i32>) {
    let inputs = (0..p).flat_map(|r| (0..n).map(move |i| value(launch, r, i))).collect();
    let sum = |i: usize| (0..p).map(|r| value(launch, r, i)).sum();
    (inputs, (0..p).flat_map(|_| (0..n).map(sum)).collect())
}

fn ring(nranks: u32, counts: &[usize]) {
    let executable = compile(RING, &world(nranks));
    for (launch, &n) in counts.iter().enumerate() {
        let (mut xs, expected) = sums(nranks as usize, n, launch);
        let mut ys = vec![-1; xs.len()];
        let shape = [i64::from(nranks), 1, n as i64];
        executable.launch(&[tensor(&mut xs, DType::I32, &shape), tensor(&mut ys, DType::I32, &shape)]).unwrap();
        assert!(ys == expected, "{n} elements, {nranks} ranks");
    }
}

#[test]
fn c14_sizes_alternate_on_the_same_windows() {
    for (nranks, launches) in [(4, 250), (8, 50)] {
        let (p, world) = (nranks as usize, world(nranks));
        let (reduce, gather) = (compile_as(MESH, &world, true), compile(ALL_TO_ALL_V, &world));
        for launch in 0..launches {
            let n = [1, 4096, 17, 65536, 3][launch % 5];
            let (mut xs, expected) = sums(p, n, launch);
            let mut ys = vec![-1; xs.len()];
            let shape = [p as i64, 1, n as i64];
            let epoch = Arg::Int(launch as i64 + 1);
            reduce.launch(&[tensor(&mut xs, DType::I32, &shape), tensor(&mut ys, DType::I32, &shape), epoch]).unwrap();
            assert!(ys == expected, "launch {launch}: {n} elements, {p} ranks");

            exchange_rows(&gather, p, launch, |_, _| 3);
        }
    }
}

#[test]
fn c18_a_ring_whose_segments_differ() {
    for nranks in [3, 5] {
        ring(nranks, &[1, 2, 7, 1028]);
    }
}

#[test]
fn c22_empty_messages() {
    // Only five ranks have something to say.
    all_to_all_v(64, |src, _| usize::from(src < 5));
    all_to_all_v(4, |_, _| 0);
    all_to_all_v(4, |src, dst| (src * 5 + dst * 3) % 17);
}

#[test]
fn c25_a_rank_that_gets_nothing() {
    all_to_all_v(4, |src, dst| if dst == 2 { 0 } else { 1 + src });
}

#[test]
fn c37_any_number_of_ranks() {
    // In step k a rank hears from the one 2^k before it; after all steps, from everybody.
    let dissemination = "program dissemination
entry e(seen: tensor[world] i32 out, entered: window[world, 1] i32, signal: window[8, 1] i32, me: i32) {
  at meet {
    entered[me, 0] = 1000 + me
    for peer in 0..world { put entered[me, 0] @peer <- entered[me, 0] [1, 1] }
    distance = var i32 = 1
    for step in 0..8 {
      if distance < world {
        notify signal[step, 0] @((me + distance) % world) += 1
        wait signal[step, 0] >= 1
        distance = distance * 2
      }
    }
    for src in 0..world { seen[src] = entered[src, 0] }
  }
}
host (seen: tensor[world, world] i32 out) {
  entered_buf = alloc_window [world, 1] i32
  signal_buf = alloc_window [8, 1] i32
  ranks r in 0..world {
    entered = window entered_buf [world, 1] i32
    signal = window signal_buf [8, 1] i32
    dispatch e(seen[r], entered, signal, r) device r
  }
}
";
    for nranks in [1, 2, 3, 5, 6, 7, 9, 12, 15] {
        let p = i64::from(nranks);
        let executable = compile(dissemination, &world(nranks));
        for _ in 0..50 {
            let mut seen = vec![-1; (p * p) as usize];
            executable.launch(&[tensor(&mut seen, DType::I32, &[p, p])]).unwrap();
            assert!((0..p * p).all(|i| i64::from(seen[i as usize]) == 1000 + i % p), "{p} ranks: {seen:?}");
        }
        ring(nranks, &[1, 7, 1028]);
        all_to_all_v(nranks, |src, dst| (src + 2 * dst) % 5);
    }
}
