//! The graph for people: as text, and for Graphviz.

use std::fmt::Write;

use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::{Op, OpKind, Program};
use crate::verify::domains::Domains;
use crate::verify::range::Ranges;

use super::{Edge, Mode, Tasks, edges, tasks};

/// The tasks of every entry, each with the tasks that it waits for and why:
/// `dispatch_wait after dispatch_push (deps)`.
pub fn text(program: &Program, world: Option<u32>) -> String {
    let names = Text::new(program);
    let mut out = String::new();
    for_each_entry(program, world, |name, tasks, edges| {
        _ = writeln!(out, "entry {name}");
        for (to, node) in tasks.nodes.iter().enumerate() {
            _ = write!(out, "  {}", label(program, &names, node.op));
            let mut before = "after";
            for edge in edges.iter().filter(|edge| edge.to == to) {
                let from = &program.tasks[tasks.nodes[edge.from].task].name;
                let turn = if edge.carried { ", of the turn before" } else { "" };
                _ = write!(out, " {before} {from} ({}{turn})", reason(&names, edge));
                before = "and";
            }
            out.push('\n');
        }
    });
    out
}

/// The same as a graph for Graphviz' `dot`. Dashed edges go from one turn of a loop to the next.
pub fn dot(program: &Program, world: Option<u32>) -> String {
    let names = Text::new(program);
    let mut out = format!("digraph {} {{\n  node [shape=box];\n", program.name);
    let mut first = 0;
    for_each_entry(program, world, |name, tasks, edges| {
        _ = writeln!(out, "  subgraph cluster_{name} {{\n    label=\"{name}\";");
        for (index, node) in tasks.nodes.iter().enumerate() {
            _ = writeln!(out, "    t{} [label=\"{}\"];", first + index, label(program, &names, node.op));
        }
        out.push_str("  }\n");
        for edge in edges {
            let style = if edge.carried { ", style=dashed" } else { "" };
            let (from, to, why) = (first + edge.from, first + edge.to, reason(&names, edge));
            _ = writeln!(out, "  t{from} -> t{to} [label=\"{why}\"{style}];");
        }
        first += tasks.nodes.len();
    });
    out.push_str("}\n");
    out
}

fn for_each_entry(program: &Program, world: Option<u32>, mut visit: impl FnMut(&str, &Tasks, &[Edge])) {
    let known = Known { world: world.map(i64::from), dims: &[] };
    let ranges = Ranges::new(program, &Domains::new(program, world), world);
    for (entry, data) in &program.entries {
        let tasks = tasks(program, entry, known);
        let edges = without_shortcuts(edges(program, &tasks, &ranges));
        visit(&data.name, &tasks, &edges);
    }
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

/// `at copy_in`, `spmd push [8]`.
fn label(program: &Program, names: &Text, op: Op) -> String {
    let kind = &program.ops[op].kind;
    let name = kind.task().map_or("", |(task, _)| program.tasks[task].name.as_str());
    let verb = kind.name();
    match kind {
        OpKind::Task { grid: Some(grid), .. } => format!("{verb} {name} [{}]", names.scalar(grid.blocks)),
        OpKind::Extern { blocks: Some(blocks), .. } => format!("{verb} {name} [{}]", names.scalar(*blocks)),
        _ => format!("{verb} {name}"),
    }
}

/// `deps`, or `recv_x: write, read`.
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
