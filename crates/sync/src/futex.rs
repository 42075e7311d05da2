//! A word that threads of several processes can sleep on.

use std::time::Duration;

use crate::atomic::{AtomicU32, Ordering};

/// The word. Sleeping and waking are ordered by a lock in the kernel, or in the model.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    queue: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Futex {
    /// The word as it is.
    pub(crate) fn load(&self, order: Ordering) -> u32 {
        self.word.load(order)
    }

    /// Changes the word.
    pub(crate) fn bump(&self, order: Ordering) {
        self.word.fetch_add(1, order);
    }
}

#[cfg(not(loom))]
impl Futex {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Sleeps while the word is `seen`. May return early: on a signal, or for no reason.
    pub(crate) fn wait(&self, seen: u32, timeout: Option<Duration>) {
        use rustix::thread::futex::{Flags, Timespec, wait};
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        // Whatever the reason to return, the caller looks at its condition again.
        let _ = wait(&self.word, Flags::empty(), seen, timeout.as_ref());
    }

    /// Wakes all who sleep.
    pub(crate) fn wake(&self) {
        use rustix::thread::futex::{Flags, wake};
        // The word is mapped and aligned, so the call has no way to fail.
        let _ = wake(&self.word, Flags::empty(), i32::MAX as u32);
    }
}

#[cfg(loom)]
impl Futex {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(0), queue: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()) }
    }

    // The model has no time: whoever is not woken sleeps for ever, which loom reports.
    pub(crate) fn wait(&self, seen: u32, _timeout: Option<Duration>) {
        let held = self.queue.0.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == seen {
            drop(self.queue.1.wait(held).unwrap());
        }
    }

    pub(crate) fn wake(&self) {
        let _held = self.queue.0.lock().unwrap();
        self.queue.1.notify_all();
    }
}
