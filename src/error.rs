//! The library's one error type: what went wrong, grouped by what the caller can do about it.

use std::fmt;

/// Kind of an [`Error`]. Each kind is one `pld_status_t` of the C interface, with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorKind {
    // Mistakes of the caller.
    /// An argument is null, out of range, or of the wrong kind.
    InvalidArgument = 1,
    /// The call is not allowed in the object's present state.
    InvalidState = 2,
    /// The object is in use by another thread.
    Busy = 3,
    /// An options struct comes from a newer version and asks for something unknown.
    Version = 4,
    /// The call is made in a forked child.
    Forked = 5,
    // Mistakes in a program.
    /// The text is not a program.
    Parse = 20,
    /// The program breaks a rule; the diagnostics say which.
    Verify = 21,
    /// The target or transport cannot do what is asked.
    Unsupported = 22,
    /// The checker has found an error; the diagnostics say which.
    Check = 23,
    // Resources.
    /// Memory is exhausted.
    NoMemory = 40,
    /// A window does not fit; the message has needed and available bytes.
    NoSpace = 41,
    /// A system call failed.
    Io = 42,
    /// What a transport needs is not on this machine: a library, a compiler, a card.
    Unavailable = 43,
    /// A function of a card's runtime failed.
    Device = 44,
    // Other ranks.
    /// A wait, a rendezvous or a launch did not end in time.
    Timeout = 60,
    /// A rank died or left.
    PeerLost = 61,
    /// Somebody called abort.
    Aborted = 62,
    /// The ranks disagree about world, program or sizes.
    Mismatch = 63,
    // Mistakes that only show when the program runs.
    /// An offset or a peer is outside; nothing was written there.
    OutOfBounds = 80,
    /// Division by zero, or a loop step that is not positive.
    Arithmetic = 81,
    /// A function of the engine returned an error.
    Callback = 82,
    /// A bug of the library.
    Internal = 99,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [ErrorKind; 22] = [
        ErrorKind::InvalidArgument,
        ErrorKind::InvalidState,
        ErrorKind::Busy,
        ErrorKind::Version,
        ErrorKind::Forked,
        ErrorKind::Parse,
        ErrorKind::Verify,
        ErrorKind::Unsupported,
        ErrorKind::Check,
        ErrorKind::NoMemory,
        ErrorKind::NoSpace,
        ErrorKind::Io,
        ErrorKind::Unavailable,
        ErrorKind::Device,
        ErrorKind::Timeout,
        ErrorKind::PeerLost,
        ErrorKind::Aborted,
        ErrorKind::Mismatch,
        ErrorKind::OutOfBounds,
        ErrorKind::Arithmetic,
        ErrorKind::Callback,
        ErrorKind::Internal,
    ];

    /// The kind with this number, if there is one.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == code)
    }
}

/// An error: its kind and one line that carries the numbers a person needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// One line (a report may add indented lines), without a "failed to" in front.
    pub message: String,
}

/// Result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// A caller's mistake in an argument.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// A failed system call, named.
    pub fn io(what: impl fmt::Display, cause: impl Into<std::io::Error>) -> Self {
        Self::new(ErrorKind::Io, format!("{what}: {}", cause.into()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_numbers_of_their_own() {
        assert!(ErrorKind::ALL.iter().all(|kind| ErrorKind::from_code(*kind as u32) == Some(*kind)));
        assert_eq!(ErrorKind::from_code(0), None);
    }
}
