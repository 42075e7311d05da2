//! Times of launches, for executables that are compiled for it.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

use super::executable::Executable;
use crate::error::{Error, ErrorKind, Result};

/// Nanoseconds of the clock that all processes of a host share (`CLOCK_MONOTONIC`).
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// When a rank had its part of the last launch; zeros before the first. On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LaunchTime {
    begin: AtomicU64,
    end: AtomicU64,
}

impl LaunchTime {
    /// The part begins.
    pub(super) fn begin(&self) {
        self.begin.store(now(), Ordering::Relaxed);
    }

    /// It has ended.
    pub(super) fn end(&self) {
        self.end.store(now(), Ordering::Relaxed);
    }
}

impl Executable {
    /// When `rank` of this process began and ended its part of the last launch, in nanoseconds of `CLOCK_MONOTONIC`. Between
    /// launches; zeros before the first.
    ///
    /// Errors: `InvalidState` if it is not compiled for that, `InvalidArgument` if the process does not drive the rank.
    pub fn time(&self, rank: u32) -> Result<(u64, u64)> {
        let (image, local) = (&self.image, &self.world.core().local);
        if image.times.is_empty() {
            let message = format!("'{}' is not compiled with times", image.name);
            return Err(Error::new(ErrorKind::InvalidState, message));
        }
        if !local.contains(&rank) {
            return Err(Error::invalid(format!("rank {rank} is not one that this process drives")));
        }
        let time = &image.times[(rank - local.start) as usize];
        Ok((time.begin.load(Ordering::Relaxed), time.end.load(Ordering::Relaxed)))
    }
}
