//! Transports of a job's processes.

use std::time::{Duration, Instant};

use pld::error::Result;
use pld::transport::Transport;
pub use pld::transport::join::SILENCE;
use pld::transport::join::{Bootstrap, JoinOptions, Reach, join};
use pld::transport::shm::ShmTransport;
pub use pld_test_ranks::{DEADLINE, Job, Outcome, Rank, Spread, list};

/// What a rank's process does; what it returns is its outcome.
pub type Scenario = fn(&Rank) -> Result<String>;

/// Joins worlds.
pub trait Join {
    /// The world that the environment describes.
    fn join(&self) -> Result<ShmTransport>;

    /// Likewise, whatever its ranks reach each other by: as `REACH` says, with hosts that may be silent for so long.
    fn join_hosts(&self, silence: Duration) -> Result<Box<dyn Transport>> {
        self.join_hosts_within(DEADLINE / 2, silence)
    }

    /// The same, waiting so long for the others.
    fn join_hosts_within(&self, patience: Duration, silence: Duration) -> Result<Box<dyn Transport>>;
}

impl Join for Rank {
    fn join(&self) -> Result<ShmTransport> {
        ShmTransport::join(&options(Bootstrap::Env, None, DEADLINE / 2))
    }

    fn join_hosts_within(&self, patience: Duration, silence: Duration) -> Result<Box<dyn Transport>> {
        let reach = match std::env::var("REACH").as_deref() {
            Ok("ucx") => Reach::Ucx,
            Ok("shm") => Reach::Shm,
            _ => Reach::Auto,
        };
        join(&JoinOptions { reach, silence, ..options(Bootstrap::Env, None, patience) })
    }
}

pub fn options(bootstrap: Bootstrap, seat: Option<(u32, u32)>, within: Duration) -> JoinOptions {
    let (rank, nranks) = seat.unzip();
    let agreement = b"test".to_vec();
    JoinOptions { rank, nranks, agreement, ..JoinOptions::new(bootstrap, Instant::now() + within) }
}

pub fn soon() -> Instant {
    Instant::now() + DEADLINE / 2
}
