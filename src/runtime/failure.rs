//! The failure record: why a launch has ended, or the world.
//!
//! A world's time is divided into *epochs*: it begins in epoch 0, and each recovery from a failed launch begins the next
//! one. In an epoch the first failure counts, and is past with the epoch, so that nobody need clear the record. A failure
//! that ends the world takes the place of any other and is of the last epoch, which nobody leaves.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};

/// Longest message, in bytes.
pub(super) const MAX_MESSAGE: usize = 2048;

/// The epoch of failures that end the world.
pub(super) const LAST_EPOCH: u64 = u64::MAX >> EPOCH_SHIFT;

/// How long others wait for a rank that has claimed the record to fill it; only a rank that dies meanwhile needs more.
const FILLING: Duration = Duration::from_millis(200);

const CLAIMED: u64 = 1;
const PUBLISHED: u64 = 2;
const PHASE: u64 = 3;
const RANK_SHIFT: u32 = 2;
const EPOCH_SHIFT: u32 = 24;
const WORD: usize = size_of::<u64>();

/// The record, in memory that all ranks share. Zeroed memory is a record without failure.
#[repr(C, align(128))]
pub(super) struct Record {
    /// 0, or the epoch, the rank, and `CLAIMED` or `PUBLISHED`.
    state: AtomicU64,
    kind: AtomicU32,
    len: AtomicU32,
    /// The message. It may change while somebody reads it, who notices by the state.
    text: [AtomicU64; MAX_MESSAGE / WORD],
}

/// A failure of this kind ends the world: nothing can be launched any more.
fn ends_world(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PeerLost | ErrorKind::Aborted | ErrorKind::Internal)
}

/// The least state of a failure of `epoch`.
fn least(epoch: u64) -> u64 {
    epoch << EPOCH_SHIFT | CLAIMED
}

fn rank_of(state: u64) -> u64 {
    (state % (1 << EPOCH_SHIFT)) >> RANK_SHIFT
}

/// Asks for patience with a rank that fills the record, at most [`FILLING`] long.
#[derive(Default)]
struct Filling(Option<Instant>);

impl Filling {
    fn is_awaited(&mut self) -> bool {
        let awaited = self.0.get_or_insert_with(Instant::now).elapsed() < FILLING;
        if awaited {
            std::thread::yield_now();
        }
        awaited
    }
}

impl Record {
    /// There is a failure of `epoch` or one that ends the world. One load of a line that hardly ever changes.
    pub(super) fn is_set(&self, epoch: u64) -> bool {
        self.state.load(Ordering::Acquire) >= least(epoch)
    }

    /// Whether a failure of this kind in `epoch` would come too late.
    pub(super) fn holds(&self, kind: ErrorKind, epoch: u64) -> bool {
        self.is_set(if ends_world(kind) { LAST_EPOCH } else { epoch })
    }

    /// Records `error` of `rank` unless there is a failure of `epoch` already; one that ends the world in any case.
    pub(super) fn publish(&self, rank: u32, error: &Error, epoch: u64) {
        let epoch = if ends_world(error.kind) { LAST_EPOCH } else { epoch };
        let owner = epoch << EPOCH_SHIFT | u64::from(rank) << RANK_SHIFT;
        let mut filling = Filling::default();
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            if seen >= least(epoch) {
                return;
            }
            if seen & PHASE == CLAIMED && filling.is_awaited() {
                continue;
            }
            if self.state.compare_exchange(seen, owner | CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                break;
            }
        }
        // Whoever reads any of the following also sees that the record was claimed.
        fence(Ordering::Release);
        let mut len = error.message.len().min(MAX_MESSAGE);
        while !error.message.is_char_boundary(len) {
            len -= 1;
        }
        for (word, bytes) in self.text.iter().zip(error.message.as_bytes()[..len].chunks(WORD)) {
            let mut padded = [0; WORD];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        self.kind.store(error.kind as u32, Ordering::Relaxed);
        self.len.store(len as u32, Ordering::Relaxed);
        // In vain if somebody with a failure that ends the world has lost patience.
        let _ = self.state.compare_exchange(owner | CLAIMED, owner | PUBLISHED, Ordering::Release, Ordering::Relaxed);
    }

