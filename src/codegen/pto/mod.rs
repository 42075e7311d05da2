//! PTO-ISA kernels for Ascend NPUs, as C++ text.

pub mod check_fences;
pub mod effects;
pub mod fences;
pub mod kernel;
pub mod target;

pub use target::Target;
