//! Memory for when there is none.
//!
//! Rust ends the process when an allocation fails, which a library must not do. So what needs much memory asks first
//! ([`ensure`]), and what the system then still refuses comes from a reserve inside the library: enough to end the call
//! with an error, and to destroy what was made. While any of it is used, calls that need memory are refused.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// Size of the reserve; pages that are never touched cost nothing.
const SIZE: usize = 1 << 20;

#[global_allocator]
static RESERVE: Reserve = Reserve::new();

/// That many bytes can be had now, and the reserve is not in use.
pub(super) fn ensure(bytes: usize) -> Result<()> {
    let layout = Layout::from_size_align(bytes, align_of::<usize>());
    let had = bytes == 0
        || layout.is_ok_and(|layout| {
            // Hidden from the compiler, which may drop an allocation that nobody uses.
            // SAFETY: the size is not 0.
            let memory = std::hint::black_box(unsafe { System.alloc(layout) });
            if !memory.is_null() {
                // SAFETY: just allocated so.
                unsafe { System.dealloc(memory, layout) };
            }
            !memory.is_null()
        });
    if had && RESERVE.is_free() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NoMemory, format!("this call may need {bytes} bytes of memory, which there are not")))
}

/// The system's allocator, with a reserve.
struct Reserve {
    /// Allocations in the reserve, in the upper half, and bytes up to the end of the last one, in the lower; together so
    /// that the last one to go empties it.
    state: AtomicU64,
    memory: UnsafeCell<[u8; SIZE]>,
}

// SAFETY: parts of the memory are handed out to one owner each; the state is atomic.
unsafe impl Sync for Reserve {}

const ONE: u64 = 1 << 32;

impl Reserve {
    const fn new() -> Self {
        Self { state: AtomicU64::new(0), memory: UnsafeCell::new([0; SIZE]) }
    }

    fn is_free(&self) -> bool {
        self.state.load(Ordering::Relaxed) == 0
    }

    fn owns(&self, memory: *mut u8) -> bool {
        (memory as usize).wrapping_sub(self.memory.get() as usize) < SIZE
    }

    /// Part of the reserve; null if it has not enough.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let base = self.memory.get().cast::<u8>();
        let mut begin = 0;
        let taken = self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |state| {
            let used = (state % ONE) as usize;
            begin = (base as usize + used).checked_next_multiple_of(layout.align())? - base as usize;
            let end = begin.checked_add(layout.size()).filter(|end| *end <= SIZE)?;
            Some((state / ONE + 1) * ONE + end as u64)
        });
        if taken.is_ok() { base.wrapping_add(begin) } else { std::ptr::null_mut() }
    }

    #[cold]
    fn give_back(&self) {
        let less = |state: u64| Some(if state / ONE == 1 { 0 } else { state - ONE });
        let given = self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
        debug_assert!(given.is_ok());
    }
}

// SAFETY: what it returns is the system's, or a part of the reserve that nobody else has: `take` moves the end up by one
// atomic step, and only the last `give_back` moves it down. Memory goes back to where it came from.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for this function.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { self.take(layout) } else { memory }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if self.owns(memory) {
            self.give_back();
        } else {
            // SAFETY: as for this function; it is the system's.
            unsafe { System.dealloc(memory, layout) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !self.owns(memory) {
            // SAFETY: as for this function; it is the system's.
            let moved = unsafe { System.realloc(memory, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises that the size fits the alignment; the new part is not the old one, both are as
        // long as what is copied, and the old one is given up once.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(memory, moved, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).expect("a layout")
    }

    #[test]
    fn parts_are_apart_aligned_and_come_back() {
        static RESERVE: Reserve = Reserve::new();
        let first = RESERVE.take(layout(3, 1));
        let second = RESERVE.take(layout(100, 64));
        assert!(RESERVE.owns(first) && RESERVE.owns(second) && (second as usize).is_multiple_of(64));
        assert!(second as usize >= first as usize + 3);
        assert!(RESERVE.take(layout(SIZE, 1)).is_null());
        assert!(!RESERVE.is_free());
        // SAFETY: allocated above with these layouts.
        unsafe {
            first.write(7);
            RESERVE.dealloc(second, layout(100, 64));
            let moved = RESERVE.realloc(first, layout(3, 1), 5000);
            assert_eq!(moved.read(), 7);
            assert!(!RESERVE.owns(moved), "the system has memory again");
            RESERVE.dealloc(moved, layout(5000, 1));
        }
        assert!(RESERVE.is_free());
        assert!(!RESERVE.take(layout(SIZE, 1)).is_null(), "all of it can be had again");
    }

    #[test]
    fn asking_for_the_impossible_is_an_error() {
        assert_eq!(ensure(1000), Ok(()));
        let error = ensure(isize::MAX as usize - 64).expect_err("too much");
        assert_eq!(error.kind, ErrorKind::NoMemory);
        assert_eq!(ensure(usize::MAX).map_err(|e| e.kind), Err(ErrorKind::NoMemory));
    }
}
