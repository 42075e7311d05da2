//! How a finding reads.

use std::ops::Range;

use super::classify::{Detail, Loose, Shown, Stuck};
use super::fault::Fault;
use super::machine::{Machine, Odd, Stop};
use super::memory::Piece;
use super::plan::Plan;
use super::rules;
use super::shadow::Access;
use super::signal::{Awaited, Cell, Note};
use super::task::Who;
use crate::ir::calls::calls;
use crate::ir::effects::{Access as Does, Effect, Place, effects};
use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::program::Param;
use crate::ir::{Buffer, DType, Diagnostic, FaultKind, Op, OpKind, Scalar, Tensor};

/// Writes findings of runs of one program.
pub struct Writer<'p> {
    plan: &'p Plan<'p>,
    text: Text<'p>,
}

/// A finding as it grows.
struct Parts {
    message: String,
    notes: Vec<String>,
    hint: &'static str,
}

impl<'p> Writer<'p> {
    /// For the runs of a plan.
    pub fn new(plan: &'p Plan<'p>) -> Self {
        Self { plan, text: Text::new(plan.program) }
    }

    /// What is said about something that a run shows.
    pub fn describe(&self, machine: &Machine, shown: &Shown) -> Diagnostic {
        let program = machine.plan.program;
        let parts = match &shown.detail {
            Detail::Race(index, loose) => self.race(machine, shown, *index, *loose),
            Detail::Odd(index) => self.odd(machine, &machine.odd[*index]),
            Detail::Stuck(stuck) => self.stuck(machine, shown, stuck),
            Detail::Left(cell, launch, note) => self.left(machine, *cell, *launch, *note),
            Detail::Stop => self.stop(machine),
            Detail::Differs(arg, part, byte) => self.differs(machine, shown, *arg, *part, *byte),
        };
        let loc = shown.op.map(|op| program.ops[op].loc).unwrap_or_default();
        Diagnostic {
            severity: shown.rule.severity,
            code: shown.rule.code,
            file: loc.file.map(|file| program.files[file].clone()).unwrap_or_default(),
            line: loc.line,
            column: 0,
            message: parts.message,
            snippet: shown.op.map(|op| self.op(op)).unwrap_or_default(),
            notes: parts.notes,
            hint: parts.hint.into(),
        }
    }

    fn race(&self, machine: &Machine, shown: &Shown, index: usize, loose: Option<Loose>) -> Parts {
        let raced = &machine.races[index];
        let (first, second) = (&raced.race.first, &raced.race.second);
        let place = |access: &Access| self.place(machine, raced.piece, &raced.race.bytes, access);
        let act = |access: &Access| {
            format!("{} {} it: {}", who(machine, access.by), verb(access.does), self.at(machine, access.op))
        };
        let told = if shown.op == Some(first.op) { first } else { second };
        let what = place(told);
        let code = shown.rule.code;
        let (message, hint) = if code == rules::OVERLAPPING_WRITES.code {
            (
                format!("{what} is written twice in no order"),
                "give each writer its own part, or let one signal the other",
            )
        } else if code == rules::EARLY_READ.code {
            (
                format!("{what} may be read before what belongs there has arrived"),
                "wait for a signal that the writer notifies after the write",
            )
        } else if code == rules::EARLY_REUSE.code {
            (
                format!("{what} may be overwritten before it has been read"),
                "let the reader notify when it has read, and wait for that before the write; or use two halves in turn",
            )
        } else if code == rules::MISSING_EDGE.code {
            let blocks = machine.who[first.by as usize].op == machine.who[second.by as usize].op;
            let pair = if blocks { "two blocks of a task" } else { "two tasks" };
            (format!("{what} is used by {pair} in no order"), "name the first task in the deps of the second")
        } else if code == rules::UNORDERED_PUTS.code {
            (
                format!("{what} is used again while the task's own transfer to it may still be under way"),
                "a transfer has landed after the task's next notify, and in tasks that come after this one",
            )
        } else if code == rules::UNDRAINED.code {
            (
                format!("{what} may be used before a remote_store of an earlier task has landed there"),
                "notify in the task of the remote_store, or use put",
            )
        } else if code == rules::STALE_SIGNAL.code {
            (
                "the wait is satisfied by what an earlier launch or call has left".into(),
                "count on: compare a growing counter with the number of the call; or take back what was counted",
            )
        } else {
            (
                "the wait counts how many have arrived, not which".into(),
                "a cell for each sender or chunk, or wait for all of them",
            )
        };
        let mut notes = Vec::new();
        if let Some(Loose { seen, note }) = loose {
            let wait = &machine.seen[seen as usize];
            let awaited = wait.awaited.expect("it is a wait");
            let history = &machine.cells[&awaited.cell];
            let meant = &history.notes[note];
            let value = history.notes[..wait.notes].last().map_or(0, |note| note.result);
            notes.push(format!(
                "{}: {} is {value}",
                who(machine, wait.by),
                self.cell(machine, awaited.cell, awaited.op)
            ));
            let latest = history.notes[..wait.notes].last();
            notes
                .extend(latest.map(|n| format!("by the notify of {}: {}", who(machine, n.by), self.at(machine, n.op))));
            notes.push(format!("not by that of {}: {}", who(machine, meant.by), self.at(machine, meant.op)));
            notes.push(format!("so {} is used in no order:", place(second)));
        }
        notes.push(act(first));
        notes.push(act(second));
        Parts { message, notes, hint }
    }

