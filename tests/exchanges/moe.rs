//! `examples/pld/moe_dispatch_combine.pld` in smaller sizes: layer after layer on the same windows, with all kinds of
//! routing, and experts that take their time.

use std::ffi::c_void;
use std::sync::Arc;

use half::bf16;
use pld::error::ErrorKind;
use pld::ir;
use pld::runtime::{Arg, CallbackContext, Executable, View, World};

use super::cards::settle;
use super::data::{choose, dawdle, mix};
use super::ranked::{Ranked, local};
use super::{compile, program, threads};

const T: usize = 12;
const TOPK: usize = 3;
const D: usize = 40;
const N_LOCAL: usize = 4;
const MAX_PER_SRC: usize = 12;
const PAD: usize = 8;
const LAYERS: usize = 240;

fn moe(max_per_src: i64) -> ir::Program {
    let sizes = [("T", 12), ("TOPK", 3), ("D", 40), ("N_LOCAL", 4), ("MAX_PER_SRC", max_per_src), ("BLOCKS", 3)];
    program(include_str!("../../examples/pld/moe_dispatch_combine.pld"), &sizes)
}

/// What expert `eid` makes of an element.
fn answer(eid: usize, x: i8, scale: f32, weight: f32) -> bf16 {
    bf16::from_f32(f32::from(x) * scale * (1.0 + eid as f32 * 0.25) * weight)
}

/// A view's elements.
///
/// # Safety
/// The view is of this type and packed, and nobody writes to it meanwhile.
unsafe fn elements<'a, T>(view: &View) -> &'a [T] {
    // SAFETY: a view has as many extents as dimensions, and memory for all its elements.
    unsafe {
        let shape = std::slice::from_raw_parts(view.shape, view.ndims as usize);
        std::slice::from_raw_parts(view.data.cast(), shape.iter().product::<i64>() as usize)
    }
}

/// The engine's kernel: one expert a block, which writes rows of y that are its own.
unsafe extern "C" fn expert(context: *const CallbackContext, _: *mut c_void) -> i32 {
    // SAFETY: the context lives during the call; the tensors are those that the program names, of these types.
    let (context, views) = unsafe { (&*context, std::slice::from_raw_parts((*context).tensors, (*context).ntensors)) };
    let [x, scales, weights, counts, first, y] = views else { return 1 };
    settle(context);
    // SAFETY: as above; nobody writes to them between the waits of this epoch and the answers.
    let (x, scales, weights) = unsafe { (elements::<i8>(x), elements::<f32>(scales), elements::<f32>(weights)) };
    // SAFETY: as above.
    let (counts, first) = unsafe { (elements::<i32>(counts), elements::<i32>(first)) };
    let (rank, nranks, e) = (context.rank as usize, context.nranks as usize, context.block as usize);
    dawdle(&[rank, context.launch as usize, e]);
    let max_per_src = x.len() / D / nranks / context.blocks as usize;
    for src in 0..nranks {
        for i in 0..counts[src * N_LOCAL + e] as usize {
            let row = (e * nranks + src) * max_per_src + i;
            let to = first[e * nranks + src] as usize + i;
            // SAFETY: the row is inside y, and this block's.
            let y = unsafe { std::slice::from_raw_parts_mut(y.data.cast::<bf16>().add(to * D), D) };
            for (y, &x) in y.iter_mut().zip(&x[row * D..][..D]) {
                *y = answer(rank * N_LOCAL + e, x, scales[row * PAD], weights[row * PAD]);
            }
        }
    }
    0
}

/// The expert of each route of a rank in a layer, and its number of tokens.
fn routing(p: usize, layer: usize, rank: usize) -> (Vec<usize>, usize) {
    let spread = |among: usize, first: usize| -> Vec<usize> {
        (0..T)
            .flat_map(|t| choose(&[layer, rank, t], among, TOPK.min(among)).into_iter().cycle().take(TOPK))
            .map(|e| first + e)
            .collect()
    };
    let hot = mix(&[layer]) as usize % (p * N_LOCAL);
    match layer % 6 {
        // Some ranks are cold.
        1 => (spread(p * N_LOCAL, 0), if mix(&[layer, rank]).is_multiple_of(2) { 0 } else { T }),
        // Everything goes to one expert, and fills its lanes.
        2 => (vec![hot; T * TOPK], MAX_PER_SRC / TOPK),
        // Every token goes to one expert, among others.
        3 => {
            let mut experts = spread(p * N_LOCAL, 0);
            for routes in experts.chunks_exact_mut(TOPK) {
                if !routes.contains(&hot) {
                    routes[rank % TOPK] = hot;
                }
            }
            (experts, T)
        }
        // Every rank sends to itself only.
        4 => (spread(N_LOCAL, rank * N_LOCAL), T),
        // Only one rank has a token.
        5 => (spread(p * N_LOCAL, 0), usize::from(layer / 6 % p == rank)),
        _ => (spread(p * N_LOCAL, 0), mix(&[layer, rank, 7]) as usize % (T + 1)),
    }
}

