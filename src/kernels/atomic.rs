//! Atomic addition of a region to another.
//!
//! Each element is added with one atomic read-modify-write of its own width, so concurrent adders lose no update and
//! neighbours are not touched. The order is relaxed: who wants to see the sums waits for a notify that follows.

use std::sync::atomic::{AtomicI8, AtomicI16, AtomicI32, AtomicU16, AtomicU32, Ordering::Relaxed};

use half::{bf16, f16};

use super::element::Element;

/// An element type with atomic addition.
pub(super) trait AtomicAdd: Copy {
    /// Adds `value` to the element at `cell`.
    ///
    /// # Safety
    /// `cell` is valid and aligned, and whoever else accesses it meanwhile does so atomically.
    unsafe fn add(cell: *mut Self, value: Self);
}

macro_rules! integer {
    ($($ty:ty: $atomic:ty),*) => {$(
        impl AtomicAdd for $ty {
            #[inline(always)]
            unsafe fn add(cell: *mut $ty, value: $ty) {
                // SAFETY: the caller's promise.
                unsafe { <$atomic>::from_ptr(cell) }.fetch_add(value, Relaxed);
            }
        }
    )*};
}

integer!(i8: AtomicI8, i16: AtomicI16, i32: AtomicI32);

/// No CPU has an instruction for these: compare and exchange until nobody came between.
macro_rules! float {
    ($($ty:ty: $atomic:ty),*) => {$(
        impl AtomicAdd for $ty {
            #[inline(always)]
            unsafe fn add(cell: *mut $ty, value: $ty) {
                let value = value.widen();
                // SAFETY: the caller's promise; the atomic has the size and alignment of the element.
                let cell = unsafe { <$atomic>::from_ptr(cell.cast()) };
                let mut old = cell.load(Relaxed);
                loop {
                    let sum = <$ty as Element>::narrow(<$ty>::from_bits(old).widen() + value).to_bits();
                    match cell.compare_exchange_weak(old, sum, Relaxed, Relaxed) {
                        Ok(_) => break,
                        Err(seen) => old = seen,
                    }
                }
            }
        }
    )*};
}

float!(f32: AtomicU32, f16: AtomicU16, bf16: AtomicU16);

/// `fn(dst, dst_stride, src, src_stride, rows, cols)`, strides in bytes: `dst[i] += src[i]`, atomically.
pub(super) unsafe extern "C" fn accumulate_2d<E: AtomicAdd>(
    dst: *mut E,
    dst_stride: usize,
    src: *const E,
    src_stride: usize,
    rows: usize,
    cols: usize,
) {
    for row in 0..rows {
        // SAFETY: the caller gives rows of cols elements at these strides, and lets nobody access dst but atomically.
        unsafe {
            let dst = dst.byte_add(row * dst_stride);
            let src = src.byte_add(row * src_stride);
            for col in 0..cols {
                E::add(dst.add(col), src.add(col).read());
            }
        }
    }
}
