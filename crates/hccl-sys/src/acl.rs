//! ACL: devices, streams, events, memory and kernels.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// What functions return: [`ACL_SUCCESS`] or the code of an error.
pub type aclError = c_int;
/// A queue of work on a device.
pub type aclrtStream = *mut c_void;
/// A point in a stream.
pub type aclrtEvent = *mut c_void;
/// What a thread works with: a device and its default stream.
pub type aclrtContext = *mut c_void;
/// Physical memory of a device.
pub type aclrtDrvMemHandle = *mut c_void;
/// A loaded file of kernels.
pub type aclrtBinHandle = *mut c_void;
/// A kernel in a loaded file.
pub type aclrtFuncHandle = *mut c_void;
/// A function of the host that a stream calls.
pub type aclrtHostFunc = Option<unsafe extern "C" fn(args: *mut c_void)>;

/// All is well.
pub const ACL_SUCCESS: aclError = 0;
/// A parameter is not valid.
pub const ACL_ERROR_INVALID_PARAM: aclError = 100000;
/// `aclInit` was not called.
pub const ACL_ERROR_UNINITIALIZE: aclError = 100001;
/// `aclInit` was called before: no mistake where an engine runs already.
pub const ACL_ERROR_REPEAT_INITIALIZE: aclError = 100002;
/// A file is not what it should be.
pub const ACL_ERROR_INVALID_FILE: aclError = 100003;
/// No memory.
pub const ACL_ERROR_BAD_ALLOC: aclError = 200000;
/// The function is not supported.
pub const ACL_ERROR_API_NOT_SUPPORT: aclError = 200001;
/// There is no such device.
pub const ACL_ERROR_INVALID_DEVICE: aclError = 200002;
/// An internal error.
pub const ACL_ERROR_INTERNAL_ERROR: aclError = 500000;
/// A parameter is not valid.
pub const ACL_ERROR_RT_PARAM_INVALID: aclError = 107000;
/// There is no device with this number.
pub const ACL_ERROR_RT_INVALID_DEVICEID: aclError = 107001;
/// The thread has no context: `aclrtSetDevice` was not called.
pub const ACL_ERROR_RT_CONTEXT_NULL: aclError = 107002;
/// The stream belongs to another context.
pub const ACL_ERROR_RT_STREAM_CONTEXT: aclError = 107003;
/// A handle is not valid.
pub const ACL_ERROR_RT_INVALID_HANDLE: aclError = 107017;
/// A wait took longer than it was given.
pub const ACL_ERROR_RT_WAIT_TIMEOUT: aclError = 107019;
/// A task took longer than it was given.
pub const ACL_ERROR_RT_TASK_TIMEOUT: aclError = 107020;
/// The device is ending its tasks.
pub const ACL_ERROR_RT_DEVICE_TASK_ABORT: aclError = 107022;
/// The device, or the driver, does not do this.
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: aclError = 207000;
/// No memory on the device.
pub const ACL_ERROR_RT_MEMORY_ALLOCATION: aclError = 207001;
/// There is no device.
pub const ACL_ERROR_RT_NO_DEVICE: aclError = 207004;
/// A resource has run out.
pub const ACL_ERROR_RT_RESOURCE_ALLOC_FAIL: aclError = 207005;
/// The user may not do this.
pub const ACL_ERROR_RT_NO_PERMISSION: aclError = 207006;
/// No more events.
pub const ACL_ERROR_RT_NO_EVENT_RESOURCE: aclError = 207007;
/// No more streams.
pub const ACL_ERROR_RT_NO_STREAM_RESOURCE: aclError = 207008;
/// The device ran out of memory.
pub const ACL_ERROR_RT_DEVICE_OOM: aclError = 207018;
/// An error inside the runtime.
pub const ACL_ERROR_RT_INTERNAL_ERROR: aclError = 507000;
/// The device does not answer any more.
pub const ACL_ERROR_RT_LOST_HEARTBEAT: aclError = 507010;
/// A kernel took longer than it was given.
pub const ACL_ERROR_RT_AICORE_TIMEOUT: aclError = 507014;
/// A kernel failed.
pub const ACL_ERROR_RT_AICORE_EXCEPTION: aclError = 507015;
/// A kernel stopped itself.
pub const ACL_ERROR_RT_AICORE_TRAP_EXCEPTION: aclError = 507016;
/// The device's own CPU failed: also seen after its watchdog, or where a context was lost.
pub const ACL_ERROR_RT_AICPU_EXCEPTION: aclError = 507018;
/// A kernel of the vector cores took longer than it was given.
pub const ACL_ERROR_RT_VECTOR_CORE_TIMEOUT: aclError = 507034;
/// A kernel of the vector cores failed.
pub const ACL_ERROR_RT_VECTOR_CORE_EXCEPTION: aclError = 507035;
/// A kernel of the vector cores stopped itself.
pub const ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION: aclError = 507036;
/// A stream was not done in the time given.
pub const ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: aclError = 507046;
/// An event was not reached in the time given.
pub const ACL_ERROR_RT_EVENT_SYNC_TIMEOUT: aclError = 507047;
/// Memory of the device is damaged.
pub const ACL_ERROR_RT_DEVICE_MEM_ERROR: aclError = 507053;
/// A link between devices failed.
pub const ACL_ERROR_RT_LINK_ERROR: aclError = 507056;
/// Another device seems to have failed.
pub const ACL_ERROR_RT_SUSPECT_REMOTE_ERROR: aclError = 507057;
/// An error inside the driver.
pub const ACL_ERROR_RT_DRV_INTERNAL_ERROR: aclError = 507899;

