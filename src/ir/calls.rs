//! The calls of a program that ranks compare, by number.

use super::entity::Scalar;
use super::extent::Known;
use super::op::{Expr, OpKind};
use super::program::{OpData, Program, ScalarDef};
use super::types::BinaryOp;

/// A call that ranks must make together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedCall {
    /// Its number.
    pub number: u16,
    /// What is called.
    pub name: String,
    /// `file:line` where it was written; may be empty.
    pub place: String,
}

/// The calls of a program: what its `agree` ops compare. The low half of what they compare is the number.
pub fn calls(program: &Program, known: Known) -> Vec<NumberedCall> {
    let call = |op: &OpData| match &op.kind {
        OpKind::Agree { label, mine, .. } => {
            let number = low_half(program, *mine, known)?;
            Some(NumberedCall { number, name: label.clone(), place: program.place(op.loc) })
        }
        _ => None,
    };
    program.ops.values().filter_map(call).collect()
}

/// The low 16 bits of a number, if they are known without running anything.
fn low_half(program: &Program, scalar: Scalar, known: Known) -> Option<u16> {
    if let Some(value) = program.int_value(scalar, known) {
        return Some(value as u16);
    }
    let ScalarDef::Result(op) = program.scalars[scalar].def else { return None };
    let OpKind::Scalar { expr, .. } = &program.ops[op].kind else { return None };
    let half = |scalar| low_half(program, scalar, known);
    match *expr {
        Expr::Copy(value) | Expr::Cast(value) => half(value),
        Expr::Binary(BinaryOp::Add, a, b) => Some(half(a)?.wrapping_add(half(b)?)),
        Expr::Binary(BinaryOp::Mul, a, b) => match (half(a), half(b)) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (a, b) => Some(a?.wrapping_mul(b?)),
        },
        _ => None,
    }
}
