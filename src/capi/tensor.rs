//! Tensors: memory with a shape.

use super::build::build;
use super::pointer::{Dims, Scalars, Text};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;

/// A tensor: a parameter, a window view, or a slice of either. Row-major.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_tensor_t {
    /// 0 is no tensor.
    pub id: u32,
}

/// The part of `tensor` that begins at `offsets` and has this shape, in elements, as a tensor of its own over the same
/// memory; a part of a window is a window. In an entry, inside or outside its tasks. Offsets that are outside when the
/// program runs end the launch with `PLD_ERR_OUT_OF_BOUNDS`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_slice(
    p: Option<&mut pld_program_t>,
    tensor: pld_tensor_t,
    offsets: Scalars,
    noffsets: usize,
    shape: Dims,
    ndims: usize,
) -> pld_tensor_t {
    build(p, |c| {
        let tensor = c.get(tensor, "the tensor")?;
        let (at, shape) = (c.offsets(offsets, noffsets)?, c.shape(shape, ndims)?);
        Some(c.builder.slice(tensor, &at, shape))
    })
}

/// All elements of `tensor` in one dimension, over the same memory. It is packed: a parameter, or a part without gaps.
/// In an entry, inside or outside its tasks.
#[unsafe(no_mangle)]
pub extern "C" fn pld_flatten(p: Option<&mut pld_program_t>, tensor: pld_tensor_t) -> pld_tensor_t {
    build(p, |c| {
        let tensor = c.get(tensor, "the tensor")?;
        Some(c.builder.flatten(tensor))
    })
}

/// Gives a slice or a view a name, which the program's text and all messages show.
#[unsafe(no_mangle)]
pub extern "C" fn pld_tensor_name(p: Option<&mut pld_program_t>, tensor: pld_tensor_t, name: Text) {
    build(p, |c| {
        let (tensor, name) = (c.get(tensor, "the tensor")?, c.name(name));
        c.builder.name_tensor(tensor, name);
        Some(())
    })
}

/// One element of this rank's `tensor` as a scalar, widened as `enum pld_dtype` says. Inside a task. Not ordered with
/// other ranks: only `pld_wait` makes what they wrote visible. An element that is outside ends the launch with
/// `PLD_ERR_OUT_OF_BOUNDS`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_read(
    p: Option<&mut pld_program_t>,
    tensor: pld_tensor_t,
    offsets: Scalars,
    noffsets: usize,
) -> pld_scalar_t {
    build(p, |c| {
        let tensor = c.get(tensor, "the tensor")?;
        let at = c.offsets(offsets, noffsets)?;
        Some(c.builder.read(tensor, &at))
    })
}

/// Changes one element of this rank's `tensor`. Integers wrap into the element type, floats round to nearest even;
/// between integer and float `pld_cast` comes first. Inside a task; ordering and errors as with `pld_read`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_write(
    p: Option<&mut pld_program_t>,
    tensor: pld_tensor_t,
    offsets: Scalars,
    noffsets: usize,
    value: pld_scalar_t,
) {
    build(p, |c| {
        let tensor = c.get(tensor, "the tensor")?;
        let (at, value) = (c.offsets(offsets, noffsets)?, c.get(value, "the value")?);
        c.builder.write(tensor, &at, value);
        Some(())
    })
}
