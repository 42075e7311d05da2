//! Which tasks of an entry wait for which: what each touches, and the edges that follow.
//!
//! A task waits for earlier tasks that it conflicts with: one of them writes what the other reads or writes. Additions
//! commute. The graph here is that of the program's text, before anything runs: it has an edge wherever two tasks may
//! conflict. When the tasks are submitted their regions are numbers, and only real conflicts count.

mod print;
mod region;

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use crate::ir::effects::{Access as Does, Effect, Place, effects};
use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::program::{Param, TensorDef};
use crate::ir::{Array, Block, Buffer, Entry, Op, OpKind, Operand, Program, Scalar, Task, TaskOptions, Tensor, Var};
use crate::verify::range::Ranges;

pub use print::{Graph, GraphEdge, GraphTask, dot, graphs, text};
pub use region::{Atom, Hull, Hulls, Linear};
use region::{Regions, disjoint, disjoint_in_turns};

/// Most parts of one tensor that are kept apart for a task; of more, the whole tensor counts.
const MOST_PARTS: usize = 8;

/// What accesses can conflict in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// A parameter. Parameters that may be one window or one tensor have the first of them as their root.
    Tensor(Tensor),
    /// A mutable scalar of the entry.
    Var(Var),
    /// A local array of the entry.
    Array(Array),
}

impl Root {
    /// Its name in the text.
    pub fn name(self, text: &Text) -> String {
        match self {
            Root::Tensor(tensor) => text.tensor(tensor),
            Root::Var(var) => text.var(var).into(),
            Root::Array(array) => text.array(array).into(),
        }
    }
}

/// How a task touches something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Reads it, or waits for it.
    Read,
    /// Adds to it, atomically.
    Add,
    /// Writes it.
    Write,
}

impl Mode {
    /// Two accesses to one place need an order.
    pub fn conflicts(self, other: Mode) -> bool {
        self != other || self == Mode::Write
    }
}

/// An access of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// To what.
    pub root: Root,
    /// How.
    pub mode: Mode,
    /// Which part.
    pub part: Hulls,
}

/// An explicit dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dep {
    /// The latest instance of the task.
    Latest(Task),
    /// All its instances so far: it stands in a block that has ended.
    All(Task),
}

/// A task of an entry.
#[derive(Clone, Debug)]
pub struct Node {
    /// The op that is the task.
    pub op: Op,
    /// Its id.
    pub task: Task,
    /// What it touches that may order it.
    pub accesses: Vec<Access>,
    /// What it waits for in any case.
    pub deps: Vec<Dep>,
    /// It may block: it waits for a signal.
    pub waits: bool,
    /// It may end later than its code.
    pub defers: bool,
    /// Nothing of the entry comes after it.
    pub last: bool,
    /// Loops of the entry around it, outermost first.
    loops: SmallVec<[Op; 2]>,
}

impl Node {
    /// The tasks of which it waits for the latest instance.
    pub fn latest(&self) -> impl Iterator<Item = Task> {
        self.deps.iter().filter_map(|dep| if let Dep::Latest(task) = *dep { Some(task) } else { None })
    }

    /// The tasks of which it waits for every instance so far.
    pub fn all_of(&self) -> impl Iterator<Item = Task> {
        self.deps.iter().filter_map(|dep| if let Dep::All(task) = *dep { Some(task) } else { None })
    }
}

/// One task waits for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The one that comes first, by its place in the entry.
    pub from: usize,
    /// The one that waits.
    pub to: usize,
    /// Only from one turn of a loop to the next.
    pub carried: bool,
    /// Why: the conflict, or none for an explicit dependency.
    pub conflict: Option<(Root, Mode, Mode)>,
}

/// The tasks of an entry.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// In source order.
    pub nodes: Vec<Node>,
    /// What the accesses are to, each once.
    pub roots: Vec<Root>,
}

