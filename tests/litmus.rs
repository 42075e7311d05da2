//! `docs/memory-model.md` tells the truth. Each of its litmus tests is a ```pld block of tasks, which the frame of the page
//! goes around, or a whole program; a table of what the ranks may see follows, and then what a check says.
//!
//! The checker runs all schedules, and must find just that. In runs of the interpreter whatever is allowed comes up, and
//! nothing else; nor does anything else in launches with shaken timing.
#![allow(missing_docs, reason = "a test is its own documentation")]

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::path::Path;
use std::time::Duration;

use pld::check::{self, Call, Explore, Functions, Memory, Options, Scalar, Schedule, View, check, run};
use pld::ir::parse::parse;
use pld::ir::program::Param;
use pld::ir::{DType, OpKind, Program, Severity};
use pld::runtime::{Arg, Callback, CallbackContext, CompileOptions, Executable, TensorArg, World, WorldOptions};
use pld::verify::verify;

const DOCUMENT: &str = "docs/memory-model.md";

/// More than any test has.
const SCHEDULES: u64 = 20_000;

/// Random schedules of each kind.
const RANDOM: u64 = 200;

/// Seeds of shaken timing, and launches (or series of launches) with each.
const SHAKEN: u64 = 12;
const ROUNDS: u32 = 25;

/// What stands in `seen` before somebody writes there.
const UNSEEN: i32 = -1;

/// How a row says that the ranks wait for ever.
const NO_END: &str = "no end";

struct Litmus {
    name: String,
    program: Program,
    nranks: u32,
    launches: u32,
    persistent: bool,
    /// Which elements of `seen` the table is about: rank and element.
    columns: Vec<(usize, usize)>,
    /// What may come up, and must in the interpreter.
    allowed: BTreeSet<String>,
    /// What may come up besides, between the steps of the interpreter.
    possible: BTreeSet<String>,
    /// Codes of findings, for each memory model.
    host: BTreeSet<String>,
    npu: BTreeSet<String>,
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DOCUMENT);
    std::fs::read_to_string(path).expect("the page is there")
}

fn all() -> Vec<Litmus> {
    let document = document();
    let (_, rest) = document.split_once("```pld frame\n").expect("the page has a frame");
    let frame = rest.split_once("```").expect("a closed block").0;
    let heads = document.match_indices("\n#### ").map(|(at, _)| &document[at + 6..]);
    let tests: Vec<Litmus> = heads.map(|rest| Litmus::new(rest.split("\n#").next().expect("a part"), frame)).collect();
    assert!(tests.len() >= 30, "{} tests", tests.len());
    tests
}

fn codes(said: &str) -> BTreeSet<String> {
    match said.trim() {
        "nothing" => BTreeSet::new(),
        codes => codes.split(", ").map(str::to_owned).collect(),
    }
}

impl Litmus {
    fn new(part: &str, frame: &str) -> Self {
        let (name, rest) = part.split_once('\n').expect("a heading");
        let (_, rest) = rest.split_once("```pld").unwrap_or_else(|| panic!("{name}: no program"));
        let (info, rest) = rest.split_once('\n').expect("a line");
        let (body, rest) = rest.split_once("```\n").unwrap_or_else(|| panic!("{name}: the block is open"));
        let text = match body.starts_with("program ") {
            true => body.to_owned(),
            false => frame.replace("  ...\n", body),
        };
        let program = parse(&text, "litmus.pld").unwrap_or_else(|mistakes| panic!("{name}: {}\n{text}", mistakes[0]));
        let (mut nranks, mut launches, mut persistent) = (2, 1, false);
        for word in info.split_whitespace() {
            match word.split_once('=') {
                Some(("ranks", n)) => nranks = n.parse().expect("a number"),
                Some(("launches", n)) => launches = n.parse().expect("a number"),
                None if word == "persistent" => persistent = true,
                _ => panic!("{name}: {word:?} is no option"),
            }
        }
        let mut table = rest.lines().filter(|line| line.starts_with('|')).map(cells);
        let head = table.next().unwrap_or_else(|| panic!("{name}: no table"));
        let columns = head.split_last().expect("a column").1.iter().map(|column| {
            let place = column.strip_prefix("`seen[").and_then(|rest| rest.split_once("]` of rank "));
            let (element, rank) = place.unwrap_or_else(|| panic!("{name}: {column:?} is no column"));
            (rank.parse().expect("a rank"), element.parse().expect("an element"))
        });
        let columns = columns.collect();
        let (mut allowed, mut possible, mut forbidden) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut is_only = false;
        for row in table.skip(1) {
            let (verdict, values) = row.split_last().expect("a cell");
            match verdict.split(':').next() {
                Some("allowed" | "always") => allowed.extend(outcomes(values)),
                Some("possible") => possible.extend(outcomes(values)),
                Some("forbidden") => forbidden.extend(outcomes(values)),
                _ => panic!("{name}: {verdict:?} is no verdict"),
            }
            is_only |= *verdict == "always";
        }
        assert!(
            forbidden.iter().all(|no| !allowed.contains(no) && !possible.contains(no)),
            "{name}: forbidden or not?"
        );
        assert!(!is_only || allowed.len() == 1 && possible.is_empty(), "{name}: always, or not?");
        let said = rest.split_once("\nCheck: ").unwrap_or_else(|| panic!("{name}: what does a check say?")).1;
        let said = said.split_once(".\n").expect("a sentence").0;
        let (host, npu) = said.split_once("; for an NPU ").unwrap_or((said, said));
        let (host, npu) = (codes(host), codes(npu));
        Self { name: name.to_owned(), program, nranks, launches, persistent, columns, allowed, possible, host, npu }
    }

