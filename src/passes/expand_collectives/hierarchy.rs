//! Algorithms of two levels: what goes to other hosts goes to the ranks at the same position there, and once.
//!
//! Between hosts everything is pushed into a stage of its own, by rows: one for what comes from each host, one for what
//! goes to each. Like other stages it exists twice, and turns take it alternately: who pushes has met, in the turn before,
//! the one whose stage it is.

use super::algorithms::{SEGMENT_UNIT, round_up, tile_op, wide};
use super::exchange::{Exchange, Range};
use super::levels::Levels;
use super::meeting::{Group, Turn};
use super::{Call, Target, data, elements, extents, tuning};
use crate::ir::{
    BinaryOp, Builder, CollectiveKind, Combine, DType, Mode, PeerRange, Program, Scalar, Tensor, TileOrScalar,
};

/// Most bytes of a stage that a turn takes; more go in several turns.
const MOST_STAGED: i64 = 4 << 20;

/// Most elements that are combined at once.
const MOST_COMBINED: i64 = 1024;

/// Where a rank is among the levels.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) levels: Levels,
    pub(super) host: Scalar,
    /// At its host.
    pub(super) position: Scalar,
    /// The first rank of its host.
    first: Scalar,
}

impl Place {
    pub(super) fn new(b: &mut Builder, me: Scalar, levels: Levels) -> Self {
        let width = b.int(levels.width);
        let host = b.binary(BinaryOp::Div, me, width);
        let host = b.name_scalar(host, "my_host");
        let position = b.binary(BinaryOp::Rem, me, width);
        let position = b.name_scalar(position, "position");
        Self { levels, host, position, first: b.binary(BinaryOp::Sub, me, position) }
    }
}

/// The stage of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) dtype: DType,
    rows: i64,
    /// Elements of a row.
    row: i64,
    /// Elements that are combined at once: a row is a multiple of it.
    tile: i64,
    /// What hosts combine goes in two steps: each combines its share, and hands it to the others.
    in_two_steps: bool,
}

impl Layout {
    pub(super) fn bytes(&self) -> i64 {
        self.rows * self.row * self.dtype.size()
    }
}

/// How a call stages what goes between hosts, if it does.
pub(super) fn layout(program: &Program, call: &Call, target: &Target) -> Option<Layout> {
    let levels = call.levels.filter(|_| call.collective.mode == Mode::Hierarchical)?;
    let tensor = data(&call.collective)?;
    let dtype = program.tensors[tensor].dtype;
    let all = elements(program, tensor, target);
    let in_rows = || all / extents(program, tensor, target)[0].max(1);
    let share = || (all + levels.width - 1) / levels.width;
    let both_ways = 2 * levels.hosts;
    let (dtype, rows, needed) = match call.collective.kind {
        CollectiveKind::Allreduce { .. } => (wide(dtype), both_ways, share()),
        CollectiveKind::ReduceScatter { .. } => (wide(dtype), both_ways, in_rows()),
        CollectiveKind::Allgather { .. } => (dtype, levels.hosts, in_rows()),
        _ => (dtype, 1, share()),
    };
    let needed = round_up(needed.max(1), SEGMENT_UNIT);
    let tile = needed.min(MOST_COMBINED);
    let most = (MOST_STAGED / (rows * dtype.size()) / tile * tile).max(tile);
    let in_two_steps = tuning::in_two_steps(needed * dtype.size(), levels.hosts);
    Some(Layout { dtype, rows, row: round_up(needed, tile).min(most), tile, in_two_steps })
}

