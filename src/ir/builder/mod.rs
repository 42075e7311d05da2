//! The only way to make a [`Program`].
//!
//! A builder judges nothing but its own use: blocks that are opened and closed, names that are unique, sizes that are
//! constant. It remembers every mistake with its location and goes on, so that building code needs no check after each
//! call; [`Builder::finish`] reports them together. Whether the program makes sense is the verifier's question.

mod extend;
mod host;
mod task;

use std::collections::HashSet;

use crate::ir::collective::Collective;
use crate::ir::diagnostic::{Code, Diagnostic, Severity};
use crate::ir::entity::*;
use crate::ir::extent::{DimData, ExtentData, MAX_NODES, Shape};
use crate::ir::op::{Dims, Expr, OpKind, PeerRange, Region, Staging, TileOrScalar};
use crate::ir::program::*;
use crate::ir::syntax::KEYWORDS;
use crate::ir::types::*;

/// Most dimensions of a tensor, window or tile.
pub const MAX_RANK: usize = 8;

/// Most blocks inside one another.
pub const MAX_NESTING: usize = 100;

/// A handle is invalid, or of another program.
pub const INVALID_HANDLE: Code = Code("PLD-B001");
/// A call does not fit where it stands.
pub const MISPLACED: Code = Code("PLD-B002");
/// A block is not closed.
pub const UNCLOSED: Code = Code("PLD-B003");
/// A size is not constant during a launch.
pub const NOT_CONSTANT: Code = Code("PLD-B004");
/// A name is empty, malformed, reserved, or taken.
pub const BAD_NAME: Code = Code("PLD-B005");
/// A shape has no dimensions or too many.
pub const BAD_SHAPE: Code = Code("PLD-B006");
/// Something is nested deeper, or a size is a longer expression, than is supported.
pub const TOO_DEEP: Code = Code("PLD-B007");
/// An argument of a call is not one of the values that it can have.
pub const BAD_ARGUMENT: Code = Code("PLD-B008");

/// An open block.
#[derive(Clone, Copy, Debug)]
enum Open {
    Entry(Entry),
    Task(Task, Block),
    Manual(Block),
    For(Block),
    Then(Op, Block),
    Else(Block),
    Ranks(Block),
    Added(Block),
}

impl Open {
    fn name(self) -> &'static str {
        match self {
            Open::Entry(_) => "entry",
            Open::Task(..) => "task",
            Open::Manual(_) => "manual",
            Open::For(_) => "for",
            Open::Then(..) | Open::Else(_) => "if",
            Open::Ranks(_) => "ranks",
            Open::Added(_) => "addition",
        }
    }
}

/// Builds a program, op by op.
#[derive(Debug, Default)]
pub struct Builder {
    program: Program,
    open: Vec<(Open, Loc)>,
    loc: Loc,
    mistakes: Vec<Diagnostic>,
    dim_names: HashSet<String>,
    entry_names: HashSet<String>,
    buffer_names: HashSet<String>,
    domain_names: HashSet<String>,
}

impl Builder {
    /// Begins a program.
    pub fn new(name: &str) -> Self {
        let mut builder = Self::default();
        builder.check_label("program", name);
        builder.program.name = name.into();
        builder
    }

    /// The program so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The id of a source file; the same name gives the same id.
    pub fn file(&mut self, name: &str) -> File {
        let known = self.program.files.iter().rev().find(|(_, n)| *n == name);
        known.map(|(file, _)| file).unwrap_or_else(|| self.program.files.push(name.into()))
    }

    /// The location of what is built from now on.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// Number of open blocks.
    pub fn nesting(&self) -> usize {
        self.open.len()
    }

    /// Records a mistake at the present location.
    pub fn mistake(&mut self, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        let loc = self.loc;
        self.mistake_at(loc, code, message, hint);
    }

    fn mistake_at(&mut self, loc: Loc, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.mistakes.push(Diagnostic {
            severity: Severity::Error,
            code,
            file: loc.file.map(|f| self.program.files[f].clone()).unwrap_or_default(),
            line: loc.line,
            column: loc.column,
            message: message.into(),
            snippet: String::new(),
            notes: Vec::new(),
            hint: hint.into(),
        });
    }

