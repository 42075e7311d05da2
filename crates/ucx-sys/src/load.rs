//! Finds UCX's libraries and the functions in them.

use std::error::Error;
use std::ffi::CStr;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use once_cell::sync::OnceCell;

use crate::quiet::{self, Signals};
use crate::*;

/// Services of UCX's layers: they know the texts of errors.
const UCS: &str = "libucs.so.0";
/// The layer that is used here.
const UCP: &str = "libucp.so.0";

/// The interface that the declarations describe.
const MAJOR: u32 = 1;
/// The first version that has it.
const MINOR: u32 = 13;

/// Why UCX cannot be used, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// There is no library, or it cannot be loaded.
    #[error(
        "OpenUCX was not found: {library} cannot be loaded ({reason}). Install it (Debian's package libucx0, or pip's \
         libucx-cu12), or let PLD_UCX name the folder that has its libraries"
    )]
    Library {
        /// What was looked for.
        library: String,
        /// What the dynamic linker said.
        reason: String,
    },
    /// A function is missing.
    #[error(
        "this OpenUCX is not complete: {library} lacks the function {function}. Install OpenUCX {MAJOR}.{MINOR} or newer"
    )]
    Function {
        /// Where it was looked for.
        library: String,
        /// Its name.
        function: &'static str,
    },
    /// The interface is another one.
    #[error("this OpenUCX has version {version}, and a {MAJOR}.{MINOR} or newer {MAJOR}.x is needed ({library})")]
    Version {
        /// Which library says so.
        library: String,
        /// The version that it says.
        version: String,
    },
}

macro_rules! table {
    (ucs: { $($ucs:ident)* } ucp: { $($ucp:ident)* }) => {
        /// The functions of an installed UCX.
        #[allow(missing_docs, reason = "each function's type is documented")]
        pub struct Ucx {
            $(pub $ucs: $ucs,)*
            $(pub $ucp: $ucp,)*
        }

        impl Ucx {
            fn find(ucs: &Loaded, ucp: &Loaded) -> Result<Self, LoadError> {
                // SAFETY: each name has the type of its declaration, which describes this version of the interface.
                unsafe {
                    Ok(Self {
                        $($ucs: ucs.function(stringify!($ucs))?,)*
                        $($ucp: ucp.function(stringify!($ucp))?,)*
                    })
                }
            }
        }

        #[cfg(test)]
        const FUNCTIONS: [&[&str]; 2] = [&[$(stringify!($ucs)),*], &[$(stringify!($ucp)),*]];
    };
}

table! {
    ucs: { ucs_status_string }
    ucp: {
        ucp_get_version ucp_config_read ucp_config_release ucp_init_version ucp_cleanup
        ucp_worker_create ucp_worker_destroy ucp_worker_get_address ucp_worker_release_address
        ucp_worker_progress ucp_worker_get_efd ucp_worker_arm ucp_worker_flush_nbx ucp_worker_set_am_recv_handler
        ucp_ep_create ucp_ep_close_nbx ucp_am_send_nbx ucp_request_free ucp_request_check_status
    }
}

impl Ucx {
    /// UCX from the libraries in `folder`, which is what `PLD_UCX` says; if that is not set, those that the dynamic
    /// linker finds. The first that is loaded is the process's: it is never unloaded, and later calls return it.
    pub fn get(folder: Option<&Path>) -> Result<&'static Self, LoadError> {
        static UCX: OnceCell<Ucx> = OnceCell::new();
        UCX.get_or_try_init(|| Self::load(folder))
    }

    /// What a status means.
    pub fn text(&self, status: ucs_status_t) -> String {
        // SAFETY: the function returns a text that stays, whatever the status.
        let text = unsafe { CStr::from_ptr((self.ucs_status_string)(status)) };
        text.to_string_lossy().into_owned()
    }

    fn load(folder: Option<&Path>) -> Result<Self, LoadError> {
        let _signals = Signals::save();
        let ucs = Loaded::open(folder, UCS)?;
        let ucp = Loaded::open(folder, UCP)?;
        ucp.check_version()?;
        let ucx = Self::find(&ucs, &ucp)?;
        // SAFETY: the function of this name, which has this type in all versions of UCX 1.
        unsafe { quiet::hush(ucs.function("ucs_global_opts_set_value")?) };
        // UCX has threads and handlers of its own: it cannot be unloaded.
        std::mem::forget((ucs.1, ucp.1));
        Ok(ucx)
    }
}

/// A loaded library.
struct Loaded(PathBuf, Library);

impl Loaded {
    fn open(folder: Option<&Path>, name: &str) -> Result<Self, LoadError> {
        let path = folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        // SAFETY: what the library does when it is loaded, it does in every program that is linked with it.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            LoadError::Library { library: path.display().to_string(), reason }
        })?;
        Ok(Self(path, library))
    }

    /// # Safety
    /// `T` is the type of the function of this name.
    unsafe fn function<T: Copy>(&self, name: &'static str) -> Result<T, LoadError> {
        // SAFETY: as the caller says.
        let function = unsafe { self.1.get::<T>(name) };
        function.map(|function| *function).map_err(|_| LoadError::Function { library: self.name(), function: name })
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn check_version(&self) -> Result<(), LoadError> {
        let (mut major, mut minor, mut release) = (0, 0, 0);
        // SAFETY: all versions of UCX have this function, and it writes three numbers.
        unsafe { self.function::<ucp_get_version>("ucp_get_version")?(&mut major, &mut minor, &mut release) };
        if major == MAJOR && minor >= MINOR {
            return Ok(());
        }
        Err(LoadError::Version { library: self.name(), version: format!("{major}.{minor}.{release}") })
    }
}

#[cfg(test)]
mod tests;
