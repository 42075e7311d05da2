//! A core of a rank: runs blocks of tasks, and keeps those that wait.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pld_sync::Bell;

use super::fiber::{Event, Fiber, Resume, Stop};
use super::graph::Block;
use super::{Shared, Tasks};
use crate::codegen::cpu::abi::{Exit, Frame, NO_FAULT};
use crate::error::Result;
use crate::runtime::aligned::Aligned;
use crate::runtime::hooks::{Context, Pending, guarded};
use crate::runtime::report;
use crate::runtime::trace::Kind;
use crate::runtime::traffic::Traffic;
use crate::runtime::wait::SLICE;

/// What the cores of a rank need to run tasks of a launch.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct Ground {
    /// The frame of the driver.
    pub frame: *const Frame,
    /// What hooks get with it.
    pub context: *const Context<'static>,
}

impl Ground {
    /// A cell that a task's end waited for has arrived; this core has noticed.
    fn arrived(&self, core: u32, pending: &Pending, begun: Option<u64>) {
        // SAFETY: it outlives the tasks of the launch, and this one has just ended.
        let context = Context { lane: core, ..unsafe { *self.context } };
        context.wait_ends(begun, pending.site, context.image.windows.offset(context.rank, pending.cell));
    }
}

// SAFETY: both are read only, and outlive the launch's last block.
unsafe impl Send for Ground {}

/// A block, with all that it takes to run it.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct Job {
    ground: Ground,
    block: Block,
    lane: u32,
    scratch: *mut u8,
    traffic: Option<*const Traffic>,
}

impl Job {
    fn context(&self) -> &Context<'static> {
        // SAFETY: it outlives the block.
        unsafe { &*self.ground.context }
    }

    /// The block stops or goes on.
    fn record(&self, kind: Kind) {
        let context = self.context();
        if let Some(trace) = &context.core.trace {
            let site = context.image.routine.tasks[self.block.task as usize].site;
            trace.record(&Context { lane: self.lane, ..*context }, kind, site, 0, 0, 0);
        }
    }

    /// Gives the block memory for its tiles, and what counts its transfers, both its own while it runs.
    pub(super) fn equip(&mut self, scratch: *mut u8, traffic: Option<&Traffic>) {
        self.scratch = scratch;
        self.traffic = traffic.map(std::ptr::from_ref);
    }

    /// Runs the block; its exit. What a run-time check has found is recorded.
    pub(super) fn run(&self, stop: Option<&Stop>) -> i32 {
        // SAFETY: both outlive the block.
        let (frame, context) = unsafe { (&*self.ground.frame, &*self.ground.context) };
        let stop = stop.map(std::ptr::from_ref);
        // SAFETY: whoever has equipped the block keeps it until the block has ended.
        let traffic = self.traffic.map(|traffic| unsafe { &*traffic });
        let context = Context { stop, task: Some(self.block.node), lane: self.lane, traffic, ..*context };
        let mut frame = Frame {
            scratch: self.scratch,
            outgoing: traffic.map_or(std::ptr::null(), Traffic::outgoing),
            incoming: traffic.map_or(std::ptr::null(), Traffic::incoming),
            runtime: (&raw const context).cast_mut().cast(),
            fault: NO_FAULT,
            ..*frame
        };
        // Nothing unwinds out of a fiber.
        guarded(&context, Exit::Failed as i32, || {
            let code = &context.image.routine.tasks[self.block.task as usize];
            let run = code.run.expect("a task that runs on a core has code");
            // SAFETY: the code was compiled for these arguments, which stay until the task has ended.
            let exit = unsafe { run(&mut frame, self.block.args, self.block.index) };
            if exit == Exit::Fault as i32 {
                context.core.fail(context.rank, &report::fault(&context, &frame.fault));
            }
            exit
        })
    }
}

/// A block that waits.
struct Blocked {
    fiber: Fiber,
    job: Job,
    pending: Pending,
    /// The cell has compared: once is enough, it may have changed again.
    seen: Cell<bool>,
}

impl Blocked {
    fn arrived(&self) -> bool {
        self.seen.get() || {
            self.seen.set(self.pending.compares());
            self.seen.get()
        }
    }
}

/// A core.
pub(in crate::runtime) struct Lane {
    number: u32,
    idle: Vec<Fiber>,
    blocked: Vec<Blocked>,
    /// Tile memory for tasks on the stack of the core's thread; of a further core.
    scratch: Option<Aligned>,
    /// Likewise of those that do not stop, where ranks are far.
    traffic: Option<Arc<Traffic>>,
}

// SAFETY: a fiber that does not run may go on in another thread: what is on its stack belongs to no thread.
unsafe impl Send for Lane {}

impl Lane {
    pub fn new(number: u32, traffic: Option<Arc<Traffic>>) -> Self {
        Self { number, idle: Vec::new(), blocked: Vec::new(), scratch: None, traffic }
    }

    /// Runs what can run, until nothing can and nothing waits here any more.
    pub fn finish(&mut self, tasks: &Tasks, bell: &Bell) {
        loop {
            self.work(tasks, None, None);
            let Some(first) = self.blocked.first() else { return };
            let ground = first.job.ground;
            // SAFETY: it outlives the block that waits.
            self.wait(tasks, unsafe { &*ground.context }, bell);
        }
    }

    /// Gives what is waited for a little time to arrive.
    pub fn linger(&self, tasks: &Tasks, context: &Context) {
        let arrived =
            || self.blocked.iter().any(Blocked::arrived) || tasks.with(|s| s.graph.deferred().any(|p| p.compares()));
        context.core.spin(|| context.core.failed() || arrived());
    }

