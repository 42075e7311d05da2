//! The name that everything has in the text.
//!
//! A name that the user gave is kept, with a suffix where it is taken already. What has none gets one that nobody else
//! has. Names live until the end of their block and never hide another one.

use std::collections::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;

use super::inline::Inline;
use crate::ir::program::{Param, Program};
use crate::ir::{Array, Block, Buffer, Domain, Op, OpKind, Scalar, Task, Tensor, Tile, Var};

/// The names; empty for what is written without one.
#[derive(Default)]
pub(super) struct Names {
    pub(super) scalars: SecondaryMap<Scalar, String>,
    pub(super) tensors: SecondaryMap<Tensor, String>,
    pub(super) tiles: SecondaryMap<Tile, String>,
    pub(super) vars: SecondaryMap<Var, String>,
    pub(super) arrays: SecondaryMap<Array, String>,
    pub(super) buffers: SecondaryMap<Buffer, String>,
    pub(super) domains: SecondaryMap<Domain, String>,
    pub(super) tasks: SecondaryMap<Task, String>,
}

impl Names {
    pub(super) fn new(program: &Program, inline: &Inline) -> Self {
        let mut namer = Namer {
            program,
            inline,
            given: given_names(program),
            visible: HashSet::new(),
            in_order: Vec::new(),
            next: HashMap::new(),
            names: Names::default(),
        };
        for dim in program.extents.dims.values() {
            namer.visible.insert(dim.name.clone());
        }
        for entry in program.entries.values() {
            namer.task_ids(entry.body);
            namer.function(&entry.params, entry.body);
        }
        namer.next = HashMap::new();
        if let Some(host) = &program.host {
            namer.function(&host.params, host.body);
        }
        namer.names
    }
}

/// Every name that the user gave, anywhere: generated names keep off them.
fn given_names(program: &Program) -> HashSet<&str> {
    let mut given: HashSet<&str> = program.extents.dims.values().map(|d| d.name.as_str()).collect();
    given.extend(program.scalars.values().filter_map(|d| d.name.as_deref()));
    given.extend(program.tensors.values().filter_map(|d| d.name.as_deref()));
    given.extend(program.tiles.values().filter_map(|d| d.name.as_deref()));
    given.extend(program.vars.values().filter_map(|d| d.name.as_deref()));
    given.extend(program.arrays.values().filter_map(|d| d.name.as_deref()));
    given.extend(program.buffers.values().map(|d| d.name.as_str()));
    given.extend(program.domains.values().map(|d| d.name.as_str()));
    given.extend(program.tasks.values().filter_map(|d| d.id.as_deref()));
    given
}

struct Namer<'p> {
    program: &'p Program,
    inline: &'p Inline,
    given: HashSet<&'p str>,
    visible: HashSet<String>,
    /// The visible names of the function at hand, innermost last.
    in_order: Vec<String>,
    /// The next number to try behind a prefix.
    next: HashMap<String, u32>,
    names: Names,
}

impl<'p> Namer<'p> {
    /// Ids of tasks live until the end of the entry. Only those that the user named, or another task names, have one.
    fn task_ids(&mut self, body: Block) {
        let program = self.program;
        self.next = HashMap::new();
        let mut needed = HashSet::new();
        let mut tasks = Vec::new();
        program.walk(body, &mut |op| {
            if let Some((task, options)) = program.ops[op].kind.task() {
                needed.extend(options.deps.iter().copied());
                tasks.push(task);
            }
        });
        for task in tasks {
            let id = program.tasks[task].id.as_deref();
            if id.is_some() || needed.contains(&task) {
                self.names.tasks[task] = self.name(id, "task");
            }
        }
    }

    fn function(&mut self, params: &[Param], body: Block) {
        for param in params {
            match *param {
                Param::Tensor(t) => self.names.tensors[t] = self.name(self.program.tensors[t].name.as_deref(), "x"),
                Param::Scalar(s) => self.names.scalars[s] = self.name(self.program.scalars[s].name.as_deref(), "v"),
            }
        }
        self.block(body);
        self.leave(0);
    }

    fn block(&mut self, block: Block) {
        for &op in &self.program.blocks[block] {
            self.op(op);
        }
    }

