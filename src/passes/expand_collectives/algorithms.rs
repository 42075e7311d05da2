//! The algorithms, and what they stage.

use super::channels::{LINE_BYTES, MAIL_BYTES};
use super::exchange::{Exchange, Range};
use super::{Call, Target, data, elements, extents};
use crate::ir::program::ScalarDef;
use crate::ir::{BinaryOp, CollectiveKind, Combine, DType, Mode, Program, Scalar, Tensor, TileOp};

/// Most bytes that a mesh stages at once; more go in several turns.
const MOST_STAGED: i64 = 64 << 10;

/// Elements that are combined and handed on while they are near.
const PART_BYTES: i64 = 16 << 10;

/// Segments of this many elements do not share a cache line with their neighbours, whatever the type.
pub(super) const SEGMENT_UNIT: i64 = 64;

/// What a call is called: calls of one name pair.
pub(super) fn label(program: &Program, call: &Call, target: &Target) -> String {
    let collective = &call.collective;
    let mut words = vec![collective.name().to_string()];
    words.extend(collective.combine().map(|op| op.to_string()));
    if let Some(tensor) = data(collective) {
        let shape = extents(program, tensor, target).iter().map(i64::to_string).collect::<Vec<_>>();
        words.extend([shape.join("x"), program.tensors[tensor].dtype.to_string()]);
    }
    if let Some(root) = collective.root()
        && let ScalarDef::Extent(_) = program.scalars[root].def
    {
        words.extend(program.int_value(root, target.known()).map(|root| format!("root_{root}")));
    }
    if collective.mode != Mode::Mesh || data(collective).is_some() {
        words.push(collective.mode.to_string());
    }
    if let Some((lanes, _)) = call.lanes {
        words.push(format!("cores_{lanes}"));
    }
    words.join("_")
}

/// The type of the elements that a call sends along with its arrival, if they are few.
pub(super) fn mailed(program: &Program, call: &Call, target: &Target) -> Option<DType> {
    let dtype = program.tensors[data(&call.collective)?].dtype;
    // Shares of lanes, and rows by count, are of no size that is known.
    let known = call.lanes.is_none() && !matches!(call.collective.kind, CollectiveKind::AllToAllV(_));
    let fits = given_bytes(program, call, target) <= MAIL_BYTES;
    (call.collective.mode == Mode::Mesh && known && fits).then_some(dtype)
}

/// The type of the elements that a call stages, if it does.
pub(super) fn staged(program: &Program, call: &Call, target: &Target) -> Option<DType> {
    let dtype = program.tensors[data(&call.collective)?].dtype;
    match call.collective.mode {
        Mode::Mesh => mailed(program, call, target).is_none().then_some(dtype),
        // Sums travel in the type in which they are made.
        Mode::Ring => Some(wide(dtype)).filter(|&wide| wide != dtype),
        _ => None,
    }
}

/// How many bytes a call stages at once, at most.
pub(super) fn staged_bytes(program: &Program, call: &Call, target: &Target) -> i64 {
    let Some(dtype) = staged(program, call, target) else { return 0 };
    let tensor = data(&call.collective).expect("what is staged has data");
    let rows = match call.collective.kind {
        // What goes to one rank is all taken in one turn.
        CollectiveKind::AllToAllV(_) => return round_up(given_bytes(program, call, target), LINE_BYTES),
        CollectiveKind::ReduceScatter { .. } | CollectiveKind::AllToAll { .. } => rows(program, tensor, target),
        _ => 1,
    };
    let row = given_bytes(program, call, target) / program.tensors[tensor].dtype.size() * dtype.size();
    let row = row.min(MOST_STAGED / rows.max(1)).max(1);
    rows * round_up(row, LINE_BYTES)
}

/// How many bytes a rank gives to another one.
fn given_bytes(program: &Program, call: &Call, target: &Target) -> i64 {
    use CollectiveKind::*;
    let Some(tensor) = data(&call.collective) else { return 0 };
    let bytes = elements(program, tensor, target) * program.tensors[tensor].dtype.size();
    match call.collective.kind {
        ReduceScatter { .. } | Allgather { .. } | AllToAll { .. } => bytes / rows(program, tensor, target).max(1),
        _ => bytes,
    }
}

/// What combines tiles like elements.
pub(super) fn tile_op(op: Combine) -> TileOp {
    match op {
        Combine::Sum => TileOp::Add,
        Combine::Prod => TileOp::Mul,
        Combine::Max => TileOp::Max,
        Combine::Min => TileOp::Min,
    }
}

