//! Tensors that live with the ranks: on their cards, or in memory like any other where ranks run on CPUs. Launches use
//! their memory as it is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::aligned::Aligned;
use super::args::{Arg, TensorArg};
use super::core::Core;
use super::world::World;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::DType;
use crate::ir::builder::MAX_RANK;
use crate::transport::hccl::DeviceMemory;

/// A tensor of one rank, or one of the same shape a rank of this process. Dropping it does not take memory away from
/// runs under way. Ends with its world: then only dropping is allowed.
pub struct Resident {
    shards: Arc<Shards>,
}

/// The memory of a resident, and who uses it.
pub(super) struct Shards {
    /// Tells residents apart, also those that have been dropped.
    pub(super) id: u64,
    core: Arc<Core>,
    dtype: DType,
    shape: Vec<i64>,
    bytes: usize,
    /// One shard a rank of this process, rather than one rank's tensor.
    pub(super) stacked: bool,
    /// The rank of the first shard.
    first: u32,
    parts: Vec<Part>,
    /// Launches and runs that use it, or `COPYING`.
    users: AtomicU32,
}

const COPYING: u32 = u32::MAX;

/// Memory of a shard.
enum Part {
    Host(Aligned),
    Card(DeviceMemory),
}

impl Part {
    fn new(core: &Core, rank: u32, bytes: usize) -> Result<Self> {
        match core.queue(rank) {
            None => Aligned::new(bytes, "a resident tensor").map(Part::Host),
            Some(queue) => queue.card().allocate(bytes).map(Part::Card),
        }
    }

    fn address(&self) -> *mut u8 {
        match self {
            Part::Host(memory) => memory.as_ptr(),
            Part::Card(memory) => std::ptr::without_provenance_mut(memory.address() as usize),
        }
    }
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shards { dtype, shape, stacked, first, .. } = &*self.shards;
        f.debug_struct("Resident")
            .field("dtype", dtype)
            .field("shape", shape)
            .field("stacked", stacked)
            .field("first", first)
            .finish_non_exhaustive()
    }
}

impl Resident {
    /// A zeroed tensor of `rank`, which this process drives. Local.
    pub fn create(world: &World, rank: u32, dtype: DType, shape: &[i64]) -> Result<Self> {
        let core = world.core();
        if !core.local.contains(&rank) {
            let (first, last) = (core.local.start, core.local.end - 1);
            let message = format!("rank {rank} is not one that this process drives: those are {first} to {last}");
            return Err(Error::invalid(message));
        }
        Self::new(core, dtype, shape, false, rank, 1)
    }

    /// A zeroed shard of this shape for each rank that this process drives. Local.
    pub fn create_stacked(world: &World, dtype: DType, shape: &[i64]) -> Result<Self> {
        let core = world.core();
        Self::new(core, dtype, shape, true, core.local.start, core.local.len())
    }

    fn new(core: &Arc<Core>, dtype: DType, shape: &[i64], stacked: bool, first: u32, count: usize) -> Result<Self> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        core.check_here()?;
        if shape.len() > MAX_RANK {
            return Err(Error::invalid(format!("{} dimensions, but {MAX_RANK} are possible", shape.len())));
        }
        if let Some(axis) = shape.iter().position(|&extent| extent < 0) {
            return Err(Error::invalid(format!("the extent in dimension {axis} is {}", shape[axis])));
        }
        let bytes = shape.iter().try_fold(dtype.size(), |n, &extent| n.checked_mul(extent));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| Error::invalid(format!("the shape {shape:?} exceeds the address space")))?;
        let parts = (first..).take(count).map(|rank| Part::new(core, rank, bytes)).collect::<Result<_>>()?;
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let (core, shape, users) = (core.clone(), shape.to_vec(), AtomicU32::new(0));
        Ok(Self { shards: Arc::new(Shards { id, core, dtype, shape, bytes, stacked, first, parts, users }) })
    }

    /// Fills the shard of `rank`, all of it. `Busy` while a launch or run uses the tensor, or another thread copies.
    pub fn copy_in(&self, rank: u32, src: &[u8]) -> Result<()> {
        let (part, _copying) = self.shards.begin_copy(rank, src.len())?;
        match part {
            // SAFETY: the shard has as many bytes, which nobody else uses during the copy; `src` is other memory.
            Part::Host(part) => unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), part.as_ptr(), src.len()) },
            Part::Card(part) => part.write(0, src)?,
        }
        Ok(())
    }

    /// Copies the shard of `rank`, all of it. `Busy` while a launch or run uses the tensor, or another thread copies.
    pub fn copy_out(&self, rank: u32, dst: &mut [u8]) -> Result<()> {
        let (part, _copying) = self.shards.begin_copy(rank, dst.len())?;
        match part {
            // SAFETY: as in `copy_in`.
            Part::Host(part) => unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), dst.as_mut_ptr(), dst.len()) },
            Part::Card(part) => part.read(0, dst)?,
        }
        Ok(())
    }

    pub(super) fn shards(&self) -> &Arc<Shards> {
        &self.shards
    }
}