    /// The mistakes so far.
    pub fn mistakes(&self) -> &[Diagnostic] {
        &self.mistakes
    }

    /// Ends the program: the program, or every mistake made in building it.
    pub fn finish(mut self) -> Result<Program, Vec<Diagnostic>> {
        for (open, loc) in std::mem::take(&mut self.open).into_iter().rev() {
            let what = open.name();
            self.mistake_at(
                loc,
                UNCLOSED,
                format!("this {what} is not closed"),
                format!("end it with the call that ends a {what}"),
            );
        }
        if self.mistakes.is_empty() { Ok(self.program) } else { Err(self.mistakes) }
    }

    // Names and sizes.

    /// The name of a program, entry or task: these stand apart from values, so a word of the language will do.
    fn check_label(&mut self, what: &str, name: &str) -> bool {
        let mut chars = name.chars();
        let head = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        let shaped = head && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !shaped {
            let hint = "a name is a letter or _, then letters, digits and _";
            self.mistake(BAD_NAME, format!("{name:?} cannot name a {what}"), hint);
        }
        shaped
    }

    fn check_name(&mut self, what: &str, name: &str) {
        if self.check_label(what, name) && (KEYWORDS.contains(&name) || DType::from_name(name).is_some()) {
            self.mistake(BAD_NAME, format!("{name:?} cannot name a {what}: it is a word of the language"), "");
        }
    }

    fn check_rank(&mut self, what: &str, rank: usize) {
        if rank == 0 || rank > MAX_RANK {
            self.mistake(BAD_SHAPE, format!("{what} has {rank} dimensions"), format!("1 to {MAX_RANK} are possible"));
        }
    }

    /// A dimension that is bound at launch.
    pub fn dim(&mut self, name: &str) -> Extent {
        self.named_dim(name, None)
    }

    /// A named constant.
    pub fn constant(&mut self, name: &str, value: Extent) -> Extent {
        self.named_dim(name, Some(value))
    }

    /// An extent of that many parts may become part of another one.
    fn check_nodes(&mut self, nodes: u32) -> bool {
        if nodes >= MAX_NODES {
            let message = format!("this size is an expression of more than {MAX_NODES} parts");
            self.mistake(TOO_DEEP, message, "compute it before, or bind it at launch with dim");
        }
        nodes < MAX_NODES
    }

    fn named_dim(&mut self, name: &str, value: Option<Extent>) -> Extent {
        let value = value.filter(|v| self.check_nodes(self.program.extents.nodes(*v)));
        self.check_name("dimension", name);
        if !self.dim_names.insert(name.into()) {
            self.mistake(BAD_NAME, format!("dimension {name:?} is declared twice"), "");
        }
        let dim = self.program.extents.dims.push(DimData { name: name.into(), value });
        self.program.extents.intern(ExtentData::Dim(dim))
    }

    /// The extent of a number.
    pub fn extent_int(&mut self, value: i64) -> Extent {
        self.program.extents.int(value)
    }

    /// The extent of the world size.
    pub fn extent_world(&mut self) -> Extent {
        self.program.extents.intern(ExtentData::World)
    }

    /// The size that a scalar is; a mistake if it is not constant during a launch.
    pub fn extent(&mut self, scalar: Scalar) -> Option<Extent> {
        let extent = self.program.extent_of(scalar);
        if extent.is_none() {
            let hint = "sizes are made of numbers, the world size and named dimensions";
            self.mistake(NOT_CONSTANT, "this size is not constant during a launch", hint);
        }
        extent
    }

    // Scalars.

    fn scalar(&mut self, ty: ScalarType, def: ScalarDef) -> Scalar {
        self.program.scalars.push(ScalarData { ty, def, name: None })
    }

    /// An extent as a value.
    pub fn size(&mut self, extent: Extent) -> Scalar {
        self.scalar(ScalarType::I64, ScalarDef::Extent(extent))
    }

    /// An integer literal.
    pub fn int(&mut self, value: i64) -> Scalar {
        let extent = self.program.extents.int(value);
        self.size(extent)
    }

