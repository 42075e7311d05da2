//! Kernels: files of them that are loaded on a card, and launches.

use std::ffi::{CString, c_void};
use std::fmt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use hccl_sys::*;

use super::call::acl;
use super::card::Card;
use super::stream::Stream;
use crate::error::{Error, Result};

/// A file of kernels on a card, unloaded when it and its functions are dropped.
pub struct Binary {
    card: Arc<Card>,
    handle: aclrtBinHandle,
}

/// A kernel of a [`Binary`].
#[derive(Clone)]
pub struct Function {
    binary: Arc<Binary>,
    handle: aclrtFuncHandle,
    name: Arc<str>,
}

// SAFETY: a loaded file may be used from any thread with a context of its device.
unsafe impl Send for Binary {}
// SAFETY: as above; nothing changes it.
unsafe impl Sync for Binary {}
// SAFETY: as for the file that it belongs to.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binary").field("device", &self.card.device()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).field("binary", &self.binary).finish_non_exhaustive()
    }
}

impl Card {
    /// Loads the file of kernels at `path`.
    pub fn load(self: &Arc<Self>, path: &Path) -> Result<Arc<Binary>> {
        let data = std::fs::read(path).map_err(|e| Error::io(format!("reading {}", path.display()), e))?;
        let _entered = self.enter()?;
        let value = aclrtBinaryLoadOptionValue { magic: ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE };
        let mut option = aclrtBinaryLoadOption { type_: ACL_RT_BINARY_LOAD_OPT_MAGIC, value };
        let options = aclrtBinaryLoadOptions { options: &mut option, numOpt: 1 };
        let mut handle = ptr::null_mut();
        // SAFETY: data and options are there during the call, which copies the data to the card and writes the handle.
        unsafe { acl!(self.cann(), aclrtBinaryLoadFromData(data.as_ptr().cast(), data.len(), &options, &mut handle)) }
            .map_err(|e| Error::new(e.kind, format!("loading {}: {}", path.display(), e.message)))?;
        Ok(Arc::new(Binary { card: self.clone(), handle }))
    }

    /// Queues `function` on `stream`, for `blocks` blocks, with 8 bytes a parameter. Nothing for 0 blocks.
    ///
    /// # Safety
    /// The kernel takes these parameters, and what it does with them is sound until it is done.
    pub unsafe fn launch(&self, function: &Function, blocks: u32, arguments: &[u64], stream: &Stream) -> Result<()> {
        if blocks == 0 {
            return Ok(());
        }
        let cann = self.cann();
        let _entered = stream.context().enter(cann)?;
        let (block, bytes) = (arguments.as_ptr().cast_mut().cast::<c_void>(), size_of_val(arguments));
        // SAFETY: function and stream are alive. The arguments are copied before the call returns and are not changed.
        unsafe {
            acl!(
                cann,
                aclrtLaunchKernelWithHostArgs(
                    function.handle,
                    blocks,
                    stream.raw(),
                    ptr::null_mut(),
                    block,
                    bytes,
                    ptr::null_mut(),
                    0
                )
            )
        }
        .map_err(|e| Error::new(e.kind, format!("launching {}: {}", function.name, e.message)))
    }
}

impl Binary {
    /// The kernel `name`.
    pub fn function(self: &Arc<Self>, name: &str) -> Result<Function> {
        let _entered = self.card.enter()?;
        let symbol = CString::new(name).map_err(|_| Error::invalid("a kernel's name with a NUL"))?;
        let mut handle = ptr::null_mut();
        // SAFETY: the file is loaded; the function writes the handle.
        unsafe { acl!(self.card.cann(), aclrtBinaryGetFunction(self.handle, symbol.as_ptr(), &mut handle)) }
            .map_err(|e| Error::new(e.kind, format!("finding kernel {name}: {}", e.message)))?;
        Ok(Function { binary: self.clone(), handle, name: name.into() })
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        if let Ok(_entered) = self.card.enter() {
            // SAFETY: the file was loaded for this struct; its functions hold it. There is nobody to tell of a failure.
            unsafe { (self.card.cann().aclrtBinaryUnLoad)(self.handle) };
        }
    }
}
