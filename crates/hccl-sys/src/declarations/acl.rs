//! ACL: devices, streams, events and kernels.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// What functions return: [`ACL_SUCCESS`] or the code of an error.
pub type aclError = c_int;
/// A queue of work on a device.
pub type aclrtStream = *mut c_void;
/// A point in a stream.
pub type aclrtEvent = *mut c_void;
/// What a thread works with: a device and its default stream.
pub type aclrtContext = *mut c_void;
/// A loaded file of kernels.
pub type aclrtBinHandle = *mut c_void;
/// A kernel in a loaded file.
pub type aclrtFuncHandle = *mut c_void;
/// A function of the host that a stream calls.
pub type aclrtHostFunc = Option<unsafe extern "C" fn(args: *mut c_void)>;

/// An event that streams wait for.
pub const ACL_EVENT_SYNC: u32 = 1;
/// An event whose time is kept.
pub const ACL_EVENT_TIME_LINE: u32 = 8;

/// Whether an event was reached.
pub type aclrtEventRecordedStatus = c_uint;
/// Not yet.
pub const ACL_EVENT_RECORDED_STATUS_NOT_READY: aclrtEventRecordedStatus = 0;
/// It was.
pub const ACL_EVENT_RECORDED_STATUS_COMPLETE: aclrtEventRecordedStatus = 1;

/// Whether a stream has work left.
pub type aclrtStreamStatus = c_uint;
/// It has none.
pub const ACL_STREAM_STATUS_COMPLETE: aclrtStreamStatus = 0;
/// It has.
pub const ACL_STREAM_STATUS_NOT_READY: aclrtStreamStatus = 1;

/// How a file of kernels is loaded.
pub type aclrtBinaryLoadOptionType = c_uint;
/// For which cores.
pub const ACL_RT_BINARY_LOAD_OPT_MAGIC: aclrtBinaryLoadOptionType = 2;
/// Kernels of the vector cores.
pub const ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE: u32 = 0x4141_5246;

/// The value of an option.
#[repr(C)]
#[derive(Clone, Copy)]
pub union aclrtBinaryLoadOptionValue {
    /// Load when first used.
    pub isLazyLoad: u32,
    /// Which cores.
    pub magic: u32,
    /// For the device's own CPU.
    pub cpuKernelMode: i32,
    /// The room that it takes.
    pub rsv: [u32; 4],
}

/// An option.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aclrtBinaryLoadOption {
    /// Which.
    pub type_: aclrtBinaryLoadOptionType,
    /// Its value.
    pub value: aclrtBinaryLoadOptionValue,
}

/// All options.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aclrtBinaryLoadOptions {
    /// The first.
    pub options: *mut aclrtBinaryLoadOption,
    /// How many.
    pub numOpt: usize,
}

/// How a kernel is started, where it is not as usual.
#[repr(C)]
pub struct aclrtLaunchKernelCfg {
    opaque: [u8; 0],
}

/// An address among a kernel's arguments that the runtime fills in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtPlaceHolderInfo {
    /// Where the address stands.
    pub addrOffset: u32,
    /// Of what it is the address.
    pub dataOffset: u32,
}