    /// A float literal.
    pub fn float(&mut self, value: f32) -> Scalar {
        self.scalar(ScalarType::F32, ScalarDef::Float(value))
    }

    /// `true` or `false`.
    pub fn bool(&mut self, value: bool) -> Scalar {
        self.scalar(ScalarType::Bool, ScalarDef::Bool(value))
    }

    /// The world size as a value.
    pub fn world(&mut self) -> Scalar {
        let extent = self.extent_world();
        self.size(extent)
    }

    /// `a op b`. Arithmetic on sizes gives a size.
    pub fn binary(&mut self, op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
        use BinaryOp::*;
        let sizes = (self.program.extent_of(a), self.program.extent_of(b));
        if let (Some(x), Some(y), Add | Sub | Mul | Div | Rem | Min | Max) = (sizes.0, sizes.1, op) {
            if !self.check_nodes(self.program.extents.nodes(x) + self.program.extents.nodes(y)) {
                return self.int(1);
            }
            let extent = self.program.extents.intern(ExtentData::Binary(op, x, y));
            return self.size(extent);
        }
        let ty = if op.is_comparison() || op.is_logic() { ScalarType::Bool } else { self.program.common_type(a, b) };
        self.expr(ty, Expr::Binary(op, a, b))
    }

    /// `op a`. The negative of an integer literal is a literal.
    pub fn unary(&mut self, op: UnaryOp, a: Scalar) -> Scalar {
        if op == UnaryOp::Neg {
            match self.program.scalars[a].def {
                ScalarDef::Extent(e) => {
                    if let ExtentData::Int(value) = self.program.extents.get(e)
                        && let Some(negative) = value.checked_neg()
                    {
                        return self.int(negative);
                    }
                    let zero = self.int(0);
                    return self.binary(BinaryOp::Sub, zero, a);
                }
                ScalarDef::Float(value) => return self.float(-value),
                _ => {}
            }
        }
        let ty = self.program.scalars[a].ty;
        self.expr(ty, Expr::Unary(op, a))
    }

    /// The value of `a` in another type.
    pub fn cast(&mut self, ty: ScalarType, a: Scalar) -> Scalar {
        self.expr(ty, Expr::Cast(a))
    }

    /// `then` where `cond` holds, else `other`.
    pub fn select(&mut self, cond: Scalar, then: Scalar, other: Scalar) -> Scalar {
        let ty = self.program.common_type(then, other);
        self.expr(ty, Expr::Select { cond, then, other })
    }

    /// This rank's index in the window's domain.
    pub fn rank(&mut self, window: Tensor) -> Scalar {
        self.expr(ScalarType::I32, Expr::Rank(window))
    }

    /// Number of ranks of the window's domain.
    pub fn nranks(&mut self, window: Tensor) -> Scalar {
        self.expr(ScalarType::I32, Expr::NRanks(window))
    }

    fn expr(&mut self, ty: ScalarType, expr: Expr) -> Scalar {
        self.result(ty, |dst| OpKind::Scalar { dst, expr })
    }

    /// Gives a value a name. What is neither an unnamed result nor an unnamed loop index gets an op of its own.
    pub fn name_scalar(&mut self, scalar: Scalar, name: &str) -> Scalar {
        self.check_name("value", name);
        let data = &self.program.scalars[scalar];
        let fresh = data.name.is_none() && matches!(data.def, ScalarDef::Result(_) | ScalarDef::Index(_));
        let named = if fresh { scalar } else { self.expr(data.ty, Expr::Copy(scalar)) };
        self.program.scalars[named].name = Some(name.into());
        named
    }

    /// Names a tile.
    pub fn name_tile(&mut self, tile: Tile, name: &str) {
        self.check_name("tile", name);
        self.program.tiles[tile].name = Some(name.into());
    }

    /// Names a slice or view.
    pub fn name_tensor(&mut self, tensor: Tensor, name: &str) {
        self.check_name("tensor", name);
        self.program.tensors[tensor].name = Some(name.into());
    }

    /// Begins a mutable scalar.
    pub fn var(&mut self, name: Option<&str>, ty: ScalarType, init: Scalar) -> Var {
        self.check_optional_name("variable", name);
        let var = self.program.vars.push(VarData { name: name.map(Into::into), ty });
        self.push(OpKind::VarDef { var, init });
        var
    }

