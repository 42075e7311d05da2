//! Ranks that die or leave.

use std::path::Path;
use std::time::Duration;

use pld::error::Result;
use pld::runtime::{Arg, WorldOptions};

use crate::programs::*;
use crate::ranks::{Job, Join, Outcome, Rank, Scenario, list};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("die_launching", die_launching_rank),
    ("die_waiting", die_waiting_rank),
    ("die_before", die_before_rank),
    ("die_without_waits", die_without_waits_rank),
    ("exit", exit_rank),
    ("leave_early", leave_early_rank),
    ("leave_after", leave_after_rank),
];

/// A small generator of numbers, so that moments differ from kill to kill and a failure can be repeated.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Kills a rank of `scenario` `times` times at random moments; all others must hear of it, and nothing be left.
fn kill(scenario: &str, times: u64) {
    const NRANKS: u32 = 3;
    let shared = |names: Vec<String>| names.into_iter().filter(|n| n.contains("pld")).collect::<Vec<_>>();
    let before = shared(list(Path::new("/dev/shm")));
    for time in 0..times {
        let mut seed = 0x9e37_79b9_7f4a_7c15 ^ (time + 1);
        let victim = random(&mut seed) as usize % NRANKS as usize;
        let mut job = Job::start(scenario, NRANKS);
        job.hear_all("ready");
        std::thread::sleep(Duration::from_micros(random(&mut seed) % 20_000));
        job.kill(victim);
        job.say("killed");
        for rank in (0..NRANKS as usize).filter(|&r| r != victim) {
            let outcome = job.outcome(rank);
            let right = format!("rank {victim} died: its process ended without leaving the world");
            assert_eq!(outcome.failed("PeerLost"), right, "{scenario} {time}, rank {rank}");
        }
        assert_eq!(job.outcome(victim), Outcome::Killed(9));
        assert_eq!(job.leftovers(), [""; 0], "{scenario} {time}");
    }
    assert_eq!(shared(list(Path::new("/dev/shm"))), before);
}

#[test]
fn killed_while_launching() {
    kill("die_launching", 20);
}

fn die_launching_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(ALLREDUCE, &world, false)?;
    me.say("ready");
    for round in 0.. {
        allreduce_as(&exe, me.rank(), me.nranks(), round)?;
    }
    unreachable!("it launches for ever")
}

#[test]
fn killed_while_all_wait() {
    kill("die_waiting", 15);
}

fn die_waiting_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(MOE, &world, me.rank() == u32::MAX)?;
    me.say("ready");
    exe.launch(&[tensor(&mut [0i64], &[1]), Arg::Int(0), Arg::Int(0), Arg::Int(1), Arg::Bool(true)])?;
    Ok("no error".into())
}

#[test]
fn killed_before_the_first_launch() {
    kill("die_before", 10);
}

fn die_before_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(ALLREDUCE, &world, false)?;
    me.say("ready");
    me.hear("killed");
    allreduce_as(&exe, me.rank(), me.nranks(), 0)?;
    Ok("no error".into())
}

#[test]
fn killed_while_nobody_waits() {
    kill("die_without_waits", 5);
}

fn die_without_waits_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(COUNT, &world, true)?;
    me.say("ready");
    loop {
        exe.launch(&[tensor(&mut [-1i32], &[1])])?;
    }
}

/// C48: a rank that calls exit, without a word, while the others are in a barrier.
#[test]
fn a_rank_exits() {
    let mut job = Job::start("exit", 3);
    for rank in [0, 2] {
        let right = "rank 1 died: its process ended without leaving the world";
        assert_eq!(job.outcome(rank).failed("PeerLost"), right);
    }
    assert_eq!(job.outcome(1), Outcome::Exited(3));
    assert_eq!(job.leftovers(), [""; 0]);
}

fn exit_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(BARRIERS, &world, false)?;
    exe.launch(&[tensor(&mut [-1i32], &[1]), Arg::Int(10)])?;
    if me.rank() == 1 {
        std::process::exit(3);
    }
    exe.launch(&[tensor(&mut [-1i32], &[1]), Arg::Int(10)])?;
    Ok("no error".into())
}

#[test]
fn a_rank_leaves_too_early() {
    let mut job = Job::start("leave_early", 3);
    assert_eq!(job.outcome(1).done(), "left");
    for rank in [0, 2] {
        assert_eq!(job.outcome(rank).failed("PeerLost"), "rank 1 left the world before launch 3 of 'allreduce'");
    }
}

fn leave_early_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(ALLREDUCE, &world, false)?;
    for round in 0..2 {
        allreduce_as(&exe, me.rank(), me.nranks(), round)?;
    }
    if me.rank() == 1 {
        world.close().unwrap();
        return Ok("left".into());
    }
    allreduce_as(&exe, me.rank(), me.nranks(), 2)?;
    Ok("no error".into())
}

/// A rank that leaves when it has done its part disturbs nobody who still does theirs.
#[test]
fn a_rank_leaves_in_time() {
    let mut job = Job::start("leave_after", 3);
    job.hear_all("done");
    job.say("go");
    assert_eq!(job.outcomes(), vec![Outcome::Done("fine".into()); 3]);
}

fn leave_after_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(MOE, &world, false)?;
    // Rank 0 notifies and is done; the others compute before they look.
    let work = if me.rank() == 0 { 0 } else { 100_000_000 };
    me.say("done");
    exe.launch(&[tensor(&mut [0i64], &[1]), Arg::Int(3), Arg::Int(work), Arg::Int(3), Arg::Bool(false)])?;
    Ok("fine".into())
}
