//! Window memory on cards: each rank has physical memory of its own, and maps that of all others into its addresses.
//!
//! A process imports the memory of other processes by handles: those of the fabric, which reach all cards that it
//! connects, or, where there is none, those of the driver. Memory that is exported cannot be imported by the same
//! process; it need not be, since its cards see each other's addresses. Physical memory lives as long as anybody maps
//! it: a rank may drop its windows while others still write to them.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hccl_sys::*;

use super::agreement::{agree, all_succeed};
use super::call::{acl, acl_result, forget_text};
use super::card::Card;
use super::cards::Cards;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::wire::{Put, Reader};

/// Window memory of all ranks, zeroed when made; each rank's has an address in this process. Dropping it is local.
#[derive(Debug)]
pub struct DeviceWindows {
    bases: Vec<u64>,
    bytes: usize,
    // Dropped in this order.
    _imported: Vec<Mapped>,
    _own: Vec<Own>,
}

impl DeviceWindows {
    /// Where the memory of `rank` is, for this process and its cards.
    pub fn base(&self, rank: u32) -> u64 {
        self.bases[rank as usize]
    }

    /// Bytes of each rank.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// How memory gets to other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// All ranks are in this process.
    Process,
    /// By handles of the fabric.
    Fabric,
    /// By handles of the driver.
    Driver,
}

impl Sharing {
    /// The kind of memory, and the pages of its addresses.
    fn pages(self) -> (aclrtMemAttr, aclrtMemPgType) {
        match self {
            Sharing::Process | Sharing::Fabric => (ACL_HBM_MEM_HUGE, HUGE_PAGE_TYPE),
            Sharing::Driver => (ACL_HBM_MEM_NORMAL, NORMAL_PAGE_TYPE),
        }
    }
}

/// [`Cards::allocate_windows`].
pub(super) fn allocate(cards: &Cards, bytes: usize, deadline: Instant) -> Result<DeviceWindows> {
    let host = cards.host();
    let all_local = host.local().len() == host.nranks() as usize;
    loop {
        let sharing = match cards.no_fabric.load(Ordering::Relaxed) {
            _ if all_local => Sharing::Process,
            false => Sharing::Fabric,
            true => Sharing::Driver,
        };
        if sharing != Sharing::Fabric {
            cards.connect(deadline);
        }
        let own = cards.each(|_, card| Own::new(card, cards.local(), bytes, sharing));
        let offers = own.as_ref().map_err(Error::clone);
        let offers = offers.map(|own| own.iter().map(|own| Offer::of(own, bytes).encode()).collect());
        let offers = agree(host, offers, deadline)?;
        let offers = offers.iter().map(|offer| Offer::decode(offer)).collect::<Result<Vec<_>>>()?;
        check(&offers)?;
        if sharing == Sharing::Fabric && offers.iter().any(|offer| offer.handle.is_empty()) {
            cards.no_fabric.store(true, Ordering::Relaxed);
            continue;
        }
        let own = own?;
        let imported = import(cards, &offers, sharing);
        // Nobody goes on, and nobody gives up, before all have mapped all memory.
        let imported = all_succeed(host, imported, deadline)?;
        let mut bases = vec![0; offers.len()];
        (host.local().zip(&own)).for_each(|(rank, own)| bases[rank as usize] = own.mapped.address as u64);
        imported.iter().for_each(|(rank, mapped)| bases[*rank as usize] = mapped.address as u64);
        let imported = imported.into_iter().map(|(_, mapped)| mapped).collect();
        return Ok(DeviceWindows { bases, bytes, _imported: imported, _own: own });
    }
}

/// The memory of other processes' ranks.
fn import(cards: &Cards, offers: &[Offer], sharing: Sharing) -> Result<Vec<(u32, Mapped)>> {
    let local = cards.host().local();
    let others = (0..).zip(offers).filter(|(rank, _)| !local.contains(rank));
    let mapped = others.map(|(rank, offer)| {
        let card = &cards.local()[0];
        let _entered = card.enter()?;
        let mapped = Physical::import(card, &offer.handle, sharing)
            .and_then(|physical| Mapped::new(physical, cards.local(), offer.size as usize, sharing));
        let about = |e: Error| {
            let unconnected = cards.unconnected(rank).map(|why| format!("; {why}")).unwrap_or_default();
            let message = format!("rank {}: the windows of rank {rank}: {}{unconnected}", local.start, e.message);
            Error::new(e.kind, message)
        };
        Ok((rank, mapped.map_err(about)?))
    });
    mapped.collect()
}

/// What a rank tells the others of its memory.
struct Offer {
    /// As asked for.
    bytes: u64,
    /// As allocated.
    size: u64,
    /// Empty where there is nothing to import.
    handle: Vec<u8>,
}

