//! Joining a world of processes: how ranks find each other, which of them reach each other how, and what they must agree
//! about.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Transport;
use super::far::Accumulator;
use super::shm::ShmTransport;
use crate::error::{Error, ErrorKind, Result};

/// How long the processes of other hosts may be silent if nobody says otherwise.
pub const SILENCE: Duration = Duration::from_secs(5);

/// The engine's own all-gather: sends the first slice to all ranks and fills the second with everyone's, by rank.
pub type AllGather = dyn Fn(&[u8], &mut [u8]) -> Result<()> + Send + Sync;

/// How ranks find each other.
pub enum Bootstrap {
    /// By what the launcher of the job has put into the environment.
    Env,
    /// At a socket with this path: ranks of one host.
    File(PathBuf),
    /// Through the engine, which connects its ranks already.
    Exchange(Box<AllGather>),
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
}

/// Meets the other ranks. Collective. Ranks that disagree get `Mismatch`, all of them. The environment is read here and
/// never again.
pub fn join(options: &JoinOptions) -> Result<Box<dyn Transport>> {
    if options.reach == Reach::Ucx || matches!(options.bootstrap, Bootstrap::Tcp { .. }) {
        return Err(Error::new(ErrorKind::Unsupported, "worlds of several hosts are not there yet"));
    }
    Ok(Box::new(ShmTransport::join(options)?))
}
