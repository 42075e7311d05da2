//! Calls of CANN's functions: what they return becomes an error that names the function, its code, what CANN says about
//! it, and what may help.

use std::ffi::{CStr, c_char};

use hccl_sys::*;

use crate::error::{Error, ErrorKind, Result};

/// Longest text of CANN that goes into a message.
const LONGEST_TEXT: usize = 600;

/// `acl!(cann, aclrtFree(address))` calls it.
macro_rules! acl {
    ($cann:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $crate::transport::hccl::call::acl_result($cann, stringify!($function), ($cann.$function)($($argument),*))
    };
}

/// `hccl!(cann, HcclCommDestroy(comm))` calls it.
macro_rules! hccl {
    ($cann:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $crate::transport::hccl::call::hccl_result($cann, stringify!($function), ($cann.$function)($($argument),*))
    };
}

pub(super) use {acl, hccl};

/// What `function` of ACL has returned.
pub(super) fn acl_result(cann: &Cann, function: &str, code: aclError) -> Result<()> {
    if code == ACL_SUCCESS {
        return Ok(());
    }
    let kind = match code {
        ACL_ERROR_RT_MEMORY_ALLOCATION | ACL_ERROR_RT_DEVICE_OOM | ACL_ERROR_BAD_ALLOC => ErrorKind::NoMemory,
        ACL_ERROR_RT_NO_DEVICE => ErrorKind::Unavailable,
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT | ACL_ERROR_API_NOT_SUPPORT => ErrorKind::Unsupported,
        _ => ErrorKind::Device,
    };
    // SAFETY: the function takes nothing and returns a text of this thread, or NULL.
    let text = unsafe { shown((cann.aclGetRecentErrMsg)()) };
    Err(Error::new(kind, message(function, acl_error_name(code), i64::from(code), text, acl_hint(function, code))))
}

/// What `function` of HCCL has returned.
pub(super) fn hccl_result(cann: &Cann, function: &str, code: HcclResult) -> Result<()> {
    if code == HCCL_SUCCESS {
        return Ok(());
    }
    let kind = match code {
        HCCL_E_MEMORY | HCCL_E_OOM => ErrorKind::NoMemory,
        HCCL_E_TIMEOUT => ErrorKind::Timeout,
        HCCL_E_NOT_SUPPORT => ErrorKind::Unsupported,
        _ => ErrorKind::Device,
    };
    // SAFETY: both functions return a text, static or of this thread, or NULL.
    let texts = unsafe { [shown((cann.HcclGetErrorString)(code)), shown((cann.aclGetRecentErrMsg)())] };
    let text = texts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let text = Some(text).filter(|text| !text.is_empty());
    Err(Error::new(kind, message(function, hccl_result_name(code), i64::from(code), text, hccl_hint(code))))
}

/// Forgets what CANN says about a call whose failure is no error, so that it is not said about another one.
pub(super) fn forget_text(cann: &Cann) {
    // SAFETY: the function takes nothing, and returns a text that nobody reads.
    unsafe { (cann.aclGetRecentErrMsg)() };
}

fn message(function: &str, name: Option<&str>, code: i64, text: Option<String>, hint: Option<&str>) -> String {
    let code = name.map_or_else(|| format!("error {code}"), |name| format!("{name} ({code})"));
    let text = text.map(|text| format!(": {text}")).unwrap_or_default();
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{function}: {code}{text}{hint}")
}

/// A text of CANN on one line.
///
/// # Safety
/// `text` is NULL or a terminated string.
unsafe fn shown(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST_TEXT) {
        line.truncate(end);
        line.push_str(" ...");
    }
    Some(line).filter(|line| !line.is_empty())
}

fn acl_hint(function: &str, code: aclError) -> Option<&'static str> {
    match code {
        ACL_ERROR_RT_INVALID_DEVICEID | ACL_ERROR_RT_DRV_INTERNAL_ERROR if function == "aclrtMemSetAccess" => Some(
            "the driver may number the cards otherwise than this process does: compare ASCEND_RT_VISIBLE_DEVICES of all \
             ranks",
        ),
        ACL_ERROR_RT_NO_PERMISSION => Some("the user needs access to /dev/davinci*, as the driver's group has"),
        ACL_ERROR_RT_VECTOR_CORE_EXCEPTION | ACL_ERROR_RT_AICORE_EXCEPTION | ACL_ERROR_RT_AICPU_EXCEPTION => {
            Some("a kernel ended abnormally: the card's log (ASCEND_PROCESS_LOG_PATH) has its registers")
        }
        ACL_ERROR_RT_LINK_ERROR | ACL_ERROR_RT_SUSPECT_REMOTE_ERROR | ACL_ERROR_RT_LOST_HEARTBEAT => {
            Some("a card or a link may have failed: see npu-smi info")
        }
        _ => None,
    }
}

fn hccl_hint(code: HcclResult) -> Option<&'static str> {
    match code {
        HCCL_E_TIMEOUT => Some("HCCL_CONNECT_TIMEOUT sets how long HCCL waits for other ranks"),
        HCCL_E_TCP_CONNECT | HCCL_E_SYSCALL | HCCL_E_NETWORK => {
            Some("HCCL_SOCKET_IFNAME names the network interface by which the ranks reach each other")
        }
        HCCL_E_PARA | HCCL_E_UNAVAIL => Some("each rank needs a card of its own"),
        _ => None,
    }
}
