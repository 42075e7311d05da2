//! Programs that share a window pool.

use std::ops::Range;
use std::sync::Arc;

use pld::error::{ErrorKind, Result};
use pld::runtime::{Arg, CompileOptions, World, WorldOptions};

use crate::programs::*;
use crate::ranks::{Job, Join, Outcome, Rank, Scenario};

pub const SCENARIOS: &[(&str, Scenario)] =
    &[("pool", pool_rank), ("pool_reset", pool_reset_rank), ("pool_failure", pool_failure_rank)];

/// Puts a row that depends on rank, position and epoch into the next rank's cache, and counts its signal up to the
/// epoch. The cells that come first are this program's own.
const PREFILL: &str = "program prefill
entry put_row(x: tensor[1, 32] i32 in, own: window[4] i32, cache: window[1, 32] i32, epoch: window[1, 1] i32,
              read: window[1, 1] i32, me: i32, now: i32) {
  at put_step {
    next = (me + 1) % world
    prev = (me + world - 1) % world
    own[me % 4] = now
    # The next rank has read what was put in the epoch before.
    wait read[0, 0] >= now - 1
    row = load x[0, 0] [1, 32]
    remote_store row -> cache[0, 0] @next
    notify epoch[0, 0] @next += 1
  }
}
host (xs: tensor[world, 1, 32] i32 in, now: i32) {
  own_buf = alloc_window [4] i32
  cache_buf = alloc_window [1, 32] i32
  epoch_buf = alloc_window [1, 1] i32
  read_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    own = window own_buf [4] i32
    cache = window cache_buf [1, 32] i32
    epoch = window epoch_buf [1, 1] i32
    read = window read_buf [1, 1] i32
    dispatch put_row(xs[r], own, cache, epoch, read, r, now) device r
  }
}
";

/// Reads what `PREFILL` has put into this rank's cache in the epoch, and tells the rank that put it. It names the
/// windows in another order, and has one that `PREFILL` has not.
const DECODE: &str = "program decode
entry read_row(out: tensor[1, 32] i32 out, cache: window[1, 32] i32, epoch: window[1, 1] i32, read: window[1, 1] i32,
               steps: window[1] i32, me: i32, now: i32) {
  at read_step {
    prev = (me + world - 1) % world
    wait epoch[0, 0] >= now
    row = load cache[0, 0] [1, 32]
    so_far = steps[0]
    steps[0] = so_far + 1
    t = add row, so_far
    store t -> out[0, 0]
    notify read[0, 0] @prev += 1
  }
}
host (outs: tensor[world, 1, 32] i32 out, now: i32) {
  read_buf = alloc_window [1, 1] i32
  steps_buf = alloc_window [1] i32
  cache_buf = alloc_window [1, 32] i32
  epoch_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    read = window read_buf [1, 1] i32
    steps = window steps_buf [1] i32
    cache = window cache_buf [1, 32] i32
    epoch = window epoch_buf [1, 1] i32
    dispatch read_row(outs[r], cache, epoch, read, steps, r, now) device r
  }
}
";

fn pool(name: &str, bytes: Option<usize>) -> CompileOptions {
    CompileOptions { pool: Some(name.into()), pool_bytes: bytes, ..CompileOptions::default() }
}

fn local(world: &World) -> Range<u32> {
    world.rank().map_or(0..world.nranks(), |rank| rank..rank + 1)
}

fn element(rank: u32, i: usize, epoch: i32) -> i32 {
    rank as i32 * 10_000 + i as i32 * 7 + epoch * 100
}

