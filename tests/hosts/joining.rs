//! Who may join a world of several hosts, and what those are told who may not.

use std::net::TcpListener;
use std::time::Duration;

use pld::error::{Error, ErrorKind, Result};
use pld::runtime::{World, WorldOptions};
use pld::transport::join::JoinOptions;

use crate::on_hosts;
use crate::programs::*;
use crate::ranks::{Job, Join, Outcome, Rank, Scenario, Spread, WORLD, join, join_within, start};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("join", join_rank),
    ("join_briefly", join_briefly_rank),
    ("join_late", join_late_rank),
    ("stay", stay_rank),
    ("disagree", disagree_rank),
    ("other_program", other_program_rank),
];

on_hosts! {
    a_rank_comes_late a_rank_is_missing a_wrong_secret an_intruder no_secret other_versions other_programs port_in_use
    a_rank_too_many a_world_after_a_failed_one
}

/// Long enough to be told, for ranks that cannot all come.
const BRIEFLY: Duration = Duration::from_secs(3);

/// Longer than anybody may be silent: who waits for others to join is not.
const LATE: Duration = Duration::from_secs(3);

/// Joins and does something with all others.
fn join_rank(me: &Rank) -> Result<String> {
    exchange(me, join(me)?)
}

fn exchange(me: &Rank, world: std::sync::Arc<World>) -> Result<String> {
    let exe = compile(ALLREDUCE, &world, false)?;
    allreduce_as(&exe, me.rank(), me.nranks(), 0)?;
    Ok("joined".into())
}

fn join_briefly_rank(me: &Rank) -> Result<String> {
    exchange(me, join_within(me, BRIEFLY)?)
}

fn join_late_rank(me: &Rank) -> Result<String> {
    std::thread::sleep(LATE);
    join_rank(me)
}

fn all_joined(job: &mut Job) {
    let outcomes = job.outcomes();
    assert_eq!(outcomes, vec![Outcome::Done("joined".into()); outcomes.len()]);
}

/// The first rank to come may be any.
fn a_rank_comes_late(spread: Spread) {
    for late in [0, 3] {
        let mut job = Job::over(spread);
        (0..4).for_each(|rank| _ = job.spawn_rank(if rank == late { "join_late" } else { "join" }, rank, 4));
        all_joined(&mut job);
    }
}

fn a_rank_is_missing(spread: Spread) {
    for missing in [0, 1, 3] {
        let mut job = Job::over(spread);
        (0..4).filter(|&rank| rank != missing).for_each(|rank| _ = job.spawn_rank("join_briefly", rank, 4));
        for outcome in job.outcomes() {
            let told = outcome.failed("Timeout");
            assert!(told.contains(&format!("rank {missing}")), "{told}");
        }
    }
}

/// The one with the wrong secret is told so, and the others that nobody right has come.
fn a_wrong_secret(spread: Spread) {
    let mut job = Job::over(spread);
    (0..2).for_each(|rank| _ = job.spawn_rank("join_briefly", rank, 3));
    job.spawn_rank_with("join_briefly", 2, 3, [("PLD_SECRET", "a secret of another job")]);
    let outcomes = job.outcomes();
    let Outcome::Failed(_, told) = &outcomes[2] else { panic!("{:?}", outcomes[2]) };
    assert!(told.contains("secret"), "{told}");
    assert!(!told.contains("a secret of"), "a message tells the secret: {told}");
    for outcome in &outcomes[..2] {
        let told = outcome.failed("Timeout");
        assert!(told.contains("rank 2"), "{told}");
    }
}

/// Who does not know the secret does not keep out who does.
fn an_intruder(spread: Spread) {
    let mut job = Job::over(spread);
    job.spawn_rank("join", 0, 4);
    let intruder = job.spawn_rank_with("join_briefly", 2, 4, [("PLD_SECRET", "a secret of another job")]);
    let Outcome::Failed(_, told) = job.outcome(intruder) else { panic!("the intruder joins") };
    assert!(told.contains("secret"), "{told}");
    let rest: Vec<usize> = (1..4).map(|rank| job.spawn_rank("join", rank, 4)).collect();
    rest.into_iter().chain([0]).for_each(|seat| assert_eq!(job.outcome(seat).done(), "joined"));
}

