//! A program with what it is given and what it must leave: run by the interpreter and by compiled code.

use std::sync::Arc;

use pld::check::{self, Schedule};
use pld::error::Result;
use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::ir::{DType, Program};
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::runtime::{Arg, CompileOptions, Executable, Resident, TensorArg, World, WorldOptions};

use crate::numbers::{Number, decode};

/// A tensor of the host driver that is sliced by rank.
#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    pub dtype: DType,
    /// Without the rank axis.
    pub shape: Vec<i64>,
    /// By rank.
    pub before: Vec<Vec<u8>>,
    /// By rank.
    pub after: Vec<Vec<u8>>,
    /// How far an element may be off, relative to it: then all ranks must have the same elements.
    pub tolerance: f32,
}

/// A program whose parameters are tensors.
pub struct Case {
    pub text: String,
    pub nranks: u32,
    pub tensors: Vec<Tensor>,
}

pub fn world(nranks: u32) -> Arc<World> {
    World::create(nranks, &WorldOptions::default()).unwrap()
}

pub fn program(text: &str) -> Program {
    parse(text, "case.pld").unwrap_or_else(|mistakes| panic!("{}\n{text}", mistakes[0]))
}

impl Case {
    /// The same on hosts of so many ranks, side by side: as a program without collectives.
    pub fn on_hosts(self, ranks_per_host: u32) -> Self {
        let target = Target::on_hosts(self.nranks, ranks_per_host);
        let written_out = expand_collectives(&program(&self.text), &target).expect("it expands").into_owned();
        Self { text: print(&written_out), ..self }
    }

    /// What the interpreter leaves in the simplest order and in a random one; the checker has nothing against others.
    pub fn interpret(&self, schedules: u64) {
        let program = program(&self.text);
        let args: Vec<check::Arg> =
            self.tensors.iter().map(|tensor| check::Arg::Ranked(tensor.before.clone())).collect();
        let options = check::Options { nranks: self.nranks, args: &args, schedules, ..check::Options::default() };
        for schedule in [Schedule::Choices(Vec::new()), Schedule::Random(7)] {
            let outcome = check::run(&program, &options, &schedule).unwrap_or_else(|e| panic!("{e}\n{}", self.text));
            assert!(outcome.done, "{schedule}: {:?}\n{}", outcome.findings, self.text);
            let left: Vec<Vec<Vec<u8>>> = outcome.args.into_iter().map(ranked).collect();
            self.compare(&left, &format!("interpreted in the order {schedule}"));
        }
        if schedules > 0 {
            let report = check::check(&program, &options, &mut || true).unwrap();
            assert!(report.findings.is_empty(), "{}\n{}", report.findings[0].diagnostic, self.text);
        }
    }

    pub fn compile(&self, world: &Arc<World>, options: &CompileOptions) -> Arc<Executable> {
        let program = program(&self.text);
        Executable::compile(&program, world, options).unwrap_or_else(|e| panic!("{e}\n{}", self.text))
    }

    /// What compiled code leaves, twice.
    pub fn launch(&self, world: &Arc<World>) {
        let executable = self.compile(world, &CompileOptions::default());
        let first = self.launched(&executable).unwrap_or_else(|e| panic!("{e}\n{}", self.text));
        self.compare(&first, "compiled");
        let second = self.launched(&executable).unwrap_or_else(|e| panic!("{e}\n{}", self.text));
        assert!(first == second, "another launch leaves something else\n{}", self.text);
    }

    /// What one launch leaves, by tensor and rank.
    pub fn launched(&self, executable: &Executable) -> Result<Vec<Vec<Vec<u8>>>> {
        self.launched_as(executable, 0..self.nranks as usize)
    }

