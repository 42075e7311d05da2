//! Transports of a job's processes.

use std::time::{Duration, Instant};

use pld::error::Result;
use pld::transport::shm::{Bootstrap, ShmOptions, ShmTransport};
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

pub fn options(bootstrap: Bootstrap, seat: Option<(u32, u32)>, within: Duration) -> ShmOptions {
    let (rank, nranks) = seat.unzip();
    ShmOptions { bootstrap, rank, nranks, deadline: Instant::now() + within, agreement: b"test".to_vec() }
}

pub fn soon() -> Instant {
    Instant::now() + DEADLINE / 2
}