    /// Runs what can run, until nothing can. `own` is the launch that this core's own thread has begun; `first` is a block
    /// of it that has been taken already.
    pub fn work(&mut self, tasks: &Tasks, own: Option<Ground>, first: Option<Block>) {
        let (mut next, number) = (first.zip(own), self.number);
        loop {
            let ended = next.and_then(|(block, ground)| self.run(block, ground));
            self.resume_arrived(tasks);
            // One visit to the graph for the block that has ended and the one that comes.
            let visit = |shared: &mut Shared| {
                if let Some((job, exit)) = &ended {
                    shared.end(job.block, *exit);
                }
                let ground = own.or(shared.ground);
                shared.graph.poll(|pending, begun| ground.into_iter().for_each(|g| g.arrived(number, pending, begun)));
                let block = tasks.take(&mut shared.graph)?;
                Some((block, ground.expect("a task has a launch")))
            };
            next = match &ended {
                Some((job, _)) => tasks.change(job.context().core, visit),
                None => tasks.with(visit),
            };
            if next.is_none() {
                return;
            }
        }
    }

    /// Lets those go on that have what they wait for; all of them, when the launch has failed.
    pub fn resume_arrived(&mut self, tasks: &Tasks) {
        let mut at = 0;
        while at < self.blocked.len() {
            let resume = match &self.blocked[at] {
                b if b.arrived() => Resume::Arrived,
                b if b.job.context().core.failed() => Resume::Failed,
                _ => {
                    at += 1;
                    continue;
                }
            };
            let Blocked { mut fiber, job, .. } = self.blocked.swap_remove(at);
            job.record(Kind::TaskResumed);
            let event = fiber.resume(resume);
            if let Event::Ended(exit) = self.keep(fiber, job, event) {
                tasks.change(job.context().core, |shared| shared.end(job.block, exit));
            }
        }
    }

    /// Runs a block until it ends, with its exit, or waits.
    fn run(&mut self, block: Block, ground: Ground) -> Option<(Job, i32)> {
        let job = Job { ground, block, lane: self.number, scratch: std::ptr::null_mut(), traffic: None };
        // SAFETY: it outlives the block.
        let context = unsafe { &*ground.context };
        let begun = if context.core.failed() {
            Ok(Event::Ended(Exit::Failed as i32))
        } else if context.image.routine.tasks[block.task as usize].waits {
            self.run_on_fiber(job)
        } else {
            self.run_here(job)
        };
        match begun {
            Ok(Event::Ended(exit)) => Some((job, exit)),
            Ok(Event::Blocked(_)) => None,
            Err(error) => {
                context.core.fail(context.rank, &error);
                Some((job, Exit::Failed as i32))
            }
        }
    }

    /// Runs a block that does not wait on the stack of this thread.
    fn run_here(&mut self, mut job: Job) -> Result<Event> {
        let bytes = job.context().image.routine.scratch_bytes;
        let scratch = match &mut self.scratch {
            // The driver's own thread and its memory: nothing else of it is under way.
            // SAFETY: the frame outlives the block.
            None if self.number == 0 => unsafe { (*job.ground.frame).scratch },
            Some(scratch) if scratch.bytes() >= bytes => scratch.as_ptr(),
            scratch => scratch.insert(Aligned::new(bytes, "tiles")?).as_ptr(),
        };
        job.equip(scratch, self.traffic.as_deref());
        Ok(Event::Ended(job.run(None)))
    }

    fn run_on_fiber(&mut self, job: Job) -> Result<Event> {
        let far = self.traffic.is_some();
        let mut fiber = self.idle.pop().map_or_else(|| Fiber::new(far), Ok)?;
        let event = fiber.run(job, job.context().image.routine.scratch_bytes)?;
        Ok(self.keep(fiber, job, event))
    }

    /// Keeps a fiber that has stopped.
    fn keep(&mut self, fiber: Fiber, job: Job, event: Event) -> Event {
        match event {
            Event::Ended(_) => self.idle.push(fiber),
            Event::Blocked(pending) => {
                job.record(Kind::TaskStopped);
                let (last, tasks) = (self.blocked.len(), job.context().core.tasks(job.context().rank));
                self.blocked.push(Blocked { fiber, job, pending, seen: Cell::new(false) });
                self.blocked.swap(last - tasks.choose(last + 1), last);
            }
        }
        event
    }

    /// Waits until there may be something to do, or the launch fails; fails it if that takes too long.
    pub fn wait(&mut self, tasks: &Tasks, context: &Context, bell: &Bell) {
        let core = context.core;
        let main = self.number == 0;
        let over = || {
            core.failed()
                || tasks.ready.load(Ordering::Acquire) > 0
                || self.blocked.iter().any(Blocked::arrived)
                || main && (tasks.live() == 0 || tasks.with(|s| s.graph.deferred().any(|p| p.compares())))
        };
        if core.spin(over) {
            return;
        }
        let deferred = || tasks.with(|s| s.graph.deferred().next()).filter(|_| main);
        let pending = self.blocked.first().map(|b| b.pending).or_else(deferred);
        let control = core.board.control(context.rank);
        let waiting = pending.map(|p| p.waiting(context));
        if let Some(waiting) = &waiting {
            control.begin_wait(*waiting);
        }
        core.linger(bell, SLICE, over, |elapsed| {
            let report = |waiting| tasks.with(|s: &mut Shared| report::tasks(context, waiting, &s.graph, elapsed));
            core.check_peers(context.image, context.launch)
                || waiting.as_ref().is_some_and(|w| core.time_out(context.rank, elapsed, || report(w)))
        });
        control.end_wait();
    }
}
