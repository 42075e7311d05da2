//! What is decided about a verified program before code is made: one decision a file.

pub mod expand_collectives;
pub mod plan_windows;
pub mod share_windows;
pub mod task_graph;