impl Tasks {
    /// Number of a root among [`Tasks::roots`].
    pub fn root(&self, root: Root) -> usize {
        self.roots.iter().position(|&r| r == root).expect("roots has those of all accesses")
    }

    /// The node that an op is.
    pub fn node(&self, op: Op) -> &Node {
        self.nodes.iter().find(|node| node.op == op).expect("every task of the entry has a node")
    }
}

/// The tasks of an entry, for a world if it is known.
pub fn tasks(program: &Program, entry: Entry, known: Known<'static>) -> Tasks {
    let mut walk = Walk {
        program,
        known,
        aliases: aliases(program, entry),
        blocks: Vec::new(),
        closed: HashSet::new(),
        loops: SmallVec::new(),
        tasks: Tasks::default(),
    };
    walk.block(program.entries[entry].body, false);
    let mut tasks = walk.tasks;
    if let Some(last) = tasks.nodes.last_mut() {
        last.last = last.loops.is_empty();
    }
    for node in &tasks.nodes {
        for access in &node.accesses {
            if !tasks.roots.contains(&access.root) {
                tasks.roots.push(access.root);
            }
        }
    }
    tasks
}

/// The edges between the tasks of an entry, in the order of the tasks that wait.
pub fn edges(program: &Program, tasks: &Tasks, ranges: &Ranges) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (to, node) in tasks.nodes.iter().enumerate() {
        for (from, earlier) in tasks.nodes.iter().enumerate() {
            let named = |dep: &Dep| matches!(dep, Dep::Latest(t) | Dep::All(t) if *t == earlier.task);
            if node.deps.iter().any(named) {
                edges.push(Edge { from, to, carried: false, conflict: None });
                continue;
            }
            let shared = node.loops.iter().zip(&earlier.loops).take_while(|(a, b)| a == b).count();
            let turns = &node.loops[..shared];
            let same_turn = |atom: Atom| {
                !is_index(program, atom, &node.loops[shared..]) && !is_index(program, atom, &earlier.loops[shared..])
            };
            let other_turn = |atom: Atom| same_turn(atom) && !varies(program, atom, turns);
            let apart = |x: &Hulls, y: &Hulls| disjoint(x, y, ranges, same_turn);
            let conflict = (from < to).then(|| conflict(earlier, node, apart)).flatten();
            if let Some(conflict) = conflict {
                edges.push(Edge { from, to, carried: false, conflict: Some(conflict) });
            } else if shared > 0
                && let Some(conflict) = self::conflict(earlier, node, |x, y| {
                    let only = if let [op] = turns { program.ops[*op].kind.index() } else { None };
                    disjoint(x, y, ranges, other_turn) || only.is_some_and(|index| disjoint_in_turns(x, y, index))
                })
            {
                edges.push(Edge { from, to, carried: true, conflict: Some(conflict) });
            }
        }
    }
    edges
}

fn conflict(a: &Node, b: &Node, apart: impl Fn(&Hulls, &Hulls) -> bool) -> Option<(Root, Mode, Mode)> {
    a.accesses.iter().find_map(|x| {
        let meets = |y: &&Access| x.root == y.root && x.mode.conflicts(y.mode) && !apart(&x.part, &y.part);
        let y = b.accesses.iter().find(meets)?;
        Some((x.root, x.mode, y.mode))
    })
}

fn is_index(program: &Program, atom: Atom, loops: &[Op]) -> bool {
    matches!(atom, Atom::Scalar(s) if loops.iter().any(|&op| program.ops[op].kind.index() == Some(s)))
}

/// The value may differ from one turn of a loop to another.
fn varies(program: &Program, atom: Atom, loops: &[Op]) -> bool {
    let Atom::Scalar(scalar) = atom else { return false };
    let defined_inside = |&op: &Op| {
        let mut inside = program.ops[op].kind.index() == Some(scalar);
        for block in program.ops[op].kind.blocks() {
            program.walk(block, &mut |op| inside |= program.ops[op].kind.result() == Some(scalar));
        }
        inside
    };
    loops.iter().any(defined_inside)
}

