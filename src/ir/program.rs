//! A program's storage.

use cranelift_entity::PrimaryMap;

use super::entity::*;
use super::extent::{ExtentData, Extents, Known, Shape};
use super::op::{Dims, Expr, OpKind};
use super::types::{DType, Direction, ScalarType};

/// Where in the user's source something was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loc {
    /// The file, if known.
    pub file: Option<File>,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// An op and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct OpData {
    /// What it does.
    pub kind: OpKind,
    /// Where it was written.
    pub loc: Loc,
}

/// A scalar value.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarData {
    /// Its type.
    pub ty: ScalarType,
    /// What defines it.
    pub def: ScalarDef,
    /// Its name, if it has one.
    pub name: Option<String>,
}

/// What defines a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalarDef {
    /// A size or an integer literal; type `i64`, and a literal adapts to the integer or float type that is needed.
    Extent(Extent),
    /// A float literal.
    Float(f32),
    /// `true` or `false`.
    Bool(bool),
    /// A parameter of an entry.
    Param(Entry, u32),
    /// A parameter of the host driver.
    HostParam(u32),
    /// The index of a `for` or `ranks` loop, or of a block of a grid.
    Index(Op),
    /// The result of an op.
    Result(Op),
}

/// A tensor: shape, element type, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorData {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; row-major.
    pub shape: Shape,
    /// Where it comes from.
    pub def: TensorDef,
    /// Accesses order no tasks; for a parameter.
    pub manual: bool,
    /// Where it was written.
    pub loc: Loc,
}

/// Where a tensor comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorDef {
    /// A tensor parameter of an entry: memory of this rank only.
    Param(Entry, u32, Direction),
    /// A window parameter of an entry: symmetric memory.
    Window(Entry, u32),
    /// Part of another tensor of the same entry.
    Slice(Tensor, Dims),
    /// All elements of another tensor of the same entry, in one dimension.
    Flat(Tensor),
    /// A tensor parameter of the host driver.
    HostParam(u32, Direction),
    /// A typed view of a buffer, in the host driver.
    View(Buffer),
    /// One rank's part of a host tensor.
    HostSlice(Tensor, Scalar),
}

/// A tile register.
#[derive(Clone, Debug, PartialEq)]
pub struct TileData {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Element type.
    pub dtype: DType,
    /// Extents: known once the world is.
    pub shape: Shape,
    /// Where it was written.
    pub loc: Loc,
}

/// A mutable scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct VarData {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: ScalarType,
}

/// A local array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayData {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Element type.
    pub ty: ScalarType,
    /// Number of elements: known once the world is.
    pub len: Extent,
}

/// A symmetric window buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferData {
    /// Its name, unique in the program.
    pub name: String,
    /// How large it is.
    pub size: BufferSize,
    /// The domain whose ranks share it; without one it follows from the dispatches.
    pub domain: Option<Domain>,
    /// Where it was written.
    pub loc: Loc,
}

/// How large a buffer is: the two forms of allocation.
#[derive(Clone, Debug, PartialEq)]
pub enum BufferSize {
    /// A shape of elements.
    Shape(DType, Shape),
    /// A number of bytes.
    Bytes(Extent),
}

/// A comm domain: ranks that share windows, and number each other 0, 1, ... in the order given here.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainData {
    /// Its name, unique in the program.
    pub name: String,
    /// Its ranks.
    pub ranks: DomainRanks,
    /// Where it was written.
    pub loc: Loc,
}

/// The ranks of a domain: the two forms of declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainRanks {
    /// From the first up to, but without, the second.
    Range(Extent, Extent),
    /// One by one.
    List(Vec<Extent>),
}

/// A parameter of an entry or of the host driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// A tensor, or in an entry a window.
    Tensor(Tensor),
    /// A scalar.
    Scalar(Scalar),
}

/// Per-rank code.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryData {
    /// Its name, unique in the program.
    pub name: String,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Its tasks.
    pub body: Block,
    /// Where it was written.
    pub loc: Loc,
}

/// A task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskData {
    /// Its name.
    pub name: String,
    /// What the text calls its id, for later tasks to depend on.
    pub id: Option<String>,
    /// Where it was written.
    pub loc: Loc,
}

/// The host driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Parameters, in order; a launch's arguments.
    pub params: Vec<Param>,
    /// Allocations, rank loops, dispatches.
    pub body: Block,
    /// Where it was written.
    pub loc: Loc,
}

/// A whole program. Made by [`super::Builder`]; read by everybody else.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Sizes and named dimensions.
    pub extents: Extents,
    /// Scalar values.
    pub scalars: PrimaryMap<Scalar, ScalarData>,
    /// Tensors.
    pub tensors: PrimaryMap<Tensor, TensorData>,
    /// Tile registers.
    pub tiles: PrimaryMap<Tile, TileData>,
    /// Mutable scalars.
    pub vars: PrimaryMap<Var, VarData>,
    /// Local arrays.
    pub arrays: PrimaryMap<Array, ArrayData>,
    /// Comm domains that have a name.
    pub domains: PrimaryMap<Domain, DomainData>,
    /// Window buffers.
    pub buffers: PrimaryMap<Buffer, BufferData>,
    /// Entries, in source order.
    pub entries: PrimaryMap<Entry, EntryData>,
    /// Tasks.
    pub tasks: PrimaryMap<Task, TaskData>,
    /// Lists of ops.
    pub blocks: PrimaryMap<Block, Vec<Op>>,
    /// Ops.
    pub ops: PrimaryMap<Op, OpData>,
    /// The host driver; a finished program has one.
    pub host: Option<Host>,
    /// Names of source files.
    pub files: PrimaryMap<File, String>,
}

