//! Worlds of several hosts: how they are joined, and what happens when hosts, links and ranks fail. Everything runs on
//! hosts that are only pretended and, where that is possible, in network namespaces.
#![allow(missing_docs, reason = "a test is its own documentation")]

#[path = "../support/join.rs"]
mod join;
mod joining;
mod links;
mod losses;
#[allow(dead_code, reason = "each test uses some of it")]
#[path = "../runtime/programs.rs"]
mod programs;
mod ranks;
mod reports;

use pld_test_ranks::namespaces_available;
use ranks::Scenario;

/// Tests that take how ranks are spread: two a host, on two hosts.
macro_rules! on_hosts {
    ($($name:ident)*) => {
        mod pretended {
            $(
                #[test]
                fn $name() {
                    super::$name(pld_test_ranks::Spread::Pairs);
                }
            )*
        }

        mod namespaces {
            $(
                #[test]
                fn $name() {
                    if pld_test_ranks::namespaces_available() {
                        super::$name(pld_test_ranks::Spread::Namespaces { ranks: 2 });
                    }
                }
            )*
        }
    };
}
pub(crate) use on_hosts;

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|name, rank| {
        let mut scenarios = [joining::SCENARIOS, losses::SCENARIOS, reports::SCENARIOS].into_iter().flatten();
        let found: Option<&(&str, Scenario)> = scenarios.find(|(candidate, _)| *candidate == name);
        let scenario = found.unwrap_or_else(|| panic!("no scenario {name}")).1;
        scenario(rank).map_err(|e| (format!("{:?}", e.kind), e.message))
    });
}

/// Says whether the tests in namespaces run here; nextest shows it.
#[test]
fn namespaces_are_tested() {
    namespaces_available();
}
