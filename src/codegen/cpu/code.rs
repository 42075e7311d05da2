//! Compiled programs, and what is known of their ops when one of them goes wrong.

use cranelift_entity::PrimaryMap;

use super::abi::{Driver, Run};
use super::domain::Numbering;
use super::jit::CodeMemory;
use crate::codegen::sites::Site;
use crate::codegen::versions::Version;
use crate::ir::{NumberedCall, Op};
use crate::passes::task_graph::Mode;
use crate::verify::domains::DomainId;

/// What a program is compiled for.
#[derive(Clone, Debug)]
pub struct Binding<'a> {
    /// Number of ranks.
    pub nranks: u32,
    /// The rank, if the code serves one rank only; its index is then a constant in the code.
    pub rank: Option<u32>,
    /// Bytes between the windows of neighbouring ranks.
    pub stride: usize,
    /// Where each buffer lies in a rank's windows.
    pub layout: &'a crate::passes::plan_windows::Layout,
    /// Check offsets and peers that are not known when compiling.
    pub checked: bool,
    /// Call [`super::abi::Hooks::stop`] wherever the order of ranks may matter.
    pub shaken: bool,
    /// Call [`super::abi::Hooks::record`] for a trace.
    pub traced: bool,
    /// Tasks run as kernels on a card: make no code of them, but submit each one with the values that it uses.
    pub offloaded: bool,
    /// By rank, those whose windows are not mapped; empty if all are.
    pub far: &'a [bool],
    /// Make a fence between a signal and the look for sleepers, because sleepers cannot make it.
    pub fenced: bool,
}

/// A task, as the runtime orders and runs it.
#[derive(Clone, Debug)]
pub struct TaskCode {
    /// Its name.
    pub name: String,
    /// Its [`Site`].
    pub site: u32,
    /// What it is in the program: the version of its entry, and the op.
    pub origin: (Version, Op),
    /// Runs one block; none for a task that is [`Binding::offloaded`].
    pub run: Option<Run>,
    /// Number of values that it uses from outside.
    pub nargs: usize,
    /// What it touches. A submission has two numbers, first and last index, for each dimension of each.
    pub accesses: Vec<TaskAccess>,
    /// Number of instances that a submission names as dependencies.
    pub ndeps: usize,
    /// Tasks of which it waits for every instance so far, by number.
    pub all_of: Vec<u32>,
    /// It may block in a wait.
    pub waits: bool,
    /// It may end only when cells have arrived.
    pub defers: bool,
}

/// What a task touches.
#[derive(Clone, Debug)]
pub struct TaskAccess {
    /// A number, the same for whatever may be the same memory.
    pub root: usize,
    /// Its name, for reports.
    pub name: String,
    /// How.
    pub mode: Mode,
    /// Number of dimensions that are told apart; of none, all accesses meet.
    pub ndims: usize,
}

/// A function of the engine that the program calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCode {
    /// Its name.
    pub name: String,
    /// Number of tensors among its arguments.
    pub ntensors: usize,
    /// Number of scalars.
    pub nscalars: usize,
    /// Its [`Site`].
    pub site: u32,
}

/// A compiled program.
pub struct Code {
    /// Entry point, one call a rank.
    pub driver: Driver,
    /// The driver's tasks on the host, to be called once a process when all its ranks have done their part.
    pub host_tasks: Option<Driver>,
    /// Bytes of tile memory that a rank needs.
    pub scratch_bytes: usize,
    /// The program's ops of interest; [`super::abi::Fault::site`] and waits index it.
    pub sites: Vec<Site>,
    /// The tasks.
    pub tasks: Vec<TaskCode>,
    /// The functions of the engine that tasks call.
    pub functions: Vec<FunctionCode>,
    /// The calls that ranks compare.
    pub calls: Vec<NumberedCall>,
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// Tables that the code reads.
    pub(super) _numberings: PrimaryMap<DomainId, Numbering>,
    /// What the driver lies in; nothing may run in it when this is dropped.
    pub(super) _memory: CodeMemory,
}
