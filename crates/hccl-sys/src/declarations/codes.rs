//! What functions of ACL return, when it is an error.

use super::aclError;

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