impl Shards {
    /// It belongs to the world with this inside.
    pub(super) fn is_of(&self, core: *const Core) -> bool {
        Arc::as_ptr(&self.core) == core
    }

    /// Each rank that has a shard, with the shard as a tensor.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (u32, TensorArg<'_>)> {
        let tensor =
            |part: &Part| TensorArg { data: part.address(), dtype: self.dtype, shape: &self.shape, strides: None };
        (self.first..).zip(self.parts.iter().map(tensor))
    }

    fn begin_copy(&self, rank: u32, bytes: usize) -> Result<(&Part, Copying<'_>)> {
        self.core.check_here()?;
        let part = rank.checked_sub(self.first).and_then(|index| self.parts.get(index as usize));
        let part = part.ok_or_else(|| Error::invalid(format!("this resident has no shard of rank {rank}")))?;
        if bytes != self.bytes {
            return Err(Error::invalid(format!("a copy of {bytes} bytes, but the shard has {}", self.bytes)));
        }
        // What an engine has seen the end of on its stream may not yet be known to have ended.
        if self.users.load(Ordering::Relaxed) > 0 && self.core.flights.pending() {
            self.core.flights.wait_idle();
        }
        // Acquire: what its last users wrote is there.
        match self.users.compare_exchange(0, COPYING, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok((part, Copying(self))),
            Err(COPYING) => Err(Error::new(ErrorKind::Busy, "another thread copies this resident")),
            Err(users) => {
                let message = format!("a resident that launches under way use ({users} times) cannot be copied");
                Err(Error::new(ErrorKind::Busy, message))
            }
        }
    }

    fn begin_use(&self) -> Result<()> {
        let used = |users: u32| (users != COPYING).then(|| users + 1);
        match self.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, used) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::new(ErrorKind::Busy, "another thread copies a resident of this launch")),
        }
    }

    fn end_use(&self) {
        self.users.fetch_sub(1, Ordering::Release);
    }
}

/// A copy under way, until dropped.
struct Copying<'a>(&'a Shards);

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.users.store(0, Ordering::Release);
    }
}

fn residents<'a>(args: &'a [Arg<'a>]) -> impl Iterator<Item = &'a Arc<Shards>> {
    args.iter().filter_map(|arg| if let Arg::Resident(resident) = arg { Some(resident.shards()) } else { None })
}

/// The use of the residents among arguments by a launch, until dropped.
pub(super) struct InUse<'a>(&'a [Arg<'a>]);

impl<'a> InUse<'a> {
    pub(super) fn new(args: &'a [Arg<'a>]) -> Result<Self> {
        for (index, shards) in residents(args).enumerate() {
            if let Err(busy) = shards.begin_use() {
                residents(args).take(index).for_each(|shards| shards.end_use());
                return Err(busy);
            }
        }
        Ok(Self(args))
    }

    /// The same for a run, which outlives the arguments.
    pub(super) fn keep(self) -> Kept {
        let kept = residents(self.0).cloned().collect();
        // What this has begun is for the other to end.
        std::mem::forget(self);
        Kept(kept)
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        residents(self.0).for_each(|shards| shards.end_use());
    }
}

/// The use of residents by a run, until dropped; their memory lives as long.
pub(super) struct Kept(Vec<Arc<Shards>>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.iter().for_each(|shards| shards.end_use());
    }
}
