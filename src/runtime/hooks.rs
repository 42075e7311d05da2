//! What generated code calls when its fast path does not suffice.

use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

use super::callback::CallbackContext;
use super::control::Waiting;
use super::core::Core;
use super::executable::Image;
use super::report;
use super::tasks::{Event, Resume, Stop, Submission};
use super::trace::{Kind, ticks};
use super::traffic::{self, Traffic};
use super::wait::SLICE;
use crate::codegen::cpu::abi::{Exit, FarHooks, Frame, Hooks, Report, SUBMIT_FAILED, View};
use crate::transport::far::LOST;

/// The hooks of every executable.
pub(super) const HOOKS: Hooks = Hooks {
    wait,
    ring,
    defer,
    submit,
    drain,
    callback,
    far: FarHooks {
        transfer: traffic::transfer,
        signal: traffic::signal,
        settle: traffic::settle,
        order: traffic::order,
        combine: traffic::combine,
    },
    stop,
    record,
};

/// How long a task looks at its cell before it leaves the core to others.
const GLANCES: u32 = 100;

/// What a [`Frame`] carries for the hooks.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) core: &'a Core,
    pub(super) image: &'a Image,
    /// From 0.
    pub(super) launch: u64,
    pub(super) rank: u32,
    /// Which of the rank's cores it is.
    pub(super) lane: u32,
    /// The submitted task that runs.
    pub(super) task: Option<u32>,
    /// The stream that the engine's functions queue their work on; null on a CPU.
    pub(super) stream: *mut c_void,
    /// What the task stops with, if it has a stack of its own.
    pub(super) stop: Option<*const Stop>,
    /// Its transfers, where ranks are far.
    pub(super) traffic: Option<&'a Traffic>,
}

/// How cells are compared.
pub(super) struct Cmp;

impl Cmp {
    pub(super) const EQ: u32 = 0;
    pub(super) const GE: u32 = 1;
    /// None under way, or one lost; the cell is no signal but the number of transfers.
    pub(super) const TRANSFERS: u32 = 2;
}

/// A cell that a task waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) cell: *const AtomicI32,
    pub(super) expected: i32,
    /// A [`Cmp`].
    pub(super) cmp: u32,
    pub(super) site: u32,
}

// SAFETY: the cell is in windows that are mapped for all threads while the launch runs.
unsafe impl Send for Pending {}

impl Pending {
    /// The cell compares; what its notifier wrote before is visible.
    pub(super) fn compares(&self) -> bool {
        // SAFETY: a cell of this rank's windows, which are mapped while the launch runs.
        let value = unsafe { (*self.cell).load(Ordering::Acquire) };
        match self.cmp {
            Cmp::GE => value >= self.expected,
            Cmp::TRANSFERS => value == 0 || value & LOST != 0,
            _ => value == self.expected,
        }
    }

    /// The same, for others to read.
    pub(super) fn waiting(&self, context: &Context) -> Waiting {
        let cell = if self.cmp == Cmp::TRANSFERS { 0 } else { context.image.windows.offset(context.rank, self.cell) };
        Waiting { cell, expected: self.expected, cmp: self.cmp, site: self.site }
    }
}

/// The context of a frame.
///
/// # Safety
/// `frame` is the argument of a running driver or task.
pub(super) unsafe fn context<'a>(frame: *mut Frame) -> &'a Context<'a> {
    // SAFETY: the launch puts a context into each frame that outlives the call.
    unsafe { &*(*frame).runtime.cast::<Context>() }
}

/// Nothing unwinds into generated code: a panic fails the launch.
pub(super) fn guarded<R>(context: &Context, failed: R, act: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        context.core.fail_internal(context.rank, &*panic);
        failed
    })
}

unsafe extern "C" fn ring(frame: *mut Frame, peer: u32) {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    if let Some(chaos) = context.tasks().chaos() {
        chaos.stop_before_waking();
    }
    context.core.board.bell(peer).wake();
}

