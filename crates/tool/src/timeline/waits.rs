//! Who waited for whom, and how long: all waits of a trace in one table.

use std::collections::BTreeMap;

use super::{Launch, Wait};

/// The waits of one op on one rank that one other rank ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub rank: u32,
    /// Who notified the cell last; none if nobody did.
    pub by: Option<u32>,
    pub op: String,
    pub task: String,
    pub line: String,
    pub count: u64,
    /// In nanoseconds, as all times.
    pub total: u64,
    pub longest: u64,
}

/// The table, with the most time first.
pub fn table<'l>(launches: impl IntoIterator<Item = &'l Launch>) -> Vec<Row> {
    let mut rows: BTreeMap<(u32, Option<u32>, &str, &str), Row> = BTreeMap::new();
    for wait in launches.into_iter().flat_map(|launch| &launch.waits) {
        let Wait { rank, op, task, line, notify, span, .. } = wait;
        let by = notify.as_ref().map(|notify| notify.rank);
        let row = rows.entry((*rank, by, task, op)).or_insert_with(|| {
            let (op, task, line) = (op.clone(), task.clone(), line.clone());
            Row { rank: *rank, by, op, task, line, ..Row::default() }
        });
        row.count += 1;
        row.total += span.length();
        row.longest = row.longest.max(span.length());
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total));
    rows
}
