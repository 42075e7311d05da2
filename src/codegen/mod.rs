//! Code from programs, one folder a target; beside them what targets have in common.

pub mod cpu;
pub mod pto;
pub mod sites;

mod arguments;
mod captures;
mod versions;