functions! {
    /// Begins; once a process.
    pub fn aclInit(configPath: *const c_char) -> aclError;
    /// The text of the calling thread's last error.
    pub fn aclGetRecentErrMsg() -> *const c_char;
    /// The version of the interface.
    pub fn aclrtGetVersion(majorVersion: *mut i32, minorVersion: *mut i32, patchVersion: *mut i32) -> aclError;
    /// The name of the chip.
    pub fn aclrtGetSocName() -> *const c_char;
    /// How many devices this process sees.
    pub fn aclrtGetDeviceCount(count: *mut u32) -> aclError;
    /// The calling thread works with this device from here on.
    pub fn aclrtSetDevice(deviceId: i32) -> aclError;
    /// Gives a device back.
    pub fn aclrtResetDevice(deviceId: i32) -> aclError;
    /// The device of the calling thread.
    pub fn aclrtGetDevice(deviceId: *mut i32) -> aclError;
    /// The driver's number of a device of this process.
    pub fn aclrtGetLogicDevIdByUserDevId(userDevid: i32, logicDevId: *mut i32) -> aclError;
    /// The number in this process of a device that the driver names.
    pub fn aclrtGetUserDevIdByLogicDevId(logicDevId: i32, userDevid: *mut i32) -> aclError;
    /// The context of the calling thread.
    pub fn aclrtGetCurrentContext(context: *mut aclrtContext) -> aclError;
    /// The calling thread works with this context from here on.
    pub fn aclrtSetCurrentContext(context: aclrtContext) -> aclError;

    /// A new stream of the thread's device.
    pub fn aclrtCreateStream(stream: *mut aclrtStream) -> aclError;
    /// Ends a stream after its work.
    pub fn aclrtDestroyStream(stream: aclrtStream) -> aclError;
    /// Waits for all work of a stream.
    pub fn aclrtSynchronizeStream(stream: aclrtStream) -> aclError;
    /// The same, for some milliseconds.
    pub fn aclrtSynchronizeStreamWithTimeout(stream: aclrtStream, timeout: i32) -> aclError;
    /// Whether a stream has work left.
    pub fn aclrtStreamQuery(stream: aclrtStream, status: *mut aclrtStreamStatus) -> aclError;
    /// A new event.
    pub fn aclrtCreateEventExWithFlag(event: *mut aclrtEvent, flag: u32) -> aclError;
    /// Ends an event.
    pub fn aclrtDestroyEvent(event: aclrtEvent) -> aclError;
    /// The event is reached when the stream comes here.
    pub fn aclrtRecordEvent(event: aclrtEvent, stream: aclrtStream) -> aclError;
    /// The stream goes on when the event is reached.
    pub fn aclrtStreamWaitEvent(stream: aclrtStream, event: aclrtEvent) -> aclError;
    /// Whether an event was reached.
    pub fn aclrtQueryEventStatus(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) -> aclError;
    /// Waits for an event.
    pub fn aclrtSynchronizeEvent(event: aclrtEvent) -> aclError;
    /// The same, for some milliseconds.
    pub fn aclrtSynchronizeEventWithTimeout(event: aclrtEvent, timeout: i32) -> aclError;
    /// The milliseconds between two events.
    pub fn aclrtEventElapsedTime(ms: *mut f32, startEvent: aclrtEvent, endEvent: aclrtEvent) -> aclError;
    /// The stream calls a function of the host when it comes here.
    pub fn aclrtLaunchHostFunc(stream: aclrtStream, func: aclrtHostFunc, args: *mut c_void) -> aclError;

    /// Loads a file of kernels that is in memory.
    pub fn aclrtBinaryLoadFromData(
        data: *const c_void,
        length: usize,
        options: *const aclrtBinaryLoadOptions,
        binHandle: *mut aclrtBinHandle,
    ) -> aclError;
    /// A kernel by its name.
    pub fn aclrtBinaryGetFunction(
        binHandle: aclrtBinHandle,
        kernelName: *const c_char,
        funcHandle: *mut aclrtFuncHandle,
    ) -> aclError;
    /// Gives a file of kernels back.
    pub fn aclrtBinaryUnLoad(binHandle: aclrtBinHandle) -> aclError;
    /// Starts a kernel when the stream comes here. The arguments are in the host's memory, and copied at the call.
    pub fn aclrtLaunchKernelWithHostArgs(
        funcHandle: aclrtFuncHandle,
        numBlocks: u32,
        stream: aclrtStream,
        cfg: *mut aclrtLaunchKernelCfg,
        hostArgs: *mut c_void,
        argsSize: usize,
        placeHolderArray: *mut aclrtPlaceHolderInfo,
        placeHolderNum: usize,
    ) -> aclError;
}
