//! Element types and shapes of tiles, and what is computed with them.

use crate::ir::extent::Shape;
use crate::ir::{DType, Op, OpKind, Tile, TileOp, TileOrScalar};

use super::names::Thing;
use super::types::convertible;
use super::{Context, rules, sizes};

/// Two tiles have one element type.
pub(super) fn same_dtype(cx: &mut Context, op: Op, a: Tile, b: Tile) -> bool {
    let program = cx.program;
    let names = cx.names;
    let (ta, tb) = (program.tiles[a].dtype, program.tiles[b].dtype);
    if ta != tb {
        let message = format!("{} is {ta}, but {} is {tb}", names.tile(a), names.tile(b));
        cx.find(&rules::TILE_DTYPES, op, message)
            .note(names.tile_is(a))
            .note(names.tile_is(b))
            .hint(format!("cast one of them: cast {} {ta}", names.tile(b)));
    }
    ta == tb
}

/// Two tiles have one shape.
pub(super) fn same_tile_shape(cx: &mut Context, op: Op, a: Tile, b: Tile) -> bool {
    let program = cx.program;
    let names = cx.names;
    let (x, y): (&Shape, &Shape) = (&program.tiles[a].shape, &program.tiles[b].shape);
    let sound = x.len() == y.len() && cx.shape_mismatch(x, y).is_none();
    if !sound {
        let message = format!(
            "{} has shape {}, but {} has shape {}",
            names.tile(a),
            names.shape(x),
            names.tile(b),
            names.shape(y)
        );
        let hint = match cx.kind(op) {
            OpKind::Copy { .. } | OpKind::Cast { .. } => "a tile keeps its shape; give the result a name of its own",
            _ => "tiles are combined element by element, without broadcasting",
        };
        cx.find(&rules::TILE_SHAPES, op, message).hint(hint);
    }
    sound
}

/// Elements of the type can be computed with.
pub(super) fn has_arithmetic(dtype: DType) -> bool {
    dtype != DType::Bool && !dtype.is_storage_only()
}

fn arithmetic(cx: &mut Context, op: Op, tile: Tile) -> bool {
    let names = cx.names;
    let dtype = cx.program.tiles[tile].dtype;
    let sound = has_arithmetic(dtype);
    if !sound {
        let name = cx.kind(op).name();
        cx.find(&rules::NO_ARITHMETIC, op, format!("{name} computes with {dtype}, which has no arithmetic"))
            .note(names.tile_is(tile))
            .hint(if dtype == DType::Bool {
                "cast the tile to i8"
            } else {
                "cast the tile to f32, and the result back"
            });
    }
    sound
}

/// `dst = what a, b`.
pub(super) fn tile_op(cx: &mut Context, op: Op, what: TileOp, dst: Tile, a: Tile, b: TileOrScalar) -> bool {
    if !arithmetic(cx, op, a) {
        return false;
    }
    let sound = match b {
        TileOrScalar::Tile(b) => same_dtype(cx, op, a, b) && same_tile_shape(cx, op, a, b),
        TileOrScalar::Scalar(b) => {
            let dtype = cx.program.tiles[a].dtype;
            let sound = convertible(cx, op, b, dtype, Thing::Tile(a));
            let zero = what == TileOp::Div && !dtype.is_float() && cx.program.int_value(b, cx.known) == Some(0);
            if zero {
                cx.find(&rules::DIVISION, op, "div divides a tile of integers by 0");
            }
            sound && !zero
        }
    };
    sound && sizes::tile(cx, op, dst) && same_dtype(cx, op, dst, a) && same_tile_shape(cx, op, dst, a)
}

/// The reduction of a tile along an axis.
pub(super) fn reduction(cx: &mut Context, op: Op, dst: Tile, src: Tile) -> bool {
    let names = cx.names;
    let rank = cx.program.tiles[src].shape.len();
    if rank != 2 {
        let message = format!("{} takes a tile of rank 2, not {rank}", cx.kind(op).name());
        cx.find(&rules::REDUCTION, op, message).note(names.tile_is(src)).hint("load the part as rows and columns");
        return false;
    }
    arithmetic(cx, op, src) && sizes::tile(cx, op, dst) && same_dtype(cx, op, dst, src)
}
