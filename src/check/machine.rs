//! A run: ranks with their launches, dispatches and tasks, one step at a time.
//!
//! A step is what a block does from one signal to the next. Between signals the order of blocks makes no difference to a
//! program without races, and races are found whatever the order: every block knows what happened before it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use smallvec::SmallVec;

use super::clock::{Clock, Lanes, Time};
use super::fault::{Fault, Step};
use super::host::{Launch, launch};
use super::memory::{Landing, Memory, Piece};
use super::plan::Plan;
use super::registers::{MOST_WORK, Next, Registers};
use super::shadow::{Access, Race};
use super::signal::{Awaited, Cell, History, Seen};
use super::task::{At, Block, Instance, Thread, Who};
use super::value::Value;
use crate::ir::op::MAX_WAITERS;
use crate::ir::{DType, Op, OpKind, Task};
use crate::passes::task_graph::Dep;
use crate::random::Random;

/// Why a run does not go on.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// A mistake that ends the launch, and who made it; nobody for the host driver.
    Fault(Fault, Option<u32>),
    /// A function of the engine returned this; by a task, or behind a launch.
    Callback(Op, Option<u32>, i32),
    /// It takes too long.
    TooLong,
}

/// A race, and what is needed to tell what it means.
#[derive(Clone, Debug)]
pub struct Raced {
    /// The two accesses.
    pub race: Race,
    /// Where.
    pub piece: Piece,
    /// The later one knows the write that the earlier one came after.
    pub knows_previous: bool,
    /// The later one comes after the earlier one's op, but not after its landing.
    pub undrained: bool,
}

/// Something about signals.
#[derive(Clone, Debug)]
pub enum Odd {
    /// A set loses what this note has signalled; by number in the cell's history.
    Overwritten { cell: Cell, lost: usize, by: usize },
    /// The cell moves on from what this wait waits for.
    Moved { cell: Cell, seen: u32, by: usize },
    /// The wait holds with what earlier launches have left.
    Stale { awaited: Awaited, by: u32, launch: u32 },
    /// Too many waiters.
    Waiters { by: u32, count: i64 },
}

/// Where a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Between two launches, until the others are there.
    Gate,
    /// In a launch.
    Launch,
    /// At the end of the last one.
    Done,
}

/// A rank.
struct Rank {
    stage: Stage,
    launch: u32,
    /// The dispatch that it runs, by number of the launch.
    dispatch: usize,
    entry: Option<Registers>,
    /// What tasks without dependencies begin after.
    base: Clock,
    base_wait: u32,
    /// What has happened when all tasks so far have ended.
    ends: Clock,
    end_waits: SmallVec<[u32; 2]>,
    tasks: Vec<Instance>,
    /// Instances so far of each task.
    instances: HashMap<Task, Vec<usize>>,
    live: usize,
    /// Tasks so far, of all dispatches.
    age: u32,
    waiters: i64,
    /// Remote stores that are not drained.
    stores: Vec<Time>,
    landings: Vec<Landing>,
}

/// What a step was about, for the reduction of schedules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    /// The cell that it changed, and whether by an addition.
    pub notified: Option<(Cell, bool)>,
    /// The cells that it waited for.
    pub awaited: SmallVec<[Cell; 1]>,
    /// Where it added floats: the order of two such steps may show in the sum.
    pub sums: SmallVec<[(Piece, Range<usize>); 1]>,
    /// Blocks that could begin because of it.
    pub begun: Vec<Thread>,
}

/// A run.
pub struct Machine<'p> {
    pub plan: &'p Plan<'p>,
    pub memory: Memory,
    pub lanes: Lanes,
    pub cells: BTreeMap<Cell, History>,
    /// Satisfied waits; the first stands for none.
    pub seen: Vec<Seen>,
    pub who: Vec<Who>,
    pub races: Vec<Raced>,
    pub odd: Vec<Odd>,
    /// Two additions of floats in no order.
    pub unordered_sums: Option<(Access, Access)>,
    pub stop: Option<Stop>,
    pub random: Option<Random>,
    pub footprint: Footprint,
    ranks: Vec<Rank>,
    launches: Vec<Launch>,
    /// Ranks that have ended each launch.
    ended: Vec<usize>,
    blocks: Vec<Option<Block>>,
    free: Vec<usize>,
    /// Blocks that run, by rank and age.
    active: Vec<usize>,
    last: Option<Thread>,
    work: u64,
    pub(super) raced: HashSet<(Op, Op)>,
}