    /// The present value of a mutable scalar.
    pub fn var_get(&mut self, var: Var) -> Scalar {
        self.result(self.program.vars[var].ty, |dst| OpKind::VarGet { dst, var })
    }

    /// Changes a mutable scalar.
    pub fn var_set(&mut self, var: Var, value: Scalar) {
        self.push(OpKind::VarSet { var, value });
    }

    /// Begins a local array.
    pub fn array(&mut self, name: Option<&str>, ty: ScalarType, len: Extent, fill: Scalar) -> Array {
        self.check_optional_name("array", name);
        let array = self.program.arrays.push(ArrayData { name: name.map(Into::into), ty, len });
        self.push(OpKind::ArrayDef { array, fill });
        array
    }

    /// An element of a local array.
    pub fn array_get(&mut self, array: Array, index: Scalar) -> Scalar {
        self.result(self.program.arrays[array].ty, |dst| OpKind::ArrayGet { dst, array, index })
    }

    /// Changes an element of a local array.
    pub fn array_set(&mut self, array: Array, index: Scalar, value: Scalar) {
        self.push(OpKind::ArraySet { array, index, value });
    }

    fn check_optional_name(&mut self, what: &str, name: Option<&str>) {
        if let Some(name) = name {
            self.check_name(what, name);
        }
    }

    // Blocks.

    fn current(&mut self) -> Block {
        match self.open.last() {
            Some(&(Open::Entry(entry), _)) => self.program.entries[entry].body,
            Some(&(
                Open::Task(_, block)
                | Open::Manual(block)
                | Open::For(block)
                | Open::Then(_, block)
                | Open::Else(block)
                | Open::Ranks(block)
                | Open::Added(block),
                _,
            )) => block,
            None => self.host_mut().body,
        }
    }

    fn push(&mut self, kind: OpKind) -> Op {
        let block = self.current();
        let op = self.program.ops.push(OpData { kind, loc: self.loc });
        self.program.blocks[block].push(op);
        op
    }

    fn result(&mut self, ty: ScalarType, kind: impl FnOnce(Scalar) -> OpKind) -> Scalar {
        let dst = self.scalar(ty, ScalarDef::Result(self.program.ops.next_key()));
        self.push(kind(dst));
        dst
    }

    fn block(&mut self) -> Block {
        self.program.blocks.push(Vec::new())
    }

    fn enter(&mut self, open: Open) {
        if self.open.len() == MAX_NESTING {
            let message = format!("this {} is nested deeper than {MAX_NESTING} blocks", open.name());
            self.mistake(TOO_DEEP, message, "");
        }
        self.open.push((open, self.loc));
    }

    fn close(&mut self, what: &str, matches: impl Fn(Open) -> bool) {
        match self.open.last() {
            Some(&(open, _)) if matches(open) => {
                self.open.pop();
            }
            Some(&(open, _)) => {
                let message = format!("this ends a {what}, but the innermost open block is a {}", open.name());
                self.mistake(MISPLACED, message, "close blocks in the reverse order of opening");
            }
            None => self.mistake(MISPLACED, format!("this ends a {what}, but no block is open"), ""),
        }
    }

    fn loop_begin(
        &mut self,
        ty: ScalarType,
        op: impl FnOnce(Scalar, Block) -> OpKind,
        open: fn(Block) -> Open,
    ) -> Scalar {
        let body = self.block();
        // The current block may create the host driver; look it up before the op's number is taken.
        self.current();
        let index = self.scalar(ty, ScalarDef::Index(self.program.ops.next_key()));
        self.push(op(index, body));
        self.enter(open(body));
        index
    }

    /// Begins `for index in first..end step step`.
    pub fn for_begin(&mut self, first: Scalar, end: Scalar, step: Scalar) -> Scalar {
        self.loop_begin(ScalarType::I64, |index, body| OpKind::For { index, first, end, step, body }, Open::For)
    }

    /// Ends a `for`.
    pub fn for_end(&mut self) {
        self.close("for", |o| matches!(o, Open::For(_)));
    }

