//! Status codes and the last error's text.

use std::ffi::{CStr, c_char};

use crate::error::ErrorKind;

use super::guard;
use super::pointer::TextBuffer;

/// What a function that can fail returns: `PLD_OK` or one of the other `PLD_ERR_` values. The values never change.
pub type pld_status_t = i32;

/// Values of `pld_status_t`, grouped by what the caller can do about them.
#[repr(C)]
pub enum pld_status {
    /// Success.
    PLD_OK = 0,
    /// An argument is NULL, out of range, or of the wrong kind: the call is wrong.
    PLD_ERR_INVALID_ARGUMENT = 1,
    /// The call is not allowed in the object's present state.
    PLD_ERR_INVALID_STATE = 2,
    /// The object is in use by another thread.
    PLD_ERR_BUSY = 3,
    /// An options struct comes from a newer version and asks for something unknown.
    PLD_ERR_VERSION = 4,
    /// The call is made in a forked child.
    PLD_ERR_FORKED = 5,
    /// The text is not a program: the diagnostics say where.
    PLD_ERR_PARSE = 20,
    /// The program breaks a rule: the diagnostics say which.
    PLD_ERR_VERIFY = 21,
    /// The target or transport cannot do what is asked.
    PLD_ERR_UNSUPPORTED = 22,
    /// `pld_check` has found an error in the program: the diagnostics say which.
    PLD_ERR_CHECK = 23,
    /// Memory is exhausted.
    PLD_ERR_NO_MEMORY = 40,
    /// A window does not fit: the message has needed and available bytes.
    PLD_ERR_NO_SPACE = 41,
    /// A system call failed.
    PLD_ERR_IO = 42,
    /// What the transport needs is not on this machine: a library, a compiler, a card.
    PLD_ERR_UNAVAILABLE = 43,
    /// A function of a card's runtime failed: the message has its name and its error.
    PLD_ERR_DEVICE = 44,
    /// A wait, a rendezvous or a launch did not end in time.
    PLD_ERR_TIMEOUT = 60,
    /// A rank died or left.
    PLD_ERR_PEER_LOST = 61,
    /// Somebody called `pld_world_abort`.
    PLD_ERR_ABORTED = 62,
    /// The ranks disagree about world, program or sizes, or call different collectives.
    PLD_ERR_MISMATCH = 63,
    /// An offset or a peer of a running program is outside, and nothing was written there; or what it requires does not
    /// hold.
    PLD_ERR_OUT_OF_BOUNDS = 80,
    /// A running program divided by zero, or made a loop step that is not positive.
    PLD_ERR_ARITHMETIC = 81,
    /// A function of the engine that the program calls returned an error.
    PLD_ERR_CALLBACK = 82,
    /// A bug of the library. The object of the call may only be destroyed.
    PLD_ERR_INTERNAL = 99,
}

/// The status of success.
pub(super) const PLD_OK: pld_status_t = pld_status::PLD_OK as pld_status_t;

/// The kind that a status stands for; none for success and unknown values.
fn kind(status: pld_status_t) -> Option<ErrorKind> {
    use ErrorKind::*;
    let kinds = [
        InvalidArgument,
        InvalidState,
        Busy,
        Version,
        Forked,
        Parse,
        Verify,
        Unsupported,
        Check,
        NoMemory,
        NoSpace,
        Io,
        Unavailable,
        Device,
        Timeout,
        PeerLost,
        Aborted,
        Mismatch,
        OutOfBounds,
        Arithmetic,
        Callback,
        Internal,
    ];
    kinds.into_iter().find(|kind| *kind as pld_status_t == status)
}

