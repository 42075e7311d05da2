//! Reductions of a tile along one axis.
//!
//! f16, bf16 and f32 accumulate in f32, in an order that depends on the shape only, so a result is the same on every
//! run and every CPU. Along a row, element `j` goes to lane `j % LANES`; each lane adds up in ascending order, and then
//! the upper half of the lanes is added to the lower half until one is left. Along a column, elements add up from the
//! first row to the last. A sum begins with zero, a maximum with the lowest number.

use std::slice;

use super::element::{Arithmetic, CHUNK, Chunk, Number};
use super::level::Simd;
use super::tile::{Add, Max, Op};

/// Partial results of a row: two registers of f32 at the widest level. A chunk is a multiple.
const LANES: usize = 32;

/// An op that reduces.
pub(super) trait Reduction: Op {
    /// What a reduction begins with.
    fn first<N: Number>() -> N;
}

impl Reduction for Add {
    #[inline(always)]
    fn first<N: Number>() -> N {
        N::ZERO
    }
}

impl Reduction for Max {
    #[inline(always)]
    fn first<N: Number>() -> N {
        N::LOWEST
    }
}

entry! {
    /// `fn(dst, src, rows, cols)`: `dst[r]` = row `r` of `src`, reduced.
    fn rows = rows_body<E: Arithmetic, R: Reduction>(dst: *mut E, src: *const E, rows: usize, cols: usize)
}

#[inline(always)]
unsafe fn rows_body<L: Simd, E: Arithmetic, R: Reduction>(dst: *mut E, src: *const E, rows: usize, cols: usize) {
    let mut wide = Chunk::new();
    for row in 0..rows {
        let mut lanes = [R::first::<E::Wide>(); LANES];
        // SAFETY: the caller gives rows * cols elements at src and rows at dst.
        unsafe {
            let src = src.add(row * cols);
            for at in (0..cols).step_by(E::AT_ONCE) {
                let len = (cols - at).min(E::AT_ONCE);
                let values = slice::from_raw_parts(E::read::<L>(src.add(at), len, &mut wide), len);
                let (groups, rest) = values.as_chunks::<LANES>();
                for group in groups {
                    apply::<R, _>(&mut lanes, group);
                }
                if !rest.is_empty() {
                    let mut group = [R::first(); LANES];
                    group[..rest.len()].copy_from_slice(rest);
                    apply::<R, _>(&mut lanes, &group);
                }
            }
            dst.add(row).write(E::narrow(fold::<R, _>(lanes)));
        }
    }
}

/// Reduces each lane by one more value.
#[inline(always)]
fn apply<R: Reduction, N: Number>(lanes: &mut [N; LANES], group: &[N; LANES]) {
    for lane in 0..LANES {
        lanes[lane] = R::apply(lanes[lane], group[lane]);
    }
}

/// Reduces the lanes to one value.
#[inline(always)]
fn fold<R: Reduction, N: Number>(mut lanes: [N; LANES]) -> N {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = R::apply(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

entry! {
    /// `fn(dst, src, rows, cols)`: `dst[c]` = column `c` of `src`, reduced.
    fn columns = columns_body<E: Arithmetic, R: Reduction>(dst: *mut E, src: *const E, rows: usize, cols: usize)
}

#[inline(always)]
unsafe fn columns_body<L: Simd, E: Arithmetic, R: Reduction>(dst: *mut E, src: *const E, rows: usize, cols: usize) {
    let (mut wide, mut results) = (Chunk::new(), Chunk::new());
    let results: *mut E::Wide = results.as_mut_ptr();
    for at in (0..cols).step_by(CHUNK) {
        let len = (cols - at).min(CHUNK);
        // SAFETY: the caller gives rows * cols elements at src and cols at dst, and at + len ≤ cols.
        unsafe {
            for i in 0..len {
                results.add(i).write(R::first());
            }
            for row in 0..rows {
                let values = E::read::<L>(src.add(row * cols + at), len, &mut wide);
                for i in 0..len {
                    results.add(i).write(R::apply(results.add(i).read(), values.add(i).read()));
                }
            }
            E::write::<L>(dst.add(at), results, len);
        }
    }
}
