//! Symmetric memory in files without names: each rank makes and reserves its part, passes it on, and maps all parts
//! side by side. No name means that nothing can be left behind, however a process ends.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use super::liveness::Roster;
use super::star::{Part, Star};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::space::{self, file_size};
use crate::transport::waiting::Operation;
use crate::transport::{Memory, need};

/// Mappings up to this size are faulted in when they are made, so that first launches run at full speed.
const POPULATE: usize = 64 << 20;

/// Most bytes that one call reserves. A signal makes the kernel undo the whole call.
const RESERVE_STEP: u64 = 16 << 20;

/// Where the ranks that map each other's memory are in a world that may have more.
#[derive(Clone, Copy, Debug)]
pub struct Among<'a> {
    /// This process's rank in that world.
    pub rank: u32,
    /// Those of all that share memory.
    pub places: &'a [u32],
    /// Ranks of that world.
    pub nranks: u32,
}

/// All agree about the size, and that there is enough for all.
pub fn agree(star: &mut Star, roster: &Roster, bytes: usize, deadline: Instant) -> Result<()> {
    let mine = Part { body: &need::encode(bytes), fd: None };
    let needs = star.gather(Operation::Allocate, Ok(mine), Some(roster), deadline)?;
    need::check(&needs.bodies, |_| 0)
}

/// Makes this rank's part, and maps those of all that share.
pub fn share(star: &mut Star, roster: &Roster, among: Among<'_>, bytes: usize, deadline: Instant) -> Result<Memory> {
    let mut gather = |mine: Result<Part<'_>>| star.gather(Operation::Allocate, mine, Some(roster), deadline);
    let at_rank = |error: Error| Error::new(error.kind, format!("rank {}: {}", among.rank, error.message));

    let own = create(bytes).map_err(at_rank);
    let mine = own.as_ref().map(|file| Part { body: &[], fd: Some(file.as_fd()) });
    let files = gather(mine.map_err(Error::clone))?.fds;

    let memory = files.and_then(|files| map_among(&files, among, bytes)).map_err(at_rank);
    gather(memory.as_ref().map(|_| Part { body: &[], fd: None }).map_err(Error::clone))?;
    memory
}

/// A file of at least `bytes` zeroed bytes that are reserved and that nobody can take away.
pub fn create(bytes: usize) -> Result<OwnedFd> {
    let size = file_size(bytes)?;
    space::check_file(size)?;
    let file = anonymous_file()?;
    retry(|| ftruncate(&file, size)).map_err(|e| Error::io(format!("setting the size of {size} bytes"), e))?;
    reserve(&file, size)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
        .map_err(|e| Error::io("sealing memory", e))?;
    Ok(file)
}

/// An empty file without a name.
fn anonymous_file() -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know the flag; later ones may be set up to insist on it.
    let file = match memfd_create("pld", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create("pld", flags),
        result => result,
    };
    file.map_err(|e| Error::io("memfd_create", e))
}

/// An error if the kernel gives no memory that processes can share.
pub fn check_available() -> Result<()> {
    anonymous_file().map(drop)
}

/// Takes the pages now, in steps that get through between two signals.
fn reserve(file: &OwnedFd, size: u64) -> Result<()> {
    let mut step = RESERVE_STEP;
    let mut offset = 0;
    while offset < size {
        let length = step.min(size - offset);
        match fallocate(file, FallocateFlags::empty(), offset, length) {
            Ok(()) => {
                offset += length;
                step = (step * 2).min(RESERVE_STEP);
            }
            Err(Errno::INTR) => step = (step / 2).max(rustix::param::page_size() as u64),
            Err(e @ (Errno::NOSPC | Errno::NOMEM | Errno::FBIG)) => {
                let message = format!("{size} bytes needed, {offset} reserved, then: {}", std::io::Error::from(e));
                return Err(Error::new(ErrorKind::NoSpace, message));
            }
            Err(e) => return Err(Error::io(format!("reserving {size} bytes"), e)),
        }
    }
    Ok(())
}

/// Maps files of `bytes`, one a rank, side by side.
pub fn map(files: &[OwnedFd], bytes: usize) -> Result<Memory> {
    let nranks = u32::try_from(files.len()).expect("at most one file a rank");
    map_among(files, Among { rank: 0, places: &(0..nranks).collect::<Vec<_>>(), nranks }, bytes)
}

/// Maps files of `bytes` at the places of their ranks; nothing can be touched at those of others.
fn map_among(files: &[OwnedFd], among: Among<'_>, bytes: usize) -> Result<Memory> {
    let size = file_size(bytes)?;
    let stride = Memory::stride_of(bytes)?;
    let memory = Memory::reserve(among.nranks, stride, ProtFlags::empty())?;
    let mut flags = MapFlags::SHARED | MapFlags::FIXED;
    if stride * files.len() <= POPULATE {
        flags |= MapFlags::POPULATE;
    }
    for (&rank, file) in among.places.iter().zip(files) {
        let stat = fstat(file).map_err(|e| Error::io("fstat", e))?;
        if stat.st_size as u64 != size {
            let message = format!("the memory of rank {rank} has {} bytes instead of {size}", stat.st_size);
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        // SAFETY: the range lies inside `memory`, which was reserved for it and holds nothing yet; the file is as long
        // as the range and sealed, so that touching it cannot fault.
        unsafe { mmap(memory.rank(rank).cast(), size as usize, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) }
            .map_err(|e| Error::new(ErrorKind::NoMemory, format!("mapping {size} bytes of rank {rank}: {e}")))?;
    }
    memory.advise();
    Ok(memory)
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
