//! Binary floats of up to 16 bits to and from f32, without branches, so that loops over them vectorise.
//!
//! Narrowing rounds to nearest even. NaN stays NaN and keeps its sign; widening one makes it quiet.

use half::f16;

use super::element::{F8E4M3, F8E5M2};

/// A format: a sign, then the exponent, then the mantissa.
pub(super) trait SmallFloat {
    /// Bits of the mantissa.
    const MANTISSA: u32;
    /// Bits of the exponent.
    const EXPONENT: u32;
    /// The lowest magnitude that is no finite number: infinity, or NaN in a format without infinity.
    const SPECIAL: u32;
    /// The magnitude that stands for all that are too large.
    const OVERFLOW: u32;
    /// The quiet NaN.
    const NAN: u32;
}

impl SmallFloat for f16 {
    const MANTISSA: u32 = 10;
    const EXPONENT: u32 = 5;
    const SPECIAL: u32 = 0x7c00;
    const OVERFLOW: u32 = 0x7c00;
    const NAN: u32 = 0x7e00;
}

/// Has no infinity, so infinities and numbers beyond 448 become 448: saturation, as conversions for inference do it.
impl SmallFloat for F8E4M3 {
    const MANTISSA: u32 = 3;
    const EXPONENT: u32 = 4;
    const SPECIAL: u32 = 0x7f;
    const OVERFLOW: u32 = 0x7e;
    const NAN: u32 = 0x7f;
}

/// Overflows to infinity, as IEEE formats do.
impl SmallFloat for F8E5M2 {
    const MANTISSA: u32 = 2;
    const EXPONENT: u32 = 5;
    const SPECIAL: u32 = 0x7c;
    const OVERFLOW: u32 = 0x7c;
    const NAN: u32 = 0x7e;
}

const F32_MANTISSA: u32 = 23;
const F32_INFINITY: u32 = 0x7f80_0000;
const F32_QUIET: u32 = 0x0040_0000;

/// How far apart the two exponents' biases are, in the place of f32's exponent.
const fn rebias<F: SmallFloat>() -> u32 {
    (128 - (1 << (F::EXPONENT - 1))) << F32_MANTISSA
}

/// The number with these bits.
#[inline(always)]
pub(super) fn widen<F: SmallFloat>(bits: u32) -> f32 {
    let sign_bit = 1 << (F::MANTISSA + F::EXPONENT);
    let sign = (bits & sign_bit) << (31 - F::MANTISSA - F::EXPONENT);
    let magnitude = bits & (sign_bit - 1);
    let moved = magnitude << (F32_MANTISSA - F::MANTISSA);

    let normal = moved + rebias::<F>();
    // A subnormal's mantissa, put behind a one of the lowest normal exponent, is too large by just that one.
    let one = rebias::<F>() + (1 << F32_MANTISSA);
    let subnormal = (f32::from_bits(moved + one) - f32::from_bits(one)).to_bits();
    let quiet = if magnitude > F::OVERFLOW { F32_QUIET } else { 0 };
    let special = moved | F32_INFINITY | quiet;

    let wide = if magnitude < 1 << F::MANTISSA { subnormal } else { normal };
    f32::from_bits(sign | if magnitude >= F::SPECIAL { special } else { wide })
}

/// The bits of the nearest number.
#[inline(always)]
pub(super) fn narrow<F: SmallFloat>(x: f32) -> u32 {
    let shift = F32_MANTISSA - F::MANTISSA;
    let sign = (x.to_bits() >> 31) << (F::MANTISSA + F::EXPONENT);
    let magnitude = x.to_bits() & !(1 << 31);

    let lowest_normal = rebias::<F>() + (1 << F32_MANTISSA);
    let odd = (magnitude >> shift) & 1;
    let normal = magnitude.wrapping_sub(rebias::<F>()).wrapping_add((1 << (shift - 1)) - 1 + odd) >> shift;
    // Adding a number whose last place is the format's lowest subnormal rounds x to a multiple of that.
    let ruler = lowest_normal + (shift << F32_MANTISSA);
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(ruler)).to_bits().wrapping_sub(ruler);
    let nan = F::NAN | (magnitude >> shift) & ((1 << F::MANTISSA) - 1);

    let finite = if magnitude < lowest_normal { subnormal } else { normal };
    sign | if magnitude > F32_INFINITY { nan } else { finite.min(F::OVERFLOW) }
}
