//! What ranks tell one another about themselves: a control block a rank, in memory that all share.
//!
//! Blocks are written by their own rank with relaxed stores that cost next to nothing, and read by others when
//! something goes wrong. Fields that belong together may be read torn; that can blur a report, never a result.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use pld_sync::Bell;

use super::failure::Record;
use crate::codegen::cpu::abi::BELL_STRIDE;
use crate::transport::Memory;

const _: () = assert!(size_of::<Bell>() == BELL_STRIDE, "generated code finds the bells by this distance");

/// No task has begun.
const NOWHERE: u64 = u64::MAX;

/// The control block of a rank. Zeroed memory is a rank that is there and idle.
#[repr(C, align(128))]
pub(super) struct Control {
    /// Rings when a peer's progress lets this rank begin a launch.
    pub(super) gate: Bell,
    left: AtomicU32,
    running: AtomicU32,
    executable: AtomicU32,
    waiting: AtomicU32,
    launch: AtomicU64,
    /// Index of the site of the task that runs; generated code stores it.
    pub(super) place: AtomicU64,
    cell: AtomicU64,
    expected: AtomicI32,
    cmp: AtomicU32,
    site: AtomicU32,
}

/// A wait that has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Bytes from the beginning of the rank's part of the executable's memory.
    pub(super) cell: u64,
    /// The value that the cell is compared with.
    pub(super) expected: i32,
    /// 0: equal, 1: greater or equal.
    pub(super) cmp: u32,
    /// The op.
    pub(super) site: u32,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Activity {
    /// Number of the executable, as agreed by all ranks.
    pub(super) executable: u32,
    /// Launch of it, from 0.
    pub(super) launch: u64,
    /// Site of the task that runs.
    pub(super) task: Option<u32>,
    /// The wait that blocks it.
    pub(super) waiting: Option<Waiting>,
}

impl Control {
    /// The rank begins a launch.
    pub(super) fn begin(&self, executable: u32, launch: u64) {
        self.executable.store(executable, Ordering::Relaxed);
        self.launch.store(launch, Ordering::Relaxed);
        self.place.store(NOWHERE, Ordering::Relaxed);
        self.running.store(1, Ordering::Relaxed);
    }

    /// The launch has ended, for this rank.
    pub(super) fn end(&self) {
        self.running.store(0, Ordering::Relaxed);
    }

    /// The rank begins to wait for long.
    pub(super) fn begin_wait(&self, wait: Waiting) {
        self.cell.store(wait.cell, Ordering::Relaxed);
        self.expected.store(wait.expected, Ordering::Relaxed);
        self.cmp.store(wait.cmp, Ordering::Relaxed);
        self.site.store(wait.site, Ordering::Relaxed);
        self.waiting.store(1, Ordering::Release);
    }

    /// The wait has ended.
    pub(super) fn end_wait(&self) {
        self.waiting.store(0, Ordering::Relaxed);
    }

    /// The rank leaves the world. Release: whoever sees it also sees how far the rank got.
    pub(super) fn leave(&self) {
        self.left.store(1, Ordering::Release);
    }

    /// The rank has left.
    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire) != 0
    }

    /// What the rank does, if it is in a launch.
    pub(super) fn activity(&self) -> Option<Activity> {
        (self.running.load(Ordering::Relaxed) != 0).then(|| Activity {
            executable: self.executable.load(Ordering::Relaxed),
            launch: self.launch.load(Ordering::Relaxed),
            task: u32::try_from(self.place.load(Ordering::Relaxed)).ok(),
            waiting: (self.waiting.load(Ordering::Acquire) != 0).then(|| Waiting {
                cell: self.cell.load(Ordering::Relaxed),
                expected: self.expected.load(Ordering::Relaxed),
                cmp: self.cmp.load(Ordering::Relaxed),
                site: self.site.load(Ordering::Relaxed),
            }),
        })
    }
}

/// The control blocks of all ranks; with rank 0's lie the failure record and the doorbells.
pub(super) struct Board {
    memory: Memory,
    nranks: u32,
}

const RECORD: usize = size_of::<Control>();
const BELLS: usize = RECORD + size_of::<Record>();

impl Board {
    /// Bytes of a rank's part.
    pub(super) const fn bytes(nranks: u32) -> usize {
        BELLS + nranks as usize * size_of::<Bell>()
    }

    /// The board in zeroed symmetric memory of [`Board::bytes`] a rank.
    pub(super) fn new(memory: Memory, nranks: u32) -> Self {
        assert!(memory.rank(0).addr().is_multiple_of(align_of::<Control>()) && memory.stride().is_multiple_of(128));
        Self { memory, nranks }
    }

    /// A rank's control block.
    pub(super) fn control(&self, rank: u32) -> &Control {
        // SAFETY: the block begins rank's part, which is mapped while the board lives, aligned, and zeroed at first;
        // all its fields are atomics.
        unsafe { &*self.memory.rank(rank).cast() }
    }

    /// The failure record.
    pub(super) fn record(&self) -> &Record {
        // SAFETY: as for a control block; it lies after rank 0's.
        unsafe { &*self.memory.rank(0).add(RECORD).cast() }
    }

    /// Address of the first doorbell, for generated code.
    pub(super) fn bells(&self) -> *const u8 {
        // SAFETY: inside rank 0's part.
        unsafe { self.memory.rank(0).add(BELLS) }
    }

    /// A rank's doorbell.
    pub(super) fn bell(&self, rank: u32) -> &Bell {
        assert!(rank < self.nranks);
        // SAFETY: as for a control block; there is a bell for every rank.
        unsafe { &*self.bells().cast::<Bell>().add(rank as usize) }
    }

    /// Lets the peers of `rank` look whether its progress lets them begin.
    pub(super) fn open_gates(&self, rank: u32) {
        Bell::ring_each((0..self.nranks).filter(|&peer| peer != rank).map(|peer| &self.control(peer).gate));
    }

    /// Wakes every rank, whatever it sleeps on.
    pub(super) fn wake_all(&self) {
        Bell::ring_each((0..self.nranks).flat_map(|rank| [self.bell(rank), &self.control(rank).gate]));
    }
}
