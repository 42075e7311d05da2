//! Elementwise work on tiles: arithmetic, and filling.
//!
//! f16 and bf16 are computed in f32 and rounded, each op by itself.

use super::element::{Arithmetic, CHUNK, Chunk, Element, Number};
use super::level::Simd;

/// A binary op.
pub(super) trait Op: 'static {
    /// It is a division.
    const DIVIDES: bool = false;

    /// `x op y`.
    fn apply<N: Number>(x: N, y: N) -> N;
}

macro_rules! ops {
    ($($name:ident => $method:ident $(, $divides:literal)?;)*) => {$(
        pub(super) struct $name;

        impl Op for $name {
            $(const DIVIDES: bool = $divides;)?

            #[inline(always)]
            fn apply<N: Number>(x: N, y: N) -> N {
                x.$method(y)
            }
        }
    )*};
}

ops! {
    Add => add;
    Sub => sub;
    Mul => mul;
    Div => div, true;
    Max => max;
    Min => min;
}

/// Result of a kernel that found a division by zero.
const DIVISION_BY_ZERO: i32 = 1;

entry! {
    /// `fn(dst, a, b, n) -> i32`: `dst[i] = a[i] op b[i]`. `dst` may be `a` or `b`.
    fn binary = binary_body<E: Arithmetic, O: Op>(dst: *mut E, a: *const E, b: *const E, n: usize) -> i32
}

#[inline(always)]
unsafe fn binary_body<L: Simd, E: Arithmetic, O: Op>(dst: *mut E, a: *const E, b: *const E, n: usize) -> i32 {
    let (mut wide_a, mut wide_b, mut result) = (Chunk::new(), Chunk::new(), Chunk::new());
    let result: *mut E::Wide = result.as_mut_ptr();
    for at in (0..n).step_by(CHUNK) {
        let len = (n - at).min(CHUNK);
        // SAFETY: the caller gives n elements at each pointer, and at + len ≤ n. A chunk is read before it is written,
        // so dst may be a or b.
        unsafe {
            let x = E::read::<L>(a.add(at), len, &mut wide_a);
            let y = E::read::<L>(b.add(at), len, &mut wide_b);
            if divides_by_zero::<E::Near, O>(y, len) {
                return DIVISION_BY_ZERO;
            }
            for i in 0..len {
                result.add(i).write(O::apply(x.add(i).read().widen(), y.add(i).read().widen()));
            }
            E::write::<L>(dst.add(at), result, len);
        }
    }
    0
}

entry! {
    /// `fn(dst, a, bits, n) -> i32`: `dst[i] = a[i] op` the element with these bits. `dst` may be `a`.
    fn binary_scalar = binary_scalar_body<E: Arithmetic, O: Op>(dst: *mut E, a: *const E, bits: u64, n: usize) -> i32
}

#[inline(always)]
unsafe fn binary_scalar_body<L: Simd, E: Arithmetic, O: Op>(dst: *mut E, a: *const E, bits: u64, n: usize) -> i32 {
    let y = E::from_bits(bits);
    // SAFETY: y is one element.
    if n != 0 && unsafe { divides_by_zero::<E, O>(&y, 1) } {
        return DIVISION_BY_ZERO;
    }
    let y = y.widen();
    let (mut wide_a, mut result) = (Chunk::new(), Chunk::new());
    let result: *mut E::Wide = result.as_mut_ptr();
    for at in (0..n).step_by(CHUNK) {
        let len = (n - at).min(CHUNK);
        // SAFETY: the caller gives n elements at each pointer, and at + len ≤ n. A chunk is read before it is written.
        unsafe {
            let x = E::read::<L>(a.add(at), len, &mut wide_a);
            for i in 0..len {
                result.add(i).write(O::apply(x.add(i).read().widen(), y));
            }
            E::write::<L>(dst.add(at), result, len);
        }
    }
    0
}

