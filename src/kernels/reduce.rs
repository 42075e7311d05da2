//! Reductions of a tile along one axis.
//!
//! f16, bf16 and f32 accumulate in f32, in an order that depends on the shape only, so a result is the same on every
//! run and every CPU. Along a row, element `j` goes to lane `j % LANES`; each lane adds up in ascending order, and then
//! the upper half of the lanes is added to the lower half until one is left. Along a column, elements add up from the
//! first row to the last. A sum begins with zero, a maximum with the lowest number.

use std::slice;

use super::element::{Arithmetic, CHUNK, Chunk, Element, Number};
use super::level::Simd;
use super::tile::{Add, Max, Op};

/// Partial results of a row. A chunk is a multiple. They are in memory and too many to be unrolled, which is what the
/// vectoriser handles well for every type; with as many as fit the registers it does not.
const LANES: usize = 128;

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
                    let mut group = [E::Near::narrow(R::first()); LANES];
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
fn apply<R: Reduction, E: Arithmetic>(lanes: &mut [E::Wide; LANES], group: &[E; LANES]) {
    for lane in 0..LANES {
        lanes[lane] = R::apply(lanes[lane], group[lane].widen());
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
                    results.add(i).write(R::apply(results.add(i).read(), values.add(i).read().widen()));
                }
            }
            E::write::<L>(dst.add(at), results, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::{DType, ReduceAxis, ReduceOp, TileOp};
    use crate::kernels::testing::{
        Guarded, Value, all_kernels, assert_elements, binary, decode, encode, function, pack, samples, unpack,
    };

    type Reduce = unsafe extern "C" fn(*mut u8, *const u8, usize, usize);

    fn types() -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(|d| *d != DType::Bool && !d.is_storage_only())
    }

    /// Reduces in the documented order, one value after the other, in the type that accumulates.
    fn reference(op: ReduceOp, axis: ReduceAxis, dtype: DType, values: &[u64]) -> u64 {
        let wide = if dtype.is_float() { DType::F32 } else { dtype };
        let (op, first) = match op {
            ReduceOp::Sum => (TileOp::Add, 0),
            ReduceOp::Max if dtype.is_float() => (TileOp::Max, encode(wide, Value::Float(f32::NEG_INFINITY))),
            ReduceOp::Max if matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64) => (TileOp::Max, 0),
            ReduceOp::Max => (TileOp::Max, 1 << (8 * dtype.size() - 1)),
        };
        let lanes = if axis == ReduceAxis::Row { LANES } else { 1 };
        let mut results = vec![first; lanes];
        for (i, &value) in values.iter().enumerate() {
            results[i % lanes] = binary(op, wide, results[i % lanes], encode(wide, decode(dtype, value)));
        }
        while results.len() > 1 {
            let upper = results.split_off(results.len() / 2);
            results.iter_mut().zip(upper).for_each(|(low, high)| *low = binary(op, wide, *low, high));
        }
        encode(dtype, decode(wide, results[0]))
    }

    fn check(op: ReduceOp, axis: ReduceAxis, dtype: DType, rows: usize, cols: usize, values: &[u64]) {
        let line = |i: usize| -> Vec<u64> {
            match axis {
                ReduceAxis::Row => values[i * cols..(i + 1) * cols].to_vec(),
                ReduceAxis::Col => (0..rows).map(|r| values[r * cols + i]).collect(),
            }
        };
        let lines = if axis == ReduceAxis::Row { rows } else { cols };
        let expected: Vec<u64> = (0..lines).map(|i| reference(op, axis, dtype, &line(i))).collect();
        let src = Guarded::new(&pack(dtype, values), (rows + cols) * dtype.size() as usize);
        for kernels in all_kernels() {
            let mut dst = Guarded::new(&pack(dtype, &vec![0; lines]), cols * dtype.size() as usize);
            // SAFETY: the documented signature; rows * cols elements at src, as many as results at dst.
            unsafe {
                let kernel: Reduce = function(kernels.reduce(op, axis, dtype).unwrap());
                kernel(dst.as_mut_ptr(), src.as_ptr(), rows, cols);
            }
            let what = format_args!("{:?} {axis}_{op} {dtype} [{rows}, {cols}]", kernels.level());
            assert_elements(dtype, &unpack(dtype, dst.bytes()), &expected, what);
        }
    }

    #[test]
    fn every_reduction_matches_the_reference() {
        for dtype in types() {
            for (&op, &axis) in ReduceOp::ALL.iter().flat_map(|op| ReduceAxis::ALL.iter().map(move |axis| (op, axis))) {
                let wide = [(3, CHUNK - 1), (2, CHUNK), (2, CHUNK + 1), (1, 3 * CHUNK + 65), (70, 33)];
                for (rows, cols) in (0..=130).map(|n| (1 + n % 4, n)).chain((0..20).map(|n| (n, 5))).chain(wide) {
                    check(op, axis, dtype, rows, cols, &samples(dtype, rows * cols, (rows * 1000 + cols) as u64));
                }
            }
        }
    }

    /// Random bits hold a NaN in nearly every line of floats; here are lines without.
    #[test]
    fn sums_of_ordinary_numbers_match_the_reference() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for (rows, cols) in [(1, 1), (2, 127), (5, 128), (3, 700), (64, 9)] {
                let number = |i: usize| Value::Float((i * 37 % 101) as f32 * 0.37 - 11.0);
                let values: Vec<u64> = (0..rows * cols).map(|i| encode(dtype, number(i))).collect();
                for (&op, &axis) in ReduceOp::ALL.iter().flat_map(|op| ReduceAxis::ALL.iter().map(move |a| (op, a))) {
                    check(op, axis, dtype, rows, cols, &values);
                }
            }
        }
    }

    #[test]
    fn one_nan_makes_a_maximum_nan() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for place in [0, 1, 127, 128, 300, 599] {
                let mut values: Vec<u64> = (0..600).map(|i| encode(dtype, Value::Float(i as f32))).collect();
                values[place] = encode(dtype, Value::Float(f32::NAN));
                for (axis, rows, cols) in [(ReduceAxis::Row, 1, 600), (ReduceAxis::Col, 600, 1)] {
                    let expected = decode(dtype, reference(ReduceOp::Max, axis, dtype, &values));
                    assert!(matches!(expected, Value::Float(x) if x.is_nan()));
                    check(ReduceOp::Max, axis, dtype, rows, cols, &values);
                }
            }
        }
    }

    /// In f16 itself the sum would stick at 2048.
    #[test]
    fn half_floats_accumulate_in_f32() {
        let ones = pack(DType::F16, &vec![encode(DType::F16, Value::Float(1.0)); 4096]);
        for kernels in all_kernels() {
            for (axis, rows, cols) in [(ReduceAxis::Row, 1, 4096), (ReduceAxis::Col, 4096, 1)] {
                let mut sum = [0u8; 2];
                // SAFETY: the documented signature; 4096 elements at src, one result.
                unsafe {
                    let kernel: Reduce = function(kernels.reduce(ReduceOp::Sum, axis, DType::F16).unwrap());
                    kernel(sum.as_mut_ptr(), ones.as_ptr(), rows, cols);
                }
                assert_eq!(unpack(DType::F16, &sum), [encode(DType::F16, Value::Float(4096.0))]);
            }
        }
    }
}
