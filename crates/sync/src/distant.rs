//! A fence in all threads of all ranks, made by one of them.
//!
//! Where each of two sides must see what the other did first, both need a fence between what they do and what they look
//! at. If one side is rare and slow anyway, it can make the fence of the other as well, by asking the kernel for it: while
//! the call lasts, each thread of the ranks comes to a point between two of its instructions where a fence would do
//! nothing more.

#[cfg(not(loom))]
pub(crate) use kernel::fence_everywhere;
#[cfg(not(loom))]
pub use kernel::register;
#[cfg(loom)]
pub(crate) use model::fence_everywhere;

#[cfg(not(loom))]
mod kernel {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, membarrier};

    use crate::atomic::{Ordering, fence};

    static REGISTERED: OnceLock<bool> = OnceLock::new();

    /// Lets other processes make the fences of this one, and this one theirs; false if the kernel does not know how.
    /// Only where all ranks have said so may one leave its fences to others.
    pub fn register() -> bool {
        *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok())
    }

    /// A fence here, and in every thread of the processes that have registered if this one has; false if the kernel
    /// could not.
    pub(crate) fn fence_everywhere() -> bool {
        fence(Ordering::SeqCst);
        match REGISTERED.get() {
            Some(true) => membarrier(MembarrierCommand::GlobalExpedited).is_ok(),
            _ => true,
        }
    }
}

/// The kernel's part, for threads that say where they could be interrupted.
#[cfg(loom)]
pub(crate) mod model {
    use loom::sync::{Condvar, Mutex, MutexGuard};

    use crate::atomic::{Ordering, fence};

    #[derive(Default)]
    struct Calls {
        made: u32,
        /// The last call that each thread has answered.
        answered: Vec<u32>,
    }

    loom::lazy_static! {
        static ref CALLS: (Mutex<Calls>, Condvar) = (Mutex::new(Calls::default()), Condvar::new());
    }

    fn calls() -> MutexGuard<'static, Calls> {
        CALLS.0.lock().unwrap()
    }

    pub(crate) fn fence_everywhere() -> bool {
        fence(Ordering::SeqCst);
        let mut calls = calls();
        calls.made += 1;
        let call = calls.made;
        while calls.answered.iter().any(|&answered| answered < call) {
            calls = CALLS.1.wait(calls).unwrap();
        }
        drop(calls);
        fence(Ordering::SeqCst);
        true
    }

    /// A thread that makes no fences of its own.
    #[cfg(test)]
    pub(crate) struct Interruptible(usize);

    #[cfg(test)]
    impl Interruptible {
        pub(crate) fn new() -> Self {
            let mut calls = calls();
            calls.answered.push(0);
            Self(calls.answered.len() - 1)
        }

        /// Between two instructions: a fence if somebody asks for it.
        pub(crate) fn here(&self) {
            let mut calls = calls();
            if calls.answered[self.0] < calls.made {
                fence(Ordering::SeqCst);
                calls.answered[self.0] = calls.made;
                CALLS.1.notify_all();
            }
        }
    }

    #[cfg(test)]
    impl Drop for Interruptible {
        fn drop(&mut self) {
            calls().answered[self.0] = u32::MAX;
            CALLS.1.notify_all();
        }
    }
}