    /// The names of what a launch takes.
    fn params(&self) -> Vec<&str> {
        let name = |param: &Param| match *param {
            Param::Tensor(tensor) => self.program.tensors[tensor].name.as_deref().expect("parameters have names"),
            Param::Scalar(_) => "epoch",
        };
        self.program.host.as_ref().expect("a host driver").params.iter().map(name).collect()
    }

    /// A set of arguments for each launch.
    fn args(&self) -> Vec<check::Arg> {
        let ranked = |value: &dyn Fn(u32) -> Vec<i32>| {
            let part = |rank| value(rank).iter().flat_map(|value| value.to_ne_bytes()).collect();
            check::Arg::Ranked((0..self.nranks).map(part).collect())
        };
        let arg = |name: &str, launch: u32| match name {
            "mine" => ranked(&|rank| vec![mine(rank, launch)]),
            "seen" => ranked(&|_| vec![UNSEEN; 2]),
            _ => check::Arg::Bits(launch.into()),
        };
        let params = self.params();
        (1..=self.launches).flat_map(|launch| params.iter().map(move |name| arg(name, launch))).collect()
    }

    fn may_be(&self, outcome: &String) -> bool {
        self.allowed.contains(outcome) || self.possible.contains(outcome)
    }

    fn outcome(&self, seen: &[[i32; 2]]) -> String {
        let values: Vec<String> = self.columns.iter().map(|&(rank, at)| seen[rank][at].to_string()).collect();
        values.join(" ")
    }

    /// All schedules: the codes of what is found.
    fn findings(&self, memory: Memory) -> BTreeSet<String> {
        let args = self.args();
        let options = Options { explore: Explore::Exhaustive, schedules: SCHEDULES, ..self.options(memory, &args) };
        let report = check(&self.program, &options, &mut || true).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        assert!(report.complete, "{}: more than {} schedules", self.name, report.schedules);
        report.findings.iter().map(|finding| finding.diagnostic.code.0.to_owned()).collect()
    }

    fn options<'a>(&self, memory: Memory, args: &'a [check::Arg]) -> Options<'a> {
        let (nranks, launches, persistent) = (self.nranks, self.launches, self.persistent);
        Options { nranks, launches, persistent, memory, args, functions: Some(&Engine), ..Options::default() }
    }

    /// What comes up in runs of the interpreter.
    fn interpreted(&self) -> BTreeSet<String> {
        let args = self.args();
        let mut outcomes = BTreeSet::new();
        for memory in [Memory::Host, Memory::Npu] {
            let options = self.options(memory, &args);
            for schedule in (0..RANDOM).flat_map(|seed| [Schedule::Random(seed), Schedule::Pct(seed)]) {
                let outcome = run(&self.program, &options, &schedule).unwrap_or_else(|e| panic!("{}: {e}", self.name));
                assert_eq!(outcome.fault, None, "{}", self.name);
                if !outcome.done {
                    outcomes.insert(NO_END.to_owned());
                    continue;
                }
                let seen = outcome.args.iter().find_map(|arg| match arg {
                    check::Arg::Ranked(parts) if parts[0].len() == 8 => Some(parts.iter().map(|part| pair(part))),
                    _ => None,
                });
                outcomes.insert(self.outcome(&seen.expect("`seen` is an argument").collect::<Vec<_>>()));
            }
        }
        outcomes
    }

    /// What comes up when it is compiled and launched, with and without shaken timing.
    fn launched(&self) -> BTreeSet<String> {
        let ends = !self.allowed.contains(NO_END);
        let (timeout, seeds, rounds) = match ends {
            true => (Duration::from_secs(60), SHAKEN, ROUNDS),
            false => (Duration::from_millis(200), 2, 1),
        };
        let function = Callback { function: copy, user_data: std::ptr::null_mut() };
        let calls = self.program.ops.values().any(|op| matches!(op.kind, OpKind::Extern { .. }));
        let callbacks = if calls { vec![("copy".into(), function)] } else { Vec::new() };
        let options = CompileOptions { persistent: self.persistent, callbacks, ..CompileOptions::default() };
        let mut outcomes = BTreeSet::new();
        for chaos_seed in 0..seeds {
            let cores_per_rank = 1 + chaos_seed as u32 % 2;
            let world = WorldOptions { timeout, chaos_seed, cores_per_rank, ..WorldOptions::default() };
            let world = World::create(self.nranks, &world).unwrap_or_else(|e| panic!("{e}"));
            let exe = Executable::compile(&self.program, &world, &options).unwrap_or_else(|e| panic!("{e}"));
            for _ in 0..rounds {
                outcomes.insert(self.round(&exe));
                if self.persistent {
                    exe.reset().unwrap_or_else(|e| panic!("{}: {e}", self.name));
                }
            }
        }
        outcomes
    }

    /// All launches of one series: what the last one shows.
    fn round(&self, exe: &Executable) -> String {
        let (narrow, wide) = ([self.nranks.into(), 1], [self.nranks.into(), 2]);
        let mut seen = Vec::new();
        for launch in 1..=self.launches {
            seen = vec![[UNSEEN; 2]; self.nranks as usize];
            let mut given: Vec<i32> = (0..self.nranks).map(|rank| mine(rank, launch)).collect();
            let arg = |name: &&str| {
                let (data, shape) = match *name {
                    "mine" => (given.as_mut_ptr().cast(), &narrow),
                    "seen" => (seen.as_mut_ptr().cast(), &wide),
                    _ => return Arg::Int(launch.into()),
                };
                Arg::Tensor(TensorArg { data, dtype: DType::I32, shape, strides: None })
            };
            let args: Vec<Arg> = self.params().iter().map(arg).collect();
            if let Err(e) = exe.launch(&args) {
                assert!(e.to_string().contains("waited"), "{}: {e}", self.name);
                return NO_END.to_owned();
            }
        }
        self.outcome(&seen)
    }
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// The outcomes of a row, whose cells may have several values: `0 or 11`.
fn outcomes(cells: &[&str]) -> Vec<String> {
    cells.iter().filter(|cell| !cell.is_empty()).fold(vec![String::new()], |begun, cell| {
        let with = |value: &str| begun.iter().map(move |begun| format!("{begun} {value}")).collect::<Vec<_>>();
        cell.split(" or ").flat_map(with).map(|outcome| outcome.trim().to_owned()).collect()
    })
}

