//! Threads beside the engine's.

use std::thread::{Builder, JoinHandle};

use crate::error::{Error, Result};

/// Signals that a thread causes itself, so that nobody else can handle them.
const OWN: [libc::c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Starts a thread that takes no signals from outside: those are the engine's, for its own threads.
pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let mut all = std::mem::MaybeUninit::uninit();
    let mut before = std::mem::MaybeUninit::uninit();
    // SAFETY: both sets are writable, and the first is filled before it is used.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        OWN.into_iter().for_each(|signal| _ = libc::sigdelset(all.as_mut_ptr(), signal));
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = Builder::new().name(name.clone()).spawn(body);
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    thread.map_err(|e| Error::io(format_args!("starting thread {name}"), e))
}
