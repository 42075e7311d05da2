//! Tests of worlds and launches: ranks that are threads, ranks that are processes, and everything that can go wrong.
#![allow(missing_docs, reason = "a test is its own documentation")]

mod arguments;
mod combines;
mod dispatches;
mod documents;
mod domains;
mod losses;
mod pools;
mod processes;
mod programs;
mod ranks;
mod recovery;
mod requirements;
mod residents;
mod shaking;
mod tasks;
mod threads;
mod timeouts;
mod tracing;

use ranks::Scenario;

/// All scenarios of rank processes, by name.
fn scenario(name: &str) -> Scenario {
    let tables = [
        processes::SCENARIOS,
        losses::SCENARIOS,
        timeouts::SCENARIOS,
        recovery::SCENARIOS,
        pools::SCENARIOS,
        residents::SCENARIOS,
        tasks::SCENARIOS,
        tracing::SCENARIOS,
    ];
    let found = tables.into_iter().flatten().find(|(candidate, _)| *candidate == name);
    found.unwrap_or_else(|| panic!("no scenario {name}")).1
}

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|name, rank| scenario(name)(rank).map_err(|e| (format!("{:?}", e.kind), e.message)));
}
