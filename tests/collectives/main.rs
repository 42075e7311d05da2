//! Collectives: what they leave, on any number of ranks, for any count, type and mode, in any order.
#![allow(missing_docs, reason = "a test is its own documentation")]

mod calls;
#[allow(dead_code, reason = "each test uses some of it")]
#[path = "../support/cards.rs"]
mod cards;
mod case;
mod cases;
mod groups;
mod hosts;
#[path = "../support/join.rs"]
mod join;
mod levels;
mod matrix;
mod mismatches;
mod numbers;
mod on_cards;
mod processes;
mod programs;
mod rounds;
mod rows;
mod vectors;

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|name, rank| {
        let mut scenarios = processes::SCENARIOS.iter().chain(on_cards::SCENARIOS);
        let found = scenarios.find(|(candidate, _)| *candidate == name);
        let scenario = found.unwrap_or_else(|| panic!("no scenario {name}")).1;
        scenario(rank).map_err(|e| (format!("{:?}", e.kind), e.message))
    });
}
