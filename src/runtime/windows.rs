//! The windows of an executable, or of a pool of them, in symmetric memory, and how each launch gets them zeroed.
//!
//! A rank's part begins with its [`Progress`], and copies of that of far ranks, which tell it; then come the sets of windows. Of ranks that are cards the host has the
//! progress only: the one set that they use lies on the cards. Fresh windows rotate through their sets as
//! [`pld_sync::progress`] proves; persistent ones have one set that is zeroed on demand.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Instant;

use pld_sync::{Horizon, Progress, Rotation};
use rustix::process::{Pid, getpid};

use super::core::Core;
use super::line::Line;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::far::{Pending, Rows};
use crate::transport::hccl::{Card, DeviceWindows};
use crate::transport::{Memory, Transport};

/// Windows begin on a page.
const PAGE: usize = 4096;

/// Most bytes of a rank for all sets of windows together, and most sets. With fewer than three sets ranks would wait for
/// one another's zeroing; then one set and the barrier that it makes are as good.
const MOST_BYTES: usize = 3 << 20;
const MOST_SETS: usize = 8;
const LEAST_SETS: usize = 3;

/// Windows of all ranks.
pub(super) struct Windows {
    memory: Memory,
    /// Where the windows are, if not in `memory`.
    cards: Option<OnCards>,
    nranks: u32,
    /// By rank, whose progress is told; empty if all see it.
    far: Box<[bool]>,
    /// Bytes before the first set.
    header: usize,
    /// Progress on its way to far ranks.
    told: Arc<Pending>,
    /// The process that has made them.
    owner: Pid,
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

/// Windows of ranks that are cards.
struct OnCards {
    memory: DeviceWindows,
    /// The cards of this process's ranks.
    cards: Box<[Arc<Card>]>,
}

/// Far ranks may still want to know how far this one has come.
impl Drop for Windows {
    fn drop(&mut self) {
        // A forked child does not speak for the rank.
        if getpid() != self.owner {
            return;
        }
        (self.first..).zip(&self.horizons).for_each(|(rank, _)| self.tell(rank));
    }
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
    header: usize,
    bytes: usize,
    count: usize,
}

impl Sets {
    /// Where a byte of a rank's part lies in its set.
    pub(super) fn place(self, offset: u64) -> Option<usize> {
        let offset = usize::try_from(offset).ok()?.checked_sub(self.header)?;
        (offset < self.bytes * self.count).then(|| offset % self.bytes)
    }
}

impl Windows {
    /// The memory, and where it is reached at far ranks.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Allocates windows of `bytes` a rank; `far` says by rank which do not see this one's memory. Collective.
    pub(super) fn allocate(
        transport: &dyn Transport,
        far: &[bool],
        bytes: usize,
        persistent: bool,
        deadline: Instant,
    ) -> Result<Self> {
        let header = (size_of::<Progress>() * (1 + far.len())).next_multiple_of(PAGE);
        let persistent = persistent || bytes == 0;
        let sets = match MOST_BYTES.checked_div(bytes).unwrap_or(1).min(MOST_SETS) {
            sets if persistent || sets < LEAST_SETS || transport.cards().is_some() => 1,
            sets => sets as u64,
        };
        let too_large = || Error::new(ErrorKind::NoSpace, format!("windows of {bytes} bytes exceed the address space"));
        let (part, cards) = match transport.cards() {
            None => {
                let part = bytes.checked_mul(sets as usize).and_then(|bytes| bytes.checked_add(header));
                (part.ok_or_else(too_large)?, None)
            }
            Some(cards) => {
                let memory = cards.allocate_windows(bytes, deadline)?;
                let cards = transport.local().map(|rank| cards.card(rank).clone()).collect();
                (header, Some(OnCards { memory, cards }))
            }
        };
        let memory = transport.allocate(part, deadline)?;
        let rotation = Rotation { sets };
        let horizons = transport.local().map(|_| Horizon::new()).collect();
        let first = transport.local().start;
        Ok(Self {
            memory,
            cards,
            nranks: transport.nranks(),
            far: far.into(),
            header,
            told: Arc::default(),
            owner: getpid(),
            rotation,
            horizons,
            first,
            set_bytes: bytes,
            persistent,
            launches: Line::default(),
            resets: AtomicU64::new(0),
        })
    }

    /// Bytes between neighbouring ranks; cards have addresses of their own.
    pub(super) fn stride(&self) -> usize {
        if self.cards.is_some() { 0 } else { self.memory.stride() }
    }

