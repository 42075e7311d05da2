//! Runs: launches that were submitted.

use std::time::Duration;

use crate::error::Error;
use crate::runtime;

use super::guard;
use super::pointer::Run;
use super::status::pld_status_t;

/// A launch under way. Any number of threads may use it at once, until one destroys it.
pub struct pld_run_t {
    pub(super) run: runtime::Run,
}

/// Blocks until the run is done and returns how it ended: see `pld_launch`. With a `timeout_us` of 0 or more no longer
/// than that: then `PLD_ERR_TIMEOUT`, and the run goes on. May be called again, and by several threads.
#[unsafe(no_mangle)]
pub extern "C" fn pld_run_wait(run: Run, timeout_us: i64) -> pld_status_t {
    guard::status(|| run.get("the run")?.run.wait(u64::try_from(timeout_us).ok().map(Duration::from_micros)))
}

/// 1 if the run is done, however it ended; 0 if not, or for NULL. Does not block; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_run_done(run: Option<&pld_run_t>) -> i32 {
    guard::value(0, || Ok(run.is_some_and(|run| run.run.done()).into()))
}

/// Waits until the run is done, and frees it; NULL is ignored. Nobody else may use it any more.
#[unsafe(no_mangle)]
pub extern "C" fn pld_run_destroy(run: Option<Box<pld_run_t>>) {
    guard::value((), || {
        // Its arguments' memory may be freed after this, so it must have ended; how is not asked here.
        run.map_or(Ok(()), |run| run.run.wait(None).or(Ok::<_, Error>(())))
    });
}
