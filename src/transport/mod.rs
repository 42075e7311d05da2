//! How ranks share memory and find each other. One contract, one file or folder an implementation.
//!
//! A transport gives its ranks two things: *symmetric memory* (each rank contributes the same number of zeroed bytes,
//! and all see all, at a fixed distance from one another) and an *exchange* of small messages. Everything else -
//! signals, failures, launches - is built on these by [`crate::runtime`]. A transport knows nothing of programs.
//!
//! Collective functions are called by all ranks in the same order. They end by themselves: with success on every rank,
//! or with an error on every rank that is still there, with the same text. After an error that is not about a lost
//! rank the transport can go on: the failed call counts as done, and a rank that comes to it later gets its error too.

pub(crate) mod background;
pub mod far;
pub mod hccl;
mod hello;
mod host;
mod hosts;
pub mod join;
mod launcher;
mod need;
pub mod shm;
mod space;
pub mod thread;
pub mod ucx;
mod waiting;
pub(crate) mod wire;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::error::{Error, ErrorKind, Result};

/// Longest message of an exchange.
pub const MAX_MESSAGE: usize = 64 << 10;

/// Largest world of one host.
pub const MAX_RANKS: u32 = 4096;

/// Parts of this size and more are laid out for huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// The transports by name, and for each whether it can be used here: an error says why not.
pub fn availability() -> Vec<(&'static str, Result<()>)> {
    vec![
        ("thread", Ok(())),
        ("shm", shm::check_available()),
        ("ucx", ucx::check_available()),
        ("hccl", hccl::check_available()),
    ]
}

/// What every transport can do.
pub trait Transport: Send + Sync {
    /// Its name: `thread`, `shm`, `ucx`, `hccl`.
    fn name(&self) -> &'static str;

    /// Number of ranks of the world.
    fn nranks(&self) -> u32;

    /// The ranks that this process drives: all of them, or one.
    fn local(&self) -> Range<u32>;

    /// Sends `mine` to all ranks and returns everyone's, by rank. Collective; a process that drives all ranks gets
    /// its own message once a rank. Small messages only ([`MAX_MESSAGE`] at most).
    fn exchange(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>>;

    /// `bytes` of zeroed memory a rank, reserved so that touching it cannot fail later. Collective. If it does not fit,
    /// `NoSpace` on every rank, with needed and available bytes.
    fn allocate(&self, bytes: usize, deadline: Instant) -> Result<Memory>;

    /// A rank whose process has ended without leaving, if there is one. At most one system call.
    fn lost(&self) -> Option<u32>;

    /// Says that this process's ranks take no further part, so that their end is no loss to the others. Local, never
    /// blocks, idempotent; dropping the transport does it too.
    fn leave(&self);

    /// The ranks whose memory is not mapped here, if there are any.
    fn far(&self) -> Option<&dyn far::FarRanks> {
        None
    }

    /// The cards of this process's ranks, where ranks have cards.
    fn cards(&self) -> Option<&hccl::Cards> {
        None
    }
}

/// Symmetric memory: rank `r`'s part begins at `base + r * stride`.
#[derive(Debug)]
pub struct Memory {
    mapping: Arc<Mapping>,
    /// How the parts of ranks are reached that are not mapped: nothing can be touched at their addresses.
    far: Option<Arc<dyn far::FarMemory>>,
}

/// The addresses of a [`Memory`]. Unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    base: *mut u8,
    stride: usize,
    nranks: u32,
}

// SAFETY: the memory belongs to no thread; who may touch which byte when is for the user of the memory to order.
unsafe impl Send for Mapping {}
// SAFETY: as above; the struct itself is never changed.
unsafe impl Sync for Mapping {}

impl Memory {
    /// Address of rank `rank`'s part.
    pub fn rank(&self, rank: u32) -> *mut u8 {
        debug_assert!(rank < self.mapping.nranks);
        self.mapping.base.wrapping_add(rank as usize * self.mapping.stride)
    }

    /// Bytes between the parts of neighbouring ranks.
    pub fn stride(&self) -> usize {
        self.mapping.stride
    }

    /// What keeps the addresses.
    pub fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.mapping)
    }

    /// The same memory, with other parts that are reached in this way.
    fn with_far(mut self, far: Arc<dyn far::FarMemory>) -> Self {
        self.far = Some(far);
        self
    }

    /// How ranks are reached whose parts are not mapped.
    pub fn far(&self) -> Option<&Arc<dyn far::FarMemory>> {
        self.far.as_ref()
    }

    /// Distance of parts of `bytes`: whole pages, huge ones for large parts.
    fn stride_of(bytes: usize) -> Result<usize> {
        let page = if bytes < HUGE_PAGE { rustix::param::page_size() } else { HUGE_PAGE };
        let stride = bytes.max(1).checked_next_multiple_of(page);
        stride.ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("{bytes} bytes exceed the address space")))
    }

    /// Private anonymous addresses for `nranks` parts, zero where `access` allows reading; no memory is used yet.
    fn reserve(nranks: u32, stride: usize, access: ProtFlags) -> Result<Self> {
        let no_memory = |what: String| Error::new(ErrorKind::NoMemory, what);
        let align = if stride < HUGE_PAGE { rustix::param::page_size() } else { HUGE_PAGE };
        let length = (stride.checked_mul(nranks as usize)).and_then(|length| length.checked_add(align));
        let length =
            length.ok_or_else(|| no_memory(format!("{nranks} times {stride} bytes exceed the address space")))?;
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing one.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), length, access, MapFlags::PRIVATE | MapFlags::NORESERVE) };
        let start = start.map_err(|e| no_memory(format!("mapping {length} bytes: {e}")))?.cast::<u8>();
        let before = start.addr().next_multiple_of(align) - start.addr();
        let mapping = Mapping { base: start.wrapping_add(before), stride, nranks };
        for (spare, size) in [(start, before), (mapping.end(), align - before)].into_iter().filter(|spare| spare.1 > 0)
        {
            // SAFETY: this end of the new mapping lies outside `mapping`, and nobody else knows of it.
            unsafe { munmap(spare.cast(), size) }.map_err(|e| Error::io("munmap", e))?;
        }
        Ok(Self { mapping: Arc::new(mapping), far: None })
    }

    /// Asks for huge pages where parts are large. Only advice: a kernel without them ignores it.
    fn advise(&self) {
        if self.stride() >= HUGE_PAGE {
            // SAFETY: the advice does not change what the memory holds.
            let _ = unsafe { madvise(self.mapping.base.cast(), self.mapping.bytes(), Advice::LinuxHugepage) };
        }
    }
}

impl Mapping {
    fn bytes(&self) -> usize {
        self.stride * self.nranks as usize
    }

    fn end(&self) -> *mut u8 {
        self.base.wrapping_add(self.bytes())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: base and length are those of one range that was mapped for this struct and is used through it only.
        let unmapped = unsafe { munmap(self.base.cast(), self.bytes()) };
        debug_assert!(unmapped.is_ok());
    }
}
