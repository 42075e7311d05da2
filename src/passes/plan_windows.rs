//! Gives each window buffer its place in a rank's windows.

use cranelift_entity::SecondaryMap;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::extent::Known;
use crate::ir::program::BufferSize;
use crate::ir::{Buffer, Program};

/// Alignment of every buffer: a cache line, so that buffers never share one.
pub const ALIGN: usize = 64;

/// Where each buffer lies; the same on every rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Place of each buffer.
    pub buffers: SecondaryMap<Buffer, Place>,
    /// Bytes of all buffers, padding included.
    pub bytes: usize,
}

/// Place of one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of the windows.
    pub offset: usize,
    /// Bytes of the buffer.
    pub bytes: usize,
}

/// Lays the buffers of a program out, in order of allocation, for a world of `nranks`.
pub fn plan_windows(program: &Program, nranks: u32) -> Result<Layout> {
    let known = Known { world: Some(i64::from(nranks)), dims: &[] };
    let mut layout = Layout::default();
    for (buffer, data) in &program.buffers {
        let bytes = match &data.size {
            BufferSize::Bytes(bytes) => program.extents.eval(*bytes, known),
            BufferSize::Shape(dtype, shape) => shape
                .iter()
                .try_fold(dtype.size(), |n, &e| n.checked_mul(program.extents.eval(e, known).filter(|&e| e >= 0)?)),
        };
        let end = bytes.and_then(|b| usize::try_from(b).ok()).and_then(|b| layout.bytes.checked_add(b));
        let (Some(bytes), Some(end)) = (bytes, end.and_then(|e| e.checked_next_multiple_of(ALIGN))) else {
            let message = format!("window {} has no size that fits an address space of 64 bits", data.name);
            return Err(Error::new(ErrorKind::NoSpace, message));
        };
        layout.buffers[buffer] = Place { offset: layout.bytes, bytes: bytes as usize };
        layout.bytes = end;
    }
    Ok(layout)
}
