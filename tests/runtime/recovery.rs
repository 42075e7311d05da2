//! Worlds that go on after a failed launch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pld::error::{Error, ErrorKind, Result};
use pld::runtime::{Arg, Executable, World, WorldOptions};

use crate::programs::*;
use crate::ranks::{Job, Join, Outcome, Rank, Scenario};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("alternate", alternate_rank),
    ("one_ends_well", one_ends_well_rank),
    ("two_executables", two_executables_rank),
    ("queued_runs", queued_runs_rank),
    ("steps_differ", steps_differ_rank),
    ("never_back", never_back_rank),
    ("die_recovering", die_recovering_rank),
    ("die_alternating", die_alternating_rank),
    ("abort_after_failure", abort_after_failure_rank),
];

/// Every rank stores its row into the windows of all, and adds up what it got. `how` is what `victim` does instead:
/// 1 is silent, 2 reads outside, 3 divides by zero. If nobody `waits`, sums are of what is there.
const TRIAL: &str = "program trial
entry e(x: tensor[1, 64] i32 in, out: tensor[1, 64] i32 out, data: window[world, 64] i32, sig: window[world, 1] i32,
        me: i32, how: i32, victim: i32, epoch: i32, waits: bool) {
  at t {
    mine = load x[0, 0] [1, 64]
    index = var i64 = 0
    by = var i32 = 1
    if me == victim {
      if how == 2 { index = 64 }
      if how == 3 { by = 0 }
    }
    if me != victim or how != 1 {
      for peer in 0..world {
        remote_store mine -> data[me, 0] @peer
        v = x[0, index]
        notify sig[me, 0] @peer = epoch + v / by - v
      }
    }
    if waits { for src in 0..world { wait sig[src, 0] >= epoch } }
    acc = full i32 [1, 64] 0
    for src in 0..world {
      row = load data[src, 0] [1, 64]
      acc = add acc, row
    }
    store acc -> out[0, 0]
  }
}
host (xs: tensor[world, 1, 64] i32 in, outs: tensor[world, 1, 64] i32 out, how: i32, victim: i32, epoch: i32, waits: bool) {
  data_buf = alloc_window [world, 64] i32
  sig_buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    data = window data_buf [world, 64] i32
    sig = window sig_buf [world, 1] i32
    dispatch e(xs[r], outs[r], data, sig, r, how, victim, epoch, waits) device r
  }
}
";

const KINDS: [ErrorKind; 3] = [ErrorKind::Timeout, ErrorKind::OutOfBounds, ErrorKind::Arithmetic];

/// A launch of [`TRIAL`].
#[derive(Clone, Copy)]
struct Trial {
    /// What `victim` does; 0 for a launch that ends well.
    how: usize,
    victim: u32,
    epoch: i64,
    waits: bool,
}

const WELL: Trial = Trial { how: 0, victim: 0, epoch: 1, waits: true };

fn element(rank: u32, i: usize, round: u32) -> i32 {
    (rank * 1000 + i as u32 * 3 + round * 7 + 1) as i32
}

/// Launches as the ranks of `exe`'s process, and checks the sums of a launch that ends well.
fn run(exe: &Executable, local: std::ops::Range<u32>, nranks: u32, round: u32, trial: Trial) -> Result<()> {
    let count = local.len();
    let mut x: Vec<i32> = local.flat_map(|rank| (0..64).map(move |i| element(rank, i, round))).collect();
    let mut out = vec![-1; x.len()];
    let shape = [nranks as i64, 1, 64];
    let shape = if count == nranks as usize { &shape[..] } else { &shape[1..] };
    let (how, victim) = (Arg::Int(trial.how as i64), Arg::Int(trial.victim.into()));
    let args = [how, victim, Arg::Int(trial.epoch), Arg::Bool(trial.waits)];
    exe.launch(&[&[tensor(&mut x, shape), tensor(&mut out, shape)], &args[..]].concat())?;
    if trial.how == 0 && trial.waits {
        let right: Vec<i32> = (0..64).map(|i| (0..nranks).map(|rank| element(rank, i, round)).sum()).collect();
        out.chunks(64).for_each(|row| assert_eq!(row, right, "round {round}"));
    }
    Ok(())
}

