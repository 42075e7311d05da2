//! Windows and arguments of a run, and parts of them.

use std::ops::Range;

use super::options::Arg;
use super::plan::Plan;
use super::registers::{Base, View};
use super::shadow::{Access, Shadow};
use super::value::{Value, decode, encode, tile_op};
use crate::ir::{DType, TileOp};

/// A piece of memory: one rank's windows, or one part of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece(usize);

/// All memory of a run.
pub struct Memory {
    nranks: usize,
    /// Windows by rank, then arguments by set, number and rank.
    bytes: Vec<Vec<u8>>,
    shadows: Vec<Shadow>,
    /// Arguments that all ranks have in common.
    shared: Vec<bool>,
}

/// A remote write that is on its way.
#[derive(Clone, Debug)]
pub struct Landing {
    /// Where it goes.
    pub piece: Piece,
    /// Bytes there.
    pub ranges: Vec<Range<usize>>,
    /// What it brings.
    pub bytes: Vec<u8>,
    /// It adds elements of this type.
    pub adds: Option<DType>,
    /// The end of the task does not drain it.
    pub lazy: bool,
}

impl Memory {
    /// Memory before the first launch.
    pub fn new(plan: &Plan) -> Self {
        let mut memory = Self {
            nranks: plan.nranks,
            bytes: vec![vec![0; plan.layout.bytes]; plan.nranks],
            shadows: Vec::new(),
            shared: Vec::new(),
        };
        for arg in plan.options.args {
            let parts: Vec<Vec<u8>> = match arg {
                Arg::Ranked(parts) => parts.clone(),
                Arg::Shared(whole) => std::iter::once(whole.clone()).chain((1..plan.nranks).map(|_| vec![])).collect(),
                Arg::Bits(_) => vec![Vec::new(); plan.nranks],
            };
            memory.bytes.extend(parts);
            memory.shared.push(matches!(arg, Arg::Shared(_)));
        }
        memory.shadows.resize_with(memory.bytes.len(), Shadow::default);
        memory
    }

    /// The memory that a view means at a rank; `first_arg` is the first argument of the launch.
    pub fn piece(&self, base: Base, rank: usize, first_arg: usize) -> Piece {
        Piece(match base {
            Base::Window(_) => rank,
            Base::Arg(number) => {
                let arg = first_arg + number;
                self.nranks * (1 + arg) + if self.shared[arg] { 0 } else { rank }
            }
        })
    }

    /// The rank whose windows a piece is.
    pub fn window_of(&self, piece: Piece) -> Option<usize> {
        (piece.0 < self.nranks).then_some(piece.0)
    }

    /// The windows of a rank.
    pub fn windows(&self, rank: usize) -> Piece {
        Piece(rank)
    }

    /// The bytes of a part of an argument.
    pub fn argument(&self, arg: usize, part: usize) -> &[u8] {
        &self.bytes[self.nranks * (1 + arg) + part]
    }

    /// The same, to change them.
    pub fn argument_mut(&mut self, arg: usize, part: usize) -> &mut [u8] {
        &mut self.bytes[self.nranks * (1 + arg) + part]
    }

    /// Who wrote a byte of an argument last.
    pub fn last_write(&self, arg: usize, part: usize, byte: usize) -> Option<Access> {
        self.shadows[self.nranks * (1 + arg) + part].last_write(byte)
    }

    /// The argument that a piece is part of, and the rank whose part it is.
    pub fn argument_of(&self, piece: Piece) -> Option<(usize, usize)> {
        let index = piece.0.checked_sub(self.nranks)?;
        Some((index / self.nranks, index % self.nranks))
    }

    /// Who touched a piece.
    pub fn shadow(&self, piece: Piece) -> &Shadow {
        &self.shadows[piece.0]
    }

    /// Who touched a piece, to note more.
    pub fn shadow_mut(&mut self, piece: Piece) -> &mut Shadow {
        &mut self.shadows[piece.0]
    }

    /// New windows, as at the beginning of a launch.
    pub fn zero_windows(&mut self) {
        self.bytes[..self.nranks].iter_mut().for_each(|bytes| bytes.fill(0));
        self.shadows[..self.nranks].iter_mut().for_each(|shadow| *shadow = Shadow::default());
    }

