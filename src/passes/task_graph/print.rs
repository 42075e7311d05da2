//! The graph for people: as text, and for Graphviz.

use std::fmt::Write;

use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::{Entry, Op, OpKind, Program};
use crate::verify::domains::Domains;
use crate::verify::range::Ranges;

use super::{Edge, Mode, edges, tasks};

/// The graph of an entry, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The entry.
    pub entry: Entry,
    /// Its tasks, in source order.
    pub tasks: Vec<GraphTask>,
    /// Which of them wait for which, without conflicts that others between them put in order already.
    pub edges: Vec<GraphEdge>,
}

/// A task in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTask {
    /// The op that is the task.
    pub op: Op,
    /// Its name.
    pub name: String,
    /// What it is: `at copy_in`, `spmd push [8]`.
    pub label: String,
}

/// Why one task waits for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// The one that comes first, by number.
    pub from: usize,
    /// The one that waits.
    pub to: usize,
    /// Only from one turn of a loop to the next.
    pub carried: bool,
    /// `deps`, or what both touch and how: `recv_x: write, read`.
    pub reason: String,
}

/// The graph of each entry, for a world if it is known.
pub fn graphs(program: &Program, world: Option<u32>) -> Vec<Graph> {
    let names = Text::new(program);
    let known = Known { world: world.map(i64::from), dims: &[] };
    let ranges = Ranges::new(program, &Domains::new(program, world), world);
    let graph = |entry: Entry| {
        let tasks = tasks(program, entry, known);
        let task = |op: Op| {
            let name = program.ops[op].kind.task().map_or("", |(task, _)| program.tasks[task].name.as_str());
            GraphTask { op, name: name.into(), label: label(&program.ops[op].kind, name, &names) }
        };
        let edge = |edge: Edge| {
            let reason = reason(&names, &edge);
            GraphEdge { from: edge.from, to: edge.to, carried: edge.carried, reason }
        };
        let edges = without_shortcuts(edges(program, &tasks, &ranges));
        Graph {
            entry,
            tasks: tasks.nodes.iter().map(|node| task(node.op)).collect(),
            edges: edges.into_iter().map(edge).collect(),
        }
    };
    program.entries.keys().map(graph).collect()
}

/// The tasks of every entry, each with the tasks that it waits for and why:
/// `dispatch_wait after dispatch_push (deps)`.
pub fn text(program: &Program, world: Option<u32>) -> String {
    let mut out = String::new();
    for Graph { entry, tasks, edges } in graphs(program, world) {
        _ = writeln!(out, "entry {}", program.entries[entry].name);
        for (to, task) in tasks.iter().enumerate() {
            _ = write!(out, "  {}", task.label);
            let mut before = "after";
            for edge in edges.iter().filter(|edge| edge.to == to) {
                let turn = if edge.carried { ", of the turn before" } else { "" };
                _ = write!(out, " {before} {} ({}{turn})", tasks[edge.from].name, edge.reason);
                before = "and";
            }
            out.push('\n');
        }
    }
    out
}

/// The same as a graph for Graphviz' `dot`. Dashed edges go from one turn of a loop to the next.
pub fn dot(program: &Program, world: Option<u32>) -> String {
    let mut out = format!("digraph {} {{\n  node [shape=box];\n", program.name);
    let mut first = 0;
    for Graph { entry, tasks, edges } in graphs(program, world) {
        let name = &program.entries[entry].name;
        _ = writeln!(out, "  subgraph cluster_{name} {{\n    label=\"{name}\";");
        for (index, task) in tasks.iter().enumerate() {
            _ = writeln!(out, "    t{} [label=\"{}\"];", first + index, task.label);
        }
        out.push_str("  }\n");
        for GraphEdge { from, to, carried, reason } in edges {
            let style = if carried { ", style=dashed" } else { "" };
            _ = writeln!(out, "  t{} -> t{} [label=\"{reason}\"{style}];", first + from, first + to);
        }
        first += tasks.len();
    }
    out.push_str("}\n");
    out
}

/// Leaves out conflicts between tasks that others between them put in order already.
fn without_shortcuts(edges: Vec<Edge>) -> Vec<Edge> {
    let direct = |from: usize, to: usize| edges.iter().any(|e| !e.carried && e.from == from && e.to == to);
    let shortcut = |edge: &Edge| {
        let (from, to) = (edge.from, edge.to);
        edge.conflict.is_some() && !edge.carried && (from + 1..to).any(|mid| direct(from, mid) && direct(mid, to))
    };
    edges.iter().filter(|edge| !shortcut(edge)).cloned().collect()
}

fn label(kind: &OpKind, name: &str, names: &Text) -> String {
    let verb = kind.name();
    match kind {
        OpKind::Task { grid: Some(grid), .. } => format!("{verb} {name} [{}]", names.scalar(grid.blocks)),
        OpKind::Extern { blocks: Some(blocks), .. } => format!("{verb} {name} [{}]", names.scalar(*blocks)),
        _ => format!("{verb} {name}"),
    }
}

fn reason(names: &Text, edge: &Edge) -> String {
    let does = |mode| match mode {
        Mode::Read => "read",
        Mode::Add => "add",
        Mode::Write => "write",
    };
    match edge.conflict {
        None => "deps".into(),
        Some((root, first, then)) => {
            format!("{}: {}, {}", root.name(names), does(first), does(then))
        }
    }
}
