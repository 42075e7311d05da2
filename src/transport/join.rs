//! Joining a world of processes: how ranks find each other, which of them reach each other how, and what they must agree
//! about.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::far::Accumulator;
use super::hello::Hello;
use super::hosts::{self, Address, Meeting, Secret, through};
use super::launcher::{self, Environment};
use super::shm::{ShmTransport, explicit};
use super::{Transport, host, ucx};
use crate::environment;
use crate::error::{Error, ErrorKind, Result};

/// How long the processes of other hosts may be silent if nobody says otherwise.
pub const SILENCE: Duration = Duration::from_secs(5);

/// The engine's own all-gather: sends the first slice to all ranks and fills the second with everyone's, by rank.
pub type AllGather<'a> = dyn Fn(&[u8], &mut [u8]) -> Result<()> + Send + Sync + 'a;

/// How ranks find each other.
pub enum Bootstrap {
    /// By what the launcher of the job has put into the environment.
    Env,
    /// At a socket with this path: ranks of one host.
    File(PathBuf),
    /// Through the engine, which connects its ranks already.
    Exchange(Box<AllGather<'static>>),
    /// At an address of rank 0's host, where rank 0 listens.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bootstrap::Env => f.write_str("Env"),
            Bootstrap::File(path) => f.debug_tuple("File").field(path).finish(),
            Bootstrap::Exchange(_) => f.write_str("Exchange"),
            Bootstrap::Tcp { host, port } => write!(f, "Tcp({host}:{port})"),
        }
    }
}

/// Which ranks map each other's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Those of one host. Others reach each other over UCX; if there are none, all is as with [`Reach::Shm`].
    #[default]
    Auto,
    /// All: they run on one host.
    Shm,
    /// None: ranks reach each other over UCX, also within a host.
    Ucx,
}

/// Options of [`join`].
#[derive(Debug)]
pub struct JoinOptions {
    /// How ranks find each other.
    pub bootstrap: Bootstrap,
    /// How they reach each other then.
    pub reach: Reach,
    /// This rank; with [`Bootstrap::Env`] the environment says it otherwise.
    pub rank: Option<u32>,
    /// Ranks of the world; with [`Bootstrap::Env`] the environment says it otherwise.
    pub nranks: Option<u32>,
    /// When to give up.
    pub deadline: Instant,
    /// What must be the same on all ranks: versions, options. Shown if it differs, so it should be text.
    pub agreement: Vec<u8>,
    /// How long a process of another host may be silent before it counts as lost.
    pub silence: Duration,
    /// How elements are added to others, by the numbers that transfers name.
    pub accumulators: &'static [Accumulator],
}

impl JoinOptions {
    /// Options with defaults: the rank is what the launcher says, and nothing needs to agree.
    pub fn new(bootstrap: Bootstrap, deadline: Instant) -> Self {
        Self {
            bootstrap,
            reach: Reach::Auto,
            rank: None,
            nranks: None,
            deadline,
            agreement: Vec::new(),
            silence: SILENCE,
            accumulators: &[],
        }
    }

    /// What ranks compare.
    pub(super) fn agreed(&self) -> Vec<u8> {
        let over: &[u8] = if self.reach == Reach::Ucx { b" over ucx" } else { b"" };
        [&self.agreement, over].concat()
    }
}

/// The parts of `HOST:PORT`; IPv6 stands in brackets.
pub fn host_and_port(text: &str) -> Option<(String, u16)> {
    Address::parse(text).map(|address| (address.host, address.port))
}

/// Meets the other ranks. Collective. Ranks that disagree get `Mismatch`, all of them. The environment is read here and
/// never again.
pub fn join(options: &JoinOptions) -> Result<Box<dyn Transport>> {
    let env: Environment<'_> = &environment::read;
    match &options.bootstrap {
        Bootstrap::Tcp { host, port } => {
            let (rank, nranks) = explicit(options)?;
            at(&Address { host: host.clone(), port: *port }, env, rank, nranks, options)
        }
        _ if options.reach == Reach::Shm => Ok(Box::new(ShmTransport::join(options)?)),
        Bootstrap::Exchange(gather) => {
            let (rank, nranks) = explicit(options)?;
            through_engine(gather, rank, nranks, options)
        }
        Bootstrap::Env => {
            let assignment = launcher::assignment(env, options.rank, options.nranks)?;
            match Address::read(env, &assignment)? {
                Some(address) => at(&address, env, assignment.rank, assignment.nranks, options),
                None => on_one_host(options),
            }
        }
        Bootstrap::File(_) => on_one_host(options),
    }
}

/// Ranks that meet at an address.
fn at(
    address: &Address,
    env: Environment<'_>,
    rank: u32,
    nranks: u32,
    options: &JoinOptions,
) -> Result<Box<dyn Transport>> {
    if nranks == 1 {
        return alone(rank, options);
    }
    let me = hello(rank, nranks, options)?;
    let secret = Secret::read(env)?;
    let meeting = Meeting { secret: &secret, me: &me, silence: options.silence, deadline: options.deadline };
    ucx::connect(meeting.at(address)?, options)
}

/// Ranks that the engine connects.
fn through_engine(gather: &AllGather<'_>, rank: u32, nranks: u32, options: &JoinOptions) -> Result<Box<dyn Transport>> {
    if nranks == 1 {
        return alone(rank, options);
    }
    let me = hello(rank, nranks, options)?;
    let sight = through::look(gather, &me)?;
    if sight.one_host && options.reach != Reach::Ucx {
        return Ok(Box::new(ShmTransport::join(options)?));
    }
    let star = through::meet(gather, sight, &me, options.silence, options.deadline)?;
    ucx::connect(star, options)
}

/// Ranks that meet on one host. Should they pretend to be on several, they use what they have to connect again.
fn on_one_host(options: &JoinOptions) -> Result<Box<dyn Transport>> {
    let shm = ShmTransport::join(options)?;
    let (rank, nranks) = (shm.local().start, shm.nranks());
    if nranks == 1 || (options.reach == Reach::Auto && !shm.pretends_hosts()) {
        return Ok(Box::new(shm));
    }
    let me = hello(rank, nranks, options)?;
    let gather = |mine: &[u8], all: &mut [u8]| {
        let parts = shm.exchange(mine, options.deadline)?;
        all.copy_from_slice(&parts.concat());
        Ok(())
    };
    let sight = through::look(&gather, &me)?;
    let star = through::meet(&gather, sight, &me, options.silence, options.deadline)?;
    ucx::connect(star, options)
}

/// A world of one rank is the same in all ways.
fn alone(rank: u32, options: &JoinOptions) -> Result<Box<dyn Transport>> {
    let bootstrap = Bootstrap::File(PathBuf::new());
    let agreement = options.agreement.clone();
    let alone =
        JoinOptions { rank: Some(rank), nranks: Some(1), agreement, ..JoinOptions::new(bootstrap, options.deadline) };
    Ok(Box::new(ShmTransport::join(&alone)?))
}

fn hello(rank: u32, nranks: u32, options: &JoinOptions) -> Result<Hello> {
    if !(1..=hosts::MAX_RANKS).contains(&nranks) {
        let message =
            format!("a world of {nranks} ranks; the most that are not all on one host is {}", hosts::MAX_RANKS);
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if rank >= nranks {
        return Err(Error::new(ErrorKind::Mismatch, format!("rank {rank} is outside a world of {nranks} ranks")));
    }
    Ok(Hello { rank, nranks, process: std::process::id(), host: host::own(), agreement: options.agreed() })
}