    fn odd(&self, machine: &Machine, odd: &Odd) -> Parts {
        match odd {
            Odd::Overwritten { cell, lost, by } => {
                let notes = &machine.cells[cell].notes;
                let (lost, by) = (&notes[*lost], &notes[*by]);
                let name = self.cell(machine, *cell, by.op);
                let told = |note: &Note| format!("{}: {}", who(machine, note.by), self.at(machine, note.op));
                Parts {
                    message: format!("{name} may be set before what was signalled there has been seen"),
                    notes: vec![format!("set by {}", told(by)), format!("lost is that of {}", told(lost))],
                    hint: "let cells only grow, with += and a wait for >= the number of the call; or answer before the next",
                }
            }
            Odd::Moved { cell, seen, by } => {
                let (wait, note) = (&machine.seen[*seen as usize], &machine.cells[cell].notes[*by]);
                let awaited = wait.awaited.expect("it is a wait");
                Parts {
                    message: format!(
                        "{} may have moved on from {} before the wait looks",
                        self.cell(machine, *cell, awaited.op),
                        awaited.expected
                    ),
                    notes: vec![
                        format!("waited for by {}", who(machine, wait.by)),
                        format!("moved on by {}: {}", who(machine, note.by), self.at(machine, note.op)),
                    ],
                    hint: "wait for >=, or notify again only after an answer",
                }
            }
            Odd::Stale { awaited, by, launch } => {
                let notes = &machine.cells[&awaited.cell].notes;
                let left = notes.iter().rfind(|note| note.launch < *launch);
                let name = self.cell(machine, awaited.cell, awaited.op);
                let mut told = vec![format!("{}", who(machine, *by))];
                told.extend(left.map(|n| format!("satisfied by {}: {}", who(machine, n.by), self.at(machine, n.op))));
                Parts {
                    message: format!("{name} has been left satisfied by an earlier launch: the wait orders nothing"),
                    notes: told,
                    hint: "count on: compare with a threshold that grows with the launch; or take back what was counted",
                }
            }
            Odd::Waiters { by, count } => Parts {
                message: format!("{count} deferred waits or waiters are pending at once, and 64 is the most"),
                notes: vec![who(machine, *by)],
                hint: "wait in fewer tasks, or let some depend on others",
            },
        }
    }

