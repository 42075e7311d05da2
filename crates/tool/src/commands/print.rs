//! `pld print`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use pld::ir::Program;
use pld::ir::print::print;
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::passes::plan_windows::plan_windows;
use pld::passes::task_graph;

use crate::console;
use crate::exit::{Exit, Result};
use crate::source::Source;

const EXAMPLES: &str = "\
Examples:
  pld print exchange.pld
  pld print --after expand_collectives --ranks 8 exchange.pld   the collectives in puts, gets, notifies and waits
  pld print --after plan_windows exchange.pld                   offset and size of each window
  pld print --after task_graph exchange.pld                     which task waits for which, and why";

/// Prints a program as the library sees it, at the beginning or after a pass
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Print {
    /// The program; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The pass
    #[arg(long, value_name = "PASS", value_enum, default_value_t = Pass::Verify)]
    after: Pass,
    /// Size of the world
    #[arg(long, short = 'n', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    ranks: u32,
    /// Ranks of each host, side by side, for expand_collectives and what comes after [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    ranks_per_host: Option<u32>,
}

/// What comes before launches, in this order.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Pass {
    /// The text, read
    Parse,
    /// No rule speaks against it
    Verify,
    /// Collectives are puts, gets, notifies and waits
    ExpandCollectives,
    /// Windows have their places
    PlanWindows,
    /// Tasks know which others they wait for
    TaskGraph,
}

impl Print {
    /// Prints it.
    pub fn run(self) -> Result<Exit> {
        let source = Source::read(&self.file)?;
        let program = match self.after {
            Pass::Parse => source.parsed()?,
            _ => source.verified(Some(self.ranks))?,
        };
        let text = match self.after {
            Pass::Parse | Pass::Verify => print(&program),
            pass => {
                let written_out = expand_collectives(
                    &program,
                    &Target::on_hosts(self.ranks, self.ranks_per_host.unwrap_or(self.ranks)),
                )?;
                match pass {
                    Pass::PlanWindows => windows(&written_out, self.ranks)?,
                    Pass::TaskGraph => task_graph::text(&written_out, Some(self.ranks)),
                    _ => print(&written_out),
                }
            }
        };
        console::print(text)?;
        Ok(Exit::Ok)
    }
}

/// Each window's place in the windows of a rank.
fn windows(program: &Program, ranks: u32) -> Result<String> {
    let layout = plan_windows(program, ranks)?;
    let mut out = format!("{:>10} {:>10}  window\n", "offset", "bytes");
    for (buffer, data) in &program.buffers {
        let place = layout.buffers[buffer];
        _ = writeln!(out, "{:>10} {:>10}  {}", place.offset, place.bytes, data.name);
    }
    _ = writeln!(out, "{:>10} {:>10}  all, for each of {ranks} ranks", 0, layout.bytes);
    Ok(out)
}
