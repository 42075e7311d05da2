//! `examples/pld/tp_gemm_allreduce.pld` in smaller sizes.

use std::ffi::c_void;
use std::sync::Arc;

use pld::runtime::{Arg, CallbackContext, View, World};

use super::data::{dawdle, mix};
use super::ranked::{Ranked, local};
use super::{compile, program};

/// A multiple of every number of ranks.
const M: usize = 24;
const K: usize = 10;
const N: usize = 12;
const LAYERS: usize = 200;

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

/// Small whole numbers, so that sums are exact.
fn x(layer: usize, row: usize, inner: usize) -> f32 {
    (mix(&[layer, row, inner]) % 31) as f32 - 15.0
}

fn weight(layer: usize, inner: usize, column: usize) -> f32 {
    (mix(&[layer, inner, column, 1]) % 31) as f32 - 15.0
}

pub fn layers(world: &Arc<World>) {
    let sizes = [("M", M as i64), ("K", K as i64), ("N", N as i64)];
    let program = program(include_str!("../../examples/pld/tp_gemm_allreduce.pld"), &sizes);
    let executable = compile(&program, world, Some(("gemm", gemm)));
    let p = world.nranks() as usize;
    for layer in 1..=LAYERS {
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