    fn stuck(&self, machine: &Machine, shown: &Shown, stuck: &[Stuck]) -> Parts {
        let mut notes = Vec::new();
        for Stuck { by, awaited, missing } in stuck {
            let value = machine.memory.cell(awaited.cell.rank, awaited.cell.at);
            notes.push(format!(
                "{} waits for {} (is {value}): {}",
                who(machine, *by),
                self.condition(machine, awaited),
                self.at(machine, awaited.op)
            ));
            let history = machine.cells.get(&awaited.cell);
            if let Some(left) = history.map(|h| h.value_before(machine.who[*by as usize].launch)).filter(|&v| v != 0) {
                notes.push(format!("earlier launches have left {left} there"));
            }
            let others = missing.iter().any(|(_, rank)| *rank != awaited.cell.rank);
            let counts = |&&(_, rank): &&(Op, usize)| !others || rank != awaited.cell.rank;
            for (op, rank) in missing.iter().filter(counts).take(4) {
                notes.push(format!("rank {rank} has not come to {}", self.at(machine, *op)));
            }
            if missing.is_empty() {
                let came = history.map_or(0, |history| history.notes.len());
                notes.push(format!("{came} notifies of the cell were made, and nobody is left who makes one"));
                for note in history.into_iter().flat_map(|history| history.notes.iter().rev().take(2)) {
                    notes.push(format!("the last ones: {}: {}", who(machine, note.by), self.at(machine, note.op)));
                }
            }
        }
        let condition = self.condition(machine, &stuck[0].awaited);
        let (message, hint) = if shown.rule.code == rules::LOST_SIGNAL.code {
            (
                format!("the wait for {condition} never ends"),
                "count the notifies of this cell, and compare cell and peer",
            )
        } else if shown.rule.code == rules::MISSED_VALUE.code {
            (
                format!("the cell has moved on before the wait for {condition} looked"),
                "wait for >=, or notify again only after an answer",
            )
        } else {
            (format!("everybody waits, this task for {condition}"), "notify before waiting, on every rank")
        };
        let in_call = self.plan.call_of(stuck[0].awaited.op).is_some();
        let hint =
            if in_call { "every rank of the window makes the call, in the same order as other ones" } else { hint };
        Parts { message, notes, hint }
    }

    fn left(&self, machine: &Machine, cell: Cell, launch: u32, note: usize) -> Parts {
        let history = &machine.cells[&cell];
        let note = &history.notes[note];
        let (before, after) = (history.value_before(launch), history.value_before(launch + 1));
        Parts {
            message: format!(
                "launch {} finds {before} in {} and leaves {after}, but the next one expects the same of it",
                launch + 1,
                self.cell(machine, cell, note.op)
            ),
            notes: vec![format!("changed last by {}: {}", who(machine, note.by), self.at(machine, note.op))],
            hint: "compare with a threshold that grows with the launch, or take back what was counted",
        }
    }

    fn stop(&self, machine: &Machine) -> Parts {
        match &machine.stop {
            Some(Stop::Fault(fault, by)) => Parts {
                message: self.fault(machine, fault, *by),
                notes: by.iter().map(|&by| who(machine, by)).collect(),
                hint: "",
            },
            Some(Stop::Callback(op, by, status)) => Parts {
                message: format!("{} returned {status}", self.function(machine, *op)),
                notes: by.iter().map(|&by| who(machine, by)).collect(),
                hint: "",
            },
            Some(Stop::TooLong) | None => unreachable!("this is no finding"),
        }
    }

    fn fault(&self, machine: &Machine, fault: &Fault, by: Option<u32>) -> String {
        let Fault { op, kind, dim, operand, offsets, extents } = fault;
        let list = |numbers: &[i64]| {
            let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
            format!("[{}]", numbers.join(", "))
        };
        match kind {
            FaultKind::Bounds => {
                let tensors = tensors(machine, *op);
                let tensor = tensors.get(*operand as usize).or(tensors.first());
                let shape = tensor.map(|&t| (self.text.tensor(t), list(&machine.plan.shapes[t])));
                let (name, shape) = shape.unwrap_or_default();
                let (at, size) = (list(offsets), list(extents));
                format!("{at} with extents {size} is outside of {name} {shape}, in dimension {dim}")
            }
            FaultKind::Peer => match offsets[..] {
                [first, end] => {
                    format!("peers {first}..{end} are not a round of the {} ranks of the window", extents[0])
                }
                _ => format!("peer {} is not one of the {} ranks of the window", offsets[0], extents[0]),
            },
            FaultKind::Array => format!("index {} is outside of an array of {}", offsets[0], extents[0]),
            FaultKind::Division => "an integer is divided by zero".into(),
            FaultKind::Step => format!("the step of the loop is {}", offsets[0]),
            FaultKind::Require => self.required(machine, *op, offsets, extents[0]),
            FaultKind::Agree => {
                let rank = by.map(|by| machine.who[by as usize].rank);
                format!("rank {} {}", rank.unwrap_or_default(), self.disagreed(machine, offsets, extents[0]))
            }
        }
    }

