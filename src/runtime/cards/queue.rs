//! The card of a rank: its streams, and the launches under way on it.
//!
//! Launches follow one another on the first stream. What goes to other streams begins after the event of the last *join*,
//! which is recorded on the first one; a join waits for all of them.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::kernels::Slot;
use super::order::{Order, Placement};
use super::reports::{self, Reports};
use crate::codegen::cpu::abi::{Exit, Frame, NO_FAULT, SUBMIT_FAILED};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::hooks::Context;
use crate::runtime::report;
use crate::runtime::tasks::Submission;
use crate::transport::hccl::{Card, DeviceMemory, Event, Stream};

/// The card of a rank of this process.
pub(in crate::runtime) struct Queue {
    card: Arc<Card>,
    /// An `i32`; other than 0, kernels end.
    stop: DeviceMemory,
    state: Mutex<State>,
}

/// What a launch changes while it queues its kernels.
#[derive(Default)]
struct State {
    lanes: Vec<Lane>,
    order: Order,
    /// Recorded behind the tasks since the last join.
    events: Vec<Event>,
    /// Recorded at the last join, if the first stream may still be busy with what came before it.
    joined: Option<Event>,
    /// Recorded earlier in this launch.
    past: Vec<Event>,
    /// For use.
    spare: Vec<Event>,
    /// Arguments of a kernel.
    words: Vec<u64>,
}

/// A stream, and what its kernels report.
struct Lane {
    stream: Stream,
    reports: DeviceMemory,
}

/// The events of a launch that has been queued: they can be used again when it has ended.
pub(super) struct Queued {
    /// What was on the engine's stream before has ended, if anything was.
    pub(super) begin: Option<Event>,
    /// All of the launch has ended.
    pub(super) end: Event,
    others: Vec<Event>,
}

impl Queue {
    pub(in crate::runtime) fn new(card: &Arc<Card>) -> Result<Self> {
        let stop = card.allocate(size_of::<i32>())?;
        let queue = Self { card: card.clone(), stop, state: Mutex::default() };
        queue.lock().lane(&queue.card, 0)?;
        Ok(queue)
    }

