//! Contexts, workers and endpoints.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

use super::{ucs_status_ptr_t, ucs_status_t};

/// A context: the devices of the machine.
pub type ucp_context_h = *mut c_void;
/// A worker: its own connections and progress.
pub type ucp_worker_h = *mut c_void;
/// An endpoint: a connection to another worker.
pub type ucp_ep_h = *mut c_void;
/// How to connect to a worker.
pub type ucp_address_t = c_void;
/// Settings.
pub type ucp_config_t = c_void;

/// Which fields of [`ucp_params_t`] count.
pub type ucp_params_field = c_uint;
/// Its features.
pub const UCP_PARAM_FIELD_FEATURES: ucp_params_field = 1 << 0;
/// Whether its workers are used by several threads.
pub const UCP_PARAM_FIELD_MT_WORKERS_SHARED: ucp_params_field = 1 << 5;
/// How many endpoints there will be.
pub const UCP_PARAM_FIELD_ESTIMATED_NUM_EPS: ucp_params_field = 1 << 6;

/// What a context is for.
pub type ucp_feature = c_uint;
/// One can wait for events.
pub const UCP_FEATURE_WAKEUP: ucp_feature = 1 << 4;
/// Active messages.
pub const UCP_FEATURE_AM: ucp_feature = 1 << 6;

/// What a context is to be.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucp_params_t {
    /// Which of the following count.
    pub field_mask: u64,
    /// What it is for.
    pub features: u64,
    /// Bytes of a request that are the user's.
    pub request_size: usize,
    /// Called for each new request.
    pub request_init: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Called for each request that is no more.
    pub request_cleanup: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Which bits of tags tell senders apart.
    pub tag_sender_mask: u64,
    /// Not zero if several threads use its workers.
    pub mt_workers_shared: c_int,
    /// How many endpoints there will be.
    pub estimated_num_eps: usize,
    /// How many processes of this machine there are.
    pub estimated_num_ppn: usize,
    /// Its name, in messages.
    pub name: *const c_char,
}

/// Who may use a worker.
pub type ucs_thread_mode_t = c_uint;
/// Any thread, one at a time.
pub const UCS_THREAD_MODE_SERIALIZED: ucs_thread_mode_t = 1;

/// Processors.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucs_cpu_set_t {
    /// One bit each.
    pub ucs_bits: [c_ulong; 16],
}

/// Which fields of [`ucp_worker_params_t`] count.
pub type ucp_worker_params_field = c_uint;
/// Who may use it.
pub const UCP_WORKER_PARAM_FIELD_THREAD_MODE: ucp_worker_params_field = 1 << 0;

/// What a worker is to be.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucp_worker_params_t {
    /// Which of the following count.
    pub field_mask: u64,
    /// Who may use it.
    pub thread_mode: ucs_thread_mode_t,
    /// The processors near which its memory is.
    pub cpu_mask: ucs_cpu_set_t,
    /// The events that can be waited for.
    pub events: c_uint,
    /// The user's.
    pub user_data: *mut c_void,
    /// Where events are to be seen.
    pub event_fd: c_int,
    /// Flags.
    pub flags: u64,
    /// Its name, in messages.
    pub name: *const c_char,
    /// Alignment of the data of active messages.
    pub am_alignment: usize,
    /// Its number, for those that it connects to.
    pub client_id: u64,
}

/// How mistakes of endpoints are handled.
pub type ucp_err_handling_mode_t = c_uint;
/// Nobody is told when the other side is lost.
pub const UCP_ERR_HANDLING_MODE_NONE: ucp_err_handling_mode_t = 0;
/// A function is told when the other side is lost.
pub const UCP_ERR_HANDLING_MODE_PEER: ucp_err_handling_mode_t = 1;

/// Who is told when the other side is lost.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucp_err_handler_t {
    /// The function.
    pub cb: Option<unsafe extern "C" fn(arg: *mut c_void, ep: ucp_ep_h, status: ucs_status_t)>,
    /// What it is given.
    pub arg: *mut c_void,
}

