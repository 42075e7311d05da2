//! What all algorithms are made of: arriving, waiting for the others, and moving ranges of elements.

use smallvec::smallvec;

use super::algorithms::round_up;
use super::channels::{Channels, LINE};
use super::{Call, Target};
use crate::ir::extent::Known;
use crate::ir::op::{PeerRange, Staging};
use crate::ir::program::ScalarDef;
use crate::ir::{
    Atomic, BinaryOp, Builder, Combine, DType, NotifyOp, Region, Scalar, ScalarType, Tensor, Var, WaitCmp,
};

/// Synchronisations are numbered from 1 to this, and from 1 again. Even, so that parities go on alternating; above it is
/// room for the number of a call.
const LAST_TURN: i64 = 1 << 15;

/// What a line of cells holds besides the arrival at 0: the number of the call.
const NUMBER: i64 = 1;

/// Elements in one dimension.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) tensor: Tensor,
    pub(super) first: Scalar,
}

/// One call, while it is written out.
pub(super) struct Exchange<'b> {
    pub(super) b: &'b mut Builder,
    pub(super) me: Scalar,
    pub(super) nranks: Scalar,
    /// Ranks of the world: there is a line of cells for each.
    pub(super) world: Scalar,
    /// Which of how many lanes this is.
    pub(super) lanes: i64,
    pub(super) lane: Scalar,
    /// The cells as elements of the call's type, if they go along with the arrivals.
    pub(super) mail: Option<Tensor>,
    pub(super) stage: Option<Tensor>,
    /// Bytes of the stage that a turn may use.
    pub(super) slot_bytes: i64,
    cells: Tensor,
    /// The number of the last synchronisation.
    last: Var,
    label: String,
    /// What this rank does.
    number: Scalar,
    checked: bool,
    /// Nobody has compared the numbers yet.
    unknown: bool,
}

/// A synchronisation that has begun.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    number: Scalar,
    pub(super) parity: Scalar,
}

impl<'b> Exchange<'b> {
    pub(super) fn begin(b: &'b mut Builder, channels: &Channels, call: &Call, target: &Target) -> Self {
        let program = b.program();
        let cells = channels.cells(program, call);
        let staged = super::algorithms::staged(program, call, target);
        let stage = staged.and_then(|dtype| channels.stage(program, call, dtype));
        let mailed = super::algorithms::mailed(program, call, target);
        let mail = mailed.and_then(|dtype| channels.mail(program, call, dtype));
        let (label, number) = channels.number(program, call, target);
        let me = b.rank(cells);
        let me = b.name_scalar(me, "me");
        let nranks = b.nranks(cells);
        let nranks = b.name_scalar(nranks, "n_ranks");
        let (zero, world) = (b.int(0), b.world());
        let (lanes, lane) = call.lanes.unwrap_or((1, zero));
        let number = b.int(number);
        let number = match call.collective.root() {
            Some(root) if !matches!(b.program().scalars[root].def, ScalarDef::Extent(_)) => {
                b.require(BinaryOp::Ge, root, zero, None);
                b.require(BinaryOp::Lt, root, nranks, None);
                let factor = b.int(1 << 16);
                let wide = b.cast(ScalarType::I64, root);
                let high = b.binary(BinaryOp::Mul, wide, factor);
                let sum = b.binary(BinaryOp::Add, high, number);
                b.cast(ScalarType::I32, sum)
            }
            _ => number,
        };
        let counter = [lane, zero, me, zero];
        let before = b.read(cells, &counter);
        let last = b.var(Some("turn"), ScalarType::I32, before);
        let slot_bytes = channels.slot_bytes;
        let checked = target.checked;
        Self {
            b,
            me,
            nranks,
            world,
            mail,
            lanes,
            lane,
            stage,
            slot_bytes,
            cells,
            last,
            label,
            number,
            checked,
            unknown: true,
        }
    }

    /// Ends the call.
    pub(super) fn end(self) {
        let zero = self.b.int(0);
        let last = self.b.var_get(self.last);
        self.b.write(self.cells, &[self.lane, zero, self.me, zero], last);
    }

    // Scalars.

    pub(super) fn int(&mut self, value: i64) -> Scalar {
        self.b.int(value)
    }

    pub(super) fn add(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (self.is_zero(a), self.is_zero(b)) {
            (true, _) => b,
            (_, true) => a,
            _ => self.b.binary(BinaryOp::Add, a, b),
        }
    }

    fn is_zero(&self, scalar: Scalar) -> bool {
        self.b.program().int_value(scalar, Known::default()) == Some(0)
    }