fn x(layer: usize, rank: usize, i: usize) -> i8 {
    (mix(&[layer, rank, i / D, i % D]) % 251) as u8 as i8
}

fn scale(layer: usize, rank: usize, t: usize) -> f32 {
    0.001 * (1 + mix(&[layer, rank, t, 1]) % 1000) as f32
}

fn weight(layer: usize, rank: usize, i: usize) -> f32 {
    0.001 * (1 + mix(&[layer, rank, i, 2]) % 1000) as f32
}

/// What a row of the output has where nothing is written.
const UNTOUCHED: f32 = -12345.0;

fn expected(p: usize, layer: usize, rank: usize) -> Vec<f32> {
    let (experts, tokens) = routing(p, layer, rank);
    let mut out = vec![UNTOUCHED; T * D];
    for t in 0..tokens {
        for d in 0..D {
            let answers = (t * TOPK..(t + 1) * TOPK).map(|route| {
                let x = x(layer, rank, t * D + d);
                answer(experts[route], x, scale(layer, rank, t), weight(layer, rank, route)).to_f32()
            });
            out[t * D + d] = answers.fold(0.0, |sum, y| sum + y);
        }
    }
    out
}

fn launch(
    executable: &Executable,
    world: &World,
    layer: usize,
    routing: impl Fn(usize) -> (Vec<usize>, usize),
) -> pld::error::Result<Ranked<f32>> {
    let routes: Vec<_> = (0..world.nranks() as usize).map(routing).collect();
    let mut xs = Ranked::new(world, &[T, D], |rank, i| x(layer, rank, i));
    let mut scales = Ranked::new(world, &[T, 1], |rank, t| scale(layer, rank, t));
    let mut indices = Ranked::new(world, &[T, TOPK], |rank, i| routes[rank].0[i] as i32);
    let mut weights = Ranked::new(world, &[T, TOPK], |rank, i| weight(layer, rank, i));
    let mut tokens = Ranked::new(world, &[1], |rank, _| routes[rank].1 as i32);
    let mut out = Ranked::new(world, &[T, D], |_, _| UNTOUCHED);
    let epoch = Arg::Int(layer as i64);
    let args = [xs.arg(), scales.arg(), indices.arg(), weights.arg(), tokens.arg(), out.arg(), epoch];
    executable.launch(&args).map(|()| out)
}

pub fn layers(world: &Arc<World>) {
    run(world, LAYERS);
}

pub fn run(world: &Arc<World>, layers: usize) {
    let executable = compile(&moe(MAX_PER_SRC as i64), world, Some(("expert", expert)));
    let p = world.nranks() as usize;
    for layer in 1..=layers {
        if let Some(rank) = world.rank() {
            dawdle(&[layer, rank as usize, 3]);
        }
        let mut out =
            launch(&executable, world, layer, |rank| routing(p, layer, rank)).unwrap_or_else(|e| panic!("{e}"));
        for (part, rank) in out.parts().zip(local(world)) {
            assert!(part == expected(p, layer, rank), "{p} ranks, layer {layer}: rank {rank} is wrong");
        }
    }
}

/// A row too many for its lane ends the launch: it is not another lane's row.
#[test]
fn a_lane_that_is_full_is_an_error() {
    let world = threads(2, 1);
    let executable = compile(&moe(4), &world, Some(("expert", expert)));
    let to_one = |tokens: [usize; 2]| move |rank: usize| (vec![5; T * TOPK], tokens[rank]);
    for (layer, tokens) in [[1, 1], [0, 1], [1, 0]].into_iter().enumerate() {
        launch(&executable, &world, layer + 1, to_one(tokens)).unwrap_or_else(|e| panic!("{e}"));
    }
    let error = launch(&executable, &world, 4, to_one([1, 2])).err().expect("six rows do not fit");
    assert_eq!(error.kind, ErrorKind::OutOfBounds, "{error}");
    for fact in ["rank 1", "[4, 0] reaches outside lane_x", "put lane_x[slot, 0] @dst", "push"] {
        assert!(error.message.contains(fact), "{fact} is missing in: {error}");
    }
}

/// An expert that does not exist is found before anything is sent.
#[test]
fn an_expert_that_does_not_exist_is_an_error() {
    for eid in [-1, 2 * N_LOCAL as i32, i32::MAX] {
        let world = threads(2, 1);
        let executable = compile(&moe(MAX_PER_SRC as i64), &world, Some(("expert", expert)));
        let routing = |rank: usize| (vec![if rank == 0 { 1 } else { eid as u32 as usize }; T * TOPK], 1);
        let error = launch(&executable, &world, 1, routing).err().expect("there is no such expert");
        assert_eq!(error.kind, ErrorKind::OutOfBounds, "{error}");
        assert!(error.message.contains("rank 1") && error.message.contains("route"), "{error}");
    }
}
