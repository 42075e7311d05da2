//! Instruction-set levels, and how a kernel is instantiated for each.
//!
//! A kernel is written once, as a generic `#[inline(always)]` body. `entry!` wraps it in one C function a level, with
//! that level's target features switched on, and the compiler vectorises the body for them. Where it cannot find the
//! right instruction by itself, the body asks its [`Simd`] parameter.

use half::f16;

use super::element::{BLOCK, Block};
use super::small_float;

/// A set of instructions that a table of kernels may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every CPU of the architecture has: SSE2 on x86-64, NEON on aarch64.
    Portable,
    /// AVX2 and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// Every level of this architecture, the best one last.
    pub const ALL: &'static [Level] = &[
        Level::Portable,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512,
    ];

    /// Whether this CPU, and its operating system, can run it.
    pub fn available(self) -> bool {
        match self {
            Level::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Level::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }
}

/// What a body cannot get from the vectoriser.
pub(super) trait Simd: 'static {
    /// Widens a block of binary16.
    ///
    /// # Safety
    /// The caller is compiled for this level and runs on a CPU that has it.
    unsafe fn widen_f16(x: &Block<f16>) -> Block<f32>;

    /// Rounds a block to binary16, to nearest even.
    ///
    /// # Safety
    /// The caller is compiled for this level and runs on a CPU that has it.
    unsafe fn narrow_f16(x: &Block<f32>) -> Block<f16>;
}

/// [`Level::Portable`] as a type.
pub(super) struct Portable;

impl Simd for Portable {
    #[inline(always)]
    unsafe fn widen_f16(x: &Block<f16>) -> Block<f32> {
        let mut wide = [0.0; BLOCK];
        for i in 0..BLOCK {
            wide[i] = small_float::widen::<f16>(u32::from(x[i].to_bits()));
        }
        wide
    }

    #[inline(always)]
    unsafe fn narrow_f16(x: &Block<f32>) -> Block<f16> {
        let mut narrow = [f16::ZERO; BLOCK];
        for i in 0..BLOCK {
            narrow[i] = f16::from_bits(small_float::narrow::<f16>(x[i]) as u16);
        }
        narrow
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::*;

    /// [`Level::Avx2`] as a type.
    pub struct Avx2;

    impl Simd for Avx2 {
        #[inline(always)]
        unsafe fn widen_f16(x: &Block<f16>) -> Block<f32> {
            let mut wide = [0.0; BLOCK];
            for i in (0..BLOCK).step_by(8) {
                // SAFETY: 8 elements from i on lie in both blocks; the caller has F16C.
                unsafe {
                    let half = _mm_loadu_si128(x.as_ptr().add(i).cast());
                    _mm256_storeu_ps(wide.as_mut_ptr().add(i), _mm256_cvtph_ps(half));
                }
            }
            wide
        }

        #[inline(always)]
        unsafe fn narrow_f16(x: &Block<f32>) -> Block<f16> {
            let mut narrow = [f16::ZERO; BLOCK];
            for i in (0..BLOCK).step_by(8) {
                // SAFETY: 8 elements from i on lie in both blocks; the caller has F16C.
                unsafe {
                    let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(x.as_ptr().add(i)));
                    _mm_storeu_si128(narrow.as_mut_ptr().add(i).cast(), half);
                }
            }
            narrow
        }
    }

    /// [`Level::Avx512`] as a type.
    pub struct Avx512;

    impl Simd for Avx512 {
        #[inline(always)]
        unsafe fn widen_f16(x: &Block<f16>) -> Block<f32> {
            let mut wide = [0.0; BLOCK];
            for i in (0..BLOCK).step_by(16) {
                // SAFETY: 16 elements from i on lie in both blocks; the caller has AVX-512.
                unsafe {
                    let half = _mm256_loadu_si256(x.as_ptr().add(i).cast());
                    _mm512_storeu_ps(wide.as_mut_ptr().add(i), _mm512_cvtph_ps(half));
                }
            }
            wide
        }

        #[inline(always)]
        unsafe fn narrow_f16(x: &Block<f32>) -> Block<f16> {
            let mut narrow = [f16::ZERO; BLOCK];
            for i in (0..BLOCK).step_by(16) {
                // SAFETY: 16 elements from i on lie in both blocks; the caller has AVX-512.
                unsafe {
                    let half = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(x.as_ptr().add(i)));
                    _mm256_storeu_si256(narrow.as_mut_ptr().add(i).cast(), half);
                }
            }
            narrow
        }
    }
}

/// Defines `fn name<generics>(level: Level) -> *const u8`: the address of the C function that runs a body with the
/// instructions of `level`. The body is `unsafe fn body<L: Simd, generics>(arguments) -> result`, inlined always.
macro_rules! entry {
    (
        $(#[$attribute:meta])*
        fn $name:ident = $body:ident<$($generic:ident: $bound:path),*>($($arg:ident: $ty:ty),*) $(-> $ret:ty)?
    ) => {
        $(#[$attribute])*
        pub(super) fn $name<$($generic: $bound),*>(level: $crate::kernels::Level) -> *const u8 {
            use $crate::kernels::level;

            unsafe extern "C" fn portable<$($generic: $bound),*>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller keeps the body's contract; the level asks for nothing.
                unsafe { $body::<level::Portable, $($generic),*>($($arg),*) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c")]
            unsafe extern "C" fn avx2<$($generic: $bound),*>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller keeps the body's contract; the features are those of the level.
                unsafe { $body::<level::Avx2, $($generic),*>($($arg),*) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe extern "C" fn avx512<$($generic: $bound),*>($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller keeps the body's contract; the features are those of the level.
                unsafe { $body::<level::Avx512, $($generic),*>($($arg),*) }
            }

            match level {
                level::Level::Portable => portable::<$($generic),*> as *const u8,
                #[cfg(target_arch = "x86_64")]
                level::Level::Avx2 => avx2::<$($generic),*> as *const u8,
                #[cfg(target_arch = "x86_64")]
                level::Level::Avx512 => avx512::<$($generic),*> as *const u8,
            }
        }
    };
}
