//! Bandwidth of the kernels next to memcpy and a plain non-temporal copy: `cargo run --release -p pld-bench --bin kernels`.
//!
//! One thread; medians of interleaved samples; GB/s of the bytes that a copy moves or that arithmetic reads and writes.

#![allow(clippy::print_stdout, reason = "the product of a benchmark")]

use std::hint::black_box;
use std::mem::transmute;
use std::time::{Duration, Instant};

use pld::ir::types::{DType, ReduceAxis, ReduceOp, TileOp};
use pld::kernels::{Kernels, Level, kernels};

type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize);
type Binary = unsafe extern "C" fn(*mut u8, *const u8, *const u8, usize) -> i32;
type Reduce = unsafe extern "C" fn(*mut u8, *const u8, usize, usize);
type Accumulate = unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize);

fn main() {
    println!("{:?}", kernels().level());
    for bytes in [64, 1 << 10, 64 << 10, 1 << 20, 8 << 20, 16 << 20, 64 << 20] {
        copies(bytes);
    }
    for kernels in Level::ALL.iter().filter_map(|&level| Kernels::new(level)) {
        for n in [16 << 10, 1 << 20] {
            for dtype in [DType::F32, DType::F16, DType::BF16] {
                arithmetic(&kernels, dtype, n);
            }
        }
    }
}

fn copies(bytes: usize) {
    let (src, mut dst) = (vec![1u8; bytes], vec![0u8; bytes]);
    let (from, to) = (src.as_ptr(), dst.as_mut_ptr());
    // SAFETY: the table documents this signature, and both buffers have this size, here and below.
    let copy = unsafe { transmute::<*const u8, Copy>(kernels().copy()) };
    let [ours, memcpy, stream] = medians(
        bytes,
        [
            // SAFETY: as above.
            &mut || unsafe { copy(to, from, bytes) },
            // SAFETY: as above.
            &mut || unsafe { std::ptr::copy_nonoverlapping(black_box(from), to, bytes) },
            // SAFETY: as above.
            &mut || unsafe { stream(to, from, bytes) },
        ],
    );
    println!("copy {bytes:>9} B  {ours:6.1}  memcpy {memcpy:6.1}  non-temporal {stream:6.1} GB/s");
}

fn arithmetic(kernels: &Kernels, dtype: DType, n: usize) {
    let bytes = n * dtype.size() as usize;
    let (a, b, mut dst) = (vec![1u8; bytes], vec![2u8; bytes], vec![3u8; bytes]);
    let (a, b, to) = (a.as_ptr(), b.as_ptr(), dst.as_mut_ptr());
    let add = kernels.binary(TileOp::Add, dtype).expect("floats have arithmetic");
    let sum = kernels.reduce(ReduceOp::Sum, ReduceAxis::Row, dtype).expect("floats have arithmetic");
    let accumulate = kernels.accumulate_2d(dtype).expect("floats have atomic add");
    // SAFETY: the table documents these signatures, and all buffers have n elements, here and below.
    let (add, sum, accumulate) = unsafe {
        (
            transmute::<*const u8, Binary>(add),
            transmute::<*const u8, Reduce>(sum),
            transmute::<*const u8, Accumulate>(accumulate),
        )
    };
    let [apart, in_place, atomic, sum] = medians(
        bytes,
        [
            // SAFETY: as above.
            &mut || assert_eq!(unsafe { add(to, a, b, n) }, 0),
            // SAFETY: as above.
            &mut || assert_eq!(unsafe { add(to, to, b, n) }, 0),
            // SAFETY: as above.
            &mut || unsafe { accumulate(to, 0, a, 0, 1, n) },
            // SAFETY: as above.
            &mut || unsafe { sum(to, a, n / 1024, 1024) },
        ],
    );
    let (apart, in_place, atomic) = (3.0 * apart, 3.0 * in_place, 3.0 * atomic);
    let level = format!("{:?}", kernels.level());
    println!(
        "{level:8} {:4} {n:>7} elements: add {apart:5.1}  in place {in_place:5.1}  atomic {atomic:5.1}  row_sum {sum:5.1}",
        dtype.name()
    );
}

/// Median GB/s of each work, which handles `bytes`. The works take turns, so that a busy machine is unfair to all.
fn medians<const N: usize>(bytes: usize, mut works: [&mut dyn FnMut(); N]) -> [f64; N] {
    let repeat = (1 << 18) / bytes + 1;
    let mut samples = [const { Vec::new() }; N];
    let begin = Instant::now();
    while samples[0].len() < 9 || begin.elapsed() < Duration::from_millis(200) {
        for (work, samples) in works.iter_mut().zip(&mut samples) {
            work();
            let start = Instant::now();
            (0..repeat).for_each(|_| work());
            samples.push(start.elapsed().as_secs_f64() / repeat as f64);
        }
    }
    samples.map(|mut samples| {
        samples.sort_by(f64::total_cmp);
        bytes as f64 / samples[samples.len() / 2] / 1e9
    })
}

/// The simplest copy past the caches.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    use std::arch::x86_64::*;
    let head = dst.align_offset(16);
    let end = bytes - (bytes - head) % 16;
    // SAFETY: the caller's buffers have this size; the stores are aligned from head on.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, head);
        for at in (head..end).step_by(16) {
            _mm_stream_si128(dst.add(at).cast(), _mm_loadu_si128(src.add(at).cast()));
        }
        std::ptr::copy_nonoverlapping(src.add(end), dst.add(end), bytes - end);
        _mm_sfence();
    }
}

/// The simplest copy past the caches; here it is nothing but a copy.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's buffers have this size.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) }
}
