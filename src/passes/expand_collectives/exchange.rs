//! What all algorithms are made of: numbers, loops, and moving ranges of elements.

use smallvec::smallvec;

use super::algorithms::round_up;
use super::channels::{Channels, LINE};
use super::hierarchy::Place;
use super::levels::Levels;
use super::meeting::{CLOSINGS, Counter, FULL_TURNS, TURNS, Turn};
use super::{Call, Target};
use crate::ir::extent::Known;
use crate::ir::op::{PeerRange, Staging};
use crate::ir::program::ScalarDef;
use crate::ir::{Atomic, BinaryOp, Builder, Combine, Mode, Region, Scalar, ScalarType, Tensor};

/// Elements in one dimension.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) tensor: Tensor,
    pub(super) first: Scalar,
}

/// Where a call puts what others take, or take it from.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    pub(super) tensor: Tensor,
    /// Bytes that a turn may use.
    pub(super) slot_bytes: i64,
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
    pub(super) stage: Option<Stage>,
    /// The stage of what goes between hosts.
    pub(super) shards: Option<Stage>,
    pub(super) cells: Tensor,
    pub(super) turns: Counter,
    /// What else ranks of several hosts count.
    pub(super) second: Option<Counter>,
    /// Where this rank is, if hosts have levels.
    pub(super) place: Option<Place>,
    pub(super) label: String,
    /// What this rank does.
    pub(super) number: Scalar,
    pub(super) checked: bool,
    /// Nobody has compared the numbers yet.
    pub(super) unknown: bool,
}

impl<'b> Exchange<'b> {
    pub(super) fn begin(b: &'b mut Builder, channels: &Channels, call: &Call, target: &Target) -> Self {
        let program = b.program();
        let cells = channels.cells(program, call);
        let staged = super::algorithms::staged(program, call, target);
        let stage = staged.and_then(|dtype| channels.stage(program, call, dtype));
        let mailed = super::algorithms::mailed(program, call, target);
        let mail = mailed.and_then(|dtype| channels.mail(program, call, dtype));
        let layout = super::hierarchy::layout(program, call, target);
        let shards = layout.and_then(|layout| channels.shards(program, call, layout.dtype));
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
        let place = call.levels.map(|levels| Place::new(b, me, levels));
        let turns = Counter::read(b, cells, [lane, me], TURNS);
        let second = match (call.levels, call.collective.mode) {
            (Some(Levels { width: 2.., .. }), Mode::Hierarchical) => layout.map(|_| CLOSINGS),
            (Some(Levels { width: 2.., .. }), _) => Some(FULL_TURNS),
            _ => None,
        };
        let second = second.map(|kept| Counter::read(b, cells, [lane, me], kept));
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
            shards,
            cells,
            turns,
            second,
            place,
            label,
            number,
            checked,
            unknown: true,
        }
    }

    /// Ends the call.
    pub(super) fn end(self) {
        for counter in [Some(self.turns), self.second].into_iter().flatten() {
            counter.write(self.b, self.cells, [self.lane, self.me]);
        }
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
        let stage = self.stage.expect("an algorithm that stages has a stage");
        self.in_stage(stage, turn, first)
    }

    /// The same of the stage of what goes between hosts.
    pub(super) fn shard(&mut self, turn: Turn, first: Scalar) -> Range {
        let stage = self.shards.expect("an algorithm between hosts has a stage");
        self.in_stage(stage, turn, first)
    }

    fn in_stage(&mut self, stage: Stage, turn: Turn, first: Scalar) -> Range {
        let elements = stage.slot_bytes / self.size_of(stage.tensor);
        let lane = self.mul(self.lane, 2);
        let slot = self.add(lane, turn.parity);
        let begin = self.mul(slot, elements);
        let first = self.add(begin, first);
        Range { tensor: stage.tensor, first }
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
