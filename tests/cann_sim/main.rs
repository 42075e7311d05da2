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

/// Every definition agrees with the vendor's headers, where `CANN_INCLUDE` says that they are (colons between directories).
#[test]
fn definitions_are_those_of_the_vendors_headers() {
    let Some(include) = std::env::var_os("CANN_INCLUDE") else { return };
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut compiler = std::process::Command::new("g++");
    compiler.args(["-std=c++20", "-w", "-fsyntax-only", "-DCANN_SIM_VENDOR_HEADERS", "-I"]).arg(tests.join("pto_sim"));
    for directory in std::env::split_paths(&include) {
        compiler.arg("-I").arg(directory);
    }
    let sources = std::fs::read_dir(tests.join("cann_sim")).unwrap().map(|entry| entry.unwrap().path());
    let checked = compiler.args(sources.filter(|path| path.extension().is_some_and(|e| e == "cpp"))).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
