//! The host driver: allocates windows and dispatches entries, once a launch.
//!
//! It has no begin and end: what stands outside every entry belongs to it.

use crate::ir::Operand;
use crate::ir::program::BufferSize;

use super::build::build;
use super::domain::pld_domain_t;
use super::dtype::pld_dtype_t;
use super::entry::{direction, pld_direction_t, pld_entry_t};
use super::pointer::{Dims, Operands, Text};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::tensor::pld_tensor_t;

/// A window buffer: symmetric memory of the same size on every rank.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_buffer_t {
    /// 0 is no buffer.
    pub id: u32,
}

/// What an operand of a dispatch is: a value of `enum pld_operand_kind`.
pub type pld_operand_kind_t = u32;

/// Values of `pld_operand_kind_t`.
#[repr(C)]
pub enum pld_operand_kind {
    /// A tensor or a window view.
    PLD_OPERAND_TENSOR = 1,
    /// A scalar.
    PLD_OPERAND_SCALAR = 2,
}

/// An operand of a dispatch, made by `pld_of_tensor` or `pld_of_scalar`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_operand_t {
    /// Which of the two it is.
    pub kind: pld_operand_kind_t,
    /// The tensor.
    pub tensor: pld_tensor_t,
    /// The scalar.
    pub scalar: pld_scalar_t,
}

/// A tensor parameter of the host driver: an argument of a launch. If its first extent is `PLD_WORLD` and it is sliced
/// by `pld_slice_rank`, every rank has a part of it; otherwise every rank sees all of it. Parameters come first, after
/// the entries.
#[unsafe(no_mangle)]
pub extern "C" fn pld_host_tensor(
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
        c.builder.host_tensor(name, dtype, shape, direction)
    })
}

/// A scalar parameter of the host driver, of type `i32`, `i64`, `f32` or `bool`: an argument of a launch.
#[unsafe(no_mangle)]
pub extern "C" fn pld_host_scalar(p: Option<&mut pld_program_t>, name: Text, dtype: pld_dtype_t) -> pld_scalar_t {
    build(p, |c| {
        let (name, ty) = (c.name(name), c.scalar_type(dtype)?);
        c.builder.host_scalar(name, ty)
    })
}

/// Reserves a window buffer of this shape and element type on every rank. It begins zeroed. The ranks that number each
/// other in it, its domain, are those to which its views are dispatched.
#[unsafe(no_mangle)]
pub extern "C" fn pld_alloc_window(
    p: Option<&mut pld_program_t>,
    name: Text,
    dtype: pld_dtype_t,
    dims: Dims,
    ndims: usize,
) -> pld_buffer_t {
    build(p, |c| {
        let (name, dtype, shape) = (c.name(name), c.dtype(dtype)?, c.shape(dims, ndims)?);
        Some(c.builder.alloc_window(name, dtype, shape))
    })
}

/// Reserves a window buffer of this many bytes on every rank, for several views of different shapes. It begins zeroed.
/// `bytes` is made of numbers, the world size and constants.
#[unsafe(no_mangle)]
pub extern "C" fn pld_alloc_window_bytes(
    p: Option<&mut pld_program_t>,
    name: Text,
    bytes: pld_scalar_t,
) -> pld_buffer_t {
    build(p, |c| {
        let (name, bytes) = (c.name(name), c.get(bytes, "bytes")?);
        let bytes = c.builder.extent(bytes)?;
        Some(c.builder.alloc_window_bytes(name, bytes))
    })
}

/// Reserves a window buffer of this shape and element type for the ranks of a domain. As `pld_alloc_window` otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn pld_alloc_window_in(
    p: Option<&mut pld_program_t>,
    domain: pld_domain_t,
    name: Text,
    dtype: pld_dtype_t,
    dims: Dims,
    ndims: usize,
) -> pld_buffer_t {
    build(p, |c| {
        let (domain, name) = (c.get(domain, "the domain")?, c.name(name));
        let size = BufferSize::Shape(c.dtype(dtype)?, c.shape(dims, ndims)?);
        Some(c.builder.alloc_window_in(Some(domain), name, size))
    })
}

/// Reserves a window buffer of this many bytes for the ranks of a domain. As `pld_alloc_window_bytes` otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn pld_alloc_window_bytes_in(
    p: Option<&mut pld_program_t>,
    domain: pld_domain_t,
    name: Text,
    bytes: pld_scalar_t,
) -> pld_buffer_t {
    build(p, |c| {
        let (domain, name, bytes) = (c.get(domain, "the domain")?, c.name(name), c.get(bytes, "bytes")?);
        let size = BufferSize::Bytes(c.builder.extent(bytes)?);
        Some(c.builder.alloc_window_in(Some(domain), name, size))
    })
}

/// A view of a window buffer, which can be passed to window parameters. It takes the name of the parameter unless
/// `pld_tensor_name` gives it one.
#[unsafe(no_mangle)]
pub extern "C" fn pld_window(
    p: Option<&mut pld_program_t>,
    buffer: pld_buffer_t,
    dtype: pld_dtype_t,
    dims: Dims,
    ndims: usize,
) -> pld_tensor_t {
    build(p, |c| {
        let (buffer, dtype, shape) = (c.get(buffer, "the buffer")?, c.dtype(dtype)?, c.shape(dims, ndims)?);
        Some(c.builder.window(buffer, dtype, shape))
    })
}

/// Begins a loop over ranks, from `first` up to, but without, `end`, and returns the rank, an `i32` that is valid
/// inside. `pld_ranks_end` ends it.
#[unsafe(no_mangle)]
pub extern "C" fn pld_ranks_begin(
    p: Option<&mut pld_program_t>,
    first: pld_scalar_t,
    end: pld_scalar_t,
) -> pld_scalar_t {
    build(p, |c| {
        let (first, end) = (c.get_or_zero(first, "first"), c.get_or_zero(end, "end"));
        Some(c.builder.ranks_begin(first, end))
    })
}

/// Ends the loop over ranks.
#[unsafe(no_mangle)]
pub extern "C" fn pld_ranks_end(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.ranks_end();
        Some(())
    })
}

/// Rank `rank`'s part of a host tensor, without the leading axis.
#[unsafe(no_mangle)]
pub extern "C" fn pld_slice_rank(
    p: Option<&mut pld_program_t>,
    host_tensor: pld_tensor_t,
    rank: pld_scalar_t,
) -> pld_tensor_t {
    build(p, |c| {
        let (tensor, rank) = (c.get(host_tensor, "the host tensor")?, c.get(rank, "the rank")?);
        Some(c.builder.slice_rank(tensor, rank))
    })
}

/// Runs an entry on rank `device`, with one operand for each of its parameters. The dispatches of one rank run in
/// order; nothing orders those of different ranks.
#[unsafe(no_mangle)]
pub extern "C" fn pld_dispatch(
    p: Option<&mut pld_program_t>,
    entry: pld_entry_t,
    device: pld_scalar_t,
    args: Operands,
    nargs: usize,
) {
    build(p, |c| {
        let (entry, device) = (c.get(entry, "the entry")?, c.get(device, "the device")?);
        let args = c.known(args.get(nargs), "a NULL list of operands with count", nargs)?;
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            operands.push(match arg.kind {
                1 => Operand::Tensor(c.get(arg.tensor, "a tensor operand")?),
                2 => Operand::Scalar(c.get(arg.scalar, "a scalar operand")?),
                kind => return c.known(None, "operand kind", kind),
            });
        }
        c.builder.dispatch(entry, device, operands);
        Some(())
    })
}
