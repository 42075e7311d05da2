//! What a run shows: which rule each race, deadlock and odd signal breaks.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::machine::{Machine, Odd, Raced, Stop};
use super::rules;
use super::shadow::Access;
use super::signal::{Awaited, Cell, History, Note};
use super::task::{At, Block, Who};
use crate::ir::extent::Known;
use crate::ir::program::{Param, TensorDef};
use crate::ir::{Direction, NotifyOp, Op, OpKind, Scalar, Tensor, WaitCmp};
use crate::verify::rules::Rule;

/// Something that a run shows.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The rule.
    pub rule: &'static Rule,
    /// The op that is told first.
    pub op: Option<Op>,
    /// The other op, if there is one.
    pub other: Option<Op>,
    /// Where to find the rest.
    pub detail: Detail,
}

/// Which part of the run it is about.
#[derive(Clone, Debug)]
pub enum Detail {
    /// A race, by number, and the wait that let it happen.
    Race(usize, Option<Loose>),
    /// Something odd, by number.
    Odd(usize),
    /// Blocks that wait for ever: what for, and who.
    Stuck(Vec<Stuck>),
    /// A cell that is left other than it was found: the cell, the launch, the note.
    Left(Cell, u32, usize),
    /// The run has stopped.
    Stop,
    /// An argument, its part and a byte that differs.
    Differs(usize, usize, usize),
}

/// A wait that was satisfied without the note that it was meant to see.
#[derive(Clone, Copy, Debug)]
pub struct Loose {
    /// The wait, by number.
    pub seen: u32,
    /// The note, by number in the cell's history.
    pub note: usize,
}

/// A block that waits for ever.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// The task, by number of the run.
    pub by: u32,
    /// What it waits for.
    pub awaited: Awaited,
    /// Notifies that have not been made, and the ranks that have them before them.
    pub missing: Vec<(Op, usize)>,
}

/// What identifies a finding among all runs.
pub type Key = (&'static str, Option<Op>, Option<Op>);

impl Shown {
    /// The same in every run. A wait that lets too much happen is told once, with one of the things that it lets happen.
    pub fn key(&self) -> Key {
        let loose = [rules::STALE_SIGNAL.code, rules::AMBIGUOUS_COUNTER.code].contains(&self.rule.code);
        (self.rule.code.0, self.op, self.other.filter(|_| !loose))
    }
}

/// Everything that a run shows that has come to its end.
pub fn classify(machine: &Machine, reference: Option<&[Vec<u8>]>) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    match &machine.stop {
        Some(Stop::Fault(fault, _)) => {
            shown.push(Shown { rule: &rules::FAULT, op: Some(fault.op), other: None, detail: Detail::Stop });
        }
        Some(Stop::Callback(op, ..)) => {
            shown.push(Shown { rule: &rules::CALLBACK, op: Some(*op), other: None, detail: Detail::Stop });
        }
        Some(Stop::TooLong) | None => {}
    }
    shown.extend(machine.races.iter().enumerate().map(|(index, raced)| race(machine, index, raced)));
    for (index, odd) in machine.odd.iter().enumerate() {
        let (rule, op, other) = match odd {
            Odd::Overwritten { cell, lost, by } => {
                let notes = &machine.cells[cell].notes;
                (&rules::OVERWRITTEN_SIGNAL, notes[*by].op, Some(notes[*lost].op))
            }
            Odd::Moved { cell, seen, by } => {
                let wait = machine.seen[*seen as usize].awaited.expect("it is a wait").op;
                (&rules::MISSED_VALUE, wait, Some(machine.cells[cell].notes[*by].op))
            }
            Odd::Stale { awaited, launch, .. } => {
                let notes = &machine.cells[&awaited.cell].notes;
                let left = notes.iter().rfind(|note| note.launch < *launch).map(|note| note.op);
                (&rules::STALE_SIGNAL, awaited.op, left)
            }
            Odd::Waiters { by, .. } => (&rules::WAITERS, machine.who[*by as usize].op, None),
        };
        shown.push(Shown { rule, op: Some(op), other, detail: Detail::Odd(index) });
    }
    if machine.stop.is_none() && !machine.is_done() {
        shown.extend(stuck(machine));
    }
    if machine.is_done() {
        shown.extend(left(machine));
        if machine.races.is_empty()
            && let Some((arg, part, byte)) = reference.and_then(|reference| differs(machine, reference))
        {
            shown.push(unstable(machine, arg, part, byte));
        }
    }
    // One that another one explains.
    let stale: HashSet<Option<Op>> =
        shown.iter().filter(|s| s.rule.code == rules::STALE_SIGNAL.code).map(|s| s.op).collect();
    shown.retain(|s| s.rule.code != rules::UNRESTORED_SIGNAL.code || !stale.contains(&s.op));
    let mut keys = HashSet::new();
    shown.retain(|s| keys.insert(s.key()));
    shown
}

