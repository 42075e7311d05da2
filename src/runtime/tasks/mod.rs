//! The tasks of a rank: which can run, and the cores that run them.
//!
//! Generated code calls a task itself while nothing of the rank is pending, and submits it otherwise. With one core the
//! launching thread runs everything: what is ready as soon as it is submitted, the rest when what it waits for has
//! ended. A task that blocks does so on a stack of its own, so that the thread goes on with others: a program that is
//! right with many cores does not deadlock with one. With more cores, threads of the rank share the ready blocks.

mod fiber;
mod graph;
mod lane;
mod touches;

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pld_sync::Bell;

pub(super) use fiber::{Event, Resume, Stop};
use graph::Block;
pub(super) use graph::{Cause, Graph, Handle, Submission};
pub(super) use lane::Ground;
use lane::Lane;
pub(super) use touches::Touches;

use super::chaos::Chaos;
use super::core::Core;
use super::hooks::{Context, Pending};
use super::traffic::Traffic;
use crate::codegen::cpu::abi::{Exit, Frame, SUBMIT_FAILED};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::op::{MAX_CONDITIONS, MAX_WAITERS};

/// Submission pauses when there are twice as many pending tasks, and at each doubling: what the first ones wait for may
/// come any moment.
const LOOK_AHEAD: usize = 64;

/// The tasks of one rank.
pub(super) struct Tasks {
    rank: u32,
    shared: Mutex<Shared>,
    /// Number of tasks with blocks to run; a look costs no lock.
    ready: AtomicUsize,
    /// Number of tasks that have not ended, likewise.
    live: AtomicUsize,
    /// Rings when a further core may have something to do.
    work: Bell,
    /// Of this rank, the launching thread included.
    cores: u32,
    chaos: Option<Chaos>,
    /// Transfers of tasks that the launching thread runs without a stack of their own, where ranks are far.
    traffic: Option<Arc<Traffic>>,
    stop: AtomicBool,
    /// The launching thread's.
    main: UnsafeCell<Lane>,
}

// SAFETY: `main` is used by the thread that executes the rank's launch only; launches follow one another.
unsafe impl Sync for Tasks {}

/// What the cores of a rank share.
#[derive(Default)]
struct Shared {
    graph: Graph,
    /// The launch that further cores work for, and the frame that they copy: the driver's own changes.
    ground: Option<Ground>,
    frame: Option<Frame>,
}

// SAFETY: a frame is read only here, while what it points to outlives the launch.
unsafe impl Send for Shared {}

impl Shared {
    /// A block has ended.
    fn end(&mut self, block: Block, exit: i32) {
        if exit == Exit::Done as i32 {
            self.graph.end_block(block.node);
        } else {
            self.graph.give_up_block();
        }
    }
}

impl Tasks {
    /// For a rank and so many cores, with its chaos if there is any.
    pub(super) fn new(rank: u32, cores: u32, chaos: Option<Chaos>, far: bool) -> Self {
        let traffic = far.then(Arc::default);
        Self {
            rank,
            shared: Mutex::default(),
            ready: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            work: Bell::new(),
            cores,
            chaos,
            stop: AtomicBool::new(false),
            main: UnsafeCell::new(Lane::new(0, traffic.clone())),
            traffic,
        }
    }

