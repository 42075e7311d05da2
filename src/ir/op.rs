//! The ops.

use smallvec::SmallVec;

use super::collective::Collective;
use super::entity::{Array, Block, Buffer, Domain, Entry, Scalar, Task, Tensor, Tile, Var};
use super::types::{Atomic, BinaryOp, Combine, Direction, NotifyOp, ReduceAxis, ReduceOp, TileOp, UnaryOp, WaitCmp};

/// Most deferred waits of one task.
pub const MAX_CONDITIONS: i64 = 64;

/// Most tasks of a rank that have deferred waits pending at once.
pub const MAX_WAITERS: i64 = 64;

/// Offsets, or extents known only when the op runs; one a dimension.
pub type Dims = SmallVec<[Scalar; 4]>;

/// How a scalar is computed from others, without side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `op a`.
    Unary(UnaryOp, Scalar),
    /// `a op b`.
    Binary(BinaryOp, Scalar, Scalar),
    /// The value in the type of the result: integers wrap, floats truncate toward zero and saturate.
    Cast(Scalar),
    /// `then` where the condition holds, else `other`; both are evaluated.
    Select {
        /// The condition, a bool.
        cond: Scalar,
        /// The value if it holds.
        then: Scalar,
        /// The value if not.
        other: Scalar,
    },
    /// This rank's index in the window's domain.
    Rank(Tensor),
    /// Number of ranks of the window's domain.
    NRanks(Tensor),
    /// A second name for a value.
    Copy(Scalar),
}

/// A tile or a scalar, as second operand of a tile op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileOrScalar {
    /// Elementwise.
    Tile(Tile),
    /// The same value for every element.
    Scalar(Scalar),
}

/// The part of two tensors that a transfer moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Where it begins in the destination.
    pub dst: Dims,
    /// Where it begins in the source.
    pub src: Dims,
    /// Its extents.
    pub shape: Dims,
}

/// Ranks of a domain, from the first up to but without the end: at least one and at most all, counted on from rank 0
/// behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRange {
    /// A rank.
    pub first: Scalar,
    /// The first one plus their number.
    pub end: Scalar,
}

/// How a transfer is staged on targets that move it through on-chip memory; never changes the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staging {
    /// Rows of a chunk; 0 for all.
    pub chunk_rows: i64,
    /// Columns of a chunk; 0 for all.
    pub chunk_cols: i64,
    /// Two chunks in flight; needs both sizes.
    pub pipeline: bool,
}

/// Argument of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// For a tensor or window parameter.
    Tensor(Tensor),
    /// For a scalar parameter.
    Scalar(Scalar),
}

/// The blocks of a task that is a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// How many.
    pub blocks: Scalar,
    /// Which one it is, inside: 0 to `blocks - 1`.
    pub index: Scalar,
}

/// What a task may be told besides its body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskOptions {
    /// Tasks that come first, whatever they touch.
    pub deps: Vec<Task>,
    /// Tensors whose accesses by this task order nothing.
    pub no_dep: Vec<Tensor>,
    /// Retires the task without running it unless it holds.
    pub predicate: Option<Predicate>,
    /// A hint to targets that stage tasks ahead; never changes a result.
    pub allow_early_resolve: bool,
}

/// A comparison of one element with a number, made when the task could begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// An integer tensor.
    pub tensor: Tensor,
    /// The element.
    pub at: Dims,
    /// A comparison.
    pub cmp: BinaryOp,
    /// What it is compared with.
    pub value: i64,
}

/// Argument of the engine's own function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackArg {
    /// Memory, and what the function does with it.
    Tensor(Tensor, Direction),
    /// A value.
    Scalar(Scalar),
}

impl CallbackArg {
    /// The value, if it is one.
    pub fn scalar(&self) -> Option<Scalar> {
        match *self {
            CallbackArg::Scalar(scalar) => Some(scalar),
            CallbackArg::Tensor(..) => None,
        }
    }
}

/// What an op does. Its effects on memory are in [`super::effects`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the line above each op names its operands")]
pub enum OpKind {
    // Scalars and control flow: anywhere.
    /// `dst = expr`.
    Scalar { dst: Scalar, expr: Expr },
    /// Begins a mutable scalar: `var = var type = init`.
    VarDef { var: Var, init: Scalar },
    /// `dst = var`.
    VarGet { dst: Scalar, var: Var },
    /// `var = value`.
    VarSet { var: Var, value: Scalar },
    /// Begins a local array, every element `fill`.
    ArrayDef { array: Array, fill: Scalar },
    /// `dst = array[index]`.
    ArrayGet { dst: Scalar, array: Array, index: Scalar },
    /// `array[index] = value`.
    ArraySet { array: Array, index: Scalar, value: Scalar },
    /// Runs `body` with `index` = first, first + step, … while below `end`.
    For { index: Scalar, first: Scalar, end: Scalar, step: Scalar, body: Block },
    /// Runs `then` or `other`.
    If { cond: Scalar, then: Block, other: Option<Block> },

