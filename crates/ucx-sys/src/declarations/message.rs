//! Active messages, and the requests of operations.

use std::ffi::{c_uint, c_void};

use super::{ucp_ep_h, ucp_worker_h, ucs_status_ptr_t, ucs_status_t};

/// Which fields of [`ucp_request_param_t`] count.
pub type ucp_op_attr_t = c_uint;
/// Who is told of the end.
pub const UCP_OP_ATTR_FIELD_CALLBACK: ucp_op_attr_t = 1 << 1;
/// The user's.
pub const UCP_OP_ATTR_FIELD_USER_DATA: ucp_op_attr_t = 1 << 2;
/// Flags of the operation.
pub const UCP_OP_ATTR_FIELD_FLAGS: ucp_op_attr_t = 1 << 4;

/// Who is told of the end of a send.
pub type ucp_send_nbx_callback_t =
    Option<unsafe extern "C" fn(request: *mut c_void, status: ucs_status_t, user_data: *mut c_void)>;

/// How an operation is done.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucp_request_param_t {
    /// Which of the following count.
    pub op_attr_mask: u32,
    /// Flags of the operation.
    pub flags: u32,
    /// Memory for the request.
    pub request: *mut c_void,
    /// Who is told of the end: of a send.
    pub cb: ucp_send_nbx_callback_t,
    /// What data consists of.
    pub datatype: u64,
    /// The user's.
    pub user_data: *mut c_void,
    /// Where a reply goes.
    pub reply_buffer: *mut c_void,
    /// The kind of memory.
    pub memory_type: c_uint,
    /// Where the received length goes.
    pub recv_info: *mut c_void,
    /// The memory's handle.
    pub memh: *mut c_void,
}

/// How an active message is sent.
pub type ucp_send_am_flags = c_uint;
/// With its data, which the other side need not fetch.
pub const UCP_AM_SEND_FLAG_EAGER: ucp_send_am_flags = 1 << 1;

/// Which fields of [`ucp_am_handler_param_t`] count.
pub type ucp_am_handler_param_field = c_uint;
/// The number of the messages.
pub const UCP_AM_HANDLER_PARAM_FIELD_ID: ucp_am_handler_param_field = 1 << 0;
/// Flags.
pub const UCP_AM_HANDLER_PARAM_FIELD_FLAGS: ucp_am_handler_param_field = 1 << 1;
/// The function.
pub const UCP_AM_HANDLER_PARAM_FIELD_CB: ucp_am_handler_param_field = 1 << 2;
/// What it is given.
pub const UCP_AM_HANDLER_PARAM_FIELD_ARG: ucp_am_handler_param_field = 1 << 3;

/// How a handler is called.
pub type ucp_am_cb_flags = c_uint;
/// With whole messages.
pub const UCP_AM_FLAG_WHOLE_MSG: ucp_am_cb_flags = 1 << 0;

/// What has come with a message.
pub type ucp_am_recv_attr_t = c_uint;
/// Its data is still to be fetched.
pub const UCP_AM_RECV_ATTR_FLAG_RNDV: ucp_am_recv_attr_t = 1 << 17;

/// How a message has come.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucp_am_recv_param_t {
    /// What has come with it.
    pub recv_attr: u64,
    /// Where a reply goes.
    pub reply_ep: ucp_ep_h,
}

/// Handles messages.
pub type ucp_am_recv_callback_t = Option<
    unsafe extern "C" fn(
        arg: *mut c_void,
        header: *const c_void,
        header_length: usize,
        data: *mut c_void,
        length: usize,
        param: *const ucp_am_recv_param_t,
    ) -> ucs_status_t,
>;

/// Who handles messages of one number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucp_am_handler_param_t {
    /// Which of the following count.
    pub field_mask: u64,
    /// The number.
    pub id: c_uint,
    /// How it is called.
    pub flags: u32,
    /// The function.
    pub cb: ucp_am_recv_callback_t,
    /// What it is given.
    pub arg: *mut c_void,
}

functions! {
    /// Says who handles messages of one number.
    pub fn ucp_worker_set_am_recv_handler(worker: ucp_worker_h, param: *const ucp_am_handler_param_t) -> ucs_status_t;
    /// Sends a message.
    pub fn ucp_am_send_nbx(
        ep: ucp_ep_h,
        id: c_uint,
        header: *const c_void,
        header_length: usize,
        buffer: *const c_void,
        count: usize,
        param: *const ucp_request_param_t,
    ) -> ucs_status_ptr_t;
    /// Frees a request.
    pub fn ucp_request_free(request: *mut c_void);
    /// How far a request is.
    pub fn ucp_request_check_status(request: *mut c_void) -> ucs_status_t;
}
