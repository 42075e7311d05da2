//! Native code for the ranks of this host.
//!
//! Each task becomes a function, each entry a function that calls its tasks (for each combination of domains that its
//! windows come with), and the host driver a function that calls the entries which this rank has to run. World, rank (if the code serves one rank), window offsets and static shapes
//! are constants in the code. Scalars, control flow, addresses, signals and checks are native; tiles and large moves go
//! to [`crate::kernels`].

pub mod abi;
pub mod code;

mod bounds;
mod chaos;
mod combine;
mod compiler;
mod domain;
mod function;
mod host;
mod jit;
mod locals;
mod memory;
mod plan_tiles;
mod requirement;
mod scalar;
mod signal;
mod size;
mod submit;
mod task;
mod tile;
mod trace;
mod transfer;

pub use code::{Binding, Code, FunctionCode, TaskAccess, TaskCode};

use crate::error::Result;
use crate::ir::Program;
use crate::kernels::kernels;

/// The instructions that code for this CPU uses in its inner loops.
pub fn instructions() -> &'static str {
    kernels().level().name()
}

/// Compiles a verified program.
pub fn compile(program: &Program, binding: &Binding, hooks: &abi::Hooks) -> Result<Code> {
    compiler::Compiler::new(program, binding, hooks)?.compile()
}
