//! What a launch says about its arguments.

use pld::error::ErrorKind;
use pld::ir::DType;
use pld::runtime::{Arg, TensorArg, World, WorldOptions};

use crate::programs::compile;

const SCALE: &str = "
program scale
dim n
entry e(x: tensor[n, 4] f32 in, y: tensor[n, 4] f32 out, z: tensor[n + 1] i64 inout, a: i32, b: i64, c: f32, d: bool) {
  at step {
    for i in 0..n {
      t = load x[i, 0] [1, 4]
      u = mul t, c
      store u -> y[i, 0]
    }
    if d { z[n] = b + a }
  }
}
host (xs: tensor[world, n, 4] f32 in, ys: tensor[world, n, 4] f32 out, z: tensor[n + 1] i64 inout, a: i32, b: i64, c: f32, d: bool) {
  ranks r in 0..world { dispatch e(xs[r], ys[r], z, a, b, c, d) device r }
}
";

struct Buffers {
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<i64>,
}

const SHAPE: &[i64] = &[1, 2, 4];

impl Buffers {
    fn new() -> Self {
        Self { x: (0..8).map(|i| i as f32).collect(), y: vec![-1.0; 8], z: vec![-1; 3] }
    }

    fn args(&mut self) -> Vec<Arg<'static>> {
        let floats = |data: &mut Vec<f32>| TensorArg {
            data: data.as_mut_ptr().cast(),
            dtype: DType::F32,
            shape: SHAPE,
            strides: None,
        };
        let z = TensorArg { data: self.z.as_mut_ptr().cast(), dtype: DType::I64, shape: &[3], strides: None };
        vec![
            Arg::Tensor(floats(&mut self.x)),
            Arg::Tensor(floats(&mut self.y)),
            Arg::Tensor(z),
            Arg::Int(-3),
            Arg::Int(1 << 40),
            Arg::Float(0.5),
            Arg::Bool(true),
        ]
    }
}

#[test]
fn every_mistake_is_named() {
    let world = World::create(1, &WorldOptions::default()).unwrap();
    let exe = compile(SCALE, &world, false).unwrap();
    let mut buffers = Buffers::new();
    exe.launch(&buffers.args()).unwrap();
    assert_eq!(buffers.y, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
    assert_eq!(buffers.z, [-1, -1, (1 << 40) - 3]);

    let wrong = |change: &dyn Fn(&mut Vec<Arg<'static>>), message: &str| {
        let mut args = Buffers::new();
        let mut args = args.args();
        change(&mut args);
        let error = exe.launch(&args).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidArgument, message));
    };
    let tensor = |index: usize, change: &dyn Fn(&mut TensorArg<'static>), message: &str| {
        let change = |args: &mut Vec<Arg<'static>>| {
            let Arg::Tensor(tensor) = &mut args[index] else { panic!("argument {index} is a tensor") };
            change(tensor);
        };
        wrong(&change, message);
    };

    wrong(&|a| a.truncate(6), "6 arguments are given, the program takes 7 (xs, ys, z, a, b, c, d)");
    wrong(&|a| a[0] = Arg::Int(3), "argument xs is a scalar, not a f32 tensor");
    wrong(&|a| a[3] = a[0], "argument a is a tensor, not an i32");
    wrong(&|a| a[3] = Arg::Int(1 << 31), "argument a is 2147483648, which is no i32");
    wrong(&|a| a[3] = Arg::Float(1.5), "argument a is the float 1.5, not an i32");
    wrong(&|a| a[5] = Arg::Int(2), "argument c is the integer 2, not an f32");
    wrong(&|a| a[5] = Arg::Float(1e39), "argument c is 1e39, which is no f32");
    wrong(&|a| a[6] = Arg::Int(1), "argument d is the integer 1, not an bool");
    wrong(&|a| a[2] = Arg::Ranks(&[]), "argument z is a list of parts, but is not sliced by rank");
    wrong(&|a| a[0] = Arg::Ranks(&[]), "argument xs has 0 parts for 1 ranks");
    tensor(0, &|t| t.dtype = DType::I32, "argument xs is i32, not f32");
    tensor(0, &|t| t.shape = &[2, 4], "argument xs has 2 dimensions [2, 4], not 3, the rank axis first");
    tensor(2, &|t| t.shape = &[1, 3], "argument z has 2 dimensions [1, 3], not 1");
    tensor(0, &|t| t.shape = &[2, 1, 4], "argument xs has the extent 2 in dimension 0, not 1 for the ranks");
    tensor(0, &|t| t.shape = &[1, 2, 5], "argument xs has the extent 5 in dimension 2, not 4 by the program");
    tensor(0, &|t| t.shape = &[1, -2, 4], "argument xs has the extent -2 in dimension 1");
    tensor(1, &|t| t.shape = &[1, 3, 4], "argument ys has the extent 3 in dimension 1, not 2 as n is bound before");
    tensor(2, &|t| t.shape = &[4], "argument z has the extent 4 in dimension 0, not 3 by the other arguments");
    let huge = "argument xs is larger than an address space of 64 bits";
    tensor(0, &|t| t.shape = &[1, i64::MAX, 4], huge);
    let strided = "argument xs is not contiguous: strides [8, 1, 2] of shape [1, 2, 4]; make a packed copy";
    tensor(0, &|t| t.strides = Some(&[8, 1, 2]), strided);
    tensor(0, &|t| t.strides = Some(&[4, 1]), "argument xs has 2 strides for 3 dimensions");
    tensor(0, &|t| t.data = std::ptr::null_mut(), "argument xs is null, and has 32 bytes");
    let overlap = |name: &str, other: &str, bytes: usize| {
        format!("argument {name}, which is written, overlaps argument {other} by {bytes} bytes")
    };
    wrong(&|a| a[1] = a[0], &overlap("ys", "xs", 32));
    let (Arg::Tensor(x), shift) = (buffers.args()[0], 4) else { unreachable!("it is a tensor") };
    let shifted = Arg::Tensor(TensorArg { data: x.data.wrapping_add(shift), ..x });
    wrong(
        &|a| {
            a[0] = Arg::Tensor(x);
            a[1] = shifted;
        },
        &overlap("ys", "xs", 28),
    );

    // Strides of one element, and of nothing, do not matter.
    let mut args = buffers.args();
    let Arg::Tensor(x) = &mut args[0] else { unreachable!("it is a tensor") };
    x.strides = Some(&[999, 4, 1]);
    exe.launch(&args).unwrap();
    for index in [0, 1] {
        let Arg::Tensor(t) = &mut args[index] else { unreachable!("it is a tensor") };
        *t = TensorArg { data: std::ptr::null_mut(), shape: &[1, 0, 4], strides: Some(&[5, 6, 7]), ..*t };
    }
    let Arg::Tensor(z) = &mut args[2] else { unreachable!("it is a tensor") };
    z.shape = &[1];
    exe.launch(&args).unwrap();
    assert_eq!(buffers.z[0], (1 << 40) - 3);
}

