//! Copies.
//!
//! A copy that fits the caches is memcpy's, but for rows of some KiB. A larger one goes past them: ordinary stores would
//! first read the lines that they overwrite, and would evict what the ranks work on. The border is a quarter of the
//! last-level cache, so source and destination together fill half of it. Measured on a 32 MiB cache: up to 8 MiB memcpy
//! is as fast and the reader finds the data in the cache; at 12 MiB non-temporal stores win, for the reader as well. The
//! width of the stores makes no difference there, so the instructions of the baseline do.

use super::pace::Pace;
#[cfg(target_arch = "x86_64")]
use super::pace::Way;

/// No last-level cache is so small that this much does not fit a quarter of it; spares the question for its size.
#[cfg(target_arch = "x86_64")]
const ALWAYS_CACHED: usize = 256 << 10;

/// Sizes for which the string instruction is taken, as memcpy does for larger ones: rows of tokens. Two ranks that
/// exchange such rows are faster by 5 to 14 % with it.
#[cfg(target_arch = "x86_64")]
const STRING: std::ops::RangeInclusive<usize> = (2 << 10)..=(8 << 10);

/// `fn(dst, src, bytes)`: the regions may overlap.
pub(super) unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= *STRING.start() {
        // SAFETY: the caller gives two regions of this size.
        return unsafe { copy_rows(dst, src, bytes) };
    }
    // SAFETY: as above.
    unsafe { dst.copy_from(src, bytes) }
}

/// `fn(dst, src, bytes, pace)`: into a peer's memory, in the way that has proved better; the regions may overlap.
pub(super) unsafe extern "C" fn copy_to_peer(dst: *mut u8, src: *const u8, bytes: usize, pace: *const Pace) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= *STRING.start() && bytes <= ALWAYS_CACHED && dst.addr().abs_diff(src.addr()) >= bytes {
        // SAFETY: the caller gives two regions of this size, which are apart, and the pace of a peer.
        return unsafe { copy_at_pace(dst, src, bytes, &*pace) };
    }
    let _ = pace;
    // SAFETY: the caller gives two regions of this size.
    unsafe { copy(dst, src, bytes) }
}

/// # Safety
/// The regions have this size and do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn copy_at_pace(dst: *mut u8, src: *const u8, bytes: usize, pace: &Pace) {
    const PAGE: usize = 4096;
    let plan = pace.next();
    let (way, first) = if plan.trial { (plan.way.other(), bytes.min(PAGE)) } else { (plan.way, bytes) };
    let begin = if plan.timed || plan.trial { ticks() } else { 0 };
    // SAFETY: the caller's promise; the rest begins behind the first part.
    unsafe {
        copy_in_way(way, dst, src, first);
        if plan.timed || plan.trial {
            pace.record(way, first, ticks().wrapping_sub(begin));
        }
        if first < bytes {
            copy_in_way(plan.way, dst.add(first), src.add(first), bytes - first);
        }
    }
}

/// # Safety
/// The regions have this size and do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_in_way(way: Way, dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match way {
            Way::Cached => copy_rows(dst, src, bytes),
            Way::Streamed => {
                stream::copy(dst, src, bytes);
                stream::fence();
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// A function of its own, so that a small copy is a comparison and a jump to memcpy.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn copy_rows(dst: *mut u8, src: *const u8, bytes: usize) {
    let apart = dst.addr().abs_diff(src.addr()) >= bytes;
    // SAFETY: the caller gives two regions of this size; the string instruction and streams are for regions that are
    // apart.
    unsafe {
        if apart && STRING.contains(&bytes) && std::arch::is_x86_feature_detected!("ermsb") {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") bytes => _, inout("rdi") dst => _, inout("rsi") src => _,
                options(nostack, preserves_flags),
            );
        } else if apart && bytes > ALWAYS_CACHED && bytes > stream::border() {
            stream::copy(dst, src, bytes);
            stream::fence();
        } else {
            dst.copy_from(src, bytes);
        }
    }
}

