//! Vector F: dispatch and combine of an expert-parallel layer, with every intermediate result.

use std::sync::Arc;

use half::bf16;
use pld::runtime::{CompileOptions, World};

use super::data::choose;
use super::ranked::{Ranked, local};
use super::{compile_with, program};

const SEED: usize = 20260510;
const PAD: usize = 8;

#[derive(Clone, Copy)]
struct Sizes {
    t: usize,
    topk: usize,
    d: usize,
    n_local: usize,
    /// Rows that an expert has room for.
    r: usize,
}

pub fn full(world: &Arc<World>) {
    run(world, Sizes { t: 128, topk: 6, d: 4096, n_local: 16, r: 192 }, 1);
}

pub fn small(world: &Arc<World>) {
    run(world, Sizes { t: 10, topk: 3, d: 48, n_local: 4, r: 24 }, 3);
    run(world, Sizes { t: 1, topk: 1, d: 1, n_local: 1, r: 8 }, 3);
}

/// The experts of all routes, by rank, token and route; no expert gets more than its room.
fn routing(p: usize, s: Sizes) -> Vec<usize> {
    (SEED..)
        .map(|seed| {
            let tokens = (0..p * s.t).flat_map(|token| choose(&[seed, token], p * s.n_local, s.topk));
            tokens.collect::<Vec<usize>>()
        })
        .find(|experts| (0..p * s.n_local).all(|e| experts.iter().filter(|&&other| other == e).count() <= s.r))
        .expect("some seed fits")
}

fn run(world: &Arc<World>, s: Sizes, launches: usize) {
    let p = world.nranks() as usize;
    let experts = routing(p, s);
    let routes = s.t * s.topk;
    let x = |rank: usize, i: usize| bf16::from_f32((100 * rank + 10 * (i / s.d) + i % s.d) as f32);
    let w = |rank: usize, route: usize| {
        (0.01 * (rank + 1) as f64 + 0.1 * (route / s.topk) as f64 + 0.001 * (route % s.topk) as f64) as f32
    };
    let sizes = [("T", s.t), ("TOPK", s.topk), ("D", s.d), ("N_LOCAL", s.n_local), ("R", s.r)];
    let program = program(include_str!("../conformance/moe.pld"), &sizes.map(|(name, size)| (name, size as i64)));
    let executable = compile_with(&program, world, &CompileOptions::default());
    for _ in 0..launches {
        let mut xs = Ranked::new(world, &[s.t, s.d], x);
        let mut weights = Ranked::new(world, &[s.t, s.topk], w);
        let mut indices = Ranked::new(world, &[s.t, s.topk], |rank, i| experts[rank * routes + i] as i32);
        let mut recv_count = Ranked::new(world, &[s.n_local], |_, _| -1);
        let mut got_x = Ranked::new(world, &[s.n_local * s.r, s.d], |_, _| bf16::NAN);
        let mut got_w = Ranked::new(world, &[s.n_local * s.r, PAD], |_, _| f32::NAN);
        let mut got_idx = Ranked::new(world, &[s.n_local * s.r, PAD], |_, _| -1);
        let mut out = Ranked::new(world, &[s.t, s.d], |_, _| f32::NAN);
        let args = [
            xs.arg(),
            weights.arg(),
            indices.arg(),
            recv_count.arg(),
            got_x.arg(),
            got_w.arg(),
            got_idx.arg(),
            out.arg(),
        ];
        executable.launch(&args).unwrap_or_else(|e| panic!("{e}"));

        let got = got_x.parts().zip(got_w.parts()).zip(got_idx.parts()).zip(recv_count.parts());
        for ((((got_x, got_w), got_idx), recv_count), rank) in got.zip(local(world)) {
            for (e, &count) in recv_count.iter().enumerate() {
                // By source rank, and then by token and route.
                let sent: Vec<usize> =
                    (0..p * routes).filter(|&route| experts[route] == rank * s.n_local + e).collect();
                assert_eq!(count as usize, sent.len(), "rank {rank}, expert {e}");
                for (slot, (src, route)) in sent.iter().map(|route| (route / routes, route % routes)).enumerate() {
                    let row = e * s.r + slot;
                    assert_eq!(got_idx[row * PAD], route as i32, "rank {rank}, expert {e}, row {slot}");
                    assert_eq!(got_w[row * PAD], w(src, route), "rank {rank}, expert {e}, row {slot}");
                    let token = route / s.topk;
                    let right = (0..s.d).all(|d| got_x[row * s.d + d] == x(src, token * s.d + d));
                    assert!(right, "rank {rank}, expert {e}: row {slot} is not token {token} of rank {src}");
                }
            }
        }
        for (out, rank) in out.parts().zip(local(world)) {
            for (i, &sum) in out.iter().enumerate() {
                let token = i / s.d;
                let expected = (token * s.topk..(token + 1) * s.topk)
                    .fold(0.0, |sum, route| sum + bf16::from_f32(x(rank, i).to_f32() * w(rank, route)).to_f32());
                assert_eq!(sum, expected, "rank {rank}, token {token}, column {}", i % s.d);
            }
        }
    }
}
