//! Fresh windows for every launch without a barrier: several sets of windows, used in turn and zeroed in between.
//!
//! With `n` sets, launch `m` (from 0) uses set `m % n`. A rank zeroes its own copies only. Its zeroing `z` (from 0)
//! cleans the set that launch `z` used, for launch `z + n`. Two rules:
//!
//! - a rank does zeroing `z` when every rank has done launch `z`: nobody reads or writes that set any more, and nobody
//!   will before launch `z + n`;
//! - a rank begins launch `m` when every rank has done zeroing `m - n`: all copies of the set are clean.
//!
//! Both counters are written with release and read with acquire ordering, so accesses of launch `z` happen before
//! zeroing `z`, which happens before accesses of launch `z + n`. Nobody waits in a circle: take the ranks that are
//! furthest behind, about to begin launch `m`. All have done every launch before `m`, so each can do all zeroings up to
//! `m - 1`, and then begin. With one set the rules are a barrier before and after zeroing.
//!
//! Looking at the peers costs a cache miss each, so a rank remembers what it saw ([`Horizon`]) and does its zeroings in
//! batches, half of the sets at a time: peers find them done long before they need them, and most launches look at
//! nobody.

use crate::atomic::{AtomicU64, Ordering};

/// How far a rank is.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Progress {
    done: AtomicU64,
    zeroed: AtomicU64,
    begun: AtomicU64,
    resets: AtomicU64,
}

impl Progress {
    /// At the beginning.
    pub fn new() -> Self {
        Self { done: AtomicU64::new(0), zeroed: AtomicU64::new(0), begun: AtomicU64::new(0), resets: AtomicU64::new(0) }
    }

    /// Launches that the rank has done.
    #[inline]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// Zeroings that the rank has done.
    #[inline]
    pub fn zeroed(&self) -> u64 {
        self.zeroed.load(Ordering::Acquire)
    }

    /// The rank has done `launches` launches.
    #[inline]
    pub fn set_done(&self, launches: u64) {
        self.done.store(launches, Ordering::Release);
    }

    /// The rank has done `zeroings` zeroings.
    #[inline]
    pub fn set_zeroed(&self, zeroings: u64) {
        self.zeroed.store(zeroings, Ordering::Release);
    }

    /// Launches and resets that the rank had begun when it came to a recovery, in which all ranks meet.
    pub fn begun(&self) -> (u64, u64) {
        (self.begun.load(Ordering::Acquire), self.resets.load(Ordering::Acquire))
    }

    /// The rank comes to a recovery, with so many launches and resets begun.
    pub fn set_begun(&self, launches: u64, resets: u64) {
        self.begun.store(launches, Ordering::Release);
        self.resets.store(resets, Ordering::Release);
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// How many zeroings all ranks had done when a rank last looked. Its own: nobody else reads or writes it.
#[derive(Debug)]
#[repr(align(128))]
pub struct Horizon(AtomicU64);

impl Horizon {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Default for Horizon {
    fn default() -> Self {
        Self::new()
    }
}

/// The rules for a number of sets.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// Number of sets, at least 1.
    pub sets: u64,
}

impl Rotation {
    /// The set that `launch` uses.
    #[inline]
    pub fn set(self, launch: u64) -> u64 {
        launch % self.sets
    }

    /// `launch` may begin: every rank has zeroed what it will use. Looks at the ranks only if `horizon` does not tell.
    pub fn may_begin<'a, Ranks: Iterator<Item = &'a Progress>>(
        self,
        launch: u64,
        horizon: &Horizon,
        ranks: impl FnOnce() -> Ranks,
    ) -> bool {
        let needed = (launch + 1).saturating_sub(self.sets);
        horizon.0.load(Ordering::Relaxed) >= needed || {
            let zeroed = ranks().map(Progress::zeroed).min().unwrap_or(needed);
            horizon.0.store(zeroed, Ordering::Relaxed);
            zeroed >= needed
        }
    }

    /// So many zeroings of `me` are outstanding after `launches` launches that peers may soon need them.
    #[inline]
    pub fn is_due(self, me: &Progress, launches: u64) -> bool {
        launches > me.zeroed() + self.sets / 2
    }

    /// Does every zeroing of `me` that is possible, with `zero` for a set. Says whether there was one.
    pub fn advance<'a>(self, me: &Progress, ranks: impl Iterator<Item = &'a Progress>, zero: impl FnMut(u64)) -> bool {
        let (before, possible) = (me.zeroed(), ranks.map(Progress::done).min().unwrap_or(0));
        (before..possible).map(|zeroing| self.set(zeroing)).for_each(zero);
        if possible > before {
            me.set_zeroed(possible);
        }
        possible > before
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    const RANKS: usize = 2;

    struct World<const SETS: usize> {
        progress: [Progress; RANKS],
        /// `[owner][set]`: in a launch the peer writes it, between launches the owner zeroes it.
        windows: [[UnsafeCell<u64>; SETS]; RANKS],
    }

    // SAFETY: the rotation orders all accesses, which is what the model proves.
    unsafe impl<const SETS: usize> Sync for World<SETS> {}

    fn run<const SETS: usize>(world: &World<SETS>, me: usize, launches: u64) {
        let (rotation, horizon) = (Rotation { sets: SETS as u64 }, Horizon::new());
        let advance = || {
            rotation.advance(
                &world.progress[me],
                world.progress.iter(),
                // SAFETY: every rank has done the launch that used the set.
                |set| world.windows[me][set as usize].with_mut(|w| unsafe { *w = 0 }),
            )
        };
        for launch in 0..launches {
            while !rotation.may_begin(launch, &horizon, || world.progress.iter()) {
                if !advance() {
                    thread::yield_now();
                }
            }
            let window = &world.windows[1 - me][rotation.set(launch) as usize];
            // SAFETY: in a launch only this rank touches its peer's copy.
            window.with_mut(|w| unsafe {
                assert_eq!(*w, 0, "launch {launch} sees a used window");
                *w = launch + 1;
            });
            world.progress[me].set_done(launch + 1);
            if rotation.is_due(&world.progress[me], launch + 1) {
                advance();
            }
        }
    }

    fn check<const SETS: usize>(launches: u64) {
        crate::model(move || {
            let world = Arc::new(World::<SETS> {
                progress: std::array::from_fn(|_| Progress::new()),
                windows: std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(0))),
            });
            let peer = {
                let world = world.clone();
                thread::spawn(move || run(&world, 1, launches))
            };
            run(&world, 0, launches);
            peer.join().unwrap();
        });
    }

    #[test]
    fn one_set_is_clean_in_every_launch() {
        check::<1>(3);
    }

    #[test]
    fn two_sets_are_clean_in_every_launch() {
        check::<2>(3);
    }
}
