//! Copies.
//!
//! A copy that fits the caches is memcpy's. A larger one goes past them: ordinary stores would first read the lines
//! that they overwrite, and would evict what the ranks work on. The border is a quarter of the last-level cache, so
//! source and destination together fill half of it. Measured on a 32 MiB cache: up to 8 MiB memcpy is as fast and the
//! reader finds the data in the cache; at 12 MiB non-temporal stores win, for the reader as well. The width of the
//! stores makes no difference there, so the instructions of the baseline do.

/// No last-level cache is so small that this much does not fit a quarter of it; spares the question for its size.
#[cfg(target_arch = "x86_64")]
const ALWAYS_CACHED: usize = 256 << 10;

/// `fn(dst, src, bytes)`: the regions do not overlap.
pub(super) unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes > ALWAYS_CACHED && bytes > stream::border() {
        // SAFETY: the caller gives two regions of this size that do not overlap.
        unsafe { stream::copy(dst, src, bytes) };
        return stream::fence();
    }
    // SAFETY: as above.
    unsafe { dst.copy_from_nonoverlapping(src, bytes) }
}

/// `fn(dst, dst_stride, src, src_stride, rows, row_bytes)`: the regions do not overlap.
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
    if row_bytes >= stream::LEAST && rows * row_bytes > ALWAYS_CACHED && rows * row_bytes > stream::border() {
        for row in 0..rows {
            // SAFETY: the caller gives rows of this size at these strides that do not overlap.
            unsafe { stream::copy(dst.add(row * dst_stride), src.add(row * src_stride), row_bytes) };
        }
        return stream::fence();
    }
    for row in 0..rows {
        // SAFETY: as above.
        unsafe { dst.add(row * dst_stride).copy_from_nonoverlapping(src.add(row * src_stride), row_bytes) };
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

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn border_is_plausible() {
            assert!((super::super::ALWAYS_CACHED..1 << 32).contains(&border()), "{}", border());
        }
    }
}
