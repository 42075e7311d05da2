//! The fork rule: a forked child owns none of its parent's worlds, and nothing it does may disturb them.
//!
//! Each world has a page that the kernel wipes in a child, so that asking costs one load and no handler is installed.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::error::{Error, ErrorKind, Result};

const PAGE: usize = 4096;

/// Tells the process that made it from its children.
#[derive(Debug)]
pub(super) struct ForkGuard {
    page: NonNull<AtomicU32>,
}

// SAFETY: the page is only read after it was made.
unsafe impl Send for ForkGuard {}
// SAFETY: as above.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    pub(super) fn new() -> Result<Self> {
        // SAFETY: a new private mapping, placed by the kernel, aliases nothing.
        let page = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(|e| Error::new(ErrorKind::NoMemory, format!("no memory for a page of {PAGE} bytes: {e}")))?;
        let guard = Self { page: NonNull::new(page.cast()).expect("the kernel maps nothing at address 0") };
        // SAFETY: the range is the mapping above, which nobody else knows.
        unsafe { rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork) }
            .map_err(|e| Error::io("marking a page to be wiped in forked children (Linux 4.14)", e))?;
        guard.word().store(1, Ordering::Relaxed);
        Ok(guard)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped as long as the guard lives, and zeroed memory is an atomic.
        unsafe { self.page.as_ref() }
    }

    /// This process is a child of the one that made the guard.
    pub(super) fn is_child(&self) -> bool {
        self.word().load(Ordering::Relaxed) == 0
    }

    /// An error in a child.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_child() {
            let message = "this process was forked from the one that made the world; a child makes a world of its own";
            return Err(Error::new(ErrorKind::Forked, message));
        }
        Ok(())
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        // SAFETY: the mapping was made for this guard, and no reference to it is left.
        let unmapped = unsafe { rustix::mm::munmap(self.page.as_ptr().cast(), PAGE) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_knows_that_it_is_one() {
        let guard = ForkGuard::new().unwrap();
        assert!(guard.check().is_ok());
        // SAFETY: the child calls nothing that needs other threads or locks, and leaves with _exit.
        match unsafe { libc::fork() } {
            0 => {
                let code = if guard.is_child() { 7 } else { 8 };
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(code) }
            }
            child => {
                let mut status = 0;
                // SAFETY: `child` is this process's child and `status` is writable.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(libc::WEXITSTATUS(status), 7);
            }
        }
        assert!(!guard.is_child());
    }
}
