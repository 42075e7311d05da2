//! The exchange program: what it consists of, how it is built, and how it reads as text.
//!
//! A [`Program`] is a set of [`Entry`]s (the per-rank code) and one host driver that allocates windows and dispatches
//! the entries. Code is structured: a [`Block`] lists [`Op`]s, and loops, ifs and tasks own blocks. Scalars are
//! single-assignment values; tiles, variables and arrays are registers that an op may overwrite.
//!
//! What an op reads, writes and signals stands in [`effects`] and nowhere else.

pub mod builder;
pub mod calls;
pub mod collective;
pub mod diagnostic;
pub mod effects;
pub mod entity;
pub mod extent;
pub mod fault;
mod lex;
pub mod op;
pub mod parameters;
pub mod parse;
pub mod print;
pub mod program;
pub mod syntax;
pub mod types;

pub use builder::Builder;
pub use calls::NumberedCall;
pub use collective::{AllToAllV, Collective, CollectiveKind};
pub use diagnostic::{Code, Diagnostic, Severity};
pub use entity::{Array, Block, Buffer, Dim, Domain, Entry, Extent, File, Op, Scalar, Task, Tensor, Tile, Var};
pub use fault::FaultKind;
pub use op::{
    CallbackArg, Expr, Grid, OpKind, Operand, PeerRange, Predicate, Region, Staging, TaskOptions, TileOrScalar,
};
pub use parameters::{Parameter, ParameterKind};
pub use program::{Loc, Program};
pub use types::{
    Atomic, BinaryOp, Combine, DType, Direction, Mode, NotifyOp, ReduceAxis, ReduceOp, ScalarType, TileOp, UnaryOp,
    WaitCmp,
};
