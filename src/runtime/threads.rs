//! The threads of a world.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::core::Core;
use super::launch::run_job;
use super::tasks;
use crate::error::{Error, Result};

/// The words of the job that ends rank threads.
pub(super) const QUIT: [u64; 3] = [0; 3];

/// Signals that a thread causes itself, so that nobody else can handle them.
const OWN: [libc::c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// Starts a thread that takes no signals from outside: those are the engine's, for its own threads.
pub(super) fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
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

/// Starts the thread of a rank that is not the caller's.
pub(super) fn spawn_rank(core: &Arc<Core>, rank: u32) -> Result<JoinHandle<()>> {
    let core = core.clone();
    let worker = (rank - core.local.start - 1) as usize;
    spawn(format!("pld-rank-{rank}"), move || {
        let mut last = 0;
        loop {
            core.patience.wait(core.handoff.start_bell(), || core.handoff.next(last).is_some());
            let Some(job) = core.handoff.next(last) else { continue };
            if job.words == QUIT {
                return;
            }
            // SAFETY: this thread is the only one that finishes `rank`'s part, and does so below.
            unsafe { run_job(&core, job.words, rank) };
            last = job.number;
            core.handoff.finish(worker, job.number);
        }
    })
}

/// Starts the thread of a further core of a rank.
pub(super) fn spawn_core(core: &Arc<Core>, rank: u32, number: u32) -> Result<JoinHandle<()>> {
    let core = core.clone();
    spawn(format!("pld-rank-{rank}-{number}"), move || tasks::serve(&core, rank, number))
}
