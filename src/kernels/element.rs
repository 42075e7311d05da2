//! Element types as Rust types: in memory, and in the type that they are computed in.

use std::mem::MaybeUninit;

use half::{bf16, f16};

use super::level::Simd;
use super::small_float;

/// Elements that a body handles at once, between buffers that stay in the first-level cache.
pub(super) const CHUNK: usize = 256;

/// A buffer for a chunk's values; at first it holds none.
#[repr(C, align(64))]
pub(super) struct Chunk<T>(MaybeUninit<[T; CHUNK]>);

impl<T> Chunk<T> {
    /// A buffer without values.
    #[inline(always)]
    pub(super) fn new() -> Chunk<T> {
        Chunk(MaybeUninit::uninit())
    }

    /// Where its [`CHUNK`] values are.
    #[inline(always)]
    pub(super) fn as_mut_ptr(&mut self) -> *mut T {
        self.0.as_mut_ptr().cast()
    }
}

/// A bool in memory: any nonzero byte is true; we write 1.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bool(pub u8);

/// 4 bits of exponent, 3 of mantissa; no infinity, largest number 448.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F8E4M3(pub u8);

/// 5 bits of exponent, 2 of mantissa.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct F8E5M2(pub u8);

/// An element type.
pub(super) trait Element: Copy + 'static {
    /// The type that elements are computed and converted in.
    type Wide: Copy;

    /// What [`Element::read`] gives a loop of ops: the elements themselves if the loop vectorises with widening them in
    /// it, else their values.
    type Near: Element<Wide = Self::Wide>;

    /// How many elements [`Element::read`] takes at most.
    const AT_ONCE: usize = CHUNK;

    /// The element in the low bits of `bits`.
    fn from_bits(bits: u64) -> Self;

    /// The element's value.
    fn widen(self) -> Self::Wide;

    /// The element nearest to a value.
    fn narrow(value: Self::Wide) -> Self;

    /// Address of `n` ≤ `AT_ONCE` elements or their values: their own, or that of `buffer`, which then has them.
    ///
    /// # Safety
    /// `n` elements at `src` can be read; the caller is compiled for `L` and runs on a CPU that has it.
    #[inline(always)]
    unsafe fn read<L: Simd>(src: *const Self, n: usize, buffer: &mut Chunk<Self::Near>) -> *const Self::Near {
        let near = buffer.as_mut_ptr();
        for i in 0..n {
            // SAFETY: i < n ≤ CHUNK.
            unsafe { near.add(i).write(Element::narrow(src.add(i).read().widen())) };
        }
        near
    }

    /// Writes the elements nearest to `n` values.
    ///
    /// # Safety
    /// `n` values can be read, `n` elements at `dst` can be written, and they do not overlap; the caller is compiled for
    /// `L` and runs on a CPU that has it.
    #[inline(always)]
    unsafe fn write<L: Simd>(dst: *mut Self, values: *const Self::Wide, n: usize) {
        for i in 0..n {
            // SAFETY: i < n.
            unsafe { dst.add(i).write(Self::narrow(values.add(i).read())) };
        }
    }
}

