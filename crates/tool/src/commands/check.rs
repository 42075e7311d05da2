//! `pld check`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use pld::check::{self, Explore, Schedule};
use pld::ir::{Diagnostic, Program, Severity};
use pld::verify::verify;

use crate::console::{self, ERROR, GOOD, WARNING};
use crate::excerpt::excerpt;
use crate::exit::{Exit, Failure, Result};
use crate::seconds::seconds;
use crate::source::{Source, count};
use crate::tensors::arguments::{InputOptions, Inputs};

const EXAMPLES: &str = "\
Examples:
  pld check exchange.pld                            two ranks, one launch
  pld check --ranks 2,3 --launches 3 --persistent exchange.pld
  pld check --replay first:7=2 exchange.pld         one schedule again, as a finding names it
  pld check --verify-only *.pld                     only what is certain without running
  pld check --json - < exchange.pld

Exits with 1 if there are errors.";

/// Finds mistakes: by the rules of the language, then by running the program in many orders on copies of its memory
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// Programs; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Sizes of the world to check for; may be repeated [default: 2]
    #[arg(long, short = 'n', value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=256))]
    ranks: Vec<u32>,
    /// Launches in a row
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=check::MAX_LAUNCHES as i64))]
    launches: u32,
    /// Windows keep their contents between launches
    #[arg(long)]
    persistent: bool,
    /// When remote writes land
    #[arg(long, value_enum, default_value_t = Memory::Host)]
    memory: Memory,
    /// Most schedules that are run for each size
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// Run every schedule that can make a difference, as far as --schedules goes
    #[arg(long, conflicts_with = "replay")]
    exhaustive: bool,
    /// Ends the exploration of each size after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
    #[command(flatten)]
    inputs: InputOptions,
    /// Run this schedule only
    #[arg(long, value_name = "SCHEDULE")]
    replay: Option<Schedule>,
    /// Run nothing
    #[arg(long, conflicts_with_all = ["replay", "exhaustive"])]
    verify_only: bool,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// When remote writes land.
#[derive(Clone, Copy, ValueEnum)]
enum Memory {
    /// At the end of the task that made them
    Host,
    /// At a notify of the task that made them
    Npu,
}

/// Something that is said about a file.
struct Finding {
    diagnostic: Diagnostic,
    /// The size of the world that shows it first; none if any does.
    ranks: Option<u32>,
    schedule: Option<Schedule>,
}

/// What was run for one size of the world.
struct Explored {
    file: String,
    ranks: u32,
    schedules: u64,
    steps: u64,
    complete: bool,
}

/// What is known about all files so far.
#[derive(Default)]
struct Results {
    findings: Vec<Value>,
    explored: Vec<Value>,
    errors: usize,
    warnings: usize,
}

impl Check {
    /// Checks every file, whatever is found in those before.
    pub fn run(self) -> Result<Exit> {
        let mut results = Results::default();
        let mut failure = None;
        for path in &self.files {
            match Source::read(path) {
                Ok(source) => self.file(&source, &mut results)?,
                Err(unreadable) if self.files.len() == 1 => return Err(unreadable),
                Err(unreadable) => {
                    console::error(&unreadable.message)?;
                    failure = Some(unreadable.exit);
                }
            }
        }
        if self.json {
            let Results { findings, explored, errors, warnings } = results;
            let all = json!({ "findings": findings, "explored": explored, "errors": errors, "warnings": warnings });
            console::print(format!("{all:#}\n"))?;
        } else if self.files.len() > 1 {
            let files = count(self.files.len(), "file");
            console::print(format!("{files}: {}\n", verdict(results.errors, results.warnings)))?;
        }
        Ok(failure.unwrap_or(if results.errors > 0 { Exit::Findings } else { Exit::Ok }))
    }

    fn file(&self, source: &Source, results: &mut Results) -> Result<()> {
        let mut findings: Vec<Finding> = Vec::new();
        let mut explored = Vec::new();
        match source.parse() {
            Err(mistakes) => findings.extend(mistakes.into_iter().map(|m| Finding::of_text(m, None))),
            Ok(program) if self.verify_only && self.ranks.is_empty() => {
                findings.extend(verify(&program, None).into_iter().map(|f| Finding::of_text(f, None)));
            }
            Ok(program) => {
                let default = [check::Options::default().nranks];
                for &ranks in if self.ranks.is_empty() { &default[..] } else { &self.ranks } {
                    let (found, run) = self.world(source, &program, ranks)?;
                    for new in found {
                        // Mostly one mistake has other numbers in its message then.
                        let known = findings.iter().any(|f| {
                            f.diagnostic.code == new.diagnostic.code
                                && f.diagnostic.line == new.diagnostic.line
                                && f.ranks != new.ranks
                        });
                        if !known {
                            findings.push(new);
                        }
                    }
                    explored.extend(run);
                }
            }
        }
        self.show(source, &findings, &explored)?;
        for finding in &findings {
            match finding.diagnostic.severity {
                Severity::Error => results.errors += 1,
                Severity::Warning => results.warnings += 1,
            }
            results.findings.push(finding.json());
        }
        results.explored.extend(explored.iter().map(Explored::json));
        Ok(())
    }

