//! What the threads of a world share, and what they may do in turn.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use pld_sync::Handoff;
use rustix::time::{ClockId, clock_gettime};

use super::cards::{Flights, Queue};
use super::chaos::Chaos;
use super::control::Board;
use super::executable::Image;
use super::failure::LAST_EPOCH;
use super::far::Ear;
use super::fork::ForkGuard;
use super::line::Line;
use super::pools::Pools;
use super::recovery::Step;
use super::run::Runs;
use super::tasks::Tasks;
use super::trace::Trace;
use super::wait::Patience;
use super::windows::Windows;
use super::world::WorldOptions;
use crate::codegen::cpu::abi::Pace;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::Transport;

/// Nobody uses the world.
const FREE: u32 = 0;
/// A thread of the engine does.
const TAKEN: u32 = 1;
/// The thread of submitted runs does.
const RUNNING: u32 = 2;
/// Nobody will any more.
const CLOSED: u32 = 3;

/// How often launches look for lost peers, in milliseconds.
const GLANCE_MS: u64 = 50;

/// Ranks that load and compile are given this long to meet, however short the waits in their programs may be.
const MEETING: Duration = Duration::from_secs(10);

/// The inside of a world.
pub(super) struct Core {
    pub(super) fork: ForkGuard,
    // Dropping these has effects that other processes see, so a forked child leaves them alone.
    pub(super) transport: ManuallyDrop<Box<dyn Transport>>,
    pub(super) board: ManuallyDrop<Arc<Board>>,
    /// What this process hears of far ranks, if there are any.
    pub(super) ear: Option<Arc<Ear>>,
    /// One a rank of this process, if ranks are cards.
    pub(super) queues: ManuallyDrop<Vec<Queue>>,
    pub(super) nranks: u32,
    /// The rank that this process is; none if it drives all.
    pub(super) rank: Option<u32>,
    /// The ranks that this process drives.
    pub(super) local: Range<u32>,
    pub(super) timeout: Duration,
    pub(super) patience: Patience,
    /// Ranks have more cores than there are CPUs.
    pub(super) crowded: bool,
    /// Who wakes a sleeper makes a fence first; the sleeper cannot.
    pub(super) fenced: bool,
    pub(super) handoff: Handoff,
    pub(super) runs: Runs,
    pub(super) flights: Flights,
    pub(super) pools: Pools,
    pub(super) closed: AtomicBool,
    /// The present epoch, see [`super::failure`]; the holder of the turn changes it.
    pub(super) epoch: AtomicU64,
    /// One more than the last epoch of which a call has returned the failure.
    reported: AtomicU64,
    /// Launches that have ended well since the beginning, or since the last recovery: the same on ranks that are equally far.
    pub(super) launches: AtomicU64,
    /// Places of the present epoch where ranks have met by announcements.
    pub(super) meetings: AtomicU32,
    /// Ranks are held up at random places.
    pub(super) shaken: bool,
    /// What the ranks of this process do is recorded.
    pub(super) trace: Option<Trace>,
    /// One a rank of this process.
    tasks: Box<[Tasks]>,
    /// For each of them, one a peer.
    paces: Box<[Pace]>,
    turn: Line<AtomicU32>,
    /// When a launch looked for lost peers last.
    looked: AtomicU64,
    images: Mutex<Images>,
}

/// The executables of a world, for reports on what other ranks do.
#[derive(Default)]
struct Images {
    made: u32,
    live: Vec<(u32, Weak<Image>)>,
}

impl Core {
    pub(super) fn new(
        transport: Box<dyn Transport>,
        board: Board,
        rank: Option<u32>,
        options: &WorldOptions,
        crowded: bool,
        fenced: bool,
        trace: Option<Trace>,
    ) -> Result<Self> {
        let (local, nranks) = (transport.local(), transport.nranks());
        let chaos = |rank| Chaos::new(options.chaos_seed, rank, nranks, options.timeout);
        let queues = match transport.cards() {
            Some(cards) => local.clone().map(|rank| Queue::new(cards.card(rank))).collect::<Result<_>>()?,
            None => Vec::new(),
        };
        let far = transport.far().is_some();
        let tasks = local.clone().map(|rank| Tasks::new(rank, options.cores_per_rank, chaos(rank), far)).collect();
        let board = Arc::new(board);
        let ear = far.then(|| Ear::new(&board, local.start));
        Ok(Self {
            fork: ForkGuard::new()?,
            nranks,
            transport: ManuallyDrop::new(transport),
            board: ManuallyDrop::new(board),
            ear,
            queues: ManuallyDrop::new(queues),
            rank,
            timeout: options.timeout,
            patience: Patience::new(options.wait, crowded),
            crowded,
            fenced,
            handoff: Handoff::new(local.len() - 1),
            runs: Runs::new(options.runs),
            flights: Flights::new(options.runs),
            pools: Pools::default(),
            closed: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            meetings: AtomicU32::new(0),
            tasks,
            shaken: options.chaos_seed != 0,
            trace,
            paces: (0..local.len() * nranks as usize).map(|_| Pace::default()).collect(),
            turn: Line(AtomicU32::new(FREE)),
            looked: AtomicU64::new(0),
            images: Mutex::default(),
            local,
        })
    }

