//! Element types as Rust types: in memory, and in the type that they are computed in.

use half::{bf16, f16};

use super::level::Simd;
use super::small_float;

/// Elements that a body handles at once: enough for two registers of f32 at the widest level. It is the same at every
/// level, so that sums add up in the same order everywhere.
pub(super) const BLOCK: usize = 32;

/// A block of elements.
pub(super) type Block<T> = [T; BLOCK];

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

    /// A value to fill unused places of a block with; as a divisor it is harmless.
    const FILLER: Self;

    /// The element in the low bits of `bits`.
    fn from_bits(bits: u64) -> Self;

    /// The element's value.
    fn widen(self) -> Self::Wide;

    /// The element nearest to a value.
    fn narrow(value: Self::Wide) -> Self;

    /// The values of a block.
    ///
    /// # Safety
    /// The caller is compiled for `L` and runs on a CPU that has it.
    #[inline(always)]
    unsafe fn widen_block<L: Simd>(x: &Block<Self>) -> Block<Self::Wide> {
        let mut wide = [Self::FILLER.widen(); BLOCK];
        for i in 0..BLOCK {
            wide[i] = x[i].widen();
        }
        wide
    }

    /// The elements nearest to the values of a block.
    ///
    /// # Safety
    /// The caller is compiled for `L` and runs on a CPU that has it.
    #[inline(always)]
    unsafe fn narrow_block<L: Simd>(values: &Block<Self::Wide>) -> Block<Self> {
        let mut narrow = [Self::FILLER; BLOCK];
        for i in 0..BLOCK {
            narrow[i] = Self::narrow(values[i]);
        }
        narrow
    }

    /// The values of the `n` ≤ [`BLOCK`] elements at `src`; the block's other places hold a filler.
    ///
    /// # Safety
    /// `n` elements at `src` can be read; and as for [`Element::widen_block`].
    #[inline(always)]
    unsafe fn load<L: Simd>(src: *const Self, n: usize) -> Block<Self::Wide> {
        let mut block = [Self::FILLER; BLOCK];
        // SAFETY: n elements are readable, and a block has at least as many places.
        unsafe {
            block.as_mut_ptr().copy_from_nonoverlapping(src, n);
            Self::widen_block::<L>(&block)
        }
    }

    /// Writes the first `n` ≤ [`BLOCK`] values of a block to `dst`.
    ///
    /// # Safety
    /// `n` elements at `dst` can be written; and as for [`Element::narrow_block`].
    #[inline(always)]
    unsafe fn store<L: Simd>(dst: *mut Self, values: &Block<Self::Wide>, n: usize) {
        // SAFETY: n elements are writable, and a block has at least as many.
        unsafe { dst.copy_from_nonoverlapping(Self::narrow_block::<L>(values).as_ptr(), n) }
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
    ($($ty:ty: $one:literal, $from_bits:expr;)*) => {$(
        impl Element for $ty {
            type Wide = $ty;
            const FILLER: $ty = $one;

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
        }

        convert!($ty => f32, i8, u8, i16, u16, i32, u32, i64, u64);

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

native! {
    f32: 1.0, |bits| f32::from_bits(bits as u32);
    i8: 1, |bits| bits as i8;
    u8: 1, |bits| bits as u8;
    i16: 1, |bits| bits as i16;
    u16: 1, |bits| bits as u16;
    i32: 1, |bits| bits as i32;
    u32: 1, |bits| bits as u32;
    i64: 1, |bits| bits as i64;
    u64: 1, |bits| bits;
}

macro_rules! integer {
    ($($ty:ty),*) => {$(
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
    const FILLER: f16 = f16::ONE;

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
    unsafe fn widen_block<L: Simd>(x: &Block<f16>) -> Block<f32> {
        // SAFETY: the caller's promise.
        unsafe { L::widen_f16(x) }
    }

    #[inline(always)]
    unsafe fn narrow_block<L: Simd>(values: &Block<f32>) -> Block<f16> {
        // SAFETY: the caller's promise.
        unsafe { L::narrow_f16(values) }
    }
}

impl Element for bf16 {
    type Wide = f32;
    const FILLER: bf16 = bf16::ONE;

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
}

macro_rules! float8 {
    ($($ty:ident: $one:literal),*) => {$(
        impl Element for $ty {
            type Wide = f32;
            const FILLER: $ty = $ty($one);

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

float8!(F8E4M3: 0x38, F8E5M2: 0x3c);

impl Element for Bool {
    type Wide = Bool;
    const FILLER: Bool = Bool(1);

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
