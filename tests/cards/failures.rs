//! What goes wrong on a card ends the launch everywhere, with one report; the next launch runs.

use std::time::Duration;

use pld::error::{Error, ErrorKind, Result};
use pld::ir::DType;
use pld::runtime::{Arg, CompileOptions, TensorArg, WorldOptions};
use pld_test_ranks::{Outcome, Rank};

use crate::join::Join;
use crate::programs::{Numbers, RING, compile, persistent, ring, told};
use crate::{Scenario, all_say, cards};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("time_out", time_out_rank),
    ("time_out_unchecked", time_out_unchecked_rank),
    ("outside", outside_rank),
    ("killed", killed_rank),
    ("abort", abort_rank),
    ("memory_of_the_host", memory_of_the_host_rank),
];

/// Three seconds: a wait that is satisfied takes less, whatever else the machine does.
fn hasty() -> WorldOptions {
    WorldOptions { timeout: Duration::from_secs(3), ..cards::on_cards() }
}

/// The text with every number of seconds replaced, which depends on the machine.
fn without_seconds(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let shown = words.iter().enumerate().map(|(i, word)| if words.get(i + 1) == Some(&"s") { "?" } else { word });
    shown.collect::<Vec<_>>().join(" ")
}

/// A wait on a card ends, says what it waited for and what others do, and all can go on.
#[test]
fn a_wait_that_nobody_satisfies() {
    let outcomes = cards::job("time_out", 2).outcomes();
    assert_eq!(outcomes[0], outcomes[1]);
    let report = outcomes[0].done();
    let (first, lines) = report.split_once('\n').unwrap();
    let late = if first.starts_with("rank 0") { 0 } else { 1 };
    let is = told(late, 2, 7);
    assert_eq!(first, format!("rank {late} waited ? s for told[2] >= 1000000 (is {is})"));
    let other = 1 - late;
    let right = format!(
        "    at tell (cards.pld:7), launch 2 of 'ring'
    rank {other}: waits for told[2] >= 1000000 (is {})
    => all ranks wait, so none reaches notify told (cards.pld:5)",
        told(other, 2, 7)
    );
    assert_eq!(lines, right);
}

fn time_out_rank(me: &Rank) -> Result<String> {
    let world = me.join(&hasty())?;
    let exe = compile(RING, &world, &CompileOptions::default())?;
    let out = Numbers::new(&world, &[-1]);
    let right = told(me.rank(), me.nranks(), 5);
    exe.launch(&ring(&out, 5, 1, right, 1))?;
    assert_eq!(i64::from(out.get()[0]), right);
    let error = exe.launch(&ring(&out, 7, 1, 1_000_000, 2)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    for _ in 0..3 {
        exe.launch(&ring(&out, 5, 2, 2 * right, 2))?;
        assert_eq!(i64::from(out.get()[0]), 2 * right, "windows are zeroed after a failure");
    }
    Ok(without_seconds(&error.message))
}

/// A kernel without checks cannot be stopped: the world ends, in time.
#[test]
fn a_wait_that_nobody_can_end() {
    for outcome in cards::job("time_out_unchecked", 2).outcomes() {
        assert!(outcome.done().contains("do not end"), "{outcome:?}");
    }
}

fn time_out_unchecked_rank(me: &Rank) -> Result<String> {
    let world = me.join(&hasty())?;
    let exe = compile(RING, &world, &CompileOptions { unchecked: true, ..persistent() })?;
    let out = Numbers::new(&world, &[-1]);
    let error = exe.launch(&ring(&out, 5, 1, 1_000_000, 1)).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Timeout | ErrorKind::Internal), "{error}");
    let end = world.failure().map_or(error.clone(), |end| end);
    assert_eq!(exe.launch(&ring(&out, 5, 1, 1, 1)).unwrap_err(), end);
    // Whatever still runs uses what it was given.
    std::mem::forget((out, exe, world));
    Ok(end.message)
}

/// An offset that is only known on the card: nothing is written, and all ranks have the report of the first one.
#[test]
fn an_offset_outside() {
    let outcomes = cards::job("outside", 4).outcomes();
    outcomes.iter().for_each(|outcome| assert_eq!(outcome, &outcomes[0]));
    let right = "rank 2: a region of [1] at [4] reaches outside told (window[4] i32) in dimension 0
    notify told[cell] @((me + 1) % world) += 100 * me + more
    at tell (cards.pld:5), launch 1 of 'ring'";
    assert_eq!(outcomes[0].done(), right);
}

fn outside_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(RING, &world, &CompileOptions::default())?;
    let out = Numbers::new(&world, &[-1]);
    // The others wait for somebody who does not come.
    let at = if me.rank() == 2 { 4 } else { 1 };
    let error = exe.launch(&ring(&out, 5, 1, 1_000_000, at)).unwrap_err();
    assert_eq!((error.kind, out.get()), (ErrorKind::OutOfBounds, vec![-1]));
    let right = told(me.rank(), me.nranks(), 6);
    exe.launch(&ring(&out, 6, 1, right, 3))?;
    assert_eq!(i64::from(out.get()[0]), right);
    Ok(error.message)
}

/// A process that is killed while its card is awaited ends the launch of all others.
#[test]
fn a_process_that_dies() {
    let mut job = cards::job("killed", 3);
    job.hear_all("ready");
    job.kill(1);
    for seat in [0, 2] {
        let right = "rank 1 died: its process ended without leaving the world";
        assert_eq!(job.outcome(seat).failed("PeerLost"), right);
    }
    assert_eq!(job.outcome(1), Outcome::Killed(9));
}

fn killed_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(RING, &world, &persistent())?;
    let out = Numbers::new(&world, &[-1]);
    me.say("ready");
    exe.launch(&ring(&out, 5, 1, 1_000_000, 1)).map(|()| String::new())
}

#[test]
fn an_abort_reaches_kernels_that_wait() {
    all_say("abort", 2, "the world was aborted by rank 0 with code 7");
}

fn abort_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(RING, &world, &persistent())?;
    let out = Numbers::new(&world, &[-1]);
    let error: Error = std::thread::scope(|s| {
        let launch = s.spawn(|| exe.launch(&ring(&out, 5, 1, 1_000_000, 1)).unwrap_err());
        if me.rank() == 0 {
            world.abort(7).unwrap();
        }
        launch.join().unwrap()
    });
    assert_eq!(error.kind, ErrorKind::Aborted);
    Ok(error.message)
}

#[test]
fn memory_of_the_host_is_refused() {
    all_say("memory_of_the_host", 1, "refused");
}

fn memory_of_the_host_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(RING, &world, &CompileOptions::default())?;
    let mut out = [0i32];
    let data = out.as_mut_ptr().cast();
    let tensor = Arg::Tensor(TensorArg { data, dtype: DType::I32, shape: &[1], strides: None });
    let error = exe.launch(&[tensor, Arg::Int(0), Arg::Int(0), Arg::Int(0), Arg::Int(0)]).unwrap_err();
    let right = format!(
        "argument outs is memory of the host ({data:p}), but ranks are cards: pass memory of the card, or a resident"
    );
    assert_eq!((error.kind, error.message), (ErrorKind::InvalidArgument, right));
    Ok("refused".into())
}
