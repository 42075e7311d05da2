//! The programs that the tests launch, and arguments for them.

use std::sync::Arc;

use pld::error::Result;
use pld::ir::{DType, parse::parse};
use pld::runtime::{Arg, CompileOptions, Executable, TensorArg, World};

/// The guide's all-reduce.
pub const ALLREDUCE: &str = "
program allreduce
entry reduce(inp: tensor[1, 256] f32 in, out: tensor[1, 256] f32 out,
             data: window[1, 256] f32, signal: window[world, 1] i32, me: i32) {
  at reduce_step {
    acc = load inp[0, 0] [1, 256]
    store acc -> data[0, 0]
    for peer in 0..world { if peer != me { notify signal[me, 0] @peer += 1 } }
    for src in 0..world { if src != me { wait signal[src, 0] >= 1 } }
    for peer in 0..world {
      if peer != me {
        recv = remote_load data[0, 0] @peer [1, 256]
        acc = add acc, recv
      }
    }
    store acc -> out[0, 0]
  }
}
host (inputs: tensor[world, 1, 256] f32 in, outputs: tensor[world, 1, 256] f32 out) {
  data_buf = alloc_window [1, 256] f32
  signal_buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    data = window data_buf [1, 256] f32
    signal = window signal_buf [world, 1] i32
    dispatch reduce(inputs[r], outputs[r], data, signal, r) device r
  }
}
";

/// Each rank returns what a launch before has left in its window, and counts it up.
pub const COUNT: &str = "
program count
entry bump(out: tensor[1] i32 out, w: window[1] i32) {
  at bump_step {
    v = w[0]
    out[0] = v
    w[0] = v + 1
  }
}
host (outs: tensor[world, 1] i32 out) {
  buf = alloc_window [1] i32
  ranks r in 0..world {
    w = window buf [1] i32
    dispatch bump(outs[r], w) device r
  }
}
";

/// Each rank returns what it finds in the last cells of its window, and writes `k` into those of all ranks. Nobody
/// waits, so that ranks may be launches apart. `N` is the size of the window.
pub const ROTATE: &str = "
program rotate
const N = {N}
entry turn(out: tensor[world] i32 out, w: window[world, N] i32, me: i32, k: i32) {
  at turn_step {
    for src in 0..world {
      v = w[src, N - 1]
      out[src] = v
    }
    t = full i32 [1, 16] k
    for peer in 0..world { remote_store t -> w[me, N - 16] @peer }
  }
}
host (outs: tensor[world, world] i32 out, k: i32) {
  buf = alloc_window [world, N] i32
  ranks r in 0..world {
    w = window buf [world, N] i32
    dispatch turn(outs[r], w, r, k) device r
  }
}
";

/// `count` barriers in one launch; returns how often a rank came through one that a peer had not come to.
pub const BARRIERS: &str = "
program barriers
entry all(bad: tensor[1] i32 out, sig: window[world, 1] i32, word: window[world, 1] i32, me: i32, count: i32) {
  at barrier {
    early = var i32 = 0
    for k in 0..count {
      epoch = cast(k, i32) + 1
      for peer in 0..world { notify word[me, 0] @peer = epoch }
      for peer in 0..world { notify sig[me, 0] @peer += 1 }
      for src in 0..world { wait sig[src, 0] >= epoch }
      for src in 0..world {
        v = word[src, 0]
        if v < epoch { early = early + 1 }
      }
    }
    bad[0] = early
  }
}
host (bads: tensor[world, 1] i32 out, count: i32) {
  sig_buf = alloc_window [world, 1] i32
  word_buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    sig = window sig_buf [world, 1] i32
    word = window word_buf [world, 1] i32
    dispatch all(bads[r], sig, word, r, count) device r
  }
}
";

