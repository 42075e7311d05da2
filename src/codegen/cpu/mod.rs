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
mod far;
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
use crate::ir::{DType, Program};
use crate::kernels::kernels;

/// The instructions that code for this CPU uses in its inner loops.
pub fn instructions() -> &'static str {
    kernels().level().name()
}

/// The types whose elements are added to others in memory, in the order of [`accumulators`].
const ADDED: [DType; 6] = [DType::F32, DType::F16, DType::BF16, DType::I32, DType::I16, DType::I8];

/// Adds rows of elements to others atomically: `(dst, dst_stride, src, src_stride, rows, elements)`, strides in bytes.
pub type Accumulate = unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize);

/// How a transport adds elements: their bytes, and the function. The place of a type is what
/// [`abi::Transfer::Accumulate`] counts.
pub fn accumulators() -> impl Iterator<Item = (usize, Accumulate)> {
    ADDED.into_iter().map(|dtype| {
        let kernel = kernels().accumulate_2d(dtype).expect("elements of this type are added");
        // SAFETY: the kernel has this signature, but for what the pointers point to.
        (dtype.size() as usize, unsafe { std::mem::transmute::<*const u8, Accumulate>(kernel) })
    })
}

/// Compiles a verified program.
pub fn compile(program: &Program, binding: &Binding, hooks: &abi::Hooks) -> Result<Code> {
    compiler::Compiler::new(program, binding, hooks)?.compile()
}