impl<'p> Machine<'p> {
    /// A run before its first step. With a generator, remote writes land at random.
    pub fn new(plan: &'p Plan<'p>, random: Option<Random>) -> Self {
        let rank = || Rank {
            stage: Stage::Launch,
            launch: 0,
            dispatch: 0,
            entry: None,
            base: Clock::default(),
            base_wait: 0,
            ends: Clock::default(),
            end_waits: SmallVec::new(),
            tasks: Vec::new(),
            instances: HashMap::new(),
            live: 0,
            age: 0,
            waiters: 0,
            stores: Vec::new(),
            landings: Vec::new(),
        };
        let mut machine = Self {
            plan,
            memory: Memory::new(plan),
            lanes: Lanes::new(plan.nranks),
            cells: BTreeMap::new(),
            seen: vec![Seen { awaited: None, by: 0, launch: 0, notes: 0, before: SmallVec::new() }],
            who: Vec::new(),
            races: Vec::new(),
            odd: Vec::new(),
            unordered_sums: None,
            stop: None,
            random,
            footprint: Footprint::default(),
            ranks: (0..plan.nranks).map(|_| rank()).collect(),
            launches: Vec::new(),
            ended: vec![0; plan.options.launches as usize],
            blocks: Vec::new(),
            free: Vec::new(),
            active: Vec::new(),
            last: None,
            work: 0,
            raced: HashSet::new(),
        };
        for number in 0..plan.options.launches {
            match launch(plan, number) {
                Ok(launch) => machine.launches.push(launch),
                Err(stop) => {
                    machine.stop = Some(stop);
                    return machine;
                }
            }
        }
        for rank in 0..plan.nranks {
            machine.advance_or_stop(rank);
        }
        machine
    }

    /// Blocks that can go on; the one that went on last comes first, if it can.
    pub fn possible(&self) -> Vec<usize> {
        if self.stop.is_some() {
            return Vec::new();
        }
        let mut possible: Vec<usize> = self.active.iter().copied().filter(|&block| self.can_go_on(block)).collect();
        if let Some(at) = possible.iter().position(|&block| Some(self.block(block).key) == self.last) {
            possible[..=at].rotate_right(1);
        }
        possible
    }

    fn can_go_on(&self, block: usize) -> bool {
        let holds = |a: &Awaited| a.holds(self.memory.cell(a.cell.rank, a.cell.at));
        match &self.block(block).at {
            At::Begin | At::Notify(_) => true,
            At::Wait(awaited) => holds(awaited),
            At::End(cells) => cells.iter().all(holds),
        }
    }

    /// Everything has come to its end.
    pub fn is_done(&self) -> bool {
        self.stop.is_none() && self.ranks.iter().all(|rank| rank.stage == Stage::Done)
    }

    /// Blocks that have begun, or could, and have not ended.
    pub fn active(&self) -> impl Iterator<Item = &Block> {
        self.active.iter().map(|&block| self.block(block))
    }

    /// A block.
    pub fn block(&self, block: usize) -> &Block {
        self.blocks[block].as_ref().expect("the block has not ended")
    }

    /// The launch that a rank is in.
    pub fn launch(&self, rank: usize) -> u32 {
        self.ranks[rank].launch
    }

    /// The first argument of the launch that a rank is in.
    pub fn first_arg(&self, rank: usize) -> usize {
        self.plan.args_of(self.ranks[rank].launch)
    }

    /// The rank's tasks that have not begun, and tasks that it has not come to yet, up to a launch.
    pub fn to_come(&self, rank: usize, until: u32) -> (Vec<Op>, Vec<Op>) {
        let state = &self.ranks[rank];
        let held = state.tasks.iter().filter(|task| !task.ended && task.before > 0).map(|task| task.op);
        let mut behind = Vec::new();
        if state.stage == Stage::Launch {
            let dispatches = &self.launches[state.launch as usize].ranks[rank];
            let last = state.tasks.last().map(|task| task.op);
            for (index, dispatch) in dispatches.iter().enumerate().skip(state.dispatch) {
                let tasks = self.plan.tasks[dispatch.entry].nodes.iter().map(|node| node.op);
                behind.extend(tasks.filter(|&op| index > state.dispatch || last.is_none_or(|last| op > last)));
            }
        }
        for launch in self.launches.iter().take(until as usize + 1).skip(state.launch as usize + 1) {
            for dispatch in &launch.ranks[rank] {
                behind.extend(self.plan.tasks[dispatch.entry].nodes.iter().map(|node| node.op));
            }
        }
        (held.collect(), behind)
    }