fn race(machine: &Machine, index: usize, raced: &Raced) -> Shown {
    let (first, second) = (&raced.race.first, &raced.race.second);
    let (who, other) = (&machine.who[first.by as usize], &machine.who[second.by as usize]);
    let of =
        |rule, op, other, loose| Shown { rule, op: Some(op), other: Some(other), detail: Detail::Race(index, loose) };
    if first.by == second.by {
        return of(&rules::UNORDERED_PUTS, second.op, first.op, None);
    }
    if raced.undrained && first.time.lane != first.issued.lane {
        return of(&rules::UNDRAINED, second.op, first.op, None);
    }
    // The same finding, whichever of the two came first.
    let (later, earlier) = (first.op.max(second.op), first.op.min(second.op));
    if who.rank == other.rank && who.launch == other.launch {
        return of(&rules::MISSING_EDGE, later, earlier, None);
    }
    if first.does.is_write() && second.does.is_write() {
        return match loose(machine, second, first) {
            Some((rule, found)) => of(rule, wait_op(machine, found), second.op, Some(found)),
            None => of(&rules::OVERLAPPING_WRITES, later, earlier, None),
        };
    }
    let (read, write) = if first.does.is_write() { (second, first) } else { (first, second) };
    let (reader, writer) = (&machine.who[read.by as usize], &machine.who[write.by as usize]);
    let early = if reader.launch < writer.launch { None } else { loose(machine, read, write) };
    let is_stale = early.as_ref().is_some_and(|(rule, _)| rule.code == rules::STALE_SIGNAL.code);
    let (after, by) = if first.does.is_write() { first.after } else { read.after };
    let known = after.piece > 0 && (!first.does.is_write() || raced.knows_previous);
    let replaced = &machine.who.get(by as usize).filter(|_| known);
    let reuse = match reader.launch.cmp(&writer.launch) {
        Ordering::Less => true,
        Ordering::Greater => false,
        // What the reader wanted was there already.
        Ordering::Equal => !is_stale && replaced.is_some_and(|r| r.launch == reader.launch && r.rank == writer.rank),
    };
    let (rule, told, other, found) = if reuse {
        (&rules::EARLY_REUSE, write, read, loose(machine, write, read))
    } else {
        (&rules::EARLY_READ, read, write, early)
    };
    match found {
        Some((rule, found)) => of(rule, wait_op(machine, found), told.op, Some(found)),
        None => of(rule, told.op, other.op, None),
    }
}

fn wait_op(machine: &Machine, loose: Loose) -> Op {
    machine.seen[loose.seen as usize].awaited.expect("it is a wait").op
}

/// A wait before `late` that went on without the note that stands for `early`, though others satisfied it.
fn loose(machine: &Machine, late: &Access, early: &Access) -> Option<(&'static Rule, Loose)> {
    let Who { launch, rank, .. } = machine.who[early.by as usize];
    waits(machine, late.wait).into_iter().find_map(|seen| {
        let wait = &machine.seen[seen as usize];
        let history = &machine.cells.get(&wait.awaited?.cell)?;
        let stands_for = |note: &Note| {
            note.launch == launch && machine.who[note.by as usize].rank == rank && note.clock.covers(early.time)
        };
        // The first one that does; later ones do too.
        let note = history.notes.iter().position(stands_for).filter(|&note| note >= wait.notes)?;
        let others = |other: &Note| other.launch == wait.launch && other.by != history.notes[note].by;
        let loose = Loose { seen, note };
        if is_stale(machine, seen) {
            Some((&rules::STALE_SIGNAL, loose))
        } else if history.notes[..wait.notes].iter().any(others) {
            Some((&rules::AMBIGUOUS_COUNTER, loose))
        } else {
            None
        }
    })
}