impl Program {
    /// The tensor that a chain of slices is part of.
    pub fn root(&self, mut tensor: Tensor) -> Tensor {
        while let TensorDef::Slice(src, _) | TensorDef::Flat(src) | TensorDef::HostSlice(src, _) =
            &self.tensors[tensor].def
        {
            tensor = *src;
        }
        tensor
    }

    /// The packed tensor whose shape says how far the elements of a tensor lie apart: itself, or what it is a slice of.
    pub fn packed(&self, mut tensor: Tensor) -> Tensor {
        while let TensorDef::Slice(src, _) | TensorDef::HostSlice(src, _) = &self.tensors[tensor].def {
            tensor = *src;
        }
        tensor
    }

    /// The elements of a tensor follow one another in memory.
    pub fn is_packed(&self, tensor: Tensor) -> bool {
        let (shape, whole) = (&self.tensors[tensor].shape, &self.tensors[self.packed(tensor)].shape);
        // Behind the first dimension that is not a single index, everything is there.
        let one = |extent: Extent| self.extents.constant(extent) == Some(1);
        let first = shape.iter().position(|&extent| !one(extent)).unwrap_or(shape.len());
        shape.len() != whole.len()
            || shape.iter().zip(whole).skip(first + 1).all(|(&part, &all)| self.extents.same(part, all))
    }

    /// A tensor is another one, or part of it.
    pub fn is_part(&self, mut tensor: Tensor, whole: Tensor) -> bool {
        while let TensorDef::Slice(src, _) | TensorDef::Flat(src) | TensorDef::HostSlice(src, _) =
            self.tensors[tensor].def
            && tensor != whole
        {
            tensor = src;
        }
        tensor == whole
    }

    /// A host tensor is given in parts: some op takes one rank's part of it.
    pub fn is_sliced(&self, tensor: Tensor) -> bool {
        self.ops.values().any(|op| matches!(op.kind, OpKind::SliceRank { src, .. } if src == tensor))
    }

    /// The tensor is symmetric memory: a window, or part of one.
    pub fn is_window(&self, tensor: Tensor) -> bool {
        matches!(self.tensors[self.root(tensor)].def, TensorDef::Window(..) | TensorDef::View(_))
    }

    /// The literal or size that a scalar is, if it is one.
    pub fn extent_of(&self, scalar: Scalar) -> Option<Extent> {
        match self.scalars[scalar].def {
            ScalarDef::Extent(e) => Some(e),
            _ => None,
        }
    }

    /// The value that a chain of copies names.
    pub fn original(&self, mut scalar: Scalar) -> Scalar {
        while let ScalarDef::Result(op) = self.scalars[scalar].def
            && let OpKind::Scalar { expr: Expr::Copy(value), .. } = self.ops[op].kind
        {
            scalar = value;
        }
        scalar
    }

    /// The window that a value was read from.
    pub fn window_of(&self, scalar: Scalar) -> Option<Tensor> {
        match self.scalars[self.original(scalar)].def {
            ScalarDef::Result(op) => match self.ops[op].kind {
                OpKind::Read { src, .. } => self.is_window(src).then_some(src),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of an integer scalar with what is known, without running anything.
    pub fn int_value(&self, scalar: Scalar, known: Known) -> Option<i64> {
        self.extent_of(scalar).and_then(|e| self.extents.eval(e, known))
    }

    /// The scalar is an integer literal of the program text, which adapts to the type that is needed.
    pub fn is_int_literal(&self, scalar: Scalar) -> bool {
        self.extent_of(scalar).is_some_and(|e| matches!(self.extents.get(e), ExtentData::Int(_)))
    }

    /// The type that two operands have in common: literals adapt, `i32` widens to `i64`.
    pub fn common_type(&self, a: Scalar, b: Scalar) -> ScalarType {
        let (ta, tb) = (self.scalars[a].ty, self.scalars[b].ty);
        let (la, lb) = (self.is_int_literal(a), self.is_int_literal(b));
        match (ta, tb) {
            _ if la && !lb => tb,
            _ if lb && !la => ta,
            (ScalarType::I64, ScalarType::I32) => ScalarType::I64,
            (ScalarType::I32, t) if t.is_int() => t,
            _ => ta,
        }
    }

    /// Calls `visit` with every op of a block and of the blocks inside, in source order.
    pub fn walk(&self, block: Block, visit: &mut impl FnMut(Op)) {
        for &op in &self.blocks[block] {
            visit(op);
            for inner in self.ops[op].kind.blocks() {
                self.walk(inner, visit);
            }
        }
    }

    /// `file:line` of a location, or an empty string.
    pub fn place(&self, loc: Loc) -> String {
        match loc.file {
            Some(file) if loc.line > 0 => format!("{}:{}", self.files[file], loc.line),
            Some(file) => self.files[file].clone(),
            None => String::new(),
        }
    }
}
