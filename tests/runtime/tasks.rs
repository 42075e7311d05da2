//! Task graphs: what runs while a task waits, in which order, on one core and on several.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pld::error::{Error, ErrorKind, Result};
use pld::ir::parse::parse;
use pld::runtime::{Arg, Callback, CallbackContext, CompileOptions, Executable, World, WorldOptions};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::programs::{compile, tensor};
use crate::ranks::{Job, Join, Rank, Scenario};

pub const SCENARIOS: &[(&str, Scenario)] = &[("deferred", deferred_rank)];

fn world(nranks: u32, cores_per_rank: u32) -> Arc<World> {
    let options = WorldOptions { timeout: Duration::from_secs(20), cores_per_rank, ..WorldOptions::default() };
    World::create(nranks, &options).unwrap()
}

/// Every rank waits before it sends, and nothing but the text orders the two.
pub const WAIT_FIRST: &str = "program wait_first
entry e(out: tensor[1] i32 out, box: window[1] i32, sig: window[world] i32, me: i32, k: i32) {
  at receive no_dep [box, sig] {
    wait sig[(me + world - 1) % world] >= 1
    out[0] = box[0]
  }
  at send no_dep [box, sig] {
    t = full i32 [1] 100 * me + k
    remote_store t -> box[0] @((me + 1) % world)
    notify sig[me] @((me + 1) % world) += 1
  }
}
host (outs: tensor[world, 1] i32 out, k: i32) {
  box_buf = alloc_window [1] i32
  sig_buf = alloc_window [world] i32
  ranks r in 0..world {
    box = window box_buf [1] i32
    sig = window sig_buf [world] i32
    dispatch e(outs[r], box, sig, r, k) device r
  }
}
";

#[test]
fn a_wait_holds_up_nothing_that_it_needs() {
    for (nranks, cores) in [(1, 1), (2, 1), (3, 1), (8, 1), (2, 2), (3, 3)] {
        let world = world(nranks, cores);
        let exe = compile(WAIT_FIRST, &world, false).unwrap();
        for k in 0..100 {
            let mut out = vec![-1; nranks as usize];
            exe.launch(&[tensor(&mut out, &[i64::from(nranks), 1]), Arg::Int(k)]).unwrap();
            let right: Vec<i32> = (0..nranks).map(|r| 100 * ((r + nranks - 1) % nranks) as i32 + k as i32).collect();
            assert_eq!(out, right, "{nranks} ranks of {cores} cores, launch {k}");
        }
    }
}

