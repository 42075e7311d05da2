//! Messages about what worlds and executables do, for the engine's log. A world has its own callback, so that two worlds
//! (or two copies of the library) do not disturb each other.

use std::ffi::{CString, c_char, c_void};

use crate::error::Error;

/// How important a message is: a value of `enum pld_log_level`.
pub type pld_log_level_t = u32;

/// Values of `pld_log_level_t`.
#[repr(C)]
pub enum pld_log_level {
    /// All messages.
    PLD_LOG_DEFAULT = 0,
    /// Something failed; a status says so too.
    PLD_LOG_ERROR = 1,
    /// Something was made or ended.
    PLD_LOG_INFO = 2,
}

/// Gets a message, NUL-terminated, that lives until the callback returns. Called by any thread that uses the world, also
/// by several at once.
pub type pld_log_fn = Option<extern "C" fn(level: pld_log_level_t, message: *const c_char, user_data: *mut c_void)>;

/// Where a world's messages go.
pub(super) struct Log {
    callback: pld_log_fn,
    most: pld_log_level_t,
    user_data: UserData,
}

impl Log {
    pub(super) fn new(callback: pld_log_fn, level: pld_log_level_t, user_data: *mut c_void) -> Self {
        let most = if level == 0 { pld_log_level::PLD_LOG_INFO as pld_log_level_t } else { level };
        Self { callback, most, user_data: UserData(user_data) }
    }

    /// Something was made or ended.
    pub(super) fn info(&self, message: impl FnOnce() -> String) {
        self.write(pld_log_level::PLD_LOG_INFO, message);
    }

    /// Something failed.
    pub(super) fn error(&self, what: &str, error: &Error) {
        self.write(pld_log_level::PLD_LOG_ERROR, || format!("{what}: {error}"));
    }

    fn write(&self, level: pld_log_level, message: impl FnOnce() -> String) {
        let level = level as pld_log_level_t;
        if let Some(callback) = self.callback.filter(|_| level <= self.most) {
            let message = CString::new(message().replace('\0', "\u{fffd}")).unwrap_or_default();
            callback(level, message.as_ptr(), self.user_data.get());
        }
    }
}

/// The pointer that a callback gets back.
pub(super) struct UserData(pub(super) *mut c_void);

// SAFETY: the library only passes the pointer on, to a callback that the header says is called by any thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl UserData {
    /// The pointer.
    pub(super) fn get(&self) -> *mut c_void {
        self.0
    }
}