/// An address of a socket.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucs_sock_addr_t {
    /// The address.
    pub addr: *const c_void,
    /// Its length.
    pub addrlen: u32,
}

/// Which fields of [`ucp_ep_params_t`] count.
pub type ucp_ep_params_field = c_uint;
/// The address.
pub const UCP_EP_PARAM_FIELD_REMOTE_ADDRESS: ucp_ep_params_field = 1 << 0;
/// How mistakes are handled.
pub const UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE: ucp_ep_params_field = 1 << 1;
/// Who is told of them.
pub const UCP_EP_PARAM_FIELD_ERR_HANDLER: ucp_ep_params_field = 1 << 2;

/// What an endpoint is to be.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ucp_ep_params_t {
    /// Which of the following count.
    pub field_mask: u64,
    /// The worker to connect to.
    pub address: *const ucp_address_t,
    /// How mistakes are handled.
    pub err_mode: ucp_err_handling_mode_t,
    /// Who is told of them.
    pub err_handler: ucp_err_handler_t,
    /// The user's.
    pub user_data: *mut c_void,
    /// Flags.
    pub flags: c_uint,
    /// The listener to connect to.
    pub sockaddr: ucs_sock_addr_t,
    /// The request of a client.
    pub conn_request: *mut c_void,
    /// Its name, in messages.
    pub name: *const c_char,
    /// The address from which to connect.
    pub local_sockaddr: ucs_sock_addr_t,
}

/// How an endpoint is closed.
pub type ucp_ep_close_flags_t = c_uint;
/// At once.
pub const UCP_EP_CLOSE_FLAG_FORCE: ucp_ep_close_flags_t = 1 << 0;

functions! {
    /// The version of the library.
    pub fn ucp_get_version(major: *mut c_uint, minor: *mut c_uint, release: *mut c_uint);
    /// Reads settings from the environment.
    pub fn ucp_config_read(prefix: *const c_char, file: *const c_char, config: *mut *mut ucp_config_t) -> ucs_status_t;
    /// Frees settings.
    pub fn ucp_config_release(config: *mut ucp_config_t);
    /// Makes a context, for a program that knows the version `major.minor`.
    pub fn ucp_init_version(
        major: c_uint,
        minor: c_uint,
        params: *const ucp_params_t,
        config: *const ucp_config_t,
        context: *mut ucp_context_h,
    ) -> ucs_status_t;
    /// Ends a context.
    pub fn ucp_cleanup(context: ucp_context_h);
    /// Makes a worker.
    pub fn ucp_worker_create(
        context: ucp_context_h,
        params: *const ucp_worker_params_t,
        worker: *mut ucp_worker_h,
    ) -> ucs_status_t;
    /// Ends a worker.
    pub fn ucp_worker_destroy(worker: ucp_worker_h);
    /// How others connect to a worker.
    pub fn ucp_worker_get_address(
        worker: ucp_worker_h,
        address: *mut *mut ucp_address_t,
        length: *mut usize,
    ) -> ucs_status_t;
    /// Frees an address.
    pub fn ucp_worker_release_address(worker: ucp_worker_h, address: *mut ucp_address_t);
    /// Makes progress: how much there was.
    pub fn ucp_worker_progress(worker: ucp_worker_h) -> c_uint;
    /// The file descriptor that becomes readable when there are events.
    pub fn ucp_worker_get_efd(worker: ucp_worker_h, fd: *mut c_int) -> ucs_status_t;
    /// Must be called before each wait for the file descriptor.
    pub fn ucp_worker_arm(worker: ucp_worker_h) -> ucs_status_t;
    /// Connects.
    pub fn ucp_ep_create(worker: ucp_worker_h, params: *const ucp_ep_params_t, ep: *mut ucp_ep_h) -> ucs_status_t;
    /// Ends a connection.
    pub fn ucp_ep_close_nbx(ep: ucp_ep_h, param: *const super::ucp_request_param_t) -> ucs_status_ptr_t;
    /// Ends when everything has been sent.
    pub fn ucp_worker_flush_nbx(worker: ucp_worker_h, param: *const super::ucp_request_param_t) -> ucs_status_ptr_t;
}
