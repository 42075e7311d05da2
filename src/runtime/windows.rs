//! The windows of an executable, or of a pool of them, in symmetric memory, and how each launch gets them zeroed.
//!
//! A rank's part begins with its [`Progress`]; then come the sets of windows. Fresh windows rotate through their sets as
//! [`pld_sync::progress`] proves; persistent ones have one set that is zeroed on demand.

use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Instant;

use pld_sync::{Horizon, Progress, Rotation};

use super::control::Board;
use super::line::Line;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::{Memory, Transport};

/// Bytes before the first set: a page, so that windows begin on one.
const HEADER: usize = 4096;

/// Most bytes of a rank for all sets of windows together, and most sets. With fewer than three sets ranks would wait for
/// one another's zeroing; then one set and the barrier that it makes are as good.
const MOST_BYTES: usize = 3 << 20;
const MOST_SETS: usize = 8;
const LEAST_SETS: usize = 3;

/// Windows of all ranks.
pub(super) struct Windows {
    memory: Memory,
    nranks: u32,
    rotation: Rotation,
    /// One a rank of this process, of which `first` is the first.
    horizons: Box<[Horizon]>,
    first: u32,
    /// Bytes from one set to the next.
    set_bytes: usize,
    /// Launches see what the launch before left.
    persistent: bool,
    /// Launches that were begun; the holder of the world's turn changes it.
    launches: Line<AtomicU64>,
    /// Resets that were begun, likewise.
    resets: AtomicU64,
}

/// What a recovery does with windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    /// Launches that will have been begun on every rank.
    launches: u64,
    resets: u64,
    /// The windows were zeroed: ranks did not end the same launches and resets.
    zeroed: bool,
}

/// The sets of windows in a rank's part: how many, and how large.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sets {
    bytes: usize,
    count: usize,
}

impl Sets {
    /// Where a byte of a rank's part lies in its set.
    pub(super) fn place(self, offset: u64) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?.checked_sub(HEADER)?;
        (offset < self.bytes * self.count).then(|| offset % self.bytes)
    }
}

impl Windows {
    /// Bytes of a rank's part for windows of `bytes`.
    fn part(bytes: usize, sets: u64) -> Option<usize> {
        bytes.checked_mul(sets as usize)?.checked_add(HEADER)
    }

    /// Allocates windows of `bytes` a rank. Collective.
    pub(super) fn allocate(
        transport: &dyn Transport,
        bytes: usize,
        persistent: bool,
        deadline: Instant,
    ) -> Result<Self> {
        let persistent = persistent || bytes == 0;
        let sets = match MOST_BYTES.checked_div(bytes).unwrap_or(1).min(MOST_SETS) {
            sets if persistent || sets < LEAST_SETS => 1,
            sets => sets as u64,
        };
        let Some(part) = Self::part(bytes, sets) else {
            return Err(Error::new(ErrorKind::NoSpace, format!("windows of {bytes} bytes exceed the address space")));
        };
        let memory = transport.allocate(part, deadline)?;
        let rotation = Rotation { sets };
        let horizons = transport.local().map(|_| Horizon::new()).collect();
        let first = transport.local().start;
        Ok(Self {
            memory,
            nranks: transport.nranks(),
            rotation,
            horizons,
            first,
            set_bytes: bytes,
            persistent,
            launches: Line::default(),
            resets: AtomicU64::new(0),
        })
    }

    /// Bytes between neighbouring ranks.
    pub(super) fn stride(&self) -> usize {
        self.memory.stride()
    }

    /// Launches keep what is in the windows.
    pub(super) fn persistent(&self) -> bool {
        self.persistent
    }

    /// Launches that were begun.
    pub(super) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// A launch begins, for the holder of the world's turn.
    pub(super) fn begin_launch(&self) {
        self.launches.store(self.launches() + 1, Ordering::Relaxed);
    }

    /// A reset begins, for the holder of the world's turn; how many there were, with it.
    pub(super) fn begin_reset(&self) -> u64 {
        let resets = self.resets.load(Ordering::Relaxed) + 1;
        self.resets.store(resets, Ordering::Relaxed);
        resets
    }

    /// How far a rank is.
    pub(super) fn progress(&self, rank: u32) -> &Progress {
        // SAFETY: it begins the rank's part, which is mapped while the windows live, aligned to a page and zeroed at
        // first; it consists of atomics.
        unsafe { &*self.memory.rank(rank).cast() }
    }

    fn all(&self) -> impl Iterator<Item = &Progress> {
        (0..self.nranks).map(|rank| self.progress(rank))
    }

    fn set(&self, rank: u32, set: u64) -> *mut u8 {
        self.memory.rank(rank).wrapping_add(HEADER + set as usize * self.set_bytes)
    }

    /// Rank 0's copy of the windows that `launch` uses.
    pub(super) fn base(&self, launch: u64) -> *mut u8 {
        self.set(0, self.rotation.set(launch))
    }

    /// Where an address of `rank`'s part lies in it.
    pub(super) fn offset(&self, rank: u32, address: *const AtomicI32) -> u64 {
        (address.addr() - self.memory.rank(rank).addr()) as u64
    }

