//! Signal cells: who notified them, who saw what.

use std::collections::{BTreeMap, HashSet};

use smallvec::SmallVec;

use super::clock::{Clock, Time};
use crate::ir::{Buffer, NotifyOp, Op, WaitCmp};

/// A cell: the rank whose window it is in, and the byte there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// The launch that has zeroed the windows; 0 if none does.
    pub era: u32,
    /// The rank.
    pub rank: usize,
    /// The byte.
    pub at: usize,
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Awaited {
    /// The op.
    pub op: Op,
    /// The cell.
    pub cell: Cell,
    /// The buffer that it is in.
    pub buffer: Buffer,
    /// The value.
    pub expected: i32,
    /// The comparison.
    pub cmp: WaitCmp,
}

impl Awaited {
    /// The cell may hold this.
    pub fn holds(&self, value: i32) -> bool {
        match self.cmp {
            WaitCmp::Eq => value == self.expected,
            WaitCmp::Ge => value >= self.expected,
        }
    }
}

/// One notify of a cell.
#[derive(Clone, Debug)]
pub struct Note {
    /// The op.
    pub op: Op,
    /// The task, by number of the run.
    pub by: u32,
    /// The launch in which it was made.
    pub launch: u32,
    /// Whether it set or added.
    pub does: NotifyOp,
    /// The value that was set or added.
    pub value: i32,
    /// What the cell held then.
    pub result: i32,
    /// What its task knew.
    pub clock: Clock,
    /// When.
    pub time: Time,
}

/// A satisfied wait, and what came before it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What was waited for; none where only several threads of events meet.
    pub awaited: Option<Awaited>,
    /// The task, by number of the run.
    pub by: u32,
    /// The launch.
    pub launch: u32,
    /// How many notifies of the cell it may have seen.
    pub notes: usize,
    /// Waits before it, by number.
    pub before: SmallVec<[u32; 2]>,
}

/// What has happened to a cell.
#[derive(Debug, Default)]
pub struct History {
    /// In the order in which they came.
    pub notes: Vec<Note>,
    /// What a wait acquires.
    pub released: Clock,
    /// Satisfied waits: when, how many notifies they saw, by number.
    pub seen: Vec<(Time, usize, u32)>,
    /// Waits, also those that go on, by launch: the op and what it expects.
    pub waits: BTreeMap<u32, HashSet<(Op, i32)>>,
    /// Waits that a launch satisfied by itself: the launch, the op and what it expects.
    pub own: HashSet<(u32, Op, i32)>,
}

impl History {
    /// The value that the notifies of launches before `launch` give.
    pub fn value_before(&self, launch: u32) -> i32 {
        let earlier = self.notes.iter().filter(|note| note.launch < launch);
        earlier.fold(0, |value, note| note.does.apply(value, note.value))
    }

    /// What launches before `launch` have left, unless somebody with this clock knows that it is gone.
    pub fn left_by(&self, launch: u32, clock: &Clock) -> Option<i32> {
        let replaces = |note: &Note| note.launch >= launch && note.does == NotifyOp::Set && clock.covers(note.time);
        (!self.notes.iter().rev().any(replaces)).then(|| self.value_before(launch))
    }

    /// An earlier launch had to satisfy the same wait by itself.
    pub fn had_to_wait(&self, awaited: &Awaited, launch: u32) -> bool {
        (0..launch).any(|earlier| self.own.contains(&(earlier, awaited.op, awaited.expected)))
    }

    /// Somebody with this clock comes after a wait that saw the note.
    pub fn is_seen(&self, note: usize, clock: &Clock) -> bool {
        self.seen.iter().any(|&(time, notes, _)| notes > note && clock.covers(time))
    }
}

/// How a notify changes a value.
pub trait Apply {
    /// The new value.
    fn apply(self, cell: i32, value: i32) -> i32;
}

impl Apply for NotifyOp {
    fn apply(self, cell: i32, value: i32) -> i32 {
        match self {
            NotifyOp::Add => cell.wrapping_add(value),
            NotifyOp::Set => value,
        }
    }
}
