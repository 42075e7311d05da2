//! Element types, scalar types, ranks and shapes.

use crate::ir::op::Dims;
use crate::ir::{
    Array, BinaryOp, DType, Expr, Extent, Op, OpKind, Predicate, Region, Scalar, ScalarType, TaskOptions, Tensor, Tile,
    UnaryOp,
};

use super::names::Thing;
use super::tiles::{has_arithmetic, reduction, same_dtype, same_tile_shape, tile_op};
use super::{Context, Position, names, rules, sizes};

/// The types of an op's operands; whether they are sound enough to look at their values.
pub(super) fn check(cx: &mut Context, here: Position) -> bool {
    let op = here.op;
    let kind = cx.kind(op);
    match kind {
        OpKind::Scalar { dst, expr } => {
            let mut sound = true;
            kind.for_each_scalar(|operand| sound &= !cx.untyped[operand]);
            sound = sound && expression(cx, op, expr);
            cx.untyped[*dst] = !sound;
            sound
        }
        OpKind::VarDef { var, init: value } | OpKind::VarSet { var, value } => {
            convertible(cx, op, *value, cx.program.vars[*var].ty.dtype(), Thing::Var(*var))
        }
        OpKind::VarGet { .. } | OpKind::Manual { .. } | OpKind::HostTask { .. } => true,
        // Another file has all rules on these.
        OpKind::Collective(_) => true,
        OpKind::Flatten { dst, src } => packed(cx, op, *src, "flatten") && sizes::tensor(cx, op, *dst),
        OpKind::GetReduce { dst, src, peers, region, .. } => {
            integer(cx, op, peers.first, "a peer")
                & integer(cx, op, peers.end, "a peer")
                & (combined(cx, op, *dst, *src) && transfer(cx, op, *dst, *src, region.as_ref()))
        }
        OpKind::Require { a, b, peer, .. } => {
            let sides = integer(cx, op, *a, "a side of a requirement") & integer(cx, op, *b, "a side of a requirement");
            sides && fitting_literals(cx, op, *a, *b) && peer.is_none_or(|peer| integer(cx, op, peer, "a peer"))
        }
        OpKind::Agree { theirs, mine, peer, .. } => {
            integer(cx, op, *theirs, "a call") & integer(cx, op, *mine, "a call") & integer(cx, op, *peer, "a peer")
        }
        OpKind::Task { grid, options, .. } => task(cx, op, grid.map(|grid| grid.blocks), options),
        OpKind::Extern { blocks, options, .. } => task(cx, op, *blocks, options),
        OpKind::ArrayDef { array, fill } => sizes::array(cx, op, *array) & array_value(cx, op, *array, *fill),
        OpKind::ArrayGet { index, .. } => integer(cx, op, *index, "an array index"),
        OpKind::ArraySet { array, index, value } => {
            integer(cx, op, *index, "an array index") & array_value(cx, op, *array, *value)
        }
        OpKind::For { first, end, step, .. } => {
            integer(cx, op, *first, "a loop bound")
                & integer(cx, op, *end, "a loop bound")
                & integer(cx, op, *step, "a loop step")
        }
        OpKind::Ranks { first, end, .. } => integer(cx, op, *first, "a rank") & integer(cx, op, *end, "a rank"),
        OpKind::If { cond, .. } => condition(cx, op, *cond),
        OpKind::Slice { dst, src, at } => {
            let data = &cx.program.tensors[*dst];
            offsets(cx, op, *src, at, "offset")
                && same_rank(cx, op, *src, "a slice", &data.shape)
                && sizes::tensor(cx, op, *dst)
        }
        OpKind::Read { src, at, .. } => storage(cx, op, *src, "read") & offsets(cx, op, *src, at, "offset"),
        OpKind::Write { dst, at, value } => {
            storage(cx, op, *dst, "written")
                && offsets(cx, op, *dst, at, "offset")
                    & convertible(cx, op, *value, cx.program.tensors[*dst].dtype, Thing::Tensor(*dst))
        }
        OpKind::Load { dst, src, at } | OpKind::RemoteLoad { dst, src, at, .. } => {
            sizes::tile(cx, op, *dst)
                & tile_and_tensor(cx, op, *dst, *src)
                & offsets(cx, op, *src, at, "offset")
                & peer(cx, op)
        }
        OpKind::Store { src, dst, at } | OpKind::RemoteStore { src, dst, at, .. } => {
            tile_and_tensor(cx, op, *src, *dst) & offsets(cx, op, *dst, at, "offset") & peer(cx, op)
        }
        OpKind::Full { dst, value } => {
            let dtype = cx.program.tiles[*dst].dtype;
            sizes::tile(cx, op, *dst) & convertible(cx, op, *value, dtype, Thing::Tile(*dst))
        }
        OpKind::Copy { dst, src } => {
            sizes::tile(cx, op, *dst) & same_dtype(cx, op, *dst, *src) & same_tile_shape(cx, op, *dst, *src)
        }
        OpKind::Cast { dst, src } => sizes::tile(cx, op, *dst) & same_tile_shape(cx, op, *dst, *src),
        OpKind::Tile { op: what, dst, a, b } => tile_op(cx, op, *what, *dst, *a, *b),
        OpKind::Reduce { dst, src, .. } => reduction(cx, op, *dst, *src),
        OpKind::Put { dst, src, region, .. } | OpKind::Get { dst, src, region, .. } => {
            peer(cx, op) & (same_transfer_dtype(cx, op, *dst, *src) && transfer(cx, op, *dst, *src, region.as_ref()))
        }
        OpKind::Notify { window, at, value, .. } => {
            offsets(cx, op, *window, at, "offset")
                & integer(cx, op, *value, "the value of a notify")
                & fitting_literal(cx, op, *value, DType::I32)
                & peer(cx, op)
        }
        OpKind::Wait { window, at, expected, .. } | OpKind::DeferWait { window, at, expected } => {
            offsets(cx, op, *window, at, "offset") & integer(cx, op, *expected, "what a wait expects")
        }
        OpKind::Domain { .. } => true,
        OpKind::AllocWindow { buffer } => sizes::buffer(cx, op, *buffer),
        OpKind::Window { dst, .. } => sizes::tensor(cx, op, *dst),
        OpKind::SliceRank { rank, .. } => integer(cx, op, *rank, "a rank"),
        OpKind::Dispatch { device, .. } => integer(cx, op, *device, "a device"),
    }
}

