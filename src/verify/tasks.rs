//! The task graph: what tasks name, and what orders them.

use std::collections::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;

use crate::ir::effects::{Access, Effect, Place};
use crate::ir::{
    Array, Block, CollectiveKind, Entry, Grid, Op, OpKind, Program, Scalar, Task, TaskOptions, Tensor, Var,
};

use super::{Context, Position, rules};

/// The tasks of a program, as far as the walk has come.
#[derive(Default)]
pub(super) struct Tasks {
    /// The entry of each task that stands before.
    entries: SecondaryMap<Task, Option<Entry>>,
    /// The tasks of the entry at hand, in source order, and where each is in this list.
    present: Vec<Seen>,
    places: SecondaryMap<Task, Option<usize>>,
}

/// A task of the entry at hand.
struct Seen {
    op: Op,
    /// The outermost loop around it.
    within: Option<Op>,
    /// Only its deps order it.
    manual: bool,
    /// What it touches, and how.
    touched: HashSet<(Root, Mode)>,
    /// A wait that holds a core before the task has told anybody anything.
    wait: Option<Op>,
    notifies: bool,
}

/// What accesses can conflict in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Root {
    Tensor(Tensor),
    Var(Var),
    Array(Array),
}

/// How something is touched.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    Read,
    Add,
    Write,
}

const MODES: [Mode; 3] = [Mode::Read, Mode::Add, Mode::Write];

impl Mode {
    fn of(access: Access) -> Self {
        match access {
            Access::Read | Access::Await => Mode::Read,
            Access::Accumulate | Access::SignalAdd => Mode::Add,
            Access::Write | Access::SignalSet => Mode::Write,
        }
    }

    /// Two accesses to one place need an order: additions do not.
    fn conflicts(self, other: Mode) -> bool {
        self != other || self == Mode::Write
    }
}

impl Tasks {
    /// The rules on one op; remembers what its task does.
    pub fn check(&mut self, cx: &mut Context, here: Position, effects: &[Effect]) {
        let kind = cx.kind(here.op);
        let mut task = here.task;
        if let Some((begun, options)) = kind.task() {
            self.deps(cx, here, options);
            if let OpKind::Task { grid: Some(grid), body, .. } = kind {
                block_index(cx, here.op, *grid, *body);
            }
            self.begin(here, begun);
            task = Some(begun);
        } else if matches!(kind, OpKind::Manual { .. }) && here.manual {
            cx.find(&rules::NESTED_MANUAL, here.op, "manual stands inside another manual")
                .hint("leave the inner one out: the outer one covers it");
        }
        let Some(place) = task.and_then(|task| self.places[task]) else { return };
        let seen = &mut self.present[place];
        match kind {
            OpKind::Wait { .. } if here.reached && !seen.notifies => _ = seen.wait.get_or_insert(here.op),
            // The other ones touch what they are about.
            OpKind::Collective(c) if here.reached && matches!(c.kind, CollectiveKind::Barrier { .. }) => {
                _ = seen.wait.get_or_insert(here.op);
            }
            OpKind::Notify { .. } => seen.notifies = true,
            _ => {}
        }
        for effect in effects {
            let root = match effect.place {
                Place::Memory { tensor, .. } => Root::Tensor(tensor),
                Place::Var(var) => Root::Var(var),
                Place::Array(array) => Root::Array(array),
                Place::Tile(_) => continue,
            };
            seen.touched.insert((root, Mode::of(effect.access)));
        }
    }

    fn begin(&mut self, here: Position, task: Task) {
        self.entries[task] = here.entry;
        self.places[task] = Some(self.present.len());
        self.present.push(Seen {
            op: here.op,
            within: here.within,
            manual: here.manual,
            touched: HashSet::new(),
            wait: None,
            notifies: false,
        });
    }

    fn deps(&self, cx: &mut Context, here: Position, options: &TaskOptions) {
        let program = cx.program;
        for (index, &dep) in options.deps.iter().enumerate() {
            let name = &program.tasks[dep].name;
            if here.entry.is_none() || self.entries[dep] != here.entry {
                let note = match self.entries[dep] {
                    Some(entry) => format!("{name} is a task of entry {}", program.entries[entry].name),
                    None => format!("{name} stands behind"),
                };
                cx.find(&rules::DEPENDENCY, here.op, format!("task {name} does not stand before in this entry"))
                    .note(note)
                    .hint("a task depends on tasks that stand before it; dispatches of one rank run in order anyway");
            } else if options.deps[..index].contains(&dep) {
                cx.find(&rules::DUPLICATE_DEPENDENCY, here.op, format!("task {name} is named twice"))
                    .hint("name it once");
            }
        }
    }

