//! Instruction-set levels, and how a kernel is instantiated for each.
//!
//! A kernel is written once, as a generic `#[inline(always)]` body. `entry!` wraps it in one C function a level, with
//! that level's target features switched on, and the compiler vectorises the body for them. Where it cannot find the
//! right instruction by itself, the body asks its [`Simd`] parameter.

use half::f16;

use super::element::Element;

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

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable if cfg!(target_arch = "x86_64") => "SSE2",
            Level::Portable if cfg!(target_arch = "aarch64") => "NEON",
            Level::Portable => "any CPU",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "AVX-512",
        }
    }

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
    /// Widens `n` binary16.
    ///
    /// # Safety
    /// `n` elements can be read and as many written; the caller is compiled for this level and its CPU has it.
    #[inline(always)]
    unsafe fn widen_f16(dst: *mut f32, src: *const f16, n: usize) {
        for i in 0..n {
            // SAFETY: i < n.
            unsafe { dst.add(i).write(src.add(i).read().widen()) };
        }
    }

    /// Rounds `n` values to binary16, to nearest even.
    ///
    /// # Safety
    /// `n` elements can be read and as many written; the caller is compiled for this level and its CPU has it.
    #[inline(always)]
    unsafe fn narrow_f16(dst: *mut f16, src: *const f32, n: usize) {
        for i in 0..n {
            // SAFETY: i < n.
            unsafe { dst.add(i).write(Element::narrow(src.add(i).read())) };
        }
    }
}

/// [`Level::Portable`] as a type.
pub(super) struct Portable;

impl Simd for Portable {}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Simd, f16};

    /// [`super::Level::Avx2`] as a type.
    pub struct Avx2;

    impl Simd for Avx2 {
        #[inline(always)]
        unsafe fn widen_f16(dst: *mut f32, src: *const f16, n: usize) {
            let full = n - n % 8;
            // SAFETY: the caller's promise; vectors and rest are the n elements.
            unsafe {
                for i in (0..full).step_by(8) {
                    let half = _mm_loadu_si128(src.add(i).cast());
                    _mm256_storeu_ps(dst.add(i), _mm256_cvtph_ps(half));
                }
                for i in full..n {
                    let half = _mm_cvtsi32_si128(i32::from(src.add(i).read().to_bits()));
                    dst.add(i).write(_mm_cvtss_f32(_mm_cvtph_ps(half)));
                }
            }
        }

        #[inline(always)]
        unsafe fn narrow_f16(dst: *mut f16, src: *const f32, n: usize) {
            let full = n - n % 8;
            // SAFETY: the caller's promise; vectors and rest are the n elements.
            unsafe {
                for i in (0..full).step_by(8) {
                    let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(src.add(i)));
                    _mm_storeu_si128(dst.add(i).cast(), half);
                }
                for i in full..n {
                    let half = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(src.add(i).read()));
                    dst.add(i).write(f16::from_bits(_mm_cvtsi128_si32(half) as u16));
                }
            }
        }
    }

    /// [`super::Level::Avx512`] as a type.
    pub struct Avx512;

    impl Simd for Avx512 {
        #[inline(always)]
        unsafe fn widen_f16(dst: *mut f32, src: *const f16, n: usize) {
            let full = n - n % 16;
            // SAFETY: the caller's promise; vectors and rest are the n elements.
            unsafe {
                for i in (0..full).step_by(16) {
                    let half = _mm256_loadu_si256(src.add(i).cast());
                    _mm512_storeu_ps(dst.add(i), _mm512_cvtph_ps(half));
                }
                Avx2::widen_f16(dst.add(full), src.add(full), n - full);
            }
        }

        #[inline(always)]
        unsafe fn narrow_f16(dst: *mut f16, src: *const f32, n: usize) {
            let full = n - n % 16;
            // SAFETY: the caller's promise; vectors and rest are the n elements.
            unsafe {
                for i in (0..full).step_by(16) {
                    let half = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(src.add(i)));
                    _mm256_storeu_si256(dst.add(i).cast(), half);
                }
                Avx2::narrow_f16(dst.add(full), src.add(full), n - full);
            }
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
