//! How messages name things.

use crate::ir::program::TensorDef;
use crate::ir::{Program, Scalar, Tensor, Tile};
use super::text::{extent_text, scalar_text, tensor_type_text};

/// A tensor's name, or what it is part of.
pub(super) fn tensor(program: &Program, tensor: Tensor) -> String {
    let mut prefix = "";
    let mut at = tensor;
    loop {
        let data = &program.tensors[at];
        match (&data.name, &data.def) {
            (Some(name), _) => return format!("{prefix}{name}"),
            (None, TensorDef::HostSlice(src, rank)) => {
                return format!("{}[{}]", self::tensor(program, *src), scalar_text(program, *rank));
            }
            (None, TensorDef::Slice(src, _)) => {
                prefix = "the slice of ";
                at = *src;
            }
            (None, TensorDef::View(buffer)) => return format!("{prefix}a view of {}", program.buffers[*buffer].name),
            (None, _) => return format!("{prefix}an unnamed tensor"),
        }
    }
}

/// `x is tensor[1, 256] f32`.
pub(super) fn tensor_is(program: &Program, tensor: Tensor) -> String {
    format!("{} is {}", self::tensor(program, tensor), tensor_type_text(program, tensor))
}

/// A tile's name.
pub(super) fn tile(program: &Program, tile: Tile) -> String {
    program.tiles[tile].name.clone().unwrap_or_else(|| "the tile".into())
}

/// `t is [1, 256] f32`.
pub(super) fn tile_is(program: &Program, tile: Tile) -> String {
    let data = &program.tiles[tile];
    format!("{} is {} {}", self::tile(program, tile), shape(program, &data.shape), data.dtype)
}

/// `[1, world]`.
pub(super) fn shape(program: &Program, shape: &[crate::ir::Extent]) -> String {
    let extents: Vec<String> = shape.iter().map(|&e| extent_text(program, e)).collect();
    format!("[{}]", extents.join(", "))
}

/// `scale is f32`.
pub(super) fn scalar_is(program: &Program, scalar: Scalar) -> String {
    format!("{} is {}", scalar_text(program, scalar), program.scalars[scalar].ty)
}

/// `1 argument`, `2 arguments`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