/// `fn(dst, dst_stride, src, src_stride, rows, row_bytes)`: one row after the other; the regions may overlap.
pub(super) unsafe extern "C" fn copy_2d(
    dst: *mut u8,
    dst_stride: usize,
    src: *const u8,
    src_stride: usize,
    rows: usize,
    row_bytes: usize,
) {
    if row_bytes == dst_stride && row_bytes == src_stride {
        // SAFETY: rows without gaps are one region.
        return unsafe { copy(dst, src, rows * row_bytes) };
    }
    #[cfg(target_arch = "x86_64")]
    if row_bytes >= stream::LEAST
        && rows * row_bytes > ALWAYS_CACHED
        && rows * row_bytes > stream::border()
        && dst.addr().abs_diff(src.addr()) >= rows * dst_stride.max(src_stride)
    {
        for row in 0..rows {
            // SAFETY: the caller gives rows of this size at these strides, and the regions are apart.
            unsafe { stream::copy(dst.add(row * dst_stride), src.add(row * src_stride), row_bytes) };
        }
        return stream::fence();
    }
    for row in 0..rows {
        // SAFETY: the caller gives rows of this size at these strides.
        unsafe { dst.add(row * dst_stride).copy_from(src.add(row * src_stride), row_bytes) };
    }
}

/// Copies with non-temporal stores.
#[cfg(target_arch = "x86_64")]
mod stream {
    use std::arch::x86_64::*;
    use std::sync::OnceLock;

    /// A shorter row is mostly the partial lines at its ends.
    pub const LEAST: usize = 1024;

    /// A line of the cache: what one non-temporal write to memory takes with it.
    const LINE: usize = 64;

    /// The most bytes that are copied through the caches.
    pub fn border() -> usize {
        static BORDER: OnceLock<usize> = OnceLock::new();
        *BORDER.get_or_init(|| last_level_cache().unwrap_or(32 << 20) / 4)
    }

