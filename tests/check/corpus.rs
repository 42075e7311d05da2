//! Reads the programs, and makes the arguments that they are run with.
//!
//! `#! ranks=2 launches=2 persistent memory=npu` says how; `#! input xs = 1 0 | 0 1` gives the elements of an argument, those
//! of all ranks or each rank's own.

use std::path::Path;

use half::{bf16, f16};
use pld::check::{Arg, Call, Fill, Functions, Memory, Options, Scalar, View, inputs};
use pld::ir::parse::parse;
use pld::ir::program::Param;
use pld::ir::{DType, Program};

pub struct Case {
    pub name: String,
    /// As findings name it.
    pub file: String,
    pub program: Program,
    pub marks: Vec<Mark>,
    /// How it is run, as its text says.
    pub directives: Vec<String>,
    pub nranks: u32,
    launches: u32,
    persistent: bool,
    memory: Memory,
    pub args: Vec<Arg>,
}

/// What is found in a line.
pub struct Mark {
    pub line: u32,
    pub code: String,
}

pub fn all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/programs");
    let listing = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = listing.map(|entry| entry.expect("a directory entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == "pld")).collect();
    paths.sort();
    let case = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Case::new(path.file_stem().expect("a name").to_str().expect("ASCII"), &text)
    };
    paths.iter().map(case).collect()
}

pub fn faulty() -> Vec<Case> {
    all().into_iter().filter(|case| !case.name.ends_with(".fixed")).collect()
}

pub fn fixed() -> Vec<Case> {
    all().into_iter().filter(|case| case.name.ends_with(".fixed")).collect()
}

impl Case {
    fn new(name: &str, text: &str) -> Self {
        let file = format!("{name}.pld");
        let program = parse(text, &file).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let directives: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("#! ")).map(str::to_string).collect();
        let (mut nranks, mut launches, mut persistent, mut memory) = (2, 1, false, Memory::Host);
        let mut given = Vec::new();
        for directive in &directives {
            if let Some((input, values)) = directive.strip_prefix("input ").and_then(|rest| rest.split_once(" = ")) {
                given.push((input, values));
                continue;
            }
            for word in directive.split(' ') {
                match word.split_once('=') {
                    Some(("ranks", n)) => nranks = n.parse().expect("a number of ranks"),
                    Some(("launches", n)) => launches = n.parse().expect("a number of launches"),
                    Some(("memory", "npu")) => memory = Memory::Npu,
                    None if word == "persistent" => persistent = true,
                    _ => panic!("{file}: '{word}' means nothing"),
                }
            }
        }
        let args = arguments(&program, nranks, launches, &given);
        let marks = marks(text);
        Self { name: name.into(), file, program, marks, directives, nranks, launches, persistent, memory, args }
    }

    pub fn options(&self) -> Options<'_> {
        let (nranks, launches) = (self.nranks, self.launches);
        Options { nranks, launches, persistent: self.persistent, memory: self.memory, ..Options::default() }
    }
}

fn marks(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if let Some((_, codes)) = text.split_once(" #! ").filter(|_| !text.starts_with('#')) {
            marks.extend(codes.split(' ').map(|code| Mark { line, code: code.into() }));
        }
    }
    marks
}

/// A set of arguments for each launch: what is given, and otherwise what the checker makes up.
fn arguments(program: &Program, nranks: u32, launches: u32, given: &[(&str, &str)]) -> Vec<Arg> {
    let mut args = inputs(program, nranks, launches, Fill::Iota, 0, &[]).expect("the driver takes inputs").args;
    let params = &program.host.as_ref().expect("a host driver").params;
    for (name, text) in given {
        let named = |param: &Param| match *param {
            Param::Tensor(tensor) => (program.tensors[tensor].name.as_deref() == Some(name)).then_some(tensor),
            Param::Scalar(_) => None,
        };
        let (number, tensor) = params
            .iter()
            .enumerate()
            .find_map(|(number, param)| Some((number, named(param)?)))
            .unwrap_or_else(|| panic!("no tensor is called {name}"));
        let lists: Vec<Vec<u8>> = text.split(" | ").map(|list| elements(program.tensors[tensor].dtype, list)).collect();
        for arg in args.iter_mut().skip(number).step_by(params.len()) {
            let Arg::Ranked(parts) = arg else { panic!("{name} is not given by rank") };
            for (rank, part) in parts.iter_mut().enumerate() {
                let list = &lists[if lists.len() == 1 { 0 } else { rank }];
                assert_eq!(list.len(), part.len(), "bytes of {name}");
                part.clone_from(list);
            }
        }
    }
    args
}

fn elements(dtype: DType, list: &str) -> Vec<u8> {
    list.split(' ').flat_map(|number| bytes(dtype, number.parse().expect("a number"))).collect()
}

fn bytes(dtype: DType, value: f64) -> Vec<u8> {
    match dtype {
        DType::F32 => (value as f32).to_le_bytes().into(),
        DType::F16 => f16::from_f64(value).to_le_bytes().into(),
        DType::BF16 => bf16::from_f64(value).to_le_bytes().into(),
        _ => (value as i64).to_le_bytes()[..dtype.size() as usize].into(),
    }
}

/// The engine of these programs. `refuse_negative` takes numbers and returns 1 if one of them is negative.
struct Engine;

impl Functions for Engine {
    fn call(&self, call: Call, tensors: &mut [View], _: &[Scalar]) -> Option<Result<(), i32>> {
        if call.name != "refuse_negative" {
            return None;
        }
        let numbers = &tensors[0];
        assert_eq!(numbers.dtype, DType::I32);
        let len = numbers.shape.iter().product::<i64>() as usize;
        let bytes = &numbers.bytes[..len * 4];
        let negative = bytes.chunks_exact(4).any(|b| i32::from_le_bytes(b.try_into().expect("four bytes")) < 0);
        Some(if negative { Err(1) } else { Ok(()) })
    }
}

pub fn engine() -> &'static dyn Functions {
    &Engine
}