unsafe extern "C" fn wait(frame: *mut Frame, cell: *const AtomicI32, expected: i32, cmp: u32, site: u32) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    let pending = Pending { cell, expected, cmp, site };
    i32::from(!guarded(context, false, || {
        let begun = context.wait_begins();
        let arrived = context.wait_for(pending);
        context.wait_ends(begun, site, context.image.windows.offset(context.rank, cell));
        arrived
    }))
}

/// Leaves the core to other tasks until the cell compares; false if the launch has failed.
fn stop_for(context: &Context, stop: &Stop, pending: Pending) -> bool {
    for glance in 0..GLANCES {
        if pending.compares() {
            return true;
        }
        match context.core.far() {
            Some(far) if glance % 8 == 0 => _ = far.progress(),
            _ => std::hint::spin_loop(),
        }
    }
    // What another rank fails with later is no reason to give up what has come.
    matches!(stop.suspend(Event::Blocked(pending)), Resume::Arrived) || pending.compares()
}

unsafe extern "C" fn defer(frame: *mut Frame, cell: *const AtomicI32, expected: i32, site: u32) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    i32::from(!guarded(context, false, || {
        let deferred = context.tasks().defer(context, Pending { cell, expected, cmp: Cmp::GE, site });
        deferred.inspect_err(|error| context.core.fail(context.rank, error)).is_ok()
    }))
}

unsafe extern "C" fn submit(
    frame: *mut Frame,
    task: u32,
    args: *const u64,
    blocks: i64,
    regions: *const i64,
    deps: *const u64,
) -> u64 {
    // SAFETY: generated code passes its frame on, and nobody else uses it meanwhile.
    let (context, frame) = unsafe { (context(frame), &mut *frame) };
    let code = &context.image.routine.tasks[task as usize];
    let words = code.accesses.iter().map(|access| 2 * access.ndims).sum();
    // SAFETY: generated code passes as many values as the task's description says.
    let (args, regions, deps) = unsafe {
        (
            std::slice::from_raw_parts(args, code.nargs),
            std::slice::from_raw_parts(regions, words),
            std::slice::from_raw_parts(deps, code.ndeps),
        )
    };
    let first = context.tasks().choose(blocks.max(0) as usize) as i64;
    let submission = Submission { task, code, args, blocks, first, regions, deps };
    guarded(context, SUBMIT_FAILED, || match context.core.queue(context.rank) {
        None => context.tasks().submit(context, frame, &submission),
        Some(queue) => queue.submit(context, frame, &submission),
    })
}

unsafe extern "C" fn drain(frame: *mut Frame) -> i32 {
    // SAFETY: generated code passes its frame on, and nobody else uses it meanwhile.
    let (context, frame) = unsafe { (context(frame), &mut *frame) };
    i32::from(!guarded(context, false, || match context.core.queue(context.rank) {
        None => context.tasks().drain(context, frame),
        Some(queue) => queue.drain(context),
    }))
}

unsafe extern "C" fn callback(
    frame: *mut Frame,
    function: u32,
    views: *const View,
    scalars: *const i64,
    block: i64,
    blocks: i64,
) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    let image = context.image;
    let code = &image.routine.functions[function as usize];
    let (name, callback) = &image.callbacks[function as usize];
    let call = CallbackContext {
        struct_size: size_of::<CallbackContext>() as u32,
        rank: context.rank,
        nranks: context.core.nranks,
        core: context.lane,
        block,
        blocks,
        launch: context.launch + 1,
        name: name.as_ptr(),
        tensors: views,
        ntensors: code.ntensors,
        scalars,
        nscalars: code.nscalars,
        stream: context.stream,
    };
    // SAFETY: the engine has given this function for calls like this one.
    let status = unsafe { (callback.function)(&call, callback.user_data) };
    if status == 0 {
        return Exit::Done as i32;
    }
    guarded(context, (), || context.core.fail(context.rank, &report::callback(context, code, block, blocks, status)));
    Exit::Failed as i32
}

