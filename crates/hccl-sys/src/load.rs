//! Finds the toolkit's libraries and the functions in them.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use once_cell::sync::OnceCell;

use crate::*;

/// The library of the runtime.
const ACL: &[&str] = &["libascendcl.so"];
/// The libraries of HCCL: which of them has a function depends on the version of CANN.
const HCCL: &[&str] = &["libhccl.so", "libhcomm.so"];

/// The major version of ACL that the declarations describe.
const ACL_MAJOR: i32 = 1;
/// A version of CANN that has every function which is not optional.
const CANN_VERSION: &str = "8.5";

const HOME_UNSET: &str = "Set ASCEND_HOME_PATH to the toolkit's directory, as the toolkit's set_env.sh does";
const HOME_SET: &str =
    "ASCEND_HOME_PATH should name the toolkit's directory, in which lib64 is, as the toolkit's set_env.sh does";

/// Why CANN cannot be used, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// There is no library, or it cannot be loaded.
    #[error("CANN was not found: {tried}. {advice}")]
    Library {
        /// Each library that was looked for, and what the dynamic linker said.
        tried: String,
        /// What to set.
        advice: &'static str,
    },
    /// A function is missing.
    #[error(
        "this CANN is too old, or not complete: {libraries} (ACL {version}) lacks the function {function}. \
         Install CANN {CANN_VERSION} or newer"
    )]
    Function {
        /// Its name.
        function: &'static str,
        /// Where it was looked for.
        libraries: String,
        /// The version of ACL that was found.
        version: String,
    },
    /// The interface is another one.
    #[error(
        "this CANN has another interface: {library} has ACL {version}, and ACL {ACL_MAJOR} is needed. \
         Install a CANN that has it, such as {CANN_VERSION}"
    )]
    Version {
        /// Which library says so.
        library: String,
        /// The version that it says.
        version: String,
    },
}

macro_rules! table {
    (acl: { $($acl:ident)* } acl optional: { $($optional:ident)* } hccl: { $($hccl:ident)* }) => {
        /// The functions of an installed CANN. Those that only some versions have are optional.
        #[allow(missing_docs, reason = "each function's type is documented")]
        pub struct Cann {
            $(pub $acl: $acl,)*
            $(pub $optional: Option<$optional>,)*
            $(pub $hccl: $hccl,)*
        }

        impl Cann {
            fn find(acl: &Libraries, hccl: &Libraries, version: &str) -> Result<Self, LoadError> {
                // SAFETY: each name has the type of its declaration, which describes this version of the interface.
                unsafe {
                    Ok(Self {
                        $($acl: acl.function(stringify!($acl), version)?,)*
                        $($optional: acl.optional(stringify!($optional)),)*
                        $($hccl: hccl.function(stringify!($hccl), version)?,)*
                    })
                }
            }
        }

        #[cfg(test)]
        const REQUIRED: [&[&str]; 2] = [&[$(stringify!($acl)),*], &[$(stringify!($hccl)),*]];
    };
}

table! {
    acl: {
        aclInit aclGetRecentErrMsg aclrtGetVersion aclrtGetSocName
        aclrtGetDeviceCount aclrtSetDevice aclrtResetDevice aclrtGetDevice
        aclrtGetCurrentContext aclrtSetCurrentContext
        aclrtCreateStream aclrtDestroyStream aclrtStreamQuery
        aclrtSynchronizeStream aclrtSynchronizeStreamWithTimeout
        aclrtCreateEventExWithFlag aclrtDestroyEvent aclrtRecordEvent aclrtStreamWaitEvent
        aclrtQueryEventStatus aclrtSynchronizeEvent aclrtSynchronizeEventWithTimeout aclrtEventElapsedTime
        aclrtMalloc aclrtFree aclrtMallocHost aclrtFreeHost
        aclrtMemcpy aclrtMemcpyAsync aclrtMemset aclrtMemsetAsync
        aclrtMemGetAllocationGranularity aclrtMallocPhysical aclrtFreePhysical
        aclrtReserveMemAddress aclrtReleaseMemAddress aclrtMapMem aclrtUnmapMem aclrtMemSetAccess
        aclrtMemExportToShareableHandle aclrtMemImportFromShareableHandle
        aclrtDeviceEnablePeerAccess aclrtDevicePeerAccessStatus
        aclrtBinaryLoadFromData aclrtBinaryGetFunction aclrtBinaryUnLoad aclrtLaunchKernelWithHostArgs
    }
    acl optional: {
        aclrtGetLogicDevIdByUserDevId aclrtGetUserDevIdByLogicDevId aclrtGetMemInfo aclrtPointerGetAttributes
        aclrtMemExportToShareableHandleV2 aclrtMemImportFromShareableHandleV2 aclrtLaunchHostFunc
    }
    hccl: {
        HcclGetRootInfo HcclCommInitRootInfo HcclCommDestroy HcclGetRankSize HcclGetRankId HcclBarrier
        HcclGetErrorString
    }
}

