//! Entries: the code that the host driver dispatches once a rank.

use crate::ir::Direction;

use super::build::build;
use super::dtype::pld_dtype_t;
use super::pointer::{Dims, Text};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::tensor::pld_tensor_t;

/// An entry.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_entry_t {
    /// 0 is no entry.
    pub id: u32,
}

/// What is done with a tensor parameter: a value of `enum pld_direction`.
pub type pld_direction_t = u32;

/// Values of `pld_direction_t`.
#[repr(C)]
pub enum pld_direction {
    /// Read only.
    PLD_IN = 1,
    /// Written.
    PLD_OUT = 2,
    /// Read and written.
    PLD_INOUT = 3,
}

/// The direction that a number stands for.
pub(super) fn direction(raw: pld_direction_t) -> Option<Direction> {
    match raw {
        1 => Some(Direction::In),
        2 => Some(Direction::Out),
        3 => Some(Direction::InOut),
        _ => None,
    }
}

/// The number that stands for a direction.
pub(super) fn number(direction: Direction) -> pld_direction_t {
    let number = match direction {
        Direction::In => pld_direction::PLD_IN,
        Direction::Out => pld_direction::PLD_OUT,
        Direction::InOut => pld_direction::PLD_INOUT,
    };
    number as pld_direction_t
}

/// Begins an entry: parameters first, then tasks. `pld_entry_end` ends it. Entries stand side by side, before the host
/// driver.
#[unsafe(no_mangle)]
pub extern "C" fn pld_entry_begin(p: Option<&mut pld_program_t>, name: Text) -> pld_entry_t {
    build(p, |c| {
        let name = c.name(name);
        Some(c.builder.entry_begin(name))
    })
}

/// Ends the entry.
#[unsafe(no_mangle)]
pub extern "C" fn pld_entry_end(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.entry_end();
        Some(())
    })
}

/// A tensor parameter of the open entry: memory of this rank only.
#[unsafe(no_mangle)]
pub extern "C" fn pld_param_tensor(
    p: Option<&mut pld_program_t>,
    name: Text,
    dtype: pld_dtype_t,
    dims: Dims,
    ndims: usize,
    direction: pld_direction_t,
) -> pld_tensor_t {
    build(p, |c| {
        let (name, dtype, shape) = (c.name(name), c.dtype(dtype)?, c.shape(dims, ndims)?);
        let direction = c.known(self::direction(direction), "direction", direction)?;
        c.builder.param_tensor(name, dtype, shape, direction)
    })
}

/// A window parameter of the open entry: memory that every rank has and the others can reach. To its own rank a window
/// is a tensor like any other.
#[unsafe(no_mangle)]
pub extern "C" fn pld_param_window(
    p: Option<&mut pld_program_t>,
    name: Text,
    dtype: pld_dtype_t,
    dims: Dims,
    ndims: usize,
) -> pld_tensor_t {
    build(p, |c| {
        let (name, dtype, shape) = (c.name(name), c.dtype(dtype)?, c.shape(dims, ndims)?);
        c.builder.param_window(name, dtype, shape)
    })
}

/// A scalar parameter of the open entry, of type `i32`, `i64`, `f32` or `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_param_scalar(p: Option<&mut pld_program_t>, name: Text, dtype: pld_dtype_t) -> pld_scalar_t {
    build(p, |c| {
        let (name, ty) = (c.name(name), c.scalar_type(dtype)?);
        c.builder.param_scalar(name, ty)
    })
}
