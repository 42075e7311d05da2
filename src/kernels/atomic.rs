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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use crate::ir::types::{DType, TileOp};
    use crate::kernels::kernels;
    use crate::kernels::testing::{Guarded, Value, assert_elements, binary, encode, function, pack, samples, unpack};

    type Accumulate = unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize);

    fn types() -> impl Iterator<Item = (DType, Accumulate)> {
        let kernel = |dtype| kernels().accumulate_2d(dtype).map(|address| (dtype, address));
        // SAFETY: the documented signature.
        DType::ALL.into_iter().filter_map(kernel).map(|(dtype, address)| (dtype, unsafe { function(address) }))
    }

    #[derive(Clone, Copy)]
    struct Shared(*mut u8);

    // SAFETY: the threads of a test touch what it points to with atomic adds only.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}

    #[test]
    fn exactly_the_types_with_atomic_add_have_a_kernel() {
        let found: Vec<DType> = types().map(|(dtype, _)| dtype).collect();
        assert_eq!(found, DType::ALL.into_iter().filter(|d| d.has_atomic_add()).collect::<Vec<_>>());
    }

    #[test]
    fn rows_add_up_and_gaps_stay() {
        for (dtype, accumulate) in types() {
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
        for (dtype, accumulate) in types() {
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
        for (dtype, accumulate) in types() {
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