impl Cann {
    /// The toolkit at `home`, which is what `ASCEND_HOME_PATH` says; if that is not set, the one that the dynamic
    /// linker finds. The first that is loaded is the process's: it is never unloaded, and later calls return it.
    pub fn get(home: Option<&Path>) -> Result<&'static Self, LoadError> {
        static CANN: OnceCell<Cann> = OnceCell::new();
        CANN.get_or_try_init(|| Self::load(home))
    }

    fn load(home: Option<&Path>) -> Result<Self, LoadError> {
        let acl = Libraries::open(home, ACL)?;
        let version = acl.version()?;
        let hccl = Libraries::open(home, HCCL)?;
        let cann = Self::find(&acl, &hccl, &version)?;
        // The vendor's libraries have threads and handlers of their own: they cannot be unloaded.
        std::mem::forget((acl, hccl));
        Ok(cann)
    }
}

/// Loaded libraries, which are searched one after another.
struct Libraries(Vec<(PathBuf, Library)>);

impl Libraries {
    /// Those of `names` that there are; at least one.
    fn open(home: Option<&Path>, names: &[&str]) -> Result<Self, LoadError> {
        let mut opened = Vec::new();
        let mut tried = String::new();
        for name in names {
            let path = home.map_or_else(|| PathBuf::from(name), |home| home.join("lib64").join(name));
            // SAFETY: what the library does when it is loaded, it does in every program that is linked with it.
            match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => opened.push((path, library)),
                Err(error) => {
                    let separator = if tried.is_empty() { "" } else { "; " };
                    let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                    write!(tried, "{separator}{} cannot be loaded ({reason})", path.display()).expect("memory");
                }
            }
        }
        if opened.is_empty() {
            return Err(LoadError::Library { tried, advice: if home.is_some() { HOME_SET } else { HOME_UNSET } });
        }
        Ok(Self(opened))
    }

    /// # Safety
    /// `T` is the type of the function of this name.
    unsafe fn optional<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: as the caller says.
        self.0.iter().find_map(|(_, library)| unsafe { library.get::<T>(name) }.ok().map(|function| *function))
    }

    /// # Safety
    /// `T` is the type of the function of this name.
    unsafe fn function<T: Copy>(&self, name: &'static str, version: &str) -> Result<T, LoadError> {
        // SAFETY: as the caller says.
        unsafe { self.optional(name) }.ok_or_else(|| LoadError::Function {
            function: name,
            libraries: self.names(),
            version: version.into(),
        })
    }

    fn names(&self) -> String {
        self.0.iter().map(|(path, _)| path.display().to_string()).collect::<Vec<_>>().join(" or ")
    }

    /// The version of ACL, if it is one that can be used.
    fn version(&self) -> Result<String, LoadError> {
        let unknown = "of unknown version";
        let (mut major, mut minor, mut patch) = (ACL_MAJOR, 0, 0);
        // SAFETY: all versions of ACL have this function, and it writes three numbers.
        let code = unsafe {
            let version: aclrtGetVersion = self.function("aclrtGetVersion", unknown)?;
            version(&mut major, &mut minor, &mut patch)
        };
        let version = if code == ACL_SUCCESS { format!("{major}.{minor}.{patch}") } else { unknown.into() };
        if major == ACL_MAJOR { Ok(version) } else { Err(LoadError::Version { library: self.names(), version }) }
    }
}

#[cfg(test)]
mod tests;
