//! Ranks whose memory is not mapped here, because they run on other hosts.
//!
//! What a process sends to one far rank is executed there in the order in which it was sent. Nothing else is ordered by
//! itself: [`FarMemory::change`] waits on its way until what was sent before it to *other* far ranks has been executed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::error::Result;

/// The far ranks of a world, as this process sees them. All functions may be called by any thread, also while another
/// one is in any of them.
pub trait FarRanks: Send + Sync {
    /// The host of every rank: numbers from 0, by the lowest rank of each host; the same on every rank.
    fn hosts(&self) -> &[u32];

    /// How long a host may be silent before its ranks count as lost.
    fn silence(&self) -> Duration;

    /// Says who is told of what happens, before anything is sent. Once.
    fn listen(&self, listener: Arc<dyn Listener>);

    /// Executes what has come and sends on what could not be sent; true if there was anything. Costs little if not.
    fn progress(&self) -> bool;

    /// This thread is going to call [`FarRanks::progress`] often, until [`FarRanks::unattend`]: nobody need be woken for
    /// what comes. Calls nest and count.
    fn attend(&self);

    /// Ends an [`FarRanks::attend`].
    fn unattend(&self);

    /// Everything that this process has sent to far ranks has been executed there, as far as is known.
    fn reached(&self) -> bool;

    /// Asks the far ranks that [`FarRanks::reached`] is false for to say how far they are. Asking again costs nothing.
    fn ask(&self);

    /// Tells all processes of the world, this one included, the same things in the same order; the listener hears them.
    /// At most [`super::MAX_MESSAGE`] bytes. Does not wait.
    fn announce(&self, body: &[u8]) -> Result<()>;
}

/// Who is told what happens at far ranks. Functions are called by whatever thread has seen it, one at a time for
/// [`Listener::heard`], and must be quick.
pub trait Listener: Send + Sync {
    /// A far rank has changed memory of this process's rank.
    fn arrived(&self);

    /// There is news.
    fn heard(&self, news: News);
}

/// What a process hears of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The process of a rank has announced something.
    Said {
        /// The rank.
        rank: u32,
        /// What was announced.
        body: Vec<u8>,
    },
    /// A rank has left the world, having said so.
    Left {
        /// The rank.
        rank: u32,
    },
    /// A rank is lost.
    Lost {
        /// The rank.
        rank: u32,
        /// A sentence: `rank 2 died: its process ended without leaving the world`.
        why: String,
    },
}

/// Symmetric memory at far ranks. Transfers move rows; `near` memory is this process's, `offset` counts from the
/// beginning of the far rank's part. The counter is one higher until near memory may be used again: for a get, until the
/// bytes are there. What is for a rank that is lost is dropped, and counted down; a get that will not be answered is said to
/// be lost.
pub trait FarMemory: Send + Sync + fmt::Debug {
    /// Writes to a far rank.
    ///
    /// # Safety
    /// `near` has `rows` that nobody writes before they are counted down; the region lies in the far rank's part.
    unsafe fn put(&self, rank: u32, offset: u64, near: *const u8, rows: Rows, pending: &Arc<Pending>);

    /// Reads from a far rank, behind everything that was sent to it before.
    ///
    /// # Safety
    /// `near` has room for `rows` that nobody else uses before they are counted down; the region lies in the far rank's
    /// part.
    unsafe fn get(&self, rank: u32, offset: u64, near: *mut u8, rows: Rows, pending: &Arc<Pending>);

    /// Adds to a far rank's elements, each atomically.
    ///
    /// # Safety
    /// As for [`FarMemory::put`]; the region is aligned for elements of `dtype`, the number of one of the transport's
    /// [`Accumulator`]s.
    unsafe fn accumulate(
        &self,
        rank: u32,
        offset: u64,
        near: *const u8,
        rows: Rows,
        dtype: u32,
        pending: &Arc<Pending>,
    );

    /// Changes an aligned i32 cell of a far rank atomically, when everything that this process has sent before, to
    /// whatever far rank, has been executed. Changes of one cell keep their order. Does not wait.
    fn change(&self, rank: u32, offset: u64, change: Change);
}

/// Rows of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Bytes of a row.
    pub bytes: usize,
    /// Number of rows.
    pub count: usize,
    /// Bytes from one row to the next at the far rank.
    pub far_stride: usize,
    /// Likewise here.
    pub near_stride: usize,
}

/// What happens to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets this value.
    Set(i32),
    /// This is added, wrapping around.
    Add(i32),
}

/// How elements of one type are added to others in memory, rows at a time.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator {
    /// Bytes of an element.
    pub size: usize,
    /// `(dst, dst_stride, src, src_stride, rows, elements)`, strides in bytes.
    pub add: unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize),
}

/// Set in the number of [`Pending`] transfers when one was lost.
pub const LOST: i32 = 1 << 30;

/// Transfers whose near memory is in use.
#[derive(Debug, Default)]
pub struct Pending(AtomicI32);

impl Pending {
    /// One more.
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less. Release: what a get has brought is seen by whoever finds none.
    pub fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// One less, and its bytes will never come.
    pub fn lose(&self) {
        self.0.fetch_or(LOST, Ordering::Relaxed);
        self.end();
    }

    /// One was lost. For ever: the world cannot go on.
    pub fn lost(&self) -> bool {
        self.0.load(Ordering::Acquire) & LOST != 0
    }

    /// None uses memory any more, lost ones or not.
    pub fn idle(&self) -> bool {
        self.0.load(Ordering::Acquire) & !LOST == 0
    }

    /// There are none, and none was lost.
    pub fn none(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    /// Where the number is.
    pub fn as_ptr(&self) -> *const AtomicI32 {
        &raw const self.0
    }
}

/// Waits for far ranks, making progress: until `done`, which is asked often, or the deadline. False if it came first.
pub fn progress_until(ranks: &dyn FarRanks, deadline: Instant, done: impl Fn() -> bool) -> bool {
    ranks.attend();
    let mut idle = 0u32;
    let result = loop {
        if done() {
            break true;
        }
        idle = if ranks.progress() { 0 } else { idle + 1 };
        if idle > 100 {
            if Instant::now() >= deadline {
                break done();
            }
            std::thread::yield_now();
        }
    };
    ranks.unattend();
    result
}