/// What the host driver passes for a tensor parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Window(Buffer),
    Host(Tensor),
}

/// For each tensor parameter that may be the same memory as an earlier one: the first of them.
pub(crate) fn aliases(program: &Program, entry: Entry) -> HashMap<Tensor, Tensor> {
    let mut first: HashMap<Tensor, Tensor> = HashMap::new();
    let find = |first: &HashMap<Tensor, Tensor>, mut tensor: Tensor| {
        while let Some(&other) = first.get(&tensor) {
            tensor = other;
        }
        tensor
    };
    for op in program.ops.values() {
        let OpKind::Dispatch { entry: callee, args, .. } = &op.kind else { continue };
        if *callee != entry {
            continue;
        }
        let mut passed: Vec<(Memory, Tensor)> = Vec::new();
        for (arg, param) in args.iter().zip(&program.entries[entry].params) {
            let (&Operand::Tensor(arg), &Param::Tensor(param)) = (arg, param) else { continue };
            // Parts of one host tensor are one rank's, so the same.
            let memory = match program.tensors[arg].def {
                TensorDef::View(buffer) => Memory::Window(buffer),
                _ => Memory::Host(program.root(arg)),
            };
            match passed.iter().find(|(other, _)| *other == memory) {
                Some(&(_, other)) => {
                    let (a, b) = (find(&first, other), find(&first, param));
                    if a != b {
                        first.insert(a.max(b), a.min(b));
                    }
                }
                None => passed.push((memory, param)),
            }
        }
    }
    let aliased: Vec<Tensor> = first.keys().copied().collect();
    let mut aliases: HashMap<Tensor, Tensor> = HashMap::new();
    for tensor in aliased {
        let root = find(&first, tensor);
        aliases.insert(tensor, root);
        aliases.insert(root, root);
    }
    aliases
}

struct Walk<'p> {
    program: &'p Program,
    known: Known<'static>,
    /// Parameters that share memory, each with the first one; what they touch has no parts.
    aliases: HashMap<Tensor, Tensor>,
    /// Open blocks, with the tasks directly in them.
    blocks: Vec<Vec<Task>>,
    /// Tasks of blocks that have ended.
    closed: HashSet<Task>,
    loops: SmallVec<[Op; 2]>,
    tasks: Tasks,
}

