//! Kernels compute what the interpreter says, or report the mistake that it finds.

use pld::check::{self, Fill, Schedule, inputs};
use pld::codegen::pto::{Export, Options, Target, export};
use pld::error::{ErrorKind, Result};
use pld::ir::Program;
use pld::ir::print::op_text;

use crate::kernels::{Kernels, Outcome, Report};
use crate::programs;
use crate::random_scalars;
use crate::random_transfers;
use crate::ranks::Arg;

/// The program with arguments that are made up.
fn run(name: &str, text: &str, options: &Options) {
    let nranks = options.nranks;
    let program = programs::parsed(text, nranks).unwrap_or_else(|| panic!("{name} is not for {nranks} ranks"));
    let given = inputs(&program, nranks, 1, Fill::Iota, 0, &[]).expect("arguments can be made up");
    let arg = |arg| match arg {
        check::Arg::Ranked(parts) => Arg::Ranked(parts),
        check::Arg::Shared(bytes) => Arg::Ranked(vec![bytes; nranks as usize]),
        check::Arg::Bits(bits) => Arg::Bits(bits),
    };
    let args: Vec<Arg> = given.args.into_iter().map(arg).collect();
    assert_same(name, &program, options, &args, &given.dims).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Runs a program both ways: the same memory, or the same mistake.
///
/// Errors: what the target cannot do.
fn assert_same(name: &str, program: &Program, options: &Options, args: &[Arg], dims: &[i64]) -> Result<()> {
    let Export { program, layout, module, .. } = export(program, options)?;
    let kernels = Kernels::build(name, &program, &layout, module, options);
    let arg = |arg: &Arg| match arg {
        Arg::Ranked(parts) => check::Arg::Ranked(parts.clone()),
        Arg::Bits(bits) => check::Arg::Bits(*bits),
    };
    let given: Vec<check::Arg> = args.iter().map(arg).collect();
    let checks = check::Options { nranks: options.nranks, dims, args: &given, ..check::Options::default() };
    let meant = check::run(&program, &checks, &Schedule::Choices(Vec::new())).expect("the interpreter runs");
    let outcome = kernels.launch(args, dims);
    match &meant.fault {
        Some(fault) => assert_fault(name, &program, &kernels, fault, &outcome),
        None => {
            assert!(outcome.reports.is_empty(), "{name}: {:?}", outcome.reports);
            assert!(outcome.exits.iter().all(|&exit| exit == 0), "{name}: {:?}", outcome.exits);
            assert!(meant.done, "{name}: the interpreter does not come to an end");
            assert_memory(name, &meant, &outcome);
        }
    }
    Ok(())
}

fn assert_memory(name: &str, meant: &check::Outcome, outcome: &Outcome) {
    for (rank, (meant, got)) in meant.windows.iter().zip(&outcome.windows).enumerate() {
        let differs = meant.iter().zip(got).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{name}: windows of rank {rank} differ at this byte");
    }
    for (index, (meant, got)) in meant.args.iter().zip(&outcome.args).enumerate() {
        let check::Arg::Ranked(parts) = meant else { continue };
        for (rank, (meant, got)) in parts.iter().zip(got).enumerate() {
            let differs = meant.iter().zip(got).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{name}: argument {index} of rank {rank} differs at this byte");
        }
    }
}

fn assert_fault(name: &str, program: &Program, kernels: &Kernels, fault: &check::Fault, outcome: &Outcome) {
    let failed = outcome.reports.iter().filter(|report| report.state == 1);
    let is_meant = |report: &Report| {
        let site = &kernels.module.sites[report.site as usize];
        (&*site.text, report.kind) == (&*op_text(program, fault.op), fault.kind as u32)
            && (fault.dim == u32::MAX || (fault.dim, fault.operand) == (report.dim, report.operand))
            && report.offsets.starts_with(&fault.offsets)
            && report.extents.starts_with(&fault.extents)
    };
    let found = failed.clone().any(is_meant);
    assert!(found, "{name}: {fault:?} is not among {:?}", failed.collect::<Vec<_>>());
}

macro_rules! runs {
    ($($test:ident: $file:literal on $nranks:literal $target:ident $($word:ident)?;)*) => {$(
        #[test]
        fn $test() {
            let checked = stringify!($($word)?) != "unchecked";
            let text = include_str!(concat!("../", $file, ".pld"));
            run(stringify!($test), text, &Options { target: Target::$target, nranks: $nranks, checked });
        }
    )*};
}

runs! {
    put_ring: "conformance/put_ring" on 4 A2A3;
    put_ring_unchecked: "conformance/put_ring" on 4 A5 unchecked;
    put_pipelined: "conformance/put_pipelined" on 3 A5;
    put_atomic: "conformance/put_atomic" on 4 A2A3;
    get_row: "conformance/get_row" on 2 A2A3;
    allreduce_ring: "conformance/allreduce_ring" on 4 A5;
    overlapping_domains: "conformance/overlapping_domains" on 3 A2A3;
    remote_store_two_tasks: "conformance/remote_store_two_tasks" on 2 A2A3;
    notify_tag: "conformance/notify_tag" on 3 A2A3;
    two_phase: "../examples/pld/11_allreduce_collective" on 4 A2A3;
    host_collectives: "../examples/pld/host_collectives" on 3 A2A3;
    task_collectives: "../examples/pld/task_collectives" on 4 A5 unchecked;
    all_to_all_v: "../examples/pld/all_to_all_v" on 3 A2A3;
    dispatch_combine: "../examples/pld/moe_dispatch_combine" on 2 A2A3;
    cp_prefill_exchange: "../examples/pld/cp_prefill_exchange" on 2 A2A3;
    domains: "../examples/pld/domains" on 4 A2A3;
    casts: "filetests/pto/casts" on 2 A2A3;
    casts_a5: "filetests/pto/casts" on 2 A5;
    tiles: "filetests/pto/tiles" on 2 A2A3;
    tiles_a5: "filetests/pto/tiles" on 2 A5;
    scalars: "filetests/pto/scalars" on 2 A2A3;
    scalars_unchecked: "filetests/pto/scalars" on 2 A2A3 unchecked;
    transfers: "filetests/pto/transfers" on 4 A2A3;
    combine: "filetests/pto/combine" on 4 A2A3;
    combine_a5: "filetests/pto/combine" on 4 A5;
    tasks: "filetests/pto/tasks" on 4 A2A3;
}

/// Random choices that a seed determines.
fn choices(seed: u32, count: usize) -> Vec<u32> {
    let step = |&state: &u64| Some(state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    std::iter::successors(Some(u64::from(seed)), step).skip(2).take(count).map(|state| (state >> 33) as u32).collect()
}

/// Random programs, of which a target cannot do some.
fn random(name: &str, seeds: std::ops::Range<u32>, program: impl Fn(u32) -> (Program, Options, Vec<Arg>)) {
    let mut run = 0;
    for seed in seeds {
        let (program, options, args) = program(seed);
        match assert_same(&format!("{name}_{seed}"), &program, &options, &args, &[]) {
            Ok(()) => run += 1,
            Err(error) => assert_eq!(error.kind, ErrorKind::Unsupported, "{name}, seed {seed}: {error}"),
        }
    }
    assert!(run > 3, "{run} of the programs run");
}

#[test]
fn random_transfers() {
    random("transfers", 0..6, |seed| {
        let (program, nranks, args) = random_transfers::transfers(choices(seed, 250));
        let target = if seed % 2 == 0 { Target::A2A3 } else { Target::A5 };
        (program, Options { target, nranks, checked: true }, args)
    });
}

#[test]
fn random_scalars() {
    random("scalars", 0..8, |seed| {
        let program = random_scalars::program(choices(seed, 250));
        (program, Options { target: Target::A2A3, nranks: 1, checked: true }, random_scalars::args())
    });
}
