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
use crate::transport::Memory;
use crate::transport::space::{self, Limit, Scope};
use crate::transport::waiting::Operation;
use crate::transport::wire::{Put, Reader};

/// Mappings up to this size are faulted in when they are made, so that first launches run at full speed.
const POPULATE: usize = 64 << 20;

/// Most bytes that one call reserves. A signal makes the kernel undo the whole call.
const RESERVE_STEP: u64 = 16 << 20;

/// [`crate::transport::Transport::allocate`].
pub fn allocate(star: &mut Star, roster: &Roster, rank: u32, bytes: usize, deadline: Instant) -> Result<Memory> {
    let mut gather = |mine: Result<Part<'_>>| star.gather(Operation::Allocate, mine, Some(roster), deadline);
    let at_rank = |error: Error| Error::new(error.kind, format!("rank {rank}: {}", error.message));

    // Nobody touches memory before all know that the sizes agree and that there is enough for all.
    let body = encode_need(bytes, &space::limits());
    let needs = gather(Ok(Part { body: &body, fd: None }))?;
    check(&needs.bodies)?;

    let own = create(bytes).map_err(at_rank);
    let mine = own.as_ref().map(|file| Part { body: &[], fd: Some(file.as_fd()) });
    let files = gather(mine.map_err(Error::clone))?.fds;

    let memory = files.and_then(|files| map(&files, bytes)).map_err(at_rank);
    gather(memory.as_ref().map(|_| Part { body: &[], fd: None }).map_err(Error::clone))?;
    memory
}

/// The same verdict on every rank, from the same messages.
fn check(needs: &[Vec<u8>]) -> Result<()> {
    let needs = needs.iter().map(|body| decode_need(body)).collect::<Result<Vec<_>>>()?;
    let sizes = needs.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>();
    if let Some(rank) = sizes.iter().position(|size| *size != sizes[0]) {
        let (first, other) = (sizes[0], sizes[rank]);
        let message = format!("rank 0 allocates {first} bytes while rank {rank} allocates {other}");
        return Err(Error::new(ErrorKind::Mismatch, message));
    }
    // Files have whole pages.
    let size = file_size(sizes[0] as usize)?;
    space::check_ranks(size, &needs.into_iter().map(|(_, limits)| limits).collect::<Vec<_>>())
}

fn encode_need(bytes: usize, limits: &[Limit]) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u64(bytes as u64);
    for Limit { scope, available, name } in limits {
        let (tag, pool) = match scope {
            Scope::Part => (0, 0),
            Scope::Mapping => (1, 0),
            Scope::Pool(pool) => (2, *pool),
        };
        body.put_u32(tag);
        body.put_u64(pool);
        body.put_u64(*available);
        body.put_bytes(name.as_bytes());
    }
    body
}

fn decode_need(body: &[u8]) -> Result<(u64, Vec<Limit>)> {
    let mut reader = Reader(body);
    let bytes = reader.u64()?;
    let mut limits = Vec::new();
    while !reader.is_empty() {
        let (tag, pool) = (reader.u32()?, reader.u64()?);
        let scope = match tag {
            0 => Scope::Part,
            1 => Scope::Mapping,
            _ => Scope::Pool(pool),
        };
        limits.push(Limit { scope, available: reader.u64()?, name: reader.string()? });
    }
    Ok((bytes, limits))
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
    let size = file_size(bytes)?;
    let stride = Memory::stride_of(bytes)?;
    let nranks = u32::try_from(files.len()).expect("at most one file a rank");
    let memory = Memory::reserve(nranks, stride, ProtFlags::empty())?;
    let mut flags = MapFlags::SHARED | MapFlags::FIXED;
    if stride * files.len() <= POPULATE {
        flags |= MapFlags::POPULATE;
    }
    for (rank, file) in (0..nranks).zip(files) {
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

fn file_size(bytes: usize) -> Result<u64> {
    let size = bytes.max(1).checked_next_multiple_of(rustix::param::page_size());
    let size = size.filter(|size| isize::try_from(*size).is_ok());
    size.map(|size| size as u64)
        .ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("{bytes} bytes exceed any memory")))
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
