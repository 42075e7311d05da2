//! Tiles: on-chip registers with a static shape.

use crate::ir::{ReduceAxis, ReduceOp, TileOp, TileOrScalar};

use super::build::build;
use super::dtype::pld_dtype_t;
use super::pointer::{Dims, Scalars, Text};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::tensor::pld_tensor_t;

/// A tile: a register of a task, whose shape is known when the program is compiled. Every call that returns a tile
/// makes a new one; `pld_tile_assign` overwrites one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_tile_t {
    /// 0 is no tile.
    pub id: u32,
}

/// The part of `tensor` that begins at `offsets` and has this shape, as a tile. Tensor, offsets and shape have as many
/// dimensions; offsets and shape are in elements. Inside a task. Offsets that are outside when the program runs end the
/// launch with `PLD_ERR_OUT_OF_BOUNDS`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_load(
    p: Option<&mut pld_program_t>,
    tensor: pld_tensor_t,
    offsets: Scalars,
    noffsets: usize,
    shape: Dims,
    ndims: usize,
) -> pld_tile_t {
    build(p, |c| {
        let tensor = c.get(tensor, "the tensor")?;
        let (at, shape) = (c.offsets(offsets, noffsets)?, c.shape(shape, ndims)?);
        Some(c.builder.load(tensor, &at, shape))
    })
}

/// Writes a tile into `tensor` of this rank (also a window), beginning at `offsets`, in elements. The element types are
/// the same. Inside a task. Offsets that are outside end the launch as with `pld_load`; nothing is written then.
#[unsafe(no_mangle)]
pub extern "C" fn pld_store(
    p: Option<&mut pld_program_t>,
    tile: pld_tile_t,
    tensor: pld_tensor_t,
    offsets: Scalars,
    noffsets: usize,
) {
    build(p, |c| {
        let (tile, tensor) = (c.get(tile, "the tile")?, c.get(tensor, "the tensor")?);
        let at = c.offsets(offsets, noffsets)?;
        c.builder.store(tile, tensor, &at);
        Some(())
    })
}

/// A tile of one value.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_full(
    p: Option<&mut pld_program_t>,
    dtype: pld_dtype_t,
    shape: Dims,
    ndims: usize,
    value: pld_scalar_t,
) -> pld_tile_t {
    build(p, |c| {
        let (dtype, shape, value) = (c.dtype(dtype)?, c.shape(shape, ndims)?, c.get(value, "the value")?);
        Some(c.builder.full(dtype, shape, value))
    })
}

/// The tile in another element type. Floats round to nearest even; floats to integers truncate and saturate.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_cast(p: Option<&mut pld_program_t>, tile: pld_tile_t, dtype: pld_dtype_t) -> pld_tile_t {
    build(p, |c| {
        let (tile, dtype) = (c.get(tile, "the tile")?, c.dtype(dtype)?);
        Some(c.builder.tile_cast(dtype, tile))
    })
}

/// A new tile with the same elements.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_copy(p: Option<&mut pld_program_t>, tile: pld_tile_t) -> pld_tile_t {
    build(p, |c| {
        let tile = c.get(tile, "the tile")?;
        Some(c.builder.copy(tile))
    })
}

/// Overwrites `tile` by `value`, of the same shape and element type: `pld_tile_assign(p, acc, pld_tile_add(p, acc, x))`
/// adds to `acc` in place.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_assign(p: Option<&mut pld_program_t>, tile: pld_tile_t, value: pld_tile_t) {
    build(p, |c| {
        let (tile, value) = (c.get(tile, "the tile")?, c.get(value, "the value")?);
        c.builder.assign(tile, value);
        Some(())
    })
}

/// Gives a tile a name, which the program's text and all messages show.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_name(p: Option<&mut pld_program_t>, tile: pld_tile_t, name: Text) {
    build(p, |c| {
        let (tile, name) = (c.get(tile, "the tile")?, c.name(name));
        c.builder.name_tile(tile, name);
        Some(())
    })
}

fn with_tile(p: Option<&mut pld_program_t>, op: TileOp, a: pld_tile_t, b: pld_tile_t) -> pld_tile_t {
    build(p, |c| {
        let (a, b) = (c.get(a, "the first operand")?, c.get(b, "the second operand")?);
        Some(c.builder.tile_op(op, a, TileOrScalar::Tile(b)))
    })
}

