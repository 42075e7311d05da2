//! Small programs with one fault each: the checker finds it, names both ops, and finds nothing in the corrected twin.
//!
//! `NAME.pld` has the fault, `NAME.fixed.pld` has not. Lines that begin with `#!` say how a program is run; `#!` and codes
//! at the end of a line say what is found there.

mod corpus;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use corpus::{Case, engine};
use pld::check::rules::RULES;
use pld::check::{Finding, Options, Report, Schedule, check};
use pld::ir::Severity;
use pld::verify::verify;

/// Long enough for a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn explore(case: &Case, replay: Option<Schedule>) -> Report {
    let options = Options { schedules: 300, replay, functions: Some(engine()), args: &case.args, ..case.options() };
    let begun = Instant::now();
    let report = check(&case.program, &options, &mut || begun.elapsed() < PATIENCE);
    assert!(begun.elapsed() < PATIENCE, "{} takes too long", case.name);
    report.unwrap_or_else(|e| panic!("{}: {e}", case.name))
}

/// Calls `judge` with every case, and reports all complaints at once.
fn each(cases: Vec<Case>, judge: impl Fn(&Case) -> Result<(), String>) {
    assert!(!cases.is_empty());
    let complaints: Vec<String> =
        cases.iter().filter_map(|case| judge(case).err().map(|e| format!("{}: {e}", case.name))).collect();
    assert!(complaints.is_empty(), "{} of {}\n\n{}", complaints.len(), cases.len(), complaints.join("\n\n"));
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{}\n", finding.diagnostic)).collect()
}

#[test]
fn programs_are_accepted_by_the_verifier() {
    each(corpus::all(), |case| {
        let findings = verify(&case.program, Some(case.nranks));
        match findings.iter().find(|finding| finding.severity == Severity::Error) {
            Some(error) => Err(error.to_string()),
            None => Ok(()),
        }
    });
}

#[test]
fn faults_are_found_where_they_are() {
    each(corpus::faulty(), |case| {
        let findings = explore(case, None).findings;
        let mut wrong = String::new();
        for finding in &findings {
            let (code, line) = (finding.diagnostic.code.0, finding.diagnostic.line);
            if !case.marks.iter().any(|mark| mark.code == code && mark.line == line) {
                wrong += &format!("{code} in line {line} is not expected\n");
            }
        }
        let texts = list(&findings);
        for mark in &case.marks {
            let place = format!("{}:{}", case.file, mark.line);
            let named = |finding: &Finding| {
                finding.diagnostic.code.0 == mark.code && names(&finding.diagnostic.to_string(), &place)
            };
            if !findings.iter().any(named) {
                wrong += &format!("no {} names line {}\n", mark.code, mark.line);
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong}{texts}")) }
    });
}

/// A text names a place, and not just one that begins with the same digits.
fn names(text: &str, place: &str) -> bool {
    text.match_indices(place).any(|(at, _)| !text[at + place.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn nothing_is_found_in_the_corrected_twins() {
    each(corpus::fixed(), |case| match &*explore(case, None).findings {
        [] => Ok(()),
        findings => Err(list(findings)),
    });
}

#[test]
fn the_schedule_of_a_finding_shows_it_again() {
    each(corpus::faulty(), |case| {
        for finding in explore(case, None).findings {
            let what = |finding: &Finding| (finding.diagnostic.code, finding.diagnostic.line);
            let again = explore(case, Some(finding.schedule.clone()));
            if again.schedules != 1 || !again.findings.iter().any(|other| what(other) == what(&finding)) {
                let texts = list(&again.findings);
                return Err(format!("{} does not show\n{}\nbut\n{texts}", finding.schedule, finding.diagnostic));
            }
        }
        Ok(())
    });
}

#[test]
fn one_seed_gives_one_report() {
    each(corpus::faulty(), |case| {
        let told = |report: Report| {
            let schedules: Vec<String> = report.findings.iter().map(|finding| finding.schedule.to_string()).collect();
            (list(&report.findings), schedules, report.schedules, report.steps, report.complete)
        };
        let (once, again) = (told(explore(case, None)), told(explore(case, None)));
        if once == again { Ok(()) } else { Err(format!("{once:?}\nand then\n{again:?}")) }
    });
}

#[test]
fn every_rule_has_programs() {
    let cases = corpus::faulty();
    for rule in RULES {
        let code = rule.code.0;
        let programs = cases.iter().filter(|case| case.marks.iter().any(|mark| mark.code == code)).count();
        assert!(programs >= 2, "{code}: {programs} programs");
    }
    let known: BTreeSet<&str> = RULES.iter().map(|rule| rule.code.0).collect();
    for case in &cases {
        assert!(!case.marks.is_empty(), "{} has no mark", case.name);
        assert!(case.marks.iter().all(|mark| known.contains(mark.code.as_str())), "{}", case.name);
    }
    assert!(cases.len() >= 40, "{} programs", cases.len());
}

/// A twin differs from its program in the fault, and is run in the same way.
#[test]
fn every_program_has_its_twin() {
    let twin = |case: &Case| case.name.replace(".fixed", "");
    let (faulty, fixed) = (corpus::faulty(), corpus::fixed());
    let of = |cases: &[Case]| cases.iter().map(|case| (twin(case), case.directives.clone())).collect::<Vec<_>>();
    assert_eq!(of(&faulty), of(&fixed));
    assert!(fixed.iter().all(|case| case.marks.is_empty()));
}