/// An executable whose reset is a barrier. A launch that ends well is none: one rank may end it, and fail in the next,
/// while another one still waits in it and so gets the failure too.
fn barrier(world: &Arc<World>) -> Result<Arc<Executable>> {
    compile(COUNT, world, true)
}

fn options() -> WorldOptions {
    WorldOptions { timeout: Duration::from_millis(200), ..WorldOptions::default() }
}

fn all_fine(scenario: &str, nranks: u32) {
    assert_eq!(Job::start(scenario, nranks).outcomes(), vec![Outcome::Done("fine".into()); nranks as usize]);
}

/// Failures of all kinds by different ranks, with good launches in between, of fresh and of persistent windows.
fn alternate(world: &Arc<World>, rounds: u32) -> Result<()> {
    let nranks = world.nranks();
    let local = world.rank().map_or(0..nranks, |rank| rank..rank + 1);
    let (fresh, kept) = (compile(TRIAL, world, false)?, compile(TRIAL, world, true)?);
    // Windows that exist only once, and are zeroed between two barriers.
    let large = TRIAL.replace("data_buf = alloc_window [world, 64]", "data_buf = alloc_window [world, 300000]");
    let large = compile(&large, world, false)?;
    let barrier = barrier(world)?;
    let mut epoch = 0;
    let mut seed = 12345u64;
    for round in 0..rounds {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (how, victim, good) = (1 + (seed >> 33) as usize % 3, (seed >> 40) as u32 % nranks, (seed >> 50) % 4);
        // A silent rank costs the time-out.
        let how = if how == 1 && round % 5 != 0 { 2 } else { how };
        let failing = [&fresh, &kept, &large][(seed >> 60) as usize % 3];
        let trial = Trial { how, victim, epoch: if Arc::ptr_eq(failing, &kept) { epoch + 1 } else { 1 }, waits: true };
        barrier.reset()?;
        let error = run(failing, local.clone(), nranks, round, trial).unwrap_err();
        assert_eq!(error.kind, KINDS[how - 1], "{error}");
        assert_eq!(world.failure(), None);
        if Arc::ptr_eq(failing, &kept) {
            epoch = 0;
        }
        for _ in 0..good {
            run(&fresh, local.clone(), nranks, round, WELL)?;
            run(&large, local.clone(), nranks, round + 2, WELL)?;
            epoch += 1;
            run(&kept, local.clone(), nranks, round + 1, Trial { epoch, ..WELL })?;
        }
    }
    // The counters of launches and resets agree.
    kept.reset()?;
    for epoch in 1..20 {
        run(&kept, local.clone(), nranks, rounds, Trial { epoch, ..WELL })?;
        run(&fresh, local.clone(), nranks, rounds, WELL)?;
    }
    Ok(())
}

#[test]
fn failures_and_successes_of_threads() {
    for nranks in [1, 2, 3, 4] {
        alternate(&World::create(nranks, &options()).unwrap(), 50).unwrap();
    }
}

#[test]
fn failures_and_successes_of_processes() {
    for nranks in [2, 3, 4] {
        all_fine("alternate", nranks);
    }
}

fn alternate_rank(me: &Rank) -> Result<String> {
    alternate(&me.join(&options())?, 50)?;
    Ok("fine".into())
}

/// A rank that has ended the failed launch well reports the failure at its next call, which it does not run.
#[test]
fn one_rank_ends_the_failed_launch_well() {
    for nranks in [2, 3] {
        let outcomes = Job::start("one_ends_well", nranks).outcomes();
        let first = outcomes[0].done();
        assert!(first.contains("rank 1: a region of [1, 1] at [0, 64] reaches outside x"), "{first}");
        assert!(outcomes.iter().all(|outcome| outcome.done() == first), "{outcomes:?}");
    }
}