    /// The same of the ranks of this process.
    pub fn launched_as(&self, executable: &Executable, ranks: std::ops::Range<usize>) -> Result<Vec<Vec<Vec<u8>>>> {
        let mut memory: Vec<Memory> =
            self.tensors.iter().map(|tensor| Memory::new(&tensor.before[ranks.clone()].concat())).collect();
        let all = ranks.len() == self.nranks as usize;
        let shapes: Vec<Vec<i64>> = self
            .tensors
            .iter()
            .map(|tensor| all.then_some(self.nranks.into()).into_iter().chain(tensor.shape.clone()).collect())
            .collect();
        let tensors = self.tensors.iter().zip(&mut memory).zip(&shapes);
        let args: Vec<Arg> = tensors
            .map(|((tensor, memory), shape)| {
                let data = memory.words.as_mut_ptr().cast();
                Arg::Tensor(TensorArg { data, dtype: tensor.dtype, shape, strides: None })
            })
            .collect();
        executable.launch(&args)?;
        let left = memory.iter().zip(&self.tensors).map(|(memory, tensor)| memory.parts(tensor, ranks.len()));
        Ok(left.collect())
    }

    /// The same on the card of a rank, twice, compared.
    pub fn launch_on_card(&self, world: &World, executable: &Executable, rank: usize) -> Result<()> {
        for launch in ["compiled", "compiled, the second time"] {
            let residents = self.tensors.iter().map(|tensor| {
                let resident = Resident::create_stacked(world, tensor.dtype, &tensor.shape)?;
                resident.copy_in(rank as u32, &tensor.before[rank])?;
                Ok(resident)
            });
            let residents: Vec<Resident> = residents.collect::<Result<_>>()?;
            let args: Vec<Arg> = residents.iter().map(Arg::Resident).collect();
            executable.launch(&args)?;
            for (tensor, resident) in self.tensors.iter().zip(&residents) {
                let mut left = vec![0; tensor.before[rank].len()];
                resident.copy_out(rank as u32, &mut left)?;
                self.compare_part(tensor, rank, &left, launch);
            }
        }
        Ok(())
    }

    /// All tensors of all ranks are as they must be.
    pub fn compare(&self, left: &[Vec<Vec<u8>>], how: &str) {
        for (tensor, left) in self.tensors.iter().zip(left) {
            for (rank, bytes) in left.iter().enumerate() {
                self.compare_part(tensor, rank, bytes, how);
                let same = tensor.tolerance == 0.0 || tensor.after[rank] != tensor.after[0] || *bytes == left[0];
                assert!(same, "{how}, ranks 0 and {rank} differ in {}\n{}", tensor.name, self.text);
            }
        }
    }

    pub fn compare_part(&self, tensor: &Tensor, rank: usize, bytes: &[u8], how: &str) {
        let after = &tensor.after[rank];
        assert_eq!(bytes.len(), after.len());
        if bytes == after {
            return;
        }
        let size = tensor.dtype.size() as usize;
        for (i, (is, must)) in bytes.chunks(size).zip(after.chunks(size)).enumerate() {
            let (a, b) = (decode(tensor.dtype, is), decode(tensor.dtype, must));
            let near = match (a, b) {
                (Number::Float(a), Number::Float(b)) => (a - b).abs() <= tensor.tolerance * b.abs(),
                _ => false,
            };
            let name = &tensor.name;
            assert!(
                is == must || near,
                "{how}, element {i} of {name} of rank {rank} is {a:?}, not {b:?}\n{}",
                self.text
            );
        }
    }
}

fn ranked(arg: check::Arg) -> Vec<Vec<u8>> {
    match arg {
        check::Arg::Ranked(parts) => parts,
        other => panic!("{other:?} is not sliced by rank"),
    }
}

/// Aligned bytes.
struct Memory {
    words: Vec<u64>,
}

impl Memory {
    fn new(bytes: &[u8]) -> Self {
        let word = |chunk: &[u8]| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        };
        Self { words: bytes.chunks(8).map(word).collect() }
    }

    fn parts(&self, tensor: &Tensor, ranks: usize) -> Vec<Vec<u8>> {
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let size = tensor.before[0].len();
        (0..ranks).map(|rank| bytes[rank * size..(rank + 1) * size].to_vec()).collect()
    }
}
