//! The commands, one a file.

mod check;
mod fmt;
mod print;

use clap::Subcommand;

use crate::exit::{Exit, Result};

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    Check(check::Check),
    Fmt(fmt::Fmt),
    Print(print::Print),
}

impl Command {
    /// Does it. `cli` is the whole command line, for those that describe it.
    pub fn run(self, _cli: &mut clap::Command) -> Result<Exit> {
        match self {
            Command::Check(check) => check.run(),
            Command::Fmt(fmt) => fmt.run(),
            Command::Print(print) => print.run(),
        }
    }
}
