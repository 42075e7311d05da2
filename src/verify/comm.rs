//! Signals and transfers between ranks: op by op, and how the ops of a program fit together.

use std::collections::HashSet;

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::ir::effects::{Access, Effect, Place, Scope};
use crate::ir::extent::Shape;
use crate::ir::{Atomic, Buffer, DType, Entry, Expr, Op, OpKind, Staging, Task, Tensor, WaitCmp};

use super::host::Uses;
use super::range::Interval;
use super::{Context, Position, collectives, rules};

/// Windows, signals, atomics and chunks of one op; whether its operands are windows where they must be.
pub(super) fn check(cx: &mut Context, here: Position) -> bool {
    let op = here.op;
    let names = cx.names;
    let kind = cx.kind(op);
    let window = match *kind {
        OpKind::Collective(ref collective) => return collectives::check(cx, here, collective),
        OpKind::Put { dst: window, .. }
        | OpKind::Get { src: window, .. }
        | OpKind::GetReduce { src: window, .. }
        | OpKind::RemoteLoad { src: window, .. }
        | OpKind::RemoteStore { dst: window, .. }
        | OpKind::Notify { window, .. }
        | OpKind::Wait { window, .. }
        | OpKind::DeferWait { window, .. }
        | OpKind::Scalar { expr: Expr::Rank(window) | Expr::NRanks(window), .. } => window,
        _ => return true,
    };
    let what = kind.name();
    let dtype = cx.program.tensors[window].dtype;
    let name = || names.tensor(window);
    if !cx.is_window(window) {
        let name = name();
        cx.find(&rules::NOT_WINDOW, op, format!("{what} works on a window, but {name} is a tensor of this rank only"))
            .note(names.tensor_is(window))
            .hint(format!(
                "declare the parameter as a window, and pass a view of a window buffer: {name}: window[...] {dtype}"
            ));
    } else if matches!(kind, OpKind::Notify { .. } | OpKind::Wait { .. } | OpKind::DeferWait { .. })
        && dtype != DType::I32
    {
        cx.find(&rules::NOT_SIGNAL, op, format!("a signal is a cell of an int32 window, but {} is {dtype}", name()))
            .note(names.tensor_is(window))
            .hint("use a window of i32 of its own for signals");
    }
    if let OpKind::Put { atomic: Atomic::Add, .. } | OpKind::RemoteStore { atomic: Atomic::Add, .. } = kind
        && !dtype.has_atomic_add()
    {
        let able: Vec<&str> = DType::ALL.iter().filter(|d| d.has_atomic_add()).map(|d| d.name()).collect();
        cx.find(&rules::ATOMIC_DTYPE, op, format!("{dtype} has no atomic add"))
            .note(names.tensor_is(window))
            .note(format!("{} have", able.join(", ")))
            .hint("accumulate in a wider window, and cast afterwards");
    }
    if let OpKind::Put { staging, .. } | OpKind::Get { staging, .. } = kind {
        chunks(cx, op, what, *staging);
    }
    cx.is_window(window)
}

fn chunks(cx: &mut Context, op: Op, what: &str, staging: Staging) {
    let Staging { chunk_rows, chunk_cols, pipeline } = staging;
    if chunk_rows < 0 || chunk_cols < 0 {
        cx.find(&rules::CHUNKS, op, format!("the chunks of this {what} are [{chunk_rows}, {chunk_cols}]"))
            .hint("give the rows and columns of a chunk, or 0 for all");
    } else if pipeline && (chunk_rows == 0 || chunk_cols == 0) {
        cx.find(&rules::CHUNKS, op, format!("a pipelined {what} needs rows and columns of a chunk"))
            .note(format!("chunk [{chunk_rows}, {chunk_cols}]: 0 stands for all"))
            .hint("a pipeline moves one chunk while it loads the next: add chunk [rows, cols], or leave pipeline out");
    }
}

/// Offsets of cells, as intervals.
type Cell = SmallVec<[Interval; 4]>;

/// A notify or wait, to be compared with others on the same window.
struct Signal {
    window: Tensor,
    cell: Cell,
    op: Op,
    access: Access,
    reached: bool,
}

/// What a program does to windows, collected over its entries.
#[derive(Default)]
pub(super) struct Signals {
    signals: Vec<Signal>,
    /// Windows that are read, and written, other than by signals.
    read: SecondaryMap<Tensor, bool>,
    written: SecondaryMap<Tensor, bool>,
    stores: Stores,
}

