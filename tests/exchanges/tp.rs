//! `examples/pld/tp_gemm_allreduce.pld` in smaller sizes.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pld::ir;
use pld::runtime::{Arg, CallbackContext, View, World};
use pld_test_ranks::DEADLINE;

use super::cards::settle;
use super::data::{dawdle, mix};
use super::ranked::{Ranked, local};
use super::{compile, program, threads};

/// A multiple of every number of ranks.
const M: usize = 24;
const K: usize = 10;
const N: usize = 12;
const LAYERS: usize = 200;

fn layer() -> ir::Program {
    let sizes = [("M", M as i64), ("K", K as i64), ("N", N as i64)];
    program(include_str!("../../examples/pld/tp_gemm_allreduce.pld"), &sizes)
}

/// A matrix of a view: base, rows and columns.
fn matrix(view: &View) -> (*mut f32, usize, usize) {
    // SAFETY: the tensors of this program have two dimensions.
    let shape = unsafe { std::slice::from_raw_parts(view.shape, 2) };
    (view.data.cast(), shape[0] as usize, shape[1] as usize)
}

/// The engine's product.
unsafe extern "C" fn gemm(context: *const CallbackContext, _: *mut c_void) -> i32 {
    // SAFETY: the context lives during the call.
    let (context, views) = unsafe { (&*context, std::slice::from_raw_parts((*context).tensors, (*context).ntensors)) };
    let [x, weights, product] = views else { return 1 };
    settle(context);
    let ((x, m, k), (weights, _, n), (product, ..)) = (matrix(x), matrix(weights), matrix(product));
    dawdle(&[context.rank as usize, context.launch as usize, product as usize / (m * n)]);
    // SAFETY: packed matrices of these sizes, which only this task touches now.
    unsafe {
        for row in 0..m {
            for column in 0..n {
                let terms = (0..k).map(|i| *x.add(row * k + i) * *weights.add(i * n + column));
                *product.add(row * n + column) = terms.sum();
            }
        }
    }
    0
}

/// Rank 0 has begun its second half; for the test below.
static SECOND_HALF: AtomicBool = AtomicBool::new(false);

/// A product that rank 1 ends, in its first half, only when rank 0 has begun its second one.
unsafe extern "C" fn gemm_in_step(context: *const CallbackContext, user_data: *mut c_void) -> i32 {
    // SAFETY: the context lives during the call; the second tensor has a first element.
    let second = unsafe {
        let views = std::slice::from_raw_parts((*context).tensors, (*context).ntensors);
        *views[1].data.cast::<f32>() < 0.0
    };
    // SAFETY: as above.
    let rank = unsafe { (*context).rank };
    if second && rank == 0 {
        SECOND_HALF.store(true, Ordering::Release);
    }
    let end = Instant::now() + DEADLINE / 2;
    while rank == 1 && !SECOND_HALF.load(Ordering::Acquire) {
        if Instant::now() > end {
            return 1;
        }
        std::thread::yield_now();
    }
    // SAFETY: passed on.
    unsafe { gemm(context, user_data) }
}

/// With one core too, the second half does not wait for the exchange of the first one.
#[test]
fn one_half_is_multiplied_while_the_other_is_exchanged() {
    let world = threads(2, 1);
    let executable = compile(&layer(), &world, Some(("gemm", gemm_in_step)));
    let mut xs = Ranked::new(&world, &[M, K], |rank, i| (rank + i) as f32);
    let mut weights = Ranked::new(&world, &[2 * K, N], |_, i| if i < K * N { 1.0 } else { -1.0 });
    let mut y = Ranked::new(&world, &[2 * M, N], |_, _| f32::NAN);
    executable.launch(&[xs.arg(), weights.arg(), y.arg(), Arg::Int(1)]).unwrap_or_else(|e| panic!("{e}"));
    for part in y.parts() {
        for (i, &value) in part.iter().enumerate() {
            let row = i / N % M;
            let sum: usize = (0..2).map(|rank| (0..K).map(|k| rank + row * K + k).sum::<usize>()).sum();
            assert_eq!(value, if i < M * N { sum as f32 } else { -(sum as f32) }, "element {i}");
        }
    }
}

/// Small whole numbers, so that sums are exact.
fn x(layer: usize, row: usize, inner: usize) -> f32 {
    (mix(&[layer, row, inner]) % 31) as f32 - 15.0
}

fn weight(layer: usize, inner: usize, column: usize) -> f32 {
    (mix(&[layer, inner, column, 1]) % 31) as f32 - 15.0
}

pub fn layers(world: &Arc<World>) {
    run(world, LAYERS);
}

pub fn run(world: &Arc<World>, layers: usize) {
    let executable = compile(&layer(), world, Some(("gemm", gemm)));
    let p = world.nranks() as usize;
    for layer in 1..=layers {
        let mut xs = Ranked::new(world, &[M, K], |rank, i| x(layer, i / K, rank * K + i % K));
        let mut weights = Ranked::new(world, &[2 * K, N], |rank, i| {
            let (half, inner) = (i / N / K, i / N % K);
            weight(layer, rank * K + inner, half * N + i % N)
        });
        let mut y = Ranked::new(world, &[2 * M, N], |_, _| f32::NAN);
        let args = [xs.arg(), weights.arg(), y.arg(), Arg::Int(layer as i64)];
        executable.launch(&args).unwrap_or_else(|e| panic!("{e}"));
        for (part, rank) in y.parts().zip(local(world)) {
            for (i, &value) in part.iter().enumerate() {
                let (row, column) = (i / N % M, i / N / M * N + i % N);
                let expected: f32 = (0..p * K).map(|k| x(layer, row, k) * weight(layer, k, column)).sum();
                assert_eq!(value, expected, "{p} ranks, layer {layer}: rank {rank}, row {row}, column {column}");
            }
        }
    }
}
