//! Atomic addition of a region to another.
//!
//! Each element is added by an atomic read-modify-write, so concurrent adders lose no update, and nothing but the
//! region's elements is written. The order is relaxed: who wants to see the sums waits for a notify that follows.
//!
//! In general an update is as wide as its element. On x86-64, whose locked instructions are atomic to one another
//! whatever their widths, elements that share an aligned word and all belong to the region are added by one of them.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed};

use half::{bf16, f16};

use super::element::{Arithmetic, Element, Number};
use super::level::Simd;

/// An element type with atomic addition.
pub(super) trait AtomicAdd: Arithmetic {
    /// Adds `value` to the element at `cell`.
    ///
    /// # Safety
    /// `cell` is valid and aligned, and whoever else accesses it meanwhile does so atomically.
    unsafe fn add(cell: *mut Self, value: Self);
}

/// Compares and exchanges until nobody came between.
macro_rules! atomic_add {
    ($($ty:ty: $atomic:ty, $to_bits:expr, $from_bits:expr;)*) => {$(
        impl AtomicAdd for $ty {
            #[inline(always)]
            unsafe fn add(cell: *mut $ty, value: $ty) {
                // SAFETY: the caller's promise; the atomic has the size and alignment of the element.
                let cell = unsafe { <$atomic>::from_ptr(cell.cast()) };
                let value = value.widen();
                let sum = |old| $to_bits(<$ty as Element>::narrow($from_bits(old).widen().add(value)));
                let mut old = cell.load(Relaxed);
                while let Err(seen) = cell.compare_exchange_weak(old, sum(old), Relaxed, Relaxed) {
                    old = seen;
                }
            }
        }
    )*};
}

atomic_add! {
    f32: AtomicU32, f32::to_bits, f32::from_bits;
    f16: AtomicU16, f16::to_bits, f16::from_bits;
    bf16: AtomicU16, bf16::to_bits, bf16::from_bits;
    i32: AtomicU32, i32::cast_unsigned, u32::cast_signed;
    i16: AtomicU16, i16::cast_unsigned, u16::cast_signed;
    i8: AtomicU8, i8::cast_unsigned, u8::cast_signed;
}

entry! {
    /// `fn(dst, dst_stride, src, src_stride, rows, cols)`, strides in bytes: `dst[i] += src[i]`, atomically.
    fn accumulate_2d = accumulate_2d_body<E: AtomicAdd>(
        dst: *mut E, dst_stride: usize, src: *const E, src_stride: usize, rows: usize, cols: usize
    )
}

#[inline(always)]
unsafe fn accumulate_2d_body<L: Simd, E: AtomicAdd>(
    dst: *mut E,
    dst_stride: usize,
    src: *const E,
    src_stride: usize,
    rows: usize,
    cols: usize,
) {
    for row in 0..rows {
        // SAFETY: the caller gives rows of cols elements at these strides, and lets nobody access dst but atomically.
        unsafe { accumulate::<L, E>(dst.byte_add(row * dst_stride), src.byte_add(row * src_stride), cols) };
    }
}

/// Adds `n` elements.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn accumulate<L: Simd, E: AtomicAdd>(dst: *mut E, src: *const E, n: usize) {
    for i in 0..n {
        // SAFETY: the caller gives n elements at each pointer.
        unsafe { E::add(dst.add(i), src.add(i).read()) };
    }
}

/// Adds `n` elements, by words where they are whole.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn accumulate<L: Simd, E: AtomicAdd>(dst: *mut E, src: *const E, n: usize) {
    let in_word = size_of::<u64>() / size_of::<E>();
    let head = dst.align_offset(size_of::<u64>()).min(n);
    let end = n - (n - head) % in_word;
    // SAFETY: the caller gives n elements at each pointer; dst + head is the first of an aligned word.
    unsafe {
        for i in (0..head).chain(end..n) {
            E::add(dst.add(i), src.add(i).read());
        }
        for i in (head..end).step_by(in_word) {
            add_word::<L, E>(dst.add(i), src.add(i));
        }
    }
}

