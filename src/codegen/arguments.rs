//! What is known of the parameters of a version of an entry: every dispatch passes the same thing.

use crate::ir::extent::Known;
use crate::ir::program::{Param, ScalarDef, TensorDef};
use crate::ir::{Op, OpKind, Operand, Program, Scalar, Tensor};
use crate::passes::plan_windows::Layout;

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

/// What is known of the parameters of a version of an entry. Those that are known are folded into the code and not
/// passed.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// By parameter; empty while no dispatch has been read.
    params: Vec<Argument>,
}

impl Arguments {
    /// For code without parameters.
    pub const NONE: &'static Self = &Self { params: Vec::new() };

    /// Reads a dispatch of the version.
    pub fn add(&mut self, program: &Program, layout: &Layout, known: Known, dispatch: Op) {
        let OpKind::Dispatch { entry, args, device } = &program.ops[dispatch].kind else { return };
        let params = &program.entries[*entry].params;
        let first = self.params.is_empty();
        for (index, (arg, param)) in args.iter().zip(params).enumerate() {
            let argument = match (arg, param) {
                (&Operand::Tensor(tensor), _) => match program.tensors[tensor].def {
                    TensorDef::View(buffer) => Argument::Offset(layout.buffers[buffer].offset as i64),
                    _ => Argument::Unknown,
                },
                (&Operand::Scalar(scalar), Param::Scalar(param)) if program.scalars[*param].ty.is_int() => {
                    match program.int_value(scalar, known) {
                        Some(value) => Argument::Int(value),
                        None if program.original(scalar) == program.original(*device) => Argument::Rank,
                        None => Argument::Unknown,
                    }
                }
                _ => Argument::Unknown,
            };
            if first {
                self.params.push(argument);
            } else if self.params[index] != argument {
                self.params[index] = Argument::Unknown;
            }
        }
    }

    /// What is known of a scalar.
    pub fn scalar(&self, program: &Program, scalar: Scalar) -> Argument {
        match program.scalars[scalar].def {
            ScalarDef::Param(_, index) => self.param(index),
            _ => Argument::Unknown,
        }
    }

    /// What is known of a tensor.
    pub fn tensor(&self, program: &Program, tensor: Tensor) -> Argument {
        match program.tensors[tensor].def {
            TensorDef::Param(_, index, _) | TensorDef::Window(_, index) => self.param(index),
            _ => Argument::Unknown,
        }
    }

    fn param(&self, index: u32) -> Argument {
        self.params.get(index as usize).copied().unwrap_or(Argument::Unknown)
    }
}
