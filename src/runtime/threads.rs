//! The threads of a world.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::core::Core;
use super::launch::run_job;
use super::tasks;
use crate::error::Result;
pub(super) use crate::transport::background::spawn;

/// The words of the job that ends rank threads.
pub(super) const QUIT: [u64; 3] = [0; 3];

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
