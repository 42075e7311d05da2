//! PTO-ISA kernels for Ascend NPUs, as C++ text.
//!
//! A program becomes one file. Each task becomes a function in it, once for each version of its entry: first statements
//! as data ([`kernel`]), then text. Scalars and control flow stay what they are, tiles get places in the unified buffer,
//! and other ranks are reached through the `CommContext` of a window's domain. What is the same in every kernel stands in
//! `pld_kernel.hpp`.

pub mod check_fences;
pub mod effects;
pub mod fences;
pub mod kernel;
pub mod target;

mod bounds;
mod combine;
mod export;
mod expr;
mod function;
mod locals;
mod memory;
mod names;
mod plan_tiles;
mod region;
mod requirement;
mod scalar;
mod signal;
mod task;
mod tile;
mod transfer;
mod unit;
mod write;

use crate::codegen::captures::Capture;
use crate::codegen::sites::Site;
use crate::codegen::versions::Version;
use crate::error::Result;
use crate::ir::{Dim, Entry, Op, Program};
use crate::passes::plan_windows::Layout;
use crate::verify::domains::DomainId;

pub use export::{Export, export};
pub use target::Target;

use kernel::Body;

/// What kernels are made for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The generation of NPUs.
    pub target: Target,
    /// Number of ranks.
    pub nranks: u32,
    /// Check what is not known to be good when compiling, and let the host end waits.
    pub checked: bool,
}

/// A parameter of a kernel: 8 bytes of its argument block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelParam {
    /// Address of the rank's word that stops its kernels.
    Stop,
    /// Address of the stream's reports.
    Reports,
    /// The rank in the world.
    Rank,
    /// The value of a dimension that is bound at launch.
    Dim(Dim),
    /// Address of the `CommContext` of a domain.
    Context(DomainId),
    /// Something from outside the task: an integer or a bool, the bits of a float, the address of a tensor, for a window its
    /// offset in the windows, and of a variable its value.
    Capture(Capture),
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Name of the function; with `_sim` behind it, of the one that a simulated device calls.
    pub name: String,
    /// The entry of its task.
    pub entry: Entry,
    /// The version of the entry.
    pub version: Version,
    /// The task.
    pub op: Op,
    /// The parameters, in order.
    pub params: Vec<KernelParam>,
    /// The task's [`Site`].
    pub site: u32,
}

/// The kernels of a program.
#[derive(Clone, Debug)]
pub struct Module {
    /// Name of the file.
    pub file: String,
    /// What is in it.
    pub source: String,
    /// Names and contents of the headers that stand beside it.
    pub headers: &'static [(&'static str, &'static str)],
    /// The functions.
    pub kernels: Vec<Kernel>,
    /// What reports name, by number.
    pub sites: Vec<Site>,
}

/// Names and contents of the headers of every module, of which the first includes the others.
const HEADERS: &[(&str, &str)] =
    &[("pld_kernel.hpp", include_str!("pld_kernel.hpp")), ("pld_scalar.hpp", include_str!("pld_scalar.hpp"))];

/// Makes kernels of the tasks of a verified program without collectives.
///
/// Errors: `Unsupported` where the target cannot do what a task asks, with what it can do instead.
pub fn emit(program: &Program, layout: &Layout, options: &Options) -> Result<Module> {
    unit::Unit::new(program, layout, options)?.emit()
}

/// The kernels that [`emit`] writes down, as statements: name and body.
pub fn bodies(program: &Program, layout: &Layout, options: &Options) -> Result<Vec<(String, Body)>> {
    let lowered = unit::Unit::new(program, layout, options)?.lower()?;
    Ok(lowered.into_iter().map(|kernel| (kernel.kernel.name, kernel.body)).collect())
}
