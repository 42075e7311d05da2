//! Launches on cards: those that the caller waits for, and those that are left to a thread.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::queue::Queue;
use super::watch::{Look, Watch};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::args::Arg;
use crate::runtime::core::Core;
use crate::runtime::executable::{Executable, Image};
use crate::runtime::hooks::Context;
use crate::runtime::launch::drive;
use crate::runtime::recovery::Step;
use crate::runtime::resident::{InUse, Kept};
use crate::runtime::wait::SLICE;
use crate::transport::hccl::Stream;

/// Launches that have been queued and that nobody waits for.
pub(in crate::runtime) struct Flights {
    /// Most of them at once.
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// In the order in which they were queued, but for the one that is watched.
    waiting: VecDeque<Flight>,
    /// How many have not ended.
    under_way: usize,
    started: bool,
    stopping: bool,
}

struct Flight {
    image: Arc<Image>,
    launch: u64,
    watch: Watch,
    _residents: Kept,
}

/// Runs a rank's part of a launch to its end: `drive` queues it. False if it has failed.
pub(in crate::runtime) fn run(queue: &Queue, context: &Context, drive: impl FnOnce() -> bool) -> bool {
    queue_up(queue, context, None, drive).is_some_and(|watch| finish(queue, context, watch))
}

/// Queues a launch; none if that was not possible, and the launch has failed.
fn queue_up(queue: &Queue, context: &Context, on: Option<&Stream>, drive: impl FnOnce() -> bool) -> Option<Watch> {
    let queued = queue.begin(on).and_then(|begin| {
        // What is queued when it fails ends too.
        drive();
        queue.end(begin, on)
    });
    let failed = |error: &Error| {
        let message = format!("rank {}: {}", context.rank, error.message);
        context.core.fail(context.rank, &Error::new(error.kind, message));
        let _ = queue.stop();
    };
    queued.inspect_err(failed).ok().map(Watch::new)
}

fn finish(queue: &Queue, context: &Context, mut watch: Watch) -> bool {
    loop {
        match watch.look(queue, context, SLICE) {
            Look::Runs(on) => watch = on,
            Look::Ended(done) => return done && !context.core.failed(),
        }
    }
}

impl Executable {
    /// Queues a launch behind what is on the engine's stream, and what comes on that stream later behind the launch; then
    /// returns. NULL is the default stream. Of launches that fail the next call tells. The memory of the arguments is used
    /// until the launch has ended, which the engine learns from its stream. Blocks while as many launches as the world
    /// allows runs have not ended. Collective in the sense that every rank launches in the same order.
    ///
    /// # Safety
    /// `stream` is a stream of the rank's card that is not destroyed during the call.
    pub unsafe fn launch_on(&self, args: &[Arg], stream: *mut c_void) -> Result<()> {
        let (core, image) = (self.world.core(), &self.image);
        core.check_open()?;
        let queue = match &core.queues[..] {
            [queue] => queue,
            [] => return Err(unsupported("the ranks of this world are no cards, and have no streams")),
            _ => return Err(unsupported("this process drives several cards, and a stream belongs to one")),
        };
        if image.routine.host_tasks.is_some() {
            return Err(unsupported("the program has tasks on the host, which come when the cards have ended"));
        }
        if !image.windows.persistent() {
            let message = format!(
                "'{}' is not persistent: zeroing its windows takes a meeting of all hosts, which a stream cannot wait for; \
                 compile it as persistent",
                image.name
            );
            return Err(Error::new(ErrorKind::InvalidState, message));
        }
        let _turn = core.take(Step::Launch(image))?;
        core.flights.start(&self.world)?;
        let in_use = InUse::new(args)?;
        // SAFETY: this thread has the world's turn.
        let table = unsafe { &mut *image.table.get() };
        image.signature.bind(args, table)?;
        let launch = image.windows.launches();
        core.glance_at_peers(image, launch)?;
        core.flights.make_room();
        image.windows.begin_launch();
        let rank = core.local.start;
        let context = Context::new(core, image, launch, rank);
        // SAFETY: it lives until this function returns, as the caller says.
        let stream = unsafe { queue.card().engine_stream(stream) };
        let Some(watch) = queue_up(queue, &context, Some(&stream), || drive(&context, table, 1)) else {
            return core.conclude(false);
        };
        core.flights.add(Flight { image: image.clone(), launch, watch, _residents: in_use.keep() });
        core.conclude(!core.failed())
    }
}

fn unsupported(why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("no launch on a stream: {why}"))
}

impl Flights {
    /// None yet, and never more than `most`.
    pub(in crate::runtime) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl Fn(&State) -> bool) {
        let waited = self.changed.wait_while(self.lock(), |state| condition(state));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// There are launches that have not ended.
    pub(in crate::runtime) fn pending(&self) -> bool {
        self.lock().under_way > 0
    }

    /// Waits until all have ended.
    pub(in crate::runtime) fn wait_idle(&self) {
        self.wait_while(|state| state.under_way > 0);
    }

    /// Waits until one more may be queued.
    fn make_room(&self) {
        self.wait_while(|state| state.under_way >= self.most);
    }

    /// Lets the thread end when all have.
    pub(in crate::runtime) fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Starts the thread, the first time.
    fn start(&self, world: &crate::runtime::World) -> Result<()> {
        let mut state = self.lock();
        if !state.started {
            let core = world.core().clone();
            world.spawn("pld-cards", move || core.flights.watch(&core))?;
            state.started = true;
        }
        Ok(())
    }

    fn add(&self, flight: Flight) {
        let mut state = self.lock();
        state.under_way += 1;
        state.waiting.push_back(flight);
        drop(state);
        self.changed.notify_all();
    }

    /// The thread that watches them, in order.
    fn watch(&self, core: &Core) {
        loop {
            self.wait_while(|state| state.waiting.is_empty() && !state.stopping);
            let Some(flight) = self.lock().waiting.pop_front() else { return };
            let (queue, rank) = (&core.queues[0], core.local.start);
            let Flight { image, launch, watch, _residents: residents } = flight;
            let context = Context::new(core, &image, launch, rank);
            core.board.control(rank).begin(image.id, launch);
            if finish(queue, &context, watch) {
                image.windows.end(core, rank, launch);
            }
            core.board.control(rank).end();
            // Before the end is told: the engine may expect them to be its own again.
            drop((residents, image));
            self.lock().under_way -= 1;
            self.changed.notify_all();
        }
    }
}
