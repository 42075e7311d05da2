//! Tests of the simulated CANN: what it does is what the documentation of CANN says, and what a card would not forgive is an
//! error here. Each scenario runs in processes of its own, because a process has one CANN.

mod acl;
mod comm;
mod kernels;
mod memory;
mod orders;
mod streams;
#[path = "../support/toolkit.rs"]
mod toolkit;

use acl::Scenario;

/// All scenarios by name.
fn scenario(name: &str) -> Scenario {
    let tables = [comm::SCENARIOS, kernels::SCENARIOS, memory::SCENARIOS, orders::SCENARIOS, streams::SCENARIOS];
    let found = tables.into_iter().flatten().find(|(candidate, _)| *candidate == name);
    found.unwrap_or_else(|| panic!("no scenario {name}")).1
}

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|name, rank| {
        scenario(name)(rank);
        Ok(acl::report().to_string())
    });
}