    /// Where a byte of a rank's part lies in its set of windows.
    pub(super) fn in_set(&self, offset: u64) -> Option<usize> {
        self.sets().place(offset)
    }

    /// How a rank's part is divided.
    pub(super) fn sets(&self) -> Sets {
        Sets { bytes: self.set_bytes, count: self.rotation.sets as usize }
    }

    /// Value of the cell at `offset` of a rank's part.
    pub(super) fn cell(&self, rank: u32, offset: u64) -> Option<i32> {
        let inside = self.in_set(offset)? + size_of::<i32>() <= self.set_bytes;
        if !inside || !offset.is_multiple_of(align_of::<AtomicI32>() as u64) {
            return None;
        }
        // SAFETY: inside the rank's windows, aligned; cells are only accessed atomically while others wait on them.
        let cell = unsafe { &*self.memory.rank(rank).add(offset as usize).cast::<AtomicI32>() };
        Some(cell.load(Ordering::Relaxed))
    }

    /// Does what zeroing of `rank`'s copies is possible; says whether there was any.
    fn advance(&self, rank: u32) -> bool {
        // SAFETY: the set is inside the rank's part, and by the rules of the rotation nobody uses it now.
        let zero = |set| unsafe { self.set(rank, set).write_bytes(0, self.set_bytes) };
        self.rotation.advance(self.progress(rank), self.all(), zero)
    }

    /// The windows of `launch` are clean on every rank. If not, zeroes what it can.
    pub(super) fn may_begin(&self, board: &Board, rank: u32, launch: u64) -> bool {
        let horizon = &self.horizons[(rank - self.first) as usize];
        let clean = || self.persistent || self.rotation.may_begin(launch, horizon, || self.all());
        clean()
            || self.advance(rank) && {
                board.open_gates(rank);
                clean()
            }
    }

    /// `rank` has done `launch`.
    pub(super) fn end(&self, board: &Board, rank: u32, launch: u64) {
        let progress = self.progress(rank);
        progress.set_done(launch + 1);
        // Ringing takes a fence, so most launches do not. Only a peer that is nearly all sets ahead can sleep meanwhile,
        // and it looks up by itself.
        if !self.persistent && self.rotation.is_due(progress, launch + 1) {
            self.advance(rank);
            board.open_gates(rank);
        }
    }

    /// All ranks have done `launches`, so that persistent windows may be zeroed.
    pub(super) fn all_done(&self, launches: u64) -> bool {
        self.all().all(|rank| rank.done() >= launches)
    }

    /// All ranks have zeroed their persistent windows `times` times.
    pub(super) fn all_zeroed(&self, times: u64) -> bool {
        self.all().all(|rank| rank.zeroed() >= times)
    }

    /// Zeroes `rank`'s persistent windows when all have done their launches, the `times`th time.
    pub(super) fn zero(&self, board: &Board, rank: u32, times: u64) {
        // SAFETY: the set is inside the rank's part; no rank is in a launch before all have zeroed.
        unsafe { self.set(rank, 0).write_bytes(0, self.set_bytes) };
        self.progress(rank).set_zeroed(times);
        board.open_gates(rank);
    }

    /// The ranks of this process come to a recovery. Then all ranks meet.
    pub(super) fn come_to_recovery(&self, local: Range<u32>) {
        let resets = self.resets.load(Ordering::Relaxed);
        local.for_each(|rank| self.progress(rank).set_begun(self.launches(), resets));
    }

    /// Zeroes the copies of this process's ranks, if launches or resets ended on some ranks only, while all ranks are in
    /// the recovery. Then all ranks meet again. What is decided here is the same on every rank, since nothing that it
    /// depends on changes between the two meetings.
    pub(super) fn repair(&self, local: Range<u32>) -> Repair {
        let launches = self.all().map(|rank| rank.begun().0).max().unwrap_or(0);
        let resets = self.all().map(|rank| rank.begun().1).max().unwrap_or(0);
        let ended = |rank: &Progress| rank.done() == launches && (!self.persistent || rank.zeroed() == resets);
        let zeroed = !self.all().all(ended);
        if zeroed {
            for rank in local {
                // SAFETY: all sets are inside the rank's part, and no rank is in a launch.
                unsafe { self.set(rank, 0).write_bytes(0, self.set_bytes * self.rotation.sets as usize) };
            }
        }
        Repair { launches, resets, zeroed }
    }

    /// The recovery has ended: every rank counts from the same numbers on, and finds its windows as `repair` left them.
    pub(super) fn recovered(&self, board: &Board, local: Range<u32>, repair: Repair) {
        let Repair { launches, resets, zeroed } = repair;
        self.launches.store(launches, Ordering::Relaxed);
        self.resets.store(resets, Ordering::Relaxed);
        for rank in local.filter(|_| zeroed) {
            self.progress(rank).set_done(launches);
            self.progress(rank).set_zeroed(if self.persistent { resets } else { launches });
            board.open_gates(rank);
        }
    }
}