/// Which pages memory is made of.
pub type aclrtMemMallocPolicy = c_uint;
/// Huge pages where there are any.
pub const ACL_MEM_MALLOC_HUGE_FIRST: aclrtMemMallocPolicy = 0;

/// The direction of a copy.
pub type aclrtMemcpyKind = c_uint;
/// From host to device.
pub const ACL_MEMCPY_HOST_TO_DEVICE: aclrtMemcpyKind = 1;
/// From device to host.
pub const ACL_MEMCPY_DEVICE_TO_HOST: aclrtMemcpyKind = 2;
/// Within a device, or from one to another.
pub const ACL_MEMCPY_DEVICE_TO_DEVICE: aclrtMemcpyKind = 3;

/// Where memory is.
pub type aclrtMemLocationType = c_uint;
/// In the host.
pub const ACL_MEM_LOCATION_TYPE_HOST: aclrtMemLocationType = 0;
/// In a device.
pub const ACL_MEM_LOCATION_TYPE_DEVICE: aclrtMemLocationType = 1;
/// In the host, and unknown to the runtime.
pub const ACL_MEM_LOCATION_TYPE_UNREGISTERED: aclrtMemLocationType = 2;

/// Where memory is, and in which device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtMemLocation {
    /// The device's number.
    pub id: u32,
    /// Host or device.
    pub type_: aclrtMemLocationType,
}

/// What the runtime knows of an address.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtPtrAttributes {
    /// Where it is.
    pub location: aclrtMemLocation,
    /// The size of its page.
    pub pageSize: u32,
    /// Reserved.
    pub rsv: [u32; 4],
}

/// The kind of a handle to physical memory.
pub type aclrtMemHandleType = c_uint;
/// An ordinary one.
pub const ACL_MEM_HANDLE_TYPE_NONE: aclrtMemHandleType = 0;

/// How physical memory is held.
pub type aclrtMemAllocationType = c_uint;
/// It stays in its place.
pub const ACL_MEM_ALLOCATION_TYPE_PINNED: aclrtMemAllocationType = 0;

/// The kind of memory and of its pages.
pub type aclrtMemAttr = c_uint;
/// High-bandwidth memory in huge pages.
pub const ACL_HBM_MEM_HUGE: aclrtMemAttr = 4;
/// High-bandwidth memory in normal pages.
pub const ACL_HBM_MEM_NORMAL: aclrtMemAttr = 5;

/// Physical memory that is asked for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtPhysicalMemProp {
    /// The kind of its handle.
    pub handleType: aclrtMemHandleType,
    /// How it is held.
    pub allocationType: aclrtMemAllocationType,
    /// The kind of memory.
    pub memAttr: aclrtMemAttr,
    /// The device, as this process numbers them.
    pub location: aclrtMemLocation,
    /// Reserved.
    pub reserve: u64,
}

/// Which granularity is asked for.
pub type aclrtMemGranularityOptions = c_uint;
/// The smallest.
pub const ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM: aclrtMemGranularityOptions = 0;

/// The pages of reserved addresses, which `aclrtReserveMemAddress` takes as its flags.
pub type aclrtMemPgType = c_uint;
/// Normal pages.
pub const NORMAL_PAGE_TYPE: aclrtMemPgType = 0;
/// Huge pages.
pub const HUGE_PAGE_TYPE: aclrtMemPgType = 1;

/// What a device may do with memory.
pub type aclrtMemAccessFlags = c_uint;
/// Read and write.
pub const ACL_RT_MEM_ACCESS_FLAGS_READWRITE: aclrtMemAccessFlags = 3;

/// Who may do what with mapped memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtMemAccessDesc {
    /// What it may do.
    pub flags: aclrtMemAccessFlags,
    /// The device, as the driver numbers them.
    pub location: aclrtMemLocation,
    /// Reserved.
    pub rsv: [u8; 12],
}

/// The kind of a handle that other processes can import.
pub type aclrtMemSharedHandleType = c_uint;
/// One that reaches the cards of other machines in the same fabric.
pub const ACL_MEM_SHARE_HANDLE_TYPE_FABRIC: aclrtMemSharedHandleType = 2;

/// A handle of [`ACL_MEM_SHARE_HANDLE_TYPE_FABRIC`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtMemFabricHandle {
    /// Known to the driver.
    pub data: [u8; 128],
}

