//! What is known of an entry's parameters: every dispatch passes the same thing.

use std::collections::HashMap;

use crate::ir::extent::Known;
use crate::ir::op::Expr;
use crate::ir::program::{Param, ScalarDef, TensorDef};
use crate::ir::{Entry, OpKind, Operand, Program, Scalar, Tensor};

use super::code::Binding;

/// What every dispatch passes for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A window at this offset in every rank's windows.
    Offset(i64),
    /// The number.
    Int(i64),
    /// The index of the rank that runs the entry.
    Rank,
    /// Something else.
    Unknown,
}

/// What is known of all parameters. Those that are known are folded into the code and not passed.
#[derive(Debug, Default)]
pub struct Arguments {
    params: HashMap<(Entry, u32), Argument>,
}

impl Arguments {
    /// Reads the dispatches of the host driver.
    pub fn of(program: &Program, binding: &Binding, known: Known) -> Self {
        let mut arguments = Self::default();
        for op in program.ops.values() {
            let OpKind::Dispatch { entry, args, device } = &op.kind else { continue };
            let params = &program.entries[*entry].params;
            for (index, (arg, param)) in args.iter().zip(params).enumerate() {
                let argument = match (arg, param) {
                    (&Operand::Tensor(tensor), _) => match program.tensors[tensor].def {
                        TensorDef::View(buffer) => Argument::Offset(binding.layout.buffers[buffer].offset as i64),
                        _ => Argument::Unknown,
                    },
                    (&Operand::Scalar(scalar), Param::Scalar(param)) if program.scalars[*param].ty.is_int() => {
                        match program.int_value(scalar, known) {
                            Some(value) => Argument::Int(value),
                            None if same_value(program, scalar, *device) => Argument::Rank,
                            None => Argument::Unknown,
                        }
                    }
                    _ => Argument::Unknown,
                };
                let known = arguments.params.entry((*entry, index as u32)).or_insert(argument);
                if *known != argument {
                    *known = Argument::Unknown;
                }
            }
        }
        arguments
    }

    /// What is known of a scalar.
    pub fn scalar(&self, program: &Program, scalar: Scalar) -> Argument {
        match program.scalars[scalar].def {
            ScalarDef::Param(entry, index) => self.param(entry, index),
            _ => Argument::Unknown,
        }
    }

    /// What is known of a tensor.
    pub fn tensor(&self, program: &Program, tensor: Tensor) -> Argument {
        match program.tensors[tensor].def {
            TensorDef::Param(entry, index, _) | TensorDef::Window(entry, index) => self.param(entry, index),
            _ => Argument::Unknown,
        }
    }

    fn param(&self, entry: Entry, index: u32) -> Argument {
        self.params.get(&(entry, index)).copied().unwrap_or(Argument::Unknown)
    }
}

/// The scalars are names of one value.
fn same_value(program: &Program, a: Scalar, b: Scalar) -> bool {
    named_value(program, a) == named_value(program, b)
}

/// The value that a chain of copies names.
pub fn named_value(program: &Program, mut scalar: Scalar) -> Scalar {
    while let ScalarDef::Result(op) = program.scalars[scalar].def
        && let OpKind::Scalar { expr: Expr::Copy(value), .. } = program.ops[op].kind
    {
        scalar = value;
    }
    scalar
}
