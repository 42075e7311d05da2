//! The checker: runs a program as the language defines it, in many orders, and tells what can go wrong.
//!
//! A run interprets all ranks, tasks and blocks, several launches in a row, on private copies of windows and tensors. Its
//! order is a [`Schedule`] that can be run again. [`rules`] lists what is found.

mod inputs;
mod options;
pub mod rules;

use crate::error::Result;
use crate::ir::{Diagnostic, Program};

pub use inputs::{Fill, Given, GivenTensor, Inputs, UNBOUND_EXTENT, inputs};
pub use options::{Arg, Call, Explore, Functions, Memory, Options, Scalar, Schedule, View};

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
    /// What was found.
    pub findings: Vec<Diagnostic>,
}

/// Explores a program that the verifier has no errors for. Goes on while `go_on` says so and the budget lasts.
///
/// Errors: `InvalidArgument` if the arguments are not those of the host driver.
pub fn check(program: &Program, options: &Options, go_on: &mut dyn FnMut() -> bool) -> Result<Report> {
    let _ = (program, options, go_on);
    todo!()
}

/// Runs a program once, in the order of a schedule.
pub fn run(program: &Program, options: &Options, schedule: &Schedule) -> Result<Outcome> {
    let _ = (program, options, schedule);
    todo!()
}