/// Rank 0 notifies everybody `count` times; then each rank computes for `work` turns; then all but rank 0 wait for
/// `expected` notifies, rank 0 only if `all`.
pub const MOE: &str = "program moe
entry exchange(sum: tensor[1] i64 out, arrived: window[world, 1] i32, me: i32, count: i32, work: i64, expected: i32, all: bool) {
  at push {
    if me == 0 {
      for k in 0..count {
        for peer in 0..world { notify arrived[0, 0] @peer += 1 }
      }
    }
  }
  at expert_ffn {
    acc = var i64 = 1
    for i in 0..work { acc = (acc * 31 + i) % 1000003 }
    sum[0] = acc
  }
  at dispatch_wait {
    if me != 0 or all { wait arrived[0, 0] >= expected }
  }
}
host (sums: tensor[world, 1] i64 out, count: i32, work: i64, expected: i32, all: bool) {
  buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    arrived = window buf [world, 1] i32
    dispatch exchange(sums[r], arrived, r, count, work, expected, all) device r
  }
}
";

/// Reads `x[i]` and divides by `by`.
pub const FAULTS: &str = "program faults
entry pick(x: tensor[4] i32 in, out: tensor[1] i32 out, i: i64, by: i32) {
  at pick_step {
    v = x[i]
    out[0] = v / by
  }
}
host (xs: tensor[world, 4] i32 in, outs: tensor[world, 1] i32 out, offset: i64, by: i32) {
  ranks r in 0..world { dispatch pick(xs[r], outs[r], offset, by) device r }
}
";

pub fn compile(text: &str, world: &Arc<World>, persistent: bool) -> Result<Arc<Executable>> {
    compile_with(text, world, &CompileOptions { persistent, ..CompileOptions::default() })
}

pub fn compile_with(text: &str, world: &Arc<World>, options: &CompileOptions) -> Result<Arc<Executable>> {
    let name = text.trim().lines().next().unwrap().trim_start_matches("program ");
    let program = parse(text, &format!("{name}.pld")).unwrap_or_else(|d| panic!("{}", d[0]));
    Executable::compile(&program, world, options)
}

/// Element types of tests.
pub trait Element: Copy {
    const DTYPE: DType;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}

impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

impl Element for i64 {
    const DTYPE: DType = DType::I64;
}

/// A tensor argument over `data`.
pub fn tensor<'a, T: Element>(data: &mut [T], shape: &'a [i64]) -> Arg<'a> {
    assert_eq!(data.len() as i64, shape.iter().product::<i64>());
    Arg::Tensor(TensorArg { data: data.as_mut_ptr().cast(), dtype: T::DTYPE, shape, strides: None })
}

/// Input of rank `rank` in round `round` of [`ALLREDUCE`], small integers so that sums are exact.
pub fn input(rank: u32, round: u32) -> Vec<f32> {
    (0..256).map(|i| element(rank, i, round)).collect()
}

fn element(rank: u32, i: u32, round: u32) -> f32 {
    (rank * 1000 + i * 3 + round % 1000) as f32
}

/// The right result of that round.
pub fn reduced(nranks: u32, round: u32) -> Vec<f32> {
    (0..256).map(|i| (0..nranks).map(|rank| element(rank, i, round)).sum()).collect()
}

/// Launches [`ALLREDUCE`] as one rank, and checks the result.
pub fn allreduce_as(exe: &Executable, rank: u32, nranks: u32, round: u32) -> Result<()> {
    let (mut x, mut y) = (input(rank, round), vec![-1.0; 256]);
    exe.launch(&[tensor(&mut x, &[1, 256]), tensor(&mut y, &[1, 256])])?;
    assert_eq!(y, reduced(nranks, round), "rank {rank}, round {round}");
    Ok(())
}

/// Launches [`ALLREDUCE`] with all ranks, and checks the results.
pub fn allreduce_all(exe: &Executable, nranks: u32, round: u32) -> Result<()> {
    let mut x: Vec<f32> = (0..nranks).flat_map(|rank| input(rank, round)).collect();
    let mut y = vec![-1.0; x.len()];
    let shape = [i64::from(nranks), 1, 256];
    exe.launch(&[tensor(&mut x, &shape), tensor(&mut y, &shape)])?;
    let right = reduced(nranks, round);
    y.chunks(256).enumerate().for_each(|(rank, part)| assert_eq!(part, right, "rank {rank}, round {round}"));
    Ok(())
}