fn with_scalar(p: Option<&mut pld_program_t>, op: TileOp, a: pld_tile_t, b: pld_scalar_t) -> pld_tile_t {
    build(p, |c| {
        let (a, b) = (c.get(a, "the first operand")?, c.get(b, "the second operand")?);
        Some(c.builder.tile_op(op, a, TileOrScalar::Scalar(b)))
    })
}

fn reduced(p: Option<&mut pld_program_t>, op: ReduceOp, axis: ReduceAxis, tile: pld_tile_t) -> pld_tile_t {
    build(p, |c| {
        let tile = c.get(tile, "the tile")?;
        Some(c.builder.reduce(op, axis, tile))
    })
}

/// The sum of two tiles of the same shape and element type, elementwise. Integers wrap; `f16` and `bf16` compute in
/// `f32` and round. Not for `bool` and the 8-bit floats.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_add(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_tile_t) -> pld_tile_t {
    with_tile(p, TileOp::Add, a, b)
}

/// The sum of a tile and a scalar, for every element; otherwise as `pld_tile_add`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_adds(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_scalar_t) -> pld_tile_t {
    with_scalar(p, TileOp::Add, a, b)
}

/// `a - b`, as `pld_tile_add`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_sub(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_tile_t) -> pld_tile_t {
    with_tile(p, TileOp::Sub, a, b)
}

/// `a - b` with a scalar, as `pld_tile_adds`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_subs(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_scalar_t) -> pld_tile_t {
    with_scalar(p, TileOp::Sub, a, b)
}

/// `a * b`, as `pld_tile_add`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_mul(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_tile_t) -> pld_tile_t {
    with_tile(p, TileOp::Mul, a, b)
}

/// `a * b` with a scalar, as `pld_tile_adds`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_muls(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_scalar_t) -> pld_tile_t {
    with_scalar(p, TileOp::Mul, a, b)
}

/// `a / b`, as `pld_tile_add`. Integers truncate; division of integers by zero ends the launch with
/// `PLD_ERR_ARITHMETIC`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_div(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_tile_t) -> pld_tile_t {
    with_tile(p, TileOp::Div, a, b)
}

/// `a / b` with a scalar, as `pld_tile_div`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_divs(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_scalar_t) -> pld_tile_t {
    with_scalar(p, TileOp::Div, a, b)
}

/// The larger of `a` and `b`, as `pld_tile_add`; NaN if one is NaN.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_max(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_tile_t) -> pld_tile_t {
    with_tile(p, TileOp::Max, a, b)
}

/// The larger of `a` and a scalar, as `pld_tile_max`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_maxs(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_scalar_t) -> pld_tile_t {
    with_scalar(p, TileOp::Max, a, b)
}

/// The smaller of `a` and `b`, as `pld_tile_add`; NaN if one is NaN.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_min(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_tile_t) -> pld_tile_t {
    with_tile(p, TileOp::Min, a, b)
}

/// The smaller of `a` and a scalar, as `pld_tile_min`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_mins(p: Option<&mut pld_program_t>, a: pld_tile_t, b: pld_scalar_t) -> pld_tile_t {
    with_scalar(p, TileOp::Min, a, b)
}

/// The sum of each row: `[r, c]` becomes `[r, 1]`. `f16` and `bf16` add up in `f32`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_row_sum(p: Option<&mut pld_program_t>, tile: pld_tile_t) -> pld_tile_t {
    reduced(p, ReduceOp::Sum, ReduceAxis::Row, tile)
}

/// The maximum of each row: `[r, c]` becomes `[r, 1]`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_row_max(p: Option<&mut pld_program_t>, tile: pld_tile_t) -> pld_tile_t {
    reduced(p, ReduceOp::Max, ReduceAxis::Row, tile)
}

/// The sum of each column: `[r, c]` becomes `[1, c]`. `f16` and `bf16` add up in `f32`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_col_sum(p: Option<&mut pld_program_t>, tile: pld_tile_t) -> pld_tile_t {
    reduced(p, ReduceOp::Sum, ReduceAxis::Col, tile)
}

/// The maximum of each column: `[r, c]` becomes `[1, c]`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tile_col_max(p: Option<&mut pld_program_t>, tile: pld_tile_t) -> pld_tile_t {
    reduced(p, ReduceOp::Max, ReduceAxis::Col, tile)
}