    /// The rules on the tasks of one entry together.
    pub fn finish_entry(&mut self, cx: &mut Context) {
        let tasks = std::mem::take(&mut self.present);
        let graph = Graph::new(cx, &tasks);
        for (index, seen) in tasks.iter().enumerate() {
            unused_no_dep(cx, seen);
            if let Some(wait) = seen.wait
                && index > 0
                && cx.options(seen.op).deps.is_empty()
                && !graph.follows(cx, index, seen)
            {
                unanchored(cx, &tasks[..index], seen.op, wait);
            }
        }
    }
}

impl<'a> Context<'a> {
    /// What the task that an op is was told.
    fn options(&self, op: Op) -> &'a TaskOptions {
        let (_, options) = self.kind(op).task().expect("the op is a task");
        options
    }
}

/// The first task of an entry that touches something, by how it does. Regions are not compared: what might order two
/// tasks counts as an edge.
struct Graph {
    first: HashMap<Root, [Option<usize>; MODES.len()]>,
    /// The last task of each outermost loop.
    ends: HashMap<Op, usize>,
}

impl Graph {
    fn new(cx: &Context, tasks: &[Seen]) -> Self {
        let mut graph = Self { first: HashMap::new(), ends: HashMap::new() };
        for (index, seen) in tasks.iter().enumerate() {
            graph.ends.extend(seen.within.map(|within| (within, index)));
            for (root, mode) in seen.ordering(cx) {
                graph.first.entry(root).or_default()[mode as usize].get_or_insert(index);
            }
        }
        graph
    }

    /// Some task may come first by what both touch: one that stands before, or in the same loop.
    fn follows(&self, cx: &Context, index: usize, seen: &Seen) -> bool {
        let end = seen.within.map_or(index, |within| self.ends[&within] + 1);
        seen.ordering(cx).any(|(root, mode)| {
            let first = &self.first[&root];
            MODES.iter().any(|&other| mode.conflicts(other) && first[other as usize].is_some_and(|task| task < end))
        })
    }
}

impl Seen {
    /// The accesses that order the task, to whole tensors.
    fn ordering<'s>(&'s self, cx: &'s Context) -> impl Iterator<Item = (Root, Mode)> {
        let no_dep = &cx.options(self.op).no_dep;
        let orders = move |root: Root| match root {
            Root::Tensor(tensor) => {
                !cx.program.tensors[cx.root(tensor)].manual
                    && !no_dep.iter().any(|&free| cx.program.is_part(tensor, free))
            }
            Root::Var(_) | Root::Array(_) => true,
        };
        let whole = |root| match root {
            Root::Tensor(tensor) => Root::Tensor(cx.root(tensor)),
            other => other,
        };
        let accesses = self.touched.iter().filter(move |&&(root, _)| !self.manual && orders(root));
        accesses.map(move |&(root, mode)| (whole(root), mode))
    }
}

fn unused_no_dep(cx: &mut Context, seen: &Seen) {
    for &free in &cx.options(seen.op).no_dep {
        let is_free = |&(root, _): &(Root, Mode)| matches!(root, Root::Tensor(t) if cx.program.is_part(t, free));
        if !seen.touched.iter().any(is_free) {
            let message = format!("the task does not touch {}", cx.names.tensor(free));
            cx.find(&rules::UNUSED_NO_DEP, seen.op, message)
                .hint("no_dep names what the task itself reads or writes, by the same name or a slice of it");
        }
    }
}

/// A task that waits is ready before everything else of its entry.
fn unanchored(cx: &mut Context, before: &[Seen], op: Op, wait: Op) {
    let program = cx.program;
    let names = cx.names;
    let anchor = before.iter().rfind(|seen| seen.notifies).or(before.last()).expect("the task is not the first");
    let name = |op: Op| cx.kind(op).task().map(|(task, _)| &program.tasks[task]).expect("the op is a task");
    let (task, anchor) = (name(op), name(anchor.op));
    let message = format!("task {} is ready at once, and holds a core while it waits", task.name);
    let anchor = anchor.id.as_ref().unwrap_or(&anchor.name);
    let hint =
        format!("begin it after what its peers wait for: deps [{anchor}]; or wait with defer_wait, which holds none");
    cx.find(&rules::UNANCHORED_WAIT, op, message)
        .note(format!("{}{}", names.op(wait), names.at(wait)))
        .note("it has no deps, and none follow from what it touches")
        .hint(hint);
}

/// The blocks of a grid differ.
fn block_index(cx: &mut Context, op: Op, grid: Grid, body: Block) {
    let blocks = cx.ranges.of(grid.blocks);
    if blocks.max > 1 && !uses(cx.program, body, grid.index) {
        let blocks = cx.names.scalar(grid.blocks);
        cx.find(&rules::BLOCK_INDEX, op, format!("all {blocks} blocks do the same: none uses its index"))
            .hint("let the index say which part of the work a block does, or begin the task with at");
    }
}

fn uses(program: &Program, body: Block, scalar: Scalar) -> bool {
    let mut used = false;
    program.walk(body, &mut |op| program.ops[op].kind.for_each_scalar(|s| used |= s == scalar));
    used
}
