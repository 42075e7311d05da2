//! How ranks share memory and find each other. One contract, one file or folder an implementation.
//!
//! A transport gives its ranks two things: *symmetric memory* (each rank contributes the same number of zeroed bytes,
//! and all see all, at a fixed distance from one another) and an *exchange* of small messages. Everything else -
//! signals, failures, launches - is built on these by [`crate::runtime`]. A transport knows nothing of programs.
//!
//! Collective functions are called by all ranks in the same order. They end by themselves: with success on every rank,
//! or with an error on every rank that is still there.

use std::ops::Range;
use std::time::Instant;

use crate::error::Result;

/// What every transport can do.
pub trait Transport: Send + Sync {
    /// Its name: `thread`, `shm`.
    fn name(&self) -> &'static str;

    /// Number of ranks of the world.
    fn nranks(&self) -> u32;

    /// The ranks that this process drives: all of them, or one.
    fn local(&self) -> Range<u32>;

    /// Sends `mine` to all ranks and returns everyone's, by rank. Collective; a process that drives all ranks gets
    /// its own message once a rank. Small messages only (64 KiB at most).
    fn exchange(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>>;

    /// `bytes` of zeroed memory a rank, reserved so that touching it cannot fail later. Collective. If it does not fit,
    /// `NoSpace` on every rank, with needed and available bytes.
    fn allocate(&self, bytes: usize, deadline: Instant) -> Result<Memory>;

    /// A rank whose process has ended without leaving, if there is one. At most one system call.
    fn lost(&self) -> Option<u32>;
}

/// Symmetric memory: rank `r`'s part begins at `base + r * stride`. Unmapped when dropped.
#[derive(Debug)]
pub struct Memory {
    base: *mut u8,
    stride: usize,
    nranks: u32,
}

// SAFETY: the memory belongs to no thread; who may touch which byte when is for the user of the memory to order.
unsafe impl Send for Memory {}
// SAFETY: as above; the struct itself is never changed.
unsafe impl Sync for Memory {}

impl Memory {
    /// Address of rank `rank`'s part.
    pub fn rank(&self, rank: u32) -> *mut u8 {
        debug_assert!(rank < self.nranks);
        self.base.wrapping_add(rank as usize * self.stride)
    }

    /// Bytes between the parts of neighbouring ranks.
    pub fn stride(&self) -> usize {
        self.stride
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: base and length are those of one mapping that was made for this struct and is used through it only.
        let unmapped = unsafe { rustix::mm::munmap(self.base.cast(), self.stride * self.nranks as usize) };
        debug_assert!(unmapped.is_ok());
    }
}
