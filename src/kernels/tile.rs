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
        // SAFETY: the caller gives n elements at each pointer, and at + len ≤ n. A chunk is read before it is written, so
        // dst may be a or b.
        unsafe {
            let x = E::read::<L>(a.add(at), len, &mut wide_a);
            let y = E::read::<L>(b.add(at), len, &mut wide_b);
            if divides_by_zero::<E::Wide, O>(y, len) {
                return DIVISION_BY_ZERO;
            }
            for i in 0..len {
                result.add(i).write(O::apply(x.add(i).read(), y.add(i).read()));
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
    let y = E::from_bits(bits).widen();
    // SAFETY: y is one number.
    if n != 0 && unsafe { divides_by_zero::<E::Wide, O>(&y, 1) } {
        return DIVISION_BY_ZERO;
    }
    let (mut wide_a, mut result) = (Chunk::new(), Chunk::new());
    let result: *mut E::Wide = result.as_mut_ptr();
    for at in (0..n).step_by(CHUNK) {
        let len = (n - at).min(CHUNK);
        // SAFETY: the caller gives n elements at each pointer, and at + len ≤ n. A chunk is read before it is written.
        unsafe {
            let x = E::read::<L>(a.add(at), len, &mut wide_a);
            for i in 0..len {
                result.add(i).write(O::apply(x.add(i).read(), y));
            }
            E::write::<L>(dst.add(at), result, len);
        }
    }
    0
}

/// Whether the op is an integer division, and one of `n` divisors zero.
#[inline(always)]
unsafe fn divides_by_zero<N: Number, O: Op>(divisors: *const N, n: usize) -> bool {
    let mut found = false;
    if O::DIVIDES && N::IS_INTEGER {
        for i in 0..n {
            // SAFETY: the caller gives n divisors.
            found |= unsafe { divisors.add(i).read() } == N::ZERO;
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
