//! Worlds of a job's processes.

use pld::error::Result;
pub use pld_test_ranks::{Job, Outcome, Rank, list};

#[path = "../support/join.rs"]
mod join;

pub use join::Join;

/// What a rank's process does; what it returns is its outcome.
pub type Scenario = fn(&Rank) -> Result<String>;