    /// Where the windows of a rank begin on its card, as the cards of this process see it; none if they are host memory.
    pub(super) fn on_card(&self, rank: u32) -> Option<u64> {
        self.cards.as_ref().map(|cards| cards.memory.base(rank))
    }

    /// Bytes of a rank's windows.
    pub(super) fn bytes(&self) -> usize {
        self.set_bytes
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

    /// How far a rank is; a far one as far as it has told.
    pub(super) fn progress(&self, rank: u32) -> &Progress {
        let place = match self.far.get(rank as usize) {
            Some(true) => self.memory.rank(self.first).wrapping_add(Self::copy_of(rank)),
            _ => self.memory.rank(rank),
        };
        // SAFETY: it lies at the beginning of the part of a rank that is mapped while the windows live, aligned and zeroed
        // at first; it consists of atomics.
        unsafe { &*place.cast() }
    }

    /// Where the copy of a far rank's progress lies.
    fn copy_of(rank: u32) -> usize {
        (1 + rank as usize) * size_of::<Progress>()
    }

    /// Tells far ranks how far `rank` is, which this process is.
    pub(super) fn tell(&self, rank: u32) {
        let Some(memory) = self.memory.far() else { return };
        let progress = self.progress(rank);
        let rows = Rows { bytes: size_of::<Progress>(), count: 1, far_stride: 0, near_stride: 0 };
        for peer in (0..).zip(&self.far).filter(|(_, far)| **far).map(|(peer, _)| peer) {
            // SAFETY: the progress goes with the memory, which takes what is to be read from it along; the copy lies in the
            // peer's part.
            unsafe {
                memory.put(peer, Self::copy_of(rank) as u64, std::ptr::from_ref(progress).cast(), rows, &self.told);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Progress> {
        (0..self.nranks).map(|rank| self.progress(rank))
    }

    fn set(&self, rank: u32, set: u64) -> *mut u8 {
        self.memory.rank(rank).wrapping_add(self.header + set as usize * self.set_bytes)
    }

    /// Where code of `rank` counts from, [`Windows::stride`] bytes a rank, in the windows that `launch` uses.
    #[inline]
    pub(super) fn base(&self, launch: u64, rank: u32) -> *mut u8 {
        match &self.cards {
            None => self.set(0, self.rotation.set(launch)),
            Some(cards) => std::ptr::without_provenance_mut(cards.memory.base(rank) as usize),
        }
    }

    /// Where an address of `rank`'s windows lies in its part.
    pub(super) fn offset(&self, rank: u32, address: *const AtomicI32) -> u64 {
        match &self.cards {
            None => (address.addr() - self.memory.rank(rank).addr()) as u64,
            Some(cards) => {
                (address.addr() as u64).wrapping_sub(cards.memory.base(rank)).wrapping_add(self.header as u64)
            }
        }
    }

    /// Where a byte of a rank's part lies in its set of windows.
    pub(super) fn in_set(&self, offset: u64) -> Option<usize> {
        self.sets().place(offset)
    }

    /// How a rank's part is divided.
    pub(super) fn sets(&self) -> Sets {
        Sets { header: self.header, bytes: self.set_bytes, count: self.rotation.sets as usize }
    }

    /// Value of the cell at `offset` of a rank's part; none of a far rank.
    pub(super) fn cell(&self, rank: u32, offset: u64) -> Option<i32> {
        if self.far.get(rank as usize) == Some(&true) {
            return None;
        }
        let inside = self.in_set(offset)? + size_of::<i32>() <= self.set_bytes;
        if !inside || !offset.is_multiple_of(align_of::<AtomicI32>() as u64) {
            return None;
        }
        if let Some(cards) = &self.cards {
            let mut value = [0; size_of::<i32>()];
            let address = cards.memory.base(rank) + offset - self.header as u64;
            // SAFETY: inside the rank's windows, which this card reaches too.
            unsafe { cards.cards[0].read(address, &mut value) }.ok()?;
            return Some(i32::from_ne_bytes(value));
        }
        // SAFETY: inside the rank's windows, aligned; cells are only accessed atomically while others wait on them.
        let cell = unsafe { &*self.memory.rank(rank).add(offset as usize).cast::<AtomicI32>() };
        Some(cell.load(Ordering::Relaxed))
    }

    /// Zeroes a set of `rank`, which this process drives.
    ///
    /// # Safety
    /// Nobody uses the set now.
    unsafe fn wipe(&self, core: &Core, rank: u32, set: u64) {
        let Some(cards) = &self.cards else {
            // SAFETY: the set is inside the rank's part, and nobody else uses it.
            return unsafe { self.set(rank, set).write_bytes(0, self.set_bytes) };
        };
        let card = &cards.cards[(rank - self.first) as usize];
        // SAFETY: inside the rank's windows, and nobody else uses them.
        if let Err(error) = unsafe { card.zero(cards.memory.base(rank), self.set_bytes) } {
            // What cannot be zeroed can never be used again.
            core.fail(rank, &Error::new(ErrorKind::Internal, format!("rank {rank}: its windows: {}", error.message)));
        }
    }

    /// Does what zeroing of `rank`'s copies is possible; says whether there was any.
    fn advance(&self, core: &Core, rank: u32) -> bool {
        // SAFETY: by the rules of the rotation nobody uses the set now.
        let zero = |set| unsafe { self.wipe(core, rank, set) };
        let advanced = self.rotation.advance(self.progress(rank), self.all(), zero);
        if advanced {
            self.tell(rank);
        }
        advanced
    }

    /// The windows of `launch` are clean on every rank. If not, zeroes what it can.
    pub(super) fn may_begin(&self, core: &Core, rank: u32, launch: u64) -> bool {
        let horizon = &self.horizons[(rank - self.first) as usize];
        let clean = || self.persistent || self.rotation.may_begin(launch, horizon, || self.all());
        clean()
            || self.advance(core, rank) && {
                core.board.open_gates(rank);
                clean()
            }
    }

    /// Peers may soon need to know that `rank` has done `launch`.
    pub(super) fn is_due(&self, rank: u32, launch: u64) -> bool {
        !self.persistent && self.rotation.is_due(self.progress(rank), launch + 1)
    }

    /// `rank` has done `launch`. If that is due to be told, what it has sent to far ranks has been executed there.
    pub(super) fn end(&self, core: &Core, rank: u32, launch: u64) {
        let due = self.is_due(rank, launch);
        let progress = self.progress(rank);
        progress.set_done(launch + 1);
        // Ringing takes a fence, so most launches do not. Only a peer that is nearly all sets ahead can sleep meanwhile,
        // and it looks up by itself.
        if due {
            self.tell(rank);
            self.advance(core, rank);
            core.board.open_gates(rank);
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
    pub(super) fn zero(&self, core: &Core, rank: u32, times: u64) {
        // SAFETY: no rank is in a launch before all have zeroed.
        unsafe { self.wipe(core, rank, 0) };
        self.progress(rank).set_zeroed(times);
        self.tell(rank);
        core.board.open_gates(rank);
    }

    /// The ranks of this process come to a recovery. Then all ranks meet.
    pub(super) fn come_to_recovery(&self, local: Range<u32>) {
        let resets = self.resets.load(Ordering::Relaxed);
        for rank in local {
            self.progress(rank).set_begun(self.launches(), resets);
            self.tell(rank);
        }
    }

    /// Zeroes the copies of this process's ranks, if launches or resets ended on some ranks only, while all ranks are in
    /// the recovery. Then all ranks meet again. What is decided here is the same on every rank, since nothing that it
    /// depends on changes between the two meetings.
    pub(super) fn repair(&self, core: &Core) -> Repair {
        let launches = self.all().map(|rank| rank.begun().0).max().unwrap_or(0);
        let resets = self.all().map(|rank| rank.begun().1).max().unwrap_or(0);
        let ended = |rank: &Progress| rank.done() == launches && (!self.persistent || rank.zeroed() == resets);
        let zeroed = !self.all().all(ended);
        if zeroed {
            for rank in core.local.clone() {
                // SAFETY: no rank is in a launch.
                (0..self.rotation.sets).for_each(|set| unsafe { self.wipe(core, rank, set) });
            }
        }
        Repair { launches, resets, zeroed }
    }

    /// The recovery has ended: every rank counts from the same numbers on, and finds its windows as `repair` left them.
    pub(super) fn recovered(&self, core: &Core, repair: Repair) {
        let Repair { launches, resets, zeroed } = repair;
        self.launches.store(launches, Ordering::Relaxed);
        self.resets.store(resets, Ordering::Relaxed);
        for rank in core.local.clone().filter(|_| zeroed) {
            self.progress(rank).set_done(launches);
            self.progress(rank).set_zeroed(if self.persistent { resets } else { launches });
            self.tell(rank);
            core.board.open_gates(rank);
        }
    }
}
