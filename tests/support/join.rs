//! How a process of a job becomes a rank.

use std::sync::Arc;
use std::time::Instant;

use pld::error::Result;
use pld::runtime::{World, WorldOptions};
use pld::transport::join::{Bootstrap, JoinOptions};
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
        let bootstrap = Bootstrap::File(self.meeting_place().join(name));
        let meet = JoinOptions {
            rank: Some(rank),
            nranks: Some(nranks),
            agreement: b"test".to_vec(),
            ..JoinOptions::new(bootstrap, Instant::now() + DEADLINE / 2)
        };
        World::join(&meet, options)
    }
}
