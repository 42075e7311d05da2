//! Task graphs, functions of the engine, domains and pools on cards.

use std::ffi::c_void;

use pld::error::{ErrorKind, Result};
use pld::runtime::{Arg, Callback, CallbackContext, CompileOptions, World};
use pld_test_ranks::Rank;

use crate::join::Join;
use crate::programs::{Numbers, compile, persistent};
use crate::{Scenario, all_say, cards};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("graph", graph_rank),
    ("functions", functions_rank),
    ("failing_function", failing_function_rank),
    ("domains", domains_rank),
    ("pool", pool_rank),
    ("several", several_rank),
];

/// Tasks that wait for one another across ranks: in one stream, one behind the other, they would wait for ever. A grid,
/// a predicate, a deferred wait, and edges that only memory tells.
const GRAPH: &str = "program graph
entry e(out: tensor[8] i32 inout, flags: tensor[2] i32 in, ping: window[1] i32, pong: window[1] i32, part: window[4] i32, me: i32) {
  at first {
    wait ping[0] >= 1
    out[0] = 10 + me
    notify pong[0] @((me + 1) % world) += 1
  }
  at second no_dep [ping] { notify ping[0] @((me + 1) % world) += 1 }
  third = at third { defer_wait pong[0] >= 1 }
  at fourth deps [third] { out[1] = 20 + me }
  spmd blocks [4] as b { part[b] = 100 * me + b }
  at sum {
    total = var i32 = 0
    for b in 0..4 { total = total + part[b] }
    out[2] = total
  }
  at skipped predicate flags[0] > 0 { out[3] = 1 }
  at taken predicate flags[1] > 0 { out[4] = 50 + me }
  for i in 5..8 { at each { out[i] = out[i - 4] + i } }
}
host (outs: tensor[world, 8] i32 inout, flags: tensor[world, 2] i32 in) {
  ping_buf = alloc_window [1] i32
  pong_buf = alloc_window [1] i32
  part_buf = alloc_window [4] i32
  ranks r in 0..world {
    ping = window ping_buf [1] i32
    pong = window pong_buf [1] i32
    part = window part_buf [4] i32
    dispatch e(outs[r], flags[r], ping, pong, part, r) device r
  }
}
";

#[test]
fn a_graph_of_tasks() {
    all_say("graph", 2, "right");
    all_say("graph", 3, "right");
}

fn graph_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(GRAPH, &world, &CompileOptions::default())?;
    let flags = Numbers::new(&world, &[0, 1]);
    let rank = me.rank() as i32;
    for launch in 0..5 {
        let out = Numbers::new(&world, &[-1; 8]);
        exe.launch(&[out.arg(), flags.arg()])?;
        let (b, c) = (20 + rank, 400 * rank + 6);
        assert_eq!(out.get(), [10 + rank, b, c, -1, 50 + rank, b + 5, c + 6, -1 + 7], "launch {launch}");
    }
    Ok("right".into())
}

/// The engine's function stands between two tasks, once a block.
const FUNCTIONS: &str = "program functions
entry e(x: tensor[4] i32 in, y: tensor[4] i32 out, mid: window[4] i32, times: i32) {
  at before { for i in 0..4 { mid[i] = x[i] + 1 } }
  extern scale(mid inout, times) [2]
  at after { for i in 0..4 { y[i] = mid[i] + 1 } }
}
host (xs: tensor[world, 4] i32 in, ys: tensor[world, 4] i32 out, times: i32) {
  mid_buf = alloc_window [4] i32
  ranks r in 0..world {
    mid = window mid_buf [4] i32
    dispatch e(xs[r], ys[r], mid, times) device r
  }
}
";

/// Multiplies its half of the numbers.
unsafe extern "C" fn scale(context: *const CallbackContext, _: *mut c_void) -> i32 {
    // SAFETY: the context lives during the call; it has one tensor of four numbers and one value.
    unsafe {
        let context = &*context;
        cards::settle(context);
        let numbers = (*context.tensors).data.cast::<i32>();
        let times = *context.scalars as i32;
        if times < 0 {
            return 42;
        }
        for i in 0..2 {
            let number = numbers.add(2 * context.block as usize + i);
            number.write(number.read() * times);
        }
    }
    0
}

fn with_scale() -> CompileOptions {
    let function = Callback { function: scale, user_data: std::ptr::null_mut() };
    CompileOptions { callbacks: vec![("scale".into(), function)], ..CompileOptions::default() }
}

#[test]
fn functions_of_the_engine() {
    all_say("functions", 2, "right");
}

fn functions_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(FUNCTIONS, &world, &with_scale())?;
    for times in 1..5 {
        let first = 100 * me.rank() as i32;
        let x = Numbers::new(&world, &[first, first + 1, first + 2, first + 3]);
        let y = Numbers::new(&world, &[-1; 4]);
        exe.launch(&[x.arg(), y.arg(), Arg::Int(times)])?;
        let right: Vec<i32> = (0..4).map(|i| (first + i + 1) * times as i32 + 1).collect();
        assert_eq!(y.get(), right);
    }
    Ok("right".into())
}

