//! Memory of a card: allocation, and copies that are done when the call returns.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use hccl_sys::*;

use super::call::acl;
use super::card::Card;
use crate::error::{Error, Result};

/// Memory of a card, zeroed when made and freed when dropped.
#[derive(Debug)]
pub struct DeviceMemory {
    card: Arc<Card>,
    address: u64,
    bytes: usize,
}

impl Card {
    /// `bytes` of zeroed memory.
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> Result<DeviceMemory> {
        let _entered = self.enter()?;
        let mut address = ptr::null_mut();
        // SAFETY: the function writes the address of new memory.
        unsafe { acl!(self.cann(), aclrtMalloc(&mut address, bytes.max(1), ACL_MEM_MALLOC_HUGE_FIRST)) }?;
        let memory = DeviceMemory { card: self.clone(), address: address as u64, bytes };
        // SAFETY: the memory is new and as long as this.
        unsafe { self.zero(memory.address, bytes) }?;
        Ok(memory)
    }

    /// Copies `source` to the card.
    ///
    /// # Safety
    /// As many bytes at `address` are memory of this card or mapped for it, and nobody else uses them meanwhile but for
    /// kernels that expect it.
    pub unsafe fn write(&self, address: u64, source: &[u8]) -> Result<()> {
        // SAFETY: as the caller says.
        unsafe { self.copy(address as *mut c_void, source.as_ptr().cast(), source.len(), ACL_MEMCPY_HOST_TO_DEVICE) }
    }

    /// Copies from the card to `target`.
    ///
    /// # Safety
    /// As for [`Card::write`].
    pub unsafe fn read(&self, address: u64, target: &mut [u8]) -> Result<()> {
        // SAFETY: as the caller says.
        unsafe {
            self.copy(target.as_mut_ptr().cast(), address as *const c_void, target.len(), ACL_MEMCPY_DEVICE_TO_HOST)
        }
    }

    /// Sets `bytes` at `address` to zero.
    ///
    /// # Safety
    /// As for [`Card::write`].
    pub unsafe fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.enter()?;
        // SAFETY: as the caller says.
        unsafe { acl!(self.cann(), aclrtMemset(address as *mut c_void, bytes, 0, bytes)) }
    }

    /// # Safety
    /// Both ranges are valid for their side of the copy.
    unsafe fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize, kind: aclrtMemcpyKind) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.enter()?;
        // SAFETY: as the caller says.
        unsafe { acl!(self.cann(), aclrtMemcpy(to, bytes, from, bytes, kind)) }
    }
}

impl DeviceMemory {
    /// Where it is.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `source` to `offset`.
    pub fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        let address = self.range(offset, source.len())?;
        // SAFETY: the range lies inside the memory; what kernels do with it is for whoever launches them to order.
        unsafe { self.card.write(address, source) }
    }

    /// Copies from `offset` to `target`.
    pub fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        let address = self.range(offset, target.len())?;
        // SAFETY: as in `write`.
        unsafe { self.card.read(address, target) }
    }

    /// Sets all of it to zero.
    pub fn zero(&self) -> Result<()> {
        // SAFETY: as in `write`.
        unsafe { self.card.zero(self.address, self.bytes) }
    }

    /// The address of `bytes` at `offset`.
    fn range(&self, offset: usize, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + offset as u64),
            _ => Err(Error::invalid(format!("{bytes} bytes at {offset} of a memory of {}", self.bytes))),
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Ok(_entered) = self.card.enter() {
            // SAFETY: the memory was allocated for this struct. There is nobody to tell of a failure.
            unsafe { (self.card.cann().aclrtFree)(self.address as *mut c_void) };
        }
    }
}
