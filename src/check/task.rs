//! Tasks of a run, and which of them wait for which.

use smallvec::SmallVec;

use super::clock::{Clock, Time};
use super::memory::Landing;
use super::plan::Plan;
use super::registers::Registers;
use super::signal::Awaited;
use super::value::Value;
use crate::ir::{Op, Task, Tile};
use crate::passes::task_graph::{Atom, Hull, Linear, Mode, Node, Root};
use cranelift_entity::SecondaryMap;

/// First and last index in each dimension; none for the whole.
type Part = SmallVec<[(i64, i64); 2]>;

/// A task that its entry has come to.
#[derive(Debug)]
pub struct Instance {
    /// The op.
    pub op: Op,
    /// The task.
    pub task: Task,
    /// How many tasks its rank came to before.
    pub age: u32,
    /// How many earlier tasks have to end first.
    pub before: usize,
    /// Later ones that wait for it.
    pub after: Vec<usize>,
    /// What it begins with.
    pub registers: Registers,
    /// Number of blocks.
    pub blocks: i64,
    /// Blocks that have not ended.
    pub open: i64,
    /// What it begins after; when it has ended, what has happened by then.
    pub clock: Clock,
    /// Waits that its beginning stands behind; when it has ended, also its own.
    pub waits: SmallVec<[u32; 2]>,
    /// It has ended.
    pub ended: bool,
    touches: Vec<(Root, Mode, Part)>,
}

impl Instance {
    /// What an entry submits.
    pub fn new(plan: &Plan, entry: &Registers, node: &Node, blocks: i64, clock: Clock, wait: u32) -> Self {
        let touches = node.accesses.iter().map(|access| {
            let shape = match access.root {
                Root::Tensor(tensor) => plan.shapes[tensor].as_slice(),
                Root::Var(_) | Root::Array(_) => &[],
            };
            let hulls = access.part.iter().zip(shape);
            let part = hulls.map(|(hull, &extent)| part(plan, entry, hull.as_ref(), extent)).collect();
            (access.root, access.mode, part)
        });
        Self {
            op: node.op,
            task: node.task,
            age: 0,
            before: 0,
            after: Vec::new(),
            registers: entry.inside(plan.program.ops[node.op].kind.blocks().first().copied()),
            blocks: blocks.max(0),
            open: blocks.max(0),
            clock,
            waits: SmallVec::from_slice(&[wait]),
            ended: false,
            touches: touches.collect(),
        }
    }

    /// What it touches needs an order with what an earlier one touches.
    pub fn conflicts(&self, earlier: &Instance) -> bool {
        self.touches.iter().any(|(root, mode, part)| {
            earlier.touches.iter().any(|(other_root, other_mode, other_part)| {
                let meets = |(a, b): (&(i64, i64), &(i64, i64))| a.0 <= b.1 && b.0 <= a.1;
                root == other_root && mode.conflicts(*other_mode) && part.iter().zip(other_part).all(meets)
            })
        })
    }
}

/// The indices of one dimension; all if some are outside, as arithmetic may have wrapped.
fn part(plan: &Plan, entry: &Registers, hull: Option<&Hull>, extent: i64) -> (i64, i64) {
    let whole = (0, i64::MAX);
    let Some(hull) = hull else { return whole };
    let (first, last) = (linear(plan, entry, &hull.first), linear(plan, entry, &hull.last));
    if first >= 0 && last < extent { (first, last) } else { whole }
}

fn linear(plan: &Plan, entry: &Registers, form: &Linear) -> i64 {
    form.terms.iter().fold(form.constant, |sum, &(atom, factor)| {
        let value = match atom {
            Atom::Extent(extent) => plan.extent(extent),
            Atom::Scalar(scalar) => entry.int(scalar),
        };
        sum.wrapping_add(value.wrapping_mul(factor))
    })
}

/// What a block is about to do.
#[derive(Clone, Debug, PartialEq)]
pub enum At {
    /// Its first op.
    Begin,
    /// A notify.
    Notify(Op),
    /// A wait.
    Wait(Awaited),
    /// Its end, when these cells are there.
    End(Vec<Awaited>),
}

/// A block in every run: its rank, how many tasks the rank came to before its own, and its number in the grid.
pub type Thread = (usize, u32, u32);

/// A block of a task that runs.
#[derive(Debug)]
pub struct Block {
    /// Which one it is, in every run.
    pub key: Thread,
    /// The task, by its place among those of the dispatch.
    pub instance: usize,
    /// By number of the run, for reports.
    pub id: u32,
    /// What it does next.
    pub at: At,
    /// Its scalars and its place.
    pub registers: Registers,
    /// Its tiles.
    pub tiles: SecondaryMap<Tile, Vec<Value>>,
    /// What it knows.
    pub clock: Clock,
    /// The piece of its lane.
    pub time: Time,
    /// The lane of its remote stores, where the end of the task does not drain them, and the last piece that is drained.
    pub stores: Option<Time>,
    /// Its last satisfied wait.
    pub wait: u32,
    /// Remote writes on their way.
    pub landings: Vec<Landing>,
    /// Cells that it ends with.
    pub deferred: Vec<Awaited>,
}

/// Who is meant in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The rank.
    pub rank: usize,
    /// The launch, from 0.
    pub launch: u32,
    /// The task's op.
    pub op: Op,
    /// The task.
    pub task: Task,
    /// The block, of a grid.
    pub block: Option<i64>,
}
