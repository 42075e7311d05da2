//! What ranks tell one another about themselves: a control block a rank, in memory that all share.
//!
//! Blocks are written by their own rank with relaxed stores that cost next to nothing, and read by others when
//! something goes wrong. Fields that belong together may be read torn; that can blur a report, never a result.
//!
//! Ranks of other hosts share no memory: of those a process knows what it has heard. Then it has a failure record of its
//! own too, so that all processes come to the same failure by hearing of failures in the same order.

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

/// The control blocks of all ranks; with one rank's lie the failure record and the doorbells.
pub(super) struct Board {
    memory: Memory,
    nranks: u32,
    home: Home,
}

/// Where a process finds what lies at one rank only.
#[derive(Clone, Debug, Default)]
pub(super) struct Home {
    /// The failure record, and what is known of far ranks.
    pub(super) record: u32,
    /// The doorbells: the same for all ranks that map each other's memory.
    pub(super) bells: u32,
    /// By rank; empty if no rank is far.
    pub(super) far: Box<[bool]>,
}

const RECORD: usize = size_of::<Control>();
const BELLS: usize = RECORD + size_of::<Record>();

impl Board {
    /// Bytes of a rank's part.
    pub(super) const fn bytes(nranks: u32) -> usize {
        BELLS + nranks as usize * (size_of::<Bell>() + size_of::<Control>())
    }

    /// The board in zeroed symmetric memory of [`Board::bytes`] a rank.
    pub(super) fn new(memory: Memory, nranks: u32, home: Home) -> Self {
        assert!(memory.rank(0).addr().is_multiple_of(align_of::<Control>()) && memory.stride().is_multiple_of(128));
        Self { memory, nranks, home }
    }

    /// A rank's control block; of a far one, the copy that what is heard of it goes to.
    pub(super) fn control(&self, rank: u32) -> &Control {
        debug_assert!(rank < self.nranks);
        let block = match self.home.far.get(rank as usize) {
            Some(true) => {
                let copies = BELLS + self.nranks as usize * size_of::<Bell>();
                self.memory.rank(self.home.record).wrapping_add(copies + rank as usize * size_of::<Control>())
            }
            _ => self.memory.rank(rank),
        };
        // SAFETY: the block lies in the part of a rank that is mapped while the board lives, aligned, and zeroed at first;
        // all its fields are atomics.
        unsafe { &*block.cast() }
    }

    /// The failure record.
    pub(super) fn record(&self) -> &Record {
        // SAFETY: as for a control block; it lies after that of this rank.
        unsafe { &*self.memory.rank(self.home.record).add(RECORD).cast() }
    }

    /// Address of the first doorbell, for generated code.
    pub(super) fn bells(&self) -> *const u8 {
        // SAFETY: inside that rank's part.
        unsafe { self.memory.rank(self.home.bells).add(BELLS) }
    }

    /// A rank is far.
    pub(super) fn is_far(&self, rank: u32) -> bool {
        self.home.far.get(rank as usize).copied().unwrap_or(false)
    }

    /// By rank, those that are far; empty if none is.
    pub(super) fn far(&self) -> &[bool] {
        &self.home.far
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
