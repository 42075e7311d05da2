//! The examples, the programs of the documentation, and the exchanges of other tests and benchmarks: the checker finds
//! nothing, and compiled code does what the interpreter says.

use pld::check::{Functions, Memory, Options, Schedule, check, run};

use crate::compiled;
use crate::exchanges::{DOCUMENTS, Kernels, Values, any, document, file, inputs, parsed, routing, sized};

const SCHEDULES: u64 = 100;

/// A program, and how it is meant to be launched.
struct Case {
    name: &'static str,
    text: String,
    persistent: bool,
    dims: &'static [i64],
    values: Values,
    functions: Option<&'static Kernels>,
}

impl Case {
    fn new(name: &'static str, text: String) -> Self {
        Self { name, text, persistent: false, dims: &[], values: any, functions: Some(&Kernels) }
    }

    fn persistent(self) -> Self {
        Self { persistent: true, ..self }
    }

    fn test(&self, nranks: u32) {
        let name = self.name;
        let program = parsed(&self.text, name);
        let launches = if self.persistent { 3 } else { 2 };
        let args = inputs(&program, nranks, self.dims, launches, self.values);
        let (persistent, dims) = (self.persistent, self.dims);
        let options = Options {
            nranks,
            launches,
            persistent,
            schedules: SCHEDULES,
            dims,
            args: &args,
            functions: self.functions.map(|functions| functions as &dyn Functions),
            ..Options::default()
        };
        for memory in [Memory::Host, Memory::Npu] {
            let options = Options { memory, ..options.clone() };
            let report = check(&program, &options, &mut || true).unwrap_or_else(|e| panic!("{name}: {e}"));
            let findings: Vec<String> = report.findings.iter().map(|f| f.diagnostic.to_string()).collect();
            assert!(findings.is_empty(), "{name}, {nranks} ranks, {memory:?}:\n{}", findings.join("\n"));
        }
        let expected = compiled::launch(&program, nranks, persistent, dims, &args, self.functions);
        for schedule in [Schedule::Choices(Vec::new()), Schedule::Random(1), Schedule::Pct(1)] {
            let outcome = run(&program, &options, &schedule).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(outcome.args == expected, "{name}, {nranks} ranks, {schedule}: compiled code does something else");
        }
    }
}

fn examples() -> Vec<Case> {
    let example = |name: &'static str| Case::new(name, file(&format!("examples/pld/{name}.pld")));
    let small = |name: &'static str, sizes: &[(&str, i64)]| {
        let case = example(name).persistent();
        Case { text: sized(&case.text, sizes), ..case }
    };
    let moe = [("T", 8), ("TOPK", 3), ("D", 16), ("N_LOCAL", 2), ("MAX_PER_SRC", 8), ("BLOCKS", 2)];
    vec![
        example("01_hello_rank"),
        example("02_levels"),
        example("03_window"),
        example("04_barrier"),
        example("05_remote_tiles"),
        example("06_put_get"),
        example("07_dynamic_ranks"),
        example("08_allreduce_mesh"),
        example("09_allreduce_two_phase"),
        example("10_allreduce_ring"),
        example("11_allreduce_collective"),
        example("12_broadcast"),
        example("13_allgather"),
        example("14_reduce_scatter"),
        example("15_all_to_all"),
        example("16_composed"),
        example("domains"),
        example("host_collectives"),
        example("task_collectives"),
        example("all_to_all_v"),
        example("allreduce"),
        small("cp_prefill_exchange", &[("SEG_ROWS", 3), ("TAIL_ROWS", 2), ("D", 4)]),
        Case { values: routing::<8, 3>, ..small("moe_dispatch_combine", &moe) },
        small("tp_gemm_allreduce", &[("M", 12), ("K", 2), ("N", 4)]),
    ]
}

/// What belongs to the tables of the benchmark's exchange.
fn bench_routing(nranks: u32, name: &str, launch: u32, rank: u32, at: i64) -> Option<f64> {
    if name == "expert" { routing::<4, 2>(nranks, "indices", launch, rank, at) } else { None }
}

fn others() -> Vec<Case> {
    let counted = [("T", 4), ("TOPK", 2), ("D", 4), ("N_LOCAL", 2), ("R", 16), ("PAD", 2)];
    let counted = sized(&file("tests/conformance/moe.pld"), &counted);
    let bench = sized(&file("benches/rows/tasks/moe.pld"), &[("T", 4), ("K", 2), ("D", 4), ("L", 2)]);
    vec![
        Case { values: routing::<4, 2>, ..Case::new("vector F", counted) },
        // Its functions are those of the benchmark.
        Case { values: bench_routing, functions: None, ..Case::new("benchmark", bench).persistent() },
    ]
}

fn documents() -> Vec<Case> {
    let program = |name: &'static str| Case::new(name, document(name));
    let feed_forward = sized(&document("feed_forward"), &[("T", 8), ("D", 4)]);
    vec![
        program("shift"),
        program("scalars"),
        Case { dims: &[3], ..program("tiles") },
        program("combine"),
        program("accumulate"),
        program("graph"),
        program("join"),
        program("conditional"),
        program("deferred"),
        Case::new("feed_forward", feed_forward),
        program("phases").persistent(),
        program("reuse").persistent(),
        program("two_groups"),
        program("total"),
        program("until_small"),
        program("sharded"),
        program("packed_rows"),
    ]
}

/// Nothing that is shown to users is left out.
#[test]
fn all_programs_are_tested() {
    let names: Vec<&str> = examples().iter().map(|case| case.name).collect();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pld");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(names.contains(&path.file_stem().unwrap().to_str().unwrap()), "{}", path.display());
    }
    let names: Vec<&str> = documents().iter().map(|case| case.name).collect();
    for rest in DOCUMENTS.map(file).concat().split("```pld\nprogram ").skip(1) {
        let name = rest.split([' ', '\n']).next().unwrap();
        assert!(names.contains(&name), "{name}");
    }
}

macro_rules! suite {
    ($($name:ident: $cases:ident($nranks:literal);)*) => {$(
        #[test]
        fn $name() {
            $cases().iter().for_each(|case| case.test($nranks));
        }
    )*};
}

suite! {
    examples_2: examples(2);
    examples_3: examples(3);
    examples_4: examples(4);
    documents_2: documents(2);
    documents_3: documents(3);
    documents_4: documents(4);
    others_2: others(2);
    others_3: others(3);
    others_4: others(4);
}
