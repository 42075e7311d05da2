//! Generated code on plain threads, without the runtime.

#[path = "../support/ranks.rs"]
mod ranks;

mod allreduce;
