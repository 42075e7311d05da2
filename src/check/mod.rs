//! The checker: runs a program as the language defines it, in many orders, and tells what can go wrong.
//!
//! A run interprets all ranks, tasks and blocks, several launches in a row, on private copies of windows and tensors. Its
//! order is a [`Schedule`] that can be run again. [`rules`] lists what is found.

mod callback;
mod classify;
mod clock;
mod describe;
mod explore;
mod fault;
mod host;
mod inputs;
mod machine;
mod memory;
mod ops;
mod options;
mod plan;
mod reduce;
mod registers;
pub mod rules;
mod shadow;
mod signal;
mod signals;
mod task;
pub mod value;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Diagnostic, Program};
use crate::passes::expand_collectives::{Target, expand_collectives};

use classify::classify;
use describe::Writer;
use machine::Stop;
use plan::Plan;

pub use fault::Fault;
pub use inputs::{Fill, Given, GivenTensor, Inputs, UNBOUND_EXTENT, inputs};
pub use options::{Arg, Call, Explore, Functions, Memory, Options, Scalar, Schedule, View};
pub use plan::MAX_LAUNCHES;
pub use signals::{RankTask, Signal, Signals};

/// What was explored, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In source order, each once.
    pub findings: Vec<Finding>,
    /// Schedules that were run.
    pub schedules: u64,
    /// Steps of all of them: pieces of a task between two signals.
    pub steps: u64,
    /// Every schedule was run, up to the order of independent steps.
    pub complete: bool,
}

/// Something that can go wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What is said about it; its message ends with the schedule.
    pub diagnostic: Diagnostic,
    /// A schedule that shows it.
    pub schedule: Schedule,
}

/// What a run leaves.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Windows by rank, laid out as [`crate::passes::plan_windows`] says.
    pub windows: Vec<Vec<u8>>,
    /// Arguments of the last launch, as they came, after it.
    pub args: Vec<Arg>,
    /// The mistake that ended it.
    pub fault: Option<Fault>,
    /// What it shows.
    pub findings: Vec<Diagnostic>,
    /// All launches have come to their end.
    pub done: bool,
}

/// Explores a program that the verifier has no errors for. Goes on while `go_on` says so and the budget lasts.
///
/// Errors: `InvalidArgument` if the arguments are not those of the host driver, `Unsupported` if a run takes too long.
pub fn check(program: &Program, options: &Options, go_on: &mut dyn FnMut() -> bool) -> Result<Report> {
    let written_out = expand_collectives(program, &Target::new(options.nranks))?;
    explore::explore(&Plan::new(&written_out, program.ops.len(), options)?, go_on)
}

/// Runs a program that has no collectives once, and tells who signals whom.
///
/// Errors: as [`check`].
pub fn signals(program: &Program, options: &Options) -> Result<Signals> {
    let plan = Plan::new(program, program.ops.len(), options)?;
    let (machine, _) = explore::run(&plan, &Schedule::Choices(Vec::new()));
    match machine.stop {
        Some(Stop::TooLong) => Err(too_long()),
        _ => Ok(Signals::of(&machine)),
    }
}

/// Runs a program once, in the order of a schedule.
///
/// Errors: as [`check`].
pub fn run(program: &Program, options: &Options, schedule: &Schedule) -> Result<Outcome> {
    let written_out = expand_collectives(program, &Target::new(options.nranks))?;
    let plan = Plan::new(&written_out, program.ops.len(), options)?;
    let (machine, _) = explore::run(&plan, schedule);
    let writer = Writer::new(&plan);
    let shown = classify(&machine, None);
    let findings = shown.iter().map(|shown| writer.describe(&machine, shown)).collect();
    let done = machine.is_done();
    let fault = match machine.stop {
        Some(Stop::Fault(fault, _)) => Some(fault),
        Some(Stop::TooLong) => return Err(too_long()),
        Some(Stop::Callback(..)) | None => None,
    };
    let first_arg = plan.args_of(options.launches - 1);
    let count = program.host.as_ref().map_or(0, |host| host.params.len());
    let (windows, args) = machine.memory.into_parts(first_arg, &options.args[first_arg..first_arg + count]);
    Ok(Outcome { windows, args, fault, findings, done })
}

fn too_long() -> Error {
    Error::new(ErrorKind::Unsupported, "the run takes too many steps to be checked")
}