    pub(super) fn sub(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.b.binary(BinaryOp::Sub, a, b)
    }

    pub(super) fn mul(&mut self, a: Scalar, factor: i64) -> Scalar {
        match factor {
            1 => a,
            _ if self.is_zero(a) => a,
            _ => {
                let factor = self.b.int(factor);
                self.b.binary(BinaryOp::Mul, a, factor)
            }
        }
    }

    pub(super) fn min(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.b.binary(BinaryOp::Min, a, b)
    }

    /// `rank`, if it is below the number of ranks; else that many less.
    pub(super) fn wrapped(&mut self, rank: Scalar) -> Scalar {
        let less = self.sub(rank, self.nranks);
        let inside = self.b.binary(BinaryOp::Lt, rank, self.nranks);
        self.b.select(inside, rank, less)
    }

    pub(super) fn name(&mut self, scalar: Scalar, name: &str) -> Scalar {
        self.b.name_scalar(scalar, name)
    }

    // Control flow.

    pub(super) fn when(&mut self, op: BinaryOp, a: Scalar, b: Scalar, build: impl FnOnce(&mut Self)) {
        let cond = self.b.binary(op, a, b);
        self.b.if_begin(cond);
        build(self);
        self.b.if_end();
    }

    /// For each other rank, beginning behind this one, so that not all go to the same one at once.
    pub(super) fn for_others(&mut self, build: impl FnOnce(&mut Self, Scalar)) {
        self.for_ranks(1, build);
    }

    /// For each rank, beginning with this one.
    pub(super) fn for_all(&mut self, build: impl FnOnce(&mut Self, Scalar)) {
        self.for_ranks(0, build);
    }

    fn for_ranks(&mut self, first: i64, build: impl FnOnce(&mut Self, Scalar)) {
        let (first, one) = (self.b.int(first), self.b.int(1));
        let distance = self.b.for_begin(first, self.nranks, one);
        let rank = self.add(distance, self.me);
        let rank = self.wrapped(rank);
        let rank = self.name(rank, "peer");
        build(self, rank);
        self.b.for_end();
    }

    /// For each part of `step` elements of `count`: with where it begins and how many elements it has.
    pub(super) fn for_parts(&mut self, count: Scalar, step: i64, build: impl FnOnce(&mut Self, Scalar, Scalar)) {
        let (zero, step_by) = (self.b.int(0), self.b.int(step));
        // One part of a known size moves without a call.
        match self.b.program().int_value(count, Known::default()) {
            Some(0) => return,
            Some(known) if known <= step => return build(self, zero, count),
            _ => {}
        }
        let first = self.b.for_begin(zero, count, step_by);
        let rest = self.sub(count, first);
        let part = self.min(rest, step_by);
        build(self, first, part);
        self.b.for_end();
    }

    // Synchronisation.

    /// Begins the next synchronisation: what stands in the stage since the one before the last is of no use any more.
    pub(super) fn turn(&mut self) -> Turn {
        let last = self.b.var_get(self.last);
        let (one, most) = (self.b.int(1), self.b.int(LAST_TURN));
        let next = self.add(last, one);
        let full = self.b.binary(BinaryOp::Ge, last, most);
        let number = self.b.select(full, one, next);
        let number = self.name(number, "now");
        self.b.var_set(self.last, number);
        let two = self.b.int(2);
        let parity = self.b.binary(BinaryOp::Rem, number, two);
        let parity = self.name(parity, "parity");
        Turn { number, parity }
    }

    /// Waits until all ranks have come here too. What they wrote before is visible then.
    pub(super) fn meet(&mut self, turn: Turn) {
        self.meet_with(turn, |_, _| {});
    }

    /// [`Self::meet`], where `give` does something for each other rank before it is told.
    pub(super) fn meet_with(&mut self, turn: Turn, give: impl FnOnce(&mut Self, Scalar)) {
        let zero = self.b.int(0);
        let (lane, parity, cells, me) = (self.lane, turn.parity, self.cells, self.me);
        let compares = self.checked && std::mem::take(&mut self.unknown);
        // Ranks that do not compare their numbers would wait for ever for that of another call.
        let value = if self.checked {
            turn.number
        } else {
            let low = self.b.int(1 << 16);
            let number = self.b.binary(BinaryOp::Rem, self.number, low);
            let high = self.mul(number, LAST_TURN);
            self.add(high, turn.number)
        };
        let number = compares.then(|| self.cell_tile(self.number));
        self.for_others(|x, peer| {
            give(x, peer);
            if let Some(number) = number {
                x.send_cell(turn, number, NUMBER, peer);
            }
            x.b.notify(cells, peer, &[lane, parity, me, zero], value, NotifyOp::Set);
        });
        self.for_others(|x, peer| {
            x.b.wait(cells, &[lane, parity, peer, zero], value, WaitCmp::Eq);
            if compares {
                let theirs = x.cell(turn, NUMBER, peer);
                let (label, number) = (x.label.clone(), x.number);
                x.b.agree(&label, theirs, number, peer);
            }
        });
    }

