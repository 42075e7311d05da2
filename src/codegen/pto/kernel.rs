//! The statements of a kernel, as data: what is lowered, fenced, checked and written.

use cranelift_entity::{PrimaryMap, entity_impl};
use smallvec::{SmallVec, smallvec};

use crate::ir::{DType, FaultKind, NotifyOp, Tensor, WaitCmp};

/// A place in the unified buffer (UB), the on-chip memory of a vector core.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u32);
entity_impl!(Slot, "slot");

/// What a place in UB is for. Slots may share bytes when nothing needs both at once.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotData {
    /// Name of the tile.
    pub name: String,
    /// Element type of the tile.
    pub dtype: DType,
    /// Rows of the tile.
    pub rows: i64,
    /// Columns, rounded up so that a row is whole blocks of 32 bytes.
    pub cols: i64,
    /// First byte in UB.
    pub offset: i64,
}

impl SlotData {
    /// How many bytes the slot takes.
    pub fn bytes(&self) -> i64 {
        self.rows * self.cols * self.dtype.size()
    }
}

/// The body of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// Its tiles.
    pub slots: PrimaryMap<Slot, SlotData>,
    /// What it does.
    pub code: Block,
}

/// Statements, one after the other.
pub type Block = Vec<Stmt>;

/// An expression over scalars, as C++ text: it touches neither memory nor tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// The text.
    pub text: String,
    /// It needs no parentheses as an operand.
    pub is_operand: bool,
}

/// Type of a scalar in C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `int32_t`
    I32,
    /// `int64_t`
    I64,
    /// `float`
    F32,
    /// `bool`
    Bool,
}

/// The memory behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The parameter of the entry that it belongs to: of those that may be the same memory, the first.
    pub root: Tensor,
    /// It may be another rank's.
    pub remote: bool,
}

/// One element in global memory, which the scalar unit reads or writes through its cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Whose it is.
    pub memory: Memory,
    /// Element type.
    pub dtype: DType,
    /// A pointer to elements.
    pub base: Expr,
    /// Which of them it is.
    pub index: Expr,
}

impl Element {
    /// Its address.
    pub fn address(&self) -> Expr {
        match self.index.as_number() {
            Some(0) => self.base.clone(),
            _ => Expr::compound(format!("{} + {}", self.base.text, self.index.text)),
        }
    }
}

/// A region of global memory that has been given a name: a `GlobalTensor`.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Name of the variable.
    pub name: String,
    /// What it is a region of.
    pub memory: Memory,
}

/// A tile that has been given a name.
#[derive(Clone, Debug, PartialEq)]
pub struct TileName {
    /// Name of the variable.
    pub name: String,
    /// Where it lies. A tile may be part of its slot.
    pub slot: Slot,
}

/// An operand of an instruction behind its destination.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A tile that is read.
    Tile(TileName),
    /// A tile that the instruction uses for its own purposes: written and read.
    Scratch(TileName),
    /// A scalar, or a constant of the instruction set.
    Value(Expr),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the line above each statement names its parts")]
pub enum Stmt {
    /// The op of the program that the next statements come from, and its place.
    Op {
        /// As program text.
        text: String,
        /// `file:line`; may be empty.
        place: String,
    },

    // Scalars: nothing but registers and the stack.
    /// `const TYPE name = value;`, without `const` for a variable.
    Scalar { name: String, ty: Type, value: Expr, is_const: bool },
    /// `place = value;`, where the place is a variable or an element of a local array.
    Assign { place: Expr, value: Expr },
    /// A local array, every element `fill`.
    Array { name: String, ty: Type, len: i64, fill: Expr },

    // Control flow.
    /// `if (cond) { then } else { other }`.
    If { cond: Expr, then: Block, other: Block },
    /// `for (int64_t index = first; index < end; advance) { body }`.
    For { index: String, first: Expr, end: Expr, advance: Expr, body: Block },
    /// Ends the kernel.
    Return,
    /// Ends the kernel if another block or rank has failed, or the host has given up.
    ReturnIfStopped,
    /// Reports a mistake, stops the rank, and ends the kernel.
    Fault { kind: FaultKind, site: u32, dim: u32, operand: u32, offsets: Vec<Expr>, extents: Vec<Expr> },

    // Names for regions and tiles: no effect.
    /// Declares a view: a region of five dimensions, with its address.
    View { view: View, dtype: DType, address: Expr, shape: Box<[Expr; 5]>, strides: Box<[Expr; 5]> },
    /// Declares a tile whose valid part is `rows` x `cols`, `offset` bytes behind the slot's begin. The valid part of one
    /// that is `resized` changes while it is used.
    Tile { tile: TileName, dtype: DType, rows: Expr, cols: Expr, offset: Expr, resized: bool },

    // Global memory by the scalar unit, which only reads: it would write back whole lines.
    /// `const TYPE name = element;`
    Read { name: String, ty: Type, from: Element },

    // Tiles.
    /// TLOAD: from global memory into a tile.
    Load { tile: TileName, from: View },
    /// TSTORE: from a tile into global memory; `add` adds each element atomically.
    Store { to: View, tile: TileName, add: bool },
    /// What is computed with tiles: `NAME(dst, operands...)`, by the vector unit, or by the scalar unit (`unit` is V or
    /// S). Some tell whether they came upon a division by zero: `const bool flag = NAME(dst, operands...)`.
    Compute { instruction: &'static str, unit: Pipe, dst: TileName, operands: Vec<Operand>, flag: Option<String> },

    // Other ranks.
    /// TPUT: through one tile or two into a peer's memory; `add` adds each element atomically.
    Put { to: View, from: View, staging: Vec<TileName>, add: bool },
    /// TGET: through one tile or two out of a peer's memory.
    Get { to: View, from: View, staging: Vec<TileName> },
    /// TNOTIFY: changes a signal cell.
    Notify { cell: Element, value: Expr, op: NotifyOp },
    /// TWAIT: blocks until a cell compares; ends the kernel if the rank is stopped, in checked code.
    Wait { cell: Element, expected: Expr, cmp: WaitCmp, site: u32 },

    /// A fence.
    Fence(Fence),
}

impl Stmt {
    /// The blocks in it, as they stand.
    pub fn blocks(&self) -> SmallVec<[&Block; 2]> {
        match self {
            Stmt::If { then, other, .. } => smallvec![then, other],
            Stmt::For { body, .. } => smallvec![body],
            _ => SmallVec::new(),
        }
    }

    /// The blocks in it, as they stand, to be changed.
    pub fn blocks_mut(&mut self) -> SmallVec<[&mut Block; 2]> {
        match self {
            Stmt::If { then, other, .. } => smallvec![then, other],
            Stmt::For { body, .. } => smallvec![body],
            _ => SmallVec::new(),
        }
    }
}

/// What makes something that one unit did visible to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the line above each fence names its parts")]
pub enum Fence {
    /// `pipe_barrier(pipe)`: what is behind waits for what the pipe has before it.
    Barrier(Pipe),
    /// `set_flag` and `wait_flag`: what is behind on `to` waits for what `from` has before it.
    Order { from: Pipe, to: Pipe },
    /// `dcci` of the scalar unit's whole cache: written back, and no longer there.
    InvalidateCache,
    /// `dsb`: what was written back is in memory.
    Drain,
}

/// The units of a vector core that run beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pipe {
    /// Scalars.
    S,
    /// Vector instructions.
    V,
    /// Global memory to UB.
    Mte2,
    /// UB to global memory.
    Mte3,
    /// All of them.
    All,
}