    fn scope(&mut self, block: Block, index: Option<(Scalar, &[&str])>) {
        let depth = self.in_order.len();
        if let Some((index, usual)) = index {
            self.names.scalars[index] = self.index_name(index, usual);
        }
        self.block(block);
        self.leave(depth);
    }

    fn leave(&mut self, depth: usize) {
        for name in self.in_order.drain(depth..) {
            self.visible.remove(&name);
        }
    }

    fn op(&mut self, op: Op) {
        let program = self.program;
        let kind = &program.ops[op].kind;
        match *kind {
            OpKind::VarDef { var, .. } => self.names.vars[var] = self.name(program.vars[var].name.as_deref(), "c"),
            OpKind::ArrayDef { array, .. } => {
                self.names.arrays[array] = self.name(program.arrays[array].name.as_deref(), "a");
            }
            OpKind::Slice { dst, .. }
            | OpKind::Flatten { dst, .. }
            | OpKind::Window { dst, .. }
            | OpKind::SliceRank { dst, .. }
                if !self.inline.tensor(dst) =>
            {
                self.names.tensors[dst] = self.name(program.tensors[dst].name.as_deref(), "x");
            }
            OpKind::Domain { domain } => {
                self.names.domains[domain] = self.name(Some(&program.domains[domain].name), "ranks");
            }
            OpKind::AllocWindow { buffer } => {
                self.names.buffers[buffer] = self.name(Some(&program.buffers[buffer].name), "buf");
            }
            OpKind::Load { dst, .. }
            | OpKind::Full { dst, .. }
            | OpKind::Copy { dst, .. }
            | OpKind::Cast { dst, .. }
            | OpKind::Tile { dst, .. }
            | OpKind::Reduce { dst, .. }
            | OpKind::RemoteLoad { dst, .. }
                if self.names.tiles[dst].is_empty() =>
            {
                self.names.tiles[dst] = self.name(program.tiles[dst].name.as_deref(), "t");
            }
            OpKind::For { index, body, .. } => self.scope(body, Some((index, &["i", "j", "k", "l", "m"]))),
            OpKind::Ranks { index, body, .. } => self.scope(body, Some((index, &["r"]))),
            OpKind::Task { grid: Some(grid), body, .. } => self.scope(body, Some((grid.index, &["b", "block"]))),
            OpKind::If { .. } | OpKind::Task { .. } | OpKind::Manual { .. } => {
                for inner in kind.blocks() {
                    self.scope(inner, None);
                }
            }
            _ => {}
        }
        if let Some(dst) = kind.result()
            && !self.inline.scalar(dst)
        {
            let prefix = if self.inline.is_used(dst) { "v" } else { "_v" };
            self.names.scalars[dst] = self.name(program.scalars[dst].name.as_deref(), prefix);
        }
    }

    /// The given name, made unique; without one, `prefix` and a number.
    fn name(&mut self, given: Option<&str>, prefix: &str) -> String {
        let name = match given {
            Some(name) if !self.visible.contains(name) => name.into(),
            Some(name) => self.numbered(&format!("{name}_"), 2),
            None => self.numbered(prefix, 1),
        };
        self.show(name)
    }

    fn index_name(&mut self, index: Scalar, usual: &[&str]) -> String {
        if self.program.scalars[index].name.is_none() {
            let free = usual.iter().find(|n| !self.visible.contains(**n) && !self.given.contains(**n));
            if let Some(name) = free {
                return self.show((*name).into());
            }
        }
        self.name(self.program.scalars[index].name.as_deref(), "idx")
    }

    fn numbered(&mut self, prefix: &str, first: u32) -> String {
        let mut number = self.next.get(prefix).copied().unwrap_or(first);
        let name = loop {
            let name = format!("{prefix}{number}");
            number += 1;
            if !self.visible.contains(&name) && !self.given.contains(name.as_str()) {
                break name;
            }
        };
        self.next.insert(prefix.into(), number);
        name
    }

    fn show(&mut self, name: String) -> String {
        self.visible.insert(name.clone());
        self.in_order.push(name.clone());
        name
    }
}
