//! What the vendor's headers say, in our words; only what is used here.

mod acl;
mod codes;
mod hccl;
mod memory;

pub use acl::*;
pub use codes::*;
pub use hccl::*;
pub use memory::*;
