//! Worlds of a job's processes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pld::error::Result;
use pld::runtime::{World, WorldOptions};
use pld::transport::join::JoinOptions;
pub use pld_test_ranks::{Job, Outcome, Rank, Spread};

pub use crate::join::{Join, WORLD};

/// What a rank's process does; what it returns is its outcome.
pub type Scenario = fn(&Rank) -> Result<String>;

/// How long a host may be silent. Long for two CPUs that many processes share.
pub const SILENCE: Duration = Duration::from_secs(2);

/// How long a launch waits: longer than any test waits for the loss of a rank.
const TIMEOUT: Duration = Duration::from_secs(50);

/// The job's world called `name`, in which hosts may be silent for [`SILENCE`].
pub fn join_as(me: &Rank, name: &str, rank: u32, nranks: u32) -> Result<Arc<World>> {
    let meeting = JoinOptions { silence: SILENCE, ..me.meeting(name, rank, nranks) };
    World::join(meeting, &WorldOptions { timeout: TIMEOUT, ..WorldOptions::default() })
}

pub fn join(me: &Rank) -> Result<Arc<World>> {
    join_as(me, WORLD, me.rank(), me.nranks())
}

/// The same, waiting so long for the others.
pub fn join_within(me: &Rank, patience: Duration) -> Result<Arc<World>> {
    let meeting = me.meeting(WORLD, me.rank(), me.nranks());
    let meeting = JoinOptions { silence: SILENCE, deadline: Instant::now() + patience, ..meeting };
    World::join(meeting, &WorldOptions::default())
}

/// A world of four, two a host, in which every process runs `scenario`.
pub fn start(scenario: &str, spread: Spread) -> Job {
    let mut job = Job::over(spread);
    job.spawn_world(scenario, 4);
    job
}