/// Prefill and decode by turns, for so many epochs from the one on that `first` is; decode has been launched `steps`
/// times.
fn alternate(
    world: &Arc<World>,
    prefill: &pld::runtime::Executable,
    decode: &pld::runtime::Executable,
    epochs: Range<i32>,
    steps: i32,
) -> Result<()> {
    let (nranks, local) = (world.nranks(), local(world));
    let shape = [nranks as i64, 1, 32];
    let shape = if world.rank().is_some() { &shape[1..] } else { &shape[..] };
    for (step, epoch) in (steps..).zip(epochs) {
        let rows = local.clone().flat_map(|rank| (0..32).map(move |i| element(rank, i, epoch)));
        let mut x: Vec<i32> = rows.collect();
        let mut y = vec![-1; x.len()];
        prefill.launch(&[tensor(&mut x, shape), Arg::Int(epoch.into())])?;
        decode.launch(&[tensor(&mut y, shape), Arg::Int(epoch.into())])?;
        for (rank, row) in local.clone().zip(y.chunks(32)) {
            let from = (rank + nranks - 1) % nranks;
            let right: Vec<i32> = (0..32).map(|i| element(from, i, epoch) + step).collect();
            assert_eq!(row, right, "rank {rank}, epoch {epoch}");
        }
    }
    Ok(())
}

fn share(world: &Arc<World>) -> Result<()> {
    let prefill = compile_with(PREFILL, world, &pool("kv", Some(1024)))?;
    let decode = compile_with(DECODE, world, &pool("kv", None))?;
    alternate(world, &prefill, &decode, 1..101, 0)?;
    // Another executable of the same program finds the same memory, also when the first is gone.
    drop(decode);
    let decode = compile_with(DECODE, world, &pool("kv", None))?;
    alternate(world, &prefill, &decode, 101..111, 100)?;
    // Also when no executable is left.
    drop((prefill, decode));
    let prefill = compile_with(PREFILL, world, &pool("kv", None))?;
    let decode = compile_with(DECODE, world, &pool("kv", None))?;
    alternate(world, &prefill, &decode, 111..121, 110)?;
    // Another pool has memory of its own.
    let other = pool("other", Some(1024));
    let (other_prefill, other_decode) = (compile_with(PREFILL, world, &other)?, compile_with(DECODE, world, &other)?);
    alternate(world, &other_prefill, &other_decode, 1..11, 0)?;
    alternate(world, &prefill, &decode, 121..131, 120)?;
    // Zeroing by one executable is zeroing for all of the pool, and for no other.
    decode.reset()?;
    alternate(world, &prefill, &decode, 1..11, 0)?;
    alternate(world, &other_prefill, &other_decode, 11..21, 10)?;
    prefill.reset()?;
    alternate(world, &prefill, &decode, 1..11, 0)
}

#[test]
fn two_programs_of_threads() {
    for nranks in [1, 2, 4] {
        share(&World::create(nranks, &WorldOptions::default()).unwrap()).unwrap();
    }
}

#[test]
fn two_programs_of_processes() {
    for nranks in [2, 3] {
        let outcomes = Job::start("pool", nranks).outcomes();
        assert_eq!(outcomes, vec![Outcome::Done("fine".into()); nranks as usize]);
    }
}

fn pool_rank(me: &Rank) -> Result<String> {
    share(&me.join(&WorldOptions::default())?)?;
    Ok("fine".into())
}

/// A reset waits until no rank is in any launch of the pool, whichever executable it is of.
#[test]
fn a_reset_waits_for_launches_of_the_whole_pool() {
    assert_eq!(Job::start("pool_reset", 3).outcomes(), vec![Outcome::Done("fine".into()); 3]);
}

/// Leaves a mark in the last cell of a window that others do not touch, after some work.
const MARK: &str = "program mark
entry leave(w: window[1] i32, work: i64) {
  at leave_step {
    acc = var i64 = 1
    for i in 0..work { acc = (acc * 31 + i) % 1000003 }
    w[0] = cast(acc % 2, i32) + 5
  }
}
host (work: i64) {
  buf = alloc_window [1] i32
  ranks r in 0..world {
    w = window buf [1] i32
    dispatch leave(w, work) device r
  }
}
";

