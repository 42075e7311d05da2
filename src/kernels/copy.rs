//! Copies.

use super::level::Simd;

entry! {
    /// `fn(dst, src, bytes)`.
    fn copy = copy_body<>(dst: *mut u8, src: *const u8, bytes: usize)
}

#[inline(always)]
unsafe fn copy_body<L: Simd>(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller gives two regions of this size that do not overlap.
    unsafe { dst.copy_from_nonoverlapping(src, bytes) }
}

entry! {
    /// `fn(dst, dst_stride, src, src_stride, rows, row_bytes)`.
    fn copy_2d = copy_2d_body<>(
        dst: *mut u8, dst_stride: usize, src: *const u8, src_stride: usize, rows: usize, row_bytes: usize
    )
}

#[inline(always)]
unsafe fn copy_2d_body<L: Simd>(
    dst: *mut u8,
    dst_stride: usize,
    src: *const u8,
    src_stride: usize,
    rows: usize,
    row_bytes: usize,
) {
    for row in 0..rows {
        // SAFETY: the caller gives rows of this size at these strides that do not overlap.
        unsafe { copy_body::<L>(dst.add(row * dst_stride), src.add(row * src_stride), row_bytes) }
    }
}
