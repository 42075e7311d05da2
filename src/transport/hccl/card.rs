//! A card: one device, as this process uses it beside an engine that may use it too.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use hccl_sys::*;

use super::call::{acl, acl_result, forget_text};
use crate::environment;
use crate::error::{Error, ErrorKind, Result};

/// The card of one rank. Its functions make the device current for the calling thread and leave another one that was
/// current as it was. What is made on a card keeps it open.
pub struct Card {
    cann: &'static Cann,
    device: i32,
    driver_device: u32,
    soc: String,
    context: Context,
    /// Given back when the card is dropped, after everything else.
    _setting: Setting,
}

impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Card").field("device", &self.device).field("soc", &self.soc).finish_non_exhaustive()
    }
}

/// What a thread works with; the engine's own where the engine has one on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context(aclrtContext);

// SAFETY: a context belongs to the process: any thread may make it current.
unsafe impl Send for Context {}
// SAFETY: as above; it is only a name.
unsafe impl Sync for Context {}

impl Context {
    /// That of the calling thread, if it has one.
    pub(super) fn current(cann: &Cann) -> Option<Self> {
        Self::of_thread(cann).ok()
    }

    fn of_thread(cann: &Cann) -> Result<Self> {
        let mut context = ptr::null_mut();
        // SAFETY: the function writes the context, or fails where there is none.
        unsafe { acl!(cann, aclrtGetCurrentContext(&mut context)) }?;
        Ok(Self(context))
    }

    fn set(self, cann: &Cann) -> Result<()> {
        // SAFETY: contexts live as long as what this process has made of them: those of an engine are its own to keep
        // while it uses this library on them, and default ones live until the process's last setting of their device.
        unsafe { acl!(cann, aclrtSetCurrentContext(self.0)) }
    }

    /// Makes this context current until the result is dropped.
    pub(super) fn enter(self, cann: &'static Cann) -> Result<Entered> {
        let before = Self::current(cann);
        if before == Some(self) {
            return Ok(Entered { cann, before: None });
        }
        self.set(cann)?;
        Ok(Entered { cann, before })
    }

    /// The same around calls of HCCL, which may leave the thread in another context than they found it in.
    pub(super) fn enter_for_hccl(self, cann: &'static Cann) -> Result<Entered> {
        let before = Self::current(cann);
        self.set(cann)?;
        Ok(Entered { cann, before })
    }
}

/// A context that is current for a while.
#[must_use]
pub struct Entered {
    cann: &'static Cann,
    before: Option<Context>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // If the engine has destroyed its context meanwhile, there is nothing to come back to.
            let _ = before.set(self.cann);
        }
    }
}

/// One of the process's counted uses of a device.
struct Setting {
    cann: &'static Cann,
    device: i32,
}

impl Setting {
    fn new(cann: &'static Cann, device: i32) -> Result<Self> {
        // SAFETY: any number is allowed; a wrong one is an error.
        unsafe { acl!(cann, aclrtSetDevice(device)) }?;
        Ok(Self { cann, device })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let before = Context::current(self.cann);
        // SAFETY: whoever made something on the device through this library held the card, and with it this setting.
        // There is nobody to tell of a failure.
        unsafe { (self.cann.aclrtResetDevice)(self.device) };
        if let Some(before) = before.filter(|before| Some(*before) != Context::current(self.cann)) {
            let _ = before.set(self.cann);
        }
    }
}

impl Card {
    /// Opens `device`. ACL is initialised if the engine has not done it, and stays so: an engine may come later.
    pub(super) fn open(cann: &'static Cann, device: i32) -> Result<Arc<Self>> {
        // SAFETY: no configuration is given.
        match unsafe { (cann.aclInit)(ptr::null()) } {
            ACL_ERROR_REPEAT_INITIALIZE => forget_text(cann),
            code => acl_result(cann, "aclInit", code)?,
        }
        check_device(cann, device)?;
        let before = Context::current(cann);
        let engine = before.filter(|_| current_device(cann) == Some(device));
        // Even where the engine has a context: it may end its use of the device before this one does.
        let setting = Setting::new(cann, device)?;
        let default = Context::of_thread(cann);
        if let Some(before) = before {
            before.set(cann)?;
        }
        let context = engine.map_or(default, Ok)?;
        let _entered = context.enter(cann)?;
        let soc = soc_name(cann)?;
        let driver_device = driver_device(cann, device)?;
        Ok(Arc::new(Self { cann, device, driver_device, soc, context, _setting: setting }))
    }

