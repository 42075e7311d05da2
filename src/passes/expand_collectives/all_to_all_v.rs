//! All-to-all of rows whose numbers are known only when it runs.
//!
//! With the number of rows that it has for a rank, each rank tells it one place: where these rows stand in the stage, to be
//! taken from there, or, for those that are put, where in its `dst` it wants the rows of that rank.

use super::channels::MAIL_AT;
use super::exchange::{Exchange, Range};
use super::meeting::Turn;
use super::{Target, elements, extents};
use crate::ir::{AllToAllV, BinaryOp, Scalar, ScalarType, Tensor};

/// Cells of a line, where others have their mail: a number of rows, and a place.
const ROWS: i64 = MAIL_AT / 4;
const PLACE: i64 = ROWS + 1;

/// Rows that belong to ranks.
struct Side {
    flat: Tensor,
    /// Elements of a row.
    width: i64,
    rows: i64,
    /// Where the rows of each rank begin, and how many there can be: what stands behind an offset, or an even share.
    offsets: Option<Tensor>,
    share: Scalar,
}

impl Exchange<'_> {
    pub(super) fn all_to_all_v(&mut self, v: &AllToAllV, mesh: bool, target: &Target) {
        let to = self.side(v.dst, v.offsets.map(|(recv, _)| recv), target);
        let from = self.side(v.src, v.offsets.map(|(_, send)| send), target);
        let (counts, received) = (self.flat(v.send_counts), self.flat(v.recv_counts));
        let turn = self.turn();
        self.for_all(|x, peer| {
            let rows = x.count(counts, peer);
            let begin = x.begin_of(&from, peer);
            x.check_rows(&from, rows, begin, peer, "given");
            if to.offsets.is_none() {
                let zero = x.int(0);
                x.check_rows(&to, rows, zero, peer, "room");
            }
            let place = if mesh { begin } else { x.begin_of(&to, peer) };
            x.send_number(turn, rows, ROWS, peer);
            x.send_number(turn, place, PLACE, peer);
            if mesh {
                x.when_mine(peer, |x| {
                    let (slot, rows_there) = (x.staged_rows(turn, &from, begin), x.rows_from(&from, begin));
                    let (me, count) = (x.me, x.mul(rows, from.width));
                    x.put(slot, me, rows_there, count);
                });
            }
        });
        self.meet(turn);
        self.for_all(|x, peer| {
            let came = x.number(turn, ROWS, peer);
            let came = x.name(came, "came");
            let begin = x.begin_of(&to, peer);
            x.check_rows(&to, came, begin, peer, "room");
            x.when_mine(peer, |x| {
                if mesh {
                    let place = x.number(turn, PLACE, peer);
                    let (slot, rows_here) = (x.staged_rows(turn, &from, place), x.rows_from(&to, begin));
                    let count = x.mul(came, to.width);
                    x.get(rows_here, slot, peer, count);
                } else {
                    let (rows, begin) = (x.count(counts, peer), x.begin_of(&from, peer));
                    let place = x.number(turn, PLACE, peer);
                    if to.offsets.is_some() {
                        x.check_rows(&to, rows, place, peer, "room_there");
                    }
                    let (rows_there, rows_here) = (x.rows_from(&to, place), x.rows_from(&from, begin));
                    let count = x.mul(rows, to.width);
                    x.put(rows_there, peer, rows_here, count);
                }
                x.b.write(received, &[peer], came);
            });
        });
        if !mesh {
            self.synchronise();
        }
    }

    fn side(&mut self, tensor: Tensor, offsets: Option<Tensor>, target: &Target) -> Side {
        let program = self.b.program();
        let (rows, elements) = (extents(program, tensor, target)[0], elements(program, tensor, target));
        let width = if rows == 0 { 0 } else { elements / rows };
        let flat = self.flat(tensor);
        let offsets = offsets.map(|offsets| self.flat(offsets));
        let all = self.int(rows);
        let share = self.b.binary(BinaryOp::Div, all, self.nranks);
        Side { flat, width, rows, offsets, share }
    }

    fn count(&mut self, counts: Tensor, peer: Scalar) -> Scalar {
        let rows = self.b.read(counts, &[peer]);
        let rows = self.b.cast(ScalarType::I64, rows);
        self.name(rows, "rows")
    }

    /// The row at which those of a rank begin.
    fn begin_of(&mut self, side: &Side, peer: Scalar) -> Scalar {
        match side.offsets {
            Some(offsets) => {
                let begin = self.b.read(offsets, &[peer]);
                self.b.cast(ScalarType::I64, begin)
            }
            None => self.b.binary(BinaryOp::Mul, peer, side.share),
        }
    }

    /// `rows` from `begin` on are there; `limit` is what messages call their greatest number.
    fn check_rows(&mut self, side: &Side, rows: Scalar, begin: Scalar, peer: Scalar, limit: &str) {
        let zero = self.int(0);
        self.b.require(BinaryOp::Ge, rows, zero, Some(peer));
        let room = if side.offsets.is_some() {
            self.b.require(BinaryOp::Ge, begin, zero, Some(peer));
            let all = self.int(side.rows);
            self.sub(all, begin)
        } else {
            side.share
        };
        let room = self.name(room, limit);
        self.b.require(BinaryOp::Le, rows, room, Some(peer));
    }

    fn send_number(&mut self, turn: Turn, number: Scalar, cell: i64, peer: Scalar) {
        let number = self.b.cast(ScalarType::I32, number);
        let tile = self.cell_tile(number);
        self.send_cell(turn, tile, cell, peer);
    }

    fn number(&mut self, turn: Turn, cell: i64, peer: Scalar) -> Scalar {
        let number = self.cell(turn, cell, peer);
        self.b.cast(ScalarType::I64, number)
    }

    fn rows_from(&mut self, side: &Side, begin: Scalar) -> Range {
        let first = self.mul(begin, side.width);
        self.range(side.flat, first)
    }

    fn staged_rows(&mut self, turn: Turn, side: &Side, begin: Scalar) -> Range {
        let first = self.mul(begin, side.width);
        self.slot(turn, first)
    }

    /// The pairs of ranks are divided among the lanes: both ranks of a pair must meet in the same one.
    fn when_mine(&mut self, peer: Scalar, build: impl FnOnce(&mut Self)) {
        if self.lanes == 1 {
            return build(self);
        }
        let lanes = self.int(self.lanes);
        let pair = self.add(self.me, peer);
        let turn = self.b.binary(BinaryOp::Rem, pair, lanes);
        let lane = self.lane;
        self.when(BinaryOp::Eq, turn, lane, build);
    }
}