#[test]
fn misaligned_memory_is_refused() {
    let world = World::create(1, &WorldOptions::default()).unwrap();
    let exe = compile(SCALE, &world, false).unwrap();
    let mut buffers = Buffers::new();
    let mut args = buffers.args();
    let Arg::Tensor(z) = &mut args[2] else { unreachable!("it is a tensor") };
    z.data = z.data.wrapping_add(4);
    let data = z.data;
    let error = exe.launch(&args).unwrap_err();
    assert_eq!(error.message, format!("argument z begins at {data:p}, which is not aligned for i64"));
}

#[test]
fn parts_may_lie_anywhere() {
    let world = World::create(2, &WorldOptions::default()).unwrap();
    let exe = compile(SCALE, &world, false).unwrap();
    let mut buffers = [Buffers::new(), Buffers::new()];
    buffers[1].x.iter_mut().for_each(|x| *x += 100.0);
    let shape: &[i64] = &[2, 4];
    let part =
        |data: &mut Vec<f32>| TensorArg { data: data.as_mut_ptr().cast(), dtype: DType::F32, shape, strides: None };
    let [a, b] = &mut buffers;
    let xs = [part(&mut a.x), part(&mut b.x)];
    let ys = [part(&mut a.y), part(&mut b.y)];
    let mut args = a.args();
    (args[0], args[1]) = (Arg::Ranks(&xs), Arg::Ranks(&ys));
    args[6] = Arg::Bool(false);
    exe.launch(&args).unwrap();
    let same = [ys[0], ys[0]];
    args[1] = Arg::Ranks(&same);
    let error = exe.launch(&args).unwrap_err();
    assert_eq!(error.message, "two parts of argument ys overlap by 32 bytes, and it is written");
    for (rank, buffer) in buffers.iter().enumerate() {
        let right: Vec<f32> = (0..8).map(|i| (i + 100 * rank) as f32 * 0.5).collect();
        assert_eq!(buffer.y, right, "rank {rank}");
    }
}