unsafe extern "C" fn stop(frame: *mut Frame) {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    if let Some(chaos) = context.tasks().chaos() {
        chaos.stop();
    }
}

unsafe extern "C" fn record(frame: *mut Frame, report: u32, site: u32, peer: u32, value: u64) {
    // SAFETY: generated code passes its frame on, and nobody else uses it meanwhile.
    let (context, frame) = unsafe { (context(frame), &*frame) };
    let Some(trace) = &context.core.trace else { return };
    if report == Report::TaskBegun as u32 {
        trace.record(context, Kind::TaskBegun, site, 0, value, 0);
    } else if report == Report::TaskEnded as u32 {
        trace.record(context, Kind::TaskEnded, site, 0, frame.written, frame.read);
    } else {
        let cell = context.image.windows.offset(peer, std::ptr::without_provenance(value as usize));
        trace.record(context, Kind::Notified, site, peer, 0, cell);
    }
}

impl<'a> Context<'a> {
    /// Of the driver of a rank.
    pub(super) fn new(core: &'a Core, image: &'a Image, launch: u64, rank: u32) -> Self {
        Self {
            core,
            image,
            launch,
            rank,
            lane: 0,
            task: None,
            stream: std::ptr::null_mut(),
            stop: None,
            traffic: core.tasks(rank).traffic(),
        }
    }

    /// The ticks at which a wait begins, if it is recorded.
    pub(super) fn wait_begins(&self) -> Option<u64> {
        self.core.trace.as_ref().map(|_| ticks())
    }

    /// Records a wait of this site for the cell at an offset of the rank's part.
    pub(super) fn wait_ends(&self, begun: Option<u64>, site: u32, cell: u64) {
        if let (Some(trace), Some(begun)) = (&self.core.trace, begun) {
            trace.record(self, Kind::Waited, site, 0, begun, cell);
        }
    }

    fn tasks(&self) -> &super::tasks::Tasks {
        self.core.tasks(self.rank)
    }

    /// Blocks until the cell compares, or lets the core do something else until then; false if the launch has failed.
    pub(super) fn wait_for(&self, pending: Pending) -> bool {
        match self.stop {
            // SAFETY: the fiber that runs this task has lent it.
            Some(stop) => stop_for(self, unsafe { &*stop }, pending),
            None => self.wait(&pending),
        }
    }

    /// Blocks until what this rank has sent to far ranks has been executed there; false if the launch has failed.
    pub(super) fn reach_far(&self, site: u32) -> bool {
        let Some(far) = self.core.far() else { return true };
        if far.reached() {
            return true;
        }
        let waiting = Waiting { cell: 0, expected: 0, cmp: Cmp::TRANSFERS, site };
        // Other cores of the rank may send more meanwhile.
        self.await_until(&waiting, || {
            far.ask();
            far.reached()
        })
    }

    /// Blocks until the cell compares; false if the launch has failed.
    fn wait(&self, pending: &Pending) -> bool {
        self.await_until(&pending.waiting(self), || pending.compares())
    }

    /// Blocks until `arrived` holds, which others see as `waiting`; false if the launch has failed.
    fn await_until(&self, waiting: &Waiting, arrived: impl Fn() -> bool) -> bool {
        let (core, image) = (self.core, self.image);
        // Once is enough: a cell that compares may have changed again before anybody looks a second time.
        let seen = Cell::new(false);
        let over = || {
            seen.set(arrived());
            seen.get() || core.failed()
        };
        if !core.spin(over) {
            let control = core.board.control(self.rank);
            control.begin_wait(*waiting);
            core.linger(core.board.bell(self.rank), SLICE, over, |elapsed| {
                core.check_peers(image, self.launch)
                    || core.time_out(self.rank, elapsed, || report::wait(self, waiting, elapsed))
            });
            control.end_wait();
        }
        if !seen.get() {
            // The failure may be of a later launch: then its rank has done what this one waits for.
            over();
        }
        seen.get()
    }
}
