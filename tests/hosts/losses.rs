//! Ranks that die, stand still, leave or give up, seen from other hosts.

use std::thread::sleep;

use pld::error::{Error, Result};
use pld::runtime::Arg;

use crate::on_hosts;
use crate::programs::*;
use crate::ranks::{Job, Outcome, Rank, SILENCE, Scenario, Spread, join, join_as, start};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("exchange", exchange_rank),
    ("wait", wait_rank),
    ("leave_early", leave_early_rank),
    ("leave_after", leave_after_rank),
    ("leave_before_read", leave_before_read_rank),
    ("abort", abort_rank),
];

on_hosts! {
    killed_while_exchanging killed_while_all_wait paused leaves_too_early leaves_in_time leaves_before_it_is_read aborted
}

/// Names the ranks that make another world when theirs is lost.
const SURVIVORS: &str = "SURVIVORS";

/// Every rank puts 1 MiB into the next one's window, whatever host that is on.
const BULK: &str = "
program bulk
const N = 262144
entry pass(x: tensor[1, N] f32 in, y: tensor[1, N] f32 out, data: window[1, N] f32, sig: window[1, 1] i32, me: i32) {
  at pass_on {
    put data @((me + 1) % world) <- x
    notify sig[0, 0] @((me + 1) % world) += 1
    wait sig[0, 0] >= 1
    get y <- data @me
  }
}
host (xs: tensor[world, 1, N] f32 in, ys: tensor[world, 1, N] f32 out) {
  data_buf = alloc_window [1, N] f32
  sig_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    data = window data_buf [1, N] f32
    sig = window sig_buf [1, 1] i32
    dispatch pass(xs[r], ys[r], data, sig, r) device r
  }
}
";

/// A job whose ranks exchange without end; `survivors` will make another world.
pub fn exchanging(spread: Spread, survivors: &[u32]) -> Job {
    let names: Vec<String> = survivors.iter().map(u32::to_string).collect();
    let mut job = Job::over(spread).with(SURVIVORS, names.join(","));
    job.spawn_world("exchange", 4);
    job.hear_all("ready");
    job
}

/// Exchanges until a rank is lost; then, if this is a survivor, in a world of those. Returns why the first one ended.
fn exchange_rank(me: &Rank) -> Result<String> {
    let lost = exchange_for_ever(me).unwrap_err();
    let survivors = std::env::var(SURVIVORS).expect("the test names them");
    let survivors: Vec<&str> = survivors.split(',').collect();
    let Some(rank) = survivors.iter().position(|&rank| rank == me.rank().to_string()) else { return Err(lost) };
    let (rank, nranks) = (rank as u32, survivors.len() as u32);
    let world = join_as(me, "again", rank, nranks)?;
    let exe = compile(ALLREDUCE, &world, false)?;
    (0..50).try_for_each(|round| allreduce_as(&exe, rank, nranks, round))?;
    me.say("again");
    me.hear("go");
    (0..50).try_for_each(|round| allreduce_as(&exe, rank, nranks, round))?;
    Ok(format!("{:?}: {}", lost.kind, lost.message))
}

fn exchange_for_ever(me: &Rank) -> Result<std::convert::Infallible> {
    let world = join(me)?;
    let (small, bulk) = (compile(ALLREDUCE, &world, false)?, compile(BULK, &world, false)?);
    let shape = [1, 1 << 18];
    let before = (me.rank() + me.nranks() - 1) % me.nranks();
    let (mut x, mut y) = (vec![me.rank() as f32; 1 << 18], vec![-1.0; 1 << 18]);
    for round in 0.. {
        allreduce_as(&small, me.rank(), me.nranks(), round)?;
        bulk.launch(&[tensor(&mut x, &shape), tensor(&mut y, &shape)])?;
        assert!(y.iter().all(|&value| value == before as f32), "round {round}");
        if round == 3 {
            me.say("ready");
        }
    }
    unreachable!("it exchanges for ever")
}

/// The survivors have been told that `lost` is lost, and go on.
fn assert_survived(job: &mut Job, survivors: &[u32], lost: u32) {
    for &rank in survivors {
        let outcome = job.outcome(rank as usize);
        let told = outcome.done();
        assert!(told.starts_with(&format!("PeerLost: rank {lost} ")), "rank {rank}: {told}");
    }
}

fn killed_while_exchanging(spread: Spread) {
    for victim in [3, 0] {
        let survivors: Vec<u32> = (0..4).filter(|&rank| rank != victim).collect();
        let mut job = exchanging(spread, &survivors);
        job.kill(victim as usize);
        job.say("go");
        assert_survived(&mut job, &survivors, victim);
        assert_eq!(job.outcome(victim as usize), Outcome::Killed(9));
    }
}

fn killed_while_all_wait(spread: Spread) {
    for victim in [2, 0] {
        let mut job = start("wait", spread);
        job.hear_all("ready");
        job.kill(victim);
        for rank in (0..4).filter(|&rank| rank != victim) {
            let outcome = job.outcome(rank);
            let told = outcome.failed("PeerLost");
            assert!(told.starts_with(&format!("rank {victim} ")), "rank {rank}: {told}");
        }
    }
}