    /// Copies; other CPUs may see the bytes in any order until [`fence`].
    ///
    /// # Safety
    /// The regions have this size and do not overlap.
    pub unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
        let head = dst.align_offset(LINE).min(bytes);
        let tail = (bytes - head) % LINE;
        let end = bytes - tail;
        // SAFETY: head, the lines between head and end, and tail are the region; the lines are aligned in dst.
        unsafe {
            dst.copy_from_nonoverlapping(src, head);
            for at in (head..end).step_by(LINE) {
                let (from, to) = (src.add(at).cast::<__m128i>(), dst.add(at).cast::<__m128i>());
                let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
                for (i, part) in line.into_iter().enumerate() {
                    _mm_stream_si128(to.add(i), part);
                }
            }
            dst.add(end).copy_from_nonoverlapping(src.add(end), tail);
        }
    }

    /// Orders non-temporal stores before all stores that follow; releasing stores alone do not.
    pub fn fence() {
        // SAFETY: every x86-64 CPU has the instruction.
        unsafe { _mm_sfence() }
    }

    /// Size in bytes of the largest cache, as the CPU describes it.
    fn last_level_cache() -> Option<usize> {
        const INTEL: u32 = 4;
        const AMD: u32 = 0x8000_001d;
        let size = |leaf| (0..16).map_while(|index| cache_size(__cpuid_count(leaf, index))).max();
        let has = |leaf| __get_cpuid_max(leaf & 0x8000_0000).0 >= leaf;
        [INTEL, AMD].into_iter().filter(|&leaf| has(leaf)).find_map(size)
    }

    /// Size of the cache that a sub-leaf describes; none behind the last one.
    fn cache_size(leaf: CpuidResult) -> Option<usize> {
        let kind = leaf.eax & 0x1f;
        let ways = (leaf.ebx >> 22) + 1;
        let partitions = (leaf.ebx >> 12 & 0x3ff) + 1;
        let line = (leaf.ebx & 0xfff) + 1;
        let sets = leaf.ecx as usize + 1;
        (kind != 0).then(|| ways as usize * partitions as usize * line as usize * sets)
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::kernels;
    use crate::kernels::testing::{Guarded, function};

    type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize);
    type Copy2d = unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize);

    fn pattern(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    /// Copies with `copy` between guards, from and to these distances from a line.
    fn check(copy: Copy, n: usize, from: usize, to: usize) {
        let src = Guarded::new(&pattern(n), from);
        let mut dst = Guarded::new(&vec![0; n], to);
        // SAFETY: both buffers have n bytes.
        unsafe { copy(dst.as_mut_ptr(), src.as_ptr(), n) };
        assert!(dst.bytes() == src.bytes(), "{n} bytes, from {from}, to {to}");
    }

    #[test]
    fn copy_copies_whatever_the_size_and_place() {
        // SAFETY: the documented signature.
        let copy: Copy = unsafe { function(kernels().copy()) };
        for n in (0..=300).chain([2047, 2048, 4096, 8192, 8193, 65537]) {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (17, 40), (63, 63)] {
                check(copy, n, from, to);
            }
        }
    }

    #[test]
    fn copy_moves_rows_that_overlap() {
        // SAFETY: the documented signature.
        let copy: Copy = unsafe { function(kernels().copy()) };
        for n in [100, 2048, 4096, 8192, 8193] {
            for (from, to) in [(0, 1), (1, 0), (0, n - 1), (n - 1, 0), (0, n), (n, 0)] {
                let mut bytes = pattern(2 * n);
                let expected = bytes[from..from + n].to_vec();
                let start = bytes.as_mut_ptr();
                // SAFETY: both regions lie in 2 n bytes.
                unsafe { copy(start.add(to), start.add(from), n) };
                assert!(bytes[to..to + n] == expected, "{n} bytes, from {from} to {to}");
            }
        }
    }

    #[test]
    fn copy_to_peer_copies_either_way() {
        type CopyToPeer = unsafe extern "C" fn(*mut u8, *const u8, usize, *const crate::kernels::Pace);
        // SAFETY: the documented signature.
        let copy: CopyToPeer = unsafe { function(kernels().copy_to_peer()) };
        let pace = crate::kernels::Pace::default();
        for turn in 0..200 {
            let n = [2048, 4097, 8192, 30_000, 100, 300_000][turn % 6];
            let src = Guarded::new(&pattern(n + turn), turn % 64);
            let mut dst = Guarded::new(&vec![0; n + turn], turn * 7 % 64);
            // SAFETY: both buffers have so many bytes.
            unsafe { copy(dst.as_mut_ptr(), src.as_ptr(), n + turn, &pace) };
            assert!(dst.bytes() == src.bytes(), "{} bytes in turn {turn}", n + turn);
        }
    }

    #[test]
    fn copy_2d_leaves_the_gaps() {
        // SAFETY: the documented signature.
        let copy_2d: Copy2d = unsafe { function(kernels().copy_2d()) };
        for (rows, row_bytes, dst_gap, src_gap) in
            [(0, 8, 0, 0), (3, 0, 4, 4), (1, 64, 0, 0), (5, 24, 0, 0), (5, 24, 8, 0), (5, 24, 0, 8), (17, 129, 3, 5)]
        {
            let (dst_stride, src_stride) = (row_bytes + dst_gap, row_bytes + src_gap);
            let src = Guarded::new(&pattern(rows * src_stride), 4);
            let mut dst = Guarded::new(&vec![0xee; rows * dst_stride], 12);
            // SAFETY: both buffers have rows of row_bytes at their strides.
            unsafe { copy_2d(dst.as_mut_ptr(), dst_stride, src.as_ptr(), src_stride, rows, row_bytes) };
            for row in 0..rows {
                let (from, to) = (&src.bytes()[row * src_stride..], &dst.bytes()[row * dst_stride..][..dst_stride]);
                assert_eq!(to[..row_bytes], from[..row_bytes], "row {row} of {rows}, {row_bytes} bytes");
                assert!(to[row_bytes..].iter().all(|&b| b == 0xee), "gap behind row {row} of {rows}");
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn non_temporal_copy_copies_whatever_the_size_and_place() {
        unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
            // SAFETY: the caller's promise.
            unsafe { super::stream::copy(dst, src, bytes) };
            super::stream::fence();
        }
        for n in (0..=300).chain([4096, 65537]) {
            for (from, to) in [(0, 0), (1, 0), (0, 1), (17, 40), (63, 63)] {
                check(copy, n, from, to);
            }
        }
    }

    /// Sizes on both sides of the border, if the cache is not so large that the test would be slow.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn copies_on_both_sides_of_the_border_are_the_same() {
        let border = super::stream::border().min(64 << 20);
        assert!(border >= super::ALWAYS_CACHED);
        // SAFETY: the documented signatures.
        let (copy, copy_2d): (Copy, Copy2d) = unsafe { (function(kernels().copy()), function(kernels().copy_2d())) };
        for n in [border - 1, border, border + 1, border + 1001] {
            check(copy, n, 8, 24);
        }
        let (rows, row_bytes, stride) = (border / 4096 + 1, 4096, 4100);
        let src = Guarded::new(&pattern(rows * stride), 4);
        let mut dst = Guarded::new(&vec![0; rows * stride], 12);
        // SAFETY: both buffers have rows of row_bytes at this stride.
        unsafe { copy_2d(dst.as_mut_ptr(), stride, src.as_ptr(), stride, rows, row_bytes) };
        for (row, (to, from)) in dst.bytes().chunks(stride).zip(src.bytes().chunks(stride)).enumerate() {
            assert!(to[..row_bytes] == from[..row_bytes] && to[row_bytes..] == [0; 4], "row {row}");
        }
    }
}
