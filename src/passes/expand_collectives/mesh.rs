//! Algorithms of one synchronisation: each rank gives to all, and then takes from all.
//!
//! Few elements go along with the arrival, into the line of cells that the others look at anyway. More stand in the stage
//! of the one that gives them, until they are taken. Both exist twice, and turns take them alternately: who has come to a
//! turn has taken what was there two turns before.

use super::Target;
use super::algorithms::{Rows, tile_op, wide};
use super::channels::{LINE_BYTES, MAIL_AT, MAIL_BYTES};
use super::exchange::{Exchange, Range};
use super::meeting::Turn;
use crate::ir::{BinaryOp, Combine, Scalar, Tensor, TileOrScalar};

/// What a rank gives.
enum Given {
    /// The same to everybody.
    All(Tensor),
    /// A row to each.
    Each(Rows),
}

/// What becomes of what a rank takes.
enum Taken {
    /// It is combined, into elements that begin here.
    Combined(Combine, Tensor, Scalar),
    /// It becomes a row for each rank.
    Rows(Rows),
}

impl Exchange<'_> {
    pub(super) fn allreduce_mesh(&mut self, op: Combine, data: Tensor, target: &Target) {
        let (flat, count) = self.whole(data, target);
        let zero = self.int(0);
        self.mesh(&Given::All(flat), &Taken::Combined(op, flat, zero), count);
    }

    pub(super) fn reduce_scatter_mesh(&mut self, op: Combine, data: Tensor, target: &Target) {
        let rows = self.rows(data, target);
        let (me, zero, each) = (self.me, self.int(0), rows.each);
        let own = self.in_row(&rows, me, zero);
        self.mesh(&Given::Each(rows), &Taken::Combined(op, own.tensor, own.first), each);
    }

    pub(super) fn allgather_mesh(&mut self, dst: Tensor, src: Tensor, target: &Target) {
        let rows = self.rows(dst, target);
        let (from, each) = (self.flat(src), rows.each);
        self.mesh(&Given::All(from), &Taken::Rows(rows), each);
    }

    pub(super) fn all_to_all_mesh(&mut self, dst: Tensor, src: Tensor, target: &Target) {
        let (to, from) = (self.rows(dst, target), self.rows(src, target));
        let each = to.each;
        self.mesh(&Given::Each(from), &Taken::Rows(to), each);
    }

    pub(super) fn broadcast_mesh(&mut self, data: Tensor, root: Scalar, target: &Target) {
        let (flat, count) = self.whole(data, target);
        let (begin, count) = self.share(count);
        let most = self.most(1);
        let me = self.me;
        self.for_parts(count, most, |x, first, part| {
            let first = x.add(begin, first);
            let (own, turn) = (x.range(flat, first), x.turn());
            let zero = x.int(0);
            if x.mail.is_some() {
                x.meet_with(turn, |x, peer| {
                    let line = x.mail_of(turn, me);
                    x.when(BinaryOp::Eq, me, root, |x| x.put(line, peer, own, part));
                });
                let line = x.mail_of(turn, root);
                x.when(BinaryOp::Ne, me, root, |x| x.put(own, me, line, part));
            } else {
                let slot = x.slot(turn, zero);
                x.when(BinaryOp::Eq, me, root, |x| x.put(slot, me, own, part));
                x.meet(turn);
                x.when(BinaryOp::Ne, me, root, |x| x.get(own, slot, root, part));
            }
        });
    }

    /// `count` elements for each rank.
    fn mesh(&mut self, given: &Given, taken: &Taken, count: i64) {
        let (begin, count) = self.share(count);
        let rows = match given {
            Given::All(_) => 1,
            Given::Each(rows) => rows.count,
        };
        let most = self.most(rows);
        self.for_parts(count, most, |x, first, part| {
            let first = x.add(begin, first);
            let turn = x.turn();
            if x.mail.is_some() {
                x.by_mail(turn, given, taken, first, part);
            } else {
                x.by_stage(turn, given, taken, most, first, part);
            }
        });
    }

    /// Most elements for one rank that go in one turn.
    fn most(&self, rows: i64) -> i64 {
        match (self.mail, self.stage) {
            (Some(mail), _) => MAIL_BYTES / self.size_of(mail),
            // Rows begin in lines of their own.
            (None, Some(stage)) => {
                (stage.slot_bytes / rows.max(1) / LINE_BYTES * LINE_BYTES / self.size_of(stage.tensor)).max(1)
            }
            (None, None) => unreachable!("a mesh has mail or a stage"),
        }
    }

    fn by_stage(&mut self, turn: Turn, given: &Given, taken: &Taken, most: i64, first: Scalar, part: Scalar) {
        let (me, zero) = (self.me, self.int(0));
        let mine = match given {
            Given::All(tensor) => {
                let (own, slot) = (self.range(*tensor, first), self.slot(turn, zero));
                self.put(slot, me, own, part);
                slot
            }
            Given::Each(rows) => {
                self.for_all(|x, row| {
                    let (at, own) = (x.mul(row, most), x.in_row(rows, row, first));
                    let slot = x.slot(turn, at);
                    x.put(slot, me, own, part);
                });
                let at = self.mul(me, most);
                self.slot(turn, at)
            }
        };
        self.meet(turn);
        match taken {
            Taken::Combined(op, tensor, start) => {
                let at = self.add(*start, first);
                let (own, all) = (self.range(*tensor, at), self.all());
                self.get_reduce(*op, own, mine, all, part);
            }
            Taken::Rows(rows) => self.for_all(|x, peer| {
                let row = x.in_row(rows, peer, first);
                x.get(row, mine, peer, part);
            }),
        }
    }

    fn by_mail(&mut self, turn: Turn, given: &Given, taken: &Taken, first: Scalar, part: Scalar) {
        let me = self.me;
        let line = self.mail_of(turn, me);
        let give = |x: &mut Self, peer: Scalar| {
            let own = match given {
                Given::All(tensor) => x.range(*tensor, first),
                Given::Each(rows) => x.in_row(rows, peer, first),
            };
            x.put(line, peer, own, part);
        };
        give(self, me);
        self.meet_with(turn, give);
        match taken {
            Taken::Combined(op, tensor, start) => {
                let at = self.add(*start, first);
                let own = self.range(*tensor, at);
                self.combine_mail(turn, *op, own, part);
            }
            Taken::Rows(rows) => self.for_all(|x, peer| {
                let (row, line) = (x.in_row(rows, peer, first), x.mail_of(turn, peer));
                x.put(row, me, line, part);
            }),
        }
    }

    /// What stands in the line of a rank behind its cells.
    fn mail_of(&mut self, turn: Turn, rank: Scalar) -> Range {
        let tensor = self.mail.expect("the call goes by mail");
        let size = self.size_of(tensor);
        let two = self.int(2);
        let lane = self.b.binary(BinaryOp::Mul, self.lane, two);
        let lines = self.add(lane, turn.parity);
        let lines = self.b.binary(BinaryOp::Mul, lines, self.world);
        let line = self.add(lines, rank);
        let begin = self.mul(line, LINE_BYTES / size);
        let at = self.int(MAIL_AT / size);
        let first = self.add(begin, at);
        self.range(tensor, first)
    }

    /// Combines what has come, in the order of the ranks.
    fn combine_mail(&mut self, turn: Turn, op: Combine, dst: Range, part: Scalar) {
        let extent = self.b.extent(part).expect("what goes by mail has a size that is known");
        let dtype = self.b.program().tensors[dst.tensor].dtype;
        let wide = wide(dtype);
        let load = |x: &mut Self, rank: Scalar| {
            let line = x.mail_of(turn, rank);
            let tile = x.b.load(line.tensor, &[line.first], [extent].into_iter().collect());
            if wide == dtype { tile } else { x.b.tile_cast(wide, tile) }
        };
        let (zero, one, n_ranks) = (self.int(0), self.int(1), self.nranks);
        let all = load(self, zero);
        let rank = self.b.for_begin(one, n_ranks, one);
        let more = load(self, rank);
        let sum = self.b.tile_op(tile_op(op), all, TileOrScalar::Tile(more));
        self.b.assign(all, sum);
        self.b.for_end();
        let result = if wide == dtype { all } else { self.b.tile_cast(dtype, all) };
        self.b.store(result, dst.tensor, &[dst.first]);
    }
}