impl Offer {
    fn of(own: &Own, bytes: usize) -> Self {
        Self { bytes: bytes as u64, size: own.size as u64, handle: own.handle.clone() }
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_u64(self.bytes);
        body.put_u64(self.size);
        body.put_bytes(&self.handle);
        body
    }

    fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader(body);
        Ok(Self { bytes: reader.u64()?, size: reader.u64()?, handle: reader.bytes()?.to_vec() })
    }
}

/// The same verdict on every rank.
fn check(offers: &[Offer]) -> Result<()> {
    let first = &offers[0];
    for (rank, offer) in offers.iter().enumerate() {
        if offer.bytes != first.bytes {
            let (mine, theirs) = (first.bytes, offer.bytes);
            let message = format!("rank 0 allocates {mine} bytes while rank {rank} allocates {theirs}");
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        if offer.size != first.size {
            let (mine, theirs) = (first.size, offer.size);
            let message = format!("the card of rank 0 rounds {} bytes to {mine}, that of rank {rank}", first.bytes);
            return Err(Error::new(ErrorKind::Mismatch, format!("{message} to {theirs}: the cards differ")));
        }
    }
    Ok(())
}

/// A rank's own memory, and how to import it.
#[derive(Debug)]
struct Own {
    mapped: Mapped,
    size: usize,
    handle: Vec<u8>,
}

impl Own {
    /// Zeroed memory of `card` that `users` can use. It is offered only when nobody will write to it any more.
    fn new(card: &Arc<Card>, users: &[Arc<Card>], bytes: usize, sharing: Sharing) -> Result<Self> {
        let _entered = card.enter()?;
        let (physical, size) = Physical::new(card, bytes, sharing)?;
        let mapped = Mapped::new(physical, users, size, sharing)?;
        // SAFETY: the memory is new, as long as this, and mapped for the card.
        unsafe { card.zero(mapped.address as u64, size) }?;
        let handle = mapped.physical.export(sharing)?;
        Ok(Self { mapped, size, handle })
    }
}

/// Physical memory: of this process, or imported.
#[derive(Debug)]
struct Physical {
    card: Arc<Card>,
    handle: aclrtDrvMemHandle,
}

// SAFETY: the handle belongs to the process: any thread may use it.
unsafe impl Send for Physical {}
// SAFETY: as above; it is never changed.
unsafe impl Sync for Physical {}

impl Physical {
    /// At least `bytes` of `card`, with its size.
    fn new(card: &Arc<Card>, bytes: usize, sharing: Sharing) -> Result<(Self, usize)> {
        let cann = card.cann();
        let (attribute, _) = sharing.pages();
        let mut wanted = aclrtPhysicalMemProp {
            handleType: ACL_MEM_HANDLE_TYPE_NONE,
            allocationType: ACL_MEM_ALLOCATION_TYPE_PINNED,
            memAttr: attribute,
            location: aclrtMemLocation { id: card.device() as u32, type_: ACL_MEM_LOCATION_TYPE_DEVICE },
            reserve: 0,
        };
        let mut granularity = 0;
        // SAFETY: the function reads the description and writes a number.
        unsafe {
            let option = ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
            acl!(cann, aclrtMemGetAllocationGranularity(&mut wanted, option, &mut granularity))
        }?;
        let no_space = || Error::new(ErrorKind::NoSpace, format!("windows of {bytes} bytes exceed any memory"));
        let size = bytes.max(1).checked_next_multiple_of(granularity.max(1)).ok_or_else(no_space)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the function reads the description and writes the handle.
        match unsafe { acl!(cann, aclrtMallocPhysical(&mut handle, size, &wanted, 0)) } {
            Ok(()) => Ok((Self { card: card.clone(), handle }, size)),
            Err(Error { kind: ErrorKind::NoMemory, message }) => {
                let free = free_memory(cann).map(|free| format!(", but only {free} are free")).unwrap_or_default();
                let device = card.device();
                let message = format!("windows need {size} bytes on device {device}{free}; {message}");
                Err(Error::new(ErrorKind::NoSpace, message))
            }
            Err(error) => Err(error),
        }
    }

    /// What other processes import; empty if the fabric is asked for and there is none.
    fn export(&self, sharing: Sharing) -> Result<Vec<u8>> {
        let cann = self.card.cann();
        let flags = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;
        match sharing {
            Sharing::Process => Ok(Vec::new()),
            Sharing::Fabric => {
                let Some(export) = cann.aclrtMemExportToShareableHandleV2 else { return Ok(Vec::new()) };
                let mut fabric = aclrtMemFabricHandle { data: [0; 128] };
                let to = ptr::from_mut(&mut fabric).cast();
                // SAFETY: the memory is this process's, and a handle of this kind has room for what is written.
                match unsafe { export(self.handle, flags, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, to) } {
                    ACL_ERROR_RT_FEATURE_NOT_SUPPORT => {
                        forget_text(cann);
                        Ok(Vec::new())
                    }
                    code => acl_result(cann, "aclrtMemExportToShareableHandleV2", code).map(|()| fabric.data.to_vec()),
                }
            }
            Sharing::Driver => {
                let mut number = 0;
                let kind = ACL_MEM_HANDLE_TYPE_NONE;
                // SAFETY: the memory is this process's, and the function writes a number.
                unsafe { acl!(cann, aclrtMemExportToShareableHandle(self.handle, kind, flags, &mut number)) }?;
                Ok(number.to_ne_bytes().to_vec())
            }
        }
    }

    /// The memory that another process offers.
    fn import(card: &Arc<Card>, offered: &[u8], sharing: Sharing) -> Result<Self> {
        let cann = card.cann();
        let strange = || Error::new(ErrorKind::Mismatch, format!("a handle of {} bytes", offered.len()));
        let mut handle = ptr::null_mut();
        match sharing {
            Sharing::Process => return Err(Error::new(ErrorKind::Internal, "memory of the process is imported")),
            Sharing::Fabric => {
                let mut fabric = aclrtMemFabricHandle { data: offered.try_into().map_err(|_| strange())? };
                let unsupported =
                    || Error::new(ErrorKind::Unsupported, "aclrtMemImportFromShareableHandleV2 is missing");
                let import = cann.aclrtMemImportFromShareableHandleV2.ok_or_else(unsupported)?;
                let from = ptr::from_mut(&mut fabric).cast();
                // SAFETY: the function reads a handle of this kind and writes one of this process.
                let code = unsafe { import(from, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &mut handle) };
                acl_result(cann, "aclrtMemImportFromShareableHandleV2", code)?;
            }
            Sharing::Driver => {
                let number = u64::from_ne_bytes(offered.try_into().map_err(|_| strange())?);
                // SAFETY: the function writes a handle of this process.
                unsafe { acl!(cann, aclrtMemImportFromShareableHandle(number, card.device(), &mut handle)) }?;
            }
        }
        Ok(Self { card: card.clone(), handle })
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if let Ok(_entered) = self.card.enter() {
            // SAFETY: the handle was made for this struct, and is mapped no more. There is nobody to tell of a failure.
            unsafe { (self.card.cann().aclrtFreePhysical)(self.handle) };
        }
    }
}

/// Addresses without memory.
#[derive(Debug)]
struct Reserved {
    card: Arc<Card>,
    address: *mut c_void,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Ok(_entered) = self.card.enter() {
            // SAFETY: the addresses were reserved for this struct. There is nobody to tell of a failure.
            unsafe { (self.card.cann().aclrtReleaseMemAddress)(self.address) };
        }
    }
}