fn task(cx: &mut Context, op: Op, blocks: Option<Scalar>, options: &TaskOptions) -> bool {
    let counted = blocks.is_none_or(|blocks| integer(cx, op, blocks, "a number of blocks"));
    let Some(Predicate { tensor, at, .. }) = &options.predicate else { return counted };
    let program = cx.program;
    let dtype = program.tensors[*tensor].dtype;
    if dtype.is_float() {
        let names = cx.names;
        cx.find(
            &rules::PREDICATE,
            op,
            format!("a predicate compares integers or bools, but {} is {dtype}", names.tensor(*tensor)),
        )
        .note(names.tensor_is(*tensor))
        .hint("let a task before compare it, and write what comes out into a tensor of bool or i32");
        return false;
    }
    offsets(cx, op, *tensor, at, "offset") & counted
}

// Scalars.

fn ty(cx: &Context, scalar: Scalar) -> ScalarType {
    cx.program.scalars[scalar].ty
}

fn is_number(ty: ScalarType) -> bool {
    ty != ScalarType::Bool
}

/// Two scalars have a common type: literals adapt, and integers widen.
fn compatible(cx: &Context, a: Scalar, b: Scalar) -> bool {
    let (ta, tb) = (ty(cx, a), ty(cx, b));
    let adapts = |literal: Scalar, to: ScalarType| cx.program.is_int_literal(literal) && is_number(to);
    ta == tb || (ta.is_int() && tb.is_int()) || adapts(a, tb) || adapts(b, ta)
}

fn expression(cx: &mut Context, op: Op, expr: &Expr) -> bool {
    let names = cx.names;
    match *expr {
        Expr::Unary(UnaryOp::Neg, a) if is_number(ty(cx, a)) => true,
        Expr::Unary(UnaryOp::Not, a) if ty(cx, a) == ScalarType::Bool => true,
        Expr::Unary(unary, a) => {
            let wants = if unary == UnaryOp::Not { "a bool" } else { "a number" };
            let message = format!("{unary} takes {wants}, not {}", ty(cx, a));
            cx.find(&rules::OPERANDS, op, message).note(names.scalar_is(a));
            false
        }
        Expr::Binary(binary, a, b) => binary_operands(cx, op, binary, a, b) && fitting_literals(cx, op, a, b),
        Expr::Select { cond, then, other } => {
            let sound = condition(cx, op, cond);
            if !compatible(cx, then, other) {
                mixed(cx, op, "select chooses between", then, other);
                return false;
            }
            sound && fitting_literals(cx, op, then, other)
        }
        Expr::Cast(_) | Expr::Rank(_) | Expr::NRanks(_) | Expr::Copy(_) => true,
    }
}