    /// Lets a block go on to its next signal, or to its end.
    pub fn step(&mut self, block: usize) {
        self.footprint = Footprint::default();
        let mut running = self.blocks[block].take().expect("the block has not ended");
        self.last = Some(running.key);
        let rank = running.key.0;
        let mut entry = self.ranks[rank].entry.take().expect("a task belongs to an entry that runs");
        let before = running.registers.work;
        let ended = self.go_on(&mut running, &mut entry);
        self.work += running.registers.work - before + 1;
        self.ranks[rank].entry = Some(entry);
        if self.work > MOST_WORK {
            self.stop.get_or_insert(Stop::TooLong);
        }
        match ended {
            Ok(false) => self.blocks[block] = Some(running),
            Ok(true) => {
                self.free.push(block);
                self.active.retain(|&other| other != block);
                self.end_block(running);
            }
            Err(fault) => {
                self.stop.get_or_insert(Stop::Fault(fault, Some(running.id)));
                self.blocks[block] = Some(running);
            }
        }
        self.land_some(rank);
    }

    /// Runs a rank's host driver and entry as far as no task has to end first.
    fn advance_or_stop(&mut self, rank: usize) {
        if let Err(fault) = self.advance(rank) {
            self.stop.get_or_insert(Stop::Fault(fault, None));
        }
    }

    fn advance(&mut self, rank: usize) -> Step {
        loop {
            let Some(mut entry) = self.ranks[rank].entry.take() else {
                if !self.begin_dispatch(rank) {
                    return Ok(());
                }
                continue;
            };
            let pending = self.ranks[rank].live > 0;
            let before = entry.work;
            let next = entry.next(self.plan, None, pending);
            self.work += entry.work - before;
            match next? {
                Next::Op(op) => match &self.plan.program.ops[op].kind {
                    OpKind::Slice { dst, src, at } => {
                        self.slice(&mut entry, op, *dst, *src, at)?;
                        self.ranks[rank].entry = Some(entry);
                    }
                    OpKind::Flatten { dst, src } => {
                        self.flatten(&mut entry, *dst, *src);
                        self.ranks[rank].entry = Some(entry);
                    }
                    _ => self.submit(rank, entry, op),
                },
                Next::Drain | Next::End if pending => {
                    self.ranks[rank].entry = Some(entry);
                    return Ok(());
                }
                Next::TooLong => _ = self.stop.get_or_insert(Stop::TooLong),
                Next::Drain => {
                    self.join(rank);
                    self.ranks[rank].entry = Some(entry);
                }
                Next::End => {
                    self.join(rank);
                    let state = &mut self.ranks[rank];
                    state.tasks.clear();
                    state.instances.clear();
                    state.dispatch += 1;
                }
            }
            if self.stop.is_some() {
                return Ok(());
            }
        }
    }

    /// All tasks so far have ended: what comes next comes after them.
    fn join(&mut self, rank: usize) {
        let before = std::mem::take(&mut self.ranks[rank].end_waits);
        let wait = self.meet(rank, before);
        let state = &mut self.ranks[rank];
        state.base.join(&state.ends);
        state.base_wait = wait;
    }

    /// One number for what stands behind several waits.
    fn meet(&mut self, rank: usize, mut before: SmallVec<[u32; 2]>) -> u32 {
        before.sort_unstable();
        before.dedup();
        before.retain(|&mut wait| wait != 0);
        match before.as_slice() {
            [] => self.ranks[rank].base_wait,
            &[one] => one,
            _ => {
                self.seen.push(Seen { awaited: None, by: 0, launch: 0, notes: 0, before });
                self.seen.len() as u32 - 1
            }
        }
    }

