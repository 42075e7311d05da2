//! What is found in a program, as documents note how: `ranks=3 launches=2 persistent memory=npu`.

use pld::check::{Call, Explore, Fill, Functions, Memory, Options, Scalar, View, check, inputs};
use pld::ir::{Diagnostic, Program, Severity};
use pld::verify::verify;

/// What the checker finds, with the options that are noted.
pub fn checked(program: &Program, info: &str) -> Vec<Diagnostic> {
    let mut options = Options::default();
    for word in info.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("ranks", n) => options.nranks = n.parse().expect("a number"),
            ("launches", n) => options.launches = n.parse().expect("a number"),
            ("persistent", "") => options.persistent = true,
            ("memory", "npu") => options.memory = Memory::Npu,
            ("explore", "random") => options.explore = Explore::Random,
            ("refuse", "") => options.functions = Some(&Refuse),
            _ => panic!("{word:?} is no option"),
        }
    }
    let mut findings = verify(program, Some(options.nranks));
    findings.retain(|finding| finding.severity == Severity::Error);
    if !findings.is_empty() {
        return findings;
    }
    let made = inputs(program, options.nranks, options.launches, Fill::Iota, 0, &[]).expect("inputs");
    let options = Options { dims: &made.dims, args: &made.args, ..options };
    let report = check(program, &options, &mut || true).expect("arguments of the program");
    report.findings.into_iter().map(|finding| finding.diagnostic).collect()
}

/// Each function returns 5.
struct Refuse;

impl Functions for Refuse {
    fn call(&self, _: Call, _: &mut [View], _: &[Scalar]) -> Option<Result<(), i32>> {
        Some(Err(5))
    }
}

/// As documents show them.
pub fn list(findings: &[Diagnostic]) -> String {
    if findings.is_empty() { "no findings\n".into() } else { findings.iter().map(|f| format!("{f}\n")).collect() }
}