fn one_ends_well_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let (fresh, kept) = (compile(TRIAL, &world, false)?, compile(TRIAL, &world, true)?);
    let (local, nranks) = (me.rank()..me.rank() + 1, me.nranks());
    let mut told = Vec::new();
    for round in 0..30 {
        let trial = Trial { how: 2, victim: 1, epoch: 5, waits: false };
        let failing = if round % 2 == 0 { &fresh } else { &kept };
        let mut calls = 0;
        let mut result = run(failing, local.clone(), nranks, round, trial);
        while result.is_ok() {
            calls += 1;
            // Waits for the victim, which does not come.
            result = run(&kept, local.clone(), nranks, round, Trial { epoch: 7, ..WELL });
        }
        assert!(calls <= 1 && (me.rank() != 1 || calls == 0), "{calls} calls ended well");
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::OutOfBounds);
        told.push(error.message);
        // What is in persistent windows now is the same for all ranks: nothing, for some have used them.
        if round % 2 == 1 {
            let counts = [1, 2].map(|epoch| run(&kept, local.clone(), nranks, round, Trial { epoch, ..WELL }));
            assert_eq!(counts, [Ok(()), Ok(())]);
        } else {
            run(&fresh, local.clone(), nranks, round, WELL)?;
        }
        kept.reset()?;
    }
    Ok(told.join("\n"))
}

/// A launch that fails does nothing to the persistent windows of an executable that did not take part.
#[test]
fn a_healthy_executable_beside_a_failing_one() {
    for nranks in [2, 4] {
        two_executables(&World::create(nranks, &options()).unwrap()).unwrap();
        all_fine("two_executables", nranks);
    }
}

fn two_executables(world: &Arc<World>) -> Result<()> {
    let nranks = world.nranks();
    let local = world.rank().map_or(0..nranks, |rank| rank..rank + 1);
    let (trial, counter, barrier) = (compile(TRIAL, world, true)?, compile(COUNT, world, true)?, barrier(world)?);
    let (mut found, shape) = (vec![-1; local.len()], [nranks as i64, 1]);
    let shape = if world.rank().is_some() { &shape[1..] } else { &shape[..] };
    for round in 0..10 {
        counter.launch(&[tensor(&mut found, shape)])?;
        assert!(found.iter().all(|&count| count == round), "{found:?} in round {round}");
        run(&trial, local.clone(), nranks, 0, WELL)?;
        let victim = round as u32 % nranks;
        barrier.reset()?;
        let error = run(&trial, local.clone(), nranks, 0, Trial { how: 2, victim, epoch: 2, waits: true });
        assert_eq!(error.unwrap_err().kind, ErrorKind::OutOfBounds);
    }
    // Executables that are compiled after a failure, and dropped before the next.
    for round in 0..5 {
        barrier.reset()?;
        let error = run(&trial, local.clone(), nranks, 0, Trial { how: 3, victim: 0, ..WELL }).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Arithmetic);
        let other = compile(TRIAL, world, round % 2 == 0)?;
        run(&other, local.clone(), nranks, 0, WELL)?;
    }
    Ok(())
}

fn two_executables_rank(me: &Rank) -> Result<String> {
    two_executables(&me.join(&options())?)?;
    Ok("fine".into())
}

struct Submitted {
    run: pld::runtime::Run,
    sums: Vec<i32>,
    _x: Vec<i32>,
}

fn submit(exe: &Arc<Executable>, local: std::ops::Range<u32>, nranks: u32, round: u32, how: usize) -> Submitted {
    let mut x: Vec<i32> = local.clone().flat_map(|rank| (0..64).map(move |i| element(rank, i, round))).collect();
    let mut sums = vec![-1; x.len()];
    let shape = [nranks as i64, 1, 64];
    let shape = if local.len() == nranks as usize { &shape[..] } else { &shape[1..] };
    let args = [Arg::Int(how as i64), Arg::Int(0), Arg::Int(1), Arg::Bool(true)];
    let run = exe.submit(&[&[tensor(&mut x, shape), tensor(&mut sums, shape)], &args[..]].concat()).unwrap();
    Submitted { run, sums, _x: x }
}

fn check(submitted: &Submitted, nranks: u32, round: u32) {
    let right: Vec<i32> = (0..64).map(|i| (0..nranks).map(|rank| element(rank, i, round)).sum()).collect();
    submitted.sums.chunks(64).for_each(|row| assert_eq!(row, right, "round {round}"));
}

