//! `pld trace`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::console::{self, STRONG};
use crate::drawing::lanes::{self, microseconds};
use crate::exit::{Exit, Failure, Result};
use crate::source::count;
use crate::timeline::critical_path::{Step, What, critical_path};
use crate::timeline::waits::{self, Row};
use crate::timeline::{self, Launch};

const EXAMPLES: &str = "\
Examples:
  PLD_TRACE=moe.json ./engine && pld trace moe.json
  pld trace moe.json --launch 17 --svg launch17.svg
  pld trace moe.json --program prefill --json

The critical path is what the launch's time was spent on: from its end back in time on the last rank,
over to another rank wherever that one's notify was what it waited for. The table has the waits of all
launches, most time first, each with the rank whose notify ended it.

The file also opens in Perfetto.";

/// Reads a trace: the critical path of a launch, who waited for whom, and a picture of both
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Trace {
    /// What a world with a trace has written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only launches of this program
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Number of the launch to look at [default: the one of median length]
    #[arg(long, value_name = "N")]
    launch: Option<u64>,
    /// Draw that launch as swim lanes into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Most rows of the table of waits
    #[arg(long, value_name = "N", default_value_t = 12)]
    rows: usize,
    /// Print one JSON object instead, with times in nanoseconds
    #[arg(long)]
    json: bool,
}

impl Trace {
    /// Reads, tells, and draws.
    pub fn run(self) -> Result<Exit> {
        let text = fs::read_to_string(&self.file).map_err(|cause| Failure::file(&self.file, cause))?;
        let mut launches = timeline::read(&text).map_err(|cause| Failure::file(&self.file, cause))?;
        if let Some(program) = &self.program {
            launches.retain(|launch| launch.program == *program);
        }
        let launch = self.choose(&launches)?;
        let path = critical_path(launch);
        let rows = waits::table(&launches);
        if let Some(file) = &self.svg {
            fs::write(file, lanes::draw(launch, &path)).map_err(|cause| Failure::file(file, cause))?;
        }
        if self.json {
            console::print(format!("{:#}\n", as_json(launch, launches.len(), &path, &rows)))?;
        } else {
            console::print(as_text(launch, launches.len(), &path, &rows, self.rows))?;
        }
        Ok(Exit::Ok)
    }

    fn choose<'l>(&self, launches: &'l [Launch]) -> Result<&'l Launch> {
        let none = |what: String| Failure::file(&self.file, what);
        if let Some(number) = self.launch {
            let found = launches.iter().find(|launch| launch.number == number);
            return found.ok_or_else(|| none(format!("launch {number} is not in this trace")));
        }
        let mut by_length: Vec<&Launch> = launches.iter().collect();
        by_length.sort_by_key(|launch| launch.span().length());
        by_length.get(by_length.len() / 2).copied().ok_or_else(|| none("no launch is in this trace".into()))
    }
}

fn as_text(launch: &Launch, launches: usize, path: &[Step], rows: &[Row], most: usize) -> String {
    let length = launch.span().length();
    let mut out = format!(
        "{STRONG}{}, launch {}{STRONG:#} ({launches} in the trace), {}: {}\n\ncritical path\n",
        launch.program,
        launch.number,
        count(launch.parts.len(), "rank"),
        microseconds(length)
    );
    for step in path {
        let part = 100.0 * step.span.length() as f64 / length.max(1) as f64;
        let time = step.span.length() as f64 / 1000.0;
        let what = match &step.what {
            What::Task { name, blocks: 1 } => name.clone(),
            What::Task { name, blocks } => format!("{name} ({blocks} blocks)"),
            What::Between => "-".into(),
            What::Signal { from, cell, line } => format!("<- rank {from}: {cell} ({line})"),
            What::Wait { op, line } => format!("{op}: nobody told it ({line})"),
        };
        _ = writeln!(out, "{time:>12.2} us {part:>5.1} %  rank {:<3} {what}", step.rank);
    }
    if rows.is_empty() {
        out.push_str("\nnobody waited\n");
        return out;
    }
    _ = writeln!(out, "\nwaits\n{:>9} {:>12} {:>10} {:>10}", "count", "total us", "mean us", "most us");
    for row in rows.iter().take(most) {
        let [total, mean, longest] = [row.total, row.total / row.count, row.longest].map(|ns| ns as f64 / 1000.0);
        let by = row.by.map_or(String::new(), |by| format!(" for rank {by}"));
        let place = if row.line.is_empty() { String::new() } else { format!(", {} ({})", row.task, row.line) };
        _ = writeln!(
            out,
            "{:>9} {total:>12.2} {mean:>10.2} {longest:>10.2}  rank {}{by}: {}{place}",
            row.count, row.rank, row.op
        );
    }
    if rows.len() > most {
        _ = writeln!(out, "and {} more", count(rows.len() - most, "row"));
    }
    out
}

fn as_json(launch: &Launch, launches: usize, path: &[Step], rows: &[Row]) -> Value {
    let begin = launch.span().begin;
    let step = |step: &Step| {
        let (kind, details) = match &step.what {
            What::Task { name, blocks } => ("task", json!({ "task": name, "blocks": blocks })),
            What::Between => ("between", json!({})),
            What::Signal { from, cell, line } => ("signal", json!({ "from": from, "cell": cell, "line": line })),
            What::Wait { op, line } => ("wait", json!({ "op": op, "line": line })),
        };
        json!({
            "rank": step.rank,
            "begin_ns": step.span.begin.saturating_sub(begin),
            "ns": step.span.length(),
            "kind": kind,
            "details": details,
        })
    };
    let row = |row: &Row| {
        json!({
            "rank": row.rank,
            "by": row.by,
            "op": row.op,
            "task": row.task,
            "line": row.line,
            "count": row.count,
            "total_ns": row.total,
            "longest_ns": row.longest,
        })
    };
    json!({
        "program": launch.program,
        "launch": launch.number,
        "launches": launches,
        "ranks": launch.parts.len(),
        "ns": launch.span().length(),
        "critical_path": path.iter().map(step).collect::<Vec<_>>(),
        "waits": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
