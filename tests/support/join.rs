//! How a process of a job becomes a rank.

use std::sync::Arc;
use std::time::Instant;

use pld::error::Result;
use pld::runtime::{World, WorldOptions};
use pld::transport::join::{Bootstrap, JoinOptions};
use pld_test_ranks::{DEADLINE, Rank, Spread};

/// Joins worlds.
pub trait Join {
    /// How the ranks of the job's world that is called `name` meet.
    fn meeting(&self, name: &str, rank: u32, nranks: u32) -> JoinOptions;

    /// The world of the job.
    fn join(&self, options: &WorldOptions) -> Result<Arc<World>>;

    /// The world of the job that is called `name`.
    fn join_as(&self, name: &str, rank: u32, nranks: u32, options: &WorldOptions) -> Result<Arc<World>>;
}

/// The world of a job that has only one.
pub const WORLD: &str = "world";

impl Join for Rank {
    fn meeting(&self, name: &str, rank: u32, nranks: u32) -> JoinOptions {
        let bootstrap = match self.spread() {
            Spread::Together => Bootstrap::File(self.meeting_place().join(name)),
            _ if name == WORLD => Bootstrap::Env,
            _ => {
                let (host, port) = self.address(name, rank == 0);
                Bootstrap::Tcp { host, port }
            }
        };
        JoinOptions {
            rank: Some(rank),
            nranks: Some(nranks),
            agreement: b"test".to_vec(),
            ..JoinOptions::new(bootstrap, Instant::now() + DEADLINE / 2)
        }
    }

    fn join(&self, options: &WorldOptions) -> Result<Arc<World>> {
        self.join_as(WORLD, self.rank(), self.nranks(), options)
    }

    fn join_as(&self, name: &str, rank: u32, nranks: u32, options: &WorldOptions) -> Result<Arc<World>> {
        World::join(self.meeting(name, rank, nranks), options)
    }
}
