//! Tests that are text files: a program, and what comes of it.
//!
//! A suite is a folder of `tests/filetests` and one function from a program's text to some output. The expected output
//! stands in the file itself, as comments below the line `#---`; `PLD_TEST_BLESS=1` writes what comes out now. Files of
//! the suite `print` have no such part: they must print as themselves.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::verify::rules::RULES;
use pld::verify::verify;

/// Begins the expected output.
const SEPARATOR: &str = "#---\n";

/// Name of a program in its reports, the same wherever the tests run.
const FILE: &str = "test.pld";

#[test]
fn print_suite() {
    for path in files(&root().join("tests/filetests/print"), "pld") {
        let text = read(&path);
        let program_at = text.find("program ").unwrap_or(0);
        let (comment, program) = text.split_at(program_at);
        check(&path, &text, &format!("{comment}{}", printed(program)));
    }
}

#[test]
fn parse_suite() {
    suite("parse", printed);
}

/// Every finding of the verifier; for the world of a first line such as `# world 4`, or for none.
#[test]
fn verify_suite() {
    suite("verify", verified);
}

fn verified(text: &str) -> String {
    let world = text.strip_prefix("# world ").and_then(|rest| rest.lines().next());
    let world = world.map(|n| n.parse().expect("a number"));
    match parse(text, FILE) {
        Ok(program) => verify(&program, world).iter().map(|finding| format!("{finding}\n")).collect(),
        Err(mistakes) => mistakes.iter().map(|m| format!("{m}\n")).collect(),
    }
}

/// Each rule finds something in some file of the suite `verify`, but for those that text cannot break.
#[test]
fn every_rule_has_a_test() {
    let files = files(&root().join("tests/filetests/verify"), "pld");
    let findings: String = files.iter().map(|path| verified(&read(path))).collect();
    let missing: Vec<&str> = RULES.iter().map(|rule| rule.code.0).filter(|code| !findings.contains(code)).collect();
    assert_eq!(missing, ["PLD-V002"]);
}

/// Compares the output of every file of a suite with the expected one.
fn suite(name: &str, run: fn(&str) -> String) {
    for path in files(&root().join("tests/filetests").join(name), "pld") {
        let text = read(&path);
        let program = text.split_once(SEPARATOR).map_or(&*text, |(program, _)| program);
        let mut actual = format!("{program}{SEPARATOR}");
        for line in run(program).lines() {
            _ = writeln!(actual, "# {line}");
        }
        check(&path, &text, &actual.replace("# \n", "#\n"));
    }
}

/// The program as the printer writes it, or the mistakes.
fn printed(text: &str) -> String {
    match parse(text, FILE) {
        Ok(program) => {
            let once = print(&program);
            match parse(&once, FILE) {
                Ok(again) => assert_eq!(print(&again), once, "printing is not stable"),
                Err(mistakes) => panic!("{once}\nis printed, but does not parse:\n{}", mistakes[0]),
            }
            once
        }
        Err(mistakes) => mistakes.iter().map(|m| format!("{m}\n")).collect(),
    }
}

/// Examples are written as they print, but for comments and blank lines.
#[test]
fn examples_are_canonical() {
    for path in files(&root().join("examples/pld"), "pld") {
        let text = read(&path);
        let bare = |text: &str| -> Vec<String> {
            let lines = text.lines().map(|l| l.split('#').next().unwrap_or_default().trim_end().to_string());
            lines.filter(|l| !l.is_empty()).collect()
        };
        assert_eq!(bare(&text).join("\n"), bare(&printed(&text)).join("\n"), "{}", path.display());
    }
}

/// Every block of the language reference is a program.
#[test]
fn programs_in_the_language_reference_parse() {
    let reference = read(&root().join("docs/language.md"));
    let blocks: Vec<&str> =
        reference.split("```pld\n").skip(1).filter_map(|b| b.split_once("```")).map(|b| b.0).collect();
    assert!(blocks.len() >= 5, "the reference has {} programs", blocks.len());
    for block in blocks {
        if let Err(mistakes) = parse(block, "language.md") {
            panic!("{block}\ndoes not parse:\n{}", mistakes[0]);
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder with an extension, by name.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = listing.map(|entry| entry.expect("a directory entry").path());
    let mut files: Vec<PathBuf> = paths.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    assert!(!files.is_empty(), "{} has no .{extension} files", folder.display());
    files.sort();
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn check(path: &Path, expected: &str, actual: &str) {
    if expected == actual {
        return;
    }
    if std::env::var_os("PLD_TEST_BLESS").is_some() {
        return std::fs::write(path, actual).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let line = expected.lines().zip(actual.lines()).take_while(|(e, a)| e == a).count() + 1;
    panic!("{}:{line}: the output differs; it is now\n{actual}", path.display());
}
