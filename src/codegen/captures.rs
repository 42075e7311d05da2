//! What a task uses of its surroundings: the arguments of its function.

use std::collections::HashSet;

use crate::ir::effects::{self, Place};
use crate::ir::program::{ScalarDef, TensorDef};
use crate::ir::{Array, Op, OpKind, Program, Scalar, Tensor, Var};

use super::arguments::{Argument, Arguments};
use super::sites::operands;

/// Something from outside a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capture {
    /// The value.
    Scalar(Scalar),
    /// Where it begins: an address, or for a window the offset in the windows.
    Tensor(Tensor),
    /// Its address.
    Var(Var),
    /// Its address.
    Array(Array),
}

/// Everything from outside that a task uses, each once, in order of first use. What is known when compiling needs no
/// capture.
pub fn captures(program: &Program, arguments: &Arguments, task: Op) -> Vec<Capture> {
    let mut ops = vec![task];
    for block in program.ops[task].kind.blocks() {
        program.walk(block, &mut |op| ops.push(op));
    }
    let mut inside = HashSet::new();
    let mut captures = Vec::new();
    for op in ops {
        let kind = &program.ops[op].kind;
        let mut used = Vec::new();
        kind.for_each_scalar(|scalar| used.push(Capture::Scalar(scalar)));
        used.extend(operands(kind).into_iter().map(Capture::Tensor));
        for effect in effects::effects(program, kind) {
            match effect.place {
                Place::Var(var) => used.push(Capture::Var(var)),
                Place::Array(array) => used.push(Capture::Array(array)),
                Place::Memory { .. } | Place::Tile(_) => {}
            }
        }
        inside.extend(kind.index().map(Capture::Scalar));
        inside.extend(match *kind {
            OpKind::Slice { dst, .. } | OpKind::Flatten { dst, .. } => Some(Capture::Tensor(dst)),
            OpKind::VarDef { var, .. } => Some(Capture::Var(var)),
            OpKind::ArrayDef { array, .. } => Some(Capture::Array(array)),
            _ => kind.result().map(Capture::Scalar),
        });
        for capture in used {
            if is_passed(program, arguments, capture) && inside.insert(capture) {
                captures.push(capture);
            }
        }
    }
    captures
}

/// The thing is not known when compiling, so its value has to be passed.
fn is_passed(program: &Program, arguments: &Arguments, capture: Capture) -> bool {
    match capture {
        Capture::Scalar(scalar) => match program.scalars[scalar].def {
            ScalarDef::Extent(_) | ScalarDef::Float(_) | ScalarDef::Bool(_) => false,
            _ => arguments.scalar(program, scalar) == Argument::Unknown,
        },
        Capture::Tensor(tensor) => match program.tensors[tensor].def {
            TensorDef::Slice(..) | TensorDef::Flat(_) => true,
            _ => arguments.tensor(program, tensor) == Argument::Unknown,
        },
        Capture::Var(_) | Capture::Array(_) => true,
    }
}
