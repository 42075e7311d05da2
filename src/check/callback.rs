//! The engine's own functions: what tasks and the host driver call, and the predicates of tasks.

use super::machine::{Machine, Stop};
use super::memory::Landing;
use super::ops::{Part, Parts};
use super::options::{Call, Scalar as Passed, View as PassedView};
use super::plan::Plan;
use super::task::Block;
use super::value::Value;
use crate::ir::program::TensorDef;
use crate::ir::{BinaryOp, CallbackArg, Direction, Op, OpKind, Predicate, Tensor};

impl Machine<'_> {
    /// The predicate of a task holds.
    pub(super) fn holds(&mut self, block: &mut Block, op: Op, predicate: &Predicate, part: &Part) -> bool {
        self.touch(block, op, part);
        let dtype = self.plan.program.tensors[predicate.tensor].dtype;
        let Value::Int(value) = self.memory.elements(part.piece, &part.ranges, dtype)[0] else {
            unreachable!("a predicate compares integers")
        };
        let (value, with) = (value as i64, predicate.value);
        match predicate.cmp {
            BinaryOp::Eq => value == with,
            BinaryOp::Ne => value != with,
            BinaryOp::Lt => value < with,
            BinaryOp::Le => value <= with,
            BinaryOp::Gt => value > with,
            _ => value >= with,
        }
    }

    /// Touches what the arguments declare, and calls the function if there is one.
    pub(super) fn callback(
        &mut self,
        block: &mut Block,
        op: Op,
        name: &str,
        args: &[CallbackArg],
        parts: Parts,
        blocks: i64,
    ) {
        let plan = self.plan;
        parts.iter().for_each(|part| self.touch(block, op, part));
        let scalars = args.iter().filter_map(CallbackArg::scalar);
        let scalars: Vec<Passed> = scalars.map(|scalar| block.registers.passed(plan, scalar)).collect();
        // Each tensor is a copy of its own; what the function writes goes back. What is read and written stands twice.
        let tensors = args.iter().filter_map(|arg| match *arg {
            CallbackArg::Tensor(tensor, direction) => Some((tensor, direction)),
            CallbackArg::Scalar(_) => None,
        });
        let mut rest = parts.into_iter();
        let used: Vec<(Part, Direction)> = tensors
            .clone()
            .filter_map(|(_, direction)| Some((rest.nth(usize::from(direction == Direction::InOut))?, direction)))
            .collect();
        let copies = used.iter().map(|(part, _)| self.memory.gather(part.piece, &part.ranges));
        let mut copies: Vec<(Tensor, Vec<u8>)> = tensors.map(|(tensor, _)| tensor).zip(copies).collect();
        let who = &self.who[block.id as usize];
        let about = Call { name, rank: who.rank as u32, launch: who.launch + 1, block: 0, blocks };
        for index in 0..blocks {
            match call(plan, Call { block: index, ..about }, &mut copies, &scalars) {
                Some(Ok(())) => {}
                Some(Err(status)) => {
                    self.stop.get_or_insert(Stop::Callback(op, Some(block.id), status));
                    return;
                }
                None => return,
            }
        }
        for ((part, direction), (_, bytes)) in used.into_iter().zip(copies) {
            if direction != Direction::In {
                self.memory.land(&Landing { piece: part.piece, ranges: part.ranges, bytes, adds: None, lazy: false });
            }
        }
    }

    /// Calls the functions behind a launch that has ended on all ranks, with whole host tensors.
    pub fn host_tasks(&mut self, launch: u32, tasks: &[(Op, Vec<Passed>)]) {
        let plan = self.plan;
        let first_arg = plan.args_of(launch);
        for (op, scalars) in tasks {
            let OpKind::HostTask { name, args } = &plan.program.ops[*op].kind else { continue };
            let numbers: Vec<(usize, Tensor)> = args
                .iter()
                .filter_map(|arg| match *arg {
                    CallbackArg::Tensor(tensor, _) => match plan.program.tensors[tensor].def {
                        TensorDef::HostParam(number, _) => Some((first_arg + number as usize, tensor)),
                        _ => None,
                    },
                    CallbackArg::Scalar(_) => None,
                })
                .collect();
            let whole = |&(arg, tensor): &(usize, Tensor)| {
                let parts = if plan.program.is_sliced(tensor) { plan.nranks } else { 1 };
                (tensor, (0..parts).flat_map(|part| self.memory.argument(arg, part)).copied().collect())
            };
            let mut copies: Vec<(Tensor, Vec<u8>)> = numbers.iter().map(whole).collect();
            let about = Call { name, rank: 0, launch: launch + 1, block: 0, blocks: 1 };
            match call(plan, about, &mut copies, scalars) {
                Some(Err(status)) => _ = self.stop.get_or_insert(Stop::Callback(*op, None, status)),
                Some(Ok(())) => {
                    for (&(arg, tensor), (_, bytes)) in numbers.iter().zip(&copies) {
                        let parts = if plan.program.is_sliced(tensor) { plan.nranks } else { 1 };
                        for part in 0..parts {
                            let size = bytes.len() / parts;
                            self.memory.argument_mut(arg, part).copy_from_slice(&bytes[part * size..][..size]);
                        }
                    }
                }
                None => {}
            }
        }
    }
}

/// Calls a function with tensors that are packed, if there is one of that name.
fn call(plan: &Plan, about: Call, copies: &mut [(Tensor, Vec<u8>)], scalars: &[Passed]) -> Option<Result<(), i32>> {
    let views = copies.iter_mut().map(|(tensor, bytes)| {
        let (shape, dtype) = (plan.shapes[*tensor].to_vec(), plan.program.tensors[*tensor].dtype);
        let mut strides = shape.clone();
        let mut stride = 1;
        strides.iter_mut().rev().for_each(|extent| stride *= std::mem::replace(extent, stride));
        PassedView { bytes: bytes.as_mut_slice(), dtype, shape, strides }
    });
    plan.options.functions?.call(about, &mut views.collect::<Vec<_>>(), scalars)
}