    /// The value of a signal cell.
    pub fn cell(&self, rank: usize, at: usize) -> i32 {
        let bytes = &self.bytes[rank][at..at + 4];
        i32::from_ne_bytes(bytes.try_into().expect("four bytes"))
    }

    /// Changes a signal cell.
    pub fn set_cell(&mut self, rank: usize, at: usize, value: i32) {
        self.bytes[rank][at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// The bytes of some ranges, one behind the other.
    pub fn gather(&self, piece: Piece, ranges: &[Range<usize>]) -> Vec<u8> {
        ranges.iter().flat_map(|range| &self.bytes[piece.0][range.clone()]).copied().collect()
    }

    /// Elements of some ranges.
    pub fn elements(&self, piece: Piece, ranges: &[Range<usize>], dtype: DType) -> Vec<Value> {
        let all = &self.bytes[piece.0];
        let size = dtype.size() as usize;
        ranges.iter().flat_map(|range| all[range.clone()].chunks_exact(size)).map(|b| decode(b, dtype)).collect()
    }

    /// Writes, or adds.
    pub fn land(&mut self, landing: &Landing) {
        let all = &mut self.bytes[landing.piece.0];
        let mut from = landing.bytes.as_slice();
        for range in &landing.ranges {
            let (now, rest) = from.split_at(range.len());
            from = rest;
            let to = &mut all[range.clone()];
            let Some(dtype) = landing.adds else {
                to.copy_from_slice(now);
                continue;
            };
            let size = dtype.size() as usize;
            for (to, now) in to.chunks_exact_mut(size).zip(now.chunks_exact(size)) {
                let sum = tile_op(TileOp::Add, dtype, decode(to, dtype), decode(now, dtype));
                to.copy_from_slice(&encode(sum.expect("a sum has a value"), dtype));
            }
        }
    }

    /// The windows by rank, and some arguments.
    pub fn into_parts(self, first_arg: usize, given: &[Arg]) -> (Vec<Vec<u8>>, Vec<Arg>) {
        let mut windows = self.bytes;
        let mut args = windows.split_off(self.nranks).split_off(self.nranks * first_arg);
        let args = given.iter().map(|arg| {
            let rest = args.split_off(self.nranks);
            let mut parts = std::mem::replace(&mut args, rest);
            match arg {
                Arg::Ranked(_) => Arg::Ranked(parts),
                Arg::Shared(_) => Arg::Shared(parts.swap_remove(0)),
                Arg::Bits(bits) => Arg::Bits(*bits),
            }
        });
        (windows, args.collect())
    }
}

/// The bytes of a region of a tensor, row-major, in as few ranges as can be.
pub fn ranges(view: &View, at: &[i64], extents: &[i64], element: i64) -> Vec<Range<usize>> {
    if extents.contains(&0) {
        return Vec::new();
    }
    let mut row = element;
    let mut outer = extents.len();
    while outer > 0 && view.strides[outer - 1] == row {
        outer -= 1;
        row *= extents[outer];
    }
    let first = view.at(at);
    let mut index = vec![0i64; outer];
    let mut ranges = Vec::with_capacity(extents[..outer].iter().product::<i64>() as usize);
    loop {
        let start = first + index.iter().zip(&view.strides).map(|(i, stride)| i * stride).sum::<i64>();
        ranges.push(start as usize..(start + row) as usize);
        let Some(dim) = (0..outer).rev().find(|&dim| index[dim] + 1 < extents[dim]) else { return ranges };
        index[dim] += 1;
        index[dim + 1..].fill(0);
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::ir::Buffer;

    #[test]
    fn regions_are_rows_that_grow_together() {
        let view = View { base: Base::Window(Buffer::from_u32(0)), offset: 64, strides: smallvec![48, 12, 4] };
        assert_eq!(ranges(&view, &[0, 0, 0], &[2, 4, 3], 4), [64..160]);
        assert_eq!(ranges(&view, &[1, 2, 0], &[1, 2, 3], 4), [136..160]);
        assert_eq!(ranges(&view, &[0, 1, 1], &[2, 2, 1], 4), [80..84, 92..96, 128..132, 140..144]);
        assert_eq!(ranges(&view, &[0, 0, 0], &[2, 0, 3], 4), []);
    }
}
