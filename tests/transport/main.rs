//! Tests of the transports: one suite that all pass, and for `shm` everything that can go wrong
//! between processes, for `hccl` what cards do.

mod bootstrap;
mod conformance;
mod deaths;
mod hccl;
mod hosts;
mod network;
mod ranks;
mod space;

use ranks::Scenario;

/// All scenarios by name.
fn scenario(name: &str) -> Scenario {
    let tables = [bootstrap::SCENARIOS, conformance::SCENARIOS, deaths::SCENARIOS, hosts::SCENARIOS, space::SCENARIOS];
    let tables = tables.iter().chain(hccl::SCENARIOS).chain(network::SCENARIOS);
    let found = tables.copied().flatten().find(|(candidate, _)| *candidate == name);
    found.unwrap_or_else(|| panic!("no scenario {name}")).1
}

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|name, rank| scenario(name)(rank).map_err(|e| (format!("{:?}", e.kind), e.message)));
}
