//! What a kernel is told of the windows of a domain, in the layout of PTO-ISA's communication context.

use crate::error::{Error, ErrorKind, Result};

/// Most ranks of a domain that kernels address.
pub const MAX_CARDS: usize = 64;

/// Size of a context.
pub const CONTEXT_BYTES: usize = 1056;

/// The context of the rank with number `rank` in a domain whose windows, of `window_bytes` each, are at `bases`: a work
/// space (none), the rank, the number of ranks, the size, the bases, and as many addresses again that nobody reads.
pub fn comm_context(rank: u32, bases: &[u64], window_bytes: u64) -> Result<[u8; CONTEXT_BYTES]> {
    let nranks = bases.len();
    if nranks > MAX_CARDS || rank as usize >= nranks {
        let message = format!("rank {rank} of a domain of {nranks} cards; at most {MAX_CARDS} are possible");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let mut context = [0; CONTEXT_BYTES];
    context[16..20].copy_from_slice(&rank.to_ne_bytes());
    context[20..24].copy_from_slice(&(nranks as u32).to_ne_bytes());
    context[24..32].copy_from_slice(&window_bytes.to_ne_bytes());
    for (place, base) in context[32..].chunks_exact_mut(8).zip(bases) {
        place.copy_from_slice(&base.to_ne_bytes());
    }
    Ok(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As kernels declare it.
    #[repr(C)]
    struct Declared {
        work_space: u64,
        work_space_size: u64,
        rank: u32,
        nranks: u32,
        window_bytes: u64,
        windows: [u64; MAX_CARDS],
        windows_out: [u64; MAX_CARDS],
    }

    #[test]
    fn the_layout_is_the_published_one() {
        assert_eq!(size_of::<Declared>(), CONTEXT_BYTES);
        let bases = [0x1000_0000_0001, 0x2000_0000_0002, 0x3000_0000_0003];
        let bytes = comm_context(2, &bases, 0x7_0000_0007).unwrap();
        // SAFETY: the bytes are as long as the struct, and any are a value of it.
        let context: Declared = unsafe { std::mem::transmute(bytes) };
        assert_eq!((context.work_space, context.work_space_size), (0, 0));
        assert_eq!((context.rank, context.nranks, context.window_bytes), (2, 3, 0x7_0000_0007));
        assert_eq!((&context.windows[..3], context.windows[3]), (&bases[..], 0));
        assert_eq!(context.windows_out, [0; MAX_CARDS]);
    }

    #[test]
    fn domains_have_limits() {
        let full = comm_context(63, &[9; 64], 1).unwrap();
        assert_eq!((full[32], full[32 + 63 * 8], full[32 + 64 * 8]), (9, 9, 0));
        assert_eq!(comm_context(0, &[1; 65], 1).unwrap_err().kind, ErrorKind::Unsupported);
        assert_eq!(comm_context(2, &[1; 2], 1).unwrap_err().kind, ErrorKind::Unsupported);
    }
}
