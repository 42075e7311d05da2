//! Without one of its signals, a collective is wrong, and the checker says so.

use pld::check::{Options, check};
use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::ir::{Diagnostic, Severity};
use pld::verify::verify;

use super::programs::{CALLS, CALLS_OF_HOSTS, Case, Kind, Site};
use super::text::{self, Statement, statements};
use super::written_out;

const LAUNCHES: usize = 2;

/// What numbers the two lines of cells that turns take alternately.
const LINES: [&str; 3] = ["parity", "line_in_full", "line_of_closing"];

/// A statement by its place in each block around it.
type Path = Vec<usize>;

/// A statement.
struct Place {
    path: Path,
    head: String,
    is_signal: bool,
}

struct Mutant {
    name: String,
    text: String,
}

fn block<'a>(program: &'a mut Vec<Statement>, path: &[usize]) -> &'a mut Vec<Statement> {
    path.iter().fold(program, |block, &at| block[at].body.as_mut().expect("a block"))
}

fn find(statements: &[Statement], path: &mut Path, found: &mut Vec<Place>) {
    for (at, statement) in statements.iter().enumerate() {
        path.push(at);
        found.push(Place { path: path.clone(), head: statement.head.clone(), is_signal: statement.is_signal() });
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
    let make = |what: &str, places: &[&Place]| {
        let mut program = original.clone();
        for Place { path, head, .. } in places.iter().rev() {
            let (&at, outer) = path.split_last().expect("a statement");
            let block = block(&mut program, outer);
            match head.strip_suffix(" % 2") {
                Some(front) if LINES.iter().any(|line| head.starts_with(line)) => {
                    block[at].head = format!("{front} % 1")
                }
                _ => _ = block.remove(at),
            }
        }
        let heads: Vec<&str> = places.iter().map(|place| place.head.as_str()).collect();
        Mutant { name: format!("{what}: {}", heads.join("; ")), text: text::print(&program) }
    };
    let signals = |word: &'static str| {
        all.iter().filter(move |place| place.is_signal && place.head.starts_with(word)).collect::<Vec<_>>()
    };
    let (notifies, waits) = (signals("notify "), signals("wait "));
    assert_eq!(notifies.len(), waits.len());
    let counters = ["] = turn", "] = full_turn", "] = closing"];
    let is_counter = |head: &str| head.contains("_cells[") && counters.iter().any(|counter| head.contains(counter));
    let memory: Vec<_> = all.iter().filter(|place| is_counter(&place.head)).collect();
    let is_parity = |head: &str| LINES.iter().any(|line| head.starts_with(line)) && head.ends_with(" % 2");
    let parities: Vec<_> = all.iter().filter(|place| is_parity(&place.head)).collect();
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
    // Few elements, which go along with the arrival, and more.
    let flat = CALLS.iter().map(|&call| (call, 3, 3));
    for ((kind, mode, dtype), nranks, ranks_per_host) in flat.chain(CALLS_OF_HOSTS.iter().map(|&call| (call, 4, 2))) {
        for count in [5, 150] {
            let case = Case { kind, mode, site: Site::Task, count, nranks, ranks_per_host, dtype, turns: 2 };
            let text = print(&written_out(&case));
            assert_eq!(finding(&case, &text).map(|finding| finding.to_string()), None, "{case:?}\n{text}");
            for mutant in mutants(&text) {
                // The next call counts from the same number again, which no cell holds any more: this one goes on for too long.
                let counts = mutant.name.contains("] = turn") || mutant.name.contains("] = full_turn");
                let same = (kind, mode, dtype) == (Kind::Allreduce, "ring", "f16") && counts;
                if !same && finding(&case, &mutant.text).is_none() {
                    missed +=
                        &format!("{kind:?} {mode} {dtype} {count} on {nranks} of {ranks_per_host}, {}\n", mutant.name);
                }
            }
        }
    }
    assert!(missed.is_empty(), "nothing is found\n{missed}");
}

/// Synchronisations are numbered from 1 again after so many that no check comes to it: here after few.
#[test]
fn numbers_may_begin_again() {
    let flat = CALLS.iter().map(|&call| (call, 2, 2));
    for ((kind, mode, dtype), nranks, ranks_per_host) in flat.chain(CALLS_OF_HOSTS.iter().map(|&call| (call, 4, 2))) {
        let case = Case { kind, mode, site: Site::Task, count: 5, nranks, ranks_per_host, dtype, turns: 3 };
        let text = print(&written_out(&case));
        assert!(text.contains("32768"), "{text}");
        let found = |last: &str| finding(&case, &text.replace("32768", last)).map(|finding| finding.to_string());
        assert_eq!(found("4"), None, "{case:?}");
        // Its parity, or the number itself, would be that of the one before.
        assert!(found("3").is_some() && found("2").is_some(), "{case:?}");
    }
}
