//! Ranks that die, leave, fork or sleep.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pld::error::{ErrorKind, Result};
use pld::transport::Transport;
use pld::transport::join::Bootstrap;
use pld::transport::shm::ShmTransport;

use crate::ranks::{DEADLINE, Job, Join, Outcome, Rank, Scenario, list, options, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("join", |rank| rank.join().map(|_| "joined".into())),
    ("exchange_when_told", exchange_when_told),
    ("allocate_when_told", allocate_when_told),
    ("watch", watch),
    ("watch_forever", |rank| {
        let _world = rank.join()?;
        rank.say("joined");
        rank.hear("never");
        Ok(String::new())
    }),
    ("leave", leave),
    ("churn", churn),
    ("churn_worlds", churn_worlds),
    ("forks", forks),
    ("forked_and_killed", forked_and_killed),
    ("late", late),
    ("different_calls", different_calls),
];

/// A rank that has joined, but takes part only when the test says so, if it is not killed before.
fn joined(rank: &Rank) -> Result<ShmTransport> {
    let world = rank.join()?;
    rank.say("joined");
    if world.local().start == rank.number("VICTIM") as u32 {
        rank.hear("never");
    }
    Ok(world)
}

fn exchange_when_told(rank: &Rank) -> Result<String> {
    let world = joined(rank)?;
    world.exchange(b"hello", soon()).map(|_| "exchanged".into())
}

fn allocate_when_told(rank: &Rank) -> Result<String> {
    let world = joined(rank)?;
    world.allocate(1 << 20, soon()).map(|_| "allocated".into())
}