    pub(in crate::runtime) fn card(&self) -> &Arc<Card> {
        &self.card
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a launch behind what is on the engine's stream `after`.
    pub(super) fn begin(&self, after: Option<&Stream>) -> Result<Option<Event>> {
        let state = &mut *self.lock();
        let Some(after) = after else { return Ok(None) };
        let begin = state.event(&self.card)?;
        begin.record(after)?;
        state.lane(&self.card, 0)?.stream.wait(&begin)?;
        // What goes to other streams comes after it too.
        state.join(&self.card)?;
        Ok(Some(begin))
    }

    /// See [`crate::codegen::cpu::abi::Hooks::submit`].
    pub(in crate::runtime) fn submit(&self, context: &Context, frame: &mut Frame, submission: &Submission) -> u64 {
        let state = &mut *self.lock();
        match self.queue(state, context, frame, submission) {
            Ok(Some(handle)) => handle,
            Ok(None) => SUBMIT_FAILED,
            Err(error) => {
                let error = Error::new(error.kind, format!("rank {}: {}", context.rank, error.message));
                context.core.fail(context.rank, &error);
                SUBMIT_FAILED
            }
        }
    }

    /// Queues a task; its handle, or none if the launch has failed.
    fn queue(
        &self,
        state: &mut State,
        context: &Context,
        frame: &mut Frame,
        submission: &Submission,
    ) -> Result<Option<u64>> {
        if context.core.failed() {
            return Ok(None);
        }
        let Placement { instance, stream, first, after } = state.order.submit(submission)?;
        state.lane(&self.card, stream)?;
        let event = state.event(&self.card)?;
        let State { lanes, events, joined, words, .. } = state;
        let lane = &lanes[stream];
        if let Some(joined) = joined.as_ref().filter(|_| first && stream != 0) {
            lane.stream.wait(joined)?;
        }
        after.iter().try_for_each(|&earlier| lane.stream.wait(&events[earlier]))?;
        let done = match submission.code.run {
            Some(_) => {
                // The engine's function may use what its thread works with.
                let _entered = self.card.enter()?;
                call(context, frame, submission, &lane.stream)
            }
            None => {
                self.kernel(context, frame, submission, lane, words)?;
                true
            }
        };
        event.record(&lane.stream)?;
        events.push(event);
        Ok(done.then(|| state.order.handle(instance).to_bits()))
    }

    /// Launches the kernel of a task.
    fn kernel(
        &self,
        context: &Context,
        frame: &Frame,
        submission: &Submission,
        lane: &Lane,
        words: &mut Vec<u64>,
    ) -> Result<()> {
        let kernels = context.image.kernels.as_ref().expect("the image of a world of cards has kernels");
        let blocks = u32::try_from(submission.blocks.max(0)).map_err(|_| {
            Error::new(ErrorKind::Unsupported, format!("{} blocks of {}", submission.blocks, submission.code.name))
        })?;
        let (function, slots) = kernels.of(context.rank, submission.task);
        words.clear();
        words.extend(slots.iter().map(|slot| match *slot {
            Slot::Stop => self.stop.address(),
            Slot::Reports => lane.reports.address(),
            Slot::Rank => u64::from(context.rank),
            // SAFETY: the frame has a value for each dimension of the program.
            Slot::Dim(dim) => unsafe { *frame.dims.add(dim) as u64 },
            Slot::Context(address) => address,
            Slot::Argument(index) => submission.args[index],
        }));
        // SAFETY: the kernel was emitted with these parameters. Its windows live while the image does, which the launch
        // keeps; that the engine's memory lives as long is a matter of the launch's contract.
        unsafe { self.card.launch(function, blocks, words, &lane.stream) }
    }

    /// All that is queued from now on comes after all that is queued by now; false if the launch has failed.
    pub(in crate::runtime) fn drain(&self, context: &Context) -> bool {
        let joined = self.lock().join(&self.card);
        joined.inspect_err(|error| context.core.fail(context.rank, error)).is_ok() && !context.core.failed()
    }

    /// Ends a launch: what is queued on the engine's stream `before` from now on comes after it.
    pub(super) fn end(&self, begin: Option<Event>, before: Option<&Stream>) -> Result<Queued> {
        let state = &mut *self.lock();
        // What a driver runs to its end is joined already.
        if !state.events.is_empty() {
            state.join(&self.card)?;
        }
        let end = state.event(&self.card)?;
        end.record(&state.lanes[0].stream)?;
        if let Some(before) = before {
            before.wait(&end)?;
        }
        Ok(Queued { begin, end, others: std::mem::take(&mut state.past) })
    }

    /// A launch has ended.
    pub(super) fn reuse(&self, queued: Queued) {
        let Queued { begin, end, others } = queued;
        self.lock().spare.extend(others.into_iter().chain(begin).chain([end]));
    }

    /// Lets the kernels that run, and those that are queued, end.
    pub(super) fn stop(&self) -> Result<()> {
        self.stop.write(0, &1i32.to_ne_bytes())
    }

    /// Kernels are to end, or have.
    pub(super) fn stopped(&self) -> Result<bool> {
        let mut stop = [0; size_of::<i32>()];
        self.stop.read(0, &mut stop)?;
        Ok(i32::from_ne_bytes(stop) != 0)
    }

    /// An error if a kernel has failed: events are reached all the same. Streams that are busy tell it later.
    pub(super) fn check(&self) -> Result<()> {
        self.lock().lanes.iter().try_for_each(|lane| lane.stream.synchronize(Duration::ZERO).map(drop))
    }

    /// What the kernels of all streams report now.
    pub(super) fn reports(&self) -> Result<Reports> {
        let state = self.lock();
        let mut reports = Reports::new(state.lanes.len());
        for (stream, lane) in state.lanes.iter().enumerate() {
            lane.reports.read(0, reports.of_stream(stream))?;
        }
        Ok(reports)
    }

    /// Makes the card as it was before a failure, with nothing under way.
    pub(in crate::runtime) fn recover(&self) -> Result<()> {
        let state = self.lock();
        state.lanes.iter().try_for_each(|lane| lane.reports.zero())?;
        self.stop.zero()
    }
}

impl State {
    /// The lane with this number, which may be new.
    fn lane(&mut self, card: &Arc<Card>, number: usize) -> Result<&Lane> {
        while self.lanes.len() <= number {
            self.lanes.push(Lane { stream: card.stream()?, reports: card.allocate(reports::BYTES)? });
        }
        Ok(&self.lanes[number])
    }

    fn event(&mut self, card: &Arc<Card>) -> Result<Event> {
        self.spare.pop().map_or_else(|| card.event(), Ok)
    }

    /// Lets all that comes later come after all that is there.
    fn join(&mut self, card: &Arc<Card>) -> Result<()> {
        for last in self.order.join() {
            if last.stream != 0 {
                self.lanes[0].stream.wait(&self.events[last.instance])?;
            }
        }
        let joined = self.event(card)?;
        joined.record(&self.lanes[0].stream)?;
        self.past.append(&mut self.events);
        self.past.extend(self.joined.replace(joined));
        Ok(())
    }
}

/// Calls the function of the engine that a task is, to queue its work on the stream; false if it has failed.
fn call(context: &Context, frame: &Frame, submission: &Submission, stream: &Stream) -> bool {
    let run = submission.code.run.expect("an extern task has code");
    let context = Context { stream: stream.raw(), ..*context };
    let mut frame = Frame { runtime: (&raw const context).cast_mut().cast::<c_void>(), fault: NO_FAULT, ..*frame };
    (0..submission.blocks).all(|block| {
        // SAFETY: the code was compiled for these arguments; frame and context outlive the call.
        let exit = unsafe { run(&mut frame, submission.args.as_ptr(), block) };
        if exit == Exit::Fault as i32 {
            context.core.fail(context.rank, &report::fault(&context, &frame.fault));
        }
        exit == Exit::Done as i32
    })
}
