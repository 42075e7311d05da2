//! Bandwidth of the kernels next to memcpy and the plain non-temporal copy: `cargo bench --bench kernels`.
//!
//! One thread; medians; GB/s of the bytes written by copies and read plus written by arithmetic.

#![allow(clippy::print_stdout, reason = "the product of a benchmark")]

use std::time::{Duration, Instant};

use pld::ir::types::{DType, ReduceAxis, ReduceOp, TileOp};
use pld::kernels::{Kernels, Level, kernels};

type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize);
type Binary = unsafe extern "C" fn(*mut u8, *const u8, *const u8, usize) -> i32;
type Reduce = unsafe extern "C" fn(*mut u8, *const u8, usize, usize);
type Accumulate = unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize);

fn main() {
    println!("level {:?}", kernels().level());
    for bytes in [64, 256, 1 << 10, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20, 64 << 20] {
        copies(bytes);
    }
    for &level in Level::ALL {
        if let Some(kernels) = Kernels::new(level) {
            for elements in [16 << 10, 1 << 20] {
                arithmetic(&kernels, elements);
            }
        }
    }
}

fn copies(bytes: usize) {
    // SAFETY: the table documents this signature.
    let copy: Copy = unsafe { std::mem::transmute(kernels().copy()) };
    let (src, mut dst) = (vec![1u8; bytes], vec![2u8; bytes]);
    let (from, to) = (src.as_ptr(), dst.as_mut_ptr());
    // SAFETY (all three): both buffers have this size.
    let ours = median(bytes, || unsafe { copy(to, from, bytes) });
    let memcpy = median(bytes, || unsafe { std::ptr::copy_nonoverlapping(std::hint::black_box(from), to, bytes) });
    let stream = median(bytes, || unsafe { stream(to, from, bytes) });
    println!("copy {bytes:>9} B: ours {ours:6.1}  memcpy {memcpy:6.1}  non-temporal {stream:6.1} GB/s");
}

fn arithmetic(kernels: &Kernels, n: usize) {
    print!("{:8} {n:>8} elements:", format!("{:?}", kernels.level()));
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let bytes = n * dtype.size() as usize;
        let (a, b, mut dst) = (vec![1u8; bytes], vec![2u8; bytes], vec![3u8; bytes]);
        // SAFETY: the table documents these signatures.
        let (add, sum, accumulate): (Binary, Reduce, Accumulate) = unsafe {
            (
                std::mem::transmute(kernels.binary(TileOp::Add, dtype).unwrap()),
                std::mem::transmute(kernels.reduce(ReduceOp::Sum, ReduceAxis::Row, dtype).unwrap()),
                std::mem::transmute(kernels.accumulate_2d(dtype).unwrap()),
            )
        };
        // SAFETY (all four): every buffer has n elements.
        let add_three =
            median(3 * bytes, || unsafe { assert_eq!(add(dst.as_mut_ptr(), a.as_ptr(), b.as_ptr(), n), 0) });
        let in_place =
            median(3 * bytes, || unsafe { assert_eq!(add(dst.as_mut_ptr(), dst.as_ptr(), b.as_ptr(), n), 0) });
        let sum = median(bytes, || unsafe { sum(dst.as_mut_ptr(), a.as_ptr(), n / 1024, 1024) });
        let atomic = median(3 * bytes, || unsafe { accumulate(dst.as_mut_ptr(), 0, a.as_ptr(), 0, 1, n) });
        print!("  {dtype} add {add_three:5.1}, in place {in_place:5.1}, row_sum {sum:5.1}, atomic {atomic:4.1}");
    }
    println!("  GB/s");
}

/// Median GB/s of `work`, which moves `bytes`.
fn median(bytes: usize, mut work: impl FnMut()) -> f64 {
    let repeat = (1 << 18) / bytes + 1;
    let mut samples = Vec::new();
    let begin = Instant::now();
    while samples.len() < 9 || begin.elapsed() < Duration::from_millis(100) {
        let start = Instant::now();
        (0..repeat).for_each(|_| work());
        samples.push(start.elapsed().as_secs_f64() / repeat as f64);
    }
    samples.sort_by(f64::total_cmp);
    bytes as f64 / samples[samples.len() / 2] / 1e9
}

/// The simplest copy past the caches.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    use std::arch::x86_64::*;
    let head = dst.align_offset(16);
    // SAFETY: the caller's buffers have this size; stores begin at the first multiple of 16.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, head);
        for at in (head..bytes - 15).step_by(16) {
            _mm_stream_si128(dst.add(at).cast(), _mm_loadu_si128(src.add(at).cast()));
        }
        let tail = (bytes - head) % 16;
        std::ptr::copy_nonoverlapping(src.add(bytes - tail), dst.add(bytes - tail), tail);
        _mm_sfence();
    }
}

/// The simplest copy past the caches; here nothing but a copy.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's buffers have this size.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) }
}