/// Remote stores that no notify of their own task has followed so far.
#[derive(Default)]
struct Stores {
    entry: Option<Entry>,
    task: Option<Task>,
    /// The last one of the task at hand.
    present: Option<Op>,
    /// One of an earlier task.
    earlier: Option<(Op, Task)>,
}

impl Signals {
    /// Remembers what an op does to windows.
    pub fn note(&mut self, cx: &mut Context, here: Position, effects: &[Effect]) {
        for effect in effects {
            let Place::Memory { tensor, ref at, .. } = effect.place else { continue };
            if !cx.is_window(tensor) {
                continue;
            }
            let window = cx.root(tensor);
            match effect.access {
                Access::Read => self.read[window] = true,
                Access::Write | Access::Accumulate => self.written[window] = true,
                access => {
                    // Offsets into a slice are not those of its window.
                    let of = |s| if tensor == window { cx.ranges.of(s) } else { Interval::ALL };
                    let cell = at.iter().map(|&s| of(s)).collect();
                    self.signals.push(Signal { window, cell, op: here.op, access, reached: here.reached });
                }
            }
        }
        self.stores.note(cx, here);
    }

    /// The rules on all signals together.
    pub fn finish(&self, cx: &mut Context, uses: &Uses) {
        let mut buffers: SecondaryMap<Buffer, Signalled> = SecondaryMap::new();
        for &(window, buffer) in uses.bindings() {
            let signalled = &mut buffers[buffer];
            signalled.read |= self.read[window];
            signalled.written |= self.written[window];
        }
        let bound = uses.buffers_of_windows();
        for signal in &self.signals {
            for &buffer in &bound[signal.window] {
                buffers[buffer].note(cx, signal);
            }
        }
        for buffer in cx.program.buffers.keys() {
            buffers[buffer].check(cx, buffer);
        }
        for signal in self.signals.iter().filter(|s| s.access == Access::Await && s.reached) {
            let unsatisfied = bound[signal.window].iter().find(|&&b| !buffers[b].changes(&signal.cell));
            if let Some(&buffer) = unsatisfied {
                unsatisfied_wait(cx, signal, buffer, &buffers[buffer]);
            }
        }
    }
}

/// What happens to the cells of one buffer.
#[derive(Clone, Default)]
struct Signalled {
    sets: Cells,
    adds: Cells,
    waited: bool,
    read: bool,
    written: bool,
    /// The shape of the views, and whether they all have it.
    shape: Option<Shape>,
    reshaped: bool,
}

impl Signalled {
    fn note(&mut self, cx: &Context, signal: &Signal) {
        let shape = &cx.program.tensors[signal.window].shape;
        match &self.shape {
            None => self.shape = Some(shape.clone()),
            Some(known) => {
                let same = known.len() == shape.len() && known.iter().zip(shape).all(|(&a, &b)| cx.same(a, b));
                self.reshaped |= !same;
            }
        }
        match signal.access {
            Access::SignalSet => self.sets.add(signal),
            Access::SignalAdd => self.adds.add(signal),
            _ => self.waited = true,
        }
    }

    /// A notify may change the cell.
    fn changes(&self, cell: &Cell) -> bool {
        let any = |cells: &Cells| if self.reshaped { !cells.is_empty() } else { cells.overlapping(cell).is_some() };
        any(&self.sets) || any(&self.adds)
    }

    fn check(&self, cx: &mut Context, buffer: Buffer) {
        let names = cx.names;
        let program = cx.program;
        let name = &program.buffers[buffer].name;
        let both = if self.reshaped {
            self.sets.first().zip(self.adds.first())
        } else {
            self.sets.iter().find_map(|(cell, set)| self.adds.overlapping(cell).map(|add| (set, add)))
        };
        if let Some((set, add)) = both {
            cx.find(&rules::SET_AND_ADD, set, format!("a cell of {name} may be both set and added to"))
                .note(format!("added to by {}{}", names.op(add), names.at(add)))
                .note("which of them comes last is not ordered, so the cell may lose notifies")
                .hint("use one of += and = for a cell: count with +=, or keep a window of its own for what is set");
        }
        if let Some(notify) = self.adds.first().or(self.sets.first())
            && !self.waited
            && !self.read
        {
            cx.find(&rules::NEVER_WAITED, notify, format!("{name} is notified, but no rank ever waits for it"))
                .hint("wait for the cell where the data is needed, or leave the notify out");
        }
    }
}