/// With the edges that the text implies, the sender waits for the receiver, and the report says why.
#[test]
fn a_circle_through_an_edge_is_explained() {
    for cores in [1, 2] {
        let options =
            WorldOptions { timeout: Duration::from_millis(400), cores_per_rank: cores, ..WorldOptions::default() };
        let world = World::create(2, &options).unwrap();
        let exe = compile(&WAIT_FIRST.replace(" no_dep [box, sig]", ""), &world, false).unwrap();
        let mut out = [0; 2];
        let error = exe.launch(&[tensor(&mut out, &[2, 1]), Arg::Int(3)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
        let line = "\n    task send has not begun: it waits for receive (both touch box)";
        assert!(error.message.contains(line), "{error}");
    }
}

/// A20: pairs of a deferred wait and a task that copies the payload, all submitted before what they wait for is sent.
const DEFERRED: &str = "program deferred
const W = {W}
entry e(inp: tensor[1, 8] i32 in, out: tensor[W, 8] i32 out, payload: window[1, 8] i32 manual, sig: window[1, 1] i32 manual,
        me: i32, epoch: i32) {
  for i in 0..W {
    arrived = at waiter { defer_wait sig[0, 0] >= epoch }
    at consumer deps [arrived] {
      t = load payload[0, 0] [1, 8]
      store t -> out[i, 0]
    }
  }
  at publisher {
    t = load inp[0, 0] [1, 8]
    remote_store t -> payload[0, 0] @((me + 1) % world)
    notify sig[0, 0] @((me + 1) % world) = epoch
  }
}
host (inputs: tensor[world, 1, 8] i32 in, outputs: tensor[world, W, 8] i32 out, epoch: i32) {
  payload_buf = alloc_window [1, 8] i32
  sig_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    payload = window payload_buf [1, 8] i32
    sig = window sig_buf [1, 1] i32
    dispatch e(inputs[r], outputs[r], payload, sig, r, epoch) device r
  }
}
";

fn deferred(nranks: u32, cores: u32, waiters: usize, epochs: &[i32]) {
    let world = world(nranks, cores);
    let exe = compile(&DEFERRED.replace("{W}", &waiters.to_string()), &world, true).unwrap();
    let (n, ranks) = (i64::from(nranks), nranks as usize);
    for &epoch in epochs {
        let mut input: Vec<i32> =
            (0..ranks).flat_map(|r| (0..8).map(move |lane| if lane == 0 { epoch } else { r as i32 + 1 })).collect();
        let mut out = vec![-1; ranks * waiters * 8];
        let (of_input, of_output) = ([n, 1, 8], [n, waiters as i64, 8]);
        exe.launch(&[tensor(&mut input, &of_input), tensor(&mut out, &of_output), Arg::Int(epoch.into())]).unwrap();
        for (index, row) in out.chunks(8).enumerate() {
            let from = (index / waiters + ranks - 1) % ranks;
            let tag = from as i32 + 1;
            assert_eq!(row, [epoch, tag, tag, tag, tag, tag, tag, tag], "row {index} of epoch {epoch}");
        }
    }
}

#[test]
fn deferred_completions_saturate() {
    for (nranks, cores) in [(2, 1), (3, 1), (4, 1), (8, 1), (2, 3)] {
        for waiters in [1, 16, 48, 64] {
            deferred(nranks, cores, waiters, &[1, 2, 3]);
        }
    }
}

/// A20 between processes. Windows are fresh, so no rank overwrites what another one still reads.
#[test]
fn deferred_completions_between_processes() {
    for nranks in [2, 3, 4] {
        for (rank, outcome) in Job::start("deferred", nranks).outcomes().iter().enumerate() {
            assert_eq!(outcome.done(), "right", "rank {rank} of {nranks}");
        }
    }
}

fn deferred_rank(me: &Rank) -> Result<String> {
    const WAITERS: usize = 48;
    let cores_per_rank = if me.rank() == 1 { 2 } else { 1 };
    let world = me.join(&WorldOptions { cores_per_rank, ..WorldOptions::default() })?;
    let exe = compile(&DEFERRED.replace("{W}", &WAITERS.to_string()), &world, false)?;
    let tag = ((me.rank() + me.nranks() - 1) % me.nranks()) as i32 + 1;
    for epoch in 1..=50 {
        let mut input: Vec<i32> = (0..8).map(|lane| if lane == 0 { epoch } else { me.rank() as i32 + 1 }).collect();
        let mut out = vec![-1; WAITERS * 8];
        let shape = [WAITERS as i64, 8];
        exe.launch(&[tensor(&mut input, &[1, 8]), tensor(&mut out, &shape), Arg::Int(epoch.into())])?;
        let right = [epoch, tag, tag, tag, tag, tag, tag, tag];
        out.chunks(8).for_each(|row| assert_eq!(row, right, "epoch {epoch} of rank {}", me.rank()));
    }
    Ok("right".into())
}

/// A21.
#[test]
fn a_cell_that_has_arrived_already() {
    deferred(2, 1, 1, &[1]);
    let world = world(2, 1);
    let exe = compile(&DEFERRED.replace("{W}", "1"), &world, true).unwrap();
    for _ in 0..3 {
        let mut input: Vec<i32> = (0..16).map(|i| if i % 8 == 0 { 1 } else { i / 8 + 1 }).collect();
        let mut out = [-1; 16];
        exe.launch(&[tensor(&mut input, &[2, 1, 8]), tensor(&mut out, &[2, 1, 8]), Arg::Int(1)]).unwrap();
        assert_eq!(out, [1, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}

#[test]
fn too_many_deferred_tasks() {
    let world = world(2, 1);
    let exe = compile(&DEFERRED.replace("{W}", "65"), &world, true).unwrap();
    let (mut input, mut out) = ([0; 16], vec![0; 2 * 65 * 8]);
    let args = [tensor(&mut input, &[2, 1, 8]), tensor(&mut out, &[2, 65, 8]), Arg::Int(1)];
    let error = exe.launch(&args).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.ends_with("more than 64 tasks wait for cells at once"), "{error}");
}

/// Blocks that wait for one another in a ring, the last one first.
#[test]
fn blocks_of_a_grid_wait_for_each_other() {
    let text = "program ring
entry e(out: tensor[8] i32 out, sig: window[9] i32, me: i32) {
  at start { notify sig[8] @me += 1 }
  spmd pass [8] as b {
    wait sig[b + 1] >= 1
    out[b] = sig[b + 1] * 10 + b
    notify sig[b] @me += 8 - b
  }
}
host (outs: tensor[world, 8] i32 out) {
  buf = alloc_window [9] i32
  ranks r in 0..world {
    sig = window buf [9] i32
    dispatch e(outs[r], sig, r) device r
  }
}
";
    for (nranks, cores) in [(1, 1), (2, 1), (2, 2), (1, 4)] {
        let world = world(nranks, cores);
        let exe = compile(text, &world, false).unwrap();
        let mut out = vec![-1; 8 * nranks as usize];
        exe.launch(&[tensor(&mut out, &[i64::from(nranks), 8])]).unwrap();
        // Block 7 finds the 1 of the start, every other one what its neighbour has added.
        let right: Vec<i32> = (0..8).map(|b| if b == 7 { 17 } else { (7 - b) * 10 + b }).collect();
        out.chunks(8).for_each(|rank| assert_eq!(rank, right, "{nranks} ranks of {cores} cores"));
    }
}

/// Named dependencies order tasks that touch nothing in common: the latest instance in the same block, all instances
/// of a block that has ended, through a join, inside a manual scope. A predicate retires a task, and what depends on it
/// still runs.
#[test]
fn named_dependencies() {
    let text = "program named
entry e(out: tensor[8] i32 out, log: window[64] i32 manual, next: window[1] i32 manual, go: window[1] i32 manual,
        flags: window[2] i32, me: i32) {
  gate = at gate { wait go[0] >= 1 }
  at set_flags { flags[1] = 1 }
  for i in 0..4 {
    first = at first deps [gate] { log[i] = 100 + cast(i, i32) }
    second = at second deps [first] { log[8 + i] = log[i] + 100 }
  }
  joined = at join deps [first, second] {}
  manual {
    sum = at sum deps [joined] {
      s = var i32 = 0
      for i in 0..16 { s = s + log[i] }
      next[0] = s
    }
    at use_it deps [sum] { out[0] = next[0] }
  }
  skipped = at skipped predicate flags[0] == 1 { out[1] = 13 }
  at ran deps [skipped] predicate flags[1] >= 1 { out[2] = 14 }
  spmd some [3] predicate flags[1] != 0 as b { out[3 + b] = b + 20 }
  at open { notify go[0] @me += 1 }
}
host (outs: tensor[world, 8] i32 out) {
  log_buf = alloc_window [64] i32
  next_buf = alloc_window [1] i32
  go_buf = alloc_window [1] i32
  flag_buf = alloc_window [2] i32
  ranks r in 0..world {
    log = window log_buf [64] i32
    next = window next_buf [1] i32
    go = window go_buf [1] i32
    flags = window flag_buf [2] i32
    dispatch e(outs[r], log, next, go, flags, r) device r
  }
}
";
    for (nranks, cores) in [(1, 1), (2, 1), (2, 3)] {
        let world = world(nranks, cores);
        let exe = compile(text, &world, false).unwrap();
        for _ in 0..50 {
            let mut out = vec![-1; 8 * nranks as usize];
            exe.launch(&[tensor(&mut out, &[i64::from(nranks), 8])]).unwrap();
            let sum = (0..4).map(|i| 100 + i + 200 + i).sum::<i32>();
            for rank in out.chunks(8) {
                assert_eq!(rank, [sum, -1, 14, 20, 21, 22, -1, -1]);
            }
        }
    }
}

/// A task with more arrays than the stack of a waiting task has room for.
#[test]
fn many_arrays_in_a_task_that_waits() {
    let arrays: String = (0..400).map(|i| format!("a{i} = array i32 [1000] = {i}\n")).collect();
    let sum: String = (0..400).map(|i| format!("s = s + a{i}[{}]\n", i % 1000)).collect();
    let text = format!(
        "program arrays
entry e(out: tensor[1] i32 out, go: window[1] i32 manual, me: i32) {{
at sum {{
{arrays}
wait go[0] >= 1
s = var i32 = 0
{sum}
out[0] = s
}}
at open {{ notify go[0] @me += 1 }}
}}
host (outs: tensor[world, 1] i32 out) {{
go_buf = alloc_window [1] i32
ranks r in 0..world {{
go = window go_buf [1] i32
dispatch e(outs[r], go, r) device r
}}
}}
"
    );
    let exe = compile(&text, &world(2, 1), false).unwrap();
    let mut out = [0; 2];
    exe.launch(&[tensor(&mut out, &[2, 1])]).unwrap();
    assert_eq!(out, [(0..400).sum::<i32>(); 2]);
}

/// The entry's own variables: tasks that change them come first when the entry looks at them.
#[test]
fn variables_of_the_entry() {
    let text = "program variables
entry e(out: tensor[2] i32 out, go: window[1] i32 manual, me: i32) {
  count = var i32 = 5
  gate = at gate { wait go[0] >= 1 }
  at open { notify go[0] @me += 1 }
  at add deps [gate] { count = count + 37 }
  for i in 0..3 { at more { count = count * 2 } }
  total = count
  at show { out[0] = total }
  count = 7
  at show_again { out[1] = count }
}
host (outs: tensor[world, 2] i32 out) {
  go_buf = alloc_window [1] i32
  ranks r in 0..world {
    go = window go_buf [1] i32
    dispatch e(outs[r], go, r) device r
  }
}
";
    for cores in [1, 2] {
        let world = world(2, cores);
        let exe = compile(text, &world, false).unwrap();
        let mut out = [0; 4];
        exe.launch(&[tensor(&mut out, &[2, 2])]).unwrap();
        assert_eq!(out, [336, 7, 336, 7]);
    }
}

unsafe extern "C" fn scale(context: *const CallbackContext, user_data: *mut c_void) -> i32 {
    // SAFETY: the library passes a context, the test a counter.
    let (context, calls) = unsafe { (&*context, &*user_data.cast::<AtomicI64>()) };
    // SAFETY: as many tensors and scalars as the context says.
    let (tensors, scalars) = unsafe {
        (
            std::slice::from_raw_parts(context.tensors, context.ntensors),
            std::slice::from_raw_parts(context.scalars, context.nscalars),
        )
    };
    let [x, y] = tensors else { return 2 };
    // SAFETY: each has two dimensions.
    let (shape, strides) = unsafe {
        (std::slice::from_raw_parts(x.shape, x.ndims as usize), std::slice::from_raw_parts(x.strides, x.ndims as usize))
    };
    if shape != [4, 8] || strides != [16, 1] || context.blocks != 4 || scalars.len() != 3 || scalars[2] != 1 {
        return 3;
    }
    if scalars[0] == 13 && context.block == 2 {
        return 77;
    }
    let factor = f64::from_bits(scalars[1] as u64) as f32;
    let row = context.block as usize;
    for column in 0..8 {
        // SAFETY: this block's row of both tensors.
        unsafe {
            let value = *x.data.cast::<f32>().add(row * 16 + column);
            *y.data.cast::<f32>().add(row * 8 + column) = value * factor + scalars[0] as f32;
        }
    }
    calls.fetch_add(1 + 1000 * context.launch as i64, Ordering::Relaxed);
    0
}

const EXTERN: &str = "program scaling
entry e(x: tensor[4, 16] f32 in, y: tensor[4, 8] f32 out, k: i32, go: window[1] i32 manual, me: i32) {
  right = slice x[0, 8] [4, 8]
  gate = at gate { wait go[0] >= 1 }
  extern scale(right in, y out, k, 0.5, true) [4] deps [gate]
  at open { notify go[0] @me += 1 }
  at after {
    t = load y[0, 0] [4, 8]
    t = add t, 1000.0
    store t -> y[0, 0]
  }
}
host (xs: tensor[world, 4, 16] f32 in, ys: tensor[world, 4, 8] f32 out, k: i32) {
  go_buf = alloc_window [1] i32
  ranks r in 0..world {
    go = window go_buf [1] i32
    dispatch e(xs[r], ys[r], k, go, r) device r
  }
}
";

#[test]
fn functions_of_the_engine() {
    for cores in [1, 3] {
        let world = world(2, cores);
        let calls = AtomicI64::new(0);
        let program = parse(EXTERN, "scaling.pld").unwrap();
        let callback = Callback { function: scale, user_data: (&raw const calls).cast_mut().cast() };
        let options = CompileOptions { callbacks: vec![("scale".into(), callback)], ..CompileOptions::default() };
        let exe = Executable::compile(&program, &world, &options).unwrap();
        let mut x: Vec<f32> = (0..128).map(|i| i as f32).collect();
        let mut y = vec![0.0f32; 64];
        let launch =
            |x: &mut [f32], y: &mut [f32], k| exe.launch(&[tensor(x, &[2, 4, 16]), tensor(y, &[2, 4, 8]), Arg::Int(k)]);
        launch(&mut x, &mut y, 3).unwrap();
        for (i, &value) in y.iter().enumerate() {
            let (rank, row, column) = (i / 32, i / 8 % 4, i % 8);
            let input = (rank * 64 + row * 16 + 8 + column) as f32;
            assert_eq!(value, input * 0.5 + 3.0 + 1000.0, "element {i}");
        }
        assert_eq!(calls.load(Ordering::Relaxed), 8 + 8000, "every block once, in launch 1");
        let error = launch(&mut x, &mut y, 13).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Callback);
        let line = "function scale returned 77\n    at scale (scaling.pld:5), block 2 of 4, launch 2 of 'scaling'";
        assert!(error.message.contains(line), "{error}");
    }
}

/// The tensors of all ranks, read after all of them have written: E4 and E6.
unsafe extern "C" fn reduce(context: *const CallbackContext, user_data: *mut c_void) -> i32 {
    // SAFETY: the library passes a context, the test a place for the sum.
    let (context, sum) = unsafe { (&*context, &*user_data.cast::<AtomicI64>()) };
    // SAFETY: two tensors, a scalar; the tensors have as many dimensions as they say.
    let (tensors, scalar, shape) = unsafe {
        let tensors = std::slice::from_raw_parts(context.tensors, context.ntensors);
        let shape = std::slice::from_raw_parts(tensors[0].shape, tensors[0].ndims as usize);
        (tensors, *context.scalars, shape)
    };
    if shape != [i64::from(context.nranks), 4] || scalar != 6 || tensors[1].ndims != 1 {
        return 5;
    }
    // SAFETY: the elements that the shape says.
    let values = unsafe { std::slice::from_raw_parts(tensors[0].data.cast::<i32>(), 4 * shape[0] as usize) };
    sum.store(values.iter().map(|&v| i64::from(v)).sum(), Ordering::Relaxed);
    // SAFETY: one element, which the function may write.
    unsafe { *tensors[1].data.cast::<i64>() = values.len() as i64 };
    0
}

#[test]
fn functions_after_the_ranks() {
    let text = "program after
entry e(f: tensor[4] i32 out, me: i32) {
  at fill { for i in 0..4 { f[i] = 10 * me + cast(i, i32) } }
}
host (fs: tensor[world, 4] i32 out, count: tensor[1] i64 out, k: i32) {
  ranks r in 0..world { dispatch e(fs[r], r) device r }
  host_task reduce(fs in, count out, k * 2)
}
";
    for nranks in [1, 2, 4] {
        let world = world(nranks, 1);
        let sum = AtomicI64::new(0);
        let callback = Callback { function: reduce, user_data: (&raw const sum).cast_mut().cast() };
        let options = CompileOptions { callbacks: vec![("reduce".into(), callback)], ..CompileOptions::default() };
        let exe = Executable::compile(&parse(text, "after.pld").unwrap(), &world, &options).unwrap();
        let (n, mut count) = (i64::from(nranks), [0i64]);
        let mut f = vec![0; 4 * nranks as usize];
        let shape = [n, 4];
        exe.launch(&[tensor(&mut f, &shape), tensor(&mut count, &[1]), Arg::Int(3)]).unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), (0..n).map(|r| 40 * r + 6).sum::<i64>());
        assert_eq!(count, [4 * n]);
        let error = exe.launch(&[tensor(&mut f, &shape), tensor(&mut count, &[1]), Arg::Int(2)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Callback);
        assert!(error.message.contains("function reduce returned 5"), "{error}");
    }
}

/// Ranks at any distance: some compute long before they come to an exchange.
#[test]
fn skewed_ranks() {
    let text = "program skew
entry e(out: tensor[world] i32 out, box: window[world, 1] i32, ready: window[world, 1] i32, done: window[world, 1] i32,
        me: i32, work: i32, epoch: i32) {
  at busy {
    x = var i32 = me
    for i in 0..work * ((me * 7 + epoch) % 5) { x = x * 5 + 1 }
    out[me] = x
  }
  free = at free { for src in 0..world { wait done[src, 0] >= epoch - 1 } }
  push = at push deps [free] {
    for dst in 0..world {
      t = full i32 [1, 1] epoch * 100 + me
      remote_store t -> box[me, 0] @dst
      notify ready[me, 0] @dst += 1
    }
  }
  arrived = at arrived deps [push] { for src in 0..world { wait ready[src, 0] >= epoch } }
  at consume deps [arrived] {
    for src in 0..world { out[src] = box[src, 0] }
    for src in 0..world { notify done[me, 0] @src += 1 }
  }
}
host (outs: tensor[world, world] i32 out, work: i32, epoch: i32) {
  box_buf = alloc_window [world, 1] i32
  ready_buf = alloc_window [world, 1] i32
  done_buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    box = window box_buf [world, 1] i32
    ready = window ready_buf [world, 1] i32
    done = window done_buf [world, 1] i32
    dispatch e(outs[r], box, ready, done, r, work, epoch) device r
  }
}
";
    for (nranks, cores) in [(2, 1), (3, 1), (4, 1), (2, 3)] {
        let world = world(nranks, cores);
        let exe = compile(text, &world, true).unwrap();
        for epoch in 1..=1000 {
            let n = nranks as usize;
            let mut out = vec![0; n * n];
            let work = if epoch % 10 == 0 { 300 } else { 0 };
            let shape = [n as i64, n as i64];
            exe.launch(&[tensor(&mut out, &shape), Arg::Int(work), Arg::Int(epoch)]).unwrap();
            for rank in out.chunks(n) {
                let right: Vec<i32> = (0..n as i32).map(|src| epoch as i32 * 100 + src).collect();
                assert_eq!(rank, right, "epoch {epoch} of {nranks} ranks");
            }
        }
    }
}

