//! Collectives as they are written out: right in every order, and nothing in them is idle.
#![allow(missing_docs, reason = "a test is its own documentation")]

mod programs;

use pld::check::{Arg, Explore, Memory, Options, Schedule, check, run};
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::verify::verify;

use programs::{CALLS, Case, Kind, Site};

const SITES: [Site; 4] = [Site::Task, Site::Tasks, Site::Host(1), Site::Host(2)];

fn cases(counts: &[usize], worlds: &[usize]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &(kind, mode, dtype) in CALLS {
        // A barrier touches nothing, so tasks around it would not be ordered with it.
        for site in SITES.into_iter().filter(|&site| (kind, site) != (Kind::Barrier, Site::Tasks)) {
            for &count in counts {
                cases.extend(worlds.iter().map(|&nranks| Case { kind, mode, site, count, nranks, dtype }));
            }
        }
    }
    cases
}

/// Explores a case, and compares its results in one schedule with what it means.
fn test(case: &Case, options: Options) {
    let launches = options.launches as usize;
    let (program, args) = (case.program(), case.args(launches));
    let options = Options { nranks: case.nranks as u32, args: &args, ..options };
    let how = || format!("{case:?}, {} launches, {:?}, persistent: {}", launches, options.memory, options.persistent);
    let report = check(&program, &options, &mut || true).unwrap_or_else(|e| panic!("{}: {e}", how()));
    if let Some(finding) = report.findings.first() {
        let expanded = expand_collectives(&program, &Target::new(options.nranks)).expect("it expands");
        panic!("{}\n{}\n{}", how(), finding.diagnostic, pld::ir::print::print(&expanded));
    }
    assert!(report.complete || options.explore != Explore::Exhaustive, "{}: {} schedules", how(), report.schedules);
    let outcome = run(&program, &options, &Schedule::Choices(Vec::new())).expect("it runs");
    assert!(outcome.done, "{}", how());
    assert_eq!(outcome.args[1], Arg::Ranked(case.results(launches, options.persistent)), "{}", how());
}

#[test]
fn expansions_are_sound_programs() {
    for case in cases(&[0, 1, 5, 40], &[1, 2, 3, 4]).into_iter().filter(|c| c.nranks > 1 || c.kind != Kind::Broadcast) {
        let (program, nranks) = (case.program(), case.nranks as u32);
        let findings = verify(&program, Some(nranks));
        assert!(findings.is_empty(), "{case:?}: {}\n{}", findings[0], case.text());
        let expanded = expand_collectives(&program, &Target::new(nranks)).expect("it expands");
        let findings = verify(&expanded, Some(nranks));
        assert!(findings.is_empty(), "{case:?}: {}\n{}", findings[0], pld::ir::print::print(&expanded));
    }
}

fn explore(memory: Memory, persistent: bool) {
    for case in cases(&[0, 1, 5, 40], &[2, 3, 4]) {
        test(&case, Options { launches: 2, persistent, memory, schedules: 4, ..Options::default() });
    }
}

#[test]
fn calls_are_right_in_any_order() {
    explore(Memory::Host, true);
}

#[test]
fn calls_are_right_in_any_order_where_stores_do_not_drain() {
    explore(Memory::Npu, true);
}

#[test]
fn calls_are_right_on_windows_that_begin_with_zeros() {
    explore(Memory::Host, false);
}
