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
//! `m - 1`, and then begin. With three sets a rank finds its peers one launch behind at worst when the program makes
//! them wait for one another, so neither rule ever blocks; with one set they are a barrier before and after zeroing.

use crate::atomic::{AtomicU64, Ordering};

/// How far a rank is.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Progress {
    done: AtomicU64,
    zeroed: AtomicU64,
}

impl Progress {
    /// At the beginning.
    pub fn new() -> Self {
        Self { done: AtomicU64::new(0), zeroed: AtomicU64::new(0) }
    }

    /// Launches that the rank has done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// Zeroings that the rank has done.
    pub fn zeroed(&self) -> u64 {
        self.zeroed.load(Ordering::Acquire)
    }

    /// The rank has done `launches` launches.
    pub fn set_done(&self, launches: u64) {
        self.done.store(launches, Ordering::Release);
    }

    /// The rank has done `zeroings` zeroings.
    pub fn set_zeroed(&self, zeroings: u64) {
        self.zeroed.store(zeroings, Ordering::Release);
    }
}

impl Default for Progress {
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
    pub fn set(self, launch: u64) -> u64 {
        launch % self.sets
    }

    /// `launch` may begin: every rank has zeroed what it will use.
    pub fn may_begin<'a>(self, launch: u64, mut ranks: impl Iterator<Item = &'a Progress>) -> bool {
        let needed = (launch + 1).saturating_sub(self.sets);
        ranks.all(|rank| rank.zeroed() >= needed)
    }

    /// Does every zeroing of `me` that is due, with `zero` for a set. Says whether there was one.
    pub fn advance<'a, Ranks: Iterator<Item = &'a Progress>>(
        self,
        me: &Progress,
        ranks: impl Fn() -> Ranks,
        mut zero: impl FnMut(u64),
    ) -> bool {
        let before = me.zeroed();
        let mut zeroing = before;
        while ranks().all(|rank| rank.done() > zeroing) {
            zero(self.set(zeroing));
            zeroing += 1;
            me.set_zeroed(zeroing);
        }
        zeroing != before
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
        let rotation = Rotation { sets: SETS as u64 };
        let advance = || {
            rotation.advance(
                &world.progress[me],
                || world.progress.iter(),
                // SAFETY: every rank has done the launch that used the set.
                |set| world.windows[me][set as usize].with_mut(|w| unsafe { *w = 0 }),
            );
        };
        for launch in 0..launches {
            loop {
                advance();
                if rotation.may_begin(launch, world.progress.iter()) {
                    break;
                }
                thread::yield_now();
            }
            let window = &world.windows[1 - me][rotation.set(launch) as usize];
            // SAFETY: in a launch only this rank touches its peer's copy.
            window.with_mut(|w| unsafe {
                assert_eq!(*w, 0, "launch {launch} sees a used window");
                *w = launch + 1;
            });
            world.progress[me].set_done(launch + 1);
            advance();
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
