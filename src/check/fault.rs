//! Mistakes that end a run.

use crate::ir::{FaultKind, Op};

/// A mistake of an op that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The op.
    pub op: Op,
    /// What is wrong.
    pub kind: FaultKind,
    /// The dimension, where there is one; else `u32::MAX`.
    pub dim: u32,
    /// 0 for the destination or only tensor, 1 for the source; `u32::MAX` where there is none.
    pub operand: u32,
    /// As [`FaultKind`] says.
    pub offsets: Vec<i64>,
    /// As [`FaultKind`] says.
    pub extents: Vec<i64>,
}

impl Fault {
    /// A mistake that has no dimension.
    pub fn new(op: Op, kind: FaultKind, offsets: &[i64], extents: &[i64]) -> Self {
        Self { op, kind, dim: u32::MAX, operand: u32::MAX, offsets: offsets.to_vec(), extents: extents.to_vec() }
    }
}

/// What an op gives, unless it is a mistake.
pub type Step<T = ()> = Result<T, Fault>;
