//! Collectives as they are written out: right in every order, and no signal in them is idle.
#![allow(missing_docs, reason = "a test is its own documentation")]

mod meetings;
mod mutants;
mod programs;
#[path = "../support/statements.rs"]
mod text;

use pld::check::{Arg, Explore, Memory, Options, Schedule, check, run};
use pld::ir::print::print;
use pld::ir::{Program, Severity};
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::verify::verify;

use programs::{CALLS, CALLS_OF_HOSTS, Case, Kind, Site};

const SITES: [Site; 4] = [Site::Task, Site::Tasks, Site::Host(1), Site::Host(2)];

fn cases(counts: &[usize], nranks: usize, turns: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for &(kind, mode, dtype) in CALLS {
        cases.extend(of_call((kind, mode, dtype), counts, nranks, nranks, turns));
    }
    cases
}

/// The same on hosts.
fn cases_of_hosts(counts: &[usize], nranks: usize, ranks_per_host: usize, turns: usize) -> Vec<Case> {
    CALLS_OF_HOSTS.iter().flat_map(|&call| of_call(call, counts, nranks, ranks_per_host, turns)).collect()
}

fn of_call(
    (kind, mode, dtype): (Kind, &'static str, &'static str),
    counts: &[usize],
    nranks: usize,
    ranks_per_host: usize,
    turns: usize,
) -> Vec<Case> {
    let case = |site, count| Case { kind, mode, site, count, nranks, ranks_per_host, dtype, turns };
    // A barrier touches nothing, so tasks around it would not be ordered with it.
    let sites = SITES.into_iter().filter(|&site| (kind, site) != (Kind::Barrier, Site::Tasks));
    sites.flat_map(|site| counts.iter().map(move |&count| case(site, count))).collect()
}

fn target(case: &Case) -> Target {
    Target::on_hosts(case.nranks as u32, case.ranks_per_host as u32)
}

fn written_out(case: &Case) -> Program {
    let program = case.program();
    expand_collectives(&program, &target(case)).expect("it expands").into_owned()
}

/// Explores a case, and compares its results in one schedule with what it means.
fn test(case: &Case, options: Options) {
    let launches = options.launches as usize;
    let (program, args) = (written_out(case), case.args(launches));
    let options = Options { nranks: case.nranks as u32, args: &args, ..options };
    let how = || format!("{case:?}, {} launches, {:?}, persistent: {}", launches, options.memory, options.persistent);
    let report = check(&program, &options, &mut || true).unwrap_or_else(|e| panic!("{}: {e}", how()));
    if let Some(finding) = report.findings.first() {
        panic!("{}\n{}\n{}", how(), finding.diagnostic, print(&written_out(case)));
    }
    assert!(report.complete || options.explore != Explore::Exhaustive, "{}: {} schedules", how(), report.schedules);
    let outcome = run(&program, &options, &Schedule::Choices(Vec::new())).expect("it runs");
    assert!(outcome.done, "{}", how());
    assert_eq!(outcome.args[1], Arg::Ranked(case.results(launches, options.persistent)), "{}", how());
}

#[test]
fn they_are_sound_programs() {
    for nranks in 1..=4 {
        // Of one rank, there is no root 1.
        let possible = |case: &Case| nranks > 1 || case.kind != Kind::Broadcast;
        let of_hosts = cases_of_hosts(&[0, 5, 40], nranks, nranks.div_ceil(2), 3);
        for case in cases(&[0, 1, 5, 40], nranks, 3).into_iter().chain(of_hosts).filter(possible) {
            let findings = verify(&case.program(), Some(nranks as u32));
            assert!(findings.is_empty(), "{case:?}: {}\n{}", findings[0], case.text());
            let program = written_out(&case);
            let findings = verify(&program, Some(nranks as u32));
            let error = findings.iter().find(|finding| finding.severity == Severity::Error);
            assert!(error.is_none(), "{case:?}: {}\n{}", error.expect("it is some"), print(&program));
        }
    }
}

fn explore(cases: &[Case], memory: Memory, persistent: bool) {
    for case in cases {
        test(case, Options { launches: 2, persistent, memory, schedules: 3, ..Options::default() });
    }
}

#[test]
fn two_ranks_are_right_in_any_order() {
    explore(&cases(&[0, 1, 5, 40, 150], 2, 3), Memory::Host, true);
}

#[test]
fn three_ranks_are_right_in_any_order() {
    explore(&cases(&[0, 5, 40, 150], 3, 3), Memory::Host, true);
}

