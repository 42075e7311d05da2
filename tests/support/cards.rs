//! Worlds of simulated cards.

use std::path::Path;
use std::time::Duration;

use pld::runtime::{CallbackContext, CardOptions, WorldOptions};
use pld_test_ranks::{Job, Spread};

#[path = "toolkit.rs"]
mod toolkit;

/// Kernels have to be compiled, and simulated cards are slow.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the environment of a process with simulated cards says.
pub fn variables() -> [(&'static str, String); 2] {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let text = |path: &Path| path.to_str().expect("a path of the project").to_owned();
    [("ASCEND_HOME_PATH", text(&toolkit::toolkit())), ("PLD_KERNEL_CACHE", text(&cache))]
}

/// A job that runs `scenario` in a process for each of `nranks` cards.
pub fn job(scenario: &str, nranks: u32) -> Job {
    job_with(scenario, nranks, &[])
}

/// The same with more variables in their environment.
pub fn job_with(scenario: &str, nranks: u32, more: &[(&'static str, &str)]) -> Job {
    let mut job = Job::over(Spread::Together).patient(PATIENCE);
    for rank in 0..nranks {
        let place = [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", nranks.to_string())];
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        job.spawn(scenario, variables().into_iter().chain(place).chain(more));
    }
    job
}

/// Options of a world whose ranks are cards, device `r` for rank `r`.
pub fn on_cards() -> WorldOptions {
    WorldOptions { cards: Some(CardOptions::default()), ..WorldOptions::default() }
}

/// Waits for what a function of the engine comes after: it may then work with memory of the simulated card, which is the
/// process's own. Functions of engines queue their work on the stream instead.
pub fn settle(context: &CallbackContext) {
    if !context.stream.is_null() {
        let home = std::env::var_os("ASCEND_HOME_PATH").map(std::path::PathBuf::from);
        let cann = hccl_sys::Cann::get(home.as_deref()).expect("the simulated CANN");
        // SAFETY: the library has made the card of the stream current for this thread.
        let code = unsafe { (cann.aclrtSynchronizeStreamWithTimeout)(context.stream, 30_000) };
        assert_eq!(code, 0, "the stream of the task");
    }
}
