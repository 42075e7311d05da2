//! Code from programs, one folder a target; beside them what targets have in common.

pub mod arguments;
pub mod captures;
pub mod cpu;
pub mod index;
pub mod pto;
pub mod sites;
pub mod versions;