fn binary_operands(cx: &mut Context, op: Op, binary: BinaryOp, a: Scalar, b: Scalar) -> bool {
    let names = cx.names;
    let (ta, tb) = (ty(cx, a), ty(cx, b));
    let bools = ta == ScalarType::Bool && tb == ScalarType::Bool;
    let numbers = is_number(ta) && is_number(tb);
    let wants = match binary {
        BinaryOp::And | BinaryOp::Or if bools => return true,
        BinaryOp::And | BinaryOp::Or => "two bools",
        BinaryOp::Eq | BinaryOp::Ne if bools => return true,
        BinaryOp::Rem if ta.is_int() && tb.is_int() => return true,
        BinaryOp::Rem => "two integers",
        _ if numbers && compatible(cx, a, b) => return true,
        _ if numbers => {
            mixed(cx, op, &format!("{binary} mixes"), a, b);
            return false;
        }
        _ => "two numbers",
    };
    cx.find(&rules::OPERANDS, op, format!("{binary} takes {wants}, not {ta} and {tb}"))
        .note(names.scalar_is(a))
        .note(names.scalar_is(b));
    false
}

fn mixed(cx: &mut Context, op: Op, what: &str, a: Scalar, b: Scalar) {
    let names = cx.names;
    let (ta, tb) = (ty(cx, a), ty(cx, b));
    let hint = match (ta == ScalarType::F32, tb == ScalarType::F32) {
        (true, false) => format!("write cast({}, f32)", names.scalar(b)),
        (false, true) => format!("write cast({}, f32)", names.scalar(a)),
        _ => String::new(),
    };
    cx.find(&rules::OPERANDS, op, format!("{what} {ta} and {tb}"))
        .note(names.scalar_is(a))
        .note(names.scalar_is(b))
        .hint(hint);
}

/// Literals among two operands fit the type of the other one.
fn fitting_literals(cx: &mut Context, op: Op, a: Scalar, b: Scalar) -> bool {
    let literal = |s: Scalar| cx.program.is_int_literal(s);
    match (literal(a), literal(b)) {
        (true, false) => fitting_literal(cx, op, a, ty(cx, b).dtype()),
        (false, true) => fitting_literal(cx, op, b, ty(cx, a).dtype()),
        _ => true,
    }
}

/// A literal fits the integer type that it is used as. Only a warning: it wraps.
fn fitting_literal(cx: &mut Context, op: Op, literal: Scalar, dtype: DType) -> bool {
    if !cx.program.is_int_literal(literal) || dtype.is_float() || dtype == DType::Bool {
        return true;
    }
    let Some(value) = cx.program.int_value(literal, cx.known) else { return true };
    let bits = 8 * dtype.size() as u32;
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let (min, max) = match (signed, bits) {
        (_, 64) => return true,
        (true, bits) => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        (false, bits) => (0, (1i64 << bits) - 1),
    };
    if value < min || value > max {
        let low = value & ((1i64 << bits) - 1);
        let wrapped = if signed && low > max { low - (1i64 << bits) } else { low };
        cx.find(&rules::LITERAL, op, format!("{value} does not fit {dtype} and becomes {wrapped}"))
            .note(format!("{dtype} holds {min} to {max}"));
    }
    true
}

pub(super) fn integer(cx: &mut Context, op: Op, scalar: Scalar, what: &str) -> bool {
    let sound = ty(cx, scalar).is_int() || cx.untyped[scalar];
    if !sound {
        let program = cx.program;
        let names = cx.names;
        let hint = format!("write cast({}, i32)", names.scalar(scalar));
        cx.find(&rules::NOT_INTEGER, op, format!("{what} is an integer, not {}", program.scalars[scalar].ty))
            .note(names.scalar_is(scalar))
            .hint(hint);
    }
    sound
}

