//! `examples/pld/cp_prefill_exchange.pld` in smaller sizes: many epochs, and ranks that fall behind.

use std::sync::Arc;

use half::bf16;
use pld::runtime::{Arg, World};

use super::data::{dawdle, mix};
use super::ranked::{Ranked, local};
use super::{compile, program};

const SEG_ROWS: usize = 9;
const TAIL_ROWS: usize = 5;
const D: usize = 24;
const EPOCHS: usize = 1000;

/// Row `row` of the whole sequence.
fn hidden(epoch: usize, row: usize, column: usize) -> bf16 {
    bf16::from_f32((mix(&[epoch, row, column]) % 509) as f32 - 254.0)
}

pub fn epochs(world: &Arc<World>) {
    run(world, EPOCHS);
}

pub fn run(world: &Arc<World>, epochs: usize) {
    let sizes = [("SEG_ROWS", SEG_ROWS as i64), ("TAIL_ROWS", TAIL_ROWS as i64), ("D", D as i64)];
    let program = program(include_str!("../../examples/pld/cp_prefill_exchange.pld"), &sizes);
    let executable = compile(&program, world, None);
    let p = world.nranks() as usize;
    let segment = |rank: usize, half: usize| if half == 0 { rank } else { 2 * p - 1 - rank };
    for epoch in 1..=epochs {
        if let Some(rank) = world.rank() {
            dawdle(&[epoch, rank as usize]);
        }
        let mut own = Ranked::new(world, &[2 * SEG_ROWS, D], |rank, i| {
            let row = i / D;
            hidden(epoch, segment(rank, row / SEG_ROWS) * SEG_ROWS + row % SEG_ROWS, i % D)
        });
        let mut context = Ranked::new(world, &[2 * p * TAIL_ROWS, D], |_, _| bf16::NAN);
        executable.launch(&[own.arg(), context.arg(), Arg::Int(epoch as i64)]).unwrap_or_else(|e| panic!("{e}"));
        for (part, rank) in context.parts().zip(local(world)) {
            for (i, &value) in part.iter().enumerate() {
                let (segment, row) = (i / D / TAIL_ROWS, i / D % TAIL_ROWS);
                let expected = hidden(epoch, (segment + 1) * SEG_ROWS - TAIL_ROWS + row, i % D);
                assert_eq!(value, expected, "{p} ranks, epoch {epoch}: rank {rank}, segment {segment}, row {row}");
            }
        }
    }
}
