//! How a process of a job becomes a rank.

use std::sync::Arc;
use std::time::Instant;

use pld::error::Result;
use pld::runtime::{World, WorldOptions};
use pld::transport::shm::{Bootstrap, ShmOptions};
use pld_test_ranks::{DEADLINE, Rank};

/// Joins worlds.
pub trait Join {
    /// The world of the job.
    fn join(&self, options: &WorldOptions) -> Result<Arc<World>>;

    /// The world of the job that is called `name`.
    fn join_as(&self, name: &str, rank: u32, nranks: u32, options: &WorldOptions) -> Result<Arc<World>>;
}

impl Join for Rank {
    fn join(&self, options: &WorldOptions) -> Result<Arc<World>> {
        self.join_as("world", self.rank(), self.nranks(), options)
    }

    fn join_as(&self, name: &str, rank: u32, nranks: u32, options: &WorldOptions) -> Result<Arc<World>> {
        let shm = ShmOptions {
            bootstrap: Bootstrap::File(self.meeting_place().join(name)),
            rank: Some(rank),
            nranks: Some(nranks),
            deadline: Instant::now() + DEADLINE / 2,
            agreement: b"test".to_vec(),
        };
        World::join(&shm, options)
    }
}