fn texts(status: pld_status_t) -> (&'static CStr, &'static CStr) {
    use ErrorKind::*;
    let Some(kind) = kind(status) else {
        return if status == PLD_OK { (c"PLD_OK", c"success") } else { (c"PLD_ERR_UNKNOWN", c"unknown status") };
    };
    match kind {
        InvalidArgument => (c"PLD_ERR_INVALID_ARGUMENT", c"invalid argument"),
        InvalidState => (c"PLD_ERR_INVALID_STATE", c"not allowed in the object's present state"),
        Busy => (c"PLD_ERR_BUSY", c"in use by another thread"),
        Version => (c"PLD_ERR_VERSION", c"options of a newer version"),
        Forked => (c"PLD_ERR_FORKED", c"called in a forked child"),
        Parse => (c"PLD_ERR_PARSE", c"the text is not a program"),
        Verify => (c"PLD_ERR_VERIFY", c"the program breaks a rule"),
        Unsupported => (c"PLD_ERR_UNSUPPORTED", c"not supported by the target or transport"),
        Check => (c"PLD_ERR_CHECK", c"the checker has found an error"),
        NoMemory => (c"PLD_ERR_NO_MEMORY", c"out of memory"),
        NoSpace => (c"PLD_ERR_NO_SPACE", c"a window does not fit"),
        Io => (c"PLD_ERR_IO", c"a system call failed"),
        Unavailable => (c"PLD_ERR_UNAVAILABLE", c"a library, a compiler or a card is missing"),
        Device => (c"PLD_ERR_DEVICE", c"a function of a card's runtime failed"),
        Timeout => (c"PLD_ERR_TIMEOUT", c"not finished in time"),
        PeerLost => (c"PLD_ERR_PEER_LOST", c"a rank died or left"),
        Aborted => (c"PLD_ERR_ABORTED", c"aborted"),
        Mismatch => (c"PLD_ERR_MISMATCH", c"the ranks disagree"),
        OutOfBounds => (c"PLD_ERR_OUT_OF_BOUNDS", c"an offset or a peer is outside"),
        Arithmetic => (c"PLD_ERR_ARITHMETIC", c"division by zero or a bad loop step"),
        Callback => (c"PLD_ERR_CALLBACK", c"a function of the engine returned an error"),
        Internal => (c"PLD_ERR_INTERNAL", c"a bug of the library"),
    }
}

/// The name of a status, such as `PLD_ERR_TIMEOUT`; `"PLD_ERR_UNKNOWN"` for a value that is none. Never NULL, static.
/// Local; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_status_name(status: pld_status_t) -> *const c_char {
    texts(status).0.as_ptr()
}

/// What a status means, in a few words. Never NULL, static. The numbers are in `pld_last_error`. Local; callable from
/// any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_status_message(status: pld_status_t) -> *const c_char {
    texts(status).1.as_ptr()
}

/// Copies the message of the calling thread's last error into `buffer`, cut to `size` bytes with a terminating NUL
/// (at a whole UTF-8 character), and returns the message's full length without the NUL. A successful call leaves the
/// last message as it is. With `size` 0 nothing is written and `buffer` may be NULL. Local; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_last_error(buffer: TextBuffer, size: usize) -> usize {
    guard::value(0, || {
        let message = guard::last_error();
        buffer.write(&message, size);
        Ok(message.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_a_status_of_the_same_number() {
        for number in -10..200 {
            let (name, message) = texts(number);
            assert!(!message.is_empty());
            assert_eq!(kind(number).is_some(), name != c"PLD_OK" && name != c"PLD_ERR_UNKNOWN", "status {number}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_kinds() {
        use ErrorKind::*;
        use pld_status::*;
        let pairs = [
            (PLD_ERR_INVALID_ARGUMENT, InvalidArgument),
            (PLD_ERR_INVALID_STATE, InvalidState),
            (PLD_ERR_BUSY, Busy),
            (PLD_ERR_VERSION, Version),
            (PLD_ERR_FORKED, Forked),
            (PLD_ERR_PARSE, Parse),
            (PLD_ERR_VERIFY, Verify),
            (PLD_ERR_UNSUPPORTED, Unsupported),
            (PLD_ERR_CHECK, Check),
            (PLD_ERR_NO_MEMORY, NoMemory),
            (PLD_ERR_NO_SPACE, NoSpace),
            (PLD_ERR_IO, Io),
            (PLD_ERR_UNAVAILABLE, Unavailable),
            (PLD_ERR_DEVICE, Device),
            (PLD_ERR_TIMEOUT, Timeout),
            (PLD_ERR_PEER_LOST, PeerLost),
            (PLD_ERR_ABORTED, Aborted),
            (PLD_ERR_MISMATCH, Mismatch),
            (PLD_ERR_OUT_OF_BOUNDS, OutOfBounds),
            (PLD_ERR_ARITHMETIC, Arithmetic),
            (PLD_ERR_CALLBACK, Callback),
            (PLD_ERR_INTERNAL, Internal),
        ];
        for (status, expected) in pairs {
            assert_eq!(kind(status as i32), Some(expected));
        }
    }
}
