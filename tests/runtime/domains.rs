//! What is said when a launch fails whose ranks share windows in groups.

use std::sync::Arc;
use std::time::Duration;

use pld::error::{Error, ErrorKind};
use pld::ir;
use pld::runtime::{Arg, CompileOptions, Executable, World, WorldOptions};

use crate::timeouts::without_seconds;

/// Ranks 0 and 1 signal each other, and so do 2 and 3; `peer` is the number of the other one.
const PAIRS: &str = "program pairs
entry swap(sig: window[1] i32, peer: i32, expected: i32) {
  at step {
    notify sig[0] @peer += 1
    wait sig[0] >= expected
  }
}
host (low: i32, high: i32, beyond: i32) {
  low_sig = alloc_window [1] i32
  high_sig = alloc_window [1] i32
  ranks r in 0..2 {
    sig = window low_sig [1] i32
    dispatch swap(sig, 1 - r, low) device r
  }
  ranks r in 2..4 {
    sig = window high_sig [1] i32
    dispatch swap(sig, 3 - r + beyond, select(r == 2, high, 1)) device r
  }
}
";

fn pairs() -> (Arc<World>, Arc<Executable>) {
    let options = WorldOptions { timeout: Duration::from_millis(500), ..WorldOptions::default() };
    let world = World::create(4, &options).unwrap();
    let program = ir::parse::parse(PAIRS, "pairs.pld").unwrap();
    let exe = Executable::compile(&program, &world, &CompileOptions::default()).unwrap();
    (world, exe)
}

fn failed(low: i64, high: i64, beyond: i64) -> Error {
    let (_world, exe) = pairs();
    exe.launch(&[Arg::Int(1), Arg::Int(1), Arg::Int(0)]).unwrap();
    exe.launch(&[Arg::Int(low), Arg::Int(high), Arg::Int(beyond)]).unwrap_err()
}

/// Only the ranks that share the window can be late, whatever the others do; and windows that are passed for the same
/// parameter are told apart.
#[test]
fn who_is_late_in_a_domain() {
    let right = "rank 2 waited ? s for high_sig[0] >= 2 (is 1)
    at step (pairs.pld:5), launch 2 of 'pairs'
    rank 0: has ended launch 2
    rank 1: has ended launch 2
    rank 3: has ended launch 2
    => rank 3 has ended launch 2 of 'pairs' without the missing notify high_sig (pairs.pld:4)";
    assert_eq!(without_seconds(&failed(1, 2, 0).message), right);
    let message = failed(2, 1, 0).message;
    let conclusion = message.lines().last().unwrap();
    assert_eq!(conclusion, "    => all ranks that share the window wait, so none reaches notify low_sig (pairs.pld:4)");
}

#[test]
fn peers_are_checked_against_the_domain() {
    let error = failed(1, 1, 1);
    assert_eq!(error.kind, ErrorKind::OutOfBounds);
    let right = "rank 2: peer 2 is outside the domain of 2 ranks
    notify sig[0] @peer += 1
    at step (pairs.pld:4), launch 2 of 'pairs'";
    assert_eq!(error.message, right);
}
