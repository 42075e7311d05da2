//! What the checker finds: correct exchanges, and what becomes of them when one notify, wait, threshold or edge is left
//! out, moved or changed.
//!
//! A mutant is found if the verifier refuses it or the checker says something. Those that are not found are listed with
//! the reason; at most one in twenty of the mutants that mean something else may be among them.
#![allow(missing_docs, reason = "a test is its own documentation")]

#[path = "../support/exchanges.rs"]
mod exchanges;
mod mutants;
mod survivors;
#[path = "../support/statements.rs"]
mod text;

use std::time::{Duration, Instant};

use pld::check::{Arg, Options, Schedule, check, run};
use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::ir::{Diagnostic, Program, Severity};
use pld::verify::verify;

use exchanges::{Kernels, Values, any, document, file, inputs, parsed, routing, sized};
use mutants::mutants;
use survivors::{Survivor, Why};

const LAUNCHES: u32 = 3;
/// Numbers of ranks, and of schedules: few find most.
const WORLDS: [(u32, u64); 4] = [(2, 4), (3, 12), (2, 200), (3, 100)];
const DEADLINE: Duration = Duration::from_secs(300);

/// A correct exchange.
struct Exchange {
    text: String,
    values: Values,
    survivors: &'static [Survivor],
}

/// What was said about a mutant.
enum Verdict {
    /// It is no program.
    Malformed,
    Refused,
    Found(Diagnostic),
    /// Nothing. The results are those of the exchange, or not.
    Survived {
        same: bool,
    },
}

struct Checker<'e> {
    exchange: &'e Exchange,
    original: Program,
    end: Instant,
}

impl Checker<'_> {
    fn args(&self, program: &Program, nranks: u32) -> Vec<Arg> {
        inputs(program, nranks, &[], LAUNCHES, self.exchange.values)
    }

    fn findings(&self, program: &Program, nranks: u32, seed: u64, schedules: u64) -> Vec<Diagnostic> {
        let args = self.args(program, nranks);
        let options = Options { schedules, seed, args: &args, ..options(nranks) };
        let report = check(program, &options, &mut || Instant::now() < self.end).expect("the arguments fit");
        assert!(Instant::now() < self.end, "not done in time");
        report.findings.into_iter().map(|finding| finding.diagnostic).collect()
    }

    fn results(&self, program: &Program, nranks: u32) -> Vec<Arg> {
        let args = self.args(program, nranks);
        let options = Options { args: &args, ..options(nranks) };
        run(program, &options, &Schedule::Choices(Vec::new())).expect("the arguments fit").args
    }

    fn verdict(&self, text: &str) -> Verdict {
        let Ok(program) = parse(text, "mutant.pld") else { return Verdict::Malformed };
        if verify(&program, None).iter().any(|finding| finding.severity == Severity::Error) {
            return Verdict::Refused;
        }
        let mut seed = 0;
        for (nranks, schedules) in WORLDS {
            if let Some(finding) = self.findings(&program, nranks, seed, schedules).into_iter().next() {
                return Verdict::Found(finding);
            }
            seed += schedules;
        }
        let same = [2, 3].iter().all(|&n| self.results(&program, n) == self.results(&self.original, n));
        Verdict::Survived { same }
    }
}

fn options(nranks: u32) -> Options<'static> {
    Options { nranks, launches: LAUNCHES, persistent: true, functions: Some(&Kernels), ..Options::default() }
}

fn test(exchange: &Exchange) {
    let original = parsed(&exchange.text, "exchange.pld");
    let checker = Checker { exchange, end: Instant::now() + DEADLINE, original };
    for (nranks, schedules) in WORLDS {
        let findings = checker.findings(&checker.original, nranks, 0, schedules);
        assert!(findings.is_empty(), "the exchange itself, {nranks} ranks: {}", findings[0]);
    }
    let (mut different, mut missed, mut mistakes) = (0, 0, Vec::new());
    let mut listed: Vec<&Survivor> = exchange.survivors.iter().collect();
    for mutant in mutants(&print(&checker.original)) {
        let listing = listed.iter().position(|survivor| survivor.mutant == mutant.name).map(|at| listed.remove(at));
        match (checker.verdict(&mutant.text), listing) {
            (Verdict::Malformed, None) => {}
            (Verdict::Refused | Verdict::Found(_), None) => different += 1,
            (Verdict::Survived { same: true }, Some(Survivor { why: Why::Equivalent(_), .. })) => {}
            (Verdict::Survived { .. }, Some(Survivor { why: Why::Missed(_), .. })) => {
                different += 1;
                missed += 1;
            }
            (Verdict::Malformed | Verdict::Refused, Some(_)) => {
                mistakes.push(format!("listed, but refused: {}", mutant.name));
            }
            (Verdict::Found(finding), Some(_)) => {
                mistakes.push(format!("listed, but found: {}\n{finding}", mutant.name));
            }
            (Verdict::Survived { same }, listing) => {
                let results = if same { "the same results" } else { "other results" };
                let how = if listing.is_some() { "listed as equivalent" } else { "not listed" };
                mistakes.push(format!("not found, {results}, {how}: {}", mutant.name));
            }
        }
    }
    mistakes.extend(listed.iter().map(|survivor| format!("no such mutant: {}", survivor.mutant)));
    assert!(mistakes.is_empty(), "{} mutants mean something else;\n{}", different, mistakes.join("\n"));
    assert!(missed * 20 <= different, "{missed} of {different} mutants are missed");
}

#[test]
fn two_counters() {
    let text = sized(&document("reuse"), &[("D", 4)]);
    test(&Exchange { text, values: any, survivors: survivors::TWO_COUNTERS });
}

#[test]
fn phases() {
    let text = sized(&document("phases"), &[("D", 4), ("BLOCKS", 2)]);
    test(&Exchange { text, values: any, survivors: survivors::PHASES });
}

#[test]
fn credit_barrier() {
    test(&Exchange { text: file("tests/mutations/credits.pld"), values: any, survivors: survivors::CREDITS });
}

#[test]
fn moe_dispatch() {
    let sizes = [("T", 8), ("TOPK", 2), ("D", 16), ("N_LOCAL", 2), ("MAX_PER_SRC", 8), ("PAD", 2), ("BLOCKS", 2)];
    let text = sized(&file("examples/pld/moe_dispatch_combine.pld"), &sizes);
    test(&Exchange { text, values: routing::<8, 2>, survivors: survivors::MOE });
}

#[test]
fn context_parallel() {
    let text = sized(&file("examples/pld/cp_prefill_exchange.pld"), &[("SEG_ROWS", 2), ("TAIL_ROWS", 1), ("D", 4)]);
    test(&Exchange { text, values: any, survivors: survivors::CONTEXT_PARALLEL });
}

#[test]
fn tensor_parallel() {
    let text = sized(&file("examples/pld/tp_gemm_allreduce.pld"), &[("M", 6), ("K", 2), ("N", 2)]);
    test(&Exchange { text, values: any, survivors: survivors::TENSOR_PARALLEL });
}