    /// Begins the rank's next dispatch, in the next launch if need be; no if it has to wait, or has done all.
    fn begin_dispatch(&mut self, rank: usize) -> bool {
        loop {
            let state = &mut self.ranks[rank];
            if state.stage != Stage::Launch {
                return false;
            }
            if let Some(dispatch) = self.launches[state.launch as usize].ranks[rank].get(state.dispatch) {
                let body = self.plan.program.entries[dispatch.entry].body;
                let mut entry = Registers::new(self.plan, rank, dispatch.views.clone(), body);
                dispatch.scalars.iter().for_each(|&(scalar, value)| entry.set(scalar, value));
                state.entry = Some(entry);
                return true;
            }
            // The end of a launch drains everything.
            for landing in std::mem::take(&mut state.landings) {
                self.land(&landing);
            }
            let state = &mut self.ranks[rank];
            for stores in std::mem::take(&mut state.stores) {
                state.base.learn(stores);
                self.lanes.end(stores);
            }
            let number = state.launch;
            self.ended[number as usize] += 1;
            if self.ended[number as usize] == self.plan.nranks {
                let tasks = std::mem::take(&mut self.launches[number as usize].host_tasks);
                self.host_tasks(number, &tasks);
            }
            let state = &mut self.ranks[rank];
            if state.launch + 1 == self.plan.options.launches {
                state.stage = Stage::Done;
                return false;
            }
            if !self.plan.options.persistent {
                state.stage = Stage::Gate;
                if self.ranks.iter().any(|rank| rank.stage != Stage::Gate) {
                    return false;
                }
                self.open_gate(rank);
                return self.begin_dispatch(rank);
            }
            state.launch += 1;
            state.dispatch = 0;
        }
    }

    /// All ranks have come: the next launch begins for all of them, with new windows.
    fn open_gate(&mut self, last: usize) {
        self.memory.zero_windows();
        let mut all = Clock::default();
        self.ranks.iter().for_each(|rank| all.join(&rank.base));
        for rank in &mut self.ranks {
            rank.base = all.clone();
            rank.base_wait = 0;
            rank.stage = Stage::Launch;
            rank.launch += 1;
            rank.dispatch = 0;
        }
        for rank in (0..self.plan.nranks).filter(|&rank| rank != last) {
            self.advance_or_stop(rank);
        }
    }

    /// Takes in a task that the entry has come to.
    fn submit(&mut self, rank: usize, entry: Registers, op: Op) {
        let plan = self.plan;
        let program = plan.program;
        let state = &self.ranks[rank];
        let callee = self.launches[state.launch as usize].ranks[rank][state.dispatch].entry;
        let node = plan.tasks[callee].node(op);
        let blocks = match program.ops[op].kind {
            OpKind::Task { grid: Some(grid), .. } => entry.int(grid.blocks),
            // The engine's function is one task for all its blocks: together they touch what it declares.
            OpKind::Extern { blocks: Some(blocks), .. } => entry.int(blocks).clamp(0, 1),
            _ => 1,
        };
        let state = &mut self.ranks[rank];
        let mut task = Instance::new(plan, &entry, node, blocks, state.base.clone(), state.base_wait);
        let index = state.tasks.len();
        let named = |task: Task| state.instances.get(&task).map_or(&[] as &[usize], Vec::as_slice);
        let mut deps: Vec<usize> = Vec::new();
        for dep in &node.deps {
            match *dep {
                Dep::Latest(task) => deps.extend(named(task).last()),
                Dep::All(task) => deps.extend(named(task)),
            }
        }
        deps.extend((0..index).filter(|&earlier| task.conflicts(&state.tasks[earlier])));
        self.work += index as u64;
        if self.work > MOST_WORK {
            self.stop.get_or_insert(Stop::TooLong);
        }
        deps.sort_unstable();
        deps.dedup();
        for dep in deps {
            let earlier = &mut state.tasks[dep];
            if earlier.ended {
                task.clock.join(&earlier.clock);
                task.waits.extend_from_slice(&earlier.waits);
            } else {
                earlier.after.push(index);
                task.before += 1;
            }
        }
        state.instances.entry(node.task).or_default().push(index);
        state.live += 1;
        task.age = state.age;
        state.age += 1;
        let ready = task.before == 0;
        state.tasks.push(task);
        if ready {
            self.begin_task(rank, index);
        }
        self.ranks[rank].entry = Some(entry);
    }