fn pool_reset_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let mark = compile_with(MARK, &world, &pool("p", Some(256)))?;
    let count = compile_with(COUNT, &world, &pool("p", None))?;
    for round in 0..40 {
        // One rank is late each time: zeroing before it has done its part would leave its mark for the next launch.
        let work = if round % 3 == me.rank() { 300_000 } else { 0 };
        mark.launch(&[Arg::Int(work)])?;
        let mut found = [-1];
        count.reset()?;
        count.launch(&[tensor(&mut found, &[1])])?;
        assert_eq!(found, [0], "round {round}");
        count.reset()?;
    }
    Ok("fine".into())
}

#[test]
fn sizes_and_capacities_are_checked() {
    let world = World::create(2, &WorldOptions::default()).unwrap();
    let (prefill, decode) = (pool("kv", None), pool("kv", Some(1 << 20)));
    compile_with(PREFILL, &world, &prefill).unwrap();
    // What the first program says holds, and that was as much as it needs itself.
    let error = compile_with(DECODE, &world, &decode).err().unwrap();
    assert_eq!(error.kind, ErrorKind::NoSpace);
    assert_eq!(error.message, "pool 'kv' has 320 bytes, but with the windows of 'decode' it needs 384");
    let larger = PREFILL.replace("32]", "33]");
    let error = compile_with(&larger, &world, &prefill).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Mismatch);
    assert_eq!(error.message, "window cache_buf of 'prefill' has 132 bytes, but 128 bytes in pool 'kv'");
    let error = compile_with(PREFILL, &world, &pool("small", Some(319))).err().unwrap();
    assert_eq!(error.kind, ErrorKind::NoSpace);
    assert_eq!(error.message, "pool 'small' has 319 bytes, but with the windows of 'prefill' it needs 320");
    compile_with(PREFILL, &world, &pool("small", Some(320))).unwrap();

    let error = compile_with(PREFILL, &world, &pool("", None)).err().unwrap();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidArgument, "the name of the pool is empty"));
    let options = CompileOptions { pool_bytes: Some(64), ..CompileOptions::default() };
    let error = compile_with(COUNT, &world, &options).err().unwrap();
    assert_eq!(error.message, "pool_bytes is 64, but no pool is named");
}

/// What waits for another program of the pool would wait for ever without.
#[test]
fn a_program_of_a_pool_is_not_one_on_its_own() {
    let world = World::create(2, &WorldOptions::default()).unwrap();
    let error = compile(PREFILL, &world, true).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Verify);
    let right = "prefill.pld:9: error[PLD-V046]: no notify changes read[0, 0], so this wait never ends";
    assert_eq!(error.message.lines().next(), Some(right));
}

/// Reports name the cells of the program that waits; a failure leaves the whole pool zeroed.
#[test]
fn a_failed_launch_of_one_program() {
    failure(&World::create(2, &impatient()).unwrap()).unwrap();
    assert_eq!(Job::start("pool_failure", 3).outcomes(), vec![Outcome::Done("fine".into()); 3]);
}

fn impatient() -> WorldOptions {
    WorldOptions { timeout: std::time::Duration::from_millis(200), ..WorldOptions::default() }
}

fn failure(world: &Arc<World>) -> Result<()> {
    let prefill = compile_with(PREFILL, world, &pool("kv", Some(1024)))?;
    let decode = compile_with(DECODE, world, &pool("kv", None))?;
    let barrier = compile(COUNT, world, true)?;
    let mut y = vec![-1; 32 * local(world).len()];
    let shape = [world.nranks() as i64, 1, 32];
    let shape = if world.rank().is_some() { &shape[1..] } else { &shape[..] };
    for _ in 0..3 {
        alternate(world, &prefill, &decode, 1..4, 0)?;
        barrier.reset()?;
        let error = decode.launch(&[tensor(&mut y, shape), Arg::Int(9)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(error.message.contains(" s for epoch[0, 0] >= 9 (is 3)\n"), "{error}");
    }
    alternate(world, &prefill, &decode, 1..4, 0)
}

fn pool_failure_rank(me: &Rank) -> Result<String> {
    failure(&me.join(&impatient())?)?;
    Ok("fine".into())
}
