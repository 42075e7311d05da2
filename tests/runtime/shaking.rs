//! Shaken timing: what is wrong shows, and what is right stays so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pld::runtime::{Arg, World, WorldOptions};

use crate::programs::{compile, tensor};

/// When a search for a wrong result is over.
const DEADLINE: Duration = Duration::from_secs(60);

fn world(nranks: u32, cores_per_rank: u32, chaos_seed: u64) -> Arc<World> {
    World::create(nranks, &WorldOptions { cores_per_rank, chaos_seed, ..WorldOptions::default() }).unwrap()
}

/// The second task reads what the first one writes, and nothing orders the two.
const MISSING_EDGE: &str = "program missing_edge
entry e(out: tensor[1] i32 out, box: window[1] i32, k: i32) {
  at send no_dep [box] { box[0] = k }
  at receive no_dep [box] { out[0] = box[0] }
}
host (outs: tensor[world, 1] i32 out, k: i32) {
  box_buf = alloc_window [1] i32
  ranks r in 0..world {
    box = window box_buf [1] i32
    dispatch e(outs[r], box, k) device r
  }
}
";

/// Which of 50 launches are right.
fn right_launches(seed: u64) -> Vec<bool> {
    let world = world(1, 1, seed);
    let exe = compile(MISSING_EDGE, &world, false).unwrap();
    let launch = |k: i32| {
        let mut out = [-1];
        exe.launch(&[tensor(&mut out, &[1, 1]), Arg::Int(i64::from(k))]).unwrap();
        assert!([0, k].contains(&out[0]), "{}", out[0]);
        out[0] == k
    };
    (1..=50).map(launch).collect()
}

/// On one core the order of tasks is drawn and nothing else has a say in it.
#[test]
fn a_missing_edge_between_tasks_shows_and_shows_again() {
    if std::env::var_os("PLD_CHAOS").is_none() {
        assert_eq!(right_launches(0), [true; 50], "undisturbed, tasks run in the order of the text");
    }
    for seed in 1..=5 {
        let right = right_launches(seed);
        assert!(right.contains(&true) && right.contains(&false), "seed {seed}: {right:?}");
        assert_eq!(right_launches(seed), right, "seed {seed}");
    }
    assert_ne!(right_launches(1), right_launches(2));
}

/// Each rank sends two rows, works for a while, and reads the rows that it got. `WAIT` is what it waits for before the work.
fn two_rows(wait: &str) -> String {
    TWO_ROWS.replace("WAIT", wait)
}

const TWO_ROWS: &str = "program two_rows
entry e(out: tensor[2] i64 out, box: window[2] i64, sig: window[1] i32, me: i32, k: i64) {
  at exchange {
    next = (me + 1) % world
    for row in 0..2 {
      t = full i64 [1] k
      remote_store t -> box[row] @next
      notify sig[0] @next += 1
    }
    wait sig[0] >= WAIT
    work = var i64 = 1
    for i in 0..100000 { work = (work * 31 + i) % 1000003 }
    out[0] = box[0] + work * 0
    out[1] = box[1]
  }
}
host (outs: tensor[world, 2] i64 out, k: i64) {
  box_buf = alloc_window [2] i64
  sig_buf = alloc_window [1] i32
  ranks r in 0..world {
    box = window box_buf [2] i64
    sig = window sig_buf [1] i32
    dispatch e(outs[r], box, sig, r, k) device r
  }
}
";

/// Number of 50 launches with a wrong result.
fn wrong_launches(text: &str, persistent: bool, seed: u64) -> usize {
    let world = world(2, 1, seed);
    let exe = compile(text, &world, persistent).unwrap();
    let is_wrong = |k: &i64| {
        let mut out = [-1; 4];
        exe.launch(&[tensor(&mut out, &[2, 2]), Arg::Int(*k)]).unwrap();
        out != [*k; 4]
    };
    (1..=50).filter(is_wrong).count()
}

fn assert_shows(text: &str, persistent: bool) {
    let end = Instant::now() + DEADLINE;
    assert!((1..).take_while(|_| Instant::now() < end).any(|seed| wrong_launches(text, persistent, seed) > 0));
}

/// One notify of two is enough for the wait, and the work that follows hides it.
#[test]
fn a_wait_for_too_little_shows() {
    assert_shows(&two_rows("1"), false);
}

/// The signals of the launch before are still there.
#[test]
fn a_signal_of_the_launch_before_shows() {
    assert_shows(&two_rows("2"), true);
}

#[test]
fn the_same_program_with_the_right_wait_is_right() {
    for seed in 1..=10 {
        assert_eq!(wrong_launches(&two_rows("2"), false, seed), 0, "seed {seed}");
        assert_eq!(wrong_launches(&two_rows("2 * k"), true, seed), 0, "seed {seed}");
    }
}