/// Satisfied waits that somebody stands behind, nearest first.
fn waits(machine: &Machine, from: u32) -> Vec<u32> {
    const MOST: usize = 4096;
    let (mut found, mut open, mut known) = (Vec::new(), vec![from], HashSet::new());
    while let Some(wait) = open.pop() {
        if wait == 0 || found.len() == MOST || !known.insert(wait) {
            continue;
        }
        if machine.seen[wait as usize].awaited.is_some() {
            found.push(wait);
        }
        open.extend(&machine.seen[wait as usize].before);
    }
    found
}

/// The wait saw nothing new: earlier launches, or what an equal wait before it had seen, satisfied it.
fn is_stale(machine: &Machine, seen: u32) -> bool {
    let wait = &machine.seen[seen as usize];
    let awaited = wait.awaited.expect("it is a wait");
    let history = &machine.cells[&awaited.cell];
    if wait.launch > 0 && awaited.holds(history.value_before(wait.launch)) {
        return true;
    }
    history.seen.iter().any(|&(_, notes, other)| {
        let earlier = machine.seen[other as usize].awaited.expect("it is a wait");
        other < seen
            && earlier.expected == awaited.expected
            && awaited.holds(history.notes[..notes].last().map_or(0, |note| note.result))
            && notes > 0
            && notes <= wait.notes
            && !history.notes[notes..wait.notes].iter().any(|note| note.by != wait.by && note.value > 0)
    })
}

/// Blocks that wait when nobody can go on.
fn stuck(machine: &Machine) -> Vec<Shown> {
    let mut all: Vec<Stuck> = Vec::new();
    for block in machine.active() {
        let cells: Vec<Awaited> = match &block.at {
            At::Wait(awaited) => vec![*awaited],
            At::End(cells) => cells.clone(),
            At::Begin | At::Notify(_) => Vec::new(),
        };
        let open = cells.into_iter().find(|a| !a.holds(machine.memory.cell(a.cell.rank, a.cell.at)));
        let until = machine.launch(block.key.0);
        all.extend(open.map(|awaited| Stuck { by: block.id, awaited, missing: missing(machine, awaited, until) }));
    }
    all.sort_by_key(|stuck| (stuck.awaited.op, stuck.by));
    let mut shown = Vec::new();
    for stuck in &all {
        let history = machine.cells.get(&stuck.awaited.cell);
        let passed = history.and_then(|history| {
            let at = history.notes.iter().position(|note| stuck.awaited.holds(note.result))?;
            history.notes.get(at + 1)
        });
        if let Some(note) = passed.filter(|_| stuck.awaited.cmp == WaitCmp::Eq) {
            let detail = Detail::Stuck(vec![stuck.clone()]);
            shown.push(Shown { rule: &rules::MISSED_VALUE, op: Some(stuck.awaited.op), other: Some(note.op), detail });
        } else if stuck.missing.is_empty() {
            let detail = Detail::Stuck(vec![stuck.clone()]);
            shown.push(Shown { rule: &rules::LOST_SIGNAL, op: Some(stuck.awaited.op), other: None, detail });
        }
    }
    if shown.is_empty()
        && let Some(first) = all.first()
    {
        let other = all.iter().map(|stuck| stuck.awaited.op).find(|&op| op != first.awaited.op);
        shown.push(Shown { rule: &rules::DEADLOCK, op: Some(first.awaited.op), other, detail: Detail::Stuck(all) });
    }
    shown
}

/// Notifies of a cell's buffer that somebody still has before them, up to a launch, and their ranks.
fn missing(machine: &Machine, awaited: Awaited, until: u32) -> Vec<(Op, usize)> {
    let plan = machine.plan;
    let notifies = notifies(machine, awaited);
    let mut missing = Vec::new();
    for &rank in plan.domain(awaited.buffer) {
        let (held, behind) = machine.to_come(rank, until);
        for &op in &notifies {
            let inside = |&task: &Op| is_inside(machine, task, op);
            let running = machine.active().filter(|block| block.key.0 == rank).any(|block| comes(machine, block, op));
            let to_come = held.iter().any(inside) || behind.iter().any(inside);
            if running || to_come {
                missing.push((op, rank));
            }
        }
    }
    missing
}

