//! Combination of the same elements of several ranks, one source a rank.
//!
//! Sources combine in their order; f16, bf16 and f32 in f32, rounded once at the end. However many there are, every
//! element takes the same way, so that ranks that combine the same sources get the same bits.

use std::any::TypeId;

use super::copy;
use super::element::{Arithmetic, CHUNK, Chunk, Element};
use super::level::Simd;
use super::tile::Op;

entry! {
    /// `fn(dst, srcs, count, n)`: `dst[i] = srcs[0][i] op srcs[1][i] op …`. `dst` may be one of the sources.
    fn combine = combine_body<D: Element<Wide = S::Wide>, S: Arithmetic, O: Op>(
        dst: *mut D, srcs: *const *const S, count: usize, n: usize
    )
}

#[inline(always)]
unsafe fn combine_body<L: Simd, D: Element<Wide = S::Wide>, S: Arithmetic, O: Op>(
    dst: *mut D,
    srcs: *const *const S,
    count: usize,
    n: usize,
) {
    if count == 1 && TypeId::of::<D>() == TypeId::of::<S>() {
        // SAFETY: the caller gives one source, and n elements of this size at both pointers.
        return unsafe { copy::copy(dst.cast(), srcs.read().cast(), n * size_of::<D>()) };
    }
    let mut wide = [Chunk::new(), Chunk::new(), Chunk::new(), Chunk::new()];
    let [wide_a, wide_b, wide_c, wide_d] = &mut wide;
    let mut results = Chunk::new();
    let results: *mut S::Wide = results.as_mut_ptr();
    for at in (0..n).step_by(CHUNK) {
        let len = (n - at).min(CHUNK);
        // SAFETY: the caller gives count sources, n elements at each of them and at dst, and at + len ≤ n. A chunk of
        // all sources is read before that of dst is written.
        unsafe {
            let source = |k: usize| srcs.add(k).read().add(at);
            let value = |elements: *const S::Near, i: usize| elements.add(i).read().widen();
            let a = S::read::<L>(source(0), len, wide_a);
            // The first four in one pass.
            match count {
                1 => {
                    for i in 0..len {
                        results.add(i).write(value(a, i));
                    }
                }
                2 => {
                    let b = S::read::<L>(source(1), len, wide_b);
                    for i in 0..len {
                        results.add(i).write(O::apply(value(a, i), value(b, i)));
                    }
                }
                3 => {
                    let (b, c) = (S::read::<L>(source(1), len, wide_b), S::read::<L>(source(2), len, wide_c));
                    for i in 0..len {
                        let two = O::apply(value(a, i), value(b, i));
                        results.add(i).write(O::apply(two, value(c, i)));
                    }
                }
                _ => {
                    let (b, c) = (S::read::<L>(source(1), len, wide_b), S::read::<L>(source(2), len, wide_c));
                    let d = S::read::<L>(source(3), len, wide_d);
                    for i in 0..len {
                        let two = O::apply(value(a, i), value(b, i));
                        let three = O::apply(two, value(c, i));
                        results.add(i).write(O::apply(three, value(d, i)));
                    }
                }
            }
            for k in 4..count {
                let more = S::read::<L>(source(k), len, wide_a);
                for i in 0..len {
                    results.add(i).write(O::apply(results.add(i).read(), value(more, i)));
                }
            }
            D::write::<L>(dst.add(at), results, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::{Combine, DType, TileOp};
    use crate::kernels::testing::{
        Guarded, Value, all_kernels, assert_elements, binary, decode, encode, function, pack, samples, unpack,
    };

    type Kernel = unsafe extern "C" fn(*mut u8, *const *const u8, usize, usize);

    /// The pairs of types, the result's first.
    fn types() -> impl Iterator<Item = (DType, DType)> {
        let small = |d: DType| d.is_float() && !d.is_storage_only();
        let pair = move |to: DType, from: DType| {
            to == from && to != DType::Bool && !to.is_storage_only() || small(to) && small(from)
        };
        DType::ALL
            .into_iter()
            .flat_map(|to| DType::ALL.map(|from| (to, from)))
            .filter(move |&(to, from)| pair(to, from))
    }

    fn reference(op: Combine, to: DType, from: DType, values: impl Iterator<Item = u64>) -> u64 {
        let wide = if from.is_float() { DType::F32 } else { from };
        let op = match op {
            Combine::Sum => TileOp::Add,
            Combine::Prod => TileOp::Mul,
            Combine::Max => TileOp::Max,
            Combine::Min => TileOp::Min,
        };
        let values = values.map(|bits| encode(wide, decode(from, bits)));
        encode(to, decode(wide, values.reduce(|a, b| binary(op, wide, a, b)).unwrap()))
    }

    /// Combines `sources`, and compares at every level; with `onto` also into that source.
    fn check(op: Combine, to: DType, from: DType, sources: &[Vec<u64>], onto: usize) {
        let n = sources[0].len();
        let expected: Vec<u64> = (0..n).map(|i| reference(op, to, from, sources.iter().map(|s| s[i]))).collect();
        for kernels in all_kernels() {
            // SAFETY: the documented signature.
            let kernel: Kernel = unsafe { function(kernels.combine(op, to, from).unwrap()) };
            let what = format_args!("{:?} {op} {from} to {to}, {} of {n}", kernels.level(), sources.len()).to_string();
            let shift = |k: usize| (n + k) * from.size() as usize;
            let mut buffers: Vec<Guarded> =
                sources.iter().enumerate().map(|(k, bits)| Guarded::new(&pack(from, bits), shift(k))).collect();
            let pointers: Vec<*const u8> = buffers.iter().map(Guarded::as_ptr).collect();
            let mut dst = Guarded::new(&vec![0x77; n * to.size() as usize], (n + 1) * to.size() as usize);
            // SAFETY: n elements at each of the pointers.
            unsafe { kernel(dst.as_mut_ptr(), pointers.as_ptr(), pointers.len(), n) };
            assert_elements(to, &unpack(to, dst.bytes()), &expected, format_args!("{what}"));
            for (buffer, bits) in buffers.iter().zip(sources) {
                assert_eq!(buffer.bytes(), pack(from, bits), "{what} wrote a source");
            }
            if to == from {
                let target = buffers[onto].as_mut_ptr();
                let pointers: Vec<*const u8> = buffers.iter().map(Guarded::as_ptr).collect();
                // SAFETY: as above; the result is one of the sources.
                unsafe { kernel(target, pointers.as_ptr(), pointers.len(), n) };
                let found = unpack(to, buffers[onto].bytes());
                assert_elements(to, &found, &expected, format_args!("{what} onto {onto}"));
            }
        }
    }

    #[test]
    fn every_combination_matches_the_reference() {
        for (to, from) in types() {
            for &op in Combine::ALL {
                for count in 1..=9 {
                    let lengths = (0..=40).chain([63, 64, 65, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 77]);
                    for n in lengths {
                        let source = |k: usize| samples(from, n, (n * 100 + k) as u64);
                        check(op, to, from, &(0..count).map(source).collect::<Vec<_>>(), n % count);
                    }
                }
            }
        }
    }

    /// Random bits hold a NaN among nearly every few floats; here are numbers without, whose sums depend on the order.
    #[test]
    fn ordinary_numbers_add_up_in_order() {
        let floats = [DType::F32, DType::F16, DType::BF16];
        for (to, from) in floats.into_iter().flat_map(|to| floats.map(|from| (to, from))) {
            for count in 2..=9 {
                let value = |k: usize, i: usize| ((i * 37 + k * 53) % 101) as f32 * 0.37 - 11.0;
                let source = |k| (0..300).map(|i| encode(from, Value::Float(value(k, i)))).collect();
                for op in [Combine::Sum, Combine::Prod] {
                    check(op, to, from, &(0..count).map(source).collect::<Vec<_>>(), 1);
                }
            }
        }
    }

    /// 2048 + 1 is 2048 in f16, as 256 + 1 is 256 in bf16.
    #[test]
    fn small_floats_are_rounded_once() {
        for (dtype, first) in [(DType::F16, 2048.0), (DType::BF16, 256.0)] {
            let number = |x: f32| vec![encode(dtype, Value::Float(x)); 40];
            let sources = [number(first), number(1.0), number(1.0), number(1.0), number(1.0)];
            check(Combine::Sum, dtype, dtype, &sources, 0);
            let sum = reference(Combine::Sum, dtype, dtype, sources.iter().map(|s| s[0]));
            assert!(matches!(decode(dtype, sum), Value::Float(x) if x == first + 4.0), "{dtype}");
        }
    }
}
