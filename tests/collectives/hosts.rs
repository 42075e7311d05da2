//! Ranks on several hosts: pretended ones, and network namespaces.

use std::time::Duration;

use pld_test_ranks::{Job, Spread, namespaces_available};

use crate::processes::{all_kinds_in, barriers_and_sums_in, mismatch_in};

/// Far more than it takes ranks that share two CPUs with all others.
const PATIENCE: Duration = Duration::from_secs(300);

fn job(spread: Spread) -> Job {
    Job::over(spread).patient(PATIENCE)
}

#[test]
fn hosts_2_all_kinds() {
    all_kinds_in(job(Spread::Apart), 2);
}

#[test]
fn hosts_3_all_kinds() {
    all_kinds_in(job(Spread::Apart), 3);
}

#[test]
fn hosts_of_pairs_4_all_kinds() {
    all_kinds_in(job(Spread::Pairs), 4);
}

/// Hosts with unequal numbers of ranks.
#[test]
fn hosts_of_pairs_5_all_kinds() {
    all_kinds_in(job(Spread::Pairs), 5);
}

#[test]
fn hosts_barriers_and_sums() {
    barriers_and_sums_in(job(Spread::Apart), 3);
    barriers_and_sums_in(job(Spread::Pairs), 4);
}

#[test]
fn hosts_are_told_of_a_mismatch() {
    mismatch_in(job(Spread::Pairs));
}

#[test]
fn namespaces_2_all_kinds() {
    if namespaces_available() {
        all_kinds_in(job(Spread::Namespaces { ranks: 2 }), 4);
    }
}

#[test]
fn namespaces_4_all_kinds() {
    if namespaces_available() {
        all_kinds_in(job(Spread::Namespaces { ranks: 2 }), 8);
    }
}

#[test]
fn namespaces_barriers_and_sums() {
    if namespaces_available() {
        barriers_and_sums_in(job(Spread::Namespaces { ranks: 2 }), 4);
    }
}
