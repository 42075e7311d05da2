//! One kernel in the making: what its statements have at hand, and control flow.

use std::collections::HashMap;

use crate::codegen::versions::Version;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::op::TileOrScalar;
use crate::ir::{Array, Atomic, Block, DType, FaultKind, Op, OpKind, Program, Scalar, Task, Tensor, Tile, Var};

use super::expr::Size;
use super::kernel::{self, Body, Expr, SlotData, Stmt, TileName};
use super::memory::Base;
use super::names::Names;
use super::plan_tiles::{BLOCK, Extent, TilePlan, too_large};
use super::task::Param;
use super::unit::Unit;

/// A scalar: an expression, and whether its type in C++ has 32 bits.
#[derive(Clone, Debug)]
pub struct Value {
    pub expr: Expr,
    pub is_narrow: bool,
}

/// A kernel in the making.
pub struct Function<'u, 'p> {
    pub unit: &'u mut Unit<'p>,
    pub version: Version,
    /// The op that statements are being made for.
    pub op: Op,
    pub task: Task,
    pub body: Body,
    /// The block that is being written.
    pub code: kernel::Block,
    pub names: Names,
    pub scalars: HashMap<Scalar, Value>,
    /// For parameters that may be the same memory as earlier ones: the first of them.
    pub aliases: HashMap<Tensor, Tensor>,
    /// Where tensors begin.
    pub bases: HashMap<Tensor, Base>,
    pub vars: HashMap<Var, Expr>,
    pub arrays: HashMap<Array, String>,
    pub tiles: HashMap<Tile, (TileName, Extent)>,
    pub plan: TilePlan,
    /// End of what the op at hand has of the unified buffer.
    pub top: i64,
    /// Scalars that checks have shown to be at least 0 and below a bound, in the open blocks.
    pub below: Vec<(Scalar, i64)>,
    pub params: Vec<Param>,
    /// Bytes of the arrays so far.
    pub array_bytes: i64,
}

