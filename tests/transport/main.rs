//! Tests of the transports: one suite that all pass, and for `shm` everything that can go wrong between processes.

mod bootstrap;
mod conformance;
mod deaths;
mod ranks;
mod space;

use ranks::Scenario;

/// All scenarios by name.
fn scenario(name: &str) -> Scenario {
    let tables = [bootstrap::SCENARIOS, conformance::SCENARIOS, deaths::SCENARIOS, space::SCENARIOS];
    let found = tables.into_iter().flatten().find(|(candidate, _)| *candidate == name);
    found.unwrap_or_else(|| panic!("no scenario {name}")).1
}
