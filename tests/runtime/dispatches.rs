//! Dispatches without windows: the vectors E1 to E7.

use std::sync::Arc;

use pld::runtime::{World, WorldOptions};

use crate::programs::{compile, tensor};

fn world(nranks: u32) -> Arc<World> {
    World::create(nranks, &WorldOptions::default()).unwrap()
}

/// Small integers that depend on the seed and the position.
fn values(seed: usize, len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7 + seed * 13) % 17) as f32 - 8.0).collect()
}

/// E1: every rank works on its own part.
#[test]
fn parts_of_ranks() {
    let text = "program parts
entry add_one(x: tensor[16, 32] f32 in, y: tensor[16, 32] f32 out) {
  at add_step {
    t = load x[0, 0] [16, 32]
    t = add t, 1.0
    store t -> y[0, 0]
  }
}
host (xs: tensor[world, 16, 32] f32 in, ys: tensor[world, 16, 32] f32 out) {
  ranks r in 0..world { dispatch add_one(xs[r], ys[r]) device r }
}
";
    for nranks in [1, 2, 3, 4, 8] {
        let exe = compile(text, &world(nranks), false).unwrap();
        let (n, len) = (i64::from(nranks), 512 * nranks as usize);
        let (mut x, mut y) = (values(1, len), vec![0.0; len]);
        exe.launch(&[tensor(&mut x, &[n, 16, 32]), tensor(&mut y, &[n, 16, 32])]).unwrap();
        assert!(x.iter().zip(&y).all(|(x, y)| *y == x + 1.0), "{nranks} ranks");
    }
}

/// E2: a product of which every rank has its rows of one factor, and all of the other.
#[test]
fn a_product_in_parts() {
    let text = "program product
const N = 64
entry multiply(a: tensor[N, N] f32 in, b: tensor[N, N] f32 in, c: tensor[N, N] f32 out) {
  spmd rows [N] as i {
    for j in 0..N {
      sum = var f32 = 0.0
      for k in 0..N { sum = sum + a[i, k] * b[k, j] }
      c[i, j] = sum
    }
  }
}
host (a: tensor[world, N, N] f32 in, b: tensor[N, N] f32 in, c: tensor[world, N, N] f32 out) {
  ranks r in 0..world { dispatch multiply(a[r], b, c[r]) device r }
}
";
    const N: usize = 64;
    for nranks in [2, 4] {
        let exe = compile(text, &world(nranks), false).unwrap();
        let (n, rows) = (i64::from(nranks), N * nranks as usize);
        let (mut a, mut b, mut c) = (values(2, rows * N), values(3, N * N), vec![0.0; rows * N]);
        let shape = [n, N as i64, N as i64];
        exe.launch(&[tensor(&mut a, &shape), tensor(&mut b, &[N as i64, N as i64]), tensor(&mut c, &shape)]).unwrap();
        for (at, &value) in c.iter().enumerate() {
            let (row, column) = (at / N, at % N);
            let right: f32 = (0..N).map(|k| a[row * N + k] * b[k * N + column]).sum();
            assert_eq!(value, right, "row {row}, column {column}");
        }
    }
}

/// E3, E5 and E7: two entries, each on a rank of its own or both on one, two outputs; sizes that a launch binds.
#[test]
fn a_rank_for_each_entry() {
    let text = "program two
dim m
entry plus(a: tensor[m * 2, 64] f32 in, b: tensor[m * 2, 64] f32 in, f: tensor[m * 2, 64] f32 out) {
  at plus_step {
    for i in 0..m * 2 {
      x = load a[i, 0] [1, 64]
      y = load b[i, 0] [1, 64]
      x = add x, y
      store x -> f[i, 0]
    }
  }
}
entry minus(a: tensor[m * 2, 64] f32 in, b: tensor[m * 2, 64] f32 in, g: tensor[m * 2, 64] f32 out) {
  at minus_step {
    for i in 0..m * 2 {
      x = load a[i, 0] [1, 64]
      y = load b[i, 0] [1, 64]
      x = sub x, y
      store x -> g[i, 0]
    }
  }
}
host (half: tensor[m] i32 in, a: tensor[m * 2, 64] f32 in, b: tensor[m * 2, 64] f32 in, f: tensor[m * 2, 64] f32 out,
      g: tensor[m * 2, 64] f32 out) {
  dispatch plus(a, b, f) device 0
  dispatch minus(a, b, g) device {device}
}
";
    for (nranks, device) in [(2, 1), (1, 0), (3, 2)] {
        let exe = compile(&text.replace("{device}", &device.to_string()), &world(nranks), false).unwrap();
        for m in [1, 5, 64] {
            let (len, shape) = (m * 128, [2 * m as i64, 64]);
            let (mut half, mut a, mut b) = (vec![0; m], values(4, len), values(5, len));
            let (mut f, mut g) = (vec![0.0; len], vec![0.0; len]);
            exe.launch(&[
                tensor(&mut half, &[m as i64]),
                tensor(&mut a, &shape),
                tensor(&mut b, &shape),
                tensor(&mut f, &shape),
                tensor(&mut g, &shape),
            ])
            .unwrap();
            for i in 0..len {
                assert_eq!((f[i], g[i]), (a[i] + b[i], a[i] - b[i]), "element {i} of {len}, {nranks} ranks");
            }
        }
    }
}
