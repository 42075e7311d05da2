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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::codegen::cpu::TaskAccess;
    use crate::codegen::versions::Version;
    use crate::ir::Op;
    use crate::passes::task_graph::Mode;

    #[derive(Clone, Debug)]
    struct Task {
        waits: bool,
        /// Root, mode, first and last index.
        accesses: Vec<(usize, Mode, i64, i64)>,
        /// How many instances back its dependencies are.
        deps: Vec<usize>,
    }

    fn code(task: &Task) -> TaskCode {
        let access =
            |&(root, mode, ..): &(usize, Mode, i64, i64)| TaskAccess { root, name: String::new(), mode, ndims: 1 };
        TaskCode {
            name: String::new(),
            site: 0,
            origin: (Version::from_u32(0), Op::from_u32(0)),
            run: None,
            nargs: 0,
            accesses: task.accesses.iter().map(access).collect(),
            ndeps: task.deps.len(),
            all_of: Vec::new(),
            waits: task.waits,
            defers: false,
        }
    }

    fn place(order: &mut Order, task: &Task, handles: &mut Vec<u64>) -> Result<Placement> {
        let code = code(task);
        let regions: Vec<i64> = task.accesses.iter().flat_map(|&(_, _, first, last)| [first, last]).collect();
        let deps: Vec<u64> =
            task.deps.iter().filter_map(|back| Some(handles[handles.len().checked_sub(*back)?])).collect();
        let (code, regions, deps) = (&code, &regions[..], &deps[..]);
        let submission = Submission { task: 0, code, args: &[], blocks: 1, first: 0, regions, deps };
        let placement = order.submit(&submission)?;
        handles.push(order.handle(placement.instance).to_bits());
        Ok(placement)
    }

    fn conflict(a: &Task, b: &Task) -> bool {
        let meet = |x: &(usize, Mode, i64, i64), y: &(usize, Mode, i64, i64)| {
            x.0 == y.0 && x.1.conflicts(y.1) && x.2 <= y.3 && y.2 <= x.3
        };
        a.accesses.iter().any(|x| b.accesses.iter().any(|y| meet(x, y)))
    }

    /// All pairs (later, earlier) that follow from these.
    fn closed(mut order: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
        for later in 0..order.len() {
            for middle in (0..later).rev() {
                if order[later][middle] {
                    let before = order[middle].clone();
                    order[later].iter_mut().zip(before).for_each(|(later, middle)| *later |= middle);
                }
            }
        }
        order
    }

    fn task() -> impl Strategy<Value = Task> {
        let access = (0..3usize, prop_oneof![Just(Mode::Read), Just(Mode::Write)], 0..8i64, 0..3i64);
        let access = access.prop_map(|(root, mode, first, more)| (root, mode, first, first + more));
        let lists = (prop::collection::vec(access, 0..3), prop::collection::vec(1..6usize, 0..3));
        (prop::bool::weighted(0.3), lists).prop_map(|(waits, (accesses, deps))| Task { waits, accesses, deps })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 500,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(7),
            ..ProptestConfig::default()
        })]

        /// Whatever must come first does, and nothing stands behind a task that may block without having to.
        #[test]
        fn streams_order_what_must_be_ordered_and_block_nobody_else(tasks in prop::collection::vec(task(), 1..60)) {
            let (mut order, mut handles) = (Order::default(), Vec::new());
            let placements: Vec<Placement> =
                tasks.iter().map(|task| place(&mut order, task, &mut handles).unwrap()).collect();
            let pairs = |f: &dyn Fn(usize, usize) -> bool| {
                closed((0..tasks.len()).map(|later| (0..later).map(|earlier| f(later, earlier)).collect()).collect())
            };
            let must = pairs(&|b, a| tasks[b].deps.contains(&(b - a)) || conflict(&tasks[a], &tasks[b]));
            let does = pairs(&|b, a| placements[b].after.contains(&a) || placements[a].stream == placements[b].stream);
            for later in 0..tasks.len() {
                for earlier in 0..later {
                    prop_assert!(does[later][earlier] || !must[later][earlier], "{later} must come after {earlier}");
                    let blocks = tasks[earlier].waits && does[later][earlier];
                    prop_assert!(!blocks || must[later][earlier], "{later} stands behind {earlier}, which may block");
                }
            }
        }
    }

    #[test]
    fn tasks_without_waits_share_few_streams_and_those_that_block_have_their_own() {
        let (mut order, mut handles) = (Order::default(), Vec::new());
        let free = Task { waits: false, accesses: Vec::new(), deps: Vec::new() };
        let waiter = Task { waits: true, ..free.clone() };
        let mut streams = |order: &mut Order, task: &Task, count: usize| -> Vec<usize> {
            (0..count).map(|_| place(order, task, &mut handles).unwrap().stream).collect()
        };
        assert_eq!(streams(&mut order, &free, 6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(streams(&mut order, &waiter, 6), [2, 3, 0, 1, 4, 5]);
        assert_eq!(streams(&mut order, &free, 3), [6, 6, 6]);
        let lasts: Vec<usize> = order.join().iter().map(|last| last.instance).collect();
        assert_eq!(lasts, [8, 9, 6, 7, 10, 11, 14]);
        assert_eq!(streams(&mut order, &waiter, MAX_STREAMS), (0..MAX_STREAMS).collect::<Vec<_>>());
        let error = place(&mut order, &waiter, &mut Vec::new()).unwrap_err();
        assert_eq!(error.message, "more than 64 tasks that may block stand side by side on one card");
    }

    /// Handles from before a join are past: a join orders all.
    #[test]
    fn a_join_is_the_end_of_what_came_before() {
        let (mut order, mut handles) = (Order::default(), Vec::new());
        let first = Task { waits: true, accesses: vec![(0, Mode::Write, 0, 9)], deps: Vec::new() };
        place(&mut order, &first, &mut handles).unwrap();
        order.join();
        let second = Task { waits: false, accesses: vec![(0, Mode::Read, 0, 9)], deps: vec![1] };
        let placement = place(&mut order, &second, &mut handles).unwrap();
        assert_eq!(placement, Placement { instance: 0, stream: 0, first: true, after: SmallVec::new() });
    }
}
