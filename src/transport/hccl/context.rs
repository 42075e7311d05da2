//! What a kernel is told of the windows of a domain: the layout is that of PTO-ISA's communication context.

use crate::error::{Error, ErrorKind, Result};

/// Most ranks of a domain that kernels address.
pub const MAX_CARDS: usize = 64;

/// The context of one rank, as kernels read it. Its layout never changes.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommContext {
    work_space: u64,
    work_space_size: u64,
    rank: u32,
    nranks: u32,
    window_bytes: u64,
    windows: [u64; MAX_CARDS],
    /// Never read.
    windows_out: [u64; MAX_CARDS],
}

impl CommContext {
    /// Size in memory.
    pub const BYTES: usize = size_of::<Self>();

    /// The context of the rank with number `rank` in a domain whose windows of `window_bytes` are at `bases`.
    pub fn new(rank: u32, bases: &[u64], window_bytes: u64) -> Result<Self> {
        let nranks = bases.len();
        if nranks > MAX_CARDS || rank as usize >= nranks {
            let message = format!("rank {rank} of a domain of {nranks} cards; at most {MAX_CARDS} are possible");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let mut windows = [0; MAX_CARDS];
        windows[..nranks].copy_from_slice(bases);
        Ok(Self {
            work_space: 0,
            work_space_size: 0,
            rank,
            nranks: nranks as u32,
            window_bytes,
            windows,
            windows_out: [0; MAX_CARDS],
        })
    }

    /// The bytes for the card.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend([self.work_space, self.work_space_size].iter().flat_map(|value| value.to_ne_bytes()));
        bytes.extend([self.rank, self.nranks].iter().flat_map(|value| value.to_ne_bytes()));
        bytes.extend(self.window_bytes.to_ne_bytes());
        bytes.extend(self.windows.iter().chain(&self.windows_out).flat_map(|value| value.to_ne_bytes()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_published_one() {
        let context = CommContext::new(2, &[0x1000, 0x2000, 0x3000], 77).unwrap();
        let bytes = context.to_bytes();
        assert_eq!((bytes.len(), CommContext::BYTES), (1056, 1056));
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let int = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((long(0), long(8), int(16), int(20), long(24)), (0, 0, 2, 3, 77));
        assert_eq!((long(32), long(40), long(48), long(56)), (0x1000, 0x2000, 0x3000, 0));
        assert!(bytes[56..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn domains_have_limits() {
        assert!(CommContext::new(63, &[1; 64], 1).is_ok());
        assert_eq!(CommContext::new(0, &[1; 65], 1).unwrap_err().kind, ErrorKind::Unsupported);
        assert_eq!(CommContext::new(2, &[1; 2], 1).unwrap_err().kind, ErrorKind::Unsupported);
    }
}
