//! Stacks for tasks that may block. A task that waits leaves its stack as it is, and the core does something else.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::lane::Job;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::aligned::Aligned;
use crate::runtime::hooks::Pending;
use crate::runtime::traffic::Traffic;

/// Bytes of a stack. Arrays of tasks have at most a page each here; pages that are not touched cost nothing.
const STACK: usize = 1 << 20;

/// Why a fiber goes on.
pub(in crate::runtime) enum Resume {
    /// To run a block.
    Run(Job),
    /// What it waited for has come.
    Arrived,
    /// The launch has failed.
    Failed,
    /// To end.
    Quit,
}

/// Why a fiber stops.
pub(in crate::runtime) enum Event {
    /// Its block has ended, with this exit.
    Ended(i32),
    /// Its block waits.
    Blocked(Pending),
}

/// What a task on a fiber stops with.
pub(in crate::runtime) type Stop = Yielder<Resume, Event>;

/// A stack, and memory for the tiles of a task on it.
pub(super) struct Fiber {
    coroutine: Coroutine<Resume, Event, ()>,
    scratch: Aligned,
    /// Its transfers, where ranks are far. Boxed: blocks that wait are moved.
    traffic: Option<Box<Traffic>>,
    /// Its block has not ended.
    busy: bool,
}

impl Fiber {
    pub fn new(far: bool) -> Result<Self> {
        let stack =
            DefaultStack::new(STACK).map_err(|e| Error::new(ErrorKind::NoMemory, format!("a task's stack: {e}")))?;
        let coroutine = Coroutine::with_stack(stack, |stop: &Stop, mut resume| {
            while let Resume::Run(job) = resume {
                let exit = job.run(Some(stop));
                resume = stop.suspend(Event::Ended(exit));
            }
        });
        Ok(Self { coroutine, scratch: Aligned::new(0, "tiles")?, traffic: far.then(Box::default), busy: false })
    }

    /// Runs a block until it ends or waits.
    pub fn run(&mut self, mut job: Job, scratch_bytes: usize) -> Result<Event> {
        if self.scratch.bytes() < scratch_bytes {
            self.scratch = Aligned::new(scratch_bytes, "tiles")?;
        }
        job.equip(self.scratch.as_ptr(), self.traffic.as_deref());
        Ok(self.resume(Resume::Run(job)))
    }

    /// Goes on with a block that waited.
    pub fn resume(&mut self, resume: Resume) -> Event {
        match self.coroutine.resume(resume) {
            CoroutineResult::Yield(event) => {
                self.busy = matches!(event, Event::Blocked(_));
                event
            }
            CoroutineResult::Return(()) => unreachable!("only a fiber that is dropped returns"),
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if self.busy {
            // Its frames are generated code's, which nothing can unwind. Leaving the stack is all that is left to do.
            // SAFETY: the stack is leaked, so what is on it stays valid.
            unsafe { self.coroutine.force_reset() };
        } else if self.coroutine.started() {
            self.coroutine.resume(Resume::Quit);
        }
    }
}
