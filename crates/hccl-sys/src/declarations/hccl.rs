//! HCCL: communicators, which make the cards of several ranks known to each other.

use std::ffi::{c_char, c_uint, c_void};

use super::aclrtStream;

/// What functions return: [`HCCL_SUCCESS`] or the code of an error.
pub type HcclResult = c_uint;
/// A communicator.
pub type HcclComm = *mut c_void;

/// All is well.
pub const HCCL_SUCCESS: HcclResult = 0;
/// A parameter is not valid.
pub const HCCL_E_PARA: HcclResult = 1;
/// A pointer is null.
pub const HCCL_E_PTR: HcclResult = 2;
/// A mistake with memory.
pub const HCCL_E_MEMORY: HcclResult = 3;
/// An internal error.
pub const HCCL_E_INTERNAL: HcclResult = 4;
/// It is not supported.
pub const HCCL_E_NOT_SUPPORT: HcclResult = 5;
/// Something was not found.
pub const HCCL_E_NOT_FOUND: HcclResult = 6;
/// Something is not available.
pub const HCCL_E_UNAVAIL: HcclResult = 7;
/// A call of the system failed.
pub const HCCL_E_SYSCALL: HcclResult = 8;
/// It took too long.
pub const HCCL_E_TIMEOUT: HcclResult = 9;
/// A file could not be opened.
pub const HCCL_E_OPEN_FILE_FAILURE: HcclResult = 10;
/// A TCP connection failed.
pub const HCCL_E_TCP_CONNECT: HcclResult = 11;
/// An RDMA connection failed.
pub const HCCL_E_ROCE_CONNECT: HcclResult = 12;
/// A transfer by TCP failed.
pub const HCCL_E_TCP_TRANSFER: HcclResult = 13;
/// A transfer by RDMA failed.
pub const HCCL_E_ROCE_TRANSFER: HcclResult = 14;
/// A function of ACL failed.
pub const HCCL_E_RUNTIME: HcclResult = 15;
/// The driver failed.
pub const HCCL_E_DRV: HcclResult = 16;
/// Profiling failed.
pub const HCCL_E_PROFILING: HcclResult = 17;
/// A kernel failed.
pub const HCCL_E_CCE: HcclResult = 18;
/// The network failed.
pub const HCCL_E_NETWORK: HcclResult = 19;
/// It may work when tried again.
pub const HCCL_E_AGAIN: HcclResult = 20;
/// Another rank failed.
pub const HCCL_E_REMOTE: HcclResult = 21;
/// The communicator is suspended.
pub const HCCL_E_SUSPENDING: HcclResult = 22;
/// It may not be tried again.
pub const HCCL_E_OPRETRY_FAIL: HcclResult = 23;
/// No memory.
pub const HCCL_E_OOM: HcclResult = 24;

/// Bytes of an [`HcclRootInfo`].
pub const HCCL_ROOT_INFO_BYTES: u32 = 4108;

/// By what ranks find each other: one makes it, and all get the same.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HcclRootInfo {
    /// Known to HCCL.
    pub internal: [c_char; HCCL_ROOT_INFO_BYTES as usize],
}

functions! {
    /// Makes what ranks find each other by.
    pub fn HcclGetRootInfo(rootInfo: *mut HcclRootInfo) -> HcclResult;
    /// Joins a communicator; returns when all ranks are there.
    pub fn HcclCommInitRootInfo(
        nRanks: u32,
        rootInfo: *const HcclRootInfo,
        rank: u32,
        comm: *mut HcclComm,
    ) -> HcclResult;
    /// Leaves it.
    pub fn HcclCommDestroy(comm: HcclComm) -> HcclResult;
    /// How many ranks it has.
    pub fn HcclGetRankSize(comm: HcclComm, rankSize: *mut u32) -> HcclResult;
    /// The rank of the caller.
    pub fn HcclGetRankId(comm: HcclComm, rank: *mut u32) -> HcclResult;
    /// Streams of all ranks go on when all have come here.
    pub fn HcclBarrier(comm: HcclComm, stream: aclrtStream) -> HcclResult;
    /// The text of a code.
    pub fn HcclGetErrorString(code: HcclResult) -> *const c_char;
}