    /// The device's number, as this process counts.
    pub fn device(&self) -> i32 {
        self.device
    }

    /// The device's number, as the driver counts: what `ASCEND_RT_VISIBLE_DEVICES` leaves out counts too.
    pub fn driver_device(&self) -> u32 {
        self.driver_device
    }

    /// The name of its chip, such as `Ascend910B3`.
    pub fn soc(&self) -> &str {
        &self.soc
    }

    /// CANN's functions.
    pub fn cann(&self) -> &'static Cann {
        self.cann
    }

    pub(super) fn context(&self) -> Context {
        self.context
    }

    /// Makes the card's context current until the result is dropped.
    pub fn enter(&self) -> Result<Entered> {
        self.context.enter(self.cann)
    }

    /// The context for what belongs to the engine: the one that the calling thread works with, if that is on this card.
    pub(super) fn engine_context(&self) -> Context {
        let current = Context::current(self.cann).filter(|_| current_device(self.cann) == Some(self.device));
        current.unwrap_or(self.context)
    }

    /// Whether `address` is memory of the host; none where CANN does not say.
    pub fn is_host_memory(&self, address: u64) -> Option<bool> {
        let _entered = self.enter().ok()?;
        let location = aclrtMemLocation { id: 0, type_: 0 };
        let mut attributes = aclrtPtrAttributes { location, pageSize: 0, rsv: [0; 4] };
        let get_attributes = self.cann.aclrtPointerGetAttributes?;
        // SAFETY: the function looks the address up and does not follow it.
        if unsafe { get_attributes(address as *const c_void, &mut attributes) } != ACL_SUCCESS {
            forget_text(self.cann);
            return None;
        }
        Some(attributes.location.type_ != ACL_MEM_LOCATION_TYPE_DEVICE)
    }
}

/// An error if the process has no such device.
fn check_device(cann: &Cann, device: i32) -> Result<()> {
    let mut count = 0;
    // SAFETY: the function writes a number.
    unsafe { acl!(cann, aclrtGetDeviceCount(&mut count)) }?;
    if count == 0 {
        return Err(Error::new(ErrorKind::Unavailable, "CANN finds no device: see npu-smi info"));
    }
    if !(0..i64::from(count)).contains(&i64::from(device)) {
        let visible = environment::read("ASCEND_RT_VISIBLE_DEVICES");
        let visible = visible.map(|devices| format!(" (ASCEND_RT_VISIBLE_DEVICES is {})", devices.to_string_lossy()));
        let visible = visible.unwrap_or_default();
        return Err(Error::invalid(format!("device {device}; this process has devices 0 to {}{visible}", count - 1)));
    }
    Ok(())
}

/// The device of the calling thread.
fn current_device(cann: &Cann) -> Option<i32> {
    let mut device = -1;
    // SAFETY: the function writes a number, or fails where there is no device.
    let code = unsafe { (cann.aclrtGetDevice)(&mut device) };
    if code != ACL_SUCCESS {
        forget_text(cann);
    }
    (code == ACL_SUCCESS).then_some(device)
}

fn soc_name(cann: &Cann) -> Result<String> {
    // SAFETY: the function returns a static string, or NULL.
    let name = unsafe {
        let name = (cann.aclrtGetSocName)();
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    };
    name.ok_or_else(|| Error::new(ErrorKind::Device, "aclrtGetSocName: the chip has no name"))
}

/// The driver's number of a device of this process.
fn driver_device(cann: &Cann, device: i32) -> Result<u32> {
    let mut number = device;
    if let Some(convert) = cann.aclrtGetLogicDevIdByUserDevId {
        // SAFETY: the function writes a number.
        acl_result(cann, "aclrtGetLogicDevIdByUserDevId", unsafe { convert(device, &mut number) })?;
    }
    u32::try_from(number).map_err(|_| Error::new(ErrorKind::Device, format!("device {device} has no number")))
}

/// The number in this process of the device that the driver calls `device`.
pub(super) fn process_device(cann: &Cann, device: u32) -> Result<i32> {
    let mut number = device as i32;
    if let Some(convert) = cann.aclrtGetUserDevIdByLogicDevId {
        // SAFETY: the function writes a number.
        acl_result(cann, "aclrtGetUserDevIdByLogicDevId", unsafe { convert(device as i32, &mut number) })?;
    }
    Ok(number)
}