    /// [`Self::turn`] and [`Self::meet`].
    pub(super) fn synchronise(&mut self) {
        let turn = self.turn();
        self.meet(turn);
    }

    /// A tile of one number.
    pub(super) fn cell_tile(&mut self, value: Scalar) -> crate::ir::Tile {
        let one = self.b.extent_int(1);
        self.b.full(DType::I32, smallvec![one, one, one, one], value)
    }

    /// Writes a number into a cell of this rank's line at `peer`.
    pub(super) fn send_cell(&mut self, turn: Turn, value: crate::ir::Tile, cell: i64, peer: Scalar) {
        let cell = self.b.int(cell);
        self.b.remote_store(value, self.cells, peer, &[self.lane, turn.parity, self.me, cell], Atomic::None);
    }

    /// Reads a cell of the line of `peer`.
    pub(super) fn cell(&mut self, turn: Turn, cell: i64, peer: Scalar) -> Scalar {
        debug_assert!(cell < LINE);
        let cell = self.b.int(cell);
        self.b.read(self.cells, &[self.lane, turn.parity, peer, cell])
    }

    // Data.

    /// All elements of a tensor, in one dimension.
    pub(super) fn flat(&mut self, tensor: Tensor) -> Tensor {
        let name = self.b.program().tensors[tensor].name.clone();
        let flat = self.b.flatten(tensor);
        if let Some(name) = name {
            self.b.name_tensor(flat, &format!("{name}_flat"));
        }
        flat
    }

    /// Bytes of an element.
    pub(super) fn size_of(&self, tensor: Tensor) -> i64 {
        self.b.program().tensors[tensor].dtype.size()
    }

    pub(super) fn range(&self, tensor: Tensor, first: Scalar) -> Range {
        Range { tensor, first }
    }

    /// The part of the stage that belongs to a turn, from element `first` on.
    pub(super) fn slot(&mut self, turn: Turn, first: Scalar) -> Range {
        let tensor = self.stage.expect("an algorithm that stages has a stage");
        let elements = self.slot_bytes / self.size_of(tensor);
        let lane = self.mul(self.lane, 2);
        let slot = self.add(lane, turn.parity);
        let begin = self.mul(slot, elements);
        let first = self.add(begin, first);
        Range { tensor, first }
    }

    pub(super) fn put(&mut self, dst: Range, peer: Scalar, src: Range, count: Scalar) {
        let region = Some(region(dst, src, count));
        self.b.put(dst.tensor, peer, src.tensor, region, Atomic::None, Staging::default());
    }

    pub(super) fn get(&mut self, dst: Range, src: Range, peer: Scalar, count: Scalar) {
        self.b.get(dst.tensor, peer, src.tensor, Some(region(dst, src, count)), Staging::default());
    }

    /// `count` elements become the combination of those of several ranks.
    pub(super) fn get_reduce(&mut self, op: Combine, dst: Range, src: Range, peers: PeerRange, count: Scalar) {
        self.b.get_reduce(op, dst.tensor, peers, src.tensor, Some(region(dst, src, count)));
    }

    /// Every rank.
    pub(super) fn all(&mut self) -> PeerRange {
        PeerRange { first: self.b.int(0), end: self.nranks }
    }

    /// From `first`, `count` ranks.
    pub(super) fn some(&mut self, first: Scalar, count: i64) -> PeerRange {
        let count = self.b.int(count);
        PeerRange { first, end: self.add(first, count) }
    }

    /// This lane's share of `count` elements, in whole lines: where it begins, and how many it has.
    pub(super) fn share(&mut self, count: i64) -> (Scalar, Scalar) {
        if self.lanes == 1 {
            return (self.b.int(0), self.b.int(count));
        }
        let each = round_up(count / self.lanes + i64::from(count % self.lanes != 0), LINE);
        let (end, first) = (self.b.int(count), self.mul(self.lane, each));
        let first = self.min(first, end);
        let rest = self.sub(end, first);
        let each = self.b.int(each);
        (first, self.min(rest, each))
    }
}

fn region(dst: Range, src: Range, count: Scalar) -> Region {
    Region { dst: smallvec![dst.first], src: smallvec![src.first], shape: smallvec![count] }
}
