//! Without one of its signals, a collective is wrong, and the checker says so.

use pld::check::{Options, check};
use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::ir::{Diagnostic, Severity};
use pld::verify::verify;

use super::programs::{CALLS, Case, Kind, Site};
use super::text::{self, Statement, statements};
use super::written_out;

const LAUNCHES: usize = 2;

/// A statement by its place in each block around it.
type Path = Vec<usize>;

struct Mutant {
    name: String,
    text: String,
}

fn block<'a>(program: &'a mut Vec<Statement>, path: &[usize]) -> &'a mut Vec<Statement> {
    path.iter().fold(program, |block, &at| block[at].body.as_mut().expect("a block"))
}

fn find(statements: &[Statement], path: &mut Path, found: &mut Vec<(Path, String)>) {
    for (at, statement) in statements.iter().enumerate() {
        path.push(at);
        found.push((path.clone(), statement.head.clone()));
        find(statement.body.as_deref().unwrap_or_default(), path, found);
        path.pop();
    }
}

/// Without a notify, without a wait, without both of a synchronisation, without what it remembers for the next call; and
/// with one set of cells in place of two.
fn mutants(text: &str) -> Vec<Mutant> {
    let original = statements(text);
    let mut all = Vec::new();
    find(&original, &mut Path::new(), &mut all);
    let make = |what: &str, paths: &[&(Path, String)]| {
        let mut program = original.clone();
        for (path, head) in paths.iter().rev() {
            let (&at, outer) = path.split_last().expect("a statement");
            let block = block(&mut program, outer);
            match head.strip_suffix(" % 2") {
                Some(front) if head.starts_with("parity") => block[at].head = format!("{front} % 1"),
                _ => _ = block.remove(at),
            }
        }
        let heads: Vec<&str> = paths.iter().map(|(_, head)| head.as_str()).collect();
        Mutant { name: format!("{what}: {}", heads.join("; ")), text: text::print(&program) }
    };
    let begins = |word: &'static str| all.iter().filter(move |(_, head)| head.starts_with(word)).collect::<Vec<_>>();
    let (notifies, waits) = (begins("notify "), begins("wait "));
    assert_eq!(notifies.len(), waits.len());
    let memory: Vec<_> = all.iter().filter(|(_, head)| head.contains("_cells[") && head.contains("] = turn")).collect();
    let parities: Vec<_> =
        all.iter().filter(|(_, head)| head.starts_with("parity") && head.ends_with(" % 2")).collect();
    let mut mutants: Vec<Mutant> = notifies.iter().map(|&notify| make("without", &[notify])).collect();
    mutants.extend(waits.iter().map(|&wait| make("without", &[wait])));
    mutants.extend(notifies.iter().zip(&waits).map(|(&notify, &wait)| make("without", &[notify, wait])));
    mutants.extend(memory.iter().map(|&memory| make("without", &[memory])));
    mutants.extend((!parities.is_empty()).then(|| make("one set of cells", &parities)));
    mutants
}

/// What is said about a mutant.
fn finding(case: &Case, text: &str) -> Option<Diagnostic> {
    let program = parse(text, "mutant.pld").unwrap_or_else(|mistakes| panic!("{}\n{text}", mistakes[0]));
    let refused = verify(&program, Some(case.nranks as u32));
    let error = refused.into_iter().find(|finding| finding.severity == Severity::Error);
    let args = case.args(LAUNCHES);
    let options = Options {
        nranks: case.nranks as u32,
        launches: LAUNCHES as u32,
        persistent: true,
        args: &args,
        ..Options::default()
    };
    let explored = |schedules| {
        let report = check(&program, &Options { schedules, ..options.clone() }, &mut || true).expect("it can be run");
        report.findings.into_iter().next().map(|finding| finding.diagnostic)
    };
    error.or_else(|| explored(4)).or_else(|| explored(60))
}

#[test]
fn no_signal_is_idle() {
    let mut missed = String::new();
    for &(kind, mode, dtype) in CALLS {
        let count = if kind == Kind::Allreduce { 150 } else { 5 };
        let case = Case { kind, mode, site: Site::Task, count, nranks: 3, dtype, turns: 2 };
        let text = print(&written_out(&case));
        assert_eq!(finding(&case, &text).map(|finding| finding.to_string()), None, "{case:?}\n{text}");
        for mutant in mutants(&text) {
            // The next call counts from the same number again, which no cell holds any more: this one goes on for too long.
            let same = (kind, mode, dtype) == (Kind::Allreduce, "ring", "f16") && mutant.name.contains("] = turn");
            if !same && finding(&case, &mutant.text).is_none() {
                missed += &format!("{kind:?} {mode} {dtype}, {}\n", mutant.name);
            }
        }
    }
    assert!(missed.is_empty(), "nothing is found\n{missed}");
}

/// Synchronisations are numbered from 1 again after so many that no check comes to it: here after few.
#[test]
fn numbers_may_begin_again() {
    for &(kind, mode, dtype) in CALLS {
        let case = Case { kind, mode, site: Site::Task, count: 5, nranks: 2, dtype, turns: 3 };
        let text = print(&written_out(&case));
        assert!(text.contains("32768"), "{text}");
        let found = |last: &str| finding(&case, &text.replace("32768", last)).map(|finding| finding.to_string());
        assert_eq!(found("4"), None, "{case:?}");
        // Its parity, or the number itself, would be that of the one before.
        assert!(found("3").is_some() && found("2").is_some(), "{case:?}");
    }
}
