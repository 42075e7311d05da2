//! Measures libpld against the machine's limits and the libraries that a user would pick instead, in one run.
//!
//! ```text
//! pld-bench [--quick] [--no-peers] [--seconds N] [--out FILE] [NAME...]
//! pld-bench tune [--quick] [--seconds N] [--out FILE]
//! ```
//!
//! Prints a table and writes its rows to `target/bench.json`, or `FILE`. With names, only rows that begin with one of
//! them. `docs/performance.md` tells how to read it. `tune` rewrites the table by which the library chooses among the
//! algorithms of collectives.

mod board;
mod campaign;
mod limits;
mod link;
mod load;
mod method;
mod peers;
mod rank;
mod report;
mod row;
mod rows;
mod session;
mod tcp;
mod team;
mod tune;

use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use campaign::{Campaign, Outcome, Plan};
use load::Load;
use peers::Peer;
use pld_test_ranks::why_no_namespaces;
use report::Entry;
use row::Row;

const USAGE: &str = "usage: pld-bench [tune] [--quick] [--no-peers] [--seconds N] [--out FILE] [NAME...]";

/// What the command line asks for.
struct Request {
    tune: bool,
    plan: Plan,
    peers: bool,
    out: Option<PathBuf>,
    names: Vec<String>,
}

fn main() -> ExitCode {
    let (rows, trials) = (rows::all(), tune::rows());
    let result = match rank::main(rows.iter().chain(&trials)) {
        Some(result) => result,
        None => Request::parse().and_then(|request| match request.tune {
            true => tune::run(&trials, &request.out.clone().unwrap_or_else(tuning_table), &request.plan),
            false => measure(rows, &request),
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere else to say it.
            let _ = writeln!(stderr(), "pld-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Request {
    fn parse() -> Result<Self, String> {
        let mut request = Self {
            tune: false,
            plan: Plan { quick: false, budget: Duration::from_secs(240) },
            peers: true,
            out: None,
            names: Vec::new(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => request.plan.quick = true,
                "--no-peers" => request.peers = false,
                "--seconds" => {
                    let seconds = value()?.parse().map_err(|e| format!("--seconds: {e}"))?;
                    request.plan.budget = Duration::from_secs(seconds);
                }
                "--out" => request.out = Some(PathBuf::from(value()?)),
                option if option.starts_with('-') => return Err(format!("{option} is unknown\n{USAGE}")),
                "tune" => request.tune = true,
                name => request.names.push(name.to_owned()),
            }
        }
        Ok(request)
    }

    fn wants(&self, row: &Row) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| row.name.starts_with(name.as_str()))
    }
}

/// The table that `tune` rewrites.
fn tuning_table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/passes/expand_collectives/tuning.txt")
}

/// Cargo's target folder, where peers are installed and results go.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from)
}

fn measure(rows: Vec<Row>, request: &Request) -> Result<(), String> {
    let rows: Vec<Row> = rows.into_iter().filter(|row| request.wants(row)).collect();
    if rows.is_empty() {
        return Err(format!("no row begins with {}", request.names.join(" or ")));
    }
    let peers = if request.peers { peers::installed(&target()) } else { Vec::new() };
    let load = Load::begin();
    let campaign = Campaign::run(&rows, &peers, &request.plan);
    let others = load.and_then(|load| load.others());

    let rows: Vec<(Row, Outcome)> = rows
        .into_iter()
        .map(|row| {
            let outcome = campaign.outcome(&row);
            (row, outcome)
        })
        .collect();
    let entries: Vec<Entry> = rows.iter().map(|(row, outcome)| Entry::new(row, outcome)).collect();
    let out = request.out.clone().unwrap_or_else(|| target().join("bench.json"));
    std::fs::write(&out, report::json(&entries)).map_err(|e| format!("{}: {e}", out.display()))?;

    let names: Vec<&str> = peers.iter().map(|peer| peer.name).collect();
    let text = report::table(&rows, &names) + &remarks(&campaign, &peers, request, others);
    stdout().write_all(text.as_bytes()).map_err(|e| format!("standard output: {e}"))?;
    match campaign.errors.is_empty() {
        true => Ok(()),
        false => Err("not everything could be measured".to_owned()),
    }
}

/// What the reader has to know about the run.
fn remarks(campaign: &Campaign, peers: &[Peer], request: &Request, others: Option<f64>) -> String {
    let (taken, kept) = campaign.counts();
    let mut text = format!(
        "\n{} rounds, {kept} of {taken} samples count; raw trip of a cache line {:.3} us.\n",
        campaign.rounds,
        campaign.usual_trip()
    );
    if let Some(percent) = others.filter(|&percent| percent >= 3.0) {
        text += &format!("Others used {percent:.0} % of the CPUs meanwhile: repeat this on a quiet machine.\n");
    }
    if request.plan.quick {
        text += "A quick run: the numbers mean nothing.\n";
    }
    if let Some(why_not) = why_no_namespaces() {
        text += &format!("Not over links, without network namespaces: {why_not}.\n");
    }
    let missing: Vec<&str> = peers::names().filter(|name| peers.iter().all(|peer| peer.name != *name)).collect();
    if request.peers && !missing.is_empty() {
        text += &format!("Not installed: {}. `make bench-peers` installs them.\n", missing.join(", "));
    }
    for (name, error) in &campaign.errors {
        text += &format!("{name}: {error}\n");
    }
    text
}