    /// All that the task waits for has ended.
    fn begin_task(&mut self, rank: usize, index: usize) {
        let task = &mut self.ranks[rank].tasks[index];
        if task.blocks == 0 {
            self.end_task(rank, index);
            return;
        }
        let waits = std::mem::take(&mut task.waits);
        let (op, name, blocks, age) = (task.op, task.task, task.blocks, task.age);
        let wait = self.meet(rank, waits);
        let grid = match self.plan.program.ops[op].kind {
            OpKind::Task { grid, .. } => grid,
            _ => None,
        };
        for block in 0..blocks {
            // A block has registers of its own, so many blocks are much memory.
            self.work += 4 * self.plan.scalars.len() as u64;
            if self.work > MOST_WORK {
                self.stop.get_or_insert(Stop::TooLong);
                return;
            }
            let state = &mut self.ranks[rank];
            let task = &state.tasks[index];
            let mut clock = task.clock.clone();
            let time = self.lanes.begin(rank, &clock);
            clock.learn(time);
            let mut registers = task.registers.clone();
            if let Some(grid) = grid {
                registers.set(grid.index, Value::Int(block.into()));
            }
            let id = self.who.len() as u32;
            let launch = state.launch;
            self.who.push(Who { rank, launch, op, task: name, block: grid.map(|_| block) });
            let key = (rank, age, block as u32);
            self.footprint.begun.push(key);
            let new = Block {
                key,
                instance: index,
                id,
                at: At::Begin,
                registers,
                tiles: Default::default(),
                clock,
                time,
                stores: None,
                wait,
                landings: Vec::new(),
                deferred: Vec::new(),
            };
            let slot = self.free.pop().unwrap_or_else(|| {
                self.blocks.push(None);
                self.blocks.len() - 1
            });
            let place = self.active.partition_point(|&other| self.block(other).key < key);
            self.blocks[slot] = Some(new);
            self.active.insert(place, slot);
        }
    }

    fn end_block(&mut self, mut block: Block) {
        let (rank, index) = (block.key.0, block.instance);
        let lazy = |landing: &Landing| landing.lazy;
        let (mut late, landed): (Vec<_>, Vec<_>) = block.landings.drain(..).partition(lazy);
        landed.iter().for_each(|landing| self.land(landing));
        self.lanes.end(block.time);
        let state = &mut self.ranks[rank];
        state.landings.append(&mut late);
        state.stores.extend(block.stores);
        if !block.deferred.is_empty() {
            state.waiters -= 1;
        }
        let task = &mut state.tasks[index];
        task.open -= 1;
        task.clock.join(&block.clock);
        task.waits.push(block.wait);
        if task.open == 0 {
            self.end_task(rank, index);
        }
    }

    fn end_task(&mut self, rank: usize, index: usize) {
        let state = &mut self.ranks[rank];
        let task = &mut state.tasks[index];
        task.ended = true;
        task.waits.sort_unstable();
        task.waits.dedup();
        let (clock, waits, after) = (task.clock.clone(), task.waits.clone(), std::mem::take(&mut task.after));
        state.ends.join(&clock);
        state.end_waits.extend_from_slice(&waits);
        state.live -= 1;
        for later in after {
            let task = &mut self.ranks[rank].tasks[later];
            task.clock.join(&clock);
            task.waits.extend_from_slice(&waits);
            task.before -= 1;
            if task.before == 0 {
                self.begin_task(rank, later);
            }
        }
        // Within `advance` the entry is not there, and goes on by itself.
        if self.ranks[rank].live == 0 && self.ranks[rank].entry.is_some() {
            self.advance_or_stop(rank);
        }
    }

    /// A task has come to its end but for its deferred waits.
    pub fn begin_waiter(&mut self, block: &Block) {
        let state = &mut self.ranks[block.key.0];
        state.waiters += 1;
        if state.waiters > MAX_WAITERS {
            self.odd.push(Odd::Waiters { by: block.id, count: state.waiters });
        }
    }

    /// A remote write lands.
    pub fn land(&mut self, landing: &Landing) {
        if landing.adds.is_some_and(DType::is_float) {
            self.footprint.sums.extend(landing.ranges.iter().map(|range| (landing.piece, range.clone())));
        }
        self.memory.land(landing);
    }

    /// Lets some remote store land that nothing has drained.
    fn land_some(&mut self, rank: usize) {
        let Some(random) = &mut self.random else { return };
        let landings = &mut self.ranks[rank].landings;
        if !landings.is_empty() && random.below(4) == 0 {
            let landing = landings.remove(0);
            self.land(&landing);
        }
    }
}
