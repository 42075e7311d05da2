//! Deferred waits: a task that has one does nothing else.

use cranelift_entity::SecondaryMap;

use crate::ir::op::MAX_CONDITIONS;
use crate::ir::{Op, OpKind, Scalar, ScalarType, Task, Tensor};

use super::range::Interval;
use super::{Context, Position, names, rules};

/// What each task does besides waiting.
#[derive(Default)]
pub(super) struct Waiters(SecondaryMap<Task, Waiter>);

#[derive(Clone, Default)]
struct Waiter {
    /// Where it begins.
    begun: Option<Op>,
    /// Its first deferred wait, and how many there are at least.
    first: Option<Op>,
    conditions: i64,
    /// What it should not do, before the first deferred wait.
    work: Option<Op>,
    /// The last outermost loop that reads, and the read.
    reads: Option<(Op, Op)>,
    /// One mistake tells enough.
    mistaken: bool,
}

/// What an op means for a task with a deferred wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Scalars and control flow.
    Scalar,
    /// Only before the first deferred wait.
    Read,
    Condition,
    /// Never.
    Work,
}

fn part(kind: &OpKind) -> Part {
    match kind {
        OpKind::Scalar { .. }
        | OpKind::VarDef { .. }
        | OpKind::VarGet { .. }
        | OpKind::VarSet { .. }
        | OpKind::ArrayDef { .. }
        | OpKind::ArrayGet { .. }
        | OpKind::ArraySet { .. }
        | OpKind::For { .. }
        | OpKind::If { .. }
        | OpKind::Flatten { .. }
        | OpKind::Slice { .. } => Part::Scalar,
        OpKind::Read { .. } => Part::Read,
        OpKind::DeferWait { .. } => Part::Condition,
        _ => Part::Work,
    }
}

impl Waiters {
    /// The rules on one op; remembers what its task does.
    pub fn check(&mut self, cx: &mut Context, here: Position) {
        if let OpKind::Task { task, .. } = *cx.kind(here.op) {
            self.0[task].begun = Some(here.op);
        }
        let Some(task) = here.task else { return };
        let waiter = &mut self.0[task];
        match part(cx.kind(here.op)) {
            Part::Scalar => {}
            Part::Read => match waiter.first {
                Some(first) => waiter.late_read(cx, here.op, first),
                None => waiter.reads = here.within.map(|within| (within, here.op)).or(waiter.reads),
            },
            Part::Work => match waiter.first {
                Some(first) => waiter.work(cx, here.op, task, first),
                None => _ = waiter.work.get_or_insert(here.op),
            },
            Part::Condition => waiter.condition(cx, here, task),
        }
    }
}

impl Waiter {
    fn condition(&mut self, cx: &mut Context, here: Position, task: Task) {
        let op = here.op;
        if self.first.is_none() {
            self.first = Some(op);
            if let Some(begun) = self.begun {
                dedicated(cx, op, begun);
            }
            if let Some(work) = self.work {
                self.work(cx, work, task, op);
            }
        }
        if let Some((within, read)) = self.reads
            && here.within == Some(within)
        {
            self.late_read(cx, read, op);
        }
        if let OpKind::DeferWait { window, expected, .. } = *cx.kind(op) {
            signal(cx, op, window);
            value(cx, op, window, expected);
        }
        let before = self.conditions;
        self.conditions = before.saturating_add(here.times);
        if before <= MAX_CONDITIONS && self.conditions > MAX_CONDITIONS {
            let message = format!("task {} has {} deferred waits", name(cx, task), self.conditions);
            cx.find(&rules::WAITER_CONDITIONS, op, message)
                .note(format!("a task has at most {}", names::count(MAX_CONDITIONS as usize, "deferred wait")))
                .hint("spread them over several tasks, and join these: all = at all deps [a, b] {}");
        }
    }

    fn work(&mut self, cx: &mut Context, op: Op, task: Task, first: Op) {
        if !std::mem::replace(&mut self.mistaken, true) {
            let names = cx.names;
            let message = format!("{} stands in task {}, which has a defer_wait", cx.kind(op).name(), name(cx, task));
            cx.find(&rules::WAITER_WORK, op, message)
                .note(format!("{}{}", names.op(first), names.at(first)))
                .note("the task's code ends before the condition holds")
                .hint("move it into a task that depends on this one");
        }
    }

    fn late_read(&mut self, cx: &mut Context, op: Op, first: Op) {
        if !std::mem::replace(&mut self.mistaken, true) {
            let names = cx.names;
            cx.find(&rules::WAITER_WORK, op, "this reads an element after the first defer_wait")
                .note(format!("{}{}", names.op(first), names.at(first)))
                .hint("read all of them before, into values or a local array");
        }
    }
}

fn name<'a>(cx: &Context<'a>, task: Task) -> &'a str {
    &cx.program.tasks[task].name
}

/// The task is one InCore scope that certainly runs.
fn dedicated(cx: &mut Context, op: Op, begun: Op) {
    let OpKind::Task { task, grid, options, .. } = cx.kind(begun) else { return };
    let what = match grid {
        Some(_) => "is a grid",
        None if options.predicate.is_some() => "has a predicate",
        None if options.allow_early_resolve => "has allow_early_resolve",
        None => return,
    };
    cx.find(&rules::WAITER, op, format!("defer_wait stands in task {}, which {what}", name(cx, *task)))
        .hint("give it a task of its own, and let others depend on that: arrived = at arrive { defer_wait ... }");
}

/// What is watched is a window parameter itself.
fn signal(cx: &mut Context, op: Op, window: Tensor) {
    let root = cx.root(window);
    if root != window {
        let names = cx.names;
        let (part, whole) = (names.tensor(window), names.tensor(root));
        cx.find(
            &rules::WAITER_SIGNAL,
            op,
            format!("defer_wait watches a window itself, but {part} is a slice of {whole}"),
        )
        .note(names.tensor_is(window))
        .hint(format!("write the cell as one of {whole}"));
    }
}

/// What is waited for is what a counter can reach.
fn value(cx: &mut Context, op: Op, window: Tensor, expected: Scalar) {
    let range = cx.ranges.of(expected);
    let counter = Interval { min: 0, ..Interval::of_type(ScalarType::I32) };
    if range.disjoint(counter) {
        let value = match range.value() {
            Some(value) => value.to_string(),
            None if range.max < 0 => format!("at most {}", range.max),
            None => format!("at least {}", range.min),
        };
        let name = cx.names.tensor(window);
        cx.find(&rules::WAITER_VALUE, op, format!("a deferred wait on {name} expects {value}"))
            .note(format!("what it watches is a counter: {} to {}", counter.min, counter.max))
            .hint("count with notify ... += 1, and wait for the count");
    }
}
