//! How ranks meet: who has come to a turn tells others, and waits for them.
//!
//! In each turn a rank meets all others at once, or those of its host and then those at its position of other hosts: then
//! all have come as well. Where hosts meet like that, two ranks that share neither host nor position signal each other in
//! some turns only, so they count these by themselves: a number that is left from long ago must not look like a new one.

use smallvec::smallvec;

use super::channels::LINE;
use super::exchange::Exchange;
use super::hierarchy::Place;
use crate::ir::extent::Known;
use crate::ir::{Atomic, BinaryOp, Builder, DType, NotifyOp, Scalar, ScalarType, Tensor, Tile, Var, WaitCmp};

/// Turns are numbered from 1 to this, and from 1 again. Even, so that parities go on alternating; above it is room for the
/// number of a call.
const LAST_TURN: i64 = 1 << 15;

/// What a line of cells holds besides the arrival at 0: the number of the call, and that a rank of the host is done.
const NUMBER: i64 = 1;
const CLOSED: i64 = 2;

/// A turn that has begun.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) parity: Scalar,
    number: Scalar,
    /// It is the first one of the call.
    first: bool,
}

/// Something that all ranks count alike, in their own lines, from one call to the next.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    last: Var,
    kept: Kept,
}

/// Where a counter is kept between calls: in which of a rank's own two lines, and in which cell.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    name: &'static str,
    line: i64,
    cell: i64,
}

/// The turns of a channel.
pub(super) const TURNS: Kept = Kept { name: "turn", line: 0, cell: 0 };
/// Turns in which ranks that share neither host nor position met each other.
pub(super) const FULL_TURNS: Kept = Kept { name: "full_turn", line: 1, cell: 0 };
/// How often the ranks of a host have closed.
pub(super) const CLOSINGS: Kept = Kept { name: "closing", line: 0, cell: 1 };

impl Counter {
    /// At the beginning of a call, of a lane and a rank.
    pub(super) fn read(b: &mut Builder, cells: Tensor, [lane, me]: [Scalar; 2], kept: Kept) -> Self {
        let at = [lane, b.int(kept.line), me, b.int(kept.cell)];
        let before = b.read(cells, &at);
        Self { last: b.var(Some(kept.name), ScalarType::I32, before), kept }
    }

    /// At the end of it.
    pub(super) fn write(self, b: &mut Builder, cells: Tensor, [lane, me]: [Scalar; 2]) {
        let at = [lane, b.int(self.kept.line), me, b.int(self.kept.cell)];
        let last = b.var_get(self.last);
        b.write(cells, &at, last);
    }
}

/// Ranks that meet, in the order of their indices: index `i` is rank `times * i + plus`.
#[derive(Clone, Copy)]
pub(super) struct Group {
    pub(super) count: Scalar,
    /// This rank's index.
    pub(super) own: Scalar,
    pub(super) times: i64,
    pub(super) plus: Scalar,
}

