//! Ranks are processes of one host. They meet at a Unix socket, hand each other descriptors through it, and map each
//! other's memory; after that nothing has a name in a file system, so that nothing is left behind.

mod badge;
mod bootstrap;
mod channel;
mod launcher;
mod liveness;
mod memory;
mod place;
mod star;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use self::bootstrap::Hello;
use self::channel::Operation;
use self::liveness::Roster;
use self::place::Place;
use self::star::{Part, Star};
use super::join::{Bootstrap, JoinOptions};
use super::{MAX_MESSAGE, MAX_RANKS, Memory, Transport};
use crate::environment;
use crate::error::{Error, ErrorKind, Result};

/// The transport of a world with one process a rank.
#[derive(Debug)]
pub struct ShmTransport {
    rank: u32,
    nranks: u32,
    star: Mutex<Star>,
    roster: Roster,
}

impl ShmTransport {
    /// Meets the other ranks. Collective. Ranks that disagree get `Mismatch`, all of them.
    ///
    /// Worlds of one job may follow one another and may differ in size; ranks that take part in the same worlds make
    /// them in the same order. Worlds of the same size but of other processes are different jobs if they are made at
    /// the same time. The environment is read here and never again.
    pub fn join(options: &JoinOptions) -> Result<Self> {
        let (place, rank, nranks, hint) = match &options.bootstrap {
            Bootstrap::Env => {
                let env: launcher::Environment<'_> = &environment::read;
                let assignment = launcher::assignment(env, options.rank, options.nranks)?;
                let nranks = in_range(assignment.nranks)?;
                let place = || {
                    let name = launcher::socket_name(&assignment.job, nranks);
                    Place::private(&launcher::directory(env), name.as_ref())
                };
                let hint = if assignment.by_ancestor {
                    "; without a launcher, ranks of a job need the same PLD_JOB"
                } else {
                    ""
                };
                ((nranks > 1).then(place).transpose()?, assignment.rank, nranks, hint)
            }
            Bootstrap::File(path) => {
                let (rank, nranks) = explicit(options)?;
                ((nranks > 1).then(|| Place::at(path)).transpose()?, rank, nranks, "")
            }
            Bootstrap::Exchange(gather) => {
                let (rank, nranks) = explicit(options)?;
                let place = || badge::agree_on_place(gather, rank, nranks);
                ((nranks > 1).then(place).transpose()?, rank, nranks, "")
            }
            Bootstrap::Tcp { host, port } => {
                let message = format!("ranks that meet at {host}:{port} do not map each other's memory");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        if nranks == 1 && rank != 0 {
            return Err(Error::new(ErrorKind::Mismatch, format!("rank {rank} is outside a world of 1 rank")));
        }
        let me = Hello { rank, nranks, process: std::process::id(), agreement: options.agreement.clone() };
        let (star, roster) = bootstrap::meet(place.as_ref(), &me, hint, options.deadline)?;
        Ok(Self { rank, nranks, star: Mutex::new(star), roster })
    }
}

/// An error if no world of processes can be made here.
pub fn check_available() -> Result<()> {
    memory::check_available()?;
    place::check_directory(&launcher::directory(&environment::read))
}

fn explicit(options: &JoinOptions) -> Result<(u32, u32)> {
    match (options.rank, options.nranks) {
        (Some(rank), Some(nranks)) => Ok((rank, in_range(nranks)?)),
        _ => Err(Error::invalid("this bootstrap needs the rank and the number of ranks in the options")),
    }
}

fn in_range(nranks: u32) -> Result<u32> {
    match nranks {
        0 => Err(Error::invalid("a world of 0 ranks")),
        1..=MAX_RANKS => Ok(nranks),
        _ => Err(Error::new(ErrorKind::Unsupported, format!("a world of {nranks} ranks; the most is {MAX_RANKS}"))),
    }
}

impl Transport for ShmTransport {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn nranks(&self) -> u32 {
        self.nranks
    }

    fn local(&self) -> Range<u32> {
        self.rank..self.rank + 1
    }

    fn exchange(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        let mine = match mine.len() {
            0..=MAX_MESSAGE => Ok(Part { body: mine, fd: None }),
            size => Err(Error::invalid(format!(
                "rank {} sends a message of {size} bytes; the most is {MAX_MESSAGE}",
                self.rank
            ))),
        };
        let mut star = self.star.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(star.gather(Operation::Exchange, mine, Some(&self.roster), deadline)?.bodies)
    }

    fn allocate(&self, bytes: usize, deadline: Instant) -> Result<Memory> {
        let mut star = self.star.lock().unwrap_or_else(PoisonError::into_inner);
        memory::allocate(&mut star, &self.roster, self.rank, bytes, deadline)
    }

    fn lost(&self) -> Option<u32> {
        self.roster.lost()
    }

    fn leave(&self) {
        self.roster.leave();
    }
}