fn wait_rank(me: &Rank) -> Result<String> {
    let world = join(me)?;
    let exe = compile(MOE, &world, false)?;
    me.say("ready");
    exe.launch(&[tensor(&mut [0i64], &[1]), Arg::Int(0), Arg::Int(0), Arg::Int(1), Arg::Bool(true)])?;
    Ok("no error".into())
}

/// A process that stands still for too long is lost to the others, which exchange without it when it goes on. It is told
/// too, and changes nothing.
fn paused(spread: Spread) {
    let survivors = [0, 1, 2];
    let mut job = exchanging(spread, &survivors);
    job.pause(3);
    survivors.iter().for_each(|&rank| job.hear(rank as usize, "again"));
    job.resume(3);
    sleep(SILENCE / 4);
    job.say("go");
    assert_survived(&mut job, &survivors, 3);
    job.outcome(3).failed("PeerLost");
}

fn leaves_too_early(spread: Spread) {
    let mut job = start("leave_early", spread);
    assert_eq!(job.outcome(1).done(), "left");
    for rank in [0, 2, 3] {
        assert_eq!(job.outcome(rank).failed("PeerLost"), "rank 1 left the world before launch 3 of 'allreduce'");
    }
}

fn leave_early_rank(me: &Rank) -> Result<String> {
    let world = join(me)?;
    let exe = compile(ALLREDUCE, &world, false)?;
    (0..2).try_for_each(|round| allreduce_as(&exe, me.rank(), me.nranks(), round))?;
    if me.rank() == 1 {
        world.close()?;
        return Ok("left".into());
    }
    allreduce_as(&exe, me.rank(), me.nranks(), 2)?;
    Ok("no error".into())
}

/// A rank that leaves when it has done its part disturbs nobody who still does theirs: what it has sent arrives.
fn leaves_in_time(spread: Spread) {
    assert_eq!(start("leave_after", spread).outcomes(), vec![Outcome::Done("fine".into()); 4]);
}

fn leave_after_rank(me: &Rank) -> Result<String> {
    let world = join(me)?;
    let exe = compile(MOE, &world, false)?;
    // Rank 0 notifies and is done; the others compute before they look.
    let work = if me.rank() == 0 { 0 } else { 100_000_000 };
    exe.launch(&[tensor(&mut [0i64], &[1]), Arg::Int(3), Arg::Int(work), Arg::Int(3), Arg::Bool(false)])?;
    world.close()?;
    Ok("fine".into())
}

/// Rank 0 has 7 in its window and says so; the others compute before they read it.
const READ_LATE: &str = "
program read_late
entry read(out: tensor[1, 16] i32 out, data: window[1, 16] i32, sig: window[1, 1] i32, me: i32, work: i64) {
  at offer {
    if me == 0 {
      t = full i32 [1, 16] 7
      store t -> data[0, 0]
      for peer in 0..world { notify sig[0, 0] @peer += 1 }
    }
  }
  at read_late {
    acc = var i64 = 1
    for i in 0..work { acc = (acc * 31 + i) % 1000003 }
    wait sig[0, 0] >= 1
    got = remote_load data[0, 0] @0 [1, 16]
    store got -> out[0, 0]
    if acc < 0 { notify sig[0, 0] @me += 1 }
  }
}
host (outs: tensor[world, 1, 16] i32 out, work: i64) {
  data_buf = alloc_window [1, 16] i32
  sig_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    data = window data_buf [1, 16] i32
    sig = window sig_buf [1, 1] i32
    dispatch read(outs[r], data, sig, r, work) device r
  }
}
";

/// The window of a rank that has done its part and left can still be read in the launches that it was in.
fn leaves_before_it_is_read(spread: Spread) {
    assert_eq!(start("leave_before_read", spread).outcomes(), vec![Outcome::Done("fine".into()); 4]);
}

fn leave_before_read_rank(me: &Rank) -> Result<String> {
    let world = join(me)?;
    let exe = compile(READ_LATE, &world, false)?;
    let work = if me.rank() == 0 { 0 } else { 100_000_000 };
    let mut found = [-1i32; 16];
    exe.launch(&[tensor(&mut found, &[1, 16]), Arg::Int(work)])?;
    assert_eq!(found, [7; 16]);
    world.close()?;
    Ok("fine".into())
}

fn aborted(spread: Spread) {
    for (rank, outcome) in start("abort", spread).outcomes().iter().enumerate() {
        assert_eq!(outcome.failed("Aborted"), "the world was aborted by rank 2 with code 42", "rank {rank}");
    }
}

fn abort_rank(me: &Rank) -> Result<String> {
    let world = join(me)?;
    let exe = compile(MOE, &world, false)?;
    let wait = || exe.launch(&[tensor(&mut [0i64], &[1]), Arg::Int(0), Arg::Int(0), Arg::Int(1), Arg::Bool(true)]);
    std::thread::scope(|scope| {
        let abort = (me.rank() == 2).then(|| {
            scope.spawn(|| {
                sleep(SILENCE / 40);
                world.abort(42)
            })
        });
        let told: Result<(), Error> = wait();
        abort.map_or(Ok(()), |abort| abort.join().expect("it does not panic"))?;
        told
    })?;
    Ok("no error".into())
}
