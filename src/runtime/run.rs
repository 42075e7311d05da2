//! Submitted launches: a queue, the thread that works it off, and the handle to wait with.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::args::{Arg, Table};
use super::core::Core;
use super::executable::Executable;
use super::launch::launch;
use super::recovery::Step;
use super::resident::{InUse, Kept};
use crate::error::{Error, ErrorKind, Result};

/// A launch that was submitted. Dropping it does not end the launch.
pub struct Run {
    outcome: Arc<Outcome>,
    core: Arc<Core>,
}

/// How a run has ended, when it has.
#[derive(Default)]
struct Outcome {
    result: Mutex<Option<Result<()>>>,
    ended: Condvar,
}

struct Job {
    executable: Arc<Executable>,
    table: Table,
    residents: Kept,
    outcome: Arc<Outcome>,
}

/// The runs of a world.
pub(super) struct Runs {
    /// Most runs that may be pending.
    most: usize,
    /// Runs that have not ended; a launch looks at it without the lock.
    pending: AtomicUsize,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    started: bool,
    stopping: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Executable {
    /// Launches without waiting for the end, after everything that was submitted to the world before. The memory of the
    /// arguments is used until the run has ended. Blocks while as many runs as the world allows have not ended.
    /// Collective in the sense that every rank launches or submits in the same order.
    pub fn submit(self: &Arc<Self>, args: &[Arg]) -> Result<Run> {
        let core = self.world.core();
        core.check_open()?;
        let mut table = self.image.signature.table();
        let in_use = InUse::new(args)?;
        self.image.signature.bind(args, &mut table)?;
        let residents = in_use.keep();
        let outcome = Arc::new(Outcome::default());
        let job = Job { executable: self.clone(), table, residents, outcome: outcome.clone() };
        let mut queue = lock(&core.runs.queue);
        while core.runs.pending.load(Ordering::Relaxed) >= core.runs.most && !queue.stopping {
            queue = core.runs.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.stopping {
            return Err(never_begun());
        }
        if !queue.started {
            let worker = core.clone();
            self.world.spawn("pld-runs", move || worker.runs.work(&worker))?;
            queue.started = true;
        }
        core.runs.pending.fetch_add(1, Ordering::Relaxed);
        queue.jobs.push_back(job);
        drop(queue);
        core.runs.changed.notify_all();
        Ok(Run { outcome, core: core.clone() })
    }
}

impl Run {
    /// Waits until the run has ended, and says how. Without a time-out as long as it takes: the waits of the program
    /// itself end in time.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.core.fork.check()?;
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        let mut result = lock(&self.outcome.result);
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            result = match deadline.map(|d| d.saturating_duration_since(Instant::now())) {
                None => self.outcome.ended.wait(result).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => {
                    let seconds = timeout.unwrap_or_default().as_secs_f64();
                    return Err(Error::new(ErrorKind::Timeout, format!("the run has not ended after {seconds:.3} s")));
                }
                Some(left) => self.outcome.ended.wait_timeout(result, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// The run has ended.
    pub fn done(&self) -> bool {
        !self.core.fork.is_child() && lock(&self.outcome.result).is_some()
    }
}

impl Runs {
    /// No runs yet, and never more than `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { most, pending: AtomicUsize::new(0), queue: Mutex::default(), changed: Condvar::new() }
    }

    /// There are runs that have not ended.
    pub(super) fn pending(&self) -> bool {
        self.pending.load(Ordering::Acquire) != 0
    }

    /// Waits until no run is pending.
    pub(super) fn wait_idle(&self) {
        let mut queue = lock(&self.queue);
        while self.pending() {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets no more runs begin.
    pub(super) fn stop(&self) {
        lock(&self.queue).stopping = true;
        self.changed.notify_all();
    }

    /// The thread that runs them, in order.
    fn work(&self, core: &Core) {
        loop {
            let mut queue = lock(&self.queue);
            let (job, begin) = loop {
                match queue.jobs.pop_front() {
                    Some(job) => break (job, !queue.stopping),
                    None if queue.stopping => return,
                    None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            let result = if begin { run(core, &job.executable, &job.table) } else { Err(never_begun()) };
            // Ranks that are processes may have submitted more or fewer runs by now: only if none of those begins can
            // they go on together.
            let failed = result.is_err() && core.failed() && core.local.len() < core.nranks as usize;
            let queued: Vec<Job> = if failed { lock(&self.queue).jobs.drain(..).collect() } else { Vec::new() };
            for job in std::iter::once(job).chain(queued) {
                self.end(job, result.clone());
            }
        }
    }

    fn end(&self, job: Job, result: Result<()>) {
        {
            let _queue = lock(&self.queue);
            self.pending.fetch_sub(1, Ordering::Release);
        }
        self.changed.notify_all();
        let Job { executable, residents, outcome, .. } = job;
        // Before the outcome: whoever waited may expect executable and residents to be its own again.
        drop((executable, residents));
        *lock(&outcome.result) = Some(result);
        outcome.ended.notify_all();
    }
}

fn run(core: &Core, executable: &Executable, table: &Table) -> Result<()> {
    let _turn = core.take_for_run(Step::Launch(&executable.image))?;
    launch(core, &executable.image, table)
}

fn never_begun() -> Error {
    Error::new(ErrorKind::InvalidState, "the world was closed before the run began")
}