impl Walk<'_> {
    fn block(&mut self, block: Block, manual: bool) {
        let ended = self.tasks_of(block, manual);
        self.closed.extend(ended);
    }

    /// Walks a block; the tasks directly in it.
    fn tasks_of(&mut self, block: Block, manual: bool) -> Vec<Task> {
        let program = self.program;
        self.blocks.push(Vec::new());
        for &op in &program.blocks[block] {
            let kind = &program.ops[op].kind;
            match kind {
                OpKind::Task { task, options, .. } | OpKind::Extern { task, options, .. } => {
                    self.task(op, *task, options, manual);
                }
                OpKind::Manual { body } => {
                    // No loop and no if: its tasks run as often as those around it.
                    let inside = self.tasks_of(*body, true);
                    self.blocks.last_mut().expect("pushed above").extend(inside);
                }
                OpKind::For { body, .. } => {
                    self.loops.push(op);
                    self.block(*body, manual);
                    self.loops.pop();
                }
                _ => kind.blocks().into_iter().for_each(|inner| self.block(inner, manual)),
            }
        }
        self.blocks.pop().expect("pushed above")
    }

    fn task(&mut self, op: Op, task: Task, options: &TaskOptions, manual: bool) {
        let program = self.program;
        let kind = &program.ops[op].kind;
        let mut ops = Vec::new();
        for block in kind.blocks() {
            program.walk(block, &mut |op| ops.push(op));
        }
        let waits = |op: &Op| matches!(program.ops[*op].kind, OpKind::Wait { .. } | OpKind::Collective(_));
        let defers = |op: &Op| matches!(program.ops[*op].kind, OpKind::DeferWait { .. });
        let node = Node {
            op,
            task,
            accesses: if manual { Vec::new() } else { self.accesses(op, &ops, options) },
            deps: options
                .deps
                .iter()
                .map(|&dep| if self.closed.contains(&dep) { Dep::All(dep) } else { Dep::Latest(dep) })
                .collect(),
            waits: ops.iter().any(waits),
            defers: ops.iter().any(defers),
            last: false,
            loops: self.loops.clone(),
        };
        self.tasks.nodes.push(node);
        self.blocks.last_mut().expect("the body of the entry is open").push(task);
    }

    fn accesses(&self, task: Op, ops: &[Op], options: &TaskOptions) -> Vec<Access> {
        let program = self.program;
        let mut inside: HashSet<Scalar> = program.ops[task].kind.index().into_iter().collect();
        let mut own: HashSet<Root> = HashSet::new();
        for &op in ops {
            let kind = &program.ops[op].kind;
            inside.extend(kind.result().into_iter().chain(kind.index()));
            match *kind {
                OpKind::VarDef { var, .. } => _ = own.insert(Root::Var(var)),
                OpKind::ArrayDef { array, .. } => _ = own.insert(Root::Array(array)),
                _ => {}
            }
        }
        let regions = Regions { program, known: self.known, inside };
        let mut found = Found::default();
        for op in std::iter::once(task).chain(ops.iter().copied()) {
            for Effect { access, place } in effects(program, &program.ops[op].kind) {
                let mode = match access {
                    Does::Read | Does::Await => Mode::Read,
                    Does::Accumulate | Does::SignalAdd => Mode::Add,
                    Does::Write | Does::SignalSet => Mode::Write,
                };
                match place {
                    Place::Memory { tensor, at, span, .. } => {
                        let root = program.root(tensor);
                        let skipped = options.no_dep.iter().any(|&whole| program.is_part(tensor, whole));
                        if skipped || program.tensors[root].manual {
                            continue;
                        }
                        match self.aliases.get(&root) {
                            Some(&first) => found.add(Root::Tensor(first), mode, Hulls::new()),
                            None => found.add(Root::Tensor(root), mode, regions.of(tensor, &at, &span)),
                        }
                    }
                    Place::Var(var) if !own.contains(&Root::Var(var)) => found.add(Root::Var(var), mode, Hulls::new()),
                    Place::Array(array) if !own.contains(&Root::Array(array)) => {
                        found.add(Root::Array(array), mode, Hulls::new());
                    }
                    Place::Var(_) | Place::Array(_) | Place::Tile(_) => {}
                }
            }
        }
        found.finish()
    }
}

/// The accesses of a task, by root and mode in order of first appearance.
#[derive(Default)]
struct Found {
    parts: Vec<(Root, Mode, Vec<Hulls>)>,
}

impl Found {
    fn add(&mut self, root: Root, mode: Mode, part: Hulls) {
        match self.parts.iter_mut().find(|(r, m, _)| *r == root && *m == mode) {
            Some((_, _, parts)) if parts.contains(&part) => {}
            Some((_, _, parts)) if parts.len() == MOST_PARTS => *parts = vec![part.iter().map(|_| None).collect()],
            Some((_, _, parts)) if parts.len() == 1 && parts[0].iter().all(Option::is_none) => {}
            Some((_, _, parts)) => parts.push(part),
            None => self.parts.push((root, mode, vec![part])),
        }
    }

    fn finish(self) -> Vec<Access> {
        let each = self
            .parts
            .into_iter()
            .flat_map(|(root, mode, parts)| parts.into_iter().map(move |part| Access { root, mode, part }));
        each.collect()
    }
}
