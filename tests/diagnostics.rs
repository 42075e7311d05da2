//! `docs/diagnostics.md` tells the truth: it has every rule, and each example gives what stands below it. So does the story
//! of `docs/checking.md`.

#[path = "support/documents.rs"]
mod documents;
#[path = "support/findings.rs"]
mod findings;

use pld::ir::parse::parse;
use pld::verify::rules::Rule;
use pld::verify::verify;

use documents::{bless, read, root};
use findings::{checked, list};

const DIAGNOSTICS: &str = "docs/diagnostics.md";
const CHECKING: &str = "docs/checking.md";

/// What has no example: program text cannot break the first two, and the others take too much of it.
const WITHOUT_EXAMPLE: &[&str] = &["PLD-V002", "PLD-V080", "PLD-P005", "PLD-P013"];

/// A rule's part of the document.
struct Section<'a> {
    heading: &'a str,
    about: &'a str,
    /// The program, what is noted about it, and what is said about it.
    example: Option<(&'a str, &'a str, &'a str)>,
}

fn sections<'a>(document: &'a str, prefix: &str) -> Vec<Section<'a>> {
    let parts = document.split("\n### ").skip(1).filter(|part| part.starts_with(prefix));
    let sections = parts.map(|part| {
        let (heading, rest) = part.split_once("\n\n").expect("a heading stands alone");
        let about = rest.split_once("\n\n").map_or(rest, |(about, _)| about);
        let example = rest.split_once("```pld").map(|(_, rest)| {
            let (info, rest) = rest.split_once('\n').expect("a line");
            let (program, rest) = rest.split_once("```\n").expect("a closed block");
            let rest = rest.split_once("```text\n").expect("the findings follow").1;
            (program, info.trim(), rest.split_once("```").expect("a closed block").0)
        });
        Section { heading, about, example }
    });
    sections.collect()
}

#[test]
fn every_rule_is_documented() {
    documents("PLD-V", pld::verify::rules::RULES);
    documents("PLD-C", pld::check::rules::RULES);
}

fn documents(prefix: &str, rules: &[Rule]) {
    let document = read(DIAGNOSTICS);
    let documented: Vec<(&str, &str)> = sections(&document, prefix).iter().map(|s| (s.heading, s.about)).collect();
    let rules: Vec<(String, String)> =
        rules.iter().map(|r| (format!("{} {} ({})", r.code, r.name, r.severity), format!("{}.", r.about))).collect();
    let rules: Vec<(&str, &str)> = rules.iter().map(|(h, a)| (h.as_str(), a.as_str())).collect();
    assert_eq!(documented, rules);
}

/// The codes of the builder and of the parser stand in its source.
#[test]
fn every_code_is_documented() {
    let document = read(DIAGNOSTICS);
    for source in ["src/ir/builder/mod.rs", "src/ir/parse/mistake.rs"] {
        let source = std::fs::read_to_string(root().join(source)).expect("the source is there");
        let codes: Vec<&str> = source.split("Code(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(!codes.is_empty());
        for code in codes {
            assert!(document.contains(&format!("### {code} ")) || document.contains(&format!("| {code} |")), "{code}");
        }
    }
}

#[test]
fn every_example_gives_its_code() {
    let document = read(DIAGNOSTICS);
    let mut blessed = document.clone();
    let mut wrong = String::new();
    for section in sections(&document, "PLD-") {
        let code = section.heading.split(' ').next().expect("a code");
        let Some((program, info, expected)) = section.example else {
            assert!(WITHOUT_EXAMPLE.contains(&code), "{code} has no example");
            continue;
        };
        let findings = match parse(program, "example.pld") {
            Ok(program) if code.starts_with("PLD-C") => checked(&program, info),
            Ok(program) => verify(&program, info.strip_prefix("world=").map(|n| n.parse().expect("a number"))),
            Err(mistakes) => mistakes,
        };
        // A mistake may have more than one consequence when it runs.
        let gives = findings.iter().filter(|finding| finding.code.0 == code).count();
        if gives == 0 || gives < findings.len() && !code.starts_with("PLD-C") {
            wrong += &format!("{code}:\n{}", list(&findings));
        }
        blessed = blessed.replacen(
            &format!("{program}```\n\n```text\n{expected}```"),
            &format!("{program}```\n\n```text\n{}```", list(&findings)),
            1,
        );
    }
    assert!(wrong.is_empty(), "examples that give another code, or none:\n{wrong}");
    bless(DIAGNOSTICS, &document, &blessed);
}

#[test]
fn the_story_is_what_the_checker_says() {
    let document = read(CHECKING);
    let mut blessed = String::new();
    let mut rest = document.as_str();
    let mut codes = Vec::new();
    while let Some((before, after)) = rest.split_once("```pld ") {
        let (info, after) = after.split_once('\n').expect("a line");
        let (text, after) = after.split_once("```\n").expect("a closed block");
        let (between, after) = after.split_once("```text\n").expect("the findings follow");
        let program = parse(text, "allreduce.pld").unwrap_or_else(|mistakes| panic!("{}", list(&mistakes)));
        let findings = checked(&program, info);
        codes.push(findings.iter().map(|finding| finding.code.0).collect::<Vec<_>>());
        let said = list(&findings);
        blessed += &format!("{before}```pld {info}\n{text}```\n{between}```text\n{said}```");
        rest = after.split_once("```").expect("a closed block").1;
    }
    blessed += rest;
    assert_eq!(codes.len(), 3);
    assert!(codes[0].contains(&"PLD-C012") && codes[1].contains(&"PLD-C003") && codes[2].is_empty(), "{codes:?}");
    bless(CHECKING, &document, &blessed);
}