#[test]
fn four_ranks_are_right_in_any_order() {
    explore(&cases(&[5, 40], 4, 2), Memory::Host, true);
}

#[test]
fn segments_and_parts_are_right_in_any_order() {
    let of = |kind, mode, dtype, count, nranks| Case {
        kind,
        mode,
        site: Site::Host(2),
        count,
        nranks,
        ranks_per_host: nranks,
        dtype,
        turns: 2,
    };
    let segments = [
        of(Kind::Allreduce, "ring", "i32", 300, 3),
        of(Kind::Allreduce, "ring", "f16", 300, 3),
        of(Kind::Allreduce, "two_phase", "i32", 300, 3),
        of(Kind::Allreduce, "ring", "i32", 150, 2),
    ];
    explore(&segments, Memory::Host, true);
    // More than is staged, or combined, at once.
    let parts = [
        (Kind::Allreduce, "mesh", "i32", 17000),
        (Kind::Allreduce, "ring", "f16", 33000),
        (Kind::Allreduce, "two_phase", "i32", 9000),
        (Kind::ReduceScatter, "mesh", "i32", 8500),
        (Kind::Broadcast, "mesh", "i32", 17000),
        (Kind::Allgather, "mesh", "i32", 17000),
        (Kind::AllToAll, "mesh", "i32", 8500),
    ];
    for (kind, mode, dtype, count) in parts {
        let case = Case { kind, mode, site: Site::Task, count, nranks: 2, ranks_per_host: 2, dtype, turns: 1 };
        test(&case, Options { launches: 2, persistent: true, schedules: 2, ..Options::default() });
    }
}

#[test]
fn ranks_of_hosts_are_right_in_any_order() {
    explore(&cases_of_hosts(&[0, 1, 5, 150], 4, 2, 3), Memory::Host, true);
    explore(&cases_of_hosts(&[5, 150], 2, 1, 3), Memory::Host, true);
    explore(&cases_of_hosts(&[5, 150], 6, 2, 2), Memory::Host, true);
    explore(&cases_of_hosts(&[40], 6, 3, 2), Memory::Host, false);
}

#[test]
fn parts_for_hosts_are_right_in_any_order() {
    // Two steps between three hosts, and more than is staged at once.
    for (kind, dtype, count, nranks, ranks_per_host) in [
        (Kind::Allreduce, "i32", 4500, 3, 1),
        (Kind::Allreduce, "f16", 9000, 6, 2),
        (Kind::Allreduce, "i32", 530_000, 4, 2),
        (Kind::ReduceScatter, "i32", 263_000, 2, 1),
        (Kind::Allgather, "i32", 525_000, 2, 1),
        (Kind::Broadcast, "i32", 1_049_000, 2, 1),
    ] {
        let mode = "hierarchical";
        let case = Case { kind, mode, site: Site::Task, count, nranks, ranks_per_host, dtype, turns: 1 };
        test(&case, Options { launches: 2, persistent: true, schedules: 2, ..Options::default() });
    }
}

#[test]
fn they_are_right_where_stores_do_not_drain() {
    explore(&cases(&[1, 40], 3, 2), Memory::Npu, true);
    explore(&cases_of_hosts(&[40], 4, 2, 2), Memory::Npu, true);
}

#[test]
fn they_are_right_on_windows_that_begin_with_zeros() {
    explore(&cases(&[1, 40], 2, 2), Memory::Host, false);
}

#[test]
fn they_are_right_in_every_order() {
    let every = |cases: &[Case]| {
        for case in cases {
            test(case, Options { explore: Explore::Exhaustive, schedules: 20_000, ..Options::default() });
        }
    };
    every(&cases(&[1], 2, 2));
    every(&cases(&[1], 3, 1));
    every(&cases_of_hosts(&[1], 2, 1, 2));
}

#[test]
fn they_are_right_where_ranks_do_not_compare_what_they_call() {
    for case in cases(&[1, 40], 3, 2).into_iter().chain(cases_of_hosts(&[40], 4, 2, 2)) {
        let target = Target { checked: false, ..target(&case) };
        let program = case.program();
        let program = expand_collectives(&program, &target).expect("it expands");
        let args = case.args(2);
        let options = Options {
            nranks: case.nranks as u32,
            launches: 2,
            persistent: true,
            schedules: 3,
            args: &args,
            ..Options::default()
        };
        let report = check(&program, &options, &mut || true).expect("it can be run");
        assert!(report.findings.is_empty(), "{case:?}: {}\n{}", report.findings[0].diagnostic, print(&program));
    }
}
