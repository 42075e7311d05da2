//! Elementwise work on tiles: arithmetic, and filling.
//!
//! f16 and bf16 are computed in f32 and rounded, each op by itself.

use super::element::{Arithmetic, BLOCK, Block, Element, Number};
use super::level::Simd;

/// A binary op.
pub(super) trait Op: 'static {
    /// It is a division.
    const DIVIDES: bool = false;

    /// `x op y`.
    fn apply<N: Number>(x: N, y: N) -> N;

    /// `x op y`, place by place.
    #[inline(always)]
    fn apply_block<N: Number>(x: &Block<N>, y: &Block<N>) -> Block<N> {
        let mut result = *x;
        for i in 0..BLOCK {
            result[i] = Self::apply(x[i], y[i]);
        }
        result
    }
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
    let tail = n % BLOCK;
    let full = n - tail;
    // SAFETY: the caller gives n elements at each pointer; every step stays within them. A step loads before it stores,
    // so dst may be a or b.
    unsafe {
        for at in (0..full).step_by(BLOCK) {
            if !binary_step::<L, E, O>(dst.add(at), a.add(at), b.add(at), BLOCK) {
                return DIVISION_BY_ZERO;
            }
        }
        if tail != 0 && !binary_step::<L, E, O>(dst.add(full), a.add(full), b.add(full), tail) {
            return DIVISION_BY_ZERO;
        }
    }
    0
}

/// Up to a block; false if a divisor is zero.
#[inline(always)]
unsafe fn binary_step<L: Simd, E: Arithmetic, O: Op>(dst: *mut E, a: *const E, b: *const E, n: usize) -> bool {
    // SAFETY: the caller gives n ≤ BLOCK elements at each pointer.
    unsafe {
        let x = E::load::<L>(a, n);
        let y = E::load::<L>(b, n);
        if O::DIVIDES && <E::Wide as Number>::IS_INTEGER && y.contains(&<E::Wide as Number>::ZERO) {
            return false;
        }
        E::store::<L>(dst, &O::apply_block(&x, &y), n);
    }
    true
}

entry! {
    /// `fn(dst, a, bits, n) -> i32`: `dst[i] = a[i] op` the element with these bits. `dst` may be `a`.
    fn binary_scalar = binary_scalar_body<E: Arithmetic, O: Op>(dst: *mut E, a: *const E, bits: u64, n: usize) -> i32
}

#[inline(always)]
unsafe fn binary_scalar_body<L: Simd, E: Arithmetic, O: Op>(dst: *mut E, a: *const E, bits: u64, n: usize) -> i32 {
    let y = E::from_bits(bits).widen();
    if O::DIVIDES && <E::Wide as Number>::IS_INTEGER && n != 0 && y == <E::Wide as Number>::ZERO {
        return DIVISION_BY_ZERO;
    }
    let y = [y; BLOCK];
    let tail = n % BLOCK;
    let full = n - tail;
    // SAFETY: the caller gives n elements at each pointer; every step stays within them and loads before it stores.
    unsafe {
        for at in (0..full).step_by(BLOCK) {
            E::store::<L>(dst.add(at), &O::apply_block(&E::load::<L>(a.add(at), BLOCK), &y), BLOCK);
        }
        if tail != 0 {
            E::store::<L>(dst.add(full), &O::apply_block(&E::load::<L>(a.add(full), tail), &y), tail);
        }
    }
    0
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