/// A type that is computed in. Integers wrap.
pub(super) trait Number: Copy + PartialEq {
    /// Nought.
    const ZERO: Self;
    /// Not greater than any number; the maximum of nothing.
    const LOWEST: Self;
    /// Division by zero is a mistake.
    const IS_INTEGER: bool;

    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference.
    fn sub(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Quotient; of integers truncated, and `other` is not 0.
    fn div(self, other: Self) -> Self;
    /// The larger one; NaN if either is, and 0 is larger than -0.
    fn max(self, other: Self) -> Self;
    /// The smaller one; NaN if either is, and -0 is smaller than 0.
    fn min(self, other: Self) -> Self;
}

/// An element type with arithmetic.
pub(super) trait Arithmetic: Element<Wide: Number> {}

impl<E: Element<Wide: Number>> Arithmetic for E {}

/// Conversion between types that are computed in: integers wrap; floats truncate and saturate, NaN becomes 0; what is
/// not 0 is true.
pub(super) trait Convert<T> {
    /// The value in the other type.
    fn convert(self) -> T;
}

macro_rules! native {
    ($($ty:ty: $from_bits:expr;)*) => {$(
        impl Element for $ty {
            type Wide = $ty;
            type Near = $ty;
            const AT_ONCE: usize = usize::MAX;

            #[inline(always)]
            fn from_bits(bits: u64) -> $ty {
                $from_bits(bits)
            }

            #[inline(always)]
            fn widen(self) -> $ty {
                self
            }

            #[inline(always)]
            fn narrow(value: $ty) -> $ty {
                value
            }

            #[inline(always)]
            unsafe fn read<L: Simd>(src: *const $ty, _: usize, _: &mut Chunk<$ty>) -> *const $ty {
                src
            }
        }

        impl Convert<Bool> for $ty {
            #[inline(always)]
            fn convert(self) -> Bool {
                Bool(u8::from(self != 0 as $ty))
            }
        }

        impl Convert<$ty> for Bool {
            #[inline(always)]
            fn convert(self) -> $ty {
                u8::from(self.0 != 0) as $ty
            }
        }
    )*};
}

macro_rules! convert {
    ($from:ty => $($to:ty),*) => {$(
        impl Convert<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                self as $to
            }
        }
    )*};
}

convert!(f32 => f32, u32, i64, u64);

/// As `as`, but in steps that vectorise.
impl Convert<i32> for f32 {
    #[inline(always)]
    fn convert(self) -> i32 {
        const BEYOND: f32 = 2_147_483_648.0;
        let within = (-BEYOND..BEYOND).contains(&self);
        // SAFETY: the number is in the range of i32.
        let truncated: i32 = unsafe { if within { self } else { 0.0 }.to_int_unchecked() };
        let high = if self >= BEYOND { i32::MAX } else { truncated };
        if self < -BEYOND { i32::MIN } else { high }
    }
}

macro_rules! convert_by_i32 {
    ($($to:ty),*) => {$(
        /// As `as`, but in steps that vectorise.
        impl Convert<$to> for f32 {
            #[inline(always)]
            fn convert(self) -> $to {
                let number = if self.is_nan() { 0.0 } else { self };
                // SAFETY: the number is in the range of the type, so in that of i32.
                let truncated: i32 = unsafe { number.clamp(<$to>::MIN as f32, <$to>::MAX as f32).to_int_unchecked() };
                truncated as $to
            }
        }
    )*};
}

convert_by_i32!(i8, u8, i16, u16);

native! {
    f32: |bits| f32::from_bits(bits as u32);
    i8: |bits| bits as i8;
    u8: |bits| bits as u8;
    i16: |bits| bits as i16;
    u16: |bits| bits as u16;
    i32: |bits| bits as i32;
    u32: |bits| bits as u32;
    i64: |bits| bits as i64;
    u64: |bits| bits;
}

