//! Transports of a job's processes.

use std::time::{Duration, Instant};

use pld::error::Result;
use pld::transport::join::{Bootstrap, JoinOptions};
use pld::transport::shm::ShmTransport;
pub use pld_test_ranks::{DEADLINE, Job, Outcome, Rank, list};

/// What a rank's process does; what it returns is its outcome.
pub type Scenario = fn(&Rank) -> Result<String>;

/// Joins worlds.
pub trait Join {
    /// The world that the environment describes.
    fn join(&self) -> Result<ShmTransport>;
}

impl Join for Rank {
    fn join(&self) -> Result<ShmTransport> {
        ShmTransport::join(&options(Bootstrap::Env, None, DEADLINE / 2))
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
