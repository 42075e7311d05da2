//! PTO-ISA kernels for Ascend NPUs, as C++ text.

pub mod kernel;