fn unsatisfied_wait(cx: &mut Context, signal: &Signal, buffer: Buffer, signalled: &Signalled) {
    let (window, at, expected, cmp) = match cx.kind(signal.op) {
        OpKind::Wait { window, at, expected, cmp } => (window, at, expected, *cmp),
        OpKind::DeferWait { window, at, expected } => (window, at, expected, WaitCmp::Ge),
        _ => return,
    };
    let names = cx.names;
    let expected = cx.ranges.of(*expected).value();
    let holds_at_once = expected.is_some_and(|value| match cmp {
        WaitCmp::Ge => value <= 0,
        WaitCmp::Eq => value == 0,
    });
    if holds_at_once {
        return;
    }
    let at: Vec<String> = at.iter().map(|&s| names.scalar(s)).collect();
    let cell = format!("{}[{}]", names.tensor(*window), at.join(", "));
    if signalled.written {
        cx.find(&rules::UNPUBLISHED, signal.op, format!("{cell} is only written, never notified"))
            .note("a write or put publishes nothing, so the wait may succeed before the data is there")
            .hint("notify the cell after the writes that it stands for");
        return;
    }
    let name = &cx.program.buffers[buffer].name;
    let notified = signalled.adds.first().or(signalled.sets.first());
    let note = match notified {
        Some(notify) => format!("other cells of {name} are changed, as by {}{}", names.op(notify), names.at(notify)),
        None => format!("no entry notifies {name}"),
    };
    cx.find(&rules::NEVER_NOTIFIED, signal.op, format!("no notify changes {cell}, so this wait never ends"))
        .note(note)
        .hint(format!(
            "let a rank notify it: notify {cell} @peer += 1; or a program that shares the window, in a pool"
        ));
}

/// Cells that some signal touches.
#[derive(Clone, Default)]
struct Cells {
    distinct: Vec<(Cell, Op)>,
    seen: HashSet<Cell>,
    /// All of them, once there are too many to compare one by one.
    hull: Option<(Cell, Op)>,
}

impl Cells {
    const MOST_DISTINCT: usize = 64;

    fn add(&mut self, signal: &Signal) {
        if let Some((hull, _)) = &mut self.hull {
            hull.iter_mut().zip(&signal.cell).for_each(|(a, b)| *a = a.hull(*b));
        } else if self.distinct.len() == Self::MOST_DISTINCT {
            let mut cells = std::mem::take(&mut self.distinct).into_iter();
            let (mut hull, op) = cells.next().expect("there are many");
            for (cell, _) in cells {
                hull.iter_mut().zip(&cell).for_each(|(a, b)| *a = a.hull(*b));
            }
            self.hull = Some((hull, op));
            self.add(signal);
        } else if self.seen.insert(signal.cell.clone()) {
            self.distinct.push((signal.cell.clone(), signal.op));
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&Cell, Op)> {
        self.distinct.iter().chain(&self.hull).map(|(cell, op)| (cell, *op))
    }

    fn first(&self) -> Option<Op> {
        self.iter().next().map(|(_, op)| op)
    }

    fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// A signal that may touch the cell.
    fn overlapping(&self, cell: &Cell) -> Option<Op> {
        let meet = |other: &Cell| !other.iter().zip(cell).any(|(a, b)| a.disjoint(*b));
        self.iter().find(|(other, _)| meet(other)).map(|(_, op)| op)
    }
}

impl Stores {
    /// A notify follows remote stores of an earlier task: on targets where these do not drain, it may overtake them.
    fn note(&mut self, cx: &mut Context, here: Position) {
        if here.entry != self.entry {
            *self = Self { entry: here.entry, ..Self::default() };
        }
        if here.task != self.task {
            if let (Some(store), Some(task)) = (self.present.take(), self.task) {
                self.earlier = Some((store, task));
            }
            self.task = here.task;
        }
        match cx.kind(here.op) {
            OpKind::RemoteStore { .. } => self.present = Some(here.op),
            kind @ (OpKind::Notify { .. } | OpKind::Collective(_)) if here.scope == Scope::InCore => {
                self.present = None;
                let peers = kind.peer().map_or(Interval::ALL, |peer| cx.ranges.of(peer));
                if let Some((store, task)) = self.earlier
                    && let OpKind::RemoteStore { peer: to, .. } = cx.kind(store)
                    && !peers.disjoint(cx.ranges.of(*to))
                {
                    self.earlier = None;
                    let names = cx.names;
                    let task = &cx.program.tasks[task].name;
                    cx.find(
                        &rules::UNDRAINED_STORE,
                        here.op,
                        format!("this {} does not cover the remote_store of task {task}", kind.name()),
                    )
                    .note(format!("{}{}", names.op(store), names.at(store)))
                    .note("on an NPU a remote_store may still be under way when its task ends")
                    .hint("notify in the task that stores, or move the data with put");
                }
            }
            _ => {}
        }
    }
}