fn condition(cx: &mut Context, op: Op, cond: Scalar) -> bool {
    let sound = ty(cx, cond) == ScalarType::Bool || cx.untyped[cond];
    if !sound {
        let program = cx.program;
        let names = cx.names;
        let hint = format!("compare it: {} != 0", names.scalar(cond));
        cx.find(&rules::NOT_BOOL, op, format!("a condition is a bool, not {}", program.scalars[cond].ty))
            .note(names.scalar_is(cond))
            .hint(hint);
    }
    sound
}

/// A scalar may be written as an element of a type: integers convert among each other and floats too, the rest takes a
/// cast.
pub(super) fn converts(cx: &Context, value: Scalar, dtype: DType) -> bool {
    match ty(cx, value) {
        _ if dtype.is_storage_only() => false,
        _ if cx.untyped[value] => true,
        _ if cx.program.is_int_literal(value) => dtype != DType::Bool,
        ScalarType::I32 | ScalarType::I64 => !dtype.is_float() && dtype != DType::Bool,
        ScalarType::F32 => dtype.is_float(),
        ScalarType::Bool => dtype == DType::Bool,
    }
}

/// A scalar may be written to something of a type, and is told if not.
pub(super) fn convertible(cx: &mut Context, op: Op, value: Scalar, dtype: DType, target: Thing) -> bool {
    let names = cx.names;
    if dtype.is_storage_only() {
        let message = format!("{} is {dtype}, which is only moved and cast as a whole", names.of(target));
        cx.find(&rules::STORAGE_ONLY, op, message).hint("fill a tile of f32, and cast it");
        return false;
    }
    if converts(cx, value, dtype) {
        return fitting_literal(cx, op, value, dtype);
    }
    let text = names.scalar(value);
    let hint = match dtype.scalar() {
        Some(ScalarType::Bool) if cx.program.is_int_literal(value) => "write true or false".into(),
        Some(ScalarType::Bool) => format!("compare it: {text} != 0"),
        Some(to) => format!("write cast({text}, {to})"),
        None => String::new(),
    };
    let message = format!("{} does not convert to {dtype}, the type of {}", ty(cx, value), names.of(target));
    cx.find(&rules::CONVERSION, op, message).note(names.scalar_is(value)).hint(hint);
    false
}

fn array_value(cx: &mut Context, op: Op, array: Array, value: Scalar) -> bool {
    convertible(cx, op, value, cx.program.arrays[array].ty.dtype(), Thing::Array(array))
}

// Tensors.

fn storage(cx: &mut Context, op: Op, tensor: Tensor, done: &str) -> bool {
    let names = cx.names;
    let dtype = cx.program.tensors[tensor].dtype;
    if dtype.is_storage_only() {
        let message = format!("an element of {} is {done}, but {dtype} has no scalar", cx.names.tensor(tensor));
        cx.find(&rules::STORAGE_ONLY, op, message)
            .note(names.tensor_is(tensor))
            .hint("load a tile, and cast it to f32");
    }
    !dtype.is_storage_only()
}

/// One integer a dimension.
fn offsets(cx: &mut Context, op: Op, tensor: Tensor, at: &Dims, what: &str) -> bool {
    let rank = cx.program.tensors[tensor].shape.len();
    if at.len() != rank {
        let names = cx.names;
        let message = format!("{} for {} of rank {rank}", names::count(at.len(), what), names.tensor(tensor));
        cx.find(&rules::OFFSETS, op, message).note(names.tensor_is(tensor)).hint(format!("give {rank}"));
        return false;
    }
    let described = format!("an {what}");
    at.iter().fold(true, |sound, &s| integer(cx, op, s, &described) & sound)
}

fn peer(cx: &mut Context, op: Op) -> bool {
    cx.kind(op).peer().is_none_or(|peer| integer(cx, op, peer, "a peer"))
}

/// A part of a tensor has as many dimensions as the tensor.
fn same_rank(cx: &mut Context, op: Op, tensor: Tensor, part: &str, shape: &[Extent]) -> bool {
    let names = cx.names;
    let rank = cx.program.tensors[tensor].shape.len();
    if rank != shape.len() {
        let dimensions = names::count(rank, "dimension");
        let shape_text = names.shape(shape);
        let message =
            format!("{} has {dimensions}, but {part} of shape {shape_text} has {}", names.tensor(tensor), shape.len());
        cx.find(&rules::RANKS_DIFFER, op, message)
            .note(names.tensor_is(tensor))
            .hint(format!("give the shape {}, of 1 where it is one row or one element", names::count(rank, "extent")));
    }
    rank == shape.len()
}