    // Entry: the task graph.
    /// One InCore scope, or a grid of them.
    Task { task: Task, grid: Option<Grid>, options: Box<TaskOptions>, body: Block },
    /// A task that is the engine's own function; its name is the task's.
    Extern { task: Task, blocks: Option<Scalar>, args: Vec<CallbackArg>, options: Box<TaskOptions> },
    /// Tasks in `body` wait for their `deps` only.
    Manual { body: Block },
    /// All elements of a packed tensor, in one dimension.
    Flatten { dst: Tensor, src: Tensor },
    /// A view of part of a tensor.
    Slice { dst: Tensor, src: Tensor, at: Dims },

    // InCore: elements.
    /// `dst = src[at]`.
    Read { dst: Scalar, src: Tensor, at: Dims },
    /// `dst[at] = value`.
    Write { dst: Tensor, at: Dims, value: Scalar },

    // InCore: tiles.
    /// `dst = load src[at] [shape of dst]`.
    Load { dst: Tile, src: Tensor, at: Dims },
    /// `store src -> dst[at]`.
    Store { src: Tile, dst: Tensor, at: Dims },
    /// Every element of `dst` becomes `value`.
    Full { dst: Tile, value: Scalar },
    /// `dst = src`.
    Copy { dst: Tile, src: Tile },
    /// `dst = src`, converted to the element type of `dst`.
    Cast { dst: Tile, src: Tile },
    /// `dst = op a, b`.
    Tile { op: TileOp, dst: Tile, a: Tile, b: TileOrScalar },
    /// `dst = op of src along axis`.
    Reduce { op: ReduceOp, axis: ReduceAxis, dst: Tile, src: Tile },

    // InCore: what must hold.
    /// Ends the launch on every rank unless `a cmp b`; `peer` is the rank that it is about.
    Require { cmp: BinaryOp, a: Scalar, b: Scalar, peer: Option<Scalar> },
    /// Ends the launch on every rank unless `theirs`, which `peer` has sent, is `mine`: the number of what this rank
    /// does, which `label` names.
    Agree { label: String, theirs: Scalar, mine: Scalar, peer: Scalar },

    // InCore: other ranks.
    /// Moves `src` of this rank into the window `dst` of `peer`.
    Put { dst: Tensor, peer: Scalar, src: Tensor, region: Option<Region>, atomic: Atomic, staging: Staging },
    /// Moves the window `src` of `peer` into `dst` of this rank.
    Get { dst: Tensor, src: Tensor, peer: Scalar, region: Option<Region>, staging: Staging },
    /// `dst = src[at]` of `peer`.
    RemoteLoad { dst: Tile, src: Tensor, peer: Scalar, at: Dims },
    /// `dst` becomes the combination of the window `src` of the ranks `peers`, in their order; `dst` may be `src` of this
    /// rank.
    GetReduce { op: Combine, dst: Tensor, src: Tensor, peers: PeerRange, region: Option<Region> },
    /// `src -> dst[at]` of `peer`.
    RemoteStore { src: Tile, dst: Tensor, peer: Scalar, at: Dims, atomic: Atomic },
    /// Changes the signal cell `window[at]` of `peer`; publishes all that the task wrote before.
    Notify { window: Tensor, peer: Scalar, at: Dims, value: Scalar, op: NotifyOp },
    /// Blocks until this rank's cell `window[at]` compares; acquires what the notifier published.
    Wait { window: Tensor, at: Dims, expected: Scalar, cmp: WaitCmp },
    /// Ends the task only when this rank's cell `window[at]` is `expected` or more; blocks nobody.
    DeferWait { window: Tensor, at: Dims, expected: Scalar },

    // InCore or host driver.
    /// An exchange of all ranks of a domain.
    Collective(Box<Collective>),

    // Host driver.
    /// Names ranks that share windows.
    Domain { domain: Domain },
    /// Reserves a symmetric buffer.
    AllocWindow { buffer: Buffer },
    /// Types a buffer.
    Window { dst: Tensor, buffer: Buffer },
    /// Runs `body` for each rank index in [first, end).
    Ranks { index: Scalar, first: Scalar, end: Scalar, body: Block },
    /// `dst = src[rank]`, without the leading axis.
    SliceRank { dst: Tensor, src: Tensor, rank: Scalar },
    /// Runs an entry on a rank.
    Dispatch { entry: Entry, args: Vec<Operand>, device: Scalar },
    /// The engine's own function on the host, when the ranks of this process have done their part.
    HostTask { name: String, args: Vec<CallbackArg> },
}