    /// Begins `if cond`.
    pub fn if_begin(&mut self, cond: Scalar) {
        let then = self.block();
        let op = self.push(OpKind::If { cond, then, other: None });
        self.enter(Open::Then(op, then));
    }

    /// Begins the `else` of the open `if`.
    pub fn else_begin(&mut self) {
        let Some(&(Open::Then(op, _), loc)) = self.open.last() else {
            return self.mistake(MISPLACED, "else without an open if", "");
        };
        let block = self.block();
        if let OpKind::If { other, .. } = &mut self.program.ops[op].kind {
            *other = Some(block);
        }
        self.open.pop();
        self.open.push((Open::Else(block), loc));
    }

    /// Ends an `if`.
    pub fn if_end(&mut self) {
        self.close("if", |o| matches!(o, Open::Then(..) | Open::Else(_)));
    }

    // Entries and tasks.

    /// Begins an entry.
    pub fn entry_begin(&mut self, name: &str) -> Entry {
        self.check_label("entry", name);
        if !self.entry_names.insert(name.into()) {
            self.mistake(BAD_NAME, format!("entry {name:?} is declared twice"), "");
        }
        if let Some(&(open, _)) = self.open.last() {
            self.mistake(MISPLACED, format!("an entry begins inside a {}", open.name()), "entries stand side by side");
        }
        let body = self.block();
        let entry = self.program.entries.push(EntryData { name: name.into(), params: Vec::new(), body, loc: self.loc });
        self.enter(Open::Entry(entry));
        entry
    }

    /// Ends an entry.
    pub fn entry_end(&mut self) {
        self.close("entry", |o| matches!(o, Open::Entry(_)));
    }

    fn entry_for_param(&mut self, name: &str) -> Option<(Entry, u32)> {
        self.check_name("parameter", name);
        if let Some(&(Open::Entry(entry), _)) = self.open.last()
            && self.program.blocks[self.program.entries[entry].body].is_empty()
        {
            return Some((entry, self.program.entries[entry].params.len() as u32));
        }
        self.mistake(
            MISPLACED,
            format!("parameter {name:?} is not at the head of an entry"),
            "parameters come before tasks",
        );
        None
    }

    fn tensor(&mut self, name: Option<&str>, dtype: DType, shape: Shape, def: TensorDef) -> Tensor {
        self.check_rank("a tensor", shape.len());
        let name = name.map(Into::into);
        self.program.tensors.push(TensorData { name, dtype, shape, def, manual: false, loc: self.loc })
    }

    /// A tensor parameter of the open entry.
    pub fn param_tensor(&mut self, name: &str, dtype: DType, shape: Shape, direction: Direction) -> Option<Tensor> {
        let (entry, index) = self.entry_for_param(name)?;
        let tensor = self.tensor(Some(name), dtype, shape, TensorDef::Param(entry, index, direction));
        self.program.entries[entry].params.push(Param::Tensor(tensor));
        Some(tensor)
    }

    /// A window parameter of the open entry.
    pub fn param_window(&mut self, name: &str, dtype: DType, shape: Shape) -> Option<Tensor> {
        let (entry, index) = self.entry_for_param(name)?;
        let tensor = self.tensor(Some(name), dtype, shape, TensorDef::Window(entry, index));
        self.program.entries[entry].params.push(Param::Tensor(tensor));
        Some(tensor)
    }

    /// A scalar parameter of the open entry.
    pub fn param_scalar(&mut self, name: &str, ty: ScalarType) -> Option<Scalar> {
        let (entry, index) = self.entry_for_param(name)?;
        let scalar = self.scalar(ty, ScalarDef::Param(entry, index));
        self.program.scalars[scalar].name = Some(name.into());
        self.program.entries[entry].params.push(Param::Scalar(scalar));
        Some(scalar)
    }

    // InCore.

    /// The part of `src` that begins at `at`, as a tensor of its own.
    pub fn slice(&mut self, src: Tensor, at: &[Scalar], shape: Shape) -> Tensor {
        let at = Dims::from_slice(at);
        let dtype = self.program.tensors[src].dtype;
        let dst = self.tensor(None, dtype, shape, TensorDef::Slice(src, at.clone()));
        self.push(OpKind::Slice { dst, src, at });
        dst
    }

