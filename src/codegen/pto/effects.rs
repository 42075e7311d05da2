//! What the statements of a kernel touch, and by which unit: the one table that fences are put in and checked by.
//!
//! The units of a vector core run beside each other. The scalar unit issues for all of them; the others begin what they
//! have got in order, and end when they are through. The scalar unit reads global memory through a cache of its own, which
//! does not hear of what anybody writes; the others see memory itself. A kernel begins with nothing in the cache.

use smallvec::{SmallVec, smallvec};

use crate::ir::{Program, Tensor};

use super::Target;
use super::kernel::{Body, Element, Operand, Pipe, Stmt, TileName, View};

/// Some of the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Units(u8);

impl Units {
    /// None of them.
    pub const NONE: Units = Units(0);
    /// All of them.
    pub const ALL: Units = Units(15);

    /// One, or all for [`Pipe::All`].
    pub const fn of(pipe: Pipe) -> Self {
        match pipe {
            Pipe::S => Units(1),
            Pipe::V => Units(2),
            Pipe::Mte2 => Units(4),
            Pipe::Mte3 => Units(8),
            Pipe::All => Units::ALL,
        }
    }

    /// These and those.
    pub const fn with(self, other: Units) -> Self {
        Units(self.0 | other.0)
    }

    /// One of them is among the others.
    pub const fn meet(self, other: Units) -> bool {
        self.0 & other.0 != 0
    }
}

/// What is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Bytes of UB, from the first to before the end.
    Ub(i64, i64),
    /// Global memory: all of a tensor or a window.
    Memory(Tensor),
}

/// How it is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Read.
    Read,
    /// Read by scalars, but from memory itself.
    Poll,
    /// Written.
    Write,
    /// Added to, atomically: in any order with other additions.
    Add,
}

/// One thing that a statement does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Who does it.
    pub unit: Pipe,
    /// To what.
    pub place: Place,
    /// How.
    pub how: How,
    /// It may be another rank's.
    pub remote: bool,
    /// It comes behind what any of these units waits for; for most, the one that does it.
    pub behind: Units,
    /// The units that the statement itself makes wait for it.
    pub ahead: Units,
}

impl Access {
    /// Changes the place.
    pub fn is_write(&self) -> bool {
        matches!(self.how, How::Write | How::Add)
    }

    /// Sees what the scalars' cache has of global memory.
    pub fn is_cached(&self) -> bool {
        self.unit == Pipe::S && self.how == How::Read && matches!(self.place, Place::Memory(_))
    }

    /// Their order makes a difference.
    pub fn conflicts(&self, other: &Access) -> bool {
        let meets = match (self.place, other.place) {
            (Place::Ub(begin, end), Place::Ub(other_begin, other_end)) => begin < other_end && other_begin < end,
            (Place::Memory(root), Place::Memory(other)) => root == other,
            _ => false,
        };
        let both_add = self.how == How::Add && other.how == How::Add;
        meets && (self.is_write() || other.is_write()) && !both_add
    }
}

/// What an analysis of a kernel must know besides its statements.
#[derive(Clone, Copy)]
pub struct Rules<'p> {
    /// Its program.
    pub program: &'p Program,
    /// The NPUs that it is for.
    pub target: Target,
}

impl Rules<'_> {
    /// A unit ends each of its instructions before it begins the next one, as far as anybody can tell.
    pub fn keeps_order(&self, unit: Pipe) -> bool {
        unit == Pipe::S || unit == Pipe::V && self.target == Target::A5
    }

    /// Other ranks can see the place.
    pub fn is_shared(&self, place: Place) -> bool {
        matches!(place, Place::Memory(root) if self.program.is_window(root))
    }
}

/// What a statement does to memory. Those that branch do nothing themselves.
pub fn accesses(body: &Body, stmt: &Stmt) -> SmallVec<[Access; 4]> {
    use How::{Poll, Read, Write};
    let access =
        |unit, place, how| Access { unit, place, how, remote: false, behind: Units::of(unit), ahead: Units::NONE };
    let tile = |unit, tile: &TileName, how| {
        let slot = &body.slots[tile.slot];
        access(unit, Place::Ub(slot.offset, slot.offset + slot.bytes()), how)
    };
    let view = |unit, view: &View, how| Access {
        remote: view.memory.remote,
        ..access(unit, Place::Memory(view.memory.root), how)
    };
    let element = |of: &Element, how| access(Pipe::S, Place::Memory(of.memory.root), how);
    let landing = |add| if add { How::Add } else { Write };
    match stmt {
        Stmt::Read { from, .. } => smallvec![element(from, Read)],
        Stmt::Load { tile: to, from } => smallvec![view(Pipe::Mte2, from, Read), tile(Pipe::Mte2, to, Write)],
        Stmt::Store { to, tile: from, add } => {
            smallvec![tile(Pipe::Mte3, from, Read), view(Pipe::Mte3, to, landing(*add))]
        }
        Stmt::Compute { unit, dst, operands, .. } => {
            let operand = |operand: &Operand| match operand {
                Operand::Tile(name) => Some(tile(*unit, name, Read)),
                Operand::Scratch(name) => Some(tile(*unit, name, Write)),
                Operand::Value(_) => None,
            };
            operands.iter().filter_map(operand).chain([tile(*unit, dst, Write)]).collect()
        }
        Stmt::Put { to, from, staging, add } => transfer(view, tile, to, landing(*add), from, staging),
        Stmt::Get { to, from, staging } => transfer(view, tile, to, Write, from, staging),
        Stmt::Wait { cell, .. } => smallvec![Access { ahead: Units::ALL, ..element(cell, Poll) }],
        // A notify takes care of its cell, in memory itself.
        Stmt::Notify { .. }
        | Stmt::Op { .. }
        | Stmt::Scalar { .. }
        | Stmt::Assign { .. }
        | Stmt::Array { .. }
        | Stmt::If { .. }
        | Stmt::For { .. }
        | Stmt::Return
        | Stmt::ReturnIfStopped
        | Stmt::Fault { .. }
        | Stmt::View { .. }
        | Stmt::Tile { .. }
        | Stmt::Fence(_) => SmallVec::new(),
    }
}

/// TPUT and TGET load a chunk before they store it, and end when nothing is left for later loads to wait for.
fn transfer(
    view: impl Fn(Pipe, &View, How) -> Access,
    tile: impl Fn(Pipe, &TileName, How) -> Access,
    to: &View,
    landing: How,
    from: &View,
    staging: &[TileName],
) -> SmallVec<[Access; 4]> {
    let dma = Units::of(Pipe::Mte2).with(Units::of(Pipe::Mte3));
    let load = |access| Access { ahead: dma, ..access };
    let store = |access| Access { behind: dma, ahead: Units::of(Pipe::Mte2), ..access };
    let staged = staging
        .iter()
        .flat_map(|name| [load(tile(Pipe::Mte2, name, How::Write)), store(tile(Pipe::Mte3, name, How::Read))]);
    [load(view(Pipe::Mte2, from, How::Read)), store(view(Pipe::Mte3, to, landing))].into_iter().chain(staged).collect()
}