    fn required(&self, machine: &Machine, op: Op, offsets: &[i64], right: i64) -> String {
        let OpKind::Require { cmp, a, b, .. } = machine.plan.program.ops[op].kind else {
            unreachable!("it was required")
        };
        let value = |side: Scalar, value: i64| match self.text.scalar(side) {
            text if text == value.to_string() => text,
            text => format!("{text}, which is {value},"),
        };
        let about = if offsets[1] < 0 { String::new() } else { format!(", about rank {}", offsets[1]) };
        format!("{} must be {cmp} {}{about}", value(a, offsets[0]), value(b, right).trim_end_matches(','))
    }

    fn disagreed(&self, machine: &Machine, offsets: &[i64], mine: i64) -> String {
        let known = Known { world: Some(machine.plan.nranks as i64), dims: &[] };
        let (calls, theirs) = (calls(machine.plan.program, known), offsets[0]);
        let same = theirs as u16 == mine as u16;
        let call = |number: i64| {
            let root = if same { format!(" with root {}", number >> 16) } else { String::new() };
            match calls.iter().find(|call| call.number == number as u16) {
                Some(call) if call.place.is_empty() => format!("{}{root}", call.name),
                Some(call) => format!("{}{root} ({})", call.name, call.place),
                None => format!("something else ({number})"),
            }
        };
        format!("calls {}, but rank {} calls {}", call(mine), offsets[1], call(theirs))
    }

    fn differs(&self, machine: &Machine, shown: &Shown, arg: usize, part: usize, byte: usize) -> Parts {
        let program = machine.plan.program;
        let host = program.host.as_ref().expect("a program that ran has a host driver");
        let Param::Tensor(tensor) = host.params[arg % host.params.len()] else { unreachable!("a result is a tensor") };
        let shape = &machine.plan.shapes[tensor][usize::from(program.is_sliced(tensor))..];
        let indices = coordinates(byte, program.tensors[tensor].dtype, shape);
        let indices: Vec<String> = indices.iter().map(i64::to_string).collect();
        let name = format!("{}[{}]", self.text.tensor(tensor), indices.join(", "));
        let notes = shown.other.map(|op| format!("the other op: {}", self.at(machine, op)));
        let sums = machine.unordered_sums.is_some();
        Parts {
            message: format!("{name} of rank {part} depends on the schedule"),
            notes: notes.into_iter().collect(),
            hint: if sums { "floats round differently in another order: add them up at the receiver" } else { "" },
        }
    }

    /// `moe.pld:52: put recv[me, 0] @peer <- x`.
    fn at(&self, machine: &Machine, op: Op) -> String {
        let program = machine.plan.program;
        match program.place(program.ops[op].loc) {
            place if place.is_empty() => self.op(op),
            place => format!("{place}: {}", self.op(op)),
        }
    }

    /// An op as text; of a collective, also the call that it is part of.
    fn op(&self, op: Op) -> String {
        let text = self.text.op(op);
        match self.plan.call_of(op) {
            Some(call) => format!("{} ({text})", self.text.op(call)),
            None => text,
        }
    }

    fn function(&self, machine: &Machine, op: Op) -> String {
        let program = machine.plan.program;
        match &program.ops[op].kind {
            OpKind::HostTask { name, .. } => name.clone(),
            kind => kind.task().map(|(task, _)| program.tasks[task].name.clone()).unwrap_or_default(),
        }
    }

    fn condition(&self, machine: &Machine, awaited: &Awaited) -> String {
        format!("{} {} {}", self.cell_name(machine, awaited.cell, awaited.op), awaited.cmp, awaited.expected)
    }

    /// `sig[0, 0] of rank 1`.
    fn cell(&self, machine: &Machine, cell: Cell, op: Op) -> String {
        format!("{} of rank {}", self.cell_name(machine, cell, op), cell.rank)
    }

    fn cell_name(&self, machine: &Machine, cell: Cell, op: Op) -> String {
        let window = match machine.plan.program.ops[op].kind {
            OpKind::Notify { window, .. } | OpKind::Wait { window, .. } | OpKind::DeferWait { window, .. } => window,
            _ => unreachable!("a signal op"),
        };
        self.elements(machine, machine.plan.program.root(window), &(cell.at..cell.at + 4), true)
    }