#[test]
fn a_function_that_nobody_gives_or_asks_for() {
    let world = world(1, 1);
    let program = parse(EXTERN, "scaling.pld").unwrap();
    let compile = |names: &[&str]| {
        let callback = Callback { function: scale, user_data: std::ptr::null_mut() };
        let callbacks = names.iter().map(|&name| (name.into(), callback)).collect();
        Executable::compile(&program, &world, &CompileOptions { callbacks, ..CompileOptions::default() })
    };
    assert_eq!(compile(&[]).err(), Some(Error::invalid("\"scale\" of program \"scaling\" has no function")));
    let message = "\"scael\" is no extern or host task of program \"scaling\": it has scale";
    assert_eq!(compile(&["scale", "scael"]).err(), Some(Error::invalid(message)));
    assert!(compile(&["scale", "scale"]).is_ok());
}

/// A mistake in a task that was held ends the launch, with others before and behind it.
#[test]
fn a_fault_in_a_held_task() {
    let text = "program held
entry e(x: tensor[8] i32 inout, go: window[1] i32 manual, me: i32, at_index: i64) {
  gate = at gate { wait go[0] >= 1 }
  for i in 0..5 { at busy deps [gate] { x[i] = cast(i, i32) } }
  wrong = at wrong deps [gate] { x[at_index] = 1 }
  at later deps [wrong] { x[7] = 7 }
  at never deps [wrong] { wait go[0] >= 1000 }
  at open { notify go[0] @me += 1 }
}
host (xs: tensor[world, 8] i32 inout, i: i64) {
  go_buf = alloc_window [1] i32
  ranks r in 0..world {
    go = window go_buf [1] i32
    dispatch e(xs[r], go, r, i) device r
  }
}
";
    for cores in [1, 3] {
        let world = world(3, cores);
        let exe = compile(text, &world, false).unwrap();
        let mut x = [0; 24];
        let error = exe.launch(&[tensor(&mut x, &[3, 8]), Arg::Int(8)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::OutOfBounds);
        assert!(error.message.contains("at wrong (held.pld:5)"), "{error}");
    }
}

/// A task of a random graph: adds up a part of `x` and mixes the sum into another part.
#[derive(Clone, Debug)]
struct Mix {
    read: (usize, usize),
    write: (usize, usize),
    /// Moves both with the turn of a loop of so many turns; 0 for no loop.
    turns: usize,
    /// Blocks of a grid, each of which mixes its own element.
    blocks: usize,
    waits: bool,
}

const SIZE: usize = 24;

fn mix() -> impl Strategy<Value = Mix> {
    let part = || (0..SIZE / 2, 1..5usize);
    (part(), part(), 0..4usize, prop::bool::weighted(0.2), 0..4usize).prop_map(|(read, write, turns, grid, waits)| {
        Mix { read, write, turns, blocks: if grid { write.1 } else { 0 }, waits: waits == 0 }
    })
}

/// The program; every task but the last comes after a gate that the last one opens.
fn graph(mixes: &[Mix]) -> String {
    let mut tasks = String::new();
    for (index, m) in mixes.iter().enumerate() {
        let turn = if m.turns > 0 { "i + " } else { "" };
        let wait = if m.waits { "wait go[0] >= 1\n" } else { "" };
        let (from, len) = m.read;
        let (to, count) = m.write;
        let sum =
            format!("{wait}s = var i32 = {index}\nfor j in {turn}{from}..{turn}{} {{ s = s * 3 + x[j] }}", from + len);
        let task = if m.blocks > 0 {
            format!("spmd mix{index} [{count}] as b {{\n{sum}\nx[{turn}{to} + b] = x[{turn}{to} + b] * 5 + s + b\n}}\n")
        } else {
            format!(
                "at mix{index} {{\n{sum}\nfor j in {turn}{to}..{turn}{} {{ x[j] = x[j] * 5 + s + cast(j, i32) }}\n}}\n",
                to + count
            )
        };
        let task = match m.turns {
            0 => task,
            turns => format!("for i in 0..{turns} {{\n{task}}}\n"),
        };
        tasks.push_str(&task);
    }
    format!(
        "program random
entry e(x: tensor[{SIZE}] i32 inout, go: window[1] i32 manual, me: i32) {{
at gate {{ wait go[0] >= 1
x[0] = x[0] + 1 }}
{tasks}
at open no_dep [x] {{ notify go[0] @me += 1 }}
}}
host (xs: tensor[world, {SIZE}] i32 inout) {{
go_buf = alloc_window [1] i32
ranks r in 0..world {{
go = window go_buf [1] i32
dispatch e(xs[r], go, r) device r
}}
}}
"
    )
}

/// A grid whose blocks read what others write has no one right answer.
fn is_sound(m: &Mix) -> bool {
    let reach = |part: (usize, usize)| part.0..part.0 + part.1;
    m.blocks == 0 || reach(m.read).all(|i| !reach(m.write).contains(&i))
}

fn model(mixes: &[Mix], x: &mut [i32]) {
    x[0] += 1;
    for (index, m) in mixes.iter().enumerate() {
        for turn in 0..m.turns.max(1) {
            let sum =
                x[turn + m.read.0..][..m.read.1].iter().fold(index as i32, |s, &v| s.wrapping_mul(3).wrapping_add(v));
            for j in 0..m.write.1 {
                let at = turn + m.write.0 + j;
                let own = if m.blocks > 0 { j } else { at };
                x[at] = x[at].wrapping_mul(5).wrapping_add(sum).wrapping_add(own as i32);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_graphs_keep_the_order_of_their_data(mixes in prop::collection::vec(mix(), 1..14), seed in 1..u64::MAX) {
        let mixes: Vec<Mix> = mixes.into_iter().filter(is_sound).collect();
        let text = graph(&mixes);
        let mut right: Vec<i32> = (0..2 * SIZE as i32).collect();
        right.chunks_mut(SIZE).for_each(|x| model(&mixes, x));
        for (cores_per_rank, chaos_seed) in [(1, 0), (3, 0), (1, seed), (3, seed)] {
            let options = WorldOptions { cores_per_rank, chaos_seed, ..WorldOptions::default() };
            let world = World::create(2, &options).unwrap();
            let exe = compile(&text, &world, false).unwrap();
            for _ in 0..3 {
                let mut x: Vec<i32> = (0..2 * SIZE as i32).collect();
                exe.launch(&[tensor(&mut x, &[2, SIZE as i64])]).unwrap();
                prop_assert_eq!(&x, &right, "{} cores, seed {}\n{}", cores_per_rank, chaos_seed, text);
            }
        }
    }
}
