//! The lock-free protocols between ranks, apart from everything else so that [loom] can try every interleaving.
//!
//! The structs live in memory that threads or processes share. They are valid when all their bytes are zero, which is
//! how such memory begins. `RUSTFLAGS="--cfg loom" cargo test -p pld-sync --release` runs the models.
//!
//! [loom]: https://docs.rs/loom

pub mod bell;
pub mod distant;
mod futex;
pub mod handoff;
pub mod progress;

pub use bell::Bell;
pub use handoff::Handoff;
pub use progress::{Horizon, Progress, Rotation};

/// The atomics of the standard library, or loom's when a model runs.
mod atomic {
    #[cfg(not(loom))]
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

/// Tries every interleaving with at most two preemptions, which is where the mistakes of small protocols show.
#[cfg(all(test, loom))]
fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(body);
}
