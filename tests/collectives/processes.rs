//! Ranks that are processes.

use std::time::Duration;

use pld::error::{ErrorKind, Result};
use pld::runtime::{CompileOptions, WorldOptions};
use pld_test_ranks::{Job, Outcome, Rank};

use crate::calls::{Form, case};
use crate::join::Join;
use crate::numbers::DTYPES;
use crate::{cases, matrix, mismatches};

pub type Scenario = fn(&Rank) -> Result<String>;

pub const SCENARIOS: &[(&str, Scenario)] =
    &[("matrix", matrix_rank), ("rounds", rounds_rank), ("mismatch", mismatch_rank), ("leave", leave_rank)];

#[test]
fn all_kinds() {
    for nranks in [2, 3] {
        all_kinds_in(Job::new(), nranks);
    }
}

/// What each rank leaves is right, and the same on all ranks where it must be.
pub fn all_kinds_in(mut job: Job, nranks: u32) {
    job.spawn_world("matrix", nranks);
    let outcomes = job.outcomes();
    outcomes.iter().for_each(|outcome| assert_eq!(outcome.done(), outcomes[0].done()));
}

fn matrix_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let (rank, nranks) = (me.rank() as usize, me.nranks());
    let mut sums: Vec<u8> = Vec::new();
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for count in [1, 515] {
            let form = if n % 2 == 0 { Form::Task } else { Form::Host { cores: 2 } };
            let case = case(&matrix::calls(nranks, dtype, count), nranks, form, n < 3);
            let executable = case.compile(&world, &CompileOptions { persistent: n < 2, ..CompileOptions::default() });
            for _ in 0..2 {
                let left = case.launched_as(&executable, rank..rank + 1)?;
                for (tensor, left) in case.tensors.iter().zip(&left) {
                    case.compare_part(tensor, rank, &left[0], "in processes");
                    if tensor.tolerance > 0.0 && tensor.after.iter().all(|after| *after == tensor.after[0]) {
                        sums.extend(&left[0]);
                    }
                }
            }
        }
    }
    Ok(format!("{sums:?}"))
}

#[test]
fn barriers_and_sums() {
    barriers_and_sums_in(Job::new(), 4);
}

pub fn barriers_and_sums_in(mut job: Job, nranks: u32) {
    job.spawn_world("rounds", nranks);
    assert_eq!(job.outcomes(), vec![Outcome::Done("fine".into()); nranks as usize]);
}

fn rounds_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions { chaos_seed: 5, ..WorldOptions::default() })?;
    let (rank, nranks) = (me.rank() as usize, me.nranks());
    for case in [cases::barriers(nranks, 201), cases::one_int(nranks, 2, 200)] {
        let executable = case.compile(&world, &CompileOptions::default());
        for _ in 0..5 {
            let left = case.launched_as(&executable, rank..rank + 1)?;
            case.compare_part(&case.tensors[0], rank, &left[0][0], "in processes");
        }
    }
    Ok("fine".into())
}

/// C28: all ranks are told the same.
#[test]
fn c28_all_ranks_are_told_of_a_mismatch() {
    mismatch_in(Job::new());
}

pub fn mismatch_in(mut job: Job) {
    job.spawn_world("mismatch", 4);
    let outcomes = job.outcomes();
    for outcome in &outcomes {
        assert_eq!(outcome, &outcomes[0]);
        let message = outcome.failed("Mismatch");
        let calls = ["allreduce_max_1x128_f32_mesh (case.pld:9)", "allreduce_sum_1x100_f32_mesh (case.pld:11)"];
        assert!(calls.iter().all(|call| message.contains(call)), "{message}");
    }
}

fn mismatch_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let (first, second) = ("allreduce max row mode mesh signal s", "allreduce sum part mode mesh signal s");
    let case = mismatches::case(first, second, &[1, 2]);
    let executable = case.compile(&world, &CompileOptions::default());
    let rank = me.rank() as usize;
    case.launched_as(&executable, rank..rank + 1).map(|_| "no error".into())
}

/// C48: a rank goes away while others are in a barrier.
#[test]
fn c48_a_rank_goes_away() {
    let outcomes = Job::start("leave", 3).outcomes();
    assert_eq!(outcomes[1], Outcome::Exited(3));
    for rank in [0, 2] {
        assert!(outcomes[rank].failed("PeerLost").contains("rank 1"), "{:?}", outcomes[rank]);
    }
}

fn leave_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions { timeout: Duration::from_secs(20), ..WorldOptions::default() })?;
    let rank = me.rank() as usize;
    let case = cases::barriers(me.nranks(), 3);
    let executable = case.compile(&world, &CompileOptions::default());
    case.launched_as(&executable, rank..rank + 1)?;
    if rank == 1 {
        std::process::exit(3);
    }
    let error = case.launched_as(&executable, rank..rank + 1).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PeerLost);
    Err(error)
}
