//! `pld graph`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use pld::check::{self, RankTask, Signal, Signals};
use pld::ir::print::Text;
use pld::ir::{Op, Program};
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::passes::task_graph;

use crate::console;
use crate::drawing;
use crate::exit::{Exit, Failure, Result};
use crate::source::Source;
use crate::tensors::arguments::{InputOptions, Inputs};

const EXAMPLES: &str = "\
Examples:
  pld graph exchange.pld                                  which task waits for which, and why
  pld graph exchange.pld --format svg -o tasks.svg
  pld graph exchange.pld --signals --ranks 4 -o signals.svg
  pld graph exchange.pld --format dot | dot -Tpng -o tasks.png

pld graph moe.pld --signals --set indices=0 --set tokens=8

Signals are those of one run of the checker: a line from each task that notifies to each task
that had to wait for it. Collectives are shown as the notifies and waits that they are written
out as.";

/// Draws which tasks wait for which, or which ranks signal which
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Graph {
    /// The program; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Size of the world
    #[arg(long, short = 'n', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    ranks: u32,
    /// Who signals whom, between ranks, instead of the tasks of one rank
    #[arg(long)]
    signals: bool,
    #[command(flatten)]
    inputs: InputOptions,
    /// Form of the output [default: what -o ends in, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How a graph is written.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people at a terminal
    Text,
    /// For Graphviz
    Dot,
    /// A picture
    Svg,
}

impl Graph {
    /// Draws it.
    pub fn run(self) -> Result<Exit> {
        let source = Source::read(&self.file)?;
        let program = source.verified(Some(self.ranks))?;
        let program = expand_collectives(&program, &Target::new(self.ranks))?;
        let text = if self.signals { self.signals(&program)? } else { self.tasks(&program) };
        match &self.output {
            Some(path) => fs::write(path, text).map_err(|cause| Failure::file(path, cause))?,
            None => console::print(text)?,
        }
        Ok(Exit::Ok)
    }

    fn format(&self) -> Format {
        let extension = self.output.as_ref().and_then(|path| path.extension()?.to_str());
        self.format.unwrap_or(match extension {
            Some("svg") => Format::Svg,
            Some("dot" | "gv") => Format::Dot,
            _ => Format::Text,
        })
    }

    fn tasks(&self, program: &Program) -> String {
        match self.format() {
            Format::Text => task_graph::text(program, Some(self.ranks)),
            Format::Dot => task_graph::dot(program, Some(self.ranks)),
            Format::Svg => drawing::tasks::draw(program, &task_graph::graphs(program, Some(self.ranks))),
        }
    }

    fn signals(&self, program: &Program) -> Result<String> {
        let inputs = Inputs::new(program, self.ranks, &self.inputs)?.of_launches(program, self.ranks, 1)?;
        let options =
            check::Options { nranks: self.ranks, dims: &inputs.dims, args: &inputs.args, ..check::Options::default() };
        let signals = check::signals(program, &options)?;
        if !signals.done {
            console::warning("the run does not come to its end: see pld check")?;
        }
        let words = Words { program, text: Text::new(program) };
        Ok(match self.format() {
            Format::Text => words.text(&signals),
            Format::Dot => words.dot(&signals),
            Format::Svg => {
                let graphs = task_graph::graphs(program, Some(self.ranks));
                drawing::signals::draw(program, &graphs, &signals, |signal| words.signal(signal))
            }
        })
    }
}

/// Signals in words.
struct Words<'p> {
    program: &'p Program,
    text: Text<'p>,
}

impl Words<'_> {
    fn task(&self, task: RankTask) -> String {
        let name = self.program.ops[task.op].kind.task().map_or("", |(task, _)| &self.program.tasks[task].name);
        format!("rank {} {name}", task.rank)
    }

    /// What a signal is, whoever sends it.
    fn signal(&self, signal: &Signal) -> String {
        let Signal { buffer, notify, wait, .. } = *signal;
        format!("{}: {} -> {}", self.program.buffers[buffer].name, self.op(notify), self.op(wait))
    }

    /// An op with its line.
    fn op(&self, op: Op) -> String {
        format!("{} (line {})", self.text.op(op), self.program.ops[op].loc.line)
    }

    fn text(&self, signals: &Signals) -> String {
        let mut out = String::new();
        for (number, &task) in signals.tasks.iter().enumerate() {
            _ = writeln!(out, "{}", self.task(task));
            for signal in signals.signals.iter().filter(|signal| signal.to == number) {
                _ = writeln!(out, "  after {} by {}", self.task(signals.tasks[signal.from]), self.signal(signal));
            }
        }
        out
    }

    fn dot(&self, signals: &Signals) -> String {
        let mut out = format!("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", self.program.name);
        let mut number = 0;
        for tasks in signals.tasks.chunk_by(|a, b| a.rank == b.rank) {
            let rank = tasks[0].rank;
            _ = writeln!(out, "  subgraph cluster_{rank} {{\n    label=\"rank {rank}\";");
            for task in tasks {
                _ = writeln!(out, "    t{number} [label=\"{}\"];", self.task(*task));
                number += 1;
            }
            out.push_str("  }\n");
        }
        for signal in &signals.signals {
            let (from, to, name) = (signal.from, signal.to, &self.program.buffers[signal.buffer].name);
            let [notify, wait] = [signal.notify, signal.wait].map(|op| self.program.ops[op].loc.line);
            _ = writeln!(out, "  t{from} -> t{to} [label=\"{name}: line {notify}, line {wait}\"];");
        }
        out.push_str("}\n");
        out
    }
}
