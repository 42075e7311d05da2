//! Native code for the ranks of this host.

pub mod abi;
pub mod code;

pub use code::{Binding, Code, Site, SiteOperand};
