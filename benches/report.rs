//! The result of a run: a table for people and a list of rows for programs.

use std::fmt::Write;

use serde::Serialize;

use crate::campaign::Outcome;
use crate::row::Row;

/// One row as it is written to `bench.json`. What was not measured is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    pub name: String,
    pub value: Option<f64>,
    pub unit: &'static str,
    pub limit: Option<f64>,
    pub best_peer: Option<f64>,
    /// The value divided by what the first target compares it with.
    pub ratio: Option<f64>,
    pub target: String,
    pub met: Option<bool>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub runs: usize,
}

impl Entry {
    /// The row and its outcome.
    pub fn new(row: &Row, outcome: &Outcome) -> Self {
        let value = outcome.value.map(|v| v.median);
        let best_peer = row.unit.best(outcome.peers.iter().map(|(_, value)| *value));
        let reference = row.reference(outcome.limit, best_peer);
        Self {
            name: row.name.clone(),
            value,
            unit: row.unit.name(),
            limit: outcome.limit,
            best_peer,
            ratio: value.zip(reference).map(|(value, reference)| value / reference),
            target: row.target_text(),
            met: value.and_then(|value| row.met(value, outcome.limit, best_peer)),
            min: outcome.value.map(|v| v.min),
            max: outcome.value.map(|v| v.max),
            runs: outcome.value.map_or(0, |v| v.runs),
        }
    }
}

/// The rows as JSON.
pub fn json(entries: &[Entry]) -> String {
    let mut text = serde_json::to_string_pretty(entries).expect("numbers and strings can be written");
    text.push('\n');
    text
}

/// The rows as a table in Markdown, in columns that line up; `peers` are the columns of peers.
pub fn table(rows: &[(Row, Outcome)], peers: &[&str]) -> String {
    let mut lines = vec![header(peers)];
    for (row, outcome) in rows {
        let entry = Entry::new(row, outcome);
        let mut cells = vec![entry.name, entry.unit.to_owned(), number(entry.limit), number(entry.value)];
        cells.push(match (entry.min, entry.max) {
            (Some(min), Some(max)) => format!("{}-{} ({})", number(Some(min)), number(Some(max)), entry.runs),
            _ => String::new(),
        });
        for peer in peers {
            cells.push(number(outcome.peers.iter().find(|(name, _)| name == peer).map(|(_, value)| *value)));
        }
        cells.push(number(entry.ratio));
        cells.push(entry.target);
        cells.push(entry.met.map_or("", |met| if met { "yes" } else { "NO" }).to_owned());
        lines.push(cells);
    }
    align(&lines)
}

fn header(peers: &[&str]) -> Vec<String> {
    let left = ["row", "unit", "limit", "value", "min-max (runs)"];
    let right = ["ratio", "target", "met"];
    left.iter().chain(peers).chain(&right).map(|&title| title.to_owned()).collect()
}

/// Three significant digits, but all digits of whole numbers.
fn number(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(v) if v.abs() >= 100.0 => format!("{v:.0}"),
        Some(v) if v.abs() >= 10.0 => format!("{v:.1}"),
        Some(v) if v.abs() >= 1.0 => format!("{v:.2}"),
        Some(v) => format!("{v:.3}"),
    }
}

fn align(lines: &[Vec<String>]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            write!(text, "| {cell:width$} ").expect("a string takes all");
        }
        text.push_str("|\n");
        if index == 0 {
            widths.iter().for_each(|width| write!(text, "| {:-<width$} ", "").expect("a string takes all"));
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Summary;
    use crate::row::{Target, Unit};

    fn measured(median: f64) -> Option<Summary> {
        Some(Summary { median, min: median - 0.25, max: median + 0.25, runs: 7 })
    }

    fn rows() -> Vec<(Row, Outcome)> {
        let row = |name, unit| Row::new(name, unit, |_| Ok(()));
        vec![
            (
                row("core/a", Unit::Microseconds).target(Target::TimesLimit(1.25)).target(Target::AheadOfPeers),
                Outcome { value: measured(0.5), limit: Some(0.25), peers: vec![("One", 0.75), ("Two", 0.625)] },
            ),
            (
                row("core/b", Unit::GigabytesPerSecond).target(Target::AheadOfPeers),
                Outcome { value: measured(12.0), limit: Some(24.0), peers: vec![("One", 8.0), ("Two", 4.0)] },
            ),
            (
                row("core/c", Unit::Percent).target(Target::Absolute(5.0)),
                Outcome { value: None, limit: None, peers: vec![] },
            ),
        ]
    }

    #[test]
    fn entries_have_every_field() {
        let entries: Vec<Entry> = rows().iter().map(|(row, outcome)| Entry::new(row, outcome)).collect();
        let json: serde_json::Value = serde_json::from_str(&json(&entries)).unwrap();
        assert_eq!(
            json[0],
            serde_json::json!({
                "name": "core/a", "value": 0.5, "unit": "us", "limit": 0.25, "best_peer": 0.625, "ratio": 2.0,
                "target": "<= 1.25 x limit, ahead of peers", "met": false, "min": 0.25, "max": 0.75, "runs": 7,
            })
        );
        assert_eq!(
            json[1],
            serde_json::json!({
                "name": "core/b", "value": 12.0, "unit": "GB/s", "limit": 24.0, "best_peer": 8.0, "ratio": 1.5,
                "target": "ahead of peers", "met": true, "min": 11.75, "max": 12.25, "runs": 7,
            })
        );
        assert_eq!(
            json[2],
            serde_json::json!({
                "name": "core/c", "value": null, "unit": "%", "limit": null, "best_peer": null, "ratio": null,
                "target": "<= 5 %", "met": null, "min": null, "max": null, "runs": 0,
            })
        );
    }

    #[test]
    fn a_table_lines_up() {
        let expected = "\
| row    | unit | limit | value | min-max (runs)  | One   | Two   | ratio | target                          | met |
| ------ | ---- | ----- | ----- | --------------- | ----- | ----- | ----- | ------------------------------- | --- |
| core/a | us   | 0.250 | 0.500 | 0.250-0.750 (7) | 0.750 | 0.625 | 2.00  | <= 1.25 x limit, ahead of peers | NO  |
| core/b | GB/s | 24.0  | 12.0  | 11.8-12.2 (7)   | 8.00  | 4.00  | 1.50  | ahead of peers                  | yes |
| core/c | %    |       |       |                 |       |       |       | <= 5 %                          |     |
";
        assert_eq!(table(&rows(), &["One", "Two"]), expected);
    }
}
