//! What is said of ranks on other hosts when a wait ends in vain.

use std::time::Duration;

use pld::error::Result;
use pld::runtime::{Arg, WorldOptions};

use crate::on_hosts;
use crate::programs::*;
use crate::ranks::{Job, Join, Rank, Scenario, Spread};

pub const SCENARIOS: &[(&str, Scenario)] = &[("who_is_missing", who_is_missing_rank)];

on_hosts! { who_is_missing }

/// The text with every number of seconds replaced, which depends on the machine.
fn without_seconds(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_time = |i: usize| words.get(i + 1) == Some(&"s");
    let shown = words.iter().enumerate().map(|(i, word)| if is_time(i) { "?" } else { word });
    shown.collect::<Vec<_>>().join(" ")
}

/// C54 over three hosts: of five ranks, one computes, one has not come, one waits too, and one has ended its part.
fn who_is_missing(spread: Spread) {
    let mut job = Job::over(spread);
    job.spawn_world("who_is_missing", 5);
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
