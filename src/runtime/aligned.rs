//! Zeroed memory of its own, on cache lines of its own.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::error::{Error, ErrorKind, Result};

/// Alignment, and so the unit of allocation.
const ALIGN: usize = 64;

/// Memory that one owner frees. Who reads and writes it when is for the owner to order.
pub(super) struct Aligned {
    data: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, which belongs to no thread.
unsafe impl Send for Aligned {}
// SAFETY: it gives out an address only.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// `bytes` zeros for `purpose`.
    pub(super) fn new(bytes: usize, purpose: &str) -> Result<Self> {
        let no_memory = || Error::new(ErrorKind::NoMemory, format!("no memory for {bytes} bytes of {purpose}"));
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).map_err(|_| no_memory())?;
        let layout = layout.pad_to_align();
        // SAFETY: the size is not 0.
        let data = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(no_memory)?;
        Ok(Self { data, layout })
    }

    /// Bytes that it has, at least those asked for.
    pub(super) fn bytes(&self) -> usize {
        self.layout.size()
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody uses it after its owner.
        unsafe { dealloc(self.data.as_ptr(), self.layout) };
    }
}
