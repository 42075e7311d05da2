//! A doorbell: a rank sleeps on it until somebody changes what it waits for.
//!
//! Ringing must cost nothing while nobody sleeps, so it is Dekker's pattern: the ringer changes the condition and then
//! looks for sleepers; the sleeper announces itself and then looks at the condition. A sequentially consistent fence
//! between the two steps on both sides makes it impossible that both look too early. The sleeper makes that of the
//! ringers too, where it can: generated code rings without one.

use std::time::Duration;

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::distant::fence_everywhere;
use crate::futex::Futex;

/// The doorbell of one rank. Generated code knows that `sleepers` comes first, and the distance of two bells.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Bell {
    sleepers: AtomicU32,
    ticket: Futex,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bell>() == 128 && std::mem::offset_of!(Bell, sleepers) == 0);

impl Bell {
    /// A bell that nobody sleeps on.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { sleepers: AtomicU32::new(0), ticket: Futex::new() }
    }

    /// A bell that nobody sleeps on.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { sleepers: AtomicU32::new(0), ticket: Futex::new() }
    }

    /// Wakes those who sleep, after the change that they may wait for. No system call if nobody sleeps.
    pub fn ring(&self) {
        Self::ring_each([self]);
    }

    /// Rings several bells after one change.
    pub fn ring_each<'a>(bells: impl IntoIterator<Item = &'a Bell>) {
        fence(Ordering::SeqCst);
        for bell in bells {
            if bell.sleepers.load(Ordering::Relaxed) != 0 {
                bell.wake();
            }
        }
    }

    /// Rings after a change that was itself a sequentially consistent read-modify-write: it and the load below take part
    /// in the one order of such operations and of the sleeper's fence, so no fence of our own is needed.
    #[inline]
    pub fn ring_after_rmw(&self) {
        // The model knows sequential consistency of fences only.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            self.wake();
        }
    }

    /// The second half of [`Bell::ring`], for a ringer that has found the sleepers itself.
    pub fn wake(&self) {
        // Release: a sleeper that draws its ticket after this one also sees the change.
        self.ticket.bump(Ordering::Release);
        self.ticket.wake();
    }

    /// Sleeps until the bell rings, at most `timeout`, unless `ready` holds. May return early, so the caller loops.
    pub fn sleep(&self, ready: impl Fn() -> bool, timeout: Option<Duration>) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let seen = fence_everywhere();
        let ticket = self.ticket.load(Ordering::Acquire);
        if seen && !ready() {
            self.ticket.wait(ticket, timeout);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    use super::*;

    #[test]
    fn sleeps_until_rung_or_late() {
        let (bell, flag) = (Bell::new(), AtomicBool::new(false));
        let begin = Instant::now();
        bell.sleep(|| false, Some(Duration::from_millis(20)));
        assert!(begin.elapsed() < Duration::from_secs(10));
        std::thread::scope(|s| {
            s.spawn(|| {
                while !flag.load(Ordering::Acquire) {
                    bell.sleep(|| flag.load(Ordering::Acquire), None);
                }
            });
            while bell.sleepers.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            flag.store(true, Ordering::Release);
            bell.ring();
        });
        assert_eq!(bell.sleepers.load(Ordering::Relaxed), 0);
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::distant::model::Interruptible;

    /// Two ringers, one sleeper that waits for both changes: it must always wake.
    #[test]
    fn no_wake_up_is_lost() {
        crate::model(|| {
            let shared = Arc::new((Bell::new(), AtomicU32::new(0)));
            let ringers = [0; 2].map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.1.fetch_add(1, Ordering::Release);
                    shared.0.ring();
                })
            });
            let arrived = || shared.1.load(Ordering::Acquire) == 2;
            while !arrived() {
                shared.0.sleep(arrived, None);
            }
            ringers.into_iter().for_each(|r| r.join().unwrap());
        });
    }

    /// A ringer as generated code is one where the sleeper makes its fence: it releases a value and looks for sleepers.
    #[test]
    fn no_wake_up_is_lost_without_fences_of_ringers() {
        crate::model(|| {
            let shared = Arc::new((Bell::new(), [AtomicU32::new(0), AtomicU32::new(0)]));
            let ringers = [0, 1].map(|cell| {
                let (shared, ringer) = (shared.clone(), Interruptible::new());
                thread::spawn(move || {
                    ringer.here();
                    shared.1[cell].store(1, Ordering::Release);
                    ringer.here();
                    let sleepers = shared.0.sleepers.load(Ordering::Relaxed);
                    ringer.here();
                    if sleepers != 0 {
                        shared.0.wake();
                    }
                })
            });
            let arrived = || shared.1.iter().all(|cell| cell.load(Ordering::Acquire) == 1);
            while !arrived() {
                shared.0.sleep(arrived, None);
            }
            ringers.into_iter().for_each(|r| r.join().unwrap());
        });
    }

    /// The model can find a lost wake-up: without the ringer's fence there is one.
    #[test]
    #[should_panic(expected = "deadlock")]
    fn without_a_fence_a_wake_up_is_lost() {
        crate::model(|| {
            let shared = Arc::new((Bell::new(), AtomicU32::new(0)));
            let ringer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.1.fetch_add(1, Ordering::Release);
                    if shared.0.sleepers.load(Ordering::Relaxed) != 0 {
                        shared.0.wake();
                    }
                })
            };
            let arrived = || shared.1.load(Ordering::Acquire) == 1;
            while !arrived() {
                shared.0.sleep(arrived, None);
            }
            ringer.join().unwrap();
        });
    }
}