/// Any process may import what is exported, not only those named.
pub const ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION: u64 = 1;

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
    /// The number of a stream, which profiles and logs name.
    pub fn aclrtStreamGetId(stream: aclrtStream, streamId: *mut i32) -> aclError;
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

    /// Memory of the thread's device.
    pub fn aclrtMalloc(devPtr: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> aclError;
    /// Gives memory back.
    pub fn aclrtFree(devPtr: *mut c_void) -> aclError;
    /// Memory of the host that devices copy from and to without staging it.
    pub fn aclrtMallocHost(hostPtr: *mut *mut c_void, size: usize) -> aclError;
    /// Gives it back.
    pub fn aclrtFreeHost(hostPtr: *mut c_void) -> aclError;
    /// Copies; `destMax` is the room at `dst`.
    pub fn aclrtMemcpy(dst: *mut c_void, destMax: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind) -> aclError;
    /// Copies when the stream comes here.
    pub fn aclrtMemcpyAsync(dst: *mut c_void, destMax: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind, stream: aclrtStream) -> aclError;
    /// Sets bytes; `maxCount` is the room.
    pub fn aclrtMemset(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize) -> aclError;
    /// Sets bytes when the stream comes here.
    pub fn aclrtMemsetAsync(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize, stream: aclrtStream) -> aclError;
    /// Free and total bytes of the thread's device.
    pub fn aclrtGetMemInfo(attr: aclrtMemAttr, free: *mut usize, total: *mut usize) -> aclError;
    /// Where an address is.
    pub fn aclrtPointerGetAttributes(ptr: *const c_void, attributes: *mut aclrtPtrAttributes) -> aclError;

    /// Of what physical memory's size is a multiple.
    pub fn aclrtMemGetAllocationGranularity(prop: *mut aclrtPhysicalMemProp, option: aclrtMemGranularityOptions, granularity: *mut usize) -> aclError;
    /// Physical memory, which has no address yet.
    pub fn aclrtMallocPhysical(handle: *mut aclrtDrvMemHandle, size: usize, prop: *const aclrtPhysicalMemProp, flags: u64) -> aclError;
    /// Gives physical memory, or an import of it, back.
    pub fn aclrtFreePhysical(handle: aclrtDrvMemHandle) -> aclError;
    /// Addresses without memory; the flags are an [`aclrtMemPgType`].
    pub fn aclrtReserveMemAddress(virPtr: *mut *mut c_void, size: usize, alignment: usize, expectPtr: *mut c_void, flags: u64) -> aclError;
    /// Gives addresses back.
    pub fn aclrtReleaseMemAddress(virPtr: *mut c_void) -> aclError;
    /// Puts physical memory at reserved addresses.
    pub fn aclrtMapMem(virPtr: *mut c_void, size: usize, offset: usize, handle: aclrtDrvMemHandle, flags: u64) -> aclError;
    /// Takes it away from there.
    pub fn aclrtUnmapMem(virPtr: *mut c_void) -> aclError;
    /// Says which devices may use mapped memory.
    pub fn aclrtMemSetAccess(virPtr: *mut c_void, size: usize, desc: *mut aclrtMemAccessDesc, count: usize) -> aclError;
    /// A handle that processes of this machine can import.
    pub fn aclrtMemExportToShareableHandle(handle: aclrtDrvMemHandle, handleType: aclrtMemHandleType, flags: u64, shareableHandle: *mut u64) -> aclError;
    /// The memory behind such a handle.
    pub fn aclrtMemImportFromShareableHandle(shareableHandle: u64, deviceId: i32, handle: *mut aclrtDrvMemHandle) -> aclError;
    /// A handle of the kind asked for, such as [`aclrtMemFabricHandle`].
    pub fn aclrtMemExportToShareableHandleV2(handle: aclrtDrvMemHandle, flags: u64, shareType: aclrtMemSharedHandleType, shareableHandle: *mut c_void) -> aclError;
    /// The memory behind such a handle.
    pub fn aclrtMemImportFromShareableHandleV2(shareableHandle: *mut c_void, shareType: aclrtMemSharedHandleType, flags: u64, handle: *mut aclrtDrvMemHandle) -> aclError;
    /// Lets the thread's device use the memory of another.
    pub fn aclrtDeviceEnablePeerAccess(peerDeviceId: i32, flags: u32) -> aclError;
    /// Whether one device may use the memory of another: 1 if so.
    pub fn aclrtDevicePeerAccessStatus(deviceId: i32, peerDeviceId: i32, status: *mut i32) -> aclError;

    /// Loads a file of kernels that is in memory.
    pub fn aclrtBinaryLoadFromData(
        data: *const c_void,
        length: usize,
        options: *const aclrtBinaryLoadOptions,
        binHandle: *mut aclrtBinHandle,
    ) -> aclError;
    /// A kernel by its name.
    pub fn aclrtBinaryGetFunction(binHandle: aclrtBinHandle, kernelName: *const c_char, funcHandle: *mut aclrtFuncHandle) -> aclError;
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