    /// When a meeting of all ranks that begins now takes too long.
    pub(super) fn meeting_deadline(&self) -> Instant {
        deadline(self.timeout.max(MEETING))
    }

    /// The tasks of a rank of this process.
    pub(super) fn tasks(&self, rank: u32) -> &Tasks {
        &self.tasks[(rank - self.local.start) as usize]
    }

    /// The card of a rank of this process, if it is one.
    pub(super) fn queue(&self, rank: u32) -> Option<&Queue> {
        self.queues.get((rank - self.local.start) as usize)
    }

    /// What is known of the ways from a rank of this process to each peer.
    pub(super) fn paces(&self, rank: u32) -> &[Pace] {
        let nranks = self.nranks as usize;
        &self.paces[(rank - self.local.start) as usize * nranks..][..nranks]
    }

    /// An error if this process has no part in the world, or none any more.
    pub(super) fn check_here(&self) -> Result<()> {
        self.fork.check()?;
        if self.closed.load(Ordering::Relaxed) { Err(closed()) } else { Ok(()) }
    }

    /// An error if nothing can begin in this world any more.
    pub(super) fn check_open(&self) -> Result<()> {
        self.check_here()?;
        if self.board.record().is_set(LAST_EPOCH) { Err(self.failure()) } else { Ok(()) }
    }

    /// The failure of the launch under way or of the world, if there is one.
    fn outcome(&self) -> Result<()> {
        if self.failed() { Err(self.failure()) } else { Ok(()) }
    }

    #[cold]
    fn failure(&self) -> Error {
        let failure = self.board.record().get(self.epoch.load(Ordering::Relaxed));
        failure.unwrap_or_else(|| Error::new(ErrorKind::Internal, "a failure without a record"))
    }

    /// The error that ended the world, if one has.
    pub(super) fn end(&self) -> Option<Error> {
        self.board.record().get(LAST_EPOCH)
    }

    /// The launch under way has failed, or the world.
    pub(super) fn failed(&self) -> bool {
        self.board.record().is_set(self.epoch.load(Ordering::Relaxed))
    }

    /// Ends a call of the holder of the turn: with the failure that it has met, from which the next call will recover. If
    /// this process had done its part, a failure of others is left for the next call to return.
    pub(super) fn conclude(&self, done: bool) -> Result<()> {
        if done {
            return self.end().map_or(Ok(()), Err);
        }
        self.outcome().inspect_err(|_| {
            self.reported.store(self.epoch.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            // It is wanted most now. What cannot be written is told when the world ends.
            let _ = self.trace.as_ref().map(Trace::write);
        })
    }

    /// Begins a call of the holder of the turn: returns the failure that no call has returned yet, or recovers from it.
    fn settle(&self, step: Step) -> Result<()> {
        if !self.failed() {
            return Ok(());
        }
        if self.reported.load(Ordering::Relaxed) <= self.epoch.load(Ordering::Relaxed) {
            return self.conclude(false);
        }
        self.check_open()?;
        self.recover(step)
    }

    /// Records a failure, unless there is one, and wakes everybody.
    #[cold]
    pub(super) fn fail(&self, rank: u32, error: &Error) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        match self.far() {
            None => self.board.record().publish(rank, error, epoch),
            Some(far) => self.announce_failure(far, rank, error, epoch),
        }
        self.board.wake_all();
    }

