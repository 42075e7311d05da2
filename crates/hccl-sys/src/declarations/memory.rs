//! ACL: memory of devices, ordinary and such that other devices and processes map.

use std::ffi::{c_uint, c_void};

use super::{aclError, aclrtStream};

/// Physical memory of a device.
pub type aclrtDrvMemHandle = *mut c_void;

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

functions! {
    /// Memory of the thread's device.
    pub fn aclrtMalloc(devPtr: *mut *mut c_void, size: usize, policy: aclrtMemMallocPolicy) -> aclError;
    /// Gives memory back.
    pub fn aclrtFree(devPtr: *mut c_void) -> aclError;
    /// Memory of the host that devices copy from and to without staging it.
    pub fn aclrtMallocHost(hostPtr: *mut *mut c_void, size: usize) -> aclError;
    /// Gives it back.
    pub fn aclrtFreeHost(hostPtr: *mut c_void) -> aclError;
    /// Copies; `destMax` is the room at `dst`.
    pub fn aclrtMemcpy(
        dst: *mut c_void,
        destMax: usize,
        src: *const c_void,
        count: usize,
        kind: aclrtMemcpyKind,
    ) -> aclError;
    /// Copies when the stream comes here.
    pub fn aclrtMemcpyAsync(
        dst: *mut c_void,
        destMax: usize,
        src: *const c_void,
        count: usize,
        kind: aclrtMemcpyKind,
        stream: aclrtStream,
    ) -> aclError;
    /// Sets bytes; `maxCount` is the room.
    pub fn aclrtMemset(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize) -> aclError;
    /// Sets bytes when the stream comes here.
    pub fn aclrtMemsetAsync(
        devPtr: *mut c_void,
        maxCount: usize,
        value: i32,
        count: usize,
        stream: aclrtStream,
    ) -> aclError;
    /// Free and total bytes of the thread's device.
    pub fn aclrtGetMemInfo(attr: aclrtMemAttr, free: *mut usize, total: *mut usize) -> aclError;
    /// Where an address is.
    pub fn aclrtPointerGetAttributes(ptr: *const c_void, attributes: *mut aclrtPtrAttributes) -> aclError;

    /// Of what physical memory's size is a multiple.
    pub fn aclrtMemGetAllocationGranularity(
        prop: *mut aclrtPhysicalMemProp,
        option: aclrtMemGranularityOptions,
        granularity: *mut usize,
    ) -> aclError;
    /// Physical memory, which has no address yet.
    pub fn aclrtMallocPhysical(
        handle: *mut aclrtDrvMemHandle,
        size: usize,
        prop: *const aclrtPhysicalMemProp,
        flags: u64,
    ) -> aclError;
    /// Gives physical memory, or an import of it, back.
    pub fn aclrtFreePhysical(handle: aclrtDrvMemHandle) -> aclError;
    /// Addresses without memory; the flags are an [`aclrtMemPgType`].
    pub fn aclrtReserveMemAddress(
        virPtr: *mut *mut c_void,
        size: usize,
        alignment: usize,
        expectPtr: *mut c_void,
        flags: u64,
    ) -> aclError;
    /// Gives addresses back.
    pub fn aclrtReleaseMemAddress(virPtr: *mut c_void) -> aclError;
    /// Puts physical memory at reserved addresses.
    pub fn aclrtMapMem(
        virPtr: *mut c_void,
        size: usize,
        offset: usize,
        handle: aclrtDrvMemHandle,
        flags: u64,
    ) -> aclError;
    /// Takes it away from there.
    pub fn aclrtUnmapMem(virPtr: *mut c_void) -> aclError;
    /// Says which devices may use mapped memory.
    pub fn aclrtMemSetAccess(virPtr: *mut c_void, size: usize, desc: *mut aclrtMemAccessDesc, count: usize) -> aclError;
    /// A handle that processes of this machine can import.
    pub fn aclrtMemExportToShareableHandle(
        handle: aclrtDrvMemHandle,
        handleType: aclrtMemHandleType,
        flags: u64,
        shareableHandle: *mut u64,
    ) -> aclError;
    /// The memory behind such a handle.
    pub fn aclrtMemImportFromShareableHandle(
        shareableHandle: u64,
        deviceId: i32,
        handle: *mut aclrtDrvMemHandle,
    ) -> aclError;
    /// A handle of the kind asked for, such as [`aclrtMemFabricHandle`].
    pub fn aclrtMemExportToShareableHandleV2(
        handle: aclrtDrvMemHandle,
        flags: u64,
        shareType: aclrtMemSharedHandleType,
        shareableHandle: *mut c_void,
    ) -> aclError;
    /// The memory behind such a handle.
    pub fn aclrtMemImportFromShareableHandleV2(
        shareableHandle: *mut c_void,
        shareType: aclrtMemSharedHandleType,
        flags: u64,
        handle: *mut aclrtDrvMemHandle,
    ) -> aclError;
    /// Lets the thread's device use the memory of another.
    pub fn aclrtDeviceEnablePeerAccess(peerDeviceId: i32, flags: u32) -> aclError;
    /// Whether one device may use the memory of another: 1 if so.
    pub fn aclrtDevicePeerAccessStatus(deviceId: i32, peerDeviceId: i32, status: *mut i32) -> aclError;
}
