//! Looks after a launch that has been queued until it has ended, well or not.

use std::time::{Duration, Instant};

use super::queue::{Queue, Queued};
use super::reports::Waits;
use crate::codegen::cpu::abi::Fault;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::control::Waiting;
use crate::runtime::hooks::Context;
use crate::runtime::report;

/// How long a launch goes on before anybody asks what its kernels wait for.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long kernels that were told to end are waited for.
const GRACE: Duration = Duration::from_secs(5);

/// A launch under way on a card.
pub(super) struct Watch {
    queued: Queued,
    /// When its first kernel could begin.
    begun: Option<Instant>,
    /// What a block has been waiting for, and since when.
    waits: Option<(Waits, Instant)>,
    /// When its kernels were told to end.
    stopped: Option<Instant>,
}

/// How a launch is.
pub(super) enum Look {
    /// Under way.
    Runs(Watch),
    /// It has ended; true if all of it was done.
    Ended(bool),
}

impl Watch {
    pub(super) fn new(queued: Queued) -> Self {
        Self { queued, begun: None, waits: None, stopped: None }
    }

    /// Waits for the end, but not longer than `slice`, and then sees to it that it comes.
    pub(super) fn look(mut self, queue: &Queue, context: &Context, slice: Duration) -> Look {
        let core = context.core;
        let ended = self.queued.end.synchronize(slice).and_then(|ended| match ended {
            true => conclude(queue, context).map(Some),
            false => self.attend(queue, context).map(|()| None),
        });
        match ended {
            Ok(Some(done)) => {
                core.board.control(context.rank).end_wait();
                queue.reuse(self.queued);
                Look::Ended(done)
            }
            Ok(None) if self.stopped.is_some_and(|since| since.elapsed() >= GRACE) => {
                let message = format!(
                    "rank {}: kernels of launch {} of '{}' do not end, {:.0} s after they were told to",
                    context.rank,
                    context.launch + 1,
                    context.image.name,
                    GRACE.as_secs_f64()
                );
                core.fail(context.rank, &Error::new(ErrorKind::Internal, message));
                // They may still use all that they were given.
                std::mem::forget(core.image(context.image.id));
                Look::Ended(false)
            }
            Ok(None) => Look::Runs(self),
            Err(error) => {
                core.fail(context.rank, &Error::new(error.kind, format!("rank {}: {}", context.rank, error.message)));
                // What a card in this state does is not known: its kernels are told to end, and nobody waits for them.
                let _ = queue.stop();
                Look::Ended(false)
            }
        }
    }

    /// Publishes what the rank waits for, and stops it if the launch has failed.
    fn attend(&mut self, queue: &Queue, context: &Context) -> Result<()> {
        if self.stopped.is_some() {
            return Ok(());
        }
        let core = context.core;
        if self.begun.is_none() && self.queued.begin.as_ref().is_none_or(|begin| begin.query().unwrap_or(true)) {
            self.begun = Some(Instant::now());
        }
        let running = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        if running >= PATIENCE {
            self.ask(queue, context)?;
        }
        let late = || match &self.waits {
            Some((waits, since)) => {
                let elapsed = since.elapsed();
                core.time_out(context.rank, elapsed, || report::wait(context, &waiting(context, waits), elapsed))
            }
            None if kernels(context).checked => false,
            None => core.time_out(context.rank, running, || unchecked(context, running)),
        };
        if core.check_peers(context.image, context.launch) || late() {
            queue.stop()?;
            self.stopped = Some(Instant::now());
        }
        Ok(())
    }

    /// Asks the card what its kernels wait for.
    fn ask(&mut self, queue: &Queue, context: &Context) -> Result<()> {
        let control = context.core.board.control(context.rank);
        let now = queue.reports()?.waits();
        if now == self.waits.map(|(waits, _)| waits) {
            return Ok(());
        }
        // The cell has not compared for as long as the launch was given before anybody asked.
        self.waits = now.map(|waits| (waits, Instant::now().checked_sub(PATIENCE).unwrap_or_else(Instant::now)));
        match now {
            Some(waits) => control.begin_wait(waiting(context, &waits)),
            None => control.end_wait(),
        }
        Ok(())
    }
}

fn kernels<'a>(context: &Context<'a>) -> &'a super::Kernels {
    context.image.kernels.as_ref().expect("the image of a world of cards has kernels")
}

/// The same for others to read.
fn waiting(context: &Context, waits: &Waits) -> Waiting {
    let cell = std::ptr::without_provenance(waits.cell as usize);
    Waiting {
        cell: context.image.windows.offset(context.rank, cell),
        expected: waits.expected,
        cmp: waits.cmp,
        site: kernels(context).sites + waits.site,
    }
}

/// Says whether a launch whose kernels have ended was done, and reports the mistake if they found one.
fn conclude(queue: &Queue, context: &Context) -> Result<bool> {
    queue.check()?;
    if !queue.stopped()? {
        return Ok(true);
    }
    if let Some(fault) = queue.reports()?.fault() {
        let fault = Fault { site: kernels(context).sites + fault.site, ..fault };
        context.core.fail(context.rank, &report::fault(context, &fault));
    }
    if !context.core.failed() {
        let message = format!("rank {}: its kernels stopped and do not say why", context.rank);
        context.core.fail(context.rank, &Error::new(ErrorKind::Internal, message));
    }
    Ok(false)
}

fn unchecked(context: &Context, elapsed: Duration) -> Error {
    let Context { image, rank, launch, .. } = *context;
    let text = format!(
        "rank {rank}: the kernels of launch {} of '{}' have not ended after {:.1} s; compiled unchecked, they do not say \
         what they wait for, and cannot be stopped",
        launch + 1,
        image.name,
        elapsed.as_secs_f64()
    );
    Error::new(ErrorKind::Timeout, text)
}
