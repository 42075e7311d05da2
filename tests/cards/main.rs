//! Launches on simulated cards: what goes wrong there and what is said about it, recovery, streams of the engine, its
//! functions, pools and domains. Vectors and exchanges on cards are with the other transports' tests.
#![allow(missing_docs, reason = "a test is its own documentation")]

#[allow(dead_code, reason = "each test uses some of it")]
#[path = "../support/cards.rs"]
mod cards;
#[path = "../support/join.rs"]
mod join;

mod failures;
mod programs;
mod streams;
mod tasks;
mod unsupported;

use pld::error::Result;
use pld_test_ranks::Rank;

type Scenario = fn(&Rank) -> Result<String>;

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    let tables = [failures::SCENARIOS, streams::SCENARIOS, tasks::SCENARIOS, unsupported::SCENARIOS];
    pld_test_ranks::rank_process(|name, rank| {
        let found = tables.into_iter().flatten().find(|(candidate, _)| *candidate == name);
        let scenario = found.unwrap_or_else(|| panic!("no scenario {name}")).1;
        scenario(rank).map_err(|e| (format!("{:?}", e.kind), e.message))
    });
}

/// Every rank says the same.
fn all_say(scenario: &str, nranks: u32, right: &str) {
    for outcome in cards::job(scenario, nranks).outcomes() {
        assert_eq!(outcome.done(), right);
    }
}
