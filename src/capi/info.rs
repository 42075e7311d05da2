//! What the library is and what it finds on this machine.

use std::ffi::c_void;

use crate::error::Error;
use crate::runtime::Info;

use super::guard;
use super::program::{pld_write_fn, put};
use super::status::pld_status_t;

/// Writes, for people, what to send along with a question: the library's version, the CPUs and the instructions that it
/// uses, each transport and why it cannot be used here, and every environment variable with its value, where that comes
/// from, and what it means. Reads the environment. Local; callable from any thread.
///
/// Errors: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_IO` if `write` returned other than 0.
#[unsafe(no_mangle)]
pub extern "C" fn pld_info(write: pld_write_fn, user_data: *mut c_void) -> pld_status_t {
    guard::status(|| {
        let write = write.ok_or_else(|| Error::invalid("write is NULL"))?;
        put(write, user_data, &Info::gather().to_string())
    })
}
