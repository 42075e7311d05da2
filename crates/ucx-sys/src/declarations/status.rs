//! What functions return.

use std::ffi::{c_char, c_void};

/// What functions return: [`UCS_OK`], [`UCS_INPROGRESS`] or the code of an error.
pub type ucs_status_t = i8;
/// What functions return that begin an operation: a status, or the address of a request, which is still to come to its
/// end.
pub type ucs_status_ptr_t = *mut c_void;

/// All is well.
pub const UCS_OK: ucs_status_t = 0;
/// It has begun.
pub const UCS_INPROGRESS: ucs_status_t = 1;
/// There is no memory.
pub const UCS_ERR_NO_MEMORY: ucs_status_t = -4;
/// There is no way to the destination; also while it is being made.
pub const UCS_ERR_UNREACHABLE: ucs_status_t = -6;
/// There is no device that can be used.
pub const UCS_ERR_NO_DEVICE: ucs_status_t = -14;
/// There are events already.
pub const UCS_ERR_BUSY: ucs_status_t = -15;
/// The last code: addresses from here on are no requests.
pub const UCS_ERR_LAST: ucs_status_t = -100;

functions! {
    /// The meaning of a status.
    pub fn ucs_status_string(status: ucs_status_t) -> *const c_char;
}
