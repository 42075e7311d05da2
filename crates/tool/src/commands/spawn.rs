//! `pld spawn`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::exit::{Exit, Result};
use crate::launch::unique_name;
use crate::ranks::Job;
use crate::seconds::seconds;

const EXAMPLES: &str = "\
Examples:
  pld spawn -n 4 -- ./01_hello_rank
  pld spawn -n 2 --timeout 60 -- ./engine --model m
  pld spawn -n 2 -- pld run --join exchange.pld

Each rank finds PLD_RANK, PLD_WORLD_SIZE and PLD_JOB in its environment, and nothing in its
standard input. It leads a process group of its own, which ends with it. If one fails, all end:
by SIGTERM, then by SIGKILL. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to all ranks; the
second one kills them.

Exits with the exit code of the first rank that failed, 128 + N if signal N ended it; 124 if
time is over; 126 or 127 if the command cannot be run.";

/// Starts a command once a rank, as processes that can join a world
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Spawn {
    /// Number of ranks
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    ranks: u32,
    /// Leave the output as it is, without the rank before every line
    #[arg(long)]
    no_prefix: bool,
    /// Begin every line of output with its rank, which is the default
    #[arg(long, conflicts_with = "no_prefix")]
    prefix: bool,
    /// End all ranks after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Time from SIGTERM to SIGKILL
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    grace: Duration,
    /// The command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Spawn {
    /// Runs the ranks.
    pub fn run(self) -> Result<Exit> {
        let job = Job { nranks: self.ranks, prefix: !self.no_prefix, timeout: self.timeout, grace: self.grace };
        job.run(&self.command, &[("PLD_JOB", unique_name())])?.report()
    }
}