/// Hosts are not joined without one.
fn no_secret(spread: Spread) {
    let mut job = Job::over(spread);
    (0..4).for_each(|rank| _ = job.spawn_rank_with("join_briefly", rank, 4, [("PLD_SECRET", "")]));
    for outcome in job.outcomes() {
        let Outcome::Failed(_, told) = &outcome else { panic!("{outcome:?}") };
        assert!(told.contains("PLD_SECRET"), "{told}");
    }
}

/// All ranks are told of the one whose version is another.
fn other_versions(spread: Spread) {
    for outcome in start("disagree", spread).outcomes() {
        let told = outcome.failed("Mismatch");
        assert!(["version 1", "version 2", "rank 3"].iter().all(|part| told.contains(part)), "{told}");
    }
}

fn disagree_rank(me: &Rank) -> Result<String> {
    let version = if me.rank() == 3 { "version 2" } else { "version 1" };
    let meeting = JoinOptions { agreement: version.into(), ..me.meeting(WORLD, me.rank(), me.nranks()) };
    World::join(meeting, &WorldOptions::default())?;
    Ok("no error".into())
}

/// Ranks that compile different programs are told, all of them the same, and can go on.
fn other_programs(spread: Spread) {
    let outcomes = start("other_program", spread).outcomes();
    assert_eq!(outcomes, vec![outcomes[0].clone(); 4]);
    let told = outcomes[0].done();
    assert!(told.starts_with("ranks compile different programs: rank 0 'allreduce' ("), "{told}");
    assert!(told.contains(", rank 3 'count' ("), "{told}");
}

fn other_program_rank(me: &Rank) -> Result<String> {
    let world = join(me)?;
    let told: Error = compile(if me.rank() == 3 { COUNT } else { ALLREDUCE }, &world, false).err().expect("a mismatch");
    assert_eq!(told.kind, ErrorKind::Mismatch);
    exchange(me, world)?;
    Ok(told.message)
}

/// Somebody else listens at the address of rank 0: it says so, and the others that nobody there knows the world.
fn port_in_use(spread: Spread) {
    let mut job = Job::over(spread);
    let hosts = job.hosts(4);
    let (address, port) = (hosts.address(0), hosts.port());
    let listener = hosts.inside(0, || TcpListener::bind((address.as_str(), port)).unwrap());
    job.spawn_world("join_briefly", 4);
    let outcomes = job.outcomes();
    let Outcome::Failed(_, told) = &outcomes[0] else { panic!("{:?}", outcomes[0]) };
    assert!(told.contains(&port.to_string()) && told.contains("another program listens there"), "{told}");
    for outcome in &outcomes[1..] {
        assert!(matches!(outcome, Outcome::Failed(..)), "{outcome:?}");
    }
    drop(listener);
}

/// A second process with the rank of one that is there; the world does without it.
fn a_rank_too_many(spread: Spread) {
    let mut job = Job::over(spread);
    job.spawn_world("stay", 4);
    job.hear_all("joined");
    let third = job.spawn_rank("join_briefly", 3, 4);
    let outcome = job.outcome(third);
    assert!(matches!(outcome, Outcome::Failed(..)), "{outcome:?}");
    job.say("go");
    (0..4).for_each(|seat| assert_eq!(job.outcome(seat).done(), "joined"));
}

fn stay_rank(me: &Rank) -> Result<String> {
    let world = join(me)?;
    me.say("joined");
    me.hear("go");
    exchange(me, world)
}

/// The address can be used again at once.
fn a_world_after_a_failed_one(spread: Spread) {
    let mut job = Job::over(spread);
    job.spawn_rank("join_briefly", 0, 4);
    job.outcome(0).failed("Timeout");
    let seats: Vec<usize> = (0..4).map(|rank| job.spawn_rank("join", rank, 4)).collect();
    seats.into_iter().for_each(|seat| assert_eq!(job.outcome(seat).done(), "joined"));
}