#[test]
fn a_function_that_fails() {
    let outcomes = cards::job("failing_function", 2).outcomes();
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(outcomes[0].done().contains("function scale returned 42"), "{outcomes:?}");
}

fn failing_function_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(FUNCTIONS, &world, &with_scale())?;
    let (x, y) = (Numbers::new(&world, &[1; 4]), Numbers::new(&world, &[-1; 4]));
    let times = if me.rank() == 1 { -1 } else { 3 };
    let error = loop {
        // A rank that is done before the other one fails hears of it from its next call.
        match exe.launch(&[x.arg(), y.arg(), Arg::Int(times)]) {
            Err(error) => break error,
            Ok(()) => assert_eq!(me.rank(), 0),
        }
    };
    assert_eq!(error.kind, ErrorKind::Callback);
    exe.launch(&[x.arg(), y.arg(), Arg::Int(3)])?;
    assert_eq!(y.get(), [7; 4]);
    Ok(error.message.lines().next().unwrap().into())
}

/// Two pairs, one of them in the other order, each with windows of its own.
const DOMAINS: &str = "program domains
entry e(out: tensor[2] i32 out, cells: window[2] i32, me: i32) {
  at e {
    other = 1 - rank(cells)
    notify cells[0] @other = 10 * me + rank(cells) + 1
    wait cells[0] >= 1
    out[0] = cells[0]
    out[1] = nranks(cells)
  }
}
host (outs: tensor[world, 2] i32 out) {
  low = domain [0, 2]
  high = domain [3, 1]
  low_buf = alloc_window [2] i32 in low
  high_buf = alloc_window [2] i32 in high
  ranks r in 0..world {
    low_cells = window low_buf [2] i32
    high_cells = window high_buf [2] i32
    if r % 2 == 0 { dispatch e(outs[r], low_cells, r) device r }
    if r % 2 == 1 { dispatch e(outs[r], high_cells, r) device r }
  }
}
";

#[test]
fn domains_of_cards() {
    for (rank, outcome) in cards::job("domains", 4).outcomes().iter().enumerate() {
        // What the other one of the pair has written: ten times its rank, and one more than its number in the domain.
        let right = ["[22, 2]", "[31, 2]", "[1, 2]", "[12, 2]"][rank];
        assert_eq!(outcome.done(), right, "rank {rank}");
    }
}

fn domains_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(DOMAINS, &world, &CompileOptions::default())?;
    let out = Numbers::new(&world, &[-1; 2]);
    for _ in 0..3 {
        exe.launch(&[out.arg()])?;
    }
    Ok(format!("{:?}", out.get()))
}

/// Programs of one pool share windows.
const COUNT: &str = "program NAME
entry bump(out: tensor[1] i32 out, w: window[1] i32) {
  at bump {
    v = w[0]
    out[0] = v
    w[0] = v + STEP
  }
}
host (outs: tensor[world, 1] i32 out) {
  buf = alloc_window [1] i32
  ranks r in 0..world {
    w = window buf [1] i32
    dispatch bump(outs[r], w) device r
  }
}
";

#[test]
fn a_pool_of_windows() {
    all_say("pool", 2, "[0, 1, 11, 12, 22] then [0]");
}

fn pool_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let options = CompileOptions { pool: Some("shared".into()), ..CompileOptions::default() };
    let one = compile(&COUNT.replace("NAME", "one").replace("STEP", "1"), &world, &options)?;
    let ten = compile(&COUNT.replace("NAME", "ten").replace("STEP", "10"), &world, &options)?;
    let out = Numbers::new(&world, &[-1]);
    let mut seen = Vec::new();
    for exe in [&one, &ten, &one, &ten, &one] {
        exe.launch(&[out.arg()])?;
        seen.extend(out.get());
    }
    one.reset()?;
    ten.launch(&[out.arg()])?;
    Ok(format!("{seen:?} then {:?}", out.get()))
}

/// One process for several cards: parts are lists or stacked residents, and a stream is not enough.
#[test]
fn several_cards_of_a_process() {
    all_say("several", 1, "right");
}

fn several_rank(_: &Rank) -> Result<String> {
    let world = World::create(3, &cards::on_cards())?;
    let exe = compile(&COUNT.replace("NAME", "several").replace("STEP", "5"), &world, &persistent())?;
    let out = pld::runtime::Resident::create_stacked(&world, pld::ir::DType::I32, &[1])?;
    for launch in 0..3 {
        exe.launch(&[Arg::Resident(&out)])?;
        for rank in 0..3 {
            let mut bytes = [0; 4];
            out.copy_out(rank, &mut bytes)?;
            assert_eq!(i32::from_ne_bytes(bytes), 5 * launch, "rank {rank}");
        }
    }
    // SAFETY: NULL is the default stream.
    let error = unsafe { exe.launch_on(&[Arg::Resident(&out)], std::ptr::null_mut()) }.unwrap_err();
    let right = "no launch on a stream: this process drives several cards, and a stream belongs to one";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Unsupported, right));
    Ok("right".into())
}
