//! The rows, one file a group. A group's rows begin with its name and a slash.

mod limits;

use crate::row::Row;

/// Every row, in the order of the table.
pub fn all() -> Vec<Row> {
    [limits::rows()].into_iter().flatten().collect()
}
