//! Kernels compute what the interpreter says, or report the mistake that it finds.

use pld::check::{self, Fill, Schedule, inputs};
use pld::codegen::pto::{Options, Target};
use pld::ir::Program;
use pld::ir::print::op_text;

use crate::kernels::{Kernels, Outcome};
use crate::programs;

/// A program on a target; unchecked if that is said.
fn assert_same(name: &str, text: &str, nranks: u32, target: Target, checked: bool) {
    let program = programs::parsed(text, nranks).unwrap_or_else(|| panic!("{name} is not for {nranks} ranks"));
    run(name, &program, &Options { target, nranks, checked });
}

fn run(name: &str, program: &Program, options: &Options) {
    let (expanded, layout) = programs::prepared(program, options).expect("collectives can be written out");
    let kernels = Kernels::build(name, &expanded, &layout, options);
    let given = inputs(program, options.nranks, 1, Fill::Iota, 0, &[]).expect("arguments can be made up");
    let checks =
        check::Options { nranks: options.nranks, dims: &given.dims, args: &given.args, ..check::Options::default() };
    let meant = check::run(&expanded, &checks, &Schedule::Choices(Vec::new())).expect("the interpreter runs");
    let outcome = kernels.launch(&given.args, &given.dims);
    match &meant.fault {
        Some(fault) => assert_fault(name, &expanded, &kernels, fault, &outcome),
        None => {
            assert!(outcome.reports.is_empty(), "{name}: {:?}", outcome.reports);
            assert!(outcome.exits.iter().all(|&exit| exit == 0), "{name}: {:?}", outcome.exits);
            assert!(meant.done, "{name}: the interpreter does not come to an end");
            assert_memory(name, &meant, &outcome);
        }
    }
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
    let is_meant = |report: &&crate::kernels::Report| {
        let site = &kernels.module.sites[report.site as usize];
        (&*site.text, report.kind) == (&*op_text(program, fault.op), fault.kind as u32)
            && (fault.dim == u32::MAX || (fault.dim, fault.operand) == (report.dim, report.operand))
            && report.offsets.starts_with(&fault.offsets)
            && report.extents.starts_with(&fault.extents)
    };
    let found = failed.clone().any(|report| is_meant(&report));
    assert!(found, "{name}: {fault:?} is not among {:?}", failed.collect::<Vec<_>>());
}

macro_rules! runs {
    ($($test:ident: $file:literal on $nranks:literal $target:ident $($word:ident)?;)*) => {$(
        #[test]
        fn $test() {
            let checked = !["unchecked"].contains(&stringify!($($word)?));
            let text = include_str!(concat!("../", $file, ".pld"));
            assert_same(stringify!($test), text, $nranks, Target::$target, checked);
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
