use std::sync::Arc;
use std::time::{Duration, Instant};

use pld::error::{Error, ErrorKind};
use pld::ir::DType;
use pld::ir::parse::parse;
use pld::runtime::{Arg, CompileOptions, Executable, TensorArg, World, WorldOptions};

const ALLREDUCE: &str = "
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

#[test]
fn smoke() {
    for p in [1usize, 2, 4] {
        let world = World::create(p as u32, &WorldOptions::default()).unwrap();
        let program = parse(ALLREDUCE, "allreduce.pld").unwrap();
        let exe = Executable::compile(&program, &world, &CompileOptions::default()).unwrap();
        let shape = [p as i64, 1, 256];
        let begin = Instant::now();
        for round in 0..1000 {
            let input: Vec<f32> = (0..p * 256).map(|i| (i * 3 + round) as f32).collect();
            let mut output = vec![0f32; p * 256];
            let arg = |data: *mut f32| {
                Arg::Tensor(TensorArg { data: data.cast(), dtype: DType::F32, shape: &shape, strides: None })
            };
            exe.launch(&[arg(input.as_ptr().cast_mut()), arg(output.as_mut_ptr())]).unwrap();
            for i in 0..p * 256 {
                let right: f32 = (0..p).map(|r| (((r * 256 + i % 256) * 3) + round) as f32).sum();
                assert_eq!(output[i], right, "round {round} element {i}");
            }
        }
        eprintln!("{p} ranks: {:?} a launch", begin.elapsed() / 1000);
    }
}