    /// All elements of a packed tensor, in one dimension.
    pub fn flatten(&mut self, src: Tensor) -> Tensor {
        let TensorData { dtype, shape, .. } = self.program.tensors[src].clone();
        let sizes: Vec<Scalar> = shape.into_iter().map(|extent| self.size(extent)).collect();
        let count =
            sizes.into_iter().reduce(|a, b| self.binary(BinaryOp::Mul, a, b)).expect("a tensor has a dimension");
        let count = self.extent(count).expect("a product of sizes is a size");
        let dst = self.tensor(None, dtype, Shape::from_slice(&[count]), TensorDef::Flat(src));
        self.push(OpKind::Flatten { dst, src });
        dst
    }

    /// One element.
    pub fn read(&mut self, src: Tensor, at: &[Scalar]) -> Scalar {
        // Storage-only types have no scalar; the verifier refuses the read.
        let ty = self.program.tensors[src].dtype.scalar().unwrap_or(ScalarType::F32);
        self.result(ty, |dst| OpKind::Read { dst, src, at: Dims::from_slice(at) })
    }

    /// Changes one element.
    pub fn write(&mut self, dst: Tensor, at: &[Scalar], value: Scalar) {
        self.push(OpKind::Write { dst, at: Dims::from_slice(at), value });
    }

    /// A new tile register, which the next op is to define.
    pub fn tile(&mut self, dtype: DType, shape: Shape) -> Tile {
        self.check_rank("a tile", shape.len());
        self.program.tiles.push(TileData { name: None, dtype, shape, loc: self.loc })
    }

    fn tile_like(&mut self, tile: Tile) -> Tile {
        let TileData { dtype, shape, .. } = self.program.tiles[tile].clone();
        self.tile(dtype, shape)
    }

    /// Part of a tensor as a tile.
    pub fn load(&mut self, src: Tensor, at: &[Scalar], shape: Shape) -> Tile {
        let dst = self.tile(self.program.tensors[src].dtype, shape);
        self.push(OpKind::Load { dst, src, at: Dims::from_slice(at) });
        dst
    }

    /// Writes a tile into a tensor.
    pub fn store(&mut self, src: Tile, dst: Tensor, at: &[Scalar]) {
        self.push(OpKind::Store { src, dst, at: Dims::from_slice(at) });
    }

    /// A tile of one value.
    pub fn full(&mut self, dtype: DType, shape: Shape, value: Scalar) -> Tile {
        let dst = self.tile(dtype, shape);
        self.push(OpKind::Full { dst, value });
        dst
    }

    /// A copy of a tile.
    pub fn copy(&mut self, src: Tile) -> Tile {
        let dst = self.tile_like(src);
        self.push(OpKind::Copy { dst, src });
        dst
    }

    /// A tile in another element type.
    pub fn tile_cast(&mut self, dtype: DType, src: Tile) -> Tile {
        let shape = self.program.tiles[src].shape.clone();
        let dst = self.tile(dtype, shape);
        self.push(OpKind::Cast { dst, src });
        dst
    }

    /// `op a, b`, elementwise.
    pub fn tile_op(&mut self, op: TileOp, a: Tile, b: TileOrScalar) -> Tile {
        let dst = self.tile_like(a);
        self.push(OpKind::Tile { op, dst, a, b });
        dst
    }

    /// The reduction of a tile along an axis.
    pub fn reduce(&mut self, op: ReduceOp, axis: ReduceAxis, src: Tile) -> Tile {
        let TileData { dtype, mut shape, .. } = self.program.tiles[src].clone();
        let one = self.program.extents.int(1);
        let reduced = match axis {
            ReduceAxis::Row => shape.last_mut(),
            ReduceAxis::Col => shape.first_mut(),
        };
        if let Some(extent) = reduced {
            *extent = one;
        }
        let dst = self.tile(dtype, shape);
        self.push(OpKind::Reduce { op, axis, dst, src });
        dst
    }