macro_rules! integer {
    ($($ty:ty),*) => {$(
        convert!($ty => f32, i8, u8, i16, u16, i32, u32, i64, u64);

        impl Number for $ty {
            const ZERO: $ty = 0;
            const LOWEST: $ty = <$ty>::MIN;
            const IS_INTEGER: bool = true;

            #[inline(always)]
            fn add(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn sub(self, other: $ty) -> $ty {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn mul(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn div(self, other: $ty) -> $ty {
                self.wrapping_div(other)
            }

            #[inline(always)]
            fn max(self, other: $ty) -> $ty {
                Ord::max(self, other)
            }

            #[inline(always)]
            fn min(self, other: $ty) -> $ty {
                Ord::min(self, other)
            }
        }
    )*};
}

integer!(i8, u8, i16, u16, i32, u32, i64, u64);

impl Number for f32 {
    const ZERO: f32 = 0.0;
    const LOWEST: f32 = f32::NEG_INFINITY;
    const IS_INTEGER: bool = false;

    #[inline(always)]
    fn add(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn sub(self, other: f32) -> f32 {
        self - other
    }

    #[inline(always)]
    fn mul(self, other: f32) -> f32 {
        self * other
    }

    #[inline(always)]
    fn div(self, other: f32) -> f32 {
        self / other
    }

    #[inline(always)]
    fn max(self, other: f32) -> f32 {
        // Equal numbers differ in the sign of zero at most.
        let equal = f32::from_bits(self.to_bits() & other.to_bits());
        let larger = if self > other || self.is_nan() { self } else { other };
        if self == other { equal } else { larger }
    }

    #[inline(always)]
    fn min(self, other: f32) -> f32 {
        let equal = f32::from_bits(self.to_bits() | other.to_bits());
        let smaller = if self < other || self.is_nan() { self } else { other };
        if self == other { equal } else { smaller }
    }
}

impl Element for f16 {
    type Wide = f32;
    type Near = f32;

    #[inline(always)]
    fn from_bits(bits: u64) -> f16 {
        f16::from_bits(bits as u16)
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        small_float::widen::<f16>(u32::from(self.to_bits()))
    }

    #[inline(always)]
    fn narrow(value: f32) -> f16 {
        f16::from_bits(small_float::narrow::<f16>(value) as u16)
    }

    #[inline(always)]
    unsafe fn read<L: Simd>(src: *const f16, n: usize, buffer: &mut Chunk<f32>) -> *const f32 {
        // SAFETY: the caller's promise.
        unsafe { L::widen_f16(buffer.as_mut_ptr(), src, n) };
        buffer.as_mut_ptr()
    }

    #[inline(always)]
    unsafe fn write<L: Simd>(dst: *mut f16, values: *const f32, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { L::narrow_f16(dst, values, n) }
    }
}

impl Element for bf16 {
    type Wide = f32;
    type Near = bf16;
    const AT_ONCE: usize = usize::MAX;

    #[inline(always)]
    fn from_bits(bits: u64) -> bf16 {
        bf16::from_bits(bits as u16)
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    /// Rounds to nearest even; NaN becomes quiet. (The instructions for this flush subnormals, so they are of no use.)
    #[inline(always)]
    fn narrow(value: f32) -> bf16 {
        let bits = value.to_bits();
        let odd = (bits >> 16) & 1;
        let rounded = bits.wrapping_add(0x7fff + odd) >> 16;
        let nan = (bits >> 16) | 0x40;
        bf16::from_bits(if value.is_nan() { nan } else { rounded } as u16)
    }

    #[inline(always)]
    unsafe fn read<L: Simd>(src: *const bf16, _: usize, _: &mut Chunk<bf16>) -> *const bf16 {
        src
    }
}

macro_rules! float8 {
    ($($ty:ident),*) => {$(
        impl Element for $ty {
            type Wide = f32;
            type Near = f32;

            #[inline(always)]
            fn from_bits(bits: u64) -> $ty {
                $ty(bits as u8)
            }

            #[inline(always)]
            fn widen(self) -> f32 {
                small_float::widen::<$ty>(u32::from(self.0))
            }

            #[inline(always)]
            fn narrow(value: f32) -> $ty {
                $ty(small_float::narrow::<$ty>(value) as u8)
            }
        }
    )*};
}

float8!(F8E4M3, F8E5M2);

impl Element for Bool {
    type Wide = Bool;
    type Near = Bool;

    #[inline(always)]
    fn from_bits(bits: u64) -> Bool {
        Bool(bits as u8)
    }

    #[inline(always)]
    fn widen(self) -> Bool {
        self
    }

    #[inline(always)]
    fn narrow(value: Bool) -> Bool {
        value
    }
}

impl Convert<Bool> for Bool {
    #[inline(always)]
    fn convert(self) -> Bool {
        Bool(u8::from(self.0 != 0))
    }
}
