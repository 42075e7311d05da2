//! How to wait: spin a little, yield, then sleep.
//!
//! Spinning is the fastest answer while every rank has a core of its own, and the slowest when it has not: then the
//! rank that is waited for needs the core. Whoever waits for long costs nothing, but still looks up now and then to see
//! whether there is anything left to wait for.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use pld_sync::Bell;

/// How ranks wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Spin if every rank has a core of its own, then yield, then sleep.
    #[default]
    Auto,
    /// Spin for ever: the fastest on cores that nobody else needs.
    Spin,
    /// Yield for ever.
    Yield,
    /// Sleep at once: costs the least, answers the slowest.
    Sleep,
}

/// Turns of spinning: some 50 µs.
const SPINS: u32 = 2000;
/// How long to yield before going to sleep, which makes the next wake-up dear.
const YIELDING: Duration = Duration::from_millis(1);
/// Longest time between two looks at the world.
pub(super) const SLICE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    Spin,
    Yield,
}

/// A policy, for the cores at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    spins: u32,
    idle: Idle,
    /// When to go to sleep.
    awake: Duration,
}

impl Patience {
    /// For a world with a core for every rank, or `crowded`.
    pub(super) fn new(policy: WaitPolicy, crowded: bool) -> Self {
        let spins = if crowded { 0 } else { SPINS };
        match policy {
            WaitPolicy::Auto => Self { spins, idle: Idle::Yield, awake: YIELDING },
            WaitPolicy::Spin => Self { spins: SPINS, idle: Idle::Spin, awake: Duration::MAX },
            WaitPolicy::Yield => Self { spins: 0, idle: Idle::Yield, awake: Duration::MAX },
            WaitPolicy::Sleep => Self { spins: 0, idle: Idle::Yield, awake: Duration::ZERO },
        }
    }

    /// The first part of waiting: spins, and says whether `ready` holds.
    pub(super) fn spin(&self, ready: impl Fn() -> bool) -> bool {
        for _ in 0..self.spins {
            if ready() {
                return true;
            }
            spin_loop();
        }
        ready()
    }

    /// The second part: waits on `bell` until `ready` holds, or until `give_up` says so, which is asked at least every
    /// `slice` with the time since the beginning.
    pub(super) fn linger(
        &self,
        bell: &Bell,
        slice: Option<Duration>,
        ready: impl Fn() -> bool,
        give_up: impl FnMut(Duration) -> bool,
    ) -> bool {
        self.linger_with(slice, &ready, give_up, || bell.sleep(&ready, slice))
    }

    /// The same, with any way to sleep for a slice at most.
    pub(super) fn linger_with(
        &self,
        slice: Option<Duration>,
        ready: impl Fn() -> bool,
        mut give_up: impl FnMut(Duration) -> bool,
        mut sleep: impl FnMut(),
    ) -> bool {
        let begin = Instant::now();
        let mut asked = Duration::ZERO;
        loop {
            if ready() {
                return true;
            }
            let elapsed = begin.elapsed();
            if let Some(slice) = slice
                && elapsed - asked >= slice.min(SLICE / 4)
            {
                if give_up(elapsed) {
                    return false;
                }
                asked = elapsed;
            }
            if elapsed >= self.awake {
                sleep();
            } else if self.idle == Idle::Yield {
                std::thread::yield_now();
            } else {
                self.spin(&ready);
            }
        }
    }

    /// Both parts, for as long as it takes.
    pub(super) fn wait(&self, bell: &Bell, ready: impl Fn() -> bool) {
        if !self.spin(&ready) {
            self.linger(bell, None, ready, |_| false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn every_policy_sees_a_change_and_gives_up() {
        for policy in [WaitPolicy::Auto, WaitPolicy::Spin, WaitPolicy::Yield, WaitPolicy::Sleep] {
            for crowded in [false, true] {
                let (patience, bell, flag) = (Patience::new(policy, crowded), Bell::new(), AtomicBool::new(false));
                let ready = || flag.load(Ordering::Acquire);
                let mut asked = 0;
                let gave_up = |elapsed: Duration| {
                    asked += 1;
                    // However long the machine takes between two looks.
                    asked > 1 && elapsed >= Duration::from_millis(60)
                };
                assert!(!patience.linger(&bell, Some(SLICE), ready, gave_up), "{policy:?} gives up");
                std::thread::scope(|s| {
                    s.spawn(|| patience.wait(&bell, ready));
                    flag.store(true, Ordering::Release);
                    bell.ring();
                });
            }
        }
    }

    #[test]
    fn nobody_spins_when_ranks_outnumber_cores() {
        assert_eq!(Patience::new(WaitPolicy::Auto, true).spins, 0);
        assert_eq!(Patience::new(WaitPolicy::Auto, false).spins, SPINS);
    }
}
