//! UCX's objects: a context, a worker, and an endpoint for each far rank. Whoever uses them holds the network's lock.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use ucx_sys::*;

use super::inbox::Inbox;
use super::parcel::Parcel;
use crate::environment;
use crate::error::{Error, ErrorKind, Result};

/// The number of our active messages.
const MESSAGE: u32 = 1;

/// The version of the interface that this is written for.
const API: (u32, u32) = (1, 13);

/// UCX's objects and what their callbacks use. Forgotten, not freed, unless [`Worker::destroy`] is called.
pub struct Worker {
    ucx: &'static Ucx,
    context: ucp_context_h,
    worker: ucp_worker_h,
    endpoints: Vec<ucp_ep_h>,
    watches: Vec<*mut Watch>,
    desk: *mut Desk,
}

/// What callbacks are given.
pub struct Desk {
    ucx: &'static Ucx,
    inbox: Inbox,
}

/// What the callback of a lost endpoint is given.
struct Watch {
    desk: *mut Desk,
    rank: u32,
}

/// What has become of a parcel.
pub enum Sent {
    /// It is sent.
    Done(Box<Parcel>),
    /// UCX has it, and gives it to the inbox when it is sent.
    Underway,
    /// The rank cannot be reached.
    Broken(String),
}

// SAFETY: the pointers are used by whoever has the only reference to the struct.
unsafe impl Send for Worker {}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("worker", &self.worker).finish_non_exhaustive()
    }
}

/// The machine's UCX, if there is one.
pub fn library() -> Result<&'static Ucx> {
    let folder = environment::UCX.read().map(PathBuf::from);
    Ucx::get(folder.as_deref()).map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))
}

impl Worker {
    /// A worker whose messages go to `inbox`.
    pub fn new(inbox: Inbox) -> Result<Self> {
        let ucx = library()?;
        let nranks = inbox.peers.len();
        let context = new_context(ucx, nranks)?;
        let worker = new_worker(ucx, context)?;
        let desk = Box::into_raw(Box::new(Desk { ucx, inbox }));
        let handler = ucp_am_handler_param_t {
            field_mask: u64::from(
                UCP_AM_HANDLER_PARAM_FIELD_ID
                    | UCP_AM_HANDLER_PARAM_FIELD_FLAGS
                    | UCP_AM_HANDLER_PARAM_FIELD_CB
                    | UCP_AM_HANDLER_PARAM_FIELD_ARG,
            ),
            id: MESSAGE,
            flags: UCP_AM_FLAG_WHOLE_MSG,
            cb: Some(came),
            arg: desk.cast(),
        };
        // SAFETY: the worker is alive, and so is the desk as long as the worker.
        check(ucx, "ucp_worker_set_am_recv_handler", unsafe {
            (ucx.ucp_worker_set_am_recv_handler)(worker, &handler)
        })?;
        Ok(Self { ucx, context, worker, endpoints: vec![null_mut(); nranks], watches: Vec::new(), desk })
    }

    /// How others connect to it.
    pub fn address(&self) -> Result<Vec<u8>> {
        let (mut address, mut length) = (null_mut(), 0);
        // SAFETY: the worker is alive; what the call writes is so many bytes, which are copied before they are freed.
        unsafe {
            let status = (self.ucx.ucp_worker_get_address)(self.worker, &mut address, &mut length);
            check(self.ucx, "ucp_worker_get_address", status)?;
            let bytes = std::slice::from_raw_parts(address.cast::<u8>(), length).to_vec();
            (self.ucx.ucp_worker_release_address)(self.worker, address);
            Ok(bytes)
        }
    }

    /// What callbacks have changed. No callback runs while the reference lives, as that would need `self` too.
    pub fn inbox(&mut self) -> &mut Inbox {
        // SAFETY: it is alive, and only used through `self` and by callbacks, which only run in calls of its functions.
        unsafe { &mut (*self.desk).inbox }
    }

    /// Where parcels go when they are sent.
    pub fn desk(&self) -> *mut Desk {
        self.desk
    }

    /// Connects to a rank. A worker that has just been made may not be found at once: false then. Not every network tells of
    /// the loss of the other end, which is only accepted if `mute`.
    pub fn connect(&mut self, rank: u32, address: &[u8], mute: bool) -> Result<bool> {
        let mode = if mute { UCP_ERR_HANDLING_MODE_NONE } else { UCP_ERR_HANDLING_MODE_PEER };
        let watch = Box::into_raw(Box::new(Watch { desk: self.desk, rank }));
        self.watches.push(watch);
        let params = ucp_ep_params_t {
            field_mask: u64::from(
                UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
                    | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                    | UCP_EP_PARAM_FIELD_ERR_HANDLER,
            ),
            address: address.as_ptr().cast(),
            err_mode: mode,
            err_handler: ucp_err_handler_t { cb: Some(lost), arg: watch.cast() },
            user_data: null_mut(),
            flags: 0,
            sockaddr: ucs_sock_addr_t { addr: null(), addrlen: 0 },
            conn_request: null_mut(),
            name: null(),
            local_sockaddr: ucs_sock_addr_t { addr: null(), addrlen: 0 },
        };
        let mut endpoint = null_mut();
        // SAFETY: the worker is alive, and the address is one of UCX's, from another process of the world.
        let status = unsafe { (self.ucx.ucp_ep_create)(self.worker, &params, &mut endpoint) };
        if status == UCS_ERR_UNREACHABLE {
            return Ok(false);
        }
        check(self.ucx, "ucp_ep_create", status)?;
        self.endpoints[rank as usize] = endpoint;
        Ok(true)
    }