/// Physical memory that has addresses.
#[derive(Debug)]
struct Mapped {
    address: *mut c_void,
    // Dropped in this order, after the mapping has gone.
    _reserved: Reserved,
    physical: Physical,
}

// SAFETY: the memory belongs to no thread; who may touch which byte when is for the user of the windows to order.
unsafe impl Send for Mapped {}
// SAFETY: as above; the struct itself is never changed.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// `size` bytes for all of `users`.
    fn new(physical: Physical, users: &[Arc<Card>], size: usize, sharing: Sharing) -> Result<Self> {
        let card = physical.card.clone();
        let cann = card.cann();
        let (_, pages) = sharing.pages();
        let mut address = ptr::null_mut();
        // SAFETY: the function writes the address.
        unsafe { acl!(cann, aclrtReserveMemAddress(&mut address, size, 0, ptr::null_mut(), u64::from(pages))) }?;
        let reserved = Reserved { card: card.clone(), address };
        // SAFETY: the addresses are reserved for this, and the memory is as long.
        unsafe { acl!(cann, aclrtMapMem(address, size, 0, physical.handle, 0)) }?;
        let mapped = Self { address, _reserved: reserved, physical };
        let access = |user: &Arc<Card>| aclrtMemAccessDesc {
            flags: ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
            location: aclrtMemLocation { id: user.driver_device(), type_: ACL_MEM_LOCATION_TYPE_DEVICE },
            rsv: [0; 12],
        };
        let mut access = users.iter().map(access).collect::<Vec<_>>();
        // SAFETY: the range is mapped; the function reads the list.
        unsafe { acl!(cann, aclrtMemSetAccess(address, size, access.as_mut_ptr(), access.len())) }?;
        Ok(mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let card = &self.physical.card;
        if let Ok(_entered) = card.enter() {
            // SAFETY: the range was mapped for this struct. There is nobody to tell of a failure.
            unsafe { (card.cann().aclrtUnmapMem)(self.address) };
        }
    }
}

/// Free bytes of the current device.
fn free_memory(cann: &Cann) -> Option<usize> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the function writes two numbers.
    let code = unsafe { (cann.aclrtGetMemInfo?)(ACL_HBM_MEM_HUGE, &mut free, &mut total) };
    (code == ACL_SUCCESS).then_some(free)
}