/// The notifies of a buffer that may bring a cell there.
fn notifies(machine: &Machine, awaited: Awaited) -> Vec<Op> {
    let plan = machine.plan;
    let known = Known { world: Some(plan.nranks as i64), dims: plan.options.dims };
    let helps = |value: Scalar, op: NotifyOp| match (plan.program.int_value(value, known), op) {
        (Some(value), NotifyOp::Set) => awaited.holds(value as i32),
        (Some(value), NotifyOp::Add) => awaited.cmp == WaitCmp::Eq || value > 0,
        (None, _) => true,
    };
    let notifies = plan.program.ops.iter().filter(|(_, data)| match data.kind {
        OpKind::Notify { window, value, op, .. } => {
            helps(value, op) && plan.buffers_of(window).contains(&awaited.buffer)
        }
        _ => false,
    });
    notifies.map(|(op, _)| op).collect()
}

fn is_inside(machine: &Machine, outer: Op, op: Op) -> bool {
    let program = machine.plan.program;
    let mut inside = false;
    for block in program.ops[outer].kind.blocks() {
        program.walk(block, &mut |other| inside |= other == op);
    }
    inside
}

/// A block has an op before it.
fn comes(machine: &Machine, block: &Block, op: Op) -> bool {
    let task = machine.who[block.id as usize].op;
    if !is_inside(machine, task, op) {
        return false;
    }
    let at = match &block.at {
        At::Begin => return true,
        At::Notify(at) => *at,
        At::Wait(awaited) => awaited.op,
        At::End(_) => return false,
    };
    op > at || block.registers.turns_again(machine.plan, op)
}

/// Cells that a launch leaves other than it found them, while the next one expects the same of them.
fn left(machine: &Machine) -> Vec<Shown> {
    let mut shown = Vec::new();
    if !machine.plan.options.persistent {
        return shown;
    }
    // What a cell is set to does not depend on what it was.
    let counts = |history: &History| history.notes.iter().any(|note| note.does == NotifyOp::Add);
    for (&cell, history) in machine.cells.iter().filter(|(_, history)| counts(history)) {
        for (&launch, waits) in &history.waits {
            let Some(next) = history.waits.get(&(launch + 1)) else { continue };
            let Some(&(wait, _)) = waits.intersection(next).min() else { continue };
            let (before, after) = (history.value_before(launch), history.value_before(launch + 1));
            let note = history.notes.iter().rposition(|note| note.launch == launch);
            if let Some(note) = note.filter(|_| before != after) {
                let detail = Detail::Left(cell, launch, note);
                let other = Some(history.notes[note].op);
                shown.push(Shown { rule: &rules::UNRESTORED_SIGNAL, op: Some(wait), other, detail });
            }
        }
    }
    shown
}

/// The host tensors that a launch writes.
pub fn outputs(machine: &Machine) -> Vec<usize> {
    let program = machine.plan.program;
    let params = program.host.as_ref().map_or(&[] as &[Param], |host| &host.params);
    let writes = |tensor: Tensor| match program.tensors[tensor].def {
        TensorDef::HostParam(_, direction) => direction != Direction::In,
        _ => false,
    };
    let written = |index: &usize| matches!(params[index % params.len()], Param::Tensor(tensor) if writes(tensor));
    (0..machine.plan.options.args.len()).filter(written).collect()
}

/// The first byte of an output that is other than in another run.
fn differs(machine: &Machine, reference: &[Vec<u8>]) -> Option<(usize, usize, usize)> {
    let nranks = machine.plan.nranks;
    let parts = outputs(machine).into_iter().flat_map(|arg| (0..nranks).map(move |part| (arg, part)));
    parts.zip(reference).find_map(|((arg, part), reference)| {
        let bytes = machine.memory.argument(arg, part);
        let at = bytes.iter().zip(reference).position(|(a, b)| a != b)?;
        Some((arg, part, at))
    })
}

/// The bytes of all outputs.
pub fn results(machine: &Machine) -> Vec<Vec<u8>> {
    let parts = outputs(machine).into_iter().flat_map(|arg| (0..machine.plan.nranks).map(move |part| (arg, part)));
    parts.map(|(arg, part)| machine.memory.argument(arg, part).to_vec()).collect()
}

fn unstable(machine: &Machine, arg: usize, part: usize, byte: usize) -> Shown {
    let write = machine.memory.last_write(arg, part, byte).map(|access| access.op);
    let (op, other) = match machine.unordered_sums {
        Some((first, second)) => (Some(first.op), Some(second.op).filter(|&op| op != first.op).or(write)),
        None => (write, None),
    };
    Shown { rule: &rules::UNSTABLE, op, other, detail: Detail::Differs(arg, part, byte) }
}
