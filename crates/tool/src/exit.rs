//! How the tool ends.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use pld::error::{Error, ErrorKind};

/// What the exit code says; the numbers stand in `pld --help` and do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Ok,
    /// The program is wrong, a file is not formatted, or results are not as expected.
    Findings,
    /// The command line is wrong, or what it gives does not fit the program.
    Usage,
    /// A launch failed, or there is no world for it.
    Launch,
    /// A file could not be read or written.
    File,
    /// Nobody reads the output any more.
    Closed,
    /// What a process of the user's ended with.
    Other(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Launch => 3,
            Exit::File => 4,
            Exit::Closed => 141,
            Exit::Other(code) => code,
        })
    }
}

/// Why a command ends early.
#[derive(Debug)]
pub struct Failure {
    /// How the tool ends.
    pub exit: Exit,
    /// What is said on standard error; may have several lines.
    pub message: String,
}

/// Result of everything that can end a command early.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// A file could not be read or written.
    pub fn file(path: &Path, cause: impl fmt::Display) -> Self {
        Self { exit: Exit::File, message: format!("{}: {cause}", path.display()) }
    }
}

/// Writing to standard output or standard error failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let exit = if error.kind() == io::ErrorKind::BrokenPipe { Exit::Closed } else { Exit::File };
        Self { exit, message: format!("the output: {error}") }
    }
}

/// The library refuses, or a launch has failed.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind {
            ErrorKind::InvalidArgument => Exit::Usage,
            ErrorKind::Parse | ErrorKind::Verify | ErrorKind::Check => Exit::Findings,
            _ => Exit::Launch,
        };
        Self { exit, message: error.message }
    }
}
