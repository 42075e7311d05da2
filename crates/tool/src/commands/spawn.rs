//! `pld spawn`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use pld::runtime::MAX_RANKS;

use crate::exit::{Exit, Failure, Result};
use crate::hosts::{Hosts, LAUNCHER, Wishes};
use crate::launch::unique_name;
use crate::ranks::{Job, Started};
use crate::seconds::seconds;

const EXAMPLES: &str = "\
Examples:
  pld spawn -n 4 -- ./01_hello_rank
  pld spawn -n 2 --timeout 60 -- ./engine --model m
  pld spawn -n 2 -- pld run --join exchange.pld
  pld spawn --hosts hosts.txt -- ./engine --model m       hosts.txt: a line each, such as: node1 8

Each rank finds PLD_RANK, PLD_WORLD_SIZE and PLD_JOB in its environment, and nothing in its
standard input. It leads a process group of its own, which ends with it. If one fails, all end:
by SIGTERM, then by SIGKILL. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to all ranks; the
second one kills them.

With --hosts ranks fill the hosts in the order of the file; localhost is this one. Others are
reached by ssh, without a password. There the command runs in the same folder, with the variables
of here that begin with PLD_ or UCX_, with PLD_ADDRESS, and with a new PLD_SECRET, which goes over
ssh's standard input. Any signal arrives there as SIGTERM.

Exits with the exit code of the first rank that failed, 128 + N if signal N ended it; 124 if
time is over; 126 or 127 if the command cannot be run.";

/// Starts a command once a rank, as processes that can join a world
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Spawn {
    /// Number of ranks [default with --hosts: as many as the file has places]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256),
          required_unless_present = "hosts")]
    ranks: Option<u32>,
    /// Run on these hosts: each line is a host and how many ranks it takes
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Where rank 0 listens [default: the first host, and a port of the job]
    #[arg(long, value_name = "HOST:PORT", requires = "hosts")]
    address: Option<String>,
    /// What starts ranks on other hosts: it is called with a host and a text for the shell there
    #[arg(long, value_name = "CMD", requires = "hosts", default_value = LAUNCHER)]
    launcher: String,
    /// Each line is a host of its own, whatever machine it names: sets PLD_HOST
    #[arg(long, requires = "hosts")]
    name_hosts: bool,
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
        let (name, hosts) = (unique_name(), self.hosts()?);
        let nranks = self.nranks(hosts.as_ref())?;
        let job = Job { nranks, prefix: !self.no_prefix, timeout: self.timeout, grace: self.grace };
        let start = |rank| match &hosts {
            Some(hosts) => hosts.start(rank, nranks, &self.command, &name),
            None => Started::here(&self.command, &name),
        };
        job.run(&start)?.report()
    }

    fn hosts(&self) -> Result<Option<Hosts>> {
        let Some(file) = &self.hosts else { return Ok(None) };
        let wishes = Wishes {
            file,
            address: self.address.as_deref(),
            launcher: &self.launcher,
            named: self.name_hosts,
            grace: self.grace,
        };
        Hosts::read(&wishes).map(Some)
    }

    fn nranks(&self, hosts: Option<&Hosts>) -> Result<u32> {
        match (self.ranks, hosts.map(Hosts::slots)) {
            (Some(ranks), Some(slots)) if ranks > slots => {
                Err(Failure::usage(format!("{ranks} ranks, but the hosts take {slots}")))
            }
            (None, Some(slots)) if slots > MAX_RANKS => {
                Err(Failure::usage(format!("the hosts take {slots} ranks, of which {MAX_RANKS} are possible; see -n")))
            }
            (ranks, slots) => Ok(ranks.or(slots).unwrap_or_default()),
        }
    }
}
