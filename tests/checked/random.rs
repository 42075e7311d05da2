//! Random programs: a schedule can be run again, and where the order of things makes no difference, compiled code does
//! what the interpreter says.

use half::f16;
use pld::check::{Arg, Options, Schedule, check, run};
use pld::ir::extent::Known;
use pld::ir::print::print;
use pld::ir::program::Param;
use pld::ir::{Atomic, Code, DType, Extent, OpKind, Program, ReduceOp, Severity};
use pld::verify::verify;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::exchanges::{self, inputs};
use crate::{compiled, programs};

/// The dimension of the programs.
const DIMS: &[i64] = &[3];

/// The verifier has nothing against a program, and all its sizes have a value.
fn is_valid(program: &Program, nranks: u32) -> bool {
    let known = Known { world: Some(nranks.into()), dims: DIMS };
    let extents = &program.extents;
    (0..extents.len() as u32).all(|e| extents.eval(Extent::from_u32(e), known).is_some())
        && verify(program, Some(nranks)).iter().all(|finding| finding.severity == Severity::Warning)
}

/// Waits that no notify of the program is for: such a program is compiled in a pool only.
fn waits_in_vain(program: &Program, nranks: u32) -> bool {
    verify(program, Some(nranks)).iter().any(|finding| finding.code == Code("PLD-V046"))
}

/// Compiled code may add up floats in another order than the interpreter.
fn rounds_in_any_order(program: &Program) -> bool {
    program.ops.values().any(|op| {
        matches!(
            op.kind,
            OpKind::Reduce { op: ReduceOp::Sum, .. }
                | OpKind::Put { atomic: Atomic::Add, .. }
                | OpKind::RemoteStore { atomic: Atomic::Add, .. }
        )
    })
}

/// Equal numbers; any two NaNs are equal.
fn same(program: &Program, a: &[Arg], b: &[Arg]) -> bool {
    let host = program.host.as_ref().expect("a host driver");
    let same_bytes = |dtype: DType, a: &[u8], b: &[u8]| {
        let nan = |bytes: &[u8]| match dtype {
            DType::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
            DType::F16 => f16::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
            _ => false,
        };
        let size = dtype.size() as usize;
        a.chunks(size).zip(b.chunks(size)).all(|(a, b)| a == b || nan(a) && nan(b))
    };
    host.params.iter().zip(a.iter().zip(b)).all(|(param, args)| match (*param, args) {
        (Param::Tensor(tensor), (Arg::Ranked(a), Arg::Ranked(b))) => {
            a.iter().zip(b).all(|(a, b)| same_bytes(program.tensors[tensor].dtype, a, b))
        }
        (Param::Tensor(tensor), (Arg::Shared(a), Arg::Shared(b))) => same_bytes(program.tensors[tensor].dtype, a, b),
        (_, (a, b)) => a == b,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(4),
        ..ProptestConfig::default()
    })]

    #[test]
    fn schedules_replay(choices in proptest::collection::vec(any::<u8>(), 0..300), nranks in 1u32..4) {
        let program = programs::program(&choices);
        prop_assume!(is_valid(&program, nranks));
        let args = inputs(&program, nranks, DIMS, 1, exchanges::any);
        let options = Options { nranks, dims: DIMS, args: &args, schedules: 8, ..Options::default() };
        let report = check(&program, &options, &mut || true).unwrap();
        for finding in report.findings {
            let again = run(&program, &options, &finding.schedule).unwrap();
            let codes: Vec<_> = again.findings.iter().map(|diagnostic| diagnostic.code).collect();
            prop_assert!(
                codes.contains(&finding.diagnostic.code),
                "{} is not found again by {}\n{}", finding.diagnostic, finding.schedule, print(&program)
            );
        }
    }

    #[test]
    fn compiled_code_does_the_same(choices in proptest::collection::vec(any::<u8>(), 0..300), nranks in 1u32..3) {
        let program = programs::program(&choices);
        prop_assume!(is_valid(&program, nranks) && !waits_in_vain(&program, nranks) && !rounds_in_any_order(&program));
        let args = inputs(&program, nranks, DIMS, 1, exchanges::any);
        let options = Options { nranks, dims: DIMS, args: &args, schedules: 8, ..Options::default() };
        // With a race or a wait in vain there is nothing to compare.
        if check(&program, &options, &mut || true).unwrap().findings.is_empty() {
            let compiled = compiled::launch(&program, nranks, false, DIMS, &args, None);
            let outcome = run(&program, &options, &Schedule::Random(99)).unwrap();
            prop_assert!(same(&program, &outcome.args, &compiled), "{}", print(&program));
        }
    }
}