/// Waits outside of any collective, as a rank in the middle of a launch.
fn watch(rank: &Rank) -> Result<String> {
    let world = joined(rank)?;
    let end = soon();
    while Instant::now() < end {
        if let Some(lost) = world.lost() {
            return Ok(format!("lost {lost}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("nobody is missed");
}

/// A world of 4 whose rank `victim` is killed once all have joined.
fn kill_in(scenario: &str, victim: usize) -> (Vec<Outcome>, String) {
    let mut job = Job::new();
    for rank in 0..4 {
        let variables = [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", "4".into())];
        job.spawn(scenario, variables.into_iter().chain([("VICTIM", victim.to_string())]));
    }
    (0..4).for_each(|seat| job.hear(seat, "joined"));
    job.kill(victim);
    let mut outcomes = job.outcomes();
    assert_eq!(outcomes.remove(victim), Outcome::Killed(9));
    assert_eq!(job.leftovers(), [""; 0]);
    (outcomes, format!("rank {victim} (process {}) has ended", job.process(victim)))
}

#[test]
fn killed_outside_a_collective() {
    for victim in [0, 1, 3] {
        for outcome in kill_in("watch", victim).0 {
            assert_eq!(outcome.done(), format!("lost {victim}"));
        }
    }
}

#[test]
fn killed_while_others_exchange() {
    for victim in [0, 2] {
        let (outcomes, message) = kill_in("exchange_when_told", victim);
        outcomes.iter().for_each(|outcome| assert_eq!(outcome.failed("PeerLost"), message));
    }
}

#[test]
fn killed_while_others_allocate() {
    for victim in [0, 3] {
        let (outcomes, message) = kill_in("allocate_when_told", victim);
        outcomes.iter().for_each(|outcome| assert_eq!(outcome.failed("PeerLost"), message));
    }
}

/// Ranks 0 and 1 have met, rank 2 has not come yet.
#[test]
fn killed_while_the_world_is_made() {
    for victim in [0, 1] {
        let mut job = Job::new();
        job.spawn_rank("join", 0, 3);
        wait_for(&job.meeting_place(), 1);
        job.spawn_rank("join", 1, 3);
        wait_for_connection(&job, 2);
        job.kill(victim);
        let message = format!("rank {victim} has ended before the world was complete");
        assert_eq!(job.outcome(1 - victim).failed("PeerLost"), message);
        assert_eq!(job.leftovers(), [""; 0]);
    }
}

fn wait_for(dir: &Path, names: usize) {
    let end = Instant::now() + DEADLINE;
    while list(dir).len() != names {
        assert!(Instant::now() < end, "{} does not get {names} names", dir.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The listening socket and both ends of a connection are `sockets` or more lines of the kernel's list.
fn wait_for_connection(job: &Job, sockets: usize) {
    let place = job.meeting_place().display().to_string();
    let end = Instant::now() + DEADLINE;
    while fs::read_to_string("/proc/net/unix").unwrap().lines().filter(|line| line.contains(&place)).count() < sockets {
        assert!(Instant::now() < end, "nobody connects");
        std::thread::sleep(Duration::from_millis(1));
    }
    // The hello is sent right after.
    std::thread::sleep(Duration::from_millis(20));
}

/// Exchanges and allocates without end.
fn churn(rank: &Rank) -> Result<String> {
    let world = rank.join()?;
    rank.say("joined");
    for round in 0u64.. {
        exchange_and_allocate(&world, round)?;
    }
    unreachable!()
}

/// Makes worlds without end.
fn churn_worlds(rank: &Rank) -> Result<String> {
    for round in 0u64.. {
        let world = ShmTransport::join(&options(Bootstrap::Env, None, Duration::from_secs(1)))?;
        rank.say("joined");
        exchange_and_allocate(&world, round)?;
    }
    unreachable!()
}

fn exchange_and_allocate(world: &ShmTransport, round: u64) -> Result<()> {
    let mine = world.local().start;
    let word = |rank: u32| (round << 8 | u64::from(rank)).to_ne_bytes().to_vec();
    let all = world.exchange(&word(mine), soon())?;
    assert_eq!(all, (0..world.nranks()).map(word).collect::<Vec<_>>());
    let memory = world.allocate(300_000, soon())?;
    // SAFETY: the own part; nobody else writes there.
    unsafe { memory.rank(mine).write_bytes(7, 300_000) };
    Ok(())
}

/// Names there that could be ours; other programs' come and go.
fn names_in_dev_shm() -> Vec<String> {
    list(Path::new("/dev/shm")).into_iter().filter(|name| name.contains("pld")).collect()
}

/// Starts worlds of three ranks and kills one of each at a random moment; `each` gets the survivors' outcomes.
fn kill_at_random(scenario: &str, times: u32, wait_for_first: bool, each: fn(Outcome, usize, u32)) {
    let before = names_in_dev_shm();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..times {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut job = Job::new();
        job.spawn_world(scenario, 3);
        let victim = (random % 3) as usize;
        if wait_for_first {
            (0..3).for_each(|seat| job.hear(seat, "joined"));
        }
        std::thread::sleep(Duration::from_micros(random >> 8 & 0x7fff));
        job.kill(victim);
        for (seat, outcome) in job.outcomes().into_iter().enumerate() {
            match outcome {
                Outcome::Killed(9) if seat == victim => {}
                outcome => each(outcome, victim, job.process(victim)),
            }
        }
        assert_eq!(job.leftovers(), [""; 0]);
    }
    assert_eq!(names_in_dev_shm(), before);
}

/// Cases C48 and C56: the others notice, and nothing is left.
#[test]
fn killed_at_random() {
    kill_at_random("churn", 50, true, |outcome, victim, process| {
        assert_eq!(outcome.failed("PeerLost"), format!("rank {victim} (process {process}) has ended"));
    });
}

#[test]
fn killed_at_random_while_worlds_are_made() {
    kill_at_random("churn_worlds", 25, false, |outcome, victim, _| match outcome {
        Outcome::Failed(kind, message) if kind == "PeerLost" => {
            let left = message.ends_with("has left the world");
            assert!(left || message.starts_with(&format!("rank {victim} ")), "{message}");
        }
        // Who never met the victim in this world cannot know why it does not come.
        Outcome::Failed(kind, _) if kind == "Timeout" => {}
        outcome => panic!("{outcome:?}"),
    });
}

/// Nobody is there to clean up, and there is nothing to clean up.
#[test]
fn all_killed_at_once() {
    let before = names_in_dev_shm();
    for _ in 0..10 {
        let mut job = Job::new();
        job.spawn_world("watch_forever", 4);
        (0..4).for_each(|seat| job.hear(seat, "joined"));
        (0..4).for_each(|seat| job.kill(seat));
        assert_eq!(job.outcomes(), vec![Outcome::Killed(9); 4]);
        assert_eq!(job.leftovers(), [""; 0]);
    }
    assert_eq!(names_in_dev_shm(), before);
}

/// Rank 1 leaves and ends; that is no loss, but there is no more exchange with it.
fn leave(rank: &Rank) -> Result<String> {
    let world = rank.join()?;
    if world.local().start == 1 {
        return Ok("left".into());
    }
    rank.say("joined");
    rank.hear("rank 1 has ended");
    assert_eq!(world.lost(), None);
    let error = world.exchange(b"", soon()).unwrap_err();
    assert_eq!(world.lost(), None);
    Err(error)
}

#[test]
fn leaving_is_no_loss() {
    let mut job = Job::new();
    job.spawn_world("leave", 3);
    assert_eq!(job.outcome(1).done(), "left");
    job.say("rank 1 has ended");
    for seat in [0, 2] {
        assert_eq!(job.outcome(seat).failed("PeerLost"), "rank 1 has left the world");
    }
}

/// Case C79: a forked child drops its copy of the world, and ends; the world goes on.
fn forks(rank: &Rank) -> Result<String> {
    let world = rank.join()?;
    // SAFETY: the child only drops the world, which makes system calls and frees memory, and ends. No other thread
    // holds a lock that it needs: the test harness waits for this one.
    match unsafe { libc::fork() } {
        0 => {
            drop(world);
            // SAFETY: ends the child without running the harness's own exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just made.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    for round in 0..100 {
        world.exchange(&[round], soon())?;
        assert_eq!(world.lost(), None);
    }
    world.allocate(5000, soon()).map(|_| "unharmed".into())
}

#[test]
fn a_forked_child_ends() {
    let mut job = Job::new();
    job.spawn_world("forks", 3);
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "unharmed"));
}

/// The victim has a child that holds copies of all its descriptors. Its death is noticed all the same.
fn forked_and_killed(rank: &Rank) -> Result<String> {
    let world = joined_with_child(rank)?;
    world.exchange(b"hello", soon()).map(|_| "exchanged".into())
}

fn joined_with_child(rank: &Rank) -> Result<ShmTransport> {
    let world = rank.join()?;
    if world.local().start == rank.number("VICTIM") as u32 {
        // SAFETY: the child only closes what it shares with the harness, sleeps and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                (0..3).for_each(|fd| _ = libc::close(fd));
                libc::sleep(5);
                libc::_exit(0);
            }
        }
    }
    rank.say("joined");
    if world.local().start == rank.number("VICTIM") as u32 {
        rank.hear("never");
    }
    Ok(world)
}

#[test]
fn killed_with_a_child_alive() {
    for victim in [0, 2] {
        let (outcomes, message) = kill_in("forked_and_killed", victim);
        outcomes.iter().for_each(|outcome| assert_eq!(outcome.failed("PeerLost"), message));
    }
}

/// One rank comes after the time-out of the others. It gets their error, and the next exchange works.
fn late(rank: &Rank) -> Result<String> {
    let world = rank.join()?;
    let is_late = world.local().start == rank.number("LATE") as u32;
    if is_late {
        rank.hear("timed out");
    }
    let within = if is_late { DEADLINE / 2 } else { Duration::from_millis(200) };
    let error = world.exchange(b"first", Instant::now() + within).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    rank.say("failed");
    let mine = world.local().start.to_string();
    let all = world.exchange(mine.as_bytes(), soon())?;
    assert_eq!(all, (0..4).map(|rank| rank.to_string().into_bytes()).collect::<Vec<_>>());
    Ok(error.message)
}

#[test]
fn a_rank_that_comes_late() {
    for late in [0, 3] {
        let mut job = Job::new();
        for rank in 0..4 {
            let variables = [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", "4".into())];
            job.spawn("late", variables.into_iter().chain([("LATE", late.to_string())]));
        }
        (0..4).filter(|seat| *seat != late).for_each(|seat| job.hear(seat, "failed"));
        job.say("timed out");
        for outcome in job.outcomes() {
            let message = format!("rank {late} has not called exchange within ");
            assert!(outcome.done().starts_with(&message), "{outcome:?}");
        }
    }
}

/// Ranks that do not call the same functions in the same order are told so.
fn different_calls(rank: &Rank) -> Result<String> {
    let world = rank.join()?;
    let error = match world.local().start {
        1 => world.allocate(4096, soon()).map(|_| ()),
        _ => world.exchange(b"", soon()).map(|_| ()),
    };
    world.exchange(b"", soon())?;
    error.map(|()| "done".into())
}

#[test]
fn ranks_that_make_different_calls() {
    let mut job = Job::new();
    job.spawn_world("different_calls", 3);
    for outcome in job.outcomes() {
        assert_eq!(outcome.failed("Mismatch"), "rank 0 calls exchange while rank 1 calls allocate");
    }
}
