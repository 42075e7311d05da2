//! The rows, one file a group. A group's rows begin with its name and a slash.

mod check;
pub mod collectives;
mod core;
mod hosts;
mod limits;
mod tasks;

use crate::row::Row;

/// Every row, in the order of the table.
pub fn all() -> Vec<Row> {
    [limits::rows(), core::rows(), tasks::rows(), collectives::rows(), hosts::rows(), check::rows()]
        .into_iter()
        .flatten()
        .collect()
}