    /// Looks at what the cores share, or changes it.
    fn with<R>(&self, act: impl FnOnce(&mut Shared) -> R) -> R {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut shared);
        self.ready.store(shared.graph.ready(), Ordering::Release);
        self.live.store(shared.graph.live(), Ordering::Release);
        result
    }

    /// The same, for changes that other cores may wait for.
    fn change<R>(&self, core: &Core, act: impl FnOnce(&mut Shared) -> R) -> R {
        let result = self.with(act);
        if self.cores > 1 {
            Bell::ring_each([&self.work, core.board.bell(self.rank)]);
        }
        result
    }

    /// Number of tasks that have not ended.
    fn live(&self) -> usize {
        self.live.load(Ordering::Acquire)
    }

    /// What a frame's `live` is while nothing is pending.
    pub(super) fn at_rest(&self) -> u64 {
        u64::from(self.cores > 1 || self.chaos.is_some())
    }

    /// The launching thread's transfers, where ranks are far.
    pub(super) fn traffic(&self) -> Option<&Traffic> {
        self.traffic.as_deref()
    }

    /// What holds the rank up, if anything shall.
    pub(super) fn chaos(&self) -> Option<&Chaos> {
        self.chaos.as_ref()
    }

    /// One of `count`: the first, or any, if there is chaos.
    pub(super) fn choose(&self, count: usize) -> usize {
        self.chaos().map_or(0, |chaos| chaos.choose(count))
    }

    /// The next block to run, which then runs.
    fn take(&self, graph: &mut Graph) -> Option<Block> {
        graph.take(self.choose(graph.ready()))
    }

    /// A launch begins.
    pub(super) fn begin(&self, context: &Context, frame: &Frame) {
        if self.cores > 1 {
            self.with(|shared| {
                let frame = std::ptr::from_ref(shared.frame.insert(*frame));
                shared.ground = Some(Ground { frame, context: std::ptr::from_ref(context).cast() });
            });
        }
    }

    /// A launch ends, well or not: nothing of it runs afterwards.
    pub(super) fn end(&self, context: &Context) {
        if context.core.failed() && self.live() > 0 {
            self.settle(context);
        }
        if self.cores > 1 {
            self.with(|shared| shared.ground = None);
        }
    }

    /// After a failure: ends what runs and forgets the rest.
    fn settle(&self, context: &Context) {
        // SAFETY: this thread executes the rank's launch.
        let main = unsafe { &mut *self.main.get() };
        loop {
            main.resume_arrived(self);
            let settled = self.change(context.core, |shared| {
                let settled = shared.graph.running() == 0;
                if settled {
                    shared.graph.clear();
                }
                settled
            });
            if settled {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// See [`crate::codegen::cpu::abi::Hooks::submit`].
    pub(super) fn submit(&self, context: &Context, frame: &mut Frame, submission: &Submission) -> u64 {
        let ground = Ground { frame, context: std::ptr::from_ref(context).cast() };
        let at_once = self.cores == 1 && self.choose(2) == 0;
        let (handle, first) = self.change(context.core, |shared| {
            let handle = shared.graph.submit(submission);
            (handle, if at_once { self.take(&mut shared.graph) } else { None })
        });
        // SAFETY: this thread executes the rank's launch.
        let main = unsafe { &mut *self.main.get() };
        if at_once {
            main.work(self, Some(ground), first);
        }
        if self.live() > LOOK_AHEAD && self.live().is_power_of_two() {
            main.linger(self, context);
            main.work(self, Some(ground), None);
        }
        if context.core.failed() {
            return SUBMIT_FAILED;
        }
        let live = self.live();
        frame.live = self.at_rest() + live as u64;
        let ended = live == 0 || self.with(|shared| shared.graph.has_ended(handle));
        if ended { 0 } else { handle.to_bits() }
    }

    /// See [`crate::codegen::cpu::abi::Hooks::drain`]; false if the launch has failed.
    pub(super) fn drain(&self, context: &Context, frame: &mut Frame) -> bool {
        let ground = Ground { frame, context: std::ptr::from_ref(context).cast() };
        // SAFETY: this thread executes the rank's launch.
        let main = unsafe { &mut *self.main.get() };
        loop {
            main.work(self, Some(ground), None);
            if self.live() == 0 {
                frame.live = self.at_rest();
                return true;
            }
            if context.core.failed() {
                return false;
            }
            main.wait(self, context, context.core.board.bell(context.rank));
        }
    }

    /// See [`crate::codegen::cpu::abi::Hooks::defer`].
    pub(super) fn defer(&self, context: &Context, pending: Pending) -> Result<()> {
        let node = context.task.expect("a task that defers is submitted");
        let (cells, waiters) = self.with(|shared| {
            shared.graph.defer(node, pending, context.wait_begins());
            shared.graph.deferrals(node)
        });
        let what = if i64::from(cells) > MAX_CONDITIONS {
            format!("a task defers its end for more than {MAX_CONDITIONS} cells")
        } else if i64::from(waiters) > MAX_WAITERS {
            format!("more than {MAX_WAITERS} tasks wait for cells at once")
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Unsupported, format!("rank {}: {what}", context.rank)))
    }

    /// Lets the further cores end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.work.ring();
    }
}

/// The life of a further core of a rank.
pub(super) fn serve(core: &Arc<Core>, rank: u32, number: u32) {
    let tasks = core.tasks(rank);
    let mut lane = Lane::new(number, core.far().map(|_| Arc::default()));
    loop {
        let due = || tasks.stop.load(Ordering::Acquire) || tasks.ready.load(Ordering::Acquire) > 0;
        core.patience.wait(&tasks.work, due);
        if tasks.stop.load(Ordering::Acquire) {
            return;
        }
        lane.finish(tasks, core.board.bell(rank));
    }
}