/// The element that a rank has to give away.
fn mine(rank: u32, launch: u32) -> i32 {
    (10 * (rank + 1) + launch) as i32
}

fn pair(bytes: &[u8]) -> [i32; 2] {
    [0, 4].map(|at| i32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
}

/// The function `copy` of the engine: its second tensor becomes its first.
struct Engine;

impl Functions for Engine {
    fn call(&self, call: Call, tensors: &mut [View], _: &[Scalar]) -> Option<Result<(), i32>> {
        assert_eq!(call.name, "copy");
        let [src, dst] = tensors else { panic!("two tensors") };
        dst.bytes.copy_from_slice(src.bytes);
        Some(Ok(()))
    }
}

unsafe extern "C" fn copy(context: *const CallbackContext, _: *mut c_void) -> i32 {
    // SAFETY: the context lives during the call, and the programs pass two tensors of one i32.
    unsafe {
        let views = std::slice::from_raw_parts((*context).tensors, 2);
        std::ptr::copy_nonoverlapping(views[0].data.cast::<i32>(), views[1].data.cast::<i32>(), 1);
    }
    0
}

/// Calls `judge` with every test, and reports all complaints at once.
fn each(judge: impl Fn(&Litmus) -> Result<(), String>) {
    let complaints: Vec<String> =
        all().iter().filter_map(|test| judge(test).err().map(|e| format!("{}: {e}", test.name))).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn programs_are_accepted_by_the_verifier() {
    each(|test| {
        let findings = verify(&test.program, Some(test.nranks));
        findings.iter().find(|f| f.severity == Severity::Error).map_or(Ok(()), |error| Err(error.to_string()))
    });
}

#[test]
fn a_check_says_what_the_page_says() {
    each(|test| {
        let found = [Memory::Host, Memory::Npu].map(|memory| test.findings(memory));
        let said = [test.host.clone(), test.npu.clone()];
        if found == said { Ok(()) } else { Err(format!("{found:?}, not {said:?}")) }
    });
}

/// A page that allows more than there is would teach needless caution.
#[test]
fn what_is_allowed_comes_up_and_nothing_else() {
    each(|test| {
        let shown = test.interpreted();
        let right = shown.is_superset(&test.allowed) && shown.iter().all(|outcome| test.may_be(outcome));
        if right { Ok(()) } else { Err(format!("{shown:?}, not {:?} or {:?}", test.allowed, test.possible)) }
    });
}

#[test]
fn compiled_code_does_only_what_is_allowed() {
    each(|test| {
        let shown = test.launched();
        let right = shown.iter().all(|outcome| test.may_be(outcome));
        if right { Ok(()) } else { Err(format!("{shown:?}, not {:?} or {:?}", test.allowed, test.possible)) }
    });
}

/// Where there are several outcomes a check finds something.
#[test]
fn what_a_check_accepts_has_one_outcome() {
    each(|test| {
        let sound = test.host.is_empty() && test.npu.is_empty();
        let outcomes = test.allowed.union(&test.possible).count();
        if sound && outcomes != 1 { Err(format!("{outcomes} outcomes")) } else { Ok(()) }
    });
}