/// The type in which elements of another one combine.
pub(super) fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

pub(super) fn round_up(value: i64, unit: i64) -> i64 {
    (value + unit - 1) / unit * unit
}

/// How many parts the data has that belong to ranks.
fn rows(program: &Program, tensor: Tensor, target: &Target) -> i64 {
    extents(program, tensor, target)[0]
}

/// A tensor in one dimension, as rows.
pub(super) struct Rows {
    flat: Tensor,
    pub(super) count: i64,
    /// Elements of a row.
    pub(super) each: i64,
}

impl Exchange<'_> {
    /// Writes the call out.
    pub(super) fn write_out(mut self, call: &Call, target: &Target) {
        if call.collective.mode == Mode::Hierarchical {
            self.in_levels(call, target);
        } else {
            self.in_one_level(call, target);
        }
        self.end();
    }

    fn in_one_level(&mut self, call: &Call, target: &Target) {
        let mesh = call.collective.mode == Mode::Mesh;
        match call.collective.kind {
            CollectiveKind::Barrier { .. } => self.synchronise(),
            CollectiveKind::Allreduce { data, op } => match call.collective.mode {
                Mode::Mesh => self.allreduce_mesh(op, data, target),
                Mode::Ring => self.allreduce_ring(op, data, target),
                _ => self.allreduce_two_phase(op, data, target),
            },
            CollectiveKind::ReduceScatter { data, op } if mesh => self.reduce_scatter_mesh(op, data, target),
            CollectiveKind::ReduceScatter { data, op } => self.reduce_scatter_direct(op, data, target),
            CollectiveKind::Broadcast { data, root } if mesh => self.broadcast_mesh(data, root, target),
            CollectiveKind::Broadcast { data, root } => self.broadcast_direct(data, root, target),
            CollectiveKind::Allgather { dst, src } if mesh => self.allgather_mesh(dst, src, target),
            CollectiveKind::Allgather { dst, src } => self.allgather_direct(dst, src, target),
            CollectiveKind::AllToAll { dst, src } if mesh => self.all_to_all_mesh(dst, src, target),
            CollectiveKind::AllToAll { dst, src } => self.all_to_all_direct(dst, src, target),
            CollectiveKind::AllToAllV(ref v) => self.all_to_all_v(v, mesh, target),
        }
    }

    pub(super) fn whole(&mut self, tensor: Tensor, target: &Target) -> (Tensor, i64) {
        let count = elements(self.b.program(), tensor, target);
        (self.flat(tensor), count)
    }

    pub(super) fn rows(&mut self, tensor: Tensor, target: &Target) -> Rows {
        let rows = rows(self.b.program(), tensor, target);
        let (flat, elements) = self.whole(tensor, target);
        Rows { flat, count: rows, each: if rows == 0 { 0 } else { elements / rows } }
    }

    /// Element `at` of row `row`.
    pub(super) fn in_row(&mut self, rows: &Rows, row: Scalar, at: Scalar) -> Range {
        let begin = self.mul(row, rows.each);
        let first = self.add(begin, at);
        self.range(rows.flat, first)
    }

    /// Each rank combines a segment, in place, and hands it to the others.
    fn allreduce_two_phase(&mut self, op: Combine, data: Tensor, target: &Target) {
        let (flat, count) = self.whole(data, target);
        let (begin, count) = self.share(count);
        self.synchronise();
        let me = self.me;
        let (first, length) = self.segment(count, me, self.nranks);
        let first = self.add(begin, first);
        let most = PART_BYTES / self.size_of(flat);
        self.for_parts(length, most, |x, at, part| {
            let first = x.add(first, at);
            let own = x.range(flat, first);
            let all = x.all();
            x.get_reduce(op, own, own, all, part);
            x.for_others(|x, peer| x.put(own, peer, own, part));
        });
        self.synchronise();
    }

    /// Segment `index` of `segments`: where it begins, and how many elements it has.
    pub(super) fn segment(&mut self, count: Scalar, index: Scalar, segments: Scalar) -> (Scalar, Scalar) {
        let last = self.int(1);
        let last = self.sub(segments, last);
        let sum = self.add(count, last);
        let each = self.b.binary(BinaryOp::Div, sum, segments);
        let (unit, less) = (self.int(SEGMENT_UNIT), self.int(SEGMENT_UNIT - 1));
        let each = self.add(each, less);
        let each = self.b.binary(BinaryOp::Div, each, unit);
        let each = self.mul(each, SEGMENT_UNIT);
        let first = self.b.binary(BinaryOp::Mul, index, each);
        let first = self.min(first, count);
        let rest = self.sub(count, first);
        (first, self.min(rest, each))
    }

    /// Partial results go from rank to rank, then the whole ones.
    fn allreduce_ring(&mut self, op: Combine, data: Tensor, target: &Target) {
        let (flat, count) = self.whole(data, target);
        let (begin, count) = self.share(count);
        let Some(stage) = self.stage else {
            self.ring(op, flat, begin, count);
            return;
        };
        let stage_elements = 2 * stage.slot_bytes / DType::F32.size();
        let lane = self.lane;
        let slot = self.mul(lane, stage_elements);
        self.for_parts(count, stage_elements, |x, first, part| {
            // Whoever took from the stage in the call or part before has done so.
            x.synchronise();
            let first = x.add(begin, first);
            let (own, wide) = (x.range(flat, first), x.range(stage.tensor, slot));
            let me = x.me;
            let myself = x.some(me, 1);
            x.get_reduce(op, wide, own, myself, part);
            x.ring(op, stage.tensor, slot, part);
            x.get_reduce(op, own, wide, myself, part);
        });
    }

    fn ring(&mut self, op: Combine, tensor: Tensor, begin: Scalar, count: Scalar) {
        let one = self.int(1);
        let last = self.sub(self.nranks, one);
        let left = self.add(self.me, last);
        let left = self.wrapped(left, self.nranks);
        let left = self.name(left, "left");
        // In step s a rank takes from its left neighbour what that has finished in step s - 1.
        let step = |x: &mut Self, behind: i64, take: &dyn Fn(&mut Self, Range, Scalar)| {
            let (zero, one) = (x.int(0), x.int(1));
            let step = x.b.for_begin(zero, last, one);
            x.synchronise();
            let behind = x.int(behind);
            let back = x.add(step, behind);
            let index = x.add(x.me, x.nranks);
            let index = x.sub(index, back);
            let index = x.wrapped(index, x.nranks);
            let (first, length) = x.segment(count, index, x.nranks);
            let first = x.add(begin, first);
            let range = x.range(tensor, first);
            take(x, range, length);
            x.b.for_end();
        };
        step(self, 2, &|x, range, length| {
            // The partial result, and then this rank's part.
            let two = x.some(left, 2);
            x.get_reduce(op, range, range, two, length);
        });
        step(self, 1, &|x, range, length| x.get(range, range, left, length));
        self.synchronise();
    }

    fn reduce_scatter_direct(&mut self, op: Combine, data: Tensor, target: &Target) {
        let rows = self.rows(data, target);
        let (begin, count) = self.share(rows.each);
        self.synchronise();
        let me = self.me;
        let own = self.in_row(&rows, me, begin);
        let all = self.all();
        self.get_reduce(op, own, own, all, count);
        self.synchronise();
    }

    fn broadcast_direct(&mut self, data: Tensor, root: Scalar, target: &Target) {
        let (flat, count) = self.whole(data, target);
        let (begin, count) = self.share(count);
        let me = self.me;
        self.synchronise();
        let own = self.range(flat, begin);
        self.when(BinaryOp::Ne, me, root, |x| x.get(own, own, root, count));
        self.synchronise();
    }

    fn allgather_direct(&mut self, dst: Tensor, src: Tensor, target: &Target) {
        let rows = self.rows(dst, target);
        let from = self.flat(src);
        let (begin, count) = self.share(rows.each);
        self.synchronise();
        let me = self.me;
        let (own, row) = (self.range(from, begin), self.in_row(&rows, me, begin));
        self.for_all(|x, peer| x.put(row, peer, own, count));
        self.synchronise();
    }

    fn all_to_all_direct(&mut self, dst: Tensor, src: Tensor, target: &Target) {
        let (to, from) = (self.rows(dst, target), self.rows(src, target));
        let (begin, count) = self.share(to.each);
        self.synchronise();
        let me = self.me;
        let row = self.in_row(&to, me, begin);
        self.for_all(|x, peer| {
            let from = x.in_row(&from, peer, begin);
            x.put(row, peer, from, count);
        });
        self.synchronise();
    }
}