    /// There is an endpoint.
    pub fn connected(&self, rank: u32) -> bool {
        !self.endpoints[rank as usize].is_null()
    }

    /// Sends the first `length` bytes of a parcel to its rank.
    pub fn send(&mut self, parcel: Box<Parcel>, length: usize) -> Sent {
        let endpoint = self.endpoints[parcel.rank as usize];
        let frame = parcel.frame.as_ptr();
        let parcel = Box::into_raw(parcel);
        let param = ucp_request_param_t {
            op_attr_mask: UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
            // The other side never fetches: what it executes is in its own memory then, whatever becomes of this one.
            flags: UCP_AM_SEND_FLAG_EAGER,
            cb: Some(sent),
            user_data: parcel.cast(),
            ..request_param()
        };
        // SAFETY: the endpoint is alive, the bytes are written, and the parcel is left alone until it is sent.
        let status = unsafe { (self.ucx.ucp_am_send_nbx)(endpoint, MESSAGE, null(), 0, frame.cast(), length, &param) };
        match Status::of(status) {
            Status::Request => Sent::Underway,
            Status::Code(code) => {
                // SAFETY: it was one, and UCX has not kept it.
                let parcel = unsafe { Box::from_raw(parcel) };
                if code == UCS_OK { Sent::Done(parcel) } else { Sent::Broken(self.ucx.text(code)) }
            }
        }
    }

    /// Makes progress.
    pub fn progress(&mut self) {
        // SAFETY: the worker is alive, and used by this thread alone.
        unsafe { (self.ucx.ucp_worker_progress)(self.worker) };
    }

    /// Where events are to be seen, after [`Worker::arm`].
    pub fn events(&self) -> Result<c_int> {
        let mut fd = -1;
        // SAFETY: the worker is alive.
        check(self.ucx, "ucp_worker_get_efd", unsafe { (self.ucx.ucp_worker_get_efd)(self.worker, &mut fd) })?;
        Ok(fd)
    }

    /// The next event will be seen; false if there are events now.
    pub fn arm(&mut self) -> bool {
        // SAFETY: the worker is alive, and used by this thread alone.
        unsafe { (self.ucx.ucp_worker_arm)(self.worker) == UCS_OK }
    }

    /// Waits until everything has left; false if that takes too long.
    pub fn flush(&mut self, deadline: Instant) -> bool {
        // SAFETY: the worker is alive.
        let request = unsafe { (self.ucx.ucp_worker_flush_nbx)(self.worker, &request_param()) };
        self.finish(request, deadline)
    }

    /// Ends everything, in bounded time. Only after a flush, and if no rank was lost: UCX may hang or crash otherwise.
    pub fn destroy(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(2);
        let force = ucp_request_param_t {
            op_attr_mask: UCP_OP_ATTR_FIELD_FLAGS,
            flags: UCP_EP_CLOSE_FLAG_FORCE,
            ..request_param()
        };
        for endpoint in std::mem::take(&mut self.endpoints).into_iter().filter(|endpoint| !endpoint.is_null()) {
            // SAFETY: the endpoint is alive, and not used again.
            let request = unsafe { (self.ucx.ucp_ep_close_nbx)(endpoint, &force) };
            if !self.finish(request, deadline) {
                return;
            }
        }
        // SAFETY: nothing uses worker and context any more, and then nothing what their callbacks are given.
        unsafe {
            (self.ucx.ucp_worker_destroy)(self.worker);
            (self.ucx.ucp_cleanup)(self.context);
            drop(Box::from_raw(self.desk));
            self.watches.drain(..).for_each(|watch| drop(Box::from_raw(watch)));
        }
    }

    fn finish(&mut self, request: ucs_status_ptr_t, deadline: Instant) -> bool {
        let Status::Code(code) = Status::of(request) else {
            // SAFETY: the request is alive until it is freed.
            while unsafe { (self.ucx.ucp_request_check_status)(request) } == UCS_INPROGRESS {
                if Instant::now() >= deadline {
                    return false;
                }
                self.progress();
            }
            // SAFETY: as above; it is done, and not used again.
            unsafe {
                let code = (self.ucx.ucp_request_check_status)(request);
                (self.ucx.ucp_request_free)(request);
                return code == UCS_OK;
            }
        };
        code == UCS_OK
    }
}

