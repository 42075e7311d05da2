//! Which stream each task of a launch goes to, and what it waits for there.
//!
//! Kernels of one stream run one after another, so a task that others do not wait for must not stand behind one that may
//! block: what that one waits for could be what this one does. Tasks that may block get streams of their own, unless
//! the task before them is one that they wait for anyway.

use smallvec::SmallVec;

use crate::codegen::cpu::TaskCode;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::tasks::{Handle, Submission, Touches};

/// Most streams of a rank: as many tasks may block side by side.
pub(super) const MAX_STREAMS: usize = 64;

/// Streams that tasks are spread over while none of them need more.
const SPREAD: usize = 4;

/// A task that was submitted since the last join.
#[derive(Debug)]
struct Instance {
    stream: usize,
    /// The task's number in the program.
    task: u32,
    /// It, or something that it comes after, may block.
    may_block: bool,
}

/// Where a task goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Its number since the last join.
    pub(super) instance: usize,
    /// The stream.
    pub(super) stream: usize,
    /// It is the first one on this stream since the last join, which it comes after.
    pub(super) first: bool,
    /// Tasks on other streams that come first.
    pub(super) after: SmallVec<[usize; 4]>,
}

/// The last task of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) stream: usize,
    pub(super) instance: usize,
}

/// The order of a launch's tasks.
#[derive(Debug, Default)]
pub(super) struct Order {
    instances: Vec<Instance>,
    /// The last task of each stream since the last join.
    lasts: Vec<Option<usize>>,
    touches: Touches,
    /// Number of joins: handles of tasks from before are past.
    joins: u32,
}

impl Order {
    /// Places a task. Its handle, for those that depend on it, is [`Order::handle`] of the instance.
    pub(super) fn submit(&mut self, submission: &Submission) -> Result<Placement> {
        let code = submission.code;
        let instance = self.instances.len();
        let mut before: SmallVec<[usize; 8]> = submission.deps.iter().filter_map(|&dep| self.live(dep)).collect();
        if !code.all_of.is_empty() {
            before.extend((0..instance).filter(|&i| code.all_of.contains(&self.instances[i].task)));
        }
        let handle = self.handle(instance);
        self.touches.add(handle, &code.accesses, submission.regions, |other, conflict| {
            before.extend(conflict.and_then(|_| Some(other.parts()?.0)));
            true
        });
        before.sort_unstable();
        before.dedup();

        let stream = self.choose(&before)?;
        let last = self.lasts[stream];
        let behind = before.iter().chain(&last).any(|&i| self.instances[i].may_block);
        // The latest of each other stream stands for those before it.
        let mut after = SmallVec::new();
        for (index, &earlier) in before.iter().enumerate() {
            let theirs = self.instances[earlier].stream;
            let later = before[index + 1..].iter().any(|&i| self.instances[i].stream == theirs);
            if theirs != stream && !later {
                after.push(earlier);
            }
        }
        self.instances.push(Instance { stream, task: submission.task, may_block: behind || may_block(code) });
        self.lasts[stream] = Some(instance);
        Ok(Placement { instance, stream, first: last.is_none(), after })
    }

    /// The handle of an instance.
    pub(super) fn handle(&self, instance: usize) -> Handle {
        Handle::new(instance, self.joins)
    }

    /// The last task of each stream that has any: all that comes later comes after them.
    pub(super) fn join(&mut self) -> SmallVec<[Last; 8]> {
        let lasts = self.lasts.iter_mut().enumerate();
        let lasts = lasts.filter_map(|(stream, last)| Some(Last { stream, instance: last.take()? })).collect();
        self.instances.clear();
        self.touches.clear();
        self.joins = self.joins.wrapping_add(1);
        lasts
    }

    /// The instance behind a handle, if it was submitted since the last join.
    fn live(&self, bits: u64) -> Option<usize> {
        let (instance, joins) = Handle::from_bits(bits).parts()?;
        (joins == self.joins).then_some(instance)
    }

    fn choose(&mut self, before: &[usize]) -> Result<usize> {
        let lasts = || self.lasts.iter().enumerate().filter_map(|(stream, last)| Some((stream, (*last)?)));
        if let Some((stream, _)) = lasts().filter(|(_, last)| before.contains(last)).max_by_key(|&(_, last)| last) {
            return Ok(stream);
        }
        let unused = self.lasts.iter().position(Option::is_none);
        if let Some(stream) = unused.filter(|&stream| stream < SPREAD) {
            return Ok(stream);
        }
        if self.lasts.len() < SPREAD {
            self.lasts.push(None);
            return Ok(self.lasts.len() - 1);
        }
        // The one whose last task was submitted first has probably least to do.
        if let Some((stream, _)) = lasts().filter(|&(_, i)| !self.instances[i].may_block).min_by_key(|&(_, i)| i) {
            return Ok(stream);
        }
        match unused {
            Some(stream) => Ok(stream),
            None if self.lasts.len() < MAX_STREAMS => {
                self.lasts.push(None);
                Ok(self.lasts.len() - 1)
            }
            None => {
                let message = format!("more than {MAX_STREAMS} tasks that may block stand side by side on one card");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

fn may_block(code: &TaskCode) -> bool {
    code.waits || code.defers
}
