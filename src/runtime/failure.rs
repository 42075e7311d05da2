//! The failure of a world: the first one counts, every rank ends with it, and it stays.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};

/// Longest message, in bytes.
pub(super) const MAX_MESSAGE: usize = 2048;

/// How long a reader waits for a rank that has claimed the record to fill it; only a rank that dies meanwhile needs more.
const FILLING: Duration = Duration::from_millis(200);

const CLAIMED: u32 = 1;
const PUBLISHED: u32 = 2;
const STATE: u32 = 3;
const RANK_SHIFT: u32 = 2;

/// The record, in memory that all ranks share. Zeroed memory is a record without failure.
#[repr(C, align(128))]
pub(super) struct Record {
    /// 0, or `CLAIMED` or `PUBLISHED` with the rank above.
    state: AtomicU32,
    kind: AtomicU32,
    len: AtomicU32,
    text: UnsafeCell<[u8; MAX_MESSAGE]>,
}

// SAFETY: `text` is written once, by whoever changes `state` from 0, and read after `PUBLISHED` was acquired.
unsafe impl Sync for Record {}

/// The kinds that a world can fail with.
const KINDS: [ErrorKind; 10] = [
    ErrorKind::Timeout,
    ErrorKind::PeerLost,
    ErrorKind::Aborted,
    ErrorKind::Mismatch,
    ErrorKind::OutOfBounds,
    ErrorKind::Arithmetic,
    ErrorKind::Callback,
    ErrorKind::Unsupported,
    ErrorKind::Io,
    ErrorKind::NoMemory,
];

impl Record {
    /// There is a failure. One load of a line that changes once.
    pub(super) fn is_set(&self) -> bool {
        self.state.load(Ordering::Acquire) != 0
    }

    /// Records `error` of `rank` unless there is a failure already.
    pub(super) fn publish(&self, rank: u32, error: &Error) {
        let owner = rank << RANK_SHIFT;
        if self.state.compare_exchange(0, owner | CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let mut len = error.message.len().min(MAX_MESSAGE);
        while !error.message.is_char_boundary(len) {
            len -= 1;
        }
        // SAFETY: only the rank that claimed the record writes, and nobody reads before the store of PUBLISHED.
        unsafe { (&mut *self.text.get())[..len].copy_from_slice(&error.message.as_bytes()[..len]) };
        self.kind.store(error.kind as u32, Ordering::Relaxed);
        self.len.store(len as u32, Ordering::Relaxed);
        self.state.store(owner | PUBLISHED, Ordering::Release);
    }

    /// The failure, if there is one.
    pub(super) fn get(&self) -> Option<Error> {
        let mut begin = None;
        loop {
            let state = self.state.load(Ordering::Acquire);
            match state & STATE {
                0 => return None,
                PUBLISHED => break,
                _ if begin.get_or_insert_with(Instant::now).elapsed() < FILLING => std::thread::yield_now(),
                _ => {
                    let message = format!("rank {} died while it reported a failure", state >> RANK_SHIFT);
                    return Some(Error::new(ErrorKind::PeerLost, message));
                }
            }
        }
        let kind = self.kind.load(Ordering::Relaxed);
        let kind = KINDS.into_iter().find(|k| *k as u32 == kind).unwrap_or(ErrorKind::Internal);
        let len = (self.len.load(Ordering::Relaxed) as usize).min(MAX_MESSAGE);
        // SAFETY: PUBLISHED was acquired, so the text is written and never changes again.
        let text = unsafe { &(&*self.text.get())[..len] };
        Some(Error::new(kind, String::from_utf8_lossy(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Box<Record> {
        // SAFETY: zeroed memory is a record without failure.
        Box::new(unsafe { std::mem::zeroed() })
    }

    #[test]
    fn the_first_failure_stays() {
        let record = record();
        assert!(!record.is_set() && record.get().is_none());
        std::thread::scope(|s| {
            for rank in 0..4u32 {
                let record = &record;
                s.spawn(move || {
                    record.publish(rank, &Error::new(KINDS[rank as usize], format!("rank {rank} failed first")));
                    record.get().unwrap()
                });
            }
        });
        let first = record.get().unwrap();
        let rank = record.state.load(Ordering::Relaxed) >> RANK_SHIFT;
        assert_eq!(first, Error::new(KINDS[rank as usize], format!("rank {rank} failed first")));
        record.publish(9, &Error::new(ErrorKind::Aborted, "later"));
        assert_eq!(record.get(), Some(first));
    }

    #[test]
    fn a_long_message_ends_at_a_character() {
        let record = record();
        record.publish(0, &Error::new(ErrorKind::Aborted, "é".repeat(MAX_MESSAGE) + "x"));
        assert_eq!(record.get().unwrap().message, "é".repeat(MAX_MESSAGE / 2));
    }

    #[test]
    fn a_rank_that_dies_while_it_reports_is_named() {
        let record = record();
        record.state.store(5 << RANK_SHIFT | CLAIMED, Ordering::Relaxed);
        let error = record.get().unwrap();
        assert_eq!(error, Error::new(ErrorKind::PeerLost, "rank 5 died while it reported a failure"));
    }
}
