//! What is to be sent to one far rank, and how much of it that rank has acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frame::{Header, Kind, PIECE};
use super::rows::Strided;
use crate::transport::far::Pending;

/// Most frames that UCX is given for one rank before it has sent some.
const UNDERWAY: usize = 64;

/// One far rank's.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The last number that a frame was given.
    pub issued: u64,
    /// The last number of what writes there, changes excepted.
    pub writes: u64,
    /// The last number of what changes anything there.
    pub counted: u64,
    /// The last number for which an acknowledgement was asked.
    pub asked: u64,
    /// The last number that it has acknowledged.
    pub acknowledged: u64,
    /// Frames that UCX has.
    pub underway: usize,
    /// What UCX does not have yet.
    pub queue: VecDeque<Order>,
    /// Changes that wait for acknowledgements of other ranks.
    pub held: VecDeque<Held>,
    /// Nothing is sent any more.
    pub lost: bool,
}

impl Outbox {
    /// Not all of what was sent is known to have been executed.
    pub fn behind(&self) -> bool {
        self.counted > self.acknowledged
    }

    /// Likewise, of what writes.
    pub fn writing(&self) -> bool {
        self.writes > self.acknowledged
    }

    /// UCX may be given another frame.
    pub fn free(&self) -> bool {
        self.underway < UNDERWAY
    }

    /// Gives an order the numbers of its frames.
    pub fn number(&mut self, order: &mut Order) {
        order.header.number = self.issued + 1;
        self.issued += order.total.div_ceil(PIECE).max(1) as u64;
        match order.header.kind() {
            Some(Kind::Put | Kind::Accumulate) => (self.writes, self.counted) = (self.issued, self.issued),
            Some(Kind::Set | Kind::Add) => self.counted = self.issued,
            Some(Kind::Ask) => self.asked = self.issued,
            _ => {}
        }
    }
}

/// Something to send, in one frame or in several.
#[derive(Debug)]
pub struct Order {
    /// The next frame's.
    pub header: Header,
    /// What it is made of; null if that has gone.
    pub near: *const u8,
    /// Rows of `near`.
    pub rows: Strided,
    /// Bytes of all frames.
    pub total: usize,
    /// Who waits until `near` is not needed any more.
    pub pending: Option<Arc<Pending>>,
}

impl Order {
    /// One frame without payload.
    pub fn bare(header: Header) -> Self {
        Self { header, near: std::ptr::null(), rows: Strided { bytes: 1, stride: 1 }, total: 0, pending: None }
    }

    /// Bytes of the next frame's payload.
    pub fn piece(&self) -> usize {
        (self.total - self.header.position as usize).min(PIECE)
    }
}

/// A change that waits.
#[derive(Debug)]
pub struct Held {
    /// What is sent then.
    pub header: Header,
    /// Ranks, and what each must have acknowledged.
    pub waits: Vec<(u32, u64)>,
    /// It is to be acknowledged.
    pub asked: bool,
}
