//! Ranks are processes of one host. They meet at a Unix socket, hand each other descriptors through it, and map each
//! other's memory; after that nothing has a name in a file system, so that nothing is left behind.

mod badge;
mod bootstrap;
mod channel;
mod liveness;
mod memory;
mod names;
mod place;
mod star;

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use self::liveness::Roster;
use self::memory::Among;
use self::place::Place;
use self::star::{Part, Star};
use super::hello::Hello;
use super::join::{Bootstrap, JoinOptions};
use super::launcher::{self, Environment};
use super::waiting::Operation;
use super::{MAX_MESSAGE, MAX_RANKS, Memory, Transport, host};
use crate::environment;
use crate::error::{Error, ErrorKind, Result};

/// The transport of a world with one process a rank.
#[derive(Debug)]
pub struct ShmTransport {
    rank: u32,
    nranks: u32,
    star: Mutex<Star>,
    roster: Roster,
    /// The host that each rank says it runs on, by rank.
    hosts: Vec<String>,
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
                let env: Environment<'_> = &environment::read;
                let assignment = launcher::assignment(env, options.rank, options.nranks)?;
                if let Some(elsewhere) = assignment.elsewhere {
                    return Err(Error::new(ErrorKind::Unsupported, format!("{elsewhere}; shm is for one host")));
                }
                let nranks = in_range(assignment.nranks)?;
                let place = || {
                    let name = names::socket_name(&assignment.job, nranks);
                    Place::private(&names::directory(env), name.as_ref())
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
                let (rank, nranks) = explicit(options)?;
                if nranks > 1 {
                    let message = format!("{host}:{port} is not a place where ranks map each other's memory");
                    return Err(Error::new(ErrorKind::Unsupported, message));
                }
                (None, rank, nranks, "")
            }
        };
        if nranks == 1 && rank != 0 {
            return Err(Error::new(ErrorKind::Mismatch, format!("rank {rank} is outside a world of 1 rank")));
        }
        let agreement = options.agreed();
        let me = Hello { rank, nranks, process: std::process::id(), host: host::named(), agreement };
        Self::meet(place.as_ref(), &me, hint, options.deadline)
    }

    /// The ranks of one host among those of the world that `session` names, in which all have met already; `names` are
    /// theirs in that world. Collective among them.
    pub(super) fn of_host(session: &str, names: &[u32], rank: u32, deadline: Instant) -> Result<Self> {
        let nranks = names.len() as u32;
        let index = names.iter().position(|name| *name == rank).expect("a rank is on its own host") as u32;
        let place = || {
            let name = names::socket_name(&format!("{session} {}", names[0]), nranks);
            Place::private(&names::directory(&environment::read), name.as_ref())
        };
        let place = (nranks > 1).then(place).transpose()?;
        let (process, agreement) = (std::process::id(), session.into());
        let me = Hello { rank: index, nranks, process, host: String::new(), agreement };
        let mut met = Self::meet(place.as_ref(), &me, "", deadline).map_err(|error| match error.kind {
            ErrorKind::Timeout | ErrorKind::PeerLost => {
                let where_to = place.as_ref().map(|place| place.path().display().to_string()).unwrap_or_default();
                let message = format!("ranks {names:?} of one host do not meet at {where_to}: do all see that place?");
                Error::new(error.kind, message)
            }
            _ => error,
        })?;
        met.roster.rename(names.to_vec());
        Ok(met)
    }

    fn meet(place: Option<&Place>, me: &Hello, hint: &str, deadline: Instant) -> Result<Self> {
        let (star, roster, hellos) = bootstrap::meet(place, me, hint, deadline)?;
        let hosts = hellos.into_iter().map(|hello| hello.host).collect();
        Ok(Self { rank: me.rank, nranks: me.nranks, star: Mutex::new(star), roster, hosts })
    }

    /// The environment names several hosts, although all ranks have met on one.
    pub(super) fn pretends_hosts(&self) -> bool {
        self.hosts.iter().any(|host| *host != self.hosts[0])
    }

    /// Memory of a world of `nranks` ranks of which these ones, called `names`, share theirs. Collective among them.
    pub(super) fn share(&self, names: &[u32], nranks: u32, bytes: usize, deadline: Instant) -> Result<Memory> {
        let among = Among { rank: names[self.rank as usize], places: names, nranks };
        memory::share(&mut self.star(), &self.roster, among, bytes, deadline)
    }

    fn star(&self) -> MutexGuard<'_, Star> {
        self.star.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error if no world of processes can be made here.
pub fn check_available() -> Result<()> {
    memory::check_available()?;
    place::check_directory(&names::directory(&environment::read))
}

pub(super) fn explicit(options: &JoinOptions) -> Result<(u32, u32)> {
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
        Ok(self.star().gather(Operation::Exchange, mine, Some(&self.roster), deadline)?.bodies)
    }

    fn allocate(&self, bytes: usize, deadline: Instant) -> Result<Memory> {
        memory::agree(&mut self.star(), &self.roster, bytes, deadline)?;
        self.share(&(0..self.nranks).collect::<Vec<_>>(), self.nranks, bytes, deadline)
    }

    fn lost(&self) -> Option<u32> {
        self.roster.lost()
    }

    fn leave(&self) {
        self.roster.leave();
    }
}
