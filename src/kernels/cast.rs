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
                result.add(i).write(F::convert(values.add(i).read().widen()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::DType;
    use crate::kernels::testing::{
        Guarded, all_kernels, assert_elements, decode, encode, function, pack, samples, unpack,
    };

    type Cast = unsafe extern "C" fn(*mut u8, *const u8, usize);

    /// Runs a cast between guards.
    fn run(kernel: Cast, to: DType, from: DType, src: &[u64], misalignment: usize) -> Vec<u64> {
        let src_buffer = Guarded::new(&pack(from, src), misalignment * from.size() as usize);
        let before = vec![0x77; src.len() * to.size() as usize];
        let mut dst = Guarded::new(&before, (misalignment + 1) * to.size() as usize);
        // SAFETY: both buffers have as many elements as src.
        unsafe { kernel(dst.as_mut_ptr(), src_buffer.as_ptr(), src.len()) };
        unpack(to, dst.bytes())
    }

    #[test]
    fn every_pair_matches_the_reference() {
        for (from, to) in DType::ALL.into_iter().flat_map(|from| DType::ALL.map(|to| (from, to))) {
            let src = samples(from, 4 * CHUNK, to as u64);
            let expected: Vec<u64> = src.iter().map(|&bits| encode(to, decode(from, bits))).collect();
            for kernels in all_kernels() {
                // SAFETY: the documented signature.
                let kernel: Cast = unsafe { function(kernels.cast(from, to)) };
                for n in (0..=130).chain([CHUNK, CHUNK + 1, 4 * CHUNK - 1]) {
                    let found = run(kernel, to, from, &src[..n], n);
                    let what = format_args!("{:?} {from} to {to} n={n}", kernels.level());
                    assert_elements(to, &found, &expected[..n], what);
                }
            }
        }
    }

    #[test]
    fn every_small_float_widens_exactly() {
        for kernels in all_kernels() {
            for (dtype, count) in
                [(DType::F16, 1 << 16), (DType::BF16, 1 << 16), (DType::F8E4M3, 256), (DType::F8E5M2, 256)]
            {
                let all: Vec<u64> = (0..count).collect();
                // SAFETY: the documented signature.
                let kernel: Cast = unsafe { function(kernels.cast(dtype, DType::F32)) };
                let wide = run(kernel, DType::F32, dtype, &all, 0);
                let expected: Vec<u64> = all.iter().map(|&bits| encode(DType::F32, decode(dtype, bits))).collect();
                assert_elements(DType::F32, &wide, &expected, format_args!("{:?} {dtype}", kernels.level()));

                // And back: to itself, except that signalling NaNs become quiet.
                // SAFETY: the documented signature.
                let kernel: Cast = unsafe { function(kernels.cast(DType::F32, dtype)) };
                let back = run(kernel, dtype, DType::F32, &wide, 0);
                assert_elements(dtype, &back, &all, format_args!("{:?} {dtype} and back", kernels.level()));
            }
        }
    }

    /// Around every number of the format: the number, its middle to the next one, and what lies just beside the two.
    #[test]
    fn rounding_is_to_nearest_even() {
        for (dtype, count) in
            [(DType::F16, 0x7c00), (DType::BF16, 0x7f80), (DType::F8E4M3, 0x7f), (DType::F8E5M2, 0x7c)]
        {
            let wide: Vec<u64> = (0..=count).map(|bits| encode(DType::F32, decode(dtype, bits))).collect();
            let mut hard: Vec<u64> = wide
                .windows(2)
                .flat_map(|pair| [pair[0], pair[0].midpoint(pair[1])])
                .flat_map(|bits| [bits.saturating_sub(1), bits, bits + 1])
                .chain([0x7f7f_ffff, 0x7f80_0000])
                .collect();
            hard.extend(hard.clone().iter().map(|bits| bits | 1 << 31));
            let expected: Vec<u64> = hard.iter().map(|&bits| encode(dtype, decode(DType::F32, bits))).collect();
            for kernels in all_kernels() {
                // SAFETY: the documented signature.
                let kernel: Cast = unsafe { function(kernels.cast(DType::F32, dtype)) };
                let found = run(kernel, dtype, DType::F32, &hard, 1);
                assert_elements(dtype, &found, &expected, format_args!("{:?} {dtype}", kernels.level()));
            }
        }
    }

    #[test]
    fn levels_agree_on_every_bit_of_a_nan() {
        let nans: Vec<u64> = (0..4096u64).map(|i| 0x7f80_0001 | ((i & 1) << 31) | ((i * 0x7ff) & 0x7f_ffff)).collect();
        for to in [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2] {
            let mut all: Vec<Vec<u64>> = Vec::new();
            for kernels in all_kernels() {
                // SAFETY: the documented signatures.
                let (narrow, widen): (Cast, Cast) =
                    unsafe { (function(kernels.cast(DType::F32, to)), function(kernels.cast(to, DType::F32))) };
                let narrow = run(narrow, to, DType::F32, &nans, 0);
                all.push([run(widen, DType::F32, to, &narrow, 0), narrow].concat());
            }
            assert!(all.iter().all(|one| *one == all[0]), "{to}");
        }
    }

    #[test]
    fn single_elements_convert_as_tiles_do() {
        for bits in 0..=u32::from(u16::MAX) {
            // SAFETY: these functions have no precondition.
            let (half, bfloat) = unsafe { (f16_to_f32(bits), bf16_to_f32(bits)) };
            let (half_value, bfloat_value) =
                (f16::from_bits(bits as u16).to_f32(), bf16::from_bits(bits as u16).to_f32());
            assert!(half.to_bits() == half_value.to_bits() || half.is_nan() && half_value.is_nan(), "{bits:#x}");
            assert!(
                bfloat.to_bits() == bfloat_value.to_bits() || bfloat.is_nan() && bfloat_value.is_nan(),
                "{bits:#x}"
            );
            // SAFETY: as above.
            let (half, bfloat) = unsafe { (f16_from_f32(half), bf16_from_f32(bfloat)) };
            assert!(half == bits || half == bits | 0x200 && half_value.is_nan(), "{bits:#x} {half:#x}");
            assert!(bfloat == bits || bfloat == bits | 0x40 && bfloat_value.is_nan(), "{bits:#x} {bfloat:#x}");
        }
        // SAFETY: as above.
        unsafe {
            assert_eq!(f16_from_f32(65519.9), 0x7bff);
            assert_eq!(f16_from_f32(-65520.0), 0xfc00);
            assert_eq!(bf16_from_f32(f32::from_bits(0x3f80_8000)), 0x3f80);
            assert_eq!(bf16_from_f32(f32::from_bits(0x3f81_8000)), 0x3f82);
            assert_eq!(bf16_from_f32(f32::MAX), 0x7f80);
        }
    }
}
