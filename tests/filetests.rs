//! Tests that are text files: a program, and what comes of it.
//!
//! A suite is a folder of `tests/filetests` and one function from a program's text to some output. The expected output
//! stands in the file itself, as comments below the line `#---`; `PLD_TEST_BLESS=1` writes what comes out now. Files of
//! the suite `print` have no such part: they must print as themselves.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicI32;

use pld::codegen::cpu::abi::{FarHooks, Frame, Hooks, View};
use pld::codegen::cpu::{Binding, compile};
use pld::codegen::pto;
use pld::ir::parse::mistake::CODES;
use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::passes::plan_windows::plan_windows;
use pld::passes::task_graph;
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

/// The task graph, as text and for Graphviz; for the world of a first line such as `# world 4`, or for none.
#[test]
fn graph_suite() {
    suite("graph", |text| {
        let program = parse(text, FILE).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let of_world = world(text);
        format!("{}\n{}", task_graph::text(&program, of_world), task_graph::dot(&program, of_world))
    });
}

/// Every finding of the verifier; for the world of a first line such as `# world 4`, or for none.
#[test]
fn verify_suite() {
    suite("verify", verified);
}

fn verified(text: &str) -> String {
    match parse(text, FILE) {
        Ok(program) => verify(&program, world(text)).iter().map(|finding| format!("{finding}\n")).collect(),
        Err(mistakes) => mistakes.iter().map(|m| format!("{m}\n")).collect(),
    }
}

/// The world of a first line such as `# world 4`.
fn world(text: &str) -> Option<u32> {
    let world = text.strip_prefix("# world ")?.lines().next();
    world.map(|n| n.parse().expect("a number"))
}

/// The ops that compiled code may have to name: tasks, waits, and what it checks while it runs. All else is known to be
/// right for the world of the first line.
#[test]
fn codegen_suite() {
    suite("codegen", |text| {
        let program = parse(text, FILE).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let nranks = world(text).expect("a first line such as `# world 4`");
        assert_eq!(verified(text), "");
        let layout = plan_windows(&program, nranks).expect("windows have a size");
        let binding = Binding {
            nranks,
            rank: None,
            stride: 1 << 20,
            layout: &layout,
            checked: true,
            shaken: false,
            traced: false,
            offloaded: false,
            far: &[],
            fenced: true,
        };
        let code = compile(&program, &binding, &HOOKS).expect("the program compiles");
        code.sites.iter().map(|site| format!("{}: {}\n", site.task, site.text)).collect()
    });
}

/// The kernels of the tasks, or why there are none; for the world, the target and the checks of first lines such as
/// `# world 4`, `# target a5` and `# unchecked`.
#[test]
fn pto_suite() {
    suite("pto", |text| {
        let program = parse(text, FILE).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let nranks = world(text).expect("a first line such as `# world 4`");
        assert_eq!(verified(text), "");
        let head: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        let target = head.iter().find_map(|line| line.strip_prefix("# target "));
        let options = pto::Options {
            target: pto::Target::from_name(target.unwrap_or("a2a3")).expect("the name of a target"),
            nranks,
            checked: !head.contains(&"# unchecked"),
        };
        let layout = plan_windows(&program, nranks).expect("windows have a size");
        match pto::emit(&program, &layout, &options) {
            Ok(module) => module.source,
            Err(error) => format!("{error}\n"),
        }
    });
}

const HOOKS: Hooks = Hooks { wait, ring, defer, submit, drain, callback, far: FarHooks::NONE, stop, record };

unsafe extern "C" fn wait(_: *mut Frame, _: *const AtomicI32, _: i32, _: u32, _: u32) -> i32 {
    unreachable!("the code is not run")
}

unsafe extern "C" fn ring(_: *mut Frame, _: u32) {
    unreachable!("the code is not run")
}

unsafe extern "C" fn defer(_: *mut Frame, _: *const AtomicI32, _: i32, _: u32) -> i32 {
    unreachable!("the code is not run")
}

unsafe extern "C" fn submit(_: *mut Frame, _: u32, _: *const u64, _: i64, _: *const i64, _: *const u64) -> u64 {
    unreachable!("the code is not run")
}

unsafe extern "C" fn drain(_: *mut Frame) -> i32 {
    unreachable!("the code is not run")
}

unsafe extern "C" fn callback(_: *mut Frame, _: u32, _: *const View, _: *const i64, _: i64, _: i64) -> i32 {
    unreachable!("the code is not run")
}

unsafe extern "C" fn stop(_: *mut Frame) {
    unreachable!("the code is not run")
}

unsafe extern "C" fn record(_: *mut Frame, _: u32, _: u32, _: u32, _: u64) {
    unreachable!("the code is not run")
}

/// Each rule finds something in some file of the suite `verify`, but for those that text cannot break.
#[test]
fn every_rule_has_a_test() {
    let files = files(&root().join("tests/filetests/verify"), "pld");
    let findings: String = files.iter().map(|path| verified(&read(path))).collect();
    let missing: Vec<&str> = RULES.iter().map(|rule| rule.code.0).filter(|code| !findings.contains(code)).collect();
    assert_eq!(missing, ["PLD-V002", "PLD-V080"]);
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

/// Every mistake that a text can have is shown by a test and explained in the reference.
#[test]
fn every_code_is_tested_and_documented() {
    let reference = read(&root().join("docs/language.md"));
    let tests: String = files(&root().join("tests/filetests/parse"), "pld").iter().map(|p| read(p)).collect();
    for code in CODES {
        assert!(reference.contains(&format!("| {code} |")), "{code} is not in docs/language.md");
        assert!(tests.contains(&format!("error[{code}]")), "no test in tests/filetests/parse has {code}");
    }
}

#[test]
fn examples_are_canonical() {
    for path in files(&root().join("examples/pld"), "pld") {
        check_canonical(&path, &read(&path));
    }
}

#[test]
fn programs_in_documents_are_canonical() {
    for (document, least) in [("docs/language.md", 11), ("docs/collectives.md", 4)] {
        let path = root().join(document);
        let text = read(&path);
        let programs = text.split("```pld\n").skip(1).filter_map(|rest| rest.split_once("```"));
        let count = programs.map(|(program, _)| check_canonical(&path, program)).count();
        assert!(count >= least, "{document} has {count} programs");
    }
}

/// The text is written as it prints, but for comments and blank lines.
fn check_canonical(path: &Path, text: &str) {
    let bare = |text: &str| -> String {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim_end());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(bare(text), bare(&printed(text)), "{}", path.display());
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
