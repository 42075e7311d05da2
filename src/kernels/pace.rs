//! How to write rows into a peer's memory: through the caches, or past them.
//!
//! A peer has read the lines that its next data goes to, so they are in its cache. Where the two CPUs share a cache,
//! taking the lines over is cheap and the reader finds the data near. Where they do not, each line costs a trip: a copy
//! through the caches gets 2 GB/s, and a non-temporal one, which needs to take nothing over, 14 GB/s, with a reader that
//! is no slower. Nothing tells reliably which is the case, least of all in a virtual machine, so copies are timed: one of
//! eight in the way that is in use, the first page of one of 512 in the other. The caches are left when that is twice as
//! fast.

use std::sync::atomic::{AtomicU32, Ordering};

/// What is known of the way to one peer, from one rank. Threads of the rank share it; a lost update does no harm.
#[derive(Debug, Default)]
#[repr(C, align(16))]
pub struct Pace {
    /// Copies so far.
    turn: AtomicU32,
    /// Smoothed time of a KiB through the caches, in 1/16 tick; 0 if unknown.
    cached: AtomicU32,
    /// The same past the caches.
    streamed: AtomicU32,
}

/// One copy in so many is timed.
const TIMED: u32 = 8;
/// One copy in so many tries the other way, to see whether that has become better.
const OTHER: u32 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Cached,
    Streamed,
}

/// What the next copy does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The better way, as far as is known.
    pub(super) way: Way,
    /// It is timed.
    pub(super) timed: bool,
    /// Its first page goes the other way, and is timed.
    pub(super) trial: bool,
}

impl Pace {
    /// The plan of the next copy.
    #[inline]
    pub(super) fn next(&self) -> Plan {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        let (cached, streamed) = (self.cached.load(Ordering::Relaxed), self.streamed.load(Ordering::Relaxed));
        let way = if cached / 2 > streamed { Way::Streamed } else { Way::Cached };
        Plan { way, timed: turn % TIMED == 4, trial: turn.is_multiple_of(OTHER) }
    }

    /// A copy of so many bytes has taken so many ticks.
    pub(super) fn record(&self, way: Way, bytes: usize, ticks: u64) {
        let time = match way {
            Way::Cached => &self.cached,
            Way::Streamed => &self.streamed,
        };
        let sample = (ticks.saturating_mul(16 * 1024) / bytes.max(1) as u64).clamp(1, u32::MAX.into()) as u32;
        let before = time.load(Ordering::Relaxed);
        // A thread that lost its CPU in between has measured nothing.
        let sample = if before == 0 { sample } else { sample.min(before.saturating_mul(4)) };
        let after = if before == 0 { sample } else { before - before / 4 + sample / 4 };
        time.store(after.max(1), Ordering::Relaxed);
    }
}

impl Way {
    pub(super) fn other(self) -> Way {
        match self {
            Way::Cached => Way::Streamed,
            Way::Streamed => Way::Cached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies that take these times a KiB; the way they go in the end.
    fn way(pace: &Pace, cached: u64, streamed: u64) -> Way {
        let time = |way| 4 * if way == Way::Cached { cached } else { streamed };
        for _ in 0..20 * OTHER {
            let plan = pace.next();
            if plan.trial {
                pace.record(plan.way.other(), 4096, time(plan.way.other()));
            } else if plan.timed {
                pace.record(plan.way, 4096, time(plan.way));
            }
        }
        pace.next().way
    }

    #[test]
    fn the_caches_are_left_when_that_is_twice_as_fast() {
        let pace = Pace::default();
        assert_eq!(way(&pace, 50, 200), Way::Cached);
        assert_eq!(way(&pace, 1000, 200), Way::Streamed, "the peer has moved away");
        assert_eq!(way(&pace, 300, 200), Way::Cached, "not worth it");
        assert_eq!(way(&pace, 1000, 1), Way::Streamed);
        assert_eq!(way(&pace, 50, 200), Way::Cached, "it has come back");
    }

    #[test]
    fn an_interruption_counts_little() {
        let pace = Pace::default();
        way(&pace, 50, 200);
        pace.record(Way::Cached, 4096, u64::MAX);
        assert!(pace.cached.load(Ordering::Relaxed) < 2 * 50 * 16);
    }
}