    /// The failure of `epoch`, or the one that ended the world, if there is one.
    pub(super) fn get(&self, epoch: u64) -> Option<Error> {
        let mut filling = Filling::default();
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state < least(epoch) {
                return None;
            }
            if state & PHASE == CLAIMED {
                if filling.is_awaited() {
                    continue;
                }
                let message = format!("rank {} died while it reported a failure", rank_of(state));
                return Some(Error::new(ErrorKind::PeerLost, message));
            }
            let error = self.read();
            fence(Ordering::Acquire);
            if self.state.load(Ordering::Relaxed) == state {
                return Some(error);
            }
        }
    }

    fn read(&self) -> Error {
        let kind = self.kind.load(Ordering::Relaxed);
        let kind = ErrorKind::from_code(kind).unwrap_or(ErrorKind::Internal);
        let len = (self.len.load(Ordering::Relaxed) as usize).min(MAX_MESSAGE);
        let words = self.text.iter().take(len.div_ceil(WORD));
        let mut text: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        text.truncate(len);
        Error::new(kind, String::from_utf8_lossy(&text))
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
    fn the_first_failure_of_an_epoch_counts() {
        let record = record();
        let kinds = [ErrorKind::Timeout, ErrorKind::Mismatch, ErrorKind::OutOfBounds, ErrorKind::Arithmetic];
        for epoch in 0..100 {
            assert!(!record.is_set(epoch) && record.get(epoch).is_none());
            let error = |rank: u64| Error::new(kinds[rank as usize], format!("rank {rank} failed in {epoch}"));
            let seen = std::thread::scope(|s| {
                let ranks = [0, 1, 2, 3].map(|rank: u32| {
                    let record = &record;
                    s.spawn(move || {
                        record.publish(rank, &error(rank.into()), epoch);
                        record.get(epoch).unwrap()
                    })
                });
                ranks.map(|rank| rank.join().unwrap())
            });
            let first = error(rank_of(record.state.load(Ordering::Relaxed)));
            assert_eq!(seen, [(); 4].map(|()| first.clone()));
        }
    }

    #[test]
    fn a_failure_that_ends_the_world_comes_before_all_and_stays() {
        let record = record();
        record.publish(3, &Error::new(ErrorKind::Timeout, "a long message that is overwritten by a short one"), 0);
        record.publish(1, &Error::new(ErrorKind::Aborted, "aborted"), 0);
        record.publish(2, &Error::new(ErrorKind::PeerLost, "later"), 0);
        record.publish(2, &Error::new(ErrorKind::Timeout, "later"), 5);
        for epoch in [0, 1, 1 << 30, LAST_EPOCH] {
            assert_eq!(record.get(epoch), Some(Error::new(ErrorKind::Aborted, "aborted")));
        }
    }

    /// What is read is one of the messages that were written, never a mixture.
    #[test]
    fn messages_that_change_are_read_whole() {
        let record = record();
        let message = |epoch: u64| format!("{epoch} ").repeat(100 + epoch as usize % 200);
        std::thread::scope(|s| {
            let reader = s.spawn(|| {
                let mut last = 0;
                while last < 1999 {
                    let Some(error) = record.get(last) else { continue };
                    let seen = error.message.split(' ').next().unwrap().parse().unwrap();
                    assert!(seen >= last);
                    assert_eq!(error.message, message(seen));
                    last = seen;
                }
            });
            for epoch in 0..2000 {
                record.publish(0, &Error::new(ErrorKind::Timeout, message(epoch)), epoch);
                if epoch % 16 == 0 {
                    std::thread::yield_now();
                }
            }
            reader.join().unwrap();
        });
    }

    #[test]
    fn a_long_message_ends_at_a_character() {
        let record = record();
        record.publish(0, &Error::new(ErrorKind::Timeout, "é".repeat(MAX_MESSAGE) + "x"), 0);
        assert_eq!(record.get(0).unwrap().message, "é".repeat(MAX_MESSAGE / 2));
        record.publish(0, &Error::new(ErrorKind::Timeout, "x".to_owned() + &"é".repeat(MAX_MESSAGE)), 1);
        assert_eq!(record.get(1).unwrap().message, "x".to_owned() + &"é".repeat(MAX_MESSAGE / 2 - 1));
    }

    #[test]
    fn a_rank_that_dies_while_it_reports_is_named() {
        let record = record();
        record.state.store(5 << RANK_SHIFT | CLAIMED, Ordering::Relaxed);
        let error = record.get(0).unwrap();
        assert_eq!(error, Error::new(ErrorKind::PeerLost, "rank 5 died while it reported a failure"));
        record.publish(1, &Error::new(ErrorKind::PeerLost, "rank 5 died"), 0);
        assert_eq!(record.get(0).unwrap().message, "rank 5 died");
    }
}