impl OpKind {
    /// The name that messages use; the verb in program text where it has one.
    pub fn name(&self) -> &'static str {
        match self {
            OpKind::Scalar { expr: Expr::Rank(_), .. } => "rank",
            OpKind::Scalar { expr: Expr::NRanks(_), .. } => "nranks",
            OpKind::Scalar { .. } => "scalar",
            OpKind::VarDef { .. } | OpKind::VarGet { .. } | OpKind::VarSet { .. } => "var",
            OpKind::ArrayDef { .. } | OpKind::ArrayGet { .. } | OpKind::ArraySet { .. } => "array",
            OpKind::For { .. } => "for",
            OpKind::If { .. } => "if",
            OpKind::Task { grid: None, .. } => "at",
            OpKind::Task { grid: Some(_), .. } => "spmd",
            OpKind::Extern { .. } => "extern",
            OpKind::Manual { .. } => "manual",
            OpKind::Slice { .. } => "slice",
            OpKind::Read { .. } => "read",
            OpKind::Write { .. } => "write",
            OpKind::Load { .. } => "load",
            OpKind::Store { .. } => "store",
            OpKind::Full { .. } => "full",
            OpKind::Copy { .. } => "copy",
            OpKind::Cast { .. } => "cast",
            OpKind::Tile { op, .. } => op.name(),
            OpKind::Reduce { op: ReduceOp::Sum, axis: ReduceAxis::Row, .. } => "row_sum",
            OpKind::Reduce { op: ReduceOp::Max, axis: ReduceAxis::Row, .. } => "row_max",
            OpKind::Reduce { op: ReduceOp::Sum, axis: ReduceAxis::Col, .. } => "col_sum",
            OpKind::Reduce { op: ReduceOp::Max, axis: ReduceAxis::Col, .. } => "col_max",
            OpKind::Put { .. } => "put",
            OpKind::Get { .. } => "get",
            OpKind::GetReduce { op: Combine::Sum, .. } => "get_sum",
            OpKind::GetReduce { op: Combine::Prod, .. } => "get_prod",
            OpKind::GetReduce { op: Combine::Max, .. } => "get_max",
            OpKind::GetReduce { op: Combine::Min, .. } => "get_min",
            OpKind::Require { .. } => "require",
            OpKind::Agree { .. } => "agree",
            OpKind::Flatten { .. } => "flatten",
            OpKind::Collective(collective) => collective.name(),
            OpKind::RemoteLoad { .. } => "remote_load",
            OpKind::RemoteStore { .. } => "remote_store",
            OpKind::Notify { .. } => "notify",
            OpKind::Wait { .. } => "wait",
            OpKind::DeferWait { .. } => "defer_wait",
            OpKind::Domain { .. } => "domain",
            OpKind::AllocWindow { .. } => "alloc_window",
            OpKind::Window { .. } => "window",
            OpKind::Ranks { .. } => "ranks",
            OpKind::SliceRank { .. } => "slice_rank",
            OpKind::Dispatch { .. } => "dispatch",
            OpKind::HostTask { .. } => "host_task",
        }
    }

    /// The blocks that the op owns, in order of execution.
    pub fn blocks(&self) -> SmallVec<[Block; 2]> {
        match *self {
            OpKind::For { body, .. }
            | OpKind::Task { body, .. }
            | OpKind::Manual { body }
            | OpKind::Ranks { body, .. } => smallvec::smallvec![body],
            OpKind::If { then, other, .. } => std::iter::once(then).chain(other).collect(),
            _ => SmallVec::new(),
        }
    }

    /// Calls `visit` with every scalar that the op uses, in the order in which the text shows them.
    pub fn for_each_scalar(&self, mut visit: impl FnMut(Scalar)) {
        let mut all = |dims: &[Scalar]| dims.iter().copied().for_each(&mut visit);
        match self {
            OpKind::Scalar { expr, .. } => match *expr {
                Expr::Unary(_, a) | Expr::Cast(a) | Expr::Copy(a) => all(&[a]),
                Expr::Binary(_, a, b) => all(&[a, b]),
                Expr::Select { cond, then, other } => all(&[cond, then, other]),
                Expr::Rank(_) | Expr::NRanks(_) => {}
            },
            OpKind::VarDef { init: value, .. }
            | OpKind::VarSet { value, .. }
            | OpKind::ArrayDef { fill: value, .. }
            | OpKind::Full { value, .. } => all(&[*value]),
            OpKind::ArrayGet { index, .. } => all(&[*index]),
            OpKind::ArraySet { index, value, .. } => all(&[*index, *value]),
            OpKind::For { first, end, step, .. } => all(&[*first, *end, *step]),
            OpKind::If { cond, .. } => all(&[*cond]),
            OpKind::Slice { at, .. } | OpKind::Read { at, .. } | OpKind::Load { at, .. } | OpKind::Store { at, .. } => {
                all(at)
            }
            OpKind::Write { at, value, .. } => {
                all(at);
                all(&[*value]);
            }
            OpKind::Tile { b: TileOrScalar::Scalar(b), .. } => all(&[*b]),
            OpKind::Put { peer, region, .. } => {
                if let Some(r) = region {
                    all(&r.dst);
                    all(&[*peer]);
                    all(&r.src);
                    all(&r.shape);
                } else {
                    all(&[*peer]);
                }
            }
            OpKind::Get { peer, region, .. } => {
                if let Some(r) = region {
                    all(&r.dst);
                    all(&r.src);
                    all(&[*peer]);
                    all(&r.shape);
                } else {
                    all(&[*peer]);
                }
            }
            OpKind::GetReduce { peers, region, .. } => {
                if let Some(r) = region {
                    all(&r.dst);
                    all(&r.src);
                }
                all(&[peers.first, peers.end]);
                all(region.as_ref().map_or(&[], |r| r.shape.as_slice()));
            }
            OpKind::RemoteLoad { peer, at, .. } | OpKind::RemoteStore { peer, at, .. } => {
                all(at);
                all(&[*peer]);
            }
            OpKind::Require { a, b, peer, .. } => {
                all(&[*a, *b]);
                all(peer.as_slice());
            }
            OpKind::Agree { theirs, mine, peer, .. } => all(&[*theirs, *mine, *peer]),
            OpKind::Collective(collective) => all(collective.root().as_slice()),
            OpKind::Notify { peer, at, value, .. } => {
                all(at);
                all(&[*peer, *value]);
            }
            OpKind::Wait { at, expected, .. } | OpKind::DeferWait { at, expected, .. } => {
                all(at);
                all(&[*expected]);
            }
            OpKind::Task { grid, options, .. } => {
                all(grid.as_ref().map_or(&[], |g| std::slice::from_ref(&g.blocks)));
                all(options.predicate.as_ref().map_or(&[], |p| p.at.as_slice()));
            }
            OpKind::Extern { blocks, args, options, .. } => {
                args.iter().filter_map(CallbackArg::scalar).for_each(|s| all(&[s]));
                all(blocks.as_slice());
                all(options.predicate.as_ref().map_or(&[], |p| p.at.as_slice()));
            }
            OpKind::HostTask { args, .. } => args.iter().filter_map(CallbackArg::scalar).for_each(|s| all(&[s])),
            OpKind::Ranks { first, end, .. } => all(&[*first, *end]),
            OpKind::SliceRank { rank, .. } => all(&[*rank]),
            OpKind::Dispatch { args, device, .. } => {
                for arg in args {
                    if let Operand::Scalar(s) = arg {
                        all(&[*s]);
                    }
                }
                all(&[*device]);
            }
            OpKind::VarGet { .. }
            | OpKind::Manual { .. }
            | OpKind::Flatten { .. }
            | OpKind::Copy { .. }
            | OpKind::Cast { .. }
            | OpKind::Tile { b: TileOrScalar::Tile(_), .. }
            | OpKind::Reduce { .. }
            | OpKind::Domain { .. }
            | OpKind::AllocWindow { .. }
            | OpKind::Window { .. } => {}
        }
    }

    /// The task that the op is, and what it is told.
    pub fn task(&self) -> Option<(Task, &TaskOptions)> {
        match self {
            OpKind::Task { task, options, .. } | OpKind::Extern { task, options, .. } => Some((*task, options)),
            _ => None,
        }
    }

    /// The scalar that the op defines for the block that it owns.
    pub fn index(&self) -> Option<Scalar> {
        match *self {
            OpKind::For { index, .. }
            | OpKind::Ranks { index, .. }
            | OpKind::Task { grid: Some(Grid { index, .. }), .. } => Some(index),
            _ => None,
        }
    }

    /// The rank that the op reaches for.
    pub fn peer(&self) -> Option<Scalar> {
        match *self {
            OpKind::Put { peer, .. }
            | OpKind::Get { peer, .. }
            | OpKind::RemoteLoad { peer, .. }
            | OpKind::RemoteStore { peer, .. }
            | OpKind::Notify { peer, .. } => Some(peer),
            _ => None,
        }
    }

    /// The scalar that the op defines; loops define their index for their body.
    pub fn result(&self) -> Option<Scalar> {
        match *self {
            OpKind::Scalar { dst, .. }
            | OpKind::VarGet { dst, .. }
            | OpKind::ArrayGet { dst, .. }
            | OpKind::Read { dst, .. } => Some(dst),
            _ => None,
        }
    }
}
