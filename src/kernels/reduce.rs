//! Reductions of a tile along one axis.
//!
//! f16, bf16 and f32 accumulate in f32, in an order that depends on the shape only, so a result is the same on every
//! run and every CPU. Along a row, element `j` goes to lane `j % BLOCK`; each lane adds up in ascending order, and then
//! the upper half of the lanes is added to the lower half until one is left. Along a column, elements add up from the
//! first row to the last. A sum begins with zero, a maximum with the lowest number.

use super::element::{Arithmetic, BLOCK, Number};
use super::level::Simd;
use super::tile::{Add, Max, Op};

/// Blocks of columns that a column reduction takes through all rows at once.
const COLUMN_BLOCKS: usize = 8;

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
    let tail = cols % BLOCK;
    let full = cols - tail;
    for row in 0..rows {
        let mut lanes = [R::first::<E::Wide>(); BLOCK];
        // SAFETY: the caller gives rows * cols elements at src and rows at dst.
        unsafe {
            let src = src.add(row * cols);
            for at in (0..full).step_by(BLOCK) {
                lanes = R::apply_block(&lanes, &E::load::<L>(src.add(at), BLOCK));
            }
            if tail != 0 {
                let last = E::load::<L>(src.add(full), tail);
                for lane in 0..tail {
                    lanes[lane] = R::apply(lanes[lane], last[lane]);
                }
            }
            let mut width = BLOCK / 2;
            while width > 0 {
                for lane in 0..width {
                    lanes[lane] = R::apply(lanes[lane], lanes[lane + width]);
                }
                width /= 2;
            }
            dst.add(row).write(E::narrow(lanes[0]));
        }
    }
}

entry! {
    /// `fn(dst, src, rows, cols)`: `dst[c]` = column `c` of `src`, reduced.
    fn columns = columns_body<E: Arithmetic, R: Reduction>(dst: *mut E, src: *const E, rows: usize, cols: usize)
}

#[inline(always)]
unsafe fn columns_body<L: Simd, E: Arithmetic, R: Reduction>(dst: *mut E, src: *const E, rows: usize, cols: usize) {
    const STRIP: usize = BLOCK * COLUMN_BLOCKS;
    for first in (0..cols).step_by(STRIP) {
        let width = (cols - first).min(STRIP);
        let mut sums = [[R::first::<E::Wide>(); BLOCK]; COLUMN_BLOCKS];
        // SAFETY: the caller gives rows * cols elements at src and cols at dst.
        unsafe {
            for row in 0..rows {
                let src = src.add(row * cols + first);
                for (block, sums) in sums.iter_mut().enumerate().take(width / BLOCK) {
                    *sums = R::apply_block(sums, &E::load::<L>(src.add(block * BLOCK), BLOCK));
                }
                if width % BLOCK != 0 {
                    let (block, tail) = (width / BLOCK, width % BLOCK);
                    sums[block] = R::apply_block(&sums[block], &E::load::<L>(src.add(block * BLOCK), tail));
                }
            }
            for (block, sums) in sums.iter().enumerate().take(width.div_ceil(BLOCK)) {
                let at = block * BLOCK;
                E::store::<L>(dst.add(first + at), sums, (width - at).min(BLOCK));
            }
        }
    }
}