fn tile_and_tensor(cx: &mut Context, op: Op, tile: Tile, tensor: Tensor) -> bool {
    let program = cx.program;
    let names = cx.names;
    let (t, x) = (&program.tiles[tile], &program.tensors[tensor]);
    if t.dtype != x.dtype {
        let message = format!("{} is {}, but {} is {}", names.tile(tile), t.dtype, names.tensor(tensor), x.dtype);
        cx.find(&rules::TILE_DTYPES, op, message)
            .note(names.tile_is(tile))
            .note(names.tensor_is(tensor))
            .hint(format!("cast the tile: cast {} {}", names.tile(tile), x.dtype));
        return false;
    }
    same_rank(cx, op, tensor, "a tile", &t.shape)
}

/// Both sides of something that moves bytes.
pub(super) fn same_transfer_dtype(cx: &mut Context, op: Op, dst: Tensor, src: Tensor) -> bool {
    let names = cx.names;
    let (to, from) = (cx.program.tensors[dst].dtype, cx.program.tensors[src].dtype);
    if to != from {
        let message = format!("{} is {from}, but {} is {to}", names.tensor(src), names.tensor(dst));
        cx.find(&rules::TRANSFER_DTYPES, op, message)
            .notes([names.tensor_is(dst), names.tensor_is(src)])
            .hint("a transfer moves bytes; load a tile, cast it, and store it first");
    }
    to == from
}

/// Both sides of a combination: floats are converted to floats, and integers stay.
fn combined(cx: &mut Context, op: Op, dst: Tensor, src: Tensor) -> bool {
    let names = cx.names;
    let (to, from) = (cx.program.tensors[dst].dtype, cx.program.tensors[src].dtype);
    if !has_arithmetic(from) {
        let message = format!("{} combines {from}, which has no arithmetic", cx.kind(op).name());
        cx.find(&rules::COMBINED_DTYPE, op, message)
            .note(names.tensor_is(src))
            .hint("use a window of a wider type, and cast what goes in and what comes out");
        return false;
    }
    let float = |dtype: DType| dtype.is_float() && has_arithmetic(dtype);
    (float(to) && float(from)) || same_transfer_dtype(cx, op, dst, src)
}

/// The elements of a tensor lie one behind the other.
pub(super) fn packed(cx: &mut Context, op: Op, tensor: Tensor, what: &str) -> bool {
    let sound = cx.program.is_packed(tensor);
    if !sound {
        let names = cx.names;
        let (name, whole) = (names.tensor(tensor), cx.program.packed(tensor));
        cx.find(
            &rules::NOT_PACKED,
            op,
            format!("{what} needs elements without gaps, but {name} is part of wider rows"),
        )
        .notes([names.tensor_is(tensor), names.tensor_is(whole)])
        .hint(format!("let the slice have all of {} behind its first extent, or copy it", names.tensor(whole)));
    }
    sound
}

/// Both sides of a transfer.
fn transfer(cx: &mut Context, op: Op, dst: Tensor, src: Tensor, region: Option<&Region>) -> bool {
    let program = cx.program;
    let names = cx.names;
    let (d, s) = (&program.tensors[dst], &program.tensors[src]);
    let notes = || [names.tensor_is(dst), names.tensor_is(src)];
    if d.shape.len() != s.shape.len() {
        let (from, to) = (names::count(s.shape.len(), "dimension"), d.shape.len());
        let message = format!("{} has {from}, but {} has {to}", names.tensor(src), names.tensor(dst));
        cx.find(&rules::RANKS_DIFFER, op, message)
            .notes(notes())
            .hint("declare both with the same number of dimensions");
        return false;
    }
    if let Some(region) = region {
        return offsets(cx, op, dst, &region.dst, "offset")
            & offsets(cx, op, src, &region.src, "offset")
            & offsets(cx, op, dst, &region.shape, "extent");
    }
    if let Some(dim) = cx.shape_mismatch(&d.shape, &s.shape) {
        let (from, to) = (names.extent(s.shape[dim]), names.extent(d.shape[dim]));
        let sides = (names.tensor(src), names.tensor(dst));
        let message = format!("dimension {dim} of {} is {from}, but that of {} is {to}", sides.0, sides.1);
        cx.find(&rules::TRANSFER_SHAPES, op, message)
            .notes(notes())
            .hint("move a region: dst[offsets] @peer <- src[offsets] [extents]");
        return false;
    }
    true
}
