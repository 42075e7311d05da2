//! Waits that nobody satisfies, and what is said about them.

use std::time::Duration;

use pld::error::{ErrorKind, Result};
use pld::runtime::{Arg, WaitPolicy, World, WorldOptions};

use crate::programs::*;
use crate::ranks::{Job, Join, Rank, Scenario};

pub const SCENARIOS: &[(&str, Scenario)] = &[("who_is_missing", who_is_missing_rank)];

/// The text with every number of seconds replaced, which depends on the machine.
pub fn without_seconds(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let is_time = |i: usize| words.get(i + 1) == Some(&"s");
    let shown = words.iter().enumerate().map(|(i, word)| if is_time(i) { "?" } else { word });
    shown.collect::<Vec<_>>().join(" ")
}

/// C46: with every policy, also C03: nothing but zero is found in the cell.
#[test]
fn a_wait_that_nobody_satisfies() {
    for wait in [WaitPolicy::Auto, WaitPolicy::Spin, WaitPolicy::Yield, WaitPolicy::Sleep] {
        let options = WorldOptions { timeout: Duration::from_millis(500), wait, ..WorldOptions::default() };
        let world = World::create(2, &options).unwrap();
        let exe = compile(MOE, &world, false).unwrap();
        let mut sums = [0; 2];
        let args = |sums: &mut [i64], count| {
            [tensor(sums, &[2, 1]), Arg::Int(count), Arg::Int(0), Arg::Int(7), Arg::Bool(false)]
        };
        for _ in 0..5 {
            exe.launch(&args(&mut sums, 7)).unwrap();
        }
        let error = exe.launch(&args(&mut sums, 5)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout);
        let right = "rank 1 waited ? s for arrived[0, 0] >= 7 (is 5)
    at dispatch_wait (moe.pld:16), launch 6 of 'moe'
    rank 0: has ended launch 6
    => rank 0 has ended launch 6 of 'moe' without the missing notify arrived (moe.pld:6)";
        assert_eq!(without_seconds(&error.message), right, "{wait:?}");
    }
}

#[test]
fn all_wait_for_all() {
    let options = WorldOptions { timeout: Duration::from_millis(300), ..WorldOptions::default() };
    let world = World::create(1, &options).unwrap();
    let exe = compile(MOE, &world, false).unwrap();
    let mut sums = [0i64; 1];
    let args = [tensor(&mut sums, &[1, 1]), Arg::Int(-5), Arg::Int(0), Arg::Int(1), Arg::Bool(true)];
    let error = exe.launch(&args).unwrap_err();
    let right = "rank 0 waited ? s for arrived[0, 0] >= 1 (is 0)
    at dispatch_wait (moe.pld:16), launch 1 of 'moe'
    => there is no other rank, and this one has not reached notify arrived (moe.pld:6)";
    assert_eq!(without_seconds(&error.message), right);
}

/// A report has room for its conclusion, however many ranks there are.
#[test]
fn a_report_of_many_ranks() {
    let options = WorldOptions { timeout: Duration::from_millis(300), ..WorldOptions::default() };
    let world = World::create(100, &options).unwrap();
    let exe = compile(MOE, &world, false).unwrap();
    let mut sums = [0i64; 100];
    let args = [tensor(&mut sums, &[100, 1]), Arg::Int(2), Arg::Int(0), Arg::Int(3), Arg::Bool(false)];
    let message = exe.launch(&args).unwrap_err().message;
    let lines: Vec<&str> = message.lines().collect();
    assert!(message.len() <= 2048 && lines.len() > 20, "{message}");
    assert!(lines[lines.len() - 2].ends_with(" more ranks"), "{message}");
    assert!(lines[lines.len() - 1].ends_with("notify arrived (moe.pld:6)"), "{message}");
}

/// C54: of five ranks, one computes, one has not come, one waits too, and one has ended its part.
#[test]
fn who_is_missing() {
    let mut job = Job::start("who_is_missing", 5);
    job.hear_all("ready");
    let right = "rank 1 waited ? s for arrived[0, 0] >= 7 (is 0)
    at dispatch_wait (moe.pld:16), launch 2 of 'moe'
    rank 0: has not started launch 2
    rank 2: waits for arrived[0, 0] >= 9 (is 0)
    rank 3: in task expert_ffn (moe.pld:10)
    rank 4: has ended launch 2
    => ranks 0 and 3 have not reached notify arrived (moe.pld:6) of launch 2 of 'moe'";
    let reported = job.outcome(1);
    assert_eq!(without_seconds(reported.failed("Timeout")), right);
    job.say("late");
    for (rank, outcome) in job.outcomes().iter().enumerate() {
        assert_eq!(outcome, &reported, "rank {rank} ends with the same error");
    }
}

fn who_is_missing_rank(me: &Rank) -> Result<String> {
    let timeout = Duration::from_millis(if me.rank() == 1 { 2000 } else { 30_000 });
    let world = me.join(&WorldOptions { timeout, ..WorldOptions::default() })?;
    let exe = compile(MOE, &world, false)?;
    let mut sums = [0i64];
    let mut launch = |count, work, expected| {
        exe.launch(&[tensor(&mut sums, &[1]), Arg::Int(count), Arg::Int(work), Arg::Int(expected), Arg::Bool(false)])
    };
    launch(1, 0, 1)?;
    me.say("ready");
    if me.rank() == 0 {
        me.hear("late");
    }
    // Rank 3 computes until the others have failed, and some time more. It ends well, as rank 4 does before.
    let work = if me.rank() == 3 { 1_000_000_000 } else { 0 };
    let expected = [0, 7, 9, 0, 0][me.rank() as usize];
    launch(0, work, expected)?;
    if me.rank() >= 3 {
        me.hear("late");
        launch(0, 0, 0)?;
    }
    Ok("no error".into())
}

/// A rank that waits for a second uses next to no processor time.
#[test]
fn a_sleeping_rank_costs_nothing() {
    let options = WorldOptions { timeout: Duration::from_secs(1), ..WorldOptions::default() };
    let world = World::create(1, &options).unwrap();
    let exe = compile(MOE, &world, false).unwrap();
    let mut sums = [0i64; 1];
    let args = [tensor(&mut sums, &[1, 1]), Arg::Int(-5), Arg::Int(0), Arg::Int(1), Arg::Bool(true)];
    let before = thread_time();
    assert_eq!(exe.launch(&args).unwrap_err().kind, ErrorKind::Timeout);
    let used = thread_time() - before;
    assert!(used < Duration::from_millis(150), "waiting for 1 s took {used:?} of processor time");
}

fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
