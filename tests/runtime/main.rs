//! Tests of worlds and launches: ranks that are threads, ranks that are processes, and everything that can go wrong.
#![allow(missing_docs, reason = "a test is its own documentation")]

mod arguments;
mod losses;
mod processes;
mod programs;
mod ranks;
mod threads;
mod timeouts;

use ranks::Scenario;

/// All scenarios of rank processes, by name.
fn scenario(name: &str) -> Scenario {
    let tables = [processes::SCENARIOS, losses::SCENARIOS, timeouts::SCENARIOS];
    let found = tables.into_iter().flatten().find(|(candidate, _)| *candidate == name);
    found.unwrap_or_else(|| panic!("no scenario {name}")).1
}
