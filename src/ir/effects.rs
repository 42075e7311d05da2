//! The one table of what each op does to memory and to other ranks.
//!
//! Code generation, the derivation of task edges, and the checker all read this table, so an op cannot mean one thing
//! here and another there.

use smallvec::{SmallVec, smallvec};

use super::entity::{Array, Scalar, Tensor, Tile, Var};
use super::extent::Shape;
use super::op::{CallbackArg, Dims, Expr, OpKind, PeerRange, TaskOptions, TileOrScalar};
use super::program::Program;
use super::types::{Atomic, Direction, NotifyOp};

/// Where an op is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In any body.
    Anywhere,
    /// In the host driver.
    Host,
    /// In an entry, outside its tasks.
    Entry,
    /// In an entry, inside or outside its tasks.
    EntryOrInCore,
    /// Inside a task.
    InCore,
    /// Inside a task, or in the host driver.
    InCoreOrHost,
}

/// What is done to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Overwrites it.
    Write,
    /// Adds to it, atomically: commutes with other additions.
    Accumulate,
    /// Overwrites a signal cell and publishes what the task wrote before.
    SignalSet,
    /// Adds to a signal cell and publishes what the task wrote before.
    SignalAdd,
    /// Reads a signal cell until it compares, and acquires what its notifiers published.
    Await,
}

/// How far a region reaches from its offsets.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// One element.
    Element,
    /// A static shape.
    Shape(Shape),
    /// Extents known when the op runs.
    Dims(Dims),
    /// The whole tensor.
    Whole,
}

/// The ranks whose memory an op touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// One.
    One(Scalar),
    /// Several.
    Range(PeerRange),
}

/// A place that an op touches.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Part of a tensor: of this rank, or of `peer`.
    Memory {
        /// The tensor.
        tensor: Tensor,
        /// The ranks whose memory it is; none for this rank.
        peer: Option<Peers>,
        /// Where the part begins; empty with [`Span::Whole`].
        at: Dims,
        /// How far it reaches.
        span: Span,
    },
    /// A tile register.
    Tile(Tile),
    /// A mutable scalar.
    Var(Var),
    /// A local array.
    Array(Array),
}

/// One effect of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// What is done.
    pub access: Access,
    /// To what.
    pub place: Place,
}

impl Access {
    /// Changes the place.
    pub fn is_write(self) -> bool {
        !matches!(self, Access::Read | Access::Await)
    }
}

/// The scope in which an op is allowed.
pub fn scope(op: &OpKind) -> Scope {
    match op {
        // The host driver describes all ranks, of which some may be outside the domain.
        OpKind::Scalar { expr: Expr::Rank(_), .. } => Scope::EntryOrInCore,
        OpKind::Scalar { .. }
        | OpKind::VarDef { .. }
        | OpKind::VarGet { .. }
        | OpKind::VarSet { .. }
        | OpKind::ArrayDef { .. }
        | OpKind::ArrayGet { .. }
        | OpKind::ArraySet { .. }
        | OpKind::For { .. }
        | OpKind::If { .. } => Scope::Anywhere,
        OpKind::Task { .. } | OpKind::Extern { .. } | OpKind::Manual { .. } => Scope::Entry,
        OpKind::Slice { .. } | OpKind::Flatten { .. } => Scope::EntryOrInCore,
        OpKind::Collective(_) => Scope::InCoreOrHost,
        OpKind::Read { .. }
        | OpKind::Write { .. }
        | OpKind::Load { .. }
        | OpKind::Store { .. }
        | OpKind::Full { .. }
        | OpKind::Copy { .. }
        | OpKind::Cast { .. }
        | OpKind::Tile { .. }
        | OpKind::Reduce { .. }
        | OpKind::Put { .. }
        | OpKind::Get { .. }
        | OpKind::GetReduce { .. }
        | OpKind::Require { .. }
        | OpKind::Agree { .. }
        | OpKind::RemoteLoad { .. }
        | OpKind::RemoteStore { .. }
        | OpKind::Notify { .. }
        | OpKind::Wait { .. }
        | OpKind::DeferWait { .. } => Scope::InCore,
        OpKind::Domain { .. }
        | OpKind::AllocWindow { .. }
        | OpKind::Window { .. }
        | OpKind::Ranks { .. }
        | OpKind::SliceRank { .. }
        | OpKind::Dispatch { .. }
        | OpKind::HostTask { .. } => Scope::Host,
    }
}

