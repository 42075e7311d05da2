//! The guide's all-reduce.

use pld::ir::builder::Builder;
use pld::ir::{BinaryOp, DType, Direction, NotifyOp, Operand, Program, ScalarType, TileOp, TileOrScalar, WaitCmp};
use smallvec::smallvec;

use crate::ranks::{Arg, Bytes, Options, Ranks};

const N: i64 = 256;

pub fn allreduce() -> Program {
    let mut b = Builder::new("l3_allreduce");
    let (one, n, world) = (b.extent_int(1), b.extent_int(N), b.extent_world());
    let entry = b.entry_begin("allreduce");
    let inp = b.param_tensor("inp", DType::F32, smallvec![one, n], Direction::In).unwrap();
    let out = b.param_tensor("total", DType::F32, smallvec![one, n], Direction::Out).unwrap();
    let data = b.param_window("data", DType::F32, smallvec![one, n]).unwrap();
    let signal = b.param_window("signal", DType::I32, smallvec![world, one]).unwrap();
    let me = b.param_scalar("me", ScalarType::I32).unwrap();
    b.at_begin("reduce_step");
    let (zero, unit, nranks) = (b.int(0), b.int(1), b.world());
    let acc = b.load(inp, &[zero, zero], smallvec![one, n]);
    b.store(acc, data, &[zero, zero]);
    for step in 0..3 {
        let peer = b.for_begin(zero, nranks, unit);
        let other = b.binary(BinaryOp::Ne, peer, me);
        b.if_begin(other);
        match step {
            0 => b.notify(signal, peer, &[me, zero], unit, NotifyOp::Add),
            1 => b.wait(signal, &[peer, zero], unit, WaitCmp::Ge),
            _ => {
                let recv = b.remote_load(data, peer, &[zero, zero], smallvec![one, n]);
                let sum = b.tile_op(TileOp::Add, acc, TileOrScalar::Tile(recv));
                b.assign(acc, sum);
            }
        }
        b.if_end();
        b.for_end();
    }
    b.store(acc, out, &[zero, zero]);
    b.at_end();
    b.entry_end();
    let inputs = b.host_tensor("inputs", DType::F32, smallvec![world, one, n], Direction::In).unwrap();
    let outputs = b.host_tensor("outputs", DType::F32, smallvec![world, one, n], Direction::Out).unwrap();
    let data_buf = b.alloc_window("data_buf", DType::F32, smallvec![one, n]);
    let signal_buf = b.alloc_window("signal_buf", DType::I32, smallvec![world, one]);
    let r = b.ranks_begin(zero, nranks);
    let data = b.window(data_buf, DType::F32, smallvec![one, n]);
    let signal = b.window(signal_buf, DType::I32, smallvec![world, one]);
    let (x, y) = (b.slice_rank(inputs, r), b.slice_rank(outputs, r));
    let args = [x, y, data, signal].map(Operand::Tensor).into_iter().chain([Operand::Scalar(r)]).collect();
    b.dispatch(entry, r, args);
    b.ranks_end();
    b.finish().unwrap()
}

#[test]
fn sums_over_ranks() {
    let program = allreduce();
    for nranks in [1, 2, 3, 4, 8] {
        for each in [false, true] {
            let ranks = Ranks::compile(&program, nranks, Options { each, checked: true });
            let input = |rank: u32| (0..N as u32).map(|i| (rank * 1000 + i) as f32).collect::<Vec<f32>>();
            let inputs = (0..nranks).map(|r| f32::bytes(&input(r))).collect();
            let outputs = vec![vec![0; 4 * N as usize]; nranks as usize];
            let outcome = ranks.launch(&[Arg::Ranked(inputs), Arg::Ranked(outputs)], &[], &[], &[]);
            outcome.assert_done();
            let sum: Vec<f32> = (0..N as usize).map(|i| (0..nranks).map(|r| input(r)[i]).sum()).collect();
            for rank in 0..nranks as usize {
                assert_eq!(f32::values(&outcome.args[1][rank]), sum, "rank {rank} of {nranks}");
            }
        }
    }
}
