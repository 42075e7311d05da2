//! Ranks as processes: a test binary runs itself again, once a rank, with a scenario named in the environment. All may
//! run on one host, or be spread over several, pretended ones or network namespaces with links that can be cut.
//!
//! A test program that uses this has a test `rank_process` at its root, which calls [`rank_process`]: the body of the
//! processes that its other tests start.

mod hosts;
mod job;
mod network;
mod outcome;
mod rank;
mod spread;

use std::time::Duration;

pub use hosts::Hosts;
pub use job::{Job, list};
pub use network::{Network, namespaces_available, why_no_namespaces};
pub use outcome::Outcome;
pub use rank::{Rank, rank_process};
pub use spread::{Spread, free_port};

/// Nothing in a test should take longer, whatever else the machine does.
pub const DEADLINE: Duration = Duration::from_secs(60);
