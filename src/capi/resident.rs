//! Residents: tensors that live with the ranks.

use std::mem::MaybeUninit;

use crate::error::{Error, Result};
use crate::runtime;

use super::dtype::{dtype, pld_dtype_t};
use super::guard;
use super::pointer::{Bytes, BytesOut, Dims, Resident, World};
use super::reserve;
use super::status::pld_status_t;

/// Memory that lives with the ranks and that launches use as it is, without staging: weights, caches. Either the tensor
/// of one rank, or stacked: one shard for each rank of this process. Any number of threads may use it at once, until one
/// destroys it. It ends with its world; then it may only be destroyed.
pub struct pld_resident_t {
    pub(super) resident: runtime::Resident,
}

/// Makes a zeroed tensor of one rank, which must be one that this process drives. `dims` are numbers. As argument of a
/// launch (`pld_arg_resident`) it stands where all that this process passes is one tensor: for a parameter that is not
/// sliced by rank, and in a world of processes for any. The caller owns it and destroys it with `pld_resident_destroy`.
/// Local; callable from any thread.
///
/// Errors: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_INVALID_STATE` if the world was left, `PLD_ERR_NO_MEMORY`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_resident_create(
    w: World,
    rank: u32,
    dtype: pld_dtype_t,
    dims: Dims,
    ndims: usize,
    out_resident: Option<&mut MaybeUninit<*mut pld_resident_t>>,
) -> pld_status_t {
    made(w, dtype, dims, ndims, out_resident, |world, dtype, shape| {
        runtime::Resident::create(world, rank, dtype, shape)
    })
}

/// Makes a zeroed tensor of this shape for each rank that this process drives. As argument of a launch it stands for a
/// parameter that is sliced by rank: shard `r` goes to rank `r`. Otherwise as `pld_resident_create`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_resident_create_stacked(
    w: World,
    dtype: pld_dtype_t,
    dims: Dims,
    ndims: usize,
    out_resident: Option<&mut MaybeUninit<*mut pld_resident_t>>,
) -> pld_status_t {
    made(w, dtype, dims, ndims, out_resident, runtime::Resident::create_stacked)
}

/// Fills `rank`'s part, which has `size` bytes. Local; returns when it is done, so that the memory at `src` may be used
/// for other things. On cards it waits for launches that `pld_launch_on` has queued. Callable from any thread.
///
/// Errors: `PLD_ERR_BUSY` while a launch, or a run that has not ended, uses it, or another thread copies;
/// `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_INVALID_STATE` if the world was left.
#[unsafe(no_mangle)]
pub extern "C" fn pld_resident_copy_in(b: Resident, rank: u32, src: Bytes, size: usize) -> pld_status_t {
    guard::status(|| b.get("the resident")?.resident.copy_in(rank, src.get(size, "src")?))
}

/// Copies `rank`'s part, which has `size` bytes, to `dst`. Otherwise as `pld_resident_copy_in`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_resident_copy_out(b: Resident, rank: u32, dst: BytesOut, size: usize) -> pld_status_t {
    guard::status(|| b.get("the resident")?.resident.copy_out(rank, dst.get(size, "dst")?))
}

/// Frees a resident; NULL is ignored. Local. Nobody else may use it any more; runs under way keep its memory until they
/// end.
#[unsafe(no_mangle)]
pub extern "C" fn pld_resident_destroy(b: Option<Box<pld_resident_t>>) {
    guard::value((), || {
        drop(b);
        Ok(())
    });
}

fn made(
    w: World,
    raw: pld_dtype_t,
    dims: Dims,
    ndims: usize,
    out: Option<&mut MaybeUninit<*mut pld_resident_t>>,
    make: impl FnOnce(&runtime::World, crate::ir::DType, &[i64]) -> Result<runtime::Resident>,
) -> pld_status_t {
    guard::status(|| {
        let out = out.ok_or_else(|| Error::invalid("out_resident is NULL"))?;
        let w = w.get("the world")?;
        let dtype = dtype(raw).ok_or_else(|| Error::invalid(format!("dtype {raw} is unknown")))?;
        let shape = dims.get(ndims).ok_or_else(|| Error::invalid(format!("dims is NULL, but ndims is {ndims}")))?;
        reserve::ensure(0)?;
        let resident = make(&w.world, dtype, shape)?;
        out.write(Box::into_raw(Box::new(pld_resident_t { resident })));
        Ok(())
    })
}
