//! Moving data between ranks.

use crate::ir::builder::{BAD_ARGUMENT, BAD_SHAPE, MAX_RANK};
use crate::ir::op::PeerRange;
use crate::ir::{Atomic, Region, Staging};

use super::build::{Call, build};
use super::collective::pld_combine_t;
use super::dim::{PLD_MAX_RANK, pld_dim_t};
use super::pointer::{Dims, Scalars};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::tensor::pld_tensor_t;
use super::tile::pld_tile_t;

/// How a remote write combines with what is there: a value of `enum pld_atomic`.
pub type pld_atomic_t = u32;

/// Values of `pld_atomic_t`.
#[repr(C)]
pub enum pld_atomic {
    /// Overwrites.
    PLD_ATOMIC_NONE = 0,
    /// Adds per element, each addition atomic: `f32`, `f16`, `bf16`, `i32`, `i16` and `i8`.
    PLD_ATOMIC_ADD = 1,
}

fn atomic(raw: pld_atomic_t) -> Option<Atomic> {
    match raw {
        0 => Some(Atomic::None),
        1 => Some(Atomic::Add),
        _ => None,
    }
}

/// What a put or get moves, and how. Made by `pld_region` or `pld_whole` (or for one call by `PLD_REGION`), then
/// changed where it should be.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_transfer_t {
    /// `sizeof(pld_transfer_t)`.
    pub struct_size: u32,
    /// Whether remote elements are overwritten or added to; put only.
    pub atomic: pld_atomic_t,
    /// Other than 0: two chunks in flight; needs both chunk sizes.
    pub pipeline: u32,
    /// Number of offsets in the destination.
    pub ndst: u32,
    /// Number of offsets in the source.
    pub nsrc: u32,
    /// Number of extents. With all three 0, whole tensors are moved.
    pub ndims: u32,
    /// Rows of a chunk on targets that stage transfers on chip; 0 for all. Never changes the result.
    pub chunk_rows: i64,
    /// Columns of a chunk; 0 for all.
    pub chunk_cols: i64,
    /// Where the region begins in the destination, in elements.
    pub dst: [pld_scalar_t; PLD_MAX_RANK],
    /// Where the region begins in the source, in elements.
    pub src: [pld_scalar_t; PLD_MAX_RANK],
    /// Its extents, in elements; `pld_dim_of` gives one that is computed when the program runs. A region with an
    /// extent of 0 moves nothing.
    pub shape: [pld_dim_t; PLD_MAX_RANK],
}

/// A transfer as the program has it.
struct Transfer {
    region: Option<Region>,
    atomic: Atomic,
    staging: Staging,
}

fn transfer(c: &mut Call, t: Option<&pld_transfer_t>) -> Option<Transfer> {
    let Some(t) = t else {
        return Some(Transfer { region: None, atomic: Atomic::None, staging: Staging::default() });
    };
    if t.struct_size as usize != size_of::<pld_transfer_t>() {
        let message =
            format!("the struct_size of the transfer is {}, not {}", t.struct_size, size_of::<pld_transfer_t>());
        c.builder.mistake(BAD_ARGUMENT, message, "pld_region and pld_whole make transfers");
        return None;
    }
    let (ndst, nsrc, ndims) = (t.ndst as usize, t.nsrc as usize, t.ndims as usize);
    if ndst.max(nsrc).max(ndims) > MAX_RANK {
        let message = format!("the transfer has {ndst} and {nsrc} offsets and {ndims} extents");
        c.builder.mistake(BAD_SHAPE, message, format!("at most {MAX_RANK} dimensions are possible"));
        return None;
    }
    let region = if (ndst, nsrc, ndims) == (0, 0, 0) {
        None
    } else {
        Some(Region {
            dst: c.scalars(&t.dst[..ndst], "an offset in the destination")?,
            src: c.scalars(&t.src[..nsrc], "an offset in the source")?,
            shape: c.transfer_shape(&t.shape[..ndims])?,
        })
    };
    let staging = Staging { chunk_rows: t.chunk_rows, chunk_cols: t.chunk_cols, pipeline: t.pipeline != 0 };
    Some(Transfer { region, atomic: c.known(atomic(t.atomic), "atomic", t.atomic)?, staging })
}