    /// `dst = value`: the op that has just made `value` writes `dst` instead; otherwise a copy.
    pub fn assign(&mut self, dst: Tile, value: Tile) {
        let block = self.current();
        let (a, b) = (&self.program.tiles[dst], &self.program.tiles[value]);
        let alike = a.dtype == b.dtype
            && a.shape.len() == b.shape.len()
            && a.shape.iter().zip(&b.shape).all(|(x, y)| self.program.extents.same(*x, *y));
        let last = self.program.blocks[block].last().copied();
        if dst != value
            && alike
            && self.program.tiles[value].name.is_none()
            && let Some(op) = last
            && let OpKind::Load { dst: made, .. }
            | OpKind::Full { dst: made, .. }
            | OpKind::Copy { dst: made, .. }
            | OpKind::Cast { dst: made, .. }
            | OpKind::Tile { dst: made, .. }
            | OpKind::Reduce { dst: made, .. }
            | OpKind::RemoteLoad { dst: made, .. } = &mut self.program.ops[op].kind
            && *made == value
        {
            *made = dst;
            return;
        }
        self.push(OpKind::Copy { dst, src: value });
    }

    /// Moves data into a peer's window.
    pub fn put(
        &mut self,
        dst: Tensor,
        peer: Scalar,
        src: Tensor,
        region: Option<Region>,
        atomic: Atomic,
        staging: Staging,
    ) {
        self.push(OpKind::Put { dst, peer, src, region, atomic, staging });
    }

    /// Moves data out of a peer's window.
    pub fn get(&mut self, dst: Tensor, peer: Scalar, src: Tensor, region: Option<Region>, staging: Staging) {
        self.push(OpKind::Get { dst, src, peer, region, staging });
    }

    /// Combines the windows of several ranks.
    pub fn get_reduce(&mut self, op: Combine, dst: Tensor, peers: PeerRange, src: Tensor, region: Option<Region>) {
        self.push(OpKind::GetReduce { op, dst, src, peers, region });
    }

    /// Ends the launch unless `a cmp b`; `peer` is the rank that it is about.
    pub fn require(&mut self, cmp: BinaryOp, a: Scalar, b: Scalar, peer: Option<Scalar>) {
        self.push(OpKind::Require { cmp, a, b, peer });
    }

    /// Ends the launch unless what `peer` says it does is what this rank does.
    pub fn agree(&mut self, label: &str, theirs: Scalar, mine: Scalar, peer: Scalar) {
        self.check_label("call", label);
        self.push(OpKind::Agree { label: label.into(), theirs, mine, peer });
    }

    /// An exchange of all ranks of a domain.
    pub fn collective(&mut self, collective: Collective) {
        self.push(OpKind::Collective(Box::new(collective)));
    }

    /// Part of a peer's window as a tile.
    pub fn remote_load(&mut self, src: Tensor, peer: Scalar, at: &[Scalar], shape: Shape) -> Tile {
        let dst = self.tile(self.program.tensors[src].dtype, shape);
        self.push(OpKind::RemoteLoad { dst, src, peer, at: Dims::from_slice(at) });
        dst
    }

    /// Writes a tile into a peer's window.
    pub fn remote_store(&mut self, src: Tile, dst: Tensor, peer: Scalar, at: &[Scalar], atomic: Atomic) {
        self.push(OpKind::RemoteStore { src, dst, peer, at: Dims::from_slice(at), atomic });
    }

    /// Changes a signal cell of a peer.
    pub fn notify(&mut self, window: Tensor, peer: Scalar, at: &[Scalar], value: Scalar, op: NotifyOp) {
        self.push(OpKind::Notify { window, peer, at: Dims::from_slice(at), value, op });
    }

    /// Blocks until a signal cell of this rank compares.
    pub fn wait(&mut self, window: Tensor, at: &[Scalar], expected: Scalar, cmp: WaitCmp) {
        self.push(OpKind::Wait { window, at: Dims::from_slice(at), expected, cmp });
    }

    /// Lets the task end only when a signal cell of this rank is `expected` or more.
    pub fn defer_wait(&mut self, window: Tensor, at: &[Scalar], expected: Scalar) {
        self.push(OpKind::DeferWait { window, at: Dims::from_slice(at), expected });
    }
}