/// What the beginning of an operation has returned.
enum Status {
    Code(ucs_status_t),
    Request,
}

impl Status {
    fn of(returned: ucs_status_ptr_t) -> Self {
        let value = returned.addr().cast_signed();
        if value == 0 || (isize::from(UCS_ERR_LAST)..0).contains(&value) {
            Self::Code(value as ucs_status_t)
        } else {
            Self::Request
        }
    }
}

fn check(ucx: &Ucx, function: &str, status: ucs_status_t) -> Result<()> {
    let kind = match status {
        UCS_OK => return Ok(()),
        UCS_ERR_NO_MEMORY => ErrorKind::NoMemory,
        UCS_ERR_NO_DEVICE => ErrorKind::Unavailable,
        _ => ErrorKind::Io,
    };
    Err(Error::new(kind, format!("OpenUCX's {function}: {}", ucx.text(status))))
}

fn request_param() -> ucp_request_param_t {
    ucp_request_param_t {
        op_attr_mask: 0,
        flags: 0,
        request: null_mut(),
        cb: None,
        datatype: 0,
        user_data: null_mut(),
        reply_buffer: null_mut(),
        memory_type: 0,
        recv_info: null_mut(),
        memh: null_mut(),
    }
}

fn new_context(ucx: &Ucx, nranks: usize) -> Result<ucp_context_h> {
    let params = ucp_params_t {
        field_mask: u64::from(
            UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        ),
        features: u64::from(UCP_FEATURE_AM | UCP_FEATURE_WAKEUP),
        request_size: 0,
        request_init: None,
        request_cleanup: None,
        tag_sender_mask: 0,
        mt_workers_shared: 0,
        estimated_num_eps: nranks,
        estimated_num_ppn: 0,
        name: null(),
    };
    let (mut config, mut context) = (null_mut(), null_mut());
    // SAFETY: null stands for UCX's own prefix of variables, and for no file.
    check(ucx, "ucp_config_read", unsafe { (ucx.ucp_config_read)(null(), null(), &mut config) })?;
    // SAFETY: parameters and settings are alive; the settings are copied.
    let status = unsafe {
        let status = (ucx.ucp_init_version)(API.0, API.1, &params, config, &mut context);
        (ucx.ucp_config_release)(config);
        status
    };
    check(ucx, "ucp_init", status).map(|()| context)
}

fn new_worker(ucx: &Ucx, context: ucp_context_h) -> Result<ucp_worker_h> {
    let params = ucp_worker_params_t {
        field_mask: u64::from(UCP_WORKER_PARAM_FIELD_THREAD_MODE),
        thread_mode: UCS_THREAD_MODE_SERIALIZED,
        cpu_mask: ucs_cpu_set_t { ucs_bits: [0; 16] },
        events: 0,
        user_data: null_mut(),
        event_fd: -1,
        flags: 0,
        name: null(),
        am_alignment: 0,
        client_id: 0,
    };
    let mut worker = null_mut();
    // SAFETY: the context is alive.
    let status = unsafe { (ucx.ucp_worker_create)(context, &params, &mut worker) };
    check(ucx, "ucp_worker_create", status).map(|()| worker)
}

/// A frame has come.
unsafe extern "C" fn came(
    desk: *mut c_void,
    _header: *const c_void,
    _header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: UCX calls this with what it was given, and a whole message; nobody else uses the inbox meanwhile.
    unsafe {
        // Never sent so: its data would have to be fetched.
        if (*param).recv_attr & u64::from(UCP_AM_RECV_ATTR_FLAG_RNDV) == 0 {
            let frame = std::slice::from_raw_parts(data.cast::<u8>().cast_const(), length);
            (*desk.cast::<Desk>()).inbox.receive(frame);
        }
    }
    UCS_OK
}

/// A parcel has been sent.
unsafe extern "C" fn sent(request: *mut c_void, status: ucs_status_t, parcel: *mut c_void) {
    // SAFETY: UCX calls this once for each parcel that it has kept; nobody else uses the inbox meanwhile.
    unsafe {
        let parcel = Box::from_raw(parcel.cast::<Parcel>());
        let Desk { ucx, inbox } = &mut *parcel.desk;
        (ucx.ucp_request_free)(request);
        inbox.stirred = true;
        if status != UCS_OK {
            inbox.broken.push((parcel.rank, ucx.text(status)));
        }
        inbox.sent.push(parcel);
    }
}

/// A rank is lost.
unsafe extern "C" fn lost(watch: *mut c_void, _endpoint: ucp_ep_h, status: ucs_status_t) {
    // SAFETY: UCX calls this with what it was given; nobody else uses the inbox meanwhile.
    let (rank, Desk { ucx, inbox }) = unsafe {
        let watch = &*watch.cast::<Watch>();
        (watch.rank, &mut *watch.desk)
    };
    inbox.stirred = true;
    inbox.broken.push((rank, ucx.text(status)));
}
