//! The commands, one a file.

mod bench;
mod check;
mod completions;
mod emit;
mod fmt;
mod graph;
mod info;
mod print;
mod run;
mod spawn;
mod trace;

use std::ffi::OsString;

use clap::Subcommand;

use crate::exit::{Exit, Result};
use crate::ranks::{RANK_COMMAND, become_rank};

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    Check(check::Check),
    Fmt(fmt::Fmt),
    Print(print::Print),
    Graph(graph::Graph),
    Emit(emit::Emit),
    Run(Box<run::Run>),
    Bench(Box<bench::Bench>),
    Spawn(spawn::Spawn),
    Trace(trace::Trace),
    Info(info::Info),
    Completions(completions::Completions),
    /// Becomes the rank of a job that this process is started for
    #[command(name = RANK_COMMAND, hide = true)]
    BecomeRank {
        parent: u32,
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
}

impl Command {
    /// Does it. `cli` is the whole command line, for those that describe it.
    pub fn run(self, cli: &mut clap::Command) -> Result<Exit> {
        match self {
            Command::Check(check) => check.run(),
            Command::Fmt(fmt) => fmt.run(),
            Command::Print(print) => print.run(),
            Command::Graph(graph) => graph.run(),
            Command::Emit(emit) => emit.run(),
            Command::Run(run) => run.run(),
            Command::Bench(bench) => bench.run(),
            Command::Spawn(spawn) => spawn.run(),
            Command::Trace(trace) => trace.run(),
            Command::Info(info) => info.run(),
            Command::Completions(completions) => completions.run(cli),
            Command::BecomeRank { parent, command } => become_rank(parent, &command),
        }
    }
}
