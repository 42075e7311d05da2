//! The ops that a running program may have to name.

use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

use crate::ir::extent::Known;
use crate::ir::{Op, OpKind, Program, Tensor};

use super::code::{Site, SiteOperand};

/// The sites of a program, numbered as code asks for them.
#[derive(Default)]
pub struct Sites {
    numbers: SecondaryMap<Op, Option<u32>>,
    sites: Vec<Site>,
}

impl Sites {
    /// The number of an op's site.
    pub fn number(&mut self, program: &Program, known: Known, op: Op, task: &str) -> u32 {
        *self.numbers[op].get_or_insert_with(|| {
            let data = &program.ops[op];
            let operands = operands(&data.kind).into_iter().map(|tensor| operand(program, known, tensor));
            self.sites.push(Site {
                text: data.kind.name().into(),
                place: program.place(data.loc),
                task: task.into(),
                operands: operands.collect(),
            });
            self.sites.len() as u32 - 1
        })
    }

    /// All sites, by number.
    pub fn finish(self) -> Vec<Site> {
        self.sites
    }
}

fn operand(program: &Program, known: Known, tensor: Tensor) -> SiteOperand {
    let data = &program.tensors[tensor];
    let shape: Vec<i64> = data.shape.iter().map(|&e| program.extents.eval(e, known).unwrap_or(-1)).collect();
    let sizes: Vec<String> = data.shape.iter().map(|_| String::new()).collect();
    SiteOperand { name: data.name.clone().unwrap_or_default(), ty: sizes.join(", "), shape }
}

/// The tensors that an op names, destination first.
pub fn operands(op: &OpKind) -> SmallVec<[Tensor; 2]> {
    match *op {
        OpKind::Put { dst, src, .. } | OpKind::Get { dst, src, .. } => smallvec![dst, src],
        OpKind::Slice { src: tensor, .. }
        | OpKind::Read { src: tensor, .. }
        | OpKind::Load { src: tensor, .. }
        | OpKind::RemoteLoad { src: tensor, .. }
        | OpKind::Write { dst: tensor, .. }
        | OpKind::Store { dst: tensor, .. }
        | OpKind::RemoteStore { dst: tensor, .. }
        | OpKind::Notify { window: tensor, .. }
        | OpKind::Wait { window: tensor, .. } => smallvec![tensor],
        _ => SmallVec::new(),
    }
}
