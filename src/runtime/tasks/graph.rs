//! The tasks of a rank that have not ended: what each waits for, and which can run.
//!
//! A task that touches something waits for every earlier one that has not ended and conflicts with it. Nothing here runs
//! anything or waits for anybody.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::touches::Touches;
use crate::codegen::cpu::TaskCode;
use crate::runtime::hooks::Pending;

/// A task instance, for those that depend on it. Instances reuse places, so a handle also has the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct Handle(u64);

impl Handle {
    /// An instance that has ended.
    pub const ENDED: Handle = Handle(0);

    /// Of the instance at this place.
    pub fn new(place: usize, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | (place as u64 + 1))
    }

    /// As generated code passes it.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// As generated code keeps it.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Place and generation; none if the instance has ended for certain.
    pub fn parts(self) -> Option<(usize, u32)> {
        let index = (self.0 as u32).checked_sub(1)?;
        Some((index as usize, (self.0 >> 32) as u32))
    }
}

/// Why a task waits for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Cause {
    /// It is named as a dependency.
    Named,
    /// Both touch this, by number in the later task's accesses.
    Conflict(usize),
}

/// A task that has been submitted and has not ended.
#[derive(Debug, Default)]
struct Node {
    generation: u32,
    /// Its number in the program.
    task: u32,
    args: Vec<u64>,
    blocks: i64,
    /// The block that begins first; the others follow in a circle.
    first: i64,
    /// Number of blocks that have begun.
    next: i64,
    /// What has to happen before the task has ended: blocks to end, and cells to arrive.
    open: i64,
    /// Cells that it waits for after its code has ended.
    deferred: u32,
    /// Number of tasks that come first.
    before: u32,
    /// Tasks that wait for it.
    after: Vec<u32>,
    /// The first reason to wait, for reports: the other task by number and handle.
    cause: Option<(u32, Handle, Cause)>,
    live: bool,
}

/// A cell that has to arrive before a task has ended.
#[derive(Debug)]
struct Deferred {
    pending: Pending,
    node: u32,
    /// When it was deferred, if that is recorded.
    begun: Option<u64>,
}

/// A block to run.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) struct Block {
    /// Place of the task, until its block has ended.
    pub node: u32,
    /// Number of the task.
    pub task: u32,
    /// Arguments; they stay where they are until the task has ended.
    pub args: *const u64,
    /// Index of the block.
    pub index: i64,
}

/// What is submitted.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) struct Submission<'a> {
    /// Number of the task.
    pub task: u32,
    /// Its code.
    pub code: &'a TaskCode,
    /// Values from outside.
    pub args: &'a [u64],
    /// Number of blocks.
    pub blocks: i64,
    /// The one of them that begins first.
    pub first: i64,
    /// First and last index of each dimension of each access.
    pub regions: &'a [i64],
    /// Instances that come first.
    pub deps: &'a [u64],
}

/// The live tasks of a rank.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Graph {
    nodes: Vec<Node>,
    free: Vec<u32>,
    ready: VecDeque<u32>,
    touches: Touches,
    deferred: Vec<Deferred>,
    /// Tasks with cells to arrive.
    deferring: u32,
    live: usize,
    /// Blocks that have begun and not ended.
    running: usize,
}

impl Graph {
    /// Number of tasks that have not ended.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Number of blocks that have begun and not ended.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Number of tasks with blocks to run.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Cells that have not arrived.
    pub fn deferred(&self) -> impl Iterator<Item = Pending> {
        self.deferred.iter().map(|deferred| deferred.pending)
    }

