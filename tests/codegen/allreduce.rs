//! The guide's all-reduce.

use pld::ir::Program;

use crate::ranks::{Arg, Bytes, Options, Ranks};
use crate::text::program;

const N: u32 = 256;

pub fn allreduce() -> Program {
    program(include_str!("../../examples/pld/allreduce.pld"))
}

#[test]
fn sums_over_ranks() {
    let program = allreduce();
    for nranks in [1, 2, 3, 4, 8] {
        for each in [false, true] {
            let ranks = Ranks::compile(&program, nranks, Options { each, ..Options::default() });
            let input = |rank: u32| (0..N).map(|i| (rank * 1000 + i) as f32).collect::<Vec<f32>>();
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

/// What is known of the world, the rank and the loops leaves nothing to check.
#[test]
fn needs_no_checks() {
    let program = allreduce();
    let bytes = |checked| {
        let ranks = Ranks::compile(&program, 4, Options { checked, ..Options::default() });
        ranks.code[0].code_bytes
    };
    assert_eq!(bytes(true), bytes(false));
}