    /// Fails the world because the library itself went wrong.
    pub(super) fn fail_internal(&self, rank: u32, panic: &(dyn std::any::Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = format!("rank {rank} panicked: {}", text.unwrap_or("no message"));
        self.fail(rank, &Error::new(ErrorKind::Internal, message));
    }

    /// Takes the world for a thread of the engine, after the runs that were submitted before.
    pub(super) fn take(&self, step: Step) -> Result<Turn<'_>> {
        loop {
            self.check_open()?;
            if self.runs.pending() {
                self.runs.wait_idle();
                continue;
            }
            match self.turn.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(CLOSED) => return Err(closed()),
                Err(TAKEN) => return Err(Error::new(ErrorKind::Busy, "another thread uses this world")),
                Err(_) => {}
            }
        }
        let turn = Turn(self);
        self.settle(step)?;
        Ok(turn)
    }

    /// Takes the world for a submitted run, when it becomes free.
    pub(super) fn take_for_run(&self, step: Step) -> Result<Turn<'_>> {
        loop {
            self.check_open()?;
            match self.turn.compare_exchange(FREE, RUNNING, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(CLOSED) => return Err(closed()),
                // A launch is not to pay for telling that it has ended.
                Err(_) => std::thread::sleep(Duration::from_micros(100)),
            }
        }
        let turn = Turn(self);
        self.settle(step)?;
        Ok(turn)
    }

    /// Nobody uses the world, and nothing is submitted.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.turn.load(Ordering::Relaxed), FREE | CLOSED) && !self.runs.pending() && !self.flights.pending()
    }

    /// Takes the world for ever; false if it is not free until `deadline`.
    pub(super) fn close(&self, deadline: Instant) -> bool {
        while self.turn.compare_exchange(FREE, CLOSED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        true
    }

    /// Looks for peers that will not finish `launch`, from 0, and fails the world if there is one. One system call.
    pub(super) fn check_peers(&self, image: &Image, launch: u64) -> bool {
        if !self.failed() && self.rank.is_some() {
            // A rank that has left on purpose may end as it likes. Of far ranks' ends all hear at once.
            let lost = if self.far().is_none() { self.transport.lost() } else { None };
            if let Some(rank) = lost.filter(|&r| !self.board.control(r).has_left()) {
                let message = format!("rank {rank} died: its process ended without leaving the world");
                self.fail(rank, &Error::new(ErrorKind::PeerLost, message));
            }
            let gone =
                |&rank: &u32| self.board.control(rank).has_left() && image.windows.progress(rank).done() <= launch;
            if let Some(rank) = (0..self.nranks).filter(|rank| !self.local.contains(rank)).find(gone) {
                let message = format!("rank {rank} left the world before launch {} of '{}'", launch + 1, image.name);
                self.fail(rank, &Error::new(ErrorKind::PeerLost, message));
            }
        }
        self.failed()
    }

    /// [`Core::check_peers`], once in a while: programs need not wait for anybody, and should hear of a loss too.
    pub(super) fn glance_at_peers(&self, image: &Image, launch: u64) -> Result<()> {
        if self.rank.is_none() {
            return Ok(());
        }
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let now = now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000;
        if now.saturating_sub(self.looked.load(Ordering::Relaxed)) < GLANCE_MS {
            return Ok(());
        }
        self.looked.store(now, Ordering::Relaxed);
        self.check_peers(image, launch);
        self.conclude(false)
    }

    /// Ends a wait of `rank` that has taken too long: fails the launch with the error that `report` makes.
    pub(super) fn time_out(&self, rank: u32, elapsed: Duration, report: impl FnOnce() -> Error) -> bool {
        let late = elapsed >= self.timeout;
        if late {
            self.fail(rank, &report());
        }
        late
    }

    /// Keeps an executable in mind, which `make` makes with its number. All ranks compile in the same order, so their
    /// numbers agree.
    pub(super) fn add_image(&self, make: impl FnOnce(u32) -> Image) -> Arc<Image> {
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let id = images.made;
        images.made += 1;
        images.live.retain(|(_, image)| image.strong_count() > 0);
        let image = Arc::new(make(id));
        images.live.push((id, Arc::downgrade(&image)));
        image
    }

    /// Every window memory that a launch may have used, each once.
    pub(super) fn windows(&self) -> Vec<Arc<Windows>> {
        let mut windows = self.pools.all();
        let images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        windows.extend(images.live.iter().filter_map(|(_, image)| Some(image.upgrade()?.windows.clone())));
        windows.sort_unstable_by_key(Arc::as_ptr);
        windows.dedup_by(|a, b| Arc::ptr_eq(a, b));
        windows
    }

    /// The executable with a number, if it still exists.
    pub(super) fn image(&self, id: u32) -> Option<Arc<Image>> {
        let images = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        images.live.iter().find(|(other, _)| *other == id)?.1.upgrade()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if !self.fork.is_child() {
            // SAFETY: each is dropped here and nowhere else.
            unsafe {
                ManuallyDrop::drop(&mut self.queues);
                ManuallyDrop::drop(&mut self.board);
                ManuallyDrop::drop(&mut self.transport);
            }
        }
    }
}

/// The moment after `timeout`, however long that is.
pub(super) fn deadline(timeout: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + timeout.min(LONG)
}

fn closed() -> Error {
    Error::new(ErrorKind::InvalidState, "this world is closed")
}

/// The use of a world, until dropped.
pub(super) struct Turn<'a>(&'a Core);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turn.store(FREE, Ordering::Release);
    }
}
