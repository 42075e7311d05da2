//! Conversion between element types.
//!
//! Integers wrap; floats truncate toward zero and saturate, NaN becomes 0; integers become f32 rounded to nearest even,
//! and narrower floats by way of f32; what is not zero is true.

use half::{bf16, f16};

use super::element::{CHUNK, Chunk, Convert, Element};
use super::level::Simd;

/// An element type whose elements convert to `T`.
pub(super) trait CastTo<T: Element>: Element {
    /// The value in the type that `T` is computed in.
    fn convert(value: Self::Wide) -> T::Wide;
}

impl<T: Element, F: Element<Wide: Convert<T::Wide>>> CastTo<T> for F {
    #[inline(always)]
    fn convert(value: F::Wide) -> T::Wide {
        value.convert()
    }
}

entry! {
    /// `fn(dst, src, n)`: `dst[i] = src[i]` in the other type. The two do not overlap.
    fn cast = cast_body<T: Element, F: CastTo<T>>(dst: *mut T, src: *const F, n: usize)
}

#[inline(always)]
unsafe fn cast_body<L: Simd, T: Element, F: CastTo<T>>(dst: *mut T, src: *const F, n: usize) {
    let (mut wide, mut result) = (Chunk::new(), Chunk::new());
    let result: *mut T::Wide = result.as_mut_ptr();
    for at in (0..n).step_by(CHUNK) {
        let len = (n - at).min(CHUNK);
        // SAFETY: the caller gives n elements at each pointer, and at + len ≤ n.
        unsafe {
            let values = F::read::<L>(src.add(at), len, &mut wide);
            for i in 0..len {
                result.add(i).write(F::convert(values.add(i).read()));
            }
            T::write::<L>(dst.add(at), result, len);
        }
    }
}

/// `fn(bits: u32) -> f32`: the value of one binary16.
pub(super) unsafe extern "C" fn f16_to_f32(bits: u32) -> f32 {
    f16::from_bits(bits as u16).widen()
}

/// `fn(f32) -> u32`: the bits of the nearest binary16.
pub(super) unsafe extern "C" fn f16_from_f32(value: f32) -> u32 {
    u32::from(<f16 as Element>::narrow(value).to_bits())
}

/// `fn(bits: u32) -> f32`: the value of one bfloat16.
pub(super) unsafe extern "C" fn bf16_to_f32(bits: u32) -> f32 {
    bf16::from_bits(bits as u16).widen()
}

/// `fn(f32) -> u32`: the bits of the nearest bfloat16.
pub(super) unsafe extern "C" fn bf16_from_f32(value: f32) -> u32 {
    u32::from(<bf16 as Element>::narrow(value).to_bits())
}