/// In a world of one process each run has its own end.
#[test]
fn runs_behind_a_failed_one_of_threads() {
    for nranks in [1, 3] {
        let world = World::create(nranks, &WorldOptions { runs: 4, ..options() }).unwrap();
        let exe = compile(TRIAL, &world, false).unwrap();
        let failing = |round: u32| round % 3 == 1;
        let how = |round| if failing(round) { 2 + (round as usize / 3) % 2 } else { 0 };
        let runs: Vec<_> = (0..30).map(|round| submit(&exe, 0..nranks, nranks, round, how(round))).collect();
        for (round, submitted) in (0..).zip(&runs) {
            match submitted.run.wait(None) {
                Ok(()) => check(submitted, nranks, round),
                Err(error) => assert_eq!(error.kind, KINDS[how(round) - 1]),
            }
            assert_eq!(submitted.run.wait(None).is_err(), failing(round));
        }
    }
}

/// In a world of processes what is queued behind a failed run ends with it; what is submitted later runs.
#[test]
fn runs_behind_a_failed_one_of_processes() {
    all_fine("queued_runs", 3);
}

fn queued_runs_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions { timeout: Duration::from_secs(1), ..WorldOptions::default() })?;
    let exe = compile(TRIAL, &world, false)?;
    let (local, nranks) = (me.rank()..me.rank() + 1, me.nranks());
    let submit = |round, how| submit(&exe, local.clone(), nranks, round, how);
    for round in 0..3 {
        let good = submit(round, 0);
        // Rank 0 is silent, which takes the time-out to notice.
        let failing = submit(round, 1);
        let behind: Vec<_> = (0..=me.rank()).map(|_| submit(round, 0)).collect();
        good.run.wait(None)?;
        check(&good, nranks, round);
        let error = failing.run.wait(None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
        for submitted in &behind {
            assert_eq!(submitted.run.wait(None).as_ref(), Err(&error));
            assert!(submitted.sums.iter().all(|&sum| sum == -1), "it has not run");
        }
        let later: Vec<_> = (0..5).map(|k| submit(round + k, 0)).collect();
        for (k, submitted) in (0..).zip(&later) {
            submitted.run.wait(None)?;
            check(submitted, nranks, round + k);
        }
    }
    Ok("fine".into())
}

/// Ranks that go on with different calls are told, and can still go on together.
#[test]
fn ranks_that_go_on_differently() {
    let outcomes = Job::start("steps_differ", 3).outcomes();
    let right = "after a failed launch rank 0 launches 'trial' (executable 1), rank 2 resets 'trial' (executable 1)
after a failed launch rank 0 launches 'trial' (executable 1), rank 1 launches 'trial' (executable 2)
after a failed launch rank 0 launches 'trial' (executable 1), rank 1 compiles 'count'";
    assert_eq!(outcomes, vec![Outcome::Done(right.into()); 3]);
}

fn steps_differ_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let (a, b) = (compile(TRIAL, &world, true)?, compile(TRIAL, &world, true)?);
    let (local, nranks) = (me.rank()..me.rank() + 1, me.nranks());
    let launch = |exe: &Executable, trial| run(exe, local.clone(), nranks, 3, trial);
    assert_eq!(launch(&a, Trial { how: 3, ..WELL }).unwrap_err().kind, ErrorKind::Arithmetic);
    let mut told: Vec<Error> = Vec::new();
    told.push(if me.rank() == 2 { a.reset() } else { launch(&a, WELL) }.unwrap_err());
    told.push(launch(if me.rank() == 1 { &b } else { &a }, WELL).unwrap_err());
    told.push(if me.rank() == 1 { compile(COUNT, &world, false).map(drop) } else { launch(&a, WELL) }.unwrap_err());
    assert!(told.iter().all(|error| error.kind == ErrorKind::Mismatch));
    launch(&a, WELL)?;
    launch(&b, WELL)?;
    Ok(told.into_iter().map(|error| error.message).collect::<Vec<_>>().join("\n"))
}

/// A rank that does not come to the recovery is waited for, but not for ever; when it comes, all go on.
#[test]
fn a_rank_that_does_not_come_back() {
    let mut job = Job::start("never_back", 3);
    job.hear(0, "told");
    job.hear(2, "told");
    job.say("come");
    assert_eq!(job.outcomes(), vec![Outcome::Done("fine".into()); 3]);
}