    /// The place that an access touched: `inbox[1, 0] to inbox[1, 63] of rank 0`.
    fn place(&self, machine: &Machine, piece: Piece, bytes: &Range<usize>, access: &Access) -> String {
        let program = machine.plan.program;
        let window = machine.memory.window_of(piece);
        let fits = |effect: &Effect| match &effect.place {
            Place::Memory { tensor, .. } => {
                let same_kind = program.is_window(*tensor) == window.is_some();
                let buffer = window.and_then(|_| buffer_at(machine, bytes.start));
                same_kind && buffer.is_none_or(|buffer| machine.plan.buffers_of(*tensor).contains(&buffer))
            }
            _ => false,
        };
        let effects = effects(program, &program.ops[access.op].kind);
        let right =
            effects.iter().find(|e| e.access == access.does && fits(e)).or_else(|| effects.iter().find(|e| fits(e)));
        let name = match right.map(|effect| &effect.place) {
            Some(Place::Memory { tensor, .. }) => {
                self.elements(machine, program.root(*tensor), bytes, window.is_some())
            }
            _ => "memory".into(),
        };
        match (window, machine.memory.argument_of(piece)) {
            (Some(rank), _) => format!("{name} of rank {rank}"),
            (None, Some((_, rank))) => format!("{name} of rank {rank}"),
            (None, None) => name,
        }
    }

    fn elements(&self, machine: &Machine, tensor: Tensor, bytes: &Range<usize>, window: bool) -> String {
        let plan = machine.plan;
        let (shape, dtype) = (&plan.shapes[tensor], plan.program.tensors[tensor].dtype);
        let start =
            if window { buffer_at(machine, bytes.start).map_or(0, |b| plan.layout.buffers[b].offset) } else { 0 };
        let name = self.text.tensor(tensor);
        let indices = |byte: usize| {
            let indices: Vec<String> = coordinates(byte - start, dtype, shape).iter().map(i64::to_string).collect();
            format!("{name}[{}]", indices.join(", "))
        };
        let (first, last) = (indices(bytes.start), indices(bytes.end - 1));
        if first == last { first } else { format!("{first} to {last}") }
    }
}

/// `rank 1, task push block 2, launch 3`.
fn who(machine: &Machine, by: u32) -> String {
    let Who { rank, launch, task, block, .. } = &machine.who[by as usize];
    let name = &machine.plan.program.tasks[*task].name;
    let block = block.map(|block| format!(" block {block}")).unwrap_or_default();
    let launch = if machine.plan.options.launches > 1 { format!(", launch {}", launch + 1) } else { String::new() };
    format!("rank {rank}, task {name}{block}{launch}")
}

fn verb(does: Does) -> &'static str {
    match does {
        Does::Read => "reads",
        Does::Write => "writes",
        Does::Accumulate => "adds to",
        Does::SignalSet | Does::SignalAdd => "notifies",
        Does::Await => "waits for",
    }
}

/// The tensors of an op, the destination first.
fn tensors(machine: &Machine, op: Op) -> Vec<Tensor> {
    match machine.plan.program.ops[op].kind {
        OpKind::Put { dst, src, .. } | OpKind::Get { dst, src, .. } | OpKind::GetReduce { dst, src, .. } => {
            vec![dst, src]
        }
        OpKind::Slice { src, .. }
        | OpKind::Read { src, .. }
        | OpKind::Load { src, .. }
        | OpKind::RemoteLoad { src, .. } => vec![src],
        OpKind::Write { dst, .. } | OpKind::Store { dst, .. } | OpKind::RemoteStore { dst, .. } => vec![dst],
        OpKind::Notify { window, .. } | OpKind::Wait { window, .. } | OpKind::DeferWait { window, .. } => vec![window],
        ref kind => {
            kind.task().and_then(|(_, options)| options.predicate.as_ref()).map(|p| p.tensor).into_iter().collect()
        }
    }
}

/// The buffer that has a byte of the windows.
fn buffer_at(machine: &Machine, byte: usize) -> Option<Buffer> {
    let layout = &machine.plan.layout;
    let has = |buffer: &Buffer| {
        let place = layout.buffers[*buffer];
        (place.offset..place.offset + place.bytes).contains(&byte)
    };
    machine.plan.program.buffers.keys().find(has)
}

fn coordinates(byte: usize, dtype: DType, shape: &[i64]) -> Vec<i64> {
    let mut element = byte as i64 / dtype.size();
    let mut indices = vec![0; shape.len()];
    for (index, &extent) in indices.iter_mut().zip(shape).rev() {
        *index = element % extent.max(1);
        element /= extent.max(1);
    }
    indices
}