/// Whether the op is an integer division, and one of `n` divisors zero.
#[inline(always)]
unsafe fn divides_by_zero<E: Arithmetic, O: Op>(divisors: *const E, n: usize) -> bool {
    let mut found = false;
    if O::DIVIDES && E::Wide::IS_INTEGER {
        for i in 0..n {
            // SAFETY: the caller gives n divisors.
            found |= unsafe { divisors.add(i).read() }.widen() == E::Wide::ZERO;
        }
    }
    found
}

entry! {
    /// `fn(dst, n, bits)`: `n` elements become the one with these bits.
    fn fill = fill_body<E: Element>(dst: *mut E, n: usize, bits: u64)
}

#[inline(always)]
unsafe fn fill_body<L: Simd, E: Element>(dst: *mut E, n: usize, bits: u64) {
    let value = E::from_bits(bits);
    for i in 0..n {
        // SAFETY: the caller gives n elements at dst.
        unsafe { dst.add(i).write(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::{DType, TileOp};
    use crate::kernels::testing::{self, Guarded, all_kernels, assert_elements, function, pack, samples, unpack};

    type Binary = unsafe extern "C" fn(*mut u8, *const u8, *const u8, usize) -> i32;
    type BinaryScalar = unsafe extern "C" fn(*mut u8, *const u8, u64, usize) -> i32;
    type Fill = unsafe extern "C" fn(*mut u8, usize, u64);

    fn lengths() -> impl Iterator<Item = usize> {
        (0..=130).chain([CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 77])
    }

    fn arithmetic_types() -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(|d| *d != DType::Bool && !d.is_storage_only())
    }

    /// Divisors of integers without zero.
    fn operands(op: TileOp, dtype: DType, n: usize, seed: u64) -> (Vec<u64>, Vec<u64>) {
        let mut b = samples(dtype, n, seed + 1);
        if op == TileOp::Div && !dtype.is_float() {
            b.iter_mut().filter(|b| **b == 0).for_each(|b| *b = 7);
        }
        (samples(dtype, n, seed), b)
    }

    #[test]
    fn every_binary_op_matches_the_reference() {
        for kernels in all_kernels() {
            for (&op, dtype) in TileOp::ALL.iter().flat_map(|op| arithmetic_types().map(move |d| (op, d))) {
                // SAFETY: the documented signature.
                let kernel: Binary = unsafe { function(kernels.binary(op, dtype).unwrap()) };
                for n in lengths() {
                    let (a, b) = operands(op, dtype, n, n as u64);
                    let expected: Vec<u64> =
                        a.iter().zip(&b).map(|(&a, &b)| testing::binary(op, dtype, a, b)).collect();
                    let (a, b) = (pack(dtype, &a), pack(dtype, &b));
                    let level = kernels.level();
                    let shift = |k: usize| (n + k) * dtype.size() as usize;
                    let (a, b, mut dst) =
                        (Guarded::new(&a, shift(0)), Guarded::new(&b, shift(1)), Guarded::new(&a, shift(2)));
                    // SAFETY: n elements at each pointer.
                    assert_eq!(unsafe { kernel(dst.as_mut_ptr(), a.as_ptr(), b.as_ptr(), n) }, 0);
                    assert_elements(
                        dtype,
                        &unpack(dtype, dst.bytes()),
                        &expected,
                        format_args!("{level:?} {op} {dtype} n={n} apart"),
                    );

                    let mut onto_a = Guarded::new(a.bytes(), shift(3));
                    let to = onto_a.as_mut_ptr();
                    // SAFETY: as above.
                    assert_eq!(unsafe { kernel(to, to, b.as_ptr(), n) }, 0);
                    assert_elements(
                        dtype,
                        &unpack(dtype, onto_a.bytes()),
                        &expected,
                        format_args!("{level:?} {op} {dtype} n={n} onto a"),
                    );

                    let mut onto_b = Guarded::new(b.bytes(), shift(5));
                    let to = onto_b.as_mut_ptr();
                    // SAFETY: as above.
                    assert_eq!(unsafe { kernel(to, a.as_ptr(), to, n) }, 0);
                    assert_elements(
                        dtype,
                        &unpack(dtype, onto_b.bytes()),
                        &expected,
                        format_args!("{level:?} {op} {dtype} n={n} onto b"),
                    );
                }
            }
        }
    }

    #[test]
    fn every_op_with_a_scalar_matches_the_reference() {
        for kernels in all_kernels() {
            for (&op, dtype) in TileOp::ALL.iter().flat_map(|op| arithmetic_types().map(move |d| (op, d))) {
                // SAFETY: the documented signature.
                let kernel: BinaryScalar = unsafe { function(kernels.binary_scalar(op, dtype).unwrap()) };
                for n in lengths() {
                    let (a, b) = operands(op, dtype, n + 1, n as u64);
                    let (a, b) = (&a[..n], b[n]);
                    let expected: Vec<u64> = a.iter().map(|&a| testing::binary(op, dtype, a, b)).collect();
                    let mut dst = Guarded::new(&pack(dtype, a), n * dtype.size() as usize);
                    let to = dst.as_mut_ptr();
                    // The bits above the element are not looked at.
                    let bits = if dtype.size() < 8 { b | 0x5a << (8 * dtype.size()) } else { b };
                    // SAFETY: n elements at the pointer.
                    assert_eq!(unsafe { kernel(to, to, bits, n) }, 0);
                    let what = format_args!("{:?} {op} {dtype} n={n} scalar {b:#x}", kernels.level());
                    assert_elements(dtype, &unpack(dtype, dst.bytes()), &expected, what);
                }
            }
        }
    }

    #[test]
    fn integer_division_by_zero_is_found_wherever_it_is() {
        for kernels in all_kernels() {
            for dtype in arithmetic_types() {
                // SAFETY: the documented signatures.
                let (tile, scalar): (Binary, BinaryScalar) = unsafe {
                    (
                        function(kernels.binary(TileOp::Div, dtype).unwrap()),
                        function(kernels.binary_scalar(TileOp::Div, dtype).unwrap()),
                    )
                };
                let found = i32::from(!dtype.is_float());
                for (n, zero) in [(1, 0), (33, 32), (64, 5), (700, 699)] {
                    let mut b = vec![3; n];
                    let a = pack(dtype, &b);
                    b[zero] = 0;
                    let b = pack(dtype, &b);
                    let mut dst = Guarded::new(&a, 0);
                    let to = dst.as_mut_ptr();
                    // SAFETY: n elements at each pointer.
                    unsafe {
                        assert_eq!(tile(to, a.as_ptr(), b.as_ptr(), n), found, "{dtype} n={n}");
                        assert_eq!(scalar(to, a.as_ptr(), 0, n), found, "{dtype} n={n}");
                        assert_eq!(scalar(to, a.as_ptr(), 0, 0), 0, "{dtype} of nothing");
                    }
                    dst.bytes();
                }
            }
        }
    }

    #[test]
    fn fill_writes_its_elements_and_no_others() {
        for kernels in all_kernels() {
            for dtype in DType::ALL {
                // SAFETY: the documented signature.
                let fill: Fill = unsafe { function(kernels.fill(dtype)) };
                for n in lengths() {
                    let bits = 0xfedc_ba98_7654_3210 ^ n as u64;
                    let before = pack(dtype, &vec![0; n]);
                    let mut dst = Guarded::new(&before, n * dtype.size() as usize);
                    // SAFETY: n elements at the pointer.
                    unsafe { fill(dst.as_mut_ptr(), n, bits) };
                    assert_eq!(dst.bytes(), pack(dtype, &vec![bits; n]), "{:?} {dtype} n={n}", kernels.level());
                }
            }
        }
    }
}