    /// Verifies and explores for one size of the world.
    fn world(&self, source: &Source, program: &Program, ranks: u32) -> Result<(Vec<Finding>, Option<Explored>)> {
        let broken = verify(program, Some(ranks));
        let is_sound = broken.iter().all(|finding| finding.severity == Severity::Warning);
        let mut findings: Vec<_> = broken.into_iter().map(|f| Finding::of_text(f, Some(ranks))).collect();
        if self.verify_only || !is_sound {
            return Ok((findings, None));
        }
        let wrong = |e: pld::error::Error| {
            let failure = Failure::from(e);
            Failure {
                message: format!("{}, {}: {}", source.name, count(ranks as usize, "rank"), failure.message),
                ..failure
            }
        };
        let inputs = Inputs::new(program, ranks, &self.inputs)?.of_launches(program, ranks, self.launches)?;
        let options = check::Options {
            nranks: ranks,
            launches: self.launches,
            persistent: self.persistent,
            memory: match self.memory {
                Memory::Host => check::Memory::Host,
                Memory::Npu => check::Memory::Npu,
            },
            explore: if self.exhaustive { Explore::Exhaustive } else { Explore::Auto },
            schedules: self.schedules,
            seed: self.inputs.seed,
            replay: self.replay.clone(),
            dims: &inputs.dims,
            args: &inputs.args,
            functions: None,
        };
        let begin = Instant::now();
        let bar = console::progress(self.schedules, &format!("{}, {}", source.name, count(ranks as usize, "rank")));
        let report = check::check(program, &options, &mut || {
            bar.inc(1);
            self.time.is_none_or(|limit| begin.elapsed() < limit)
        });
        bar.finish_and_clear();
        let report = report.map_err(wrong)?;
        findings.extend(report.findings.into_iter().map(|finding| Finding {
            diagnostic: finding.diagnostic,
            ranks: Some(ranks),
            schedule: Some(finding.schedule),
        }));
        let (schedules, steps, complete) = (report.schedules, report.steps, report.complete);
        Ok((findings, Some(Explored { file: source.name.clone(), ranks, schedules, steps, complete })))
    }

    fn show(&self, source: &Source, findings: &[Finding], explored: &[Explored]) -> Result<()> {
        if self.json {
            return Ok(());
        }
        for finding in findings {
            let mut shown = finding.diagnostic.clone();
            if let Some(ranks) = finding.ranks.filter(|_| self.ranks.len() > 1) {
                shown.notes.push(format!("with {}", count(ranks as usize, "rank")));
            }
            console::print(excerpt(&shown, &source.text))?;
        }
        let of = |severity| findings.iter().filter(|f| f.diagnostic.severity == severity).count();
        let verdict = verdict(of(Severity::Error), of(Severity::Warning));
        let runs: Vec<String> = explored.iter().map(Explored::text).collect();
        let what = if runs.is_empty() { "nothing run".into() } else { runs.join("; ") };
        Ok(console::print(format!("{}: {verdict} ({what})\n", source.name))?)
    }
}

/// `2 errors, 1 warning`, or `ok`.
fn verdict(errors: usize, warnings: usize) -> String {
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(format!("{ERROR}{}{ERROR:#}", count(errors, "error")));
    }
    if warnings > 0 {
        parts.push(format!("{WARNING}{}{WARNING:#}", count(warnings, "warning")));
    }
    if parts.is_empty() { format!("{GOOD}ok{GOOD:#}") } else { parts.join(", ") }
}

impl Finding {
    fn of_text(diagnostic: Diagnostic, ranks: Option<u32>) -> Self {
        Self { diagnostic, ranks, schedule: None }
    }

    fn json(&self) -> Value {
        let d = &self.diagnostic;
        json!({
            "file": d.file,
            "line": d.line,
            "column": d.column,
            "severity": d.severity.to_string(),
            "code": d.code.to_string(),
            "message": d.message,
            "snippet": d.snippet,
            "notes": d.notes,
            "hint": d.hint,
            "ranks": self.ranks,
            "schedule": self.schedule.as_ref().map(ToString::to_string),
        })
    }
}

impl Explored {
    fn text(&self) -> String {
        let ranks = count(self.ranks as usize, "rank");
        let schedules = count(self.schedules as usize, "schedule");
        let all = if self.complete { "all of " } else { "" };
        format!("{ranks}: {all}{schedules}, {}", count(self.steps as usize, "step"))
    }

    fn json(&self) -> Value {
        json!({
            "file": self.file,
            "ranks": self.ranks,
            "schedules": self.schedules,
            "steps": self.steps,
            "complete": self.complete,
        })
    }
}