/// The effects of an op itself; those of the blocks that it owns come from their ops.
pub fn effects(program: &Program, op: &OpKind) -> SmallVec<[Effect; 3]> {
    use Access::*;
    let tile = |access, t: Tile| Effect { access, place: Place::Tile(t) };
    let var = |access, v: Var| Effect { access, place: Place::Var(v) };
    let array = |access, a: Array| Effect { access, place: Place::Array(a) };
    let of = |access, tensor: Tensor, peer: Option<Peers>, at: &Dims, span: Span| Effect {
        access,
        place: Place::Memory { tensor, peer, at: at.clone(), span },
    };
    let memory =
        |access, tensor, peer: Option<Scalar>, at: &Dims, span| of(access, tensor, peer.map(Peers::One), at, span);
    let whole = |access, tensor, peer| memory(access, tensor, peer, &Dims::new(), Span::Whole);
    let shape = |t: Tile| Span::Shape(program.tiles[t].shape.clone());
    let landing = |atomic| if atomic == Atomic::Add { Accumulate } else { Write };
    match op {
        OpKind::VarDef { var: v, .. } | OpKind::VarSet { var: v, .. } => smallvec![var(Write, *v)],
        OpKind::VarGet { var: v, .. } => smallvec![var(Read, *v)],
        OpKind::ArrayDef { array: a, .. } | OpKind::ArraySet { array: a, .. } => smallvec![array(Write, *a)],
        OpKind::ArrayGet { array: a, .. } => smallvec![array(Read, *a)],
        OpKind::Read { src, at, .. } => smallvec![memory(Read, *src, None, at, Span::Element)],
        OpKind::Write { dst, at, .. } => smallvec![memory(Write, *dst, None, at, Span::Element)],
        OpKind::Load { dst, src, at } => smallvec![memory(Read, *src, None, at, shape(*dst)), tile(Write, *dst)],
        OpKind::Store { src, dst, at } => smallvec![tile(Read, *src), memory(Write, *dst, None, at, shape(*src))],
        OpKind::Full { dst, .. } => smallvec![tile(Write, *dst)],
        OpKind::Copy { dst, src } | OpKind::Cast { dst, src } | OpKind::Reduce { dst, src, .. } => {
            smallvec![tile(Read, *src), tile(Write, *dst)]
        }
        OpKind::Tile { dst, a, b: TileOrScalar::Tile(b), .. } => {
            smallvec![tile(Read, *a), tile(Read, *b), tile(Write, *dst)]
        }
        OpKind::Tile { dst, a, b: TileOrScalar::Scalar(_), .. } => smallvec![tile(Read, *a), tile(Write, *dst)],
        OpKind::Put { dst, peer, src, region, atomic, .. } => match region {
            Some(r) => smallvec![
                memory(Read, *src, None, &r.src, Span::Dims(r.shape.clone())),
                memory(landing(*atomic), *dst, Some(*peer), &r.dst, Span::Dims(r.shape.clone())),
            ],
            None => smallvec![whole(Read, *src, None), whole(landing(*atomic), *dst, Some(*peer))],
        },
        OpKind::Get { dst, src, peer, region, .. } => match region {
            Some(r) => smallvec![
                memory(Read, *src, Some(*peer), &r.src, Span::Dims(r.shape.clone())),
                memory(Write, *dst, None, &r.dst, Span::Dims(r.shape.clone())),
            ],
            None => smallvec![whole(Read, *src, Some(*peer)), whole(Write, *dst, None)],
        },
        OpKind::GetReduce { dst, src, peers, region, .. } => {
            let peers = Some(Peers::Range(*peers));
            match region {
                Some(r) => smallvec![
                    of(Read, *src, peers, &r.src, Span::Dims(r.shape.clone())),
                    memory(Write, *dst, None, &r.dst, Span::Dims(r.shape.clone())),
                ],
                None => smallvec![of(Read, *src, peers, &Dims::new(), Span::Whole), whole(Write, *dst, None)],
            }
        }
        // What other ranks do to the windows of this one, they do between its beginning and its end.
        OpKind::Collective(collective) => {
            collective.operands().into_iter().map(|(tensor, access)| whole(access, tensor, None)).collect()
        }
        OpKind::RemoteLoad { dst, src, peer, at } => {
            smallvec![memory(Read, *src, Some(*peer), at, shape(*dst)), tile(Write, *dst)]
        }
        OpKind::RemoteStore { src, dst, peer, at, atomic } => {
            smallvec![tile(Read, *src), memory(landing(*atomic), *dst, Some(*peer), at, shape(*src))]
        }
        OpKind::Notify { window, peer, at, op, .. } => {
            let access = if *op == NotifyOp::Set { SignalSet } else { SignalAdd };
            smallvec![memory(access, *window, Some(*peer), at, Span::Element)]
        }
        OpKind::Wait { window, at, .. } | OpKind::DeferWait { window, at, .. } => {
            smallvec![memory(Await, *window, None, at, Span::Element)]
        }
        OpKind::Task { options, .. } => predicate(options).into_iter().collect(),
        OpKind::Extern { args, options, .. } => callback(args).chain(predicate(options)).collect(),
        OpKind::HostTask { args, .. } => callback(args).collect(),
        OpKind::Scalar { .. }
        | OpKind::For { .. }
        | OpKind::If { .. }
        | OpKind::Manual { .. }
        | OpKind::Slice { .. }
        | OpKind::Flatten { .. }
        | OpKind::Require { .. }
        | OpKind::Agree { .. }
        | OpKind::Domain { .. }
        | OpKind::AllocWindow { .. }
        | OpKind::Window { .. }
        | OpKind::Ranks { .. }
        | OpKind::SliceRank { .. }
        | OpKind::Dispatch { .. } => SmallVec::new(),
    }
}

/// What a task reads to learn whether it runs at all.
fn predicate(options: &TaskOptions) -> Option<Effect> {
    let p = options.predicate.as_ref()?;
    let place = Place::Memory { tensor: p.tensor, peer: None, at: p.at.clone(), span: Span::Element };
    Some(Effect { access: Access::Read, place })
}

/// What the engine's function does with its arguments, as it declares.
fn callback(args: &[CallbackArg]) -> impl Iterator<Item = Effect> {
    args.iter().flat_map(|arg| {
        let accesses: &[Access] = match arg {
            CallbackArg::Tensor(_, Direction::In) => &[Access::Read],
            CallbackArg::Tensor(_, Direction::Out) => &[Access::Write],
            CallbackArg::Tensor(_, Direction::InOut) => &[Access::Read, Access::Write],
            CallbackArg::Scalar(_) => &[],
        };
        accesses.iter().filter_map(|&access| match *arg {
            CallbackArg::Tensor(tensor, _) => {
                let place = Place::Memory { tensor, peer: None, at: Dims::new(), span: Span::Whole };
                Some(Effect { access, place })
            }
            CallbackArg::Scalar(_) => None,
        })
    })
}
