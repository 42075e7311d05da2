//! Memory that all processes of a team share: cache lines for raw measurements, and a barrier between samples.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

/// Distance of two lines that never share what a CPU fetches at once.
pub const LINE: usize = 128;
/// Lines for raw measurements.
pub const LINES: usize = 64;
/// Lines of the barrier, after the others.
const ARRIVED: usize = LINES;
const GENERATION: usize = LINES + 1;
/// Plain bytes of each rank, after the lines.
pub const DATA_BYTES: usize = 4096;
const MAX_RANKS: usize = 64;
const BYTES: usize = (LINES + 2) * LINE + MAX_RANKS * DATA_BYTES;

/// The shared memory. Lives as long as the process.
#[derive(Clone, Copy)]
pub struct Board {
    base: *mut u8,
}

/// A file to share a board by: zeroed, and inherited by child processes.
pub fn create() -> Result<OwnedFd, Errno> {
    let file = memfd_create("pld-bench", MemfdFlags::empty())?;
    ftruncate(&file, BYTES as u64)?;
    Ok(file)
}

/// Maps `bytes` of new memory that could be shared with other processes, as windows are.
pub fn map_shared(bytes: usize) -> Result<*mut u8, Errno> {
    let file = memfd_create("pld-bench", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, bytes as u64)?;
    map(file.as_fd(), 0, bytes)
}

/// Gives memory from [`map_shared`] back.
///
/// # Safety
/// Nothing may use it any more.
pub unsafe fn unmap(base: *mut u8, bytes: usize) -> Result<(), Errno> {
    // SAFETY: the caller says that the mapping is unused.
    unsafe { munmap(base.cast(), bytes) }
}

/// Maps `bytes` more, zeroed at first, that all processes with this board share. They all ask for the same, and once.
pub fn extend(file: impl AsFd, bytes: usize) -> Result<*mut u8, Errno> {
    const PAGE: usize = 4096;
    let begin = BYTES.next_multiple_of(PAGE);
    ftruncate(&file, (begin + bytes) as u64)?;
    map(file, begin, bytes)
}

fn map(file: impl AsFd, begin: usize, bytes: usize) -> Result<*mut u8, Errno> {
    // SAFETY: a new mapping, at an address that the kernel chooses, of a file that is as long.
    let base = unsafe {
        mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, begin as u64)?
    };
    Ok(base.cast())
}

impl Board {
    /// Maps the board that `file` holds.
    pub fn open(file: impl AsFd) -> Result<Self, Errno> {
        Ok(Self { base: map(file, 0, BYTES)? })
    }

    /// A word alone in its line.
    pub fn line(&self, index: usize) -> &AtomicU32 {
        assert!(index < LINES + 2);
        // SAFETY: inside the mapping, which is never unmapped, aligned, and only ever used as an atomic.
        unsafe { AtomicU32::from_ptr(self.base.add(index * LINE).cast()) }
    }

    /// The plain bytes of a rank, [`DATA_BYTES`] of them.
    pub fn data(&self, rank: u32) -> *mut u8 {
        assert!((rank as usize) < MAX_RANKS);
        // SAFETY: inside the mapping.
        unsafe { self.base.add((LINES + 2) * LINE + rank as usize * DATA_BYTES) }
    }

    /// Sleeps until all of `ranks` are here, so that the last one finds the CPUs free.
    pub fn barrier(&self, ranks: u32) {
        let (arrived, generation) = (self.line(ARRIVED), self.line(GENERATION));
        let before = generation.load(Ordering::Acquire);
        if arrived.fetch_add(1, Ordering::AcqRel) + 1 == ranks {
            arrived.store(0, Ordering::Relaxed);
            generation.store(before.wrapping_add(1), Ordering::Release);
            // A wake of nobody is no mistake, and there is no other on a mapped word.
            let _ = futex::wake(generation, futex::Flags::empty(), u32::MAX >> 1);
        }
        while generation.load(Ordering::Acquire) == before {
            // Returns at once if the generation has changed.
            let _ = futex::wait(generation, futex::Flags::empty(), before, None);
        }
    }
}