impl<'p> Function<'_, 'p> {
    pub fn program(&self) -> &'p Program {
        self.unit.program
    }

    pub fn push(&mut self, stmt: Stmt) {
        self.code.push(stmt);
    }

    /// The number of the present op's site.
    pub fn site(&mut self) -> u32 {
        self.unit.sites.number(self.op, Some(self.task))
    }

    /// The target or the device cannot do what the present op asks.
    pub fn unsupported(&self, message: impl std::fmt::Display) -> Error {
        let program = self.program();
        let place = program.place(program.ops[self.op].loc);
        let at = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let (text, task) = (self.unit.text.op(self.op), &program.tasks[self.task].name);
        Error::new(ErrorKind::Unsupported, format!("{at}`{text}` of task {task}: {message}"))
    }

    /// A tile of the op's own, in what the task's tiles leave of the unified buffer.
    pub fn temporary(&mut self, name: &str, dtype: DType, extent: Extent) -> Result<TileName> {
        let bytes = extent.bytes(dtype);
        if self.top + bytes > self.unit.options.target.ub_bytes() {
            let more = self.top + bytes - self.plan.bytes;
            let target = self.unit.options.target;
            let error = too_large(&self.unit.text, self.program(), &self.plan, more, target);
            return Err(self.unsupported(error.message));
        }
        let tile = self.slot(name, dtype, extent, self.top);
        self.top += (bytes + BLOCK - 1) / BLOCK * BLOCK;
        Ok(tile)
    }

    /// A temporary that is all valid.
    pub fn temporary_tile(&mut self, name: &str, dtype: DType, extent: Extent) -> Result<TileName> {
        let tile = self.temporary(name, dtype, extent)?;
        self.declare_tile(&tile, dtype, extent);
        Ok(tile)
    }

    /// A place in the unified buffer.
    pub fn slot(&mut self, name: &str, dtype: DType, extent: Extent, offset: i64) -> TileName {
        let name = self.names.take(name);
        let data = SlotData { name: name.clone(), dtype, rows: extent.rows, cols: extent.padded_cols(dtype), offset };
        TileName { slot: self.body.slots.push(data), name }
    }

    /// Declares a tile that is all of its slot.
    pub fn declare_tile(&mut self, tile: &TileName, dtype: DType, extent: Extent) {
        let [rows, cols] = [extent.rows, extent.cols].map(Expr::number);
        self.push(Stmt::Tile { tile: tile.clone(), dtype, rows, cols, offset: Expr::number(0), resized: false });
    }

    // Ops.

    /// Statements for every op of a block of the program.
    pub fn block(&mut self, block: Block) -> Result<()> {
        let program = self.program();
        let known = self.below.len();
        // Where the statements begin of ops that the text shows inside the next one.
        let mut begin = None;
        for &op in &program.blocks[block] {
            self.op = op;
            self.top = self.plan.bytes;
            let at = *begin.get_or_insert(self.code.len());
            self.lower_op(op)?;
            if !self.unit.text.is_inline(op) {
                if is_shown(&program.ops[op].kind) && at < self.code.len() {
                    let (text, place) = (self.unit.text.op(op), program.place(program.ops[op].loc));
                    self.code.insert(at, Stmt::Op { text, place });
                }
                begin = None;
            }
        }
        self.below.truncate(known);
        Ok(())
    }

    fn lower_op(&mut self, op: Op) -> Result<()> {
        match &self.program().ops[op].kind {
            OpKind::Scalar { dst, expr } => self.scalar(*dst, expr),
            OpKind::VarDef { var, init } => self.var_def(*var, *init),
            OpKind::VarGet { dst, var } => self.var_get(*dst, *var),
            OpKind::VarSet { var, value } => self.var_set(*var, *value)?,
            OpKind::ArrayDef { array, fill } => self.array_def(*array, *fill)?,
            OpKind::ArrayGet { dst, array, index } => self.array_get(*dst, *array, *index)?,
            OpKind::ArraySet { array, index, value } => self.array_set(*array, *index, *value)?,
            OpKind::For { index, first, end, step, body } => self.for_loop(*index, *first, *end, *step, *body)?,
            OpKind::If { cond, then, other } => self.if_else(*cond, *then, *other)?,
            OpKind::Slice { dst, src, at } => self.slice(*dst, *src, at),
            OpKind::Flatten { dst, src } => self.flatten(*dst, *src),
            OpKind::Read { dst, src, at } => self.read(*dst, *src, at),
            OpKind::Write { dst, at, value } => self.write(*dst, at, *value)?,
            OpKind::Load { dst, src, at } => self.load(*dst, *src, None, at)?,
            OpKind::RemoteLoad { dst, src, peer, at } => self.load(*dst, *src, Some(*peer), at)?,
            OpKind::Store { src, dst, at } => self.store(*src, *dst, None, at, Atomic::None)?,
            OpKind::RemoteStore { src, dst, peer, at, atomic } => self.store(*src, *dst, Some(*peer), at, *atomic)?,
            OpKind::Full { dst, value } => self.full(*dst, *value),
            OpKind::Copy { dst, src } => self.tile_copy(*dst, *src),
            OpKind::Cast { dst, src } => self.tile_cast(*dst, *src)?,
            OpKind::Tile { op, dst, a, b: TileOrScalar::Tile(b) } => self.tile_binary(*op, *dst, *a, *b)?,
            OpKind::Tile { op, dst, a, b: TileOrScalar::Scalar(b) } => self.tile_scalar(*op, *dst, *a, *b)?,
            OpKind::Reduce { op, axis, dst, src } => self.reduce(*op, *axis, *dst, *src)?,
            OpKind::Put { dst, peer, src, region, atomic, staging } => {
                self.put(*dst, *peer, *src, region.as_ref(), *atomic, *staging)?;
            }
            OpKind::Get { dst, src, peer, region, staging } => {
                self.get(*dst, *src, *peer, region.as_ref(), *staging)?;
            }
            OpKind::GetReduce { op, dst, src, peers, region } => {
                self.get_reduce(*op, *dst, *src, *peers, region.as_ref())?;
            }
            OpKind::Require { cmp, a, b, peer } => self.require(*cmp, *a, *b, *peer),
            OpKind::Agree { theirs, mine, peer, .. } => self.agree(*theirs, *mine, *peer),
            OpKind::Notify { window, peer, at, value, op } => self.notify(*window, *peer, at, *value, *op),
            OpKind::Wait { window, at, expected, cmp } => self.wait(*window, at, *expected, *cmp),
            OpKind::DeferWait { window, at, expected } => self.defer_wait(*window, at, *expected),
            kind => unreachable!("{} is no op of a task", kind.name()),
        }
        Ok(())
    }

    /// Makes a block of statements of its own.
    pub fn nested(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<kernel::Block> {
        let outer = std::mem::take(&mut self.code);
        let mark = self.names.enter();
        let result = body(self);
        self.names.leave(mark);
        let inner = std::mem::replace(&mut self.code, outer);
        result.map(|()| inner)
    }

    fn if_else(&mut self, cond: Scalar, then: Block, other: Option<Block>) -> Result<()> {
        let cond = self.value(cond);
        let then = self.nested(|f| f.block(then))?;
        let other = match other {
            Some(other) => self.nested(|f| f.block(other))?,
            None => kernel::Block::new(),
        };
        self.push(Stmt::If { cond, then, other });
        Ok(())
    }

    fn for_loop(&mut self, index: Scalar, first: Scalar, end: Scalar, step: Scalar, body: Block) -> Result<()> {
        let [first_size, end_size, step_size] = [first, end, step].map(|scalar| self.size(scalar));
        let (most, stride) = (self.unit.ranges.of(end).max, self.unit.ranges.of(step));
        if stride.min < 1 {
            let wrong = Expr::binary(&step_size.expr(), "<", &Expr::number(1));
            self.fault_if(wrong, FaultKind::Step, std::slice::from_ref(&step_size), &[]);
        }
        let name = self.unit.text.scalar(index);
        // From below the end, one step further may not be a number.
        let may_wrap = step_size != Size::Const(1) && most.checked_add(stride.max).is_none();
        self.counted_loop(&name, &first_size, &end_size, &step_size, may_wrap, |f, i| {
            f.scalars.insert(index, Value { expr: i, is_narrow: false });
            f.block(body)
        })
    }

    /// Runs `body` with first, first + step, … while below `end`; `step` is positive.
    pub fn counted_loop(
        &mut self,
        name: &str,
        first: &Size,
        end: &Size,
        step: &Size,
        may_wrap: bool,
        body: impl FnOnce(&mut Self, Expr) -> Result<()>,
    ) -> Result<()> {
        let (first, end, step) = (first.expr(), end.expr(), step.expr());
        let mut index = String::new();
        let body = self.nested(|f| {
            index = f.names.take(name);
            body(f, Expr::operand(index.clone()))
        })?;
        let advance = match () {
            _ if may_wrap => Expr::compound(format!("{index} = pld::advance({index}, {}, {})", step.text, end.text)),
            _ if step.text == "1" => Expr::operand(format!("{index}++")),
            _ => Expr::compound(format!("{index} += {}", step.text)),
        };
        self.push(Stmt::For { index, first, end, advance, body });
        Ok(())
    }
}

/// The op's own line helps who reads the kernel: it is more than a scalar.
fn is_shown(kind: &OpKind) -> bool {
    !matches!(
        kind,
        OpKind::Scalar { .. }
            | OpKind::VarDef { .. }
            | OpKind::VarGet { .. }
            | OpKind::VarSet { .. }
            | OpKind::ArrayGet { .. }
            | OpKind::ArraySet { .. }
            | OpKind::If { .. }
            | OpKind::For { .. }
    )
}
