use crate::ir::*;

use super::verify;

/// The guide's all-reduce.
fn allreduce() -> Program {
    let mut b = Builder::new("allreduce");
    let (one, size, world) = (b.extent_int(1), b.extent_int(256), b.extent_world());
    let e = b.entry_begin("allreduce");
    let inp = b.param_tensor("inp", DType::F32, [one, size].into_iter().collect(), Direction::In).unwrap();
    let out = b.param_tensor("sum", DType::F32, [one, size].into_iter().collect(), Direction::Out).unwrap();
    let data = b.param_window("data", DType::F32, [one, size].into_iter().collect()).unwrap();
    let signal = b.param_window("signal", DType::I32, [world, one].into_iter().collect()).unwrap();
    let me = b.param_scalar("me", ScalarType::I32).unwrap();
    b.at_begin("reduce_step");
    let (zero, step, ranks) = (b.int(0), b.int(1), b.world());
    let acc = b.load(inp, &[zero, zero], [one, size].into_iter().collect());
    b.name_tile(acc, "acc");
    b.store(acc, data, &[zero, zero]);
    let peer = b.for_begin(zero, ranks, step);
    let other = b.binary(BinaryOp::Ne, peer, me);
    b.if_begin(other);
    b.notify(signal, peer, &[me, zero], step, NotifyOp::Add);
    b.if_end();
    b.for_end();
    let src = b.for_begin(zero, ranks, step);
    let other = b.binary(BinaryOp::Ne, src, me);
    b.if_begin(other);
    b.wait(signal, &[src, zero], step, WaitCmp::Ge);
    b.if_end();
    b.for_end();
    let peer = b.for_begin(zero, ranks, step);
    let other = b.binary(BinaryOp::Ne, peer, me);
    b.if_begin(other);
    let recv = b.remote_load(data, peer, &[zero, zero], [one, size].into_iter().collect());
    let sum = b.tile_op(TileOp::Add, acc, TileOrScalar::Tile(recv));
    b.assign(acc, sum);
    b.if_end();
    b.for_end();
    b.store(acc, out, &[zero, zero]);
    b.at_end();
    b.entry_end();
    let inputs = b.host_tensor("inputs", DType::F32, [world, one, size].into_iter().collect(), Direction::In).unwrap();
    let outputs =
        b.host_tensor("outputs", DType::F32, [world, one, size].into_iter().collect(), Direction::Out).unwrap();
    let data_buf = b.alloc_window("data_buf", DType::F32, [one, size].into_iter().collect());
    let signal_buf = b.alloc_window("signal_buf", DType::I32, [world, one].into_iter().collect());
    let r = b.ranks_begin(zero, ranks);
    let (x, y) = (b.slice_rank(inputs, r), b.slice_rank(outputs, r));
    let data = b.window(data_buf, DType::F32, [one, size].into_iter().collect());
    let signal = b.window(signal_buf, DType::I32, [world, one].into_iter().collect());
    let args = [x, y, data, signal].map(Operand::Tensor).into_iter().chain([Operand::Scalar(r)]).collect();
    b.dispatch(e, r, args);
    b.ranks_end();
    b.finish().unwrap()
}

#[test]
fn a_right_program_gives_no_finding() {
    let program = allreduce();
    for world in [None, Some(1), Some(2), Some(3), Some(4), Some(8)] {
        let findings = verify(&program, world);
        assert!(findings.is_empty(), "{world:?}: {}", findings[0]);
    }
}