/// Adds as many elements as fill a word.
///
/// # Safety
/// They are valid at both pointers, and `cell` is aligned for the word.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn add_word<L: Simd, E: AtomicAdd>(cell: *mut E, values: *const E) {
    use std::arch::asm;

    use super::element::Chunk;

    let n = size_of::<u64>() / size_of::<E>();
    let (mut wide_old, mut wide_values, mut sums) = (Chunk::new(), Chunk::new(), Chunk::new());
    let sums: *mut E::Wide = sums.as_mut_ptr();
    let mut old: u64;
    // SAFETY: both pointers hold a word's n elements, as old and new do. The accesses to the cell are assembly, because
    // they stand for one atomic update an element, which is what other threads may make at the same time; an atomic of
    // Rust would have to have their width.
    unsafe {
        let values = E::read::<L>(values, n, &mut wide_values);
        asm!(
            "mov {old}, [{cell}]",
            cell = in(reg) cell,
            old = out(reg) old,
            options(nostack, readonly, preserves_flags),
        );
        loop {
            let added_to = E::read::<L>((&raw const old).cast(), n, &mut wide_old);
            for i in 0..n {
                sums.add(i).write(added_to.add(i).read().widen().add(values.add(i).read().widen()));
            }
            let mut new = 0u64;
            E::write::<L>((&raw mut new).cast(), sums, n);
            let seen: u64;
            asm!(
                "lock cmpxchg [{cell}], {new}",
                cell = in(reg) cell,
                new = in(reg) new,
                inout("rax") old => seen,
                options(nostack),
            );
            if seen == old {
                return;
            }
            old = seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use crate::ir::types::{DType, TileOp};
    use crate::kernels::Kernels;
    use crate::kernels::testing::{
        Guarded, Value, all_kernels, assert_elements, binary, encode, function, pack, samples, unpack,
    };

    type Accumulate = unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize);

    /// The kernels of every type and level.
    fn all() -> impl Iterator<Item = (DType, Accumulate)> {
        let types = DType::ALL.into_iter().filter(|d| d.has_atomic_add());
        types.flat_map(|dtype| {
            // SAFETY: the documented signature.
            let kernel = move |kernels: Kernels| unsafe { function(kernels.accumulate_2d(dtype).unwrap()) };
            all_kernels().into_iter().map(move |kernels| (dtype, kernel(kernels)))
        })
    }

    #[derive(Clone, Copy)]
    struct Shared(*mut u8);

    // SAFETY: the threads of a test touch what it points to with atomic adds only.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    #[test]
    fn rows_add_up_and_gaps_stay() {
        for (dtype, accumulate) in all() {
            let size = dtype.size() as usize;
            for (rows, cols, dst_gap, src_gap) in
                [(1, 1, 0, 0), (1, 130, 0, 0), (7, 5, 3, 1), (3, 33, 1, 2), (4, 0, 2, 2)]
            {
                let (dst_stride, src_stride) = (cols + dst_gap, cols + src_gap);
                let before = samples(dtype, rows * dst_stride, 5);
                let added = samples(dtype, rows * src_stride, 6);
                let expected: Vec<u64> = (before.iter().enumerate())
                    .map(|(i, &old)| match (i / dst_stride, i % dst_stride) {
                        (row, col) if col < cols => binary(TileOp::Add, dtype, old, added[row * src_stride + col]),
                        _ => old,
                    })
                    .collect();
                for shift in 0..17 {
                    let mut dst = Guarded::new(&pack(dtype, &before), shift * size);
                    let src = Guarded::new(&pack(dtype, &added), (shift + 3) * size);
                    // SAFETY: rows of cols elements at these strides.
                    unsafe {
                        accumulate(dst.as_mut_ptr(), dst_stride * size, src.as_ptr(), src_stride * size, rows, cols);
                    }
                    let what = format_args!("{dtype} [{rows}, {cols}] shift {shift}");
                    assert_elements(dtype, &unpack(dtype, dst.bytes()), &expected, what);
                }
            }
        }
    }

    /// Every thread adds its own rank and position dependent value to every element, many times.
    #[test]
    fn concurrent_adders_lose_no_update() {
        const THREADS: u64 = 4;
        const N: usize = 37;
        for (dtype, accumulate) in all() {
            // So few that every partial sum is exact in the type.
            let repeat = match dtype {
                DType::BF16 => 20,
                DType::F16 => 200,
                _ => 1000,
            };
            let value = |thread: u64, i: usize| encode(dtype, Value::Int(i128::from(thread % 2) + i as i128 % 3));
            let mut dst = Guarded::new(&vec![0; N * dtype.size() as usize], dtype.size() as usize);
            let to = Shared(dst.as_mut_ptr());
            let start = Barrier::new(THREADS as usize);
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let start = &start;
                    scope.spawn(move || {
                        let Shared(to) = { to };
                        let src = pack(dtype, &(0..N).map(|i| value(thread, i)).collect::<Vec<_>>());
                        start.wait();
                        for _ in 0..repeat {
                            // SAFETY: N elements at each pointer; the other threads access dst in the same way.
                            unsafe { accumulate(to, 0, src.as_ptr(), 0, 1, N) };
                        }
                    });
                }
            });
            let sum = |i| (0..THREADS).map(|t| i128::from(t % 2) + i as i128 % 3).sum::<i128>() * repeat;
            let expected: Vec<u64> = (0..N).map(|i| encode(dtype, Value::Int(sum(i)))).collect();
            assert_elements(dtype, &unpack(dtype, dst.bytes()), &expected, format_args!("{dtype}"));
        }
    }

    /// One thread adds to the even elements, another to the odd ones.
    #[test]
    fn neighbours_do_not_disturb_each_other() {
        const N: usize = 64;
        for (dtype, accumulate) in all() {
            let size = dtype.size() as usize;
            let repeat = if dtype == DType::BF16 { 100 } else { 1000 };
            let mut dst = Guarded::new(&vec![0; N * size], 0);
            let to = Shared(dst.as_mut_ptr());
            thread::scope(|scope| {
                for odd in 0..2 {
                    scope.spawn(move || {
                        let Shared(to) = { to };
                        let one = pack(dtype, &[encode(dtype, Value::Int(1 + odd as i128))]);
                        for _ in 0..repeat {
                            // SAFETY: a column of N / 2 elements, two elements apart; the other thread has the others.
                            unsafe { accumulate(to.add(odd * size), 2 * size, one.as_ptr(), 0, N / 2, 1) };
                        }
                    });
                }
            });
            let expected: Vec<u64> = (0..N).map(|i| encode(dtype, Value::Int(repeat * (1 + i as i128 % 2)))).collect();
            assert_elements(dtype, &unpack(dtype, dst.bytes()), &expected, format_args!("{dtype}"));
        }
    }
}
