//! UCX as a guest: when it is loaded it takes signals for itself, to print where the process was, and it prints what it
//! meets on the standard output. Neither is its business in somebody else's process.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;

use crate::ucs_status_t;

/// Sets one of UCX's settings for the whole process.
pub(crate) type ucs_global_opts_set_value = unsafe extern "C" fn(*const c_char, *const c_char) -> ucs_status_t;

/// What was to happen upon signals.
pub(crate) struct Signals(Vec<(c_int, libc::sigaction)>);

impl Signals {
    /// What is to happen now.
    pub(crate) fn save() -> Self {
        Self((1..=libc::SIGRTMAX()).filter_map(|signal| Some((signal, action(signal)?))).collect())
    }

    #[cfg(test)]
    pub(crate) fn handlers(&self) -> Vec<(c_int, usize)> {
        self.0.iter().map(|(signal, action)| (*signal, action.sa_sigaction)).collect()
    }
}

impl Drop for Signals {
    /// Makes it so again.
    fn drop(&mut self) {
        for (signal, then) in &self.0 {
            if action(*signal).is_some_and(|now| now.sa_sigaction != then.sa_sigaction || now.sa_flags != then.sa_flags)
            {
                // SAFETY: the action was the signal's before.
                unsafe { libc::sigaction(*signal, then, std::ptr::null_mut()) };
            }
        }
    }
}

fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: without a new action, this only writes the present one, unless it fails.
    let read = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: it was written.
    (read == 0).then(|| unsafe { action.assume_init() })
}

/// Prints only what ends the process, unless the user has asked for more.
///
/// # Safety
/// `set` is UCX's function.
pub(crate) unsafe fn hush(set: ucs_global_opts_set_value) {
    if std::env::var_os("UCX_LOG_LEVEL").is_some() {
        return;
    }
    let hushed: [(&CStr, &CStr); 2] = [(c"LOG_LEVEL", c"fatal"), (c"WARN_UNUSED_ENV_VARS", c"n")];
    for (name, value) in hushed {
        // SAFETY: two texts; UCX copies what it needs. A setting that a version lacks is an error without consequence.
        unsafe { set(name.as_ptr(), value.as_ptr()) };
    }
}