impl Exchange<'_> {
    // Groups.

    /// Every rank.
    pub(super) fn everybody(&mut self) -> Group {
        Group { count: self.nranks, own: self.me, times: 1, plus: self.int(0) }
    }

    /// For each other rank, beginning behind this one, so that not all go to the same one at once.
    pub(super) fn for_others(&mut self, build: impl FnOnce(&mut Self, Scalar)) {
        let all = self.everybody();
        self.for_members(all, 1, |x, peer, _| build(x, peer));
    }

    /// For each rank, beginning with this one.
    pub(super) fn for_all(&mut self, build: impl FnOnce(&mut Self, Scalar)) {
        let all = self.everybody();
        self.for_members(all, 0, |x, peer, _| build(x, peer));
    }

    /// For each member of a group from a distance on, with its rank and its index.
    pub(super) fn for_members(&mut self, group: Group, first: i64, build: impl FnOnce(&mut Self, Scalar, Scalar)) {
        if self.b.program().int_value(group.count, Known::default()).is_some_and(|count| count <= first) {
            return;
        }
        let (first, one) = (self.int(first), self.int(1));
        let distance = self.b.for_begin(first, group.count, one);
        let index = self.add(distance, group.own);
        let index = self.wrapped(index, group.count);
        let begin = self.mul(index, group.times);
        let rank = self.add(begin, group.plus);
        let rank = self.name(rank, "peer");
        build(self, rank, index);
        self.b.for_end();
    }

    /// `index`, if it is below `count`; else that many less.
    pub(super) fn wrapped(&mut self, index: Scalar, count: Scalar) -> Scalar {
        let less = self.sub(index, count);
        let inside = self.b.binary(BinaryOp::Lt, index, count);
        self.b.select(inside, index, less)
    }

    // Turns.

    /// Counts one more: the number and its parity.
    fn next(&mut self, counter: Counter, [number, parity]: [&str; 2]) -> (Scalar, Scalar) {
        let last = self.b.var_get(counter.last);
        let (one, most) = (self.int(1), self.int(LAST_TURN));
        let next = self.add(last, one);
        let full = self.b.binary(BinaryOp::Ge, last, most);
        let now = self.b.select(full, one, next);
        let now = self.name(now, number);
        self.b.var_set(counter.last, now);
        let two = self.int(2);
        let odd = self.b.binary(BinaryOp::Rem, now, two);
        (now, self.name(odd, parity))
    }

    /// Begins the next turn: what stands in the stage since the one before the last is of no use any more. In each turn
    /// all ranks meet.
    pub(super) fn turn(&mut self) -> Turn {
        let (number, parity) = self.next(self.turns, ["now", "parity"]);
        Turn { number, parity, first: std::mem::take(&mut self.unknown) }
    }

    /// Waits until all ranks have come here too. What they wrote before is visible then.
    pub(super) fn meet(&mut self, turn: Turn) {
        self.meet_with(turn, |_, _| {});
    }

    /// [`Self::meet`], where `give` does something for each other rank before it is told.
    pub(super) fn meet_with(&mut self, turn: Turn, give: impl FnOnce(&mut Self, Scalar)) {
        let all = self.everybody();
        let full = match (self.second, self.place) {
            (Some(counter), Some(place)) => Some((place, self.next(counter, ["now_in_full", "line_in_full"]))),
            _ => None,
        };
        self.meet_in(all, turn, give, |x, peer| match full {
            Some((place, (number, parity))) => {
                let known = x.is_met_always(place, peer);
                (x.b.select(known, turn.number, number), x.b.select(known, turn.parity, parity))
            }
            None => (turn.number, turn.parity),
        });
    }

    /// [`Self::meet`], but of a group only.
    pub(super) fn meet_group(&mut self, group: Group, turn: Turn) {
        self.meet_in(group, turn, |_, _| {}, |_, _| (turn.number, turn.parity));
    }

    /// `counted` says by which number, and in which line, this rank and another one meet.
    fn meet_in(
        &mut self,
        group: Group,
        turn: Turn,
        give: impl FnOnce(&mut Self, Scalar),
        counted: impl Fn(&mut Self, Scalar) -> (Scalar, Scalar),
    ) {
        let zero = self.int(0);
        let (lane, cells, me) = (self.lane, self.cells, self.me);
        let call = self.number_of_unchecked();
        let value = |x: &mut Self, number| call.map_or(number, |call| x.add(call, number));
        let number = (self.checked && turn.first).then(|| self.cell_tile(self.number));
        self.for_members(group, 1, |x, peer, _| {
            give(x, peer);
            if let Some(number) = number {
                x.send_cell(turn, number, NUMBER, peer);
            }
            let (now, line) = counted(x, peer);
            let value = value(x, now);
            x.b.notify(cells, peer, &[lane, line, me, zero], value, NotifyOp::Set);
        });
        self.for_members(group, 1, |x, peer, _| {
            let (now, line) = counted(x, peer);
            let value = value(x, now);
            x.b.wait(cells, &[lane, line, peer, zero], value, WaitCmp::Eq);
            if number.is_some() {
                let theirs = x.cell(turn, NUMBER, peer);
                let (label, number) = (x.label.clone(), x.number);
                x.b.agree(&label, theirs, number, peer);
            }
        });
    }

    /// Ranks that do not compare their numbers would wait for ever for that of another call: it is part of each turn's.
    fn number_of_unchecked(&mut self) -> Option<Scalar> {
        if self.checked {
            return None;
        }
        let low = self.int(1 << 16);
        let number = self.b.binary(BinaryOp::Rem, self.number, low);
        Some(self.mul(number, LAST_TURN))
    }

    /// A rank of this host, or at this position, is met in every turn.
    fn is_met_always(&mut self, place: Place, peer: Scalar) -> Scalar {
        let width = self.int(place.levels.width);
        let host = self.b.binary(BinaryOp::Div, peer, width);
        let near = self.b.binary(BinaryOp::Eq, host, place.host);
        let position = self.b.binary(BinaryOp::Rem, peer, width);
        let across = self.b.binary(BinaryOp::Eq, position, place.position);
        self.b.binary(BinaryOp::Or, near, across)
    }

    /// [`Self::turn`] and [`Self::meet`].
    pub(super) fn synchronise(&mut self) {
        let turn = self.turn();
        self.meet(turn);
    }

    /// Waits until all ranks of this host have come here.
    pub(super) fn close(&mut self, near: Group) {
        let Some(counter) = self.second else { return };
        let (number, parity) = self.next(counter, ["now_closing", "line_of_closing"]);
        let (lane, cells, me, closed) = (self.lane, self.cells, self.me, self.int(CLOSED));
        self.for_members(near, 1, |x, peer, _| {
            x.b.notify(cells, peer, &[lane, parity, me, closed], number, NotifyOp::Set);
        });
        self.for_members(near, 1, |x, peer, _| {
            x.b.wait(cells, &[lane, parity, peer, closed], number, WaitCmp::Eq);
        });
    }

    // Cells.

    /// A tile of one number.
    pub(super) fn cell_tile(&mut self, value: Scalar) -> Tile {
        let one = self.b.extent_int(1);
        self.b.full(DType::I32, smallvec![one, one, one, one], value)
    }

    /// Writes a number into a cell of this rank's line at `peer`.
    pub(super) fn send_cell(&mut self, turn: Turn, value: Tile, cell: i64, peer: Scalar) {
        let cell = self.int(cell);
        self.b.remote_store(value, self.cells, peer, &[self.lane, turn.parity, self.me, cell], Atomic::None);
    }

    /// Reads a cell of the line of `peer`.
    pub(super) fn cell(&mut self, turn: Turn, cell: i64, peer: Scalar) -> Scalar {
        debug_assert!(cell < LINE);
        let cell = self.int(cell);
        self.b.read(self.cells, &[self.lane, turn.parity, peer, cell])
    }
}