/// Moves data of this rank's tensor `src` into the window `dst` of rank `peer`; `peer` may be this rank. `t` says which
/// part; NULL for all of both. Element types and number of dimensions are the same.
///
/// Inside a task. Returns at once in the running program's order: `src` may be reused, but the data is visible to the
/// peer only once a later `pld_notify` of this task is awaited there. A peer or region that is outside ends the launch
/// with `PLD_ERR_OUT_OF_BOUNDS`; nothing is written then.
#[unsafe(no_mangle)]
pub extern "C" fn pld_put(
    p: Option<&mut pld_program_t>,
    dst: pld_tensor_t,
    peer: pld_scalar_t,
    src: pld_tensor_t,
    t: Option<&pld_transfer_t>,
) {
    build(p, |c| {
        let (dst, peer, src) = (c.get(dst, "dst")?, c.get(peer, "peer")?, c.get(src, "src")?);
        let Transfer { region, atomic, staging } = transfer(c, t)?;
        c.builder.put(dst, peer, src, region, atomic, staging);
        Some(())
    })
}

/// Moves data of rank `peer`'s window `src` into this rank's tensor `dst`; `t` as with `pld_put`, without atomic.
/// Inside a task. The data is there when the next operation of the task begins. What the peer wrote must have been
/// published to this rank by a notify that it awaited. Errors as with `pld_put`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_get(
    p: Option<&mut pld_program_t>,
    dst: pld_tensor_t,
    peer: pld_scalar_t,
    src: pld_tensor_t,
    t: Option<&pld_transfer_t>,
) {
    build(p, |c| {
        let (dst, peer, src) = (c.get(dst, "dst")?, c.get(peer, "peer")?, c.get(src, "src")?);
        let Transfer { region, atomic, staging } = transfer(c, t)?;
        if atomic != Atomic::None {
            c.builder.mistake(BAD_ARGUMENT, "a get cannot be atomic", "leave atomic at PLD_ATOMIC_NONE");
        }
        c.builder.get(dst, peer, src, region, staging);
        Some(())
    })
}

/// The region of `dst` becomes the combination of the same region of the window `src` of the ranks `first`, `first +
/// 1`, ... `end - 1` of its domain, in this order, counted on from rank 0 behind the last: `first` is a rank, and there
/// are at least one and at most all. `t` as with `pld_get`, without chunks. `dst` may be that region of `src` itself,
/// whose own part is read before it is written. Types are those of `pld_allreduce`; of `f32`, `f16` and `bf16`, `dst`
/// may be another than `src`: they combine in `f32`, and are rounded once. Inside a task; otherwise as `pld_get`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_get_reduce(
    p: Option<&mut pld_program_t>,
    dst: pld_tensor_t,
    first: pld_scalar_t,
    end: pld_scalar_t,
    src: pld_tensor_t,
    op: pld_combine_t,
    t: Option<&pld_transfer_t>,
) {
    build(p, |c| {
        let (dst, src) = (c.get(dst, "dst")?, c.get(src, "src")?);
        let peers = PeerRange { first: c.get(first, "first")?, end: c.get(end, "end")? };
        let op = c.combine(op)?;
        let Transfer { region, atomic, staging } = transfer(c, t)?;
        if atomic != Atomic::None || staging != Staging::default() {
            c.builder.mistake(BAD_ARGUMENT, "a get_reduce is neither atomic nor chunked", "give its region only");
        }
        c.builder.get_reduce(op, dst, peers, src, region);
        Some(())
    })
}

/// The part of rank `peer`'s `window` that begins at `offsets` and has this shape, as a tile; otherwise as `pld_get`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_remote_load(
    p: Option<&mut pld_program_t>,
    window: pld_tensor_t,
    peer: pld_scalar_t,
    offsets: Scalars,
    noffsets: usize,
    shape: Dims,
    ndims: usize,
) -> pld_tile_t {
    build(p, |c| {
        let (window, peer) = (c.get(window, "the window")?, c.get(peer, "peer")?);
        let (at, shape) = (c.offsets(offsets, noffsets)?, c.shape(shape, ndims)?);
        Some(c.builder.remote_load(window, peer, &at, shape))
    })
}

/// Writes a tile into rank `peer`'s `window`, beginning at `offsets`; otherwise as `pld_put`. On an NPU a notify in
/// another task does not publish it: keep the notify in the task that stores, or use `pld_put`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_remote_store(
    p: Option<&mut pld_program_t>,
    src: pld_tile_t,
    window: pld_tensor_t,
    peer: pld_scalar_t,
    offsets: Scalars,
    noffsets: usize,
    atomic: pld_atomic_t,
) {
    build(p, |c| {
        let (src, window, peer) = (c.get(src, "the tile")?, c.get(window, "the window")?, c.get(peer, "peer")?);
        let at = c.offsets(offsets, noffsets)?;
        let atomic = c.known(self::atomic(atomic), "atomic", atomic)?;
        c.builder.remote_store(src, window, peer, &at, atomic);
        Some(())
    })
}
