//! What stands beside kernels for NPUs.

mod build;
mod manifest;

pub use build::build_file;
pub use manifest::manifest;