impl Exchange<'_> {
    /// Writes the call out.
    pub(super) fn in_levels(&mut self, call: &Call, target: &Target) {
        let layout = layout(self.b.program(), call, target);
        match (&call.collective.kind, layout) {
            (CollectiveKind::Barrier { .. }, _) => self.barrier_in_levels(),
            (&CollectiveKind::Allreduce { data, op }, Some(stage)) => {
                self.allreduce_in_levels(stage, op, data, target);
            }
            (&CollectiveKind::ReduceScatter { data, op }, Some(stage)) => {
                self.reduce_scatter_in_levels(stage, op, data, target);
            }
            (&CollectiveKind::Allgather { dst, src }, Some(stage)) => {
                self.allgather_in_levels(stage, dst, src, target);
            }
            (&CollectiveKind::Broadcast { data, root }, Some(stage)) => {
                self.broadcast_in_levels(stage, data, root, target);
            }
            _ => unreachable!("the verifier knows which collectives have levels"),
        }
    }

    fn barrier_in_levels(&mut self) {
        let turn = self.turn();
        let (near, across) = (self.near(), self.across());
        self.meet_group(near, turn);
        self.meet_group(across, turn);
    }

    /// Ranks of a host combine a share each, ranks at one position what the hosts have, and spread it.
    fn allreduce_in_levels(&mut self, stage: Layout, op: Combine, data: Tensor, target: &Target) {
        let (flat, count) = self.whole(data, target);
        let (begin, count) = self.share(count);
        let place = self.here();
        self.for_parts(count, stage.row * place.levels.width, |x, first, part| {
            let (near, across) = (x.near(), x.across());
            let first = x.add(begin, first);
            let (at, length) = x.part_of(part, near);
            let first = x.add(first, at);
            let (own, zero, host_ranks) = (x.range(flat, first), x.int(0), x.host_ranks());
            let turn = x.turn();
            x.meet_group(near, turn);
            let partial = x.staged_row(stage, turn, place.host, zero);
            x.get_reduce(op, partial, own, host_ranks, length);
            if stage.in_two_steps {
                x.combine_hosts_in_two_steps(stage, op, turn, own, length);
            } else {
                x.for_members(across, 1, |x, peer, _| x.put(partial, peer, partial, length));
                x.meet_group(across, turn);
                x.combine_hosts(stage, op, turn, own, zero, length);
            }
            x.for_members(near, 1, |x, peer, _| x.put(own, peer, own, length));
            x.close(near);
        });
    }

    /// `length` elements from `own` on become the combination of the partial results, of which each host makes a part.
    fn combine_hosts_in_two_steps(&mut self, stage: Layout, op: Combine, turn: Turn, own: Range, length: Scalar) {
        let (near, across, place) = (self.near(), self.across(), self.here());
        self.for_members(across, 1, |x, peer, host| {
            let (at, part) = x.segment(length, host, across.count);
            let partial = x.staged_row(stage, turn, place.host, at);
            x.put(partial, peer, partial, part);
        });
        self.meet_group(across, turn);
        let (at, part) = self.part_of(length, across);
        let first = self.add(own.first, at);
        let combined = self.range(own.tensor, first);
        self.combine_hosts(stage, op, turn, combined, at, part);
        let turn = self.turn();
        self.meet_group(near, turn);
        self.for_members(across, 1, |x, peer, _| x.put(combined, peer, combined, part));
        self.meet_group(across, turn);
    }

    fn reduce_scatter_in_levels(&mut self, stage: Layout, op: Combine, data: Tensor, target: &Target) {
        let rows = self.rows(data, target);
        let (begin, count) = self.share(rows.each);
        let place = self.here();
        self.for_parts(count, stage.row, |x, first, part| {
            let (near, across) = (x.near(), x.across());
            let first = x.add(begin, first);
            let (me, zero, host_ranks) = (x.me, x.int(0), x.host_ranks());
            let turn = x.turn();
            x.meet_group(near, turn);
            let comes = x.staged_row(stage, turn, place.host, zero);
            x.for_members(across, 1, |x, peer, host| {
                let goes = x.add(host, across.count);
                let goes = x.staged_row(stage, turn, goes, zero);
                let theirs = x.in_row(&rows, peer, first);
                x.get_reduce(op, goes, theirs, host_ranks, part);
                x.put(comes, peer, goes, part);
            });
            let own = x.in_row(&rows, me, first);
            x.get_reduce(op, comes, own, host_ranks, part);
            x.meet_group(across, turn);
            x.combine_hosts(stage, op, turn, own, zero, part);
            x.close(near);
        });
    }

    /// What a rank gives goes to its position at every host, which hands it to all there.
    fn allgather_in_levels(&mut self, stage: Layout, dst: Tensor, src: Tensor, target: &Target) {
        let rows = self.rows(dst, target);
        let from = self.flat(src);
        let (begin, count) = self.share(rows.each);
        let place = self.here();
        self.for_parts(count, stage.row, |x, first, part| {
            let (near, across) = (x.near(), x.across());
            let first = x.add(begin, first);
            let (me, zero, own) = (x.me, x.int(0), x.range(from, first));
            let turn = x.turn();
            x.meet_group(near, turn);
            let comes = x.staged_row(stage, turn, place.host, zero);
            x.for_members(across, 1, |x, peer, _| x.put(comes, peer, own, part));
            let row = x.in_row(&rows, me, first);
            x.for_members(near, 0, |x, peer, _| x.put(row, peer, own, part));
            x.meet_group(across, turn);
            x.for_members(across, 1, |x, from, host| {
                let (row, came) = (x.in_row(&rows, from, first), x.staged_row(stage, turn, host, zero));
                x.for_members(near, 0, |x, peer, _| x.put(row, peer, came, part));
            });
            x.close(near);
        });
    }

    /// Each rank of the root's host sends a share to its position at every host, which hands it to all there.
    fn broadcast_in_levels(&mut self, stage: Layout, data: Tensor, root: Scalar, target: &Target) {
        let (flat, count) = self.whole(data, target);
        let (begin, count) = self.share(count);
        let place = self.here();
        let width = self.int(place.levels.width);
        let root_host = self.b.binary(BinaryOp::Div, root, width);
        self.for_parts(count, stage.row * place.levels.width, |x, first, part| {
            let (near, across) = (x.near(), x.across());
            let first = x.add(begin, first);
            let (at, length) = x.part_of(part, near);
            let first = x.add(first, at);
            let (me, zero, own) = (x.me, x.int(0), x.range(flat, first));
            let turn = x.turn();
            x.meet_group(near, turn);
            let came = x.staged_row(stage, turn, zero, zero);
            x.when(BinaryOp::Eq, root_host, place.host, |x| {
                x.when(BinaryOp::Ne, me, root, |x| x.get(own, own, root, length));
                x.for_members(across, 1, |x, peer, _| x.put(came, peer, own, length));
                x.for_members(near, 1, |x, peer, _| {
                    x.when(BinaryOp::Ne, peer, root, |x| x.put(own, peer, own, length));
                });
            });
            x.meet_group(across, turn);
            x.when(BinaryOp::Ne, root_host, place.host, |x| {
                x.for_members(near, 0, |x, peer, _| x.put(own, peer, came, length));
            });
            x.close(near);
        });
    }

    fn here(&self) -> Place {
        self.place.expect("a call in levels has a place")
    }

    /// The ranks of this host.
    fn near(&mut self) -> Group {
        let place = self.here();
        Group { count: self.int(place.levels.width), own: place.position, times: 1, plus: place.first }
    }

    /// The ranks at this position, by host.
    fn across(&mut self) -> Group {
        let place = self.here();
        let Levels { hosts, width } = place.levels;
        Group { count: self.int(hosts), own: place.host, times: width, plus: place.position }
    }

    /// The same, to combine what they have.
    fn host_ranks(&mut self) -> PeerRange {
        let place = self.here();
        self.some(place.first, place.levels.width)
    }

    /// This rank's part of `count` elements, that are divided among a group.
    fn part_of(&mut self, count: Scalar, group: Group) -> (Scalar, Scalar) {
        self.segment(count, group.own, group.count)
    }

    /// Element `at` of a row of the stage.
    fn staged_row(&mut self, stage: Layout, turn: Turn, row: Scalar, at: Scalar) -> Range {
        let row = self.mul(row, stage.row);
        let at = self.add(row, at);
        self.shard(turn, at)
    }

    /// `count` elements from `dst` on become the combination of those from element `at` on of the rows that came, in the
    /// order of the hosts. Rows are combined in whole tiles: what is around the elements is not used.
    fn combine_hosts(&mut self, stage: Layout, op: Combine, turn: Turn, dst: Range, at: Scalar, count: Scalar) {
        let (place, tile) = (self.here(), self.b.extent_int(stage.tile));
        let (zero, one, hosts) = (self.int(0), self.int(1), self.int(place.levels.hosts));
        let combined = self.add(place.host, hosts);
        let (end, step) = (self.add(at, count), self.int(stage.tile));
        let before = self.b.binary(BinaryOp::Div, at, step);
        let begin = self.mul(before, stage.tile);
        let first = self.b.for_begin(begin, end, step);
        let load = |x: &mut Self, row| {
            let range = x.staged_row(stage, turn, row, first);
            x.b.load(range.tensor, &[range.first], [tile].into_iter().collect())
        };
        let all = load(self, zero);
        let host = self.b.for_begin(one, hosts, one);
        let more = load(self, host);
        let sum = self.b.tile_op(tile_op(op), all, TileOrScalar::Tile(more));
        self.b.assign(all, sum);
        self.b.for_end();
        let range = self.staged_row(stage, turn, combined, first);
        self.b.store(all, range.tensor, &[range.first]);
        self.b.for_end();
        let (combined, me) = (self.staged_row(stage, turn, combined, at), self.me);
        let myself = self.some(me, 1);
        self.get_reduce(op, dst, combined, myself, count);
    }
}
