//! What travels: frames, a header and up to [`PIECE`] bytes of a transfer's packed rows. Both sides run the same library
//! on the same kind of machine: a header is sent as it is in memory.

use std::mem::size_of;

/// Most bytes of a transfer in one frame. Longer ones are slower over TCP: they leave the caches of the processor.
pub const PIECE: usize = 16 << 10;

/// Bytes of a header.
pub const HEADER: usize = size_of::<Header>();

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Write the payload.
    Put = 1,
    /// Add the payload to what is there.
    Accumulate,
    /// Give a cell a value.
    Set,
    /// Add to a cell.
    Add,
    /// Answer with what is there.
    Get,
    /// Acknowledge what was executed.
    Ask,
    /// Nothing: in place of a frame whose source has gone.
    Skip,
    /// The sender has dropped its part of the memory.
    Release,
    /// The payload answers a get. Not numbered.
    Answer,
    /// A get will not be answered. Not numbered.
    Refuse,
    /// Nothing but what every header says. Not numbered.
    Acknowledge,
}

/// Rows of equal length at a far rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Region {
    /// Where the first begins, from the beginning of the rank's part.
    pub offset: u64,
    /// Bytes of a row.
    pub bytes: u64,
    /// Number of rows.
    pub count: u64,
    /// Bytes from one row to the next.
    pub stride: u64,
}

impl Region {
    /// Bytes of all rows.
    pub fn total(&self) -> Option<u64> {
        self.bytes.checked_mul(self.count)
    }

    /// All of it lies in a part of `bytes`.
    pub fn inside(&self, bytes: usize) -> bool {
        let last = self.count.checked_sub(1).and_then(|rows| rows.checked_mul(self.stride));
        let end = last.and_then(|last| last.checked_add(self.bytes)?.checked_add(self.offset));
        end.is_some_and(|end| end <= bytes as u64)
    }
}

/// The beginning of a frame.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Header {
    /// A [`Kind`].
    pub kind: u32,
    /// What kind of elements, by number.
    pub dtype: u32,
    /// The rank that sends it.
    pub from: u32,
    /// Which memory.
    pub memory: u32,
    /// Its place among those that the sender has sent to the receiver, from 1; 0 if it has none.
    pub number: u64,
    /// The last number of the receiver's frames that the sender has executed.
    pub executed: u64,
    /// The whole transfer's region.
    pub region: Region,
    /// Where in the transfer's packed rows the payload begins.
    pub position: u64,
    /// By what the sender knows a get, or the value of a change.
    pub token: u64,
}

impl Header {
    /// Writes it to the beginning of a frame.
    ///
    /// # Safety
    /// There is room for [`HEADER`] bytes.
    pub unsafe fn write(&self, frame: *mut u8) {
        // SAFETY: as the caller says; the type has neither padding nor alignment that matters here.
        unsafe { frame.cast::<Self>().write_unaligned(*self) }
    }

    /// The header and the payload of a frame, if it is long enough to be one.
    pub fn read(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (header, payload) = frame.split_at_checked(HEADER)?;
        // SAFETY: there are so many bytes, and any bytes are a header.
        Some((unsafe { header.as_ptr().cast::<Self>().read_unaligned() }, payload))
    }

    /// What it is for, if that is known.
    pub fn kind(&self) -> Option<Kind> {
        use Kind::*;
        let kinds = [Put, Accumulate, Set, Add, Get, Ask, Skip, Release, Answer, Refuse, Acknowledge];
        kinds.get((self.kind as usize).wrapping_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_they_were_written() {
        for kind in [Kind::Put, Kind::Set, Kind::Ask, Kind::Acknowledge] {
            let header = Header { kind: kind as u32, number: 7, ..Header::default() };
            let mut frame = [0; HEADER + 3];
            // SAFETY: there is room.
            unsafe { header.write(frame.as_mut_ptr()) };
            let (read, payload) = Header::read(&frame).expect("long enough");
            assert_eq!((read.kind(), read.number, payload.len()), (Some(kind), 7, 3));
        }
        assert!(Header { kind: 0, ..Header::default() }.kind().is_none());
        assert!(Header { kind: 12, ..Header::default() }.kind().is_none());
        assert!(Header::read(&[0; HEADER - 1]).is_none());
    }

    #[test]
    fn regions_end_where_memory_does() {
        let region = Region { offset: 4, bytes: 8, count: 3, stride: 16 };
        assert!(region.inside(44) && !region.inside(43));
        assert!(!Region { offset: u64::MAX, ..region }.inside(usize::MAX));
        assert!(!Region { stride: u64::MAX, ..region }.inside(usize::MAX));
        assert!(!Region { count: 0, ..region }.inside(44));
    }
}