    /// Takes a task in.
    pub fn submit(&mut self, submission: &Submission) -> Handle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        });
        let node = &mut self.nodes[index as usize];
        node.task = submission.task;
        node.args.clear();
        node.args.extend_from_slice(submission.args);
        (node.blocks, node.next, node.open) = (submission.blocks.max(0), 0, submission.blocks.max(0));
        node.first = submission.first;
        (node.deferred, node.before, node.cause, node.live) = (0, 0, None, true);
        node.after.clear();
        let handle = Handle::new(index as usize, node.generation);
        self.live += 1;
        for &dep in submission.deps {
            self.wait_for(index, Handle::from_bits(dep), Cause::Named);
        }
        if !submission.code.all_of.is_empty() {
            for other in 0..self.nodes.len() {
                let Node { task, generation, live, .. } = self.nodes[other];
                if live && other != index as usize && submission.code.all_of.contains(&task) {
                    self.wait_for(index, Handle::new(other, generation), Cause::Named);
                }
            }
        }
        let mut touches = std::mem::take(&mut self.touches);
        touches.add(handle, &submission.code.accesses, submission.regions, |other, conflict| {
            if let Some(number) = conflict {
                self.wait_for(index, other, Cause::Conflict(number));
            }
            !self.has_ended(other)
        });
        self.touches = touches;
        if self.nodes[index as usize].before > 0 {
            return handle;
        }
        if self.nodes[index as usize].blocks == 0 {
            self.end(index);
            return Handle::ENDED;
        }
        self.ready.push_back(index);
        handle
    }

    /// The instance has ended.
    pub fn has_ended(&self, handle: Handle) -> bool {
        handle.parts().is_none_or(|(node, generation)| {
            let node = &self.nodes[node];
            !node.live || node.generation != generation
        })
    }

    /// Makes `index` wait for the instance, unless it has ended.
    fn wait_for(&mut self, index: u32, handle: Handle, cause: Cause) {
        let Some((other, generation)) = handle.parts() else { return };
        let earlier = &mut self.nodes[other];
        if !earlier.live || earlier.generation != generation || earlier.after.last() == Some(&index) {
            return;
        }
        earlier.after.push(index);
        let task = earlier.task;
        let node = &mut self.nodes[index as usize];
        node.before += 1;
        node.cause.get_or_insert((task, handle, cause));
    }

    /// The next block of the task that is ready at this place, which then runs; the first one has been ready for longest.
    pub fn take(&mut self, place: usize) -> Option<Block> {
        let &index = self.ready.get(place)?;
        let node = &mut self.nodes[index as usize];
        let behind = node.blocks - node.first;
        let turn = if node.next < behind { node.first + node.next } else { node.next - behind };
        let block = Block { node: index, task: node.task, args: node.args.as_ptr(), index: turn };
        node.next += 1;
        if node.next == node.blocks {
            // Usually it is the first one.
            let _ = if place == 0 { self.ready.pop_front() } else { self.ready.remove(place) };
        }
        self.running += 1;
        Some(block)
    }

    /// A block has ended.
    pub fn end_block(&mut self, node: u32) {
        self.running -= 1;
        self.close(node);
    }

    /// A block will not end well: the launch has failed.
    pub fn give_up_block(&mut self) {
        self.running -= 1;
    }

    fn close(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.open -= 1;
        if node.open == 0 {
            self.end(index);
        }
    }

    /// The task has ended, and so have those without blocks that wait for nothing else.
    fn end(&mut self, index: u32) {
        let mut ended: SmallVec<[u32; 8]> = SmallVec::from_slice(&[index]);
        while let Some(index) = ended.pop() {
            let node = &mut self.nodes[index as usize];
            node.live = false;
            node.generation = node.generation.wrapping_add(1);
            let after = std::mem::take(&mut node.after);
            self.live -= 1;
            for &next in &after {
                let node = &mut self.nodes[next as usize];
                node.before -= 1;
                match (node.before, node.blocks) {
                    (0, 0) => ended.push(next),
                    (0, _) => self.ready.push_back(next),
                    _ => {}
                }
            }
            // Keeps its memory.
            self.nodes[index as usize].after = after;
            self.free.push(index);
        }
    }

    /// The running block of `node` lets its task end only when the cell has arrived. `begun` is for [`Graph::poll`].
    pub fn defer(&mut self, node: u32, pending: Pending, begun: Option<u64>) {
        let data = &mut self.nodes[node as usize];
        data.open += 1;
        data.deferred += 1;
        self.deferring += u32::from(data.deferred == 1);
        self.deferred.push(Deferred { pending, node, begun });
    }

    /// Cells that the task waits for, and tasks that wait for some.
    pub fn deferrals(&self, node: u32) -> (u32, u32) {
        (self.nodes[node as usize].deferred, self.deferring)
    }

    /// Looks for cells that have arrived; `arrived` gets each, with when it was deferred.
    pub fn poll(&mut self, mut arrived: impl FnMut(&Pending, Option<u64>)) {
        let mut at = 0;
        while at < self.deferred.len() {
            if !self.deferred[at].pending.compares() {
                at += 1;
                continue;
            }
            let Deferred { node, pending, begun } = self.deferred.swap_remove(at);
            arrived(&pending, begun);
            let data = &mut self.nodes[node as usize];
            data.deferred -= 1;
            self.deferring -= u32::from(data.deferred == 0);
            self.close(node);
        }
    }

    /// Tasks that have not begun, each with the first one that it waits for and why.
    pub fn held(&self) -> impl Iterator<Item = (u32, u32, &Cause)> {
        self.nodes.iter().filter(|node| node.live && node.before > 0).filter_map(|node| {
            let (other, handle, cause) = node.cause.as_ref()?;
            let (place, generation) = handle.parts()?;
            let still = self.nodes[place].live && self.nodes[place].generation == generation;
            still.then_some((node.task, *other, cause))
        })
    }

    /// Forgets everything, after a failure.
    pub fn clear(&mut self) {
        debug_assert_eq!(self.running, 0, "blocks still run");
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::codegen::cpu::TaskAccess;
    use crate::codegen::cpu::abi::{Exit, Frame};
    use crate::codegen::versions::Version;
    use crate::ir::Op;
    use crate::passes::task_graph::Mode;

    unsafe extern "C" fn nothing(_: *mut Frame, _: *const u64, _: i64) -> i32 {
        Exit::Done as i32
    }

    /// Root, mode, and the part in two dimensions.
    type Touched = (usize, Mode, [(i64, i64); 2]);

    #[derive(Clone, Debug)]
    struct Task {
        accesses: Vec<Touched>,
        blocks: i64,
        /// How many instances back its dependencies are.
        deps: Vec<usize>,
        /// Blocks that end before the next task is submitted.
        progress: usize,
    }

    fn task() -> impl Strategy<Value = Task> {
        let mode = prop_oneof![Just(Mode::Read), Just(Mode::Add), Just(Mode::Write)];
        let range = || (0..6i64, 0..3i64).prop_map(|(first, more)| (first, first + more));
        let access = (0..3usize, mode, range(), range()).prop_map(|(root, mode, x, y)| (root, mode, [x, y]));
        (prop::collection::vec(access, 0..4), 0..3i64, prop::collection::vec(1..5usize, 0..2), 0..4usize)
            .prop_map(|(accesses, blocks, deps, progress)| Task { accesses, blocks, deps, progress })
    }

    fn conflict(a: &Task, b: &Task) -> bool {
        let meet = |x: (i64, i64), y: (i64, i64)| x.0 <= y.1 && y.0 <= x.1;
        a.accesses.iter().any(|(root, mode, part)| {
            let other =
                |(r, m, p): &Touched| r == root && m.conflicts(*mode) && meet(p[0], part[0]) && meet(p[1], part[1]);
            b.accesses.iter().any(other)
        })
    }

    fn code(task: &Task) -> TaskCode {
        let access = |&(root, mode, _): &Touched| TaskAccess { root, name: String::new(), mode, ndims: 2 };
        TaskCode {
            name: String::new(),
            site: 0,
            origin: (Version::from_u32(0), Op::from_u32(0)),
            run: Some(nothing),
            nargs: 1,
            accesses: task.accesses.iter().map(access).collect(),
            ndeps: task.deps.len(),
            all_of: Vec::new(),
            waits: false,
            defers: false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 300,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(5),
            ..ProptestConfig::default()
        })]

        /// A block only runs when all that its task conflicts with or names has ended, and in the end all have run.
        #[test]
        fn blocks_keep_the_order_of_conflicts(
            tasks in prop::collection::vec(task(), 1..30),
            lifo in any::<bool>(),
            fifo in any::<bool>(),
        ) {
            let mut graph = Graph::default();
            let (mut handles, mut open): (Vec<Handle>, Vec<i64>) = (Vec::new(), Vec::new());
            let mut running: Vec<Block> = Vec::new();
            let mut begun: HashSet<(usize, i64)> = HashSet::new();
            let mut progress = |graph: &mut Graph, open: &mut Vec<i64>, most: usize| {
                for _ in 0..most {
                    while let Some(block) = graph.take(if fifo { 0 } else { graph.ready() / 2 }) {
                        // SAFETY: the task has not ended, so its one argument is there: its number in the test.
                        let number = unsafe { *block.args } as usize;
                        for (earlier, other) in tasks[..number].iter().enumerate() {
                            let named = tasks[number].deps.contains(&(number - earlier));
                            let first = named || conflict(other, &tasks[number]);
                            prop_assert!(!first || open[earlier] == 0, "task {number} begins before {earlier} ends");
                        }
                        prop_assert!((0..tasks[number].blocks).contains(&block.index));
                        prop_assert!(begun.insert((number, block.index)), "block {} of task {number} again", block.index);
                        running.push(block);
                    }
                    let Some(block) = (if lifo { running.pop() } else { running.first().copied() }) else { break };
                    if !lifo {
                        running.remove(0);
                    }
                    // SAFETY: as above.
                    open[unsafe { *block.args } as usize] -= 1;
                    graph.end_block(block.node);
                }
                Ok(())
            };
            for (number, task) in tasks.iter().enumerate() {
                let deps: Vec<u64> = task.deps.iter().map(|back| match number.checked_sub(*back) {
                    Some(earlier) => handles[earlier].to_bits(),
                    None => Handle::ENDED.to_bits(),
                }).collect();
                let regions: Vec<i64> = task.accesses.iter().flat_map(|a| a.2).flat_map(|(x, y)| [x, y]).collect();
                open.push(task.blocks);
                let (code, args) = (code(task), [number as u64]);
                let (blocks, first) = (task.blocks, if fifo { 0 } else { task.blocks / 2 });
                let submission =
                    Submission { task: 0, code: &code, args: &args, blocks, first, regions: &regions, deps: &deps };
                handles.push(graph.submit(&submission));
                progress(&mut graph, &mut open, task.progress)?;
            }
            progress(&mut graph, &mut open, usize::MAX >> 1)?;
            prop_assert_eq!(graph.live(), 0);
            prop_assert!(open.iter().all(|&blocks| blocks == 0));
            prop_assert!(handles.iter().all(|&handle| graph.has_ended(handle)));
        }
    }
}