fn never_back_rank(me: &Rank) -> Result<String> {
    let world = me.join(&options())?;
    let exe = compile(TRIAL, &world, false)?;
    let launch = |trial| run(&exe, me.rank()..me.rank() + 1, me.nranks(), 5, trial);
    let victim = Trial { how: 1, victim: 1, ..WELL };
    assert_eq!(launch(victim).unwrap_err().kind, ErrorKind::Timeout);
    if me.rank() == 1 {
        me.hear("come");
    }
    let begin = Instant::now();
    let error = launch(WELL).unwrap_err();
    let right = "recovering from a failed launch: rank 1 has not called exchange within 10 s";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Timeout, right));
    assert!(begin.elapsed() < Duration::from_secs(30));
    me.say("told");
    launch(WELL)?;
    Ok("fine".into())
}

#[test]
fn a_rank_dies_before_it_recovers() {
    let mut job = Job::start("die_recovering", 3);
    job.hear_all("failed");
    std::thread::sleep(Duration::from_millis(20));
    job.kill(1);
    for rank in [0, 2] {
        let outcome = job.outcome(rank);
        let message = outcome.failed("PeerLost");
        assert!(message.contains("rank 1"), "{message}");
    }
}

fn die_recovering_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(TRIAL, &world, false)?;
    let launch = |trial| run(&exe, me.rank()..me.rank() + 1, me.nranks(), 5, trial);
    assert_eq!(launch(Trial { how: 2, ..WELL }).unwrap_err().kind, ErrorKind::OutOfBounds);
    me.say("failed");
    if me.rank() == 1 {
        me.hear("never");
    }
    let error = launch(WELL).unwrap_err();
    assert_eq!(world.failure().map(|e| e.kind), Some(ErrorKind::PeerLost));
    assert_eq!(launch(WELL).unwrap_err().kind, ErrorKind::PeerLost, "it stays");
    Err(error)
}

/// Killed at any moment of launches, failures and recoveries: all others hear of it.
#[test]
fn a_rank_dies_at_any_time() {
    for time in 0..15u64 {
        let mut job = Job::start("die_alternating", 3);
        job.hear_all("ready");
        let victim = time as usize % 3;
        std::thread::sleep(Duration::from_micros(time * 1700 % 20_000));
        job.kill(victim);
        let survivors = (0..3).filter(|&rank| rank != victim).map(|rank| job.outcome(rank)).collect::<Vec<_>>();
        let message = survivors[0].failed("PeerLost");
        assert!(message.starts_with(&format!("rank {victim} ")), "{message}");
        assert_eq!(survivors[0], survivors[1]);
        assert_eq!(job.leftovers(), [""; 0]);
    }
}

fn die_alternating_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(TRIAL, &world, false)?;
    let launch = |trial| run(&exe, me.rank()..me.rank() + 1, me.nranks(), 5, trial);
    me.say("ready");
    // Ranks need not fail in the same launch, so some may be one ahead; it is the same executable.
    for how in [2, 0].into_iter().cycle() {
        match launch(Trial { how, victim: 2, waits: true, epoch: 1 }) {
            Err(error) if error.kind != ErrorKind::OutOfBounds => return Err(error),
            _ => {}
        }
    }
    unreachable!("it launches for ever")
}

/// An abort that comes when a launch has failed already ends the world all the same.
#[test]
fn an_abort_after_a_failure() {
    for outcome in Job::start("abort_after_failure", 2).outcomes() {
        assert_eq!(outcome.failed("Aborted"), "the world was aborted by rank 1 with code 9");
    }
}

fn abort_after_failure_rank(me: &Rank) -> Result<String> {
    let world = me.join(&options())?;
    let exe = compile(TRIAL, &world, false)?;
    let launch = |trial| run(&exe, me.rank()..me.rank() + 1, me.nranks(), 5, trial);
    assert_eq!(launch(Trial { how: 2, ..WELL }).unwrap_err().kind, ErrorKind::OutOfBounds);
    if me.rank() == 1 {
        world.abort(9)?;
        return launch(WELL).map(|()| "no error".into());
    }
    let end = Instant::now() + Duration::from_secs(20);
    while world.failure().is_none() {
        assert!(Instant::now() < end);
        std::thread::yield_now();
    }
    launch(WELL).map(|()| "no error".into())
}
