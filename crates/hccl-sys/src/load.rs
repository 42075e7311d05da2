//! Finds the toolkit's libraries and the functions in them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use once_cell::sync::OnceCell;

use crate::*;

/// The major version of ACL that the declarations describe.
const ACL_MAJOR: i32 = 1;

/// The library of the runtime.
const ACL: &[&str] = &["libascendcl.so"];
/// The libraries of HCCL: which of them has a function depends on the version of CANN.
const HCCL: &[&str] = &["libhccl.so", "libhcomm.so"];

/// Why CANN cannot be used, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A library is missing, or cannot be loaded.
    #[error("CANN was not found: {tried}. {advice}")]
    Library {
        /// What was looked for where, and what the dynamic linker said.
        tried: String,
        /// What to set.
        advice: &'static str,
    },
    /// A function is missing.
    #[error(
        "CANN is too old, or incomplete: {libraries} (ACL {version}) has no function {function}. Install CANN 8.5 or newer"
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
        "CANN has another interface: {library} speaks ACL {version}, and this program {ACL_MAJOR}.x. Install a CANN with ACL {ACL_MAJOR}.x"
    )]
    Version {
        /// Which library says so.
        library: String,
        /// The version that it says.
        version: String,
    },
}

const HOME_UNSET: &str = "Set ASCEND_HOME_PATH to the toolkit's directory, as its set_env.sh does";
const HOME_WRONG: &str =
    "ASCEND_HOME_PATH must name the toolkit's directory, the one with lib64 in it, as its set_env.sh sets it";

macro_rules! table {
    (
        acl: { $($acl:ident)* } acl optional: { $($acl_optional:ident)* }
        hccl: { $($hccl:ident)* } hccl optional: { $($hccl_optional:ident)* }
    ) => {
        /// The functions of an installed CANN. Those that only some versions have are optional.
        pub struct Cann {
            $(#[doc = concat!("[`", stringify!($acl), "`](type@", stringify!($acl), ")")] pub $acl: $acl,)*
            $(#[doc = concat!("[`", stringify!($acl_optional), "`](type@", stringify!($acl_optional), ")")] pub $acl_optional: Option<$acl_optional>,)*
            $(#[doc = concat!("[`", stringify!($hccl), "`](type@", stringify!($hccl), ")")] pub $hccl: $hccl,)*
            $(#[doc = concat!("[`", stringify!($hccl_optional), "`](type@", stringify!($hccl_optional), ")")] pub $hccl_optional: Option<$hccl_optional>,)*
        }

        impl Cann {
            fn from_libraries(acl: &Libraries, hccl: &Libraries) -> Result<Self, LoadError> {
                // SAFETY: each name has the type of its declaration, which describes this version of the interface.
                unsafe {
                    Ok(Self {
                        $($acl: acl.function(stringify!($acl))?,)*
                        $($acl_optional: acl.optional(stringify!($acl_optional)),)*
                        $($hccl: hccl.function(stringify!($hccl))?,)*
                        $($hccl_optional: hccl.optional(stringify!($hccl_optional)),)*
                    })
                }
            }
        }
    };
}

table! {
    acl: {
        aclInit aclGetRecentErrMsg aclrtGetVersion aclrtGetSocName aclrtGetDeviceCount aclrtSetDevice aclrtResetDevice
        aclrtGetDevice aclrtGetCurrentContext aclrtSetCurrentContext
        aclrtCreateStream aclrtDestroyStream aclrtSynchronizeStream aclrtSynchronizeStreamWithTimeout aclrtStreamQuery
        aclrtCreateEventExWithFlag aclrtDestroyEvent aclrtRecordEvent aclrtStreamWaitEvent aclrtQueryEventStatus
        aclrtSynchronizeEvent aclrtSynchronizeEventWithTimeout aclrtEventElapsedTime
        aclrtMalloc aclrtFree aclrtMallocHost aclrtFreeHost aclrtMemcpy aclrtMemcpyAsync aclrtMemset aclrtMemsetAsync
        aclrtMemGetAllocationGranularity aclrtMallocPhysical aclrtFreePhysical aclrtReserveMemAddress
        aclrtReleaseMemAddress aclrtMapMem aclrtUnmapMem aclrtMemSetAccess
        aclrtMemExportToShareableHandle aclrtMemImportFromShareableHandle
        aclrtDeviceEnablePeerAccess aclrtDevicePeerAccessStatus
        aclrtBinaryLoadFromData aclrtBinaryGetFunction aclrtBinaryUnLoad aclrtLaunchKernelWithHostArgs
    }
    acl optional: {
        aclrtGetLogicDevIdByUserDevId aclrtGetUserDevIdByLogicDevId aclrtGetMemInfo
        aclrtMemExportToShareableHandleV2 aclrtMemImportFromShareableHandleV2
        aclrtPointerGetAttributes aclrtLaunchHostFunc aclrtStreamGetId
    }
    hccl: {
        HcclGetRootInfo HcclCommInitRootInfo HcclCommDestroy HcclGetRankSize HcclGetRankId HcclBarrier HcclGetErrorString
    }
    hccl optional: { HcclGetCommAsyncError }
}

impl Cann {
    /// The toolkit at `home`, which is what `ASCEND_HOME_PATH` says; if that is not set, the one that the dynamic linker
    /// finds. The first that is loaded is the process's: it is never unloaded, and later calls return it.
    pub fn get(home: Option<&Path>) -> Result<&'static Self, LoadError> {
        static CANN: OnceCell<Cann> = OnceCell::new();
        CANN.get_or_try_init(|| Self::load(home))
    }

    fn load(home: Option<&Path>) -> Result<Self, LoadError> {
        let mut acl = Libraries::open(home, ACL)?;
        acl.version = acl.checked_version()?;
        let mut hccl = Libraries::open(home, HCCL)?;
        hccl.version.clone_from(&acl.version);
        let cann = Self::from_libraries(&acl, &hccl)?;
        // The vendor's libraries have threads and handlers of their own: they cannot be unloaded.
        std::mem::forget((acl, hccl));
        Ok(cann)
    }
}

/// Opened libraries that are searched one after another.
struct Libraries {
    opened: Vec<(PathBuf, Library)>,
    version: String,
}

impl Libraries {
    /// Those of `names` that there are; at least one.
    fn open(home: Option<&Path>, names: &[&str]) -> Result<Self, LoadError> {
        let mut opened = Vec::new();
        let mut tried = String::new();
        for name in names {
            let path = home.map_or_else(|| PathBuf::from(name), |home| home.join("lib64").join(name));
            // SAFETY: the vendor's initialisers run, as in every program that is linked with the library.
            match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => opened.push((path, library)),
                Err(error) => {
                    let separator = if tried.is_empty() { "" } else { "; " };
                    write!(tried, "{separator}{} cannot be loaded: {error}", path.display()).expect("memory");
                }
            }
        }
        if opened.is_empty() {
            return Err(LoadError::Library { tried, advice: if home.is_some() { HOME_WRONG } else { HOME_UNSET } });
        }
        Ok(Self { opened, version: "of unknown version".into() })
    }

    /// # Safety
    /// `T` is the type of the function of this name.
    unsafe fn optional<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: as the caller says; the libraries stay loaded.
        self.opened.iter().find_map(|(_, library)| unsafe { library.get::<T>(name) }.ok().map(|f| *f))
    }

    /// # Safety
    /// `T` is the type of the function of this name.
    unsafe fn function<T: Copy>(&self, name: &'static str) -> Result<T, LoadError> {
        // SAFETY: as the caller says.
        unsafe { self.optional(name) }.ok_or_else(|| LoadError::Function {
            function: name,
            libraries: self.names(),
            version: self.version.clone(),
        })
    }

    fn names(&self) -> String {
        self.opened.iter().map(|(path, _)| path.display().to_string()).collect::<Vec<_>>().join(" or ")
    }

    fn checked_version(&self) -> Result<String, LoadError> {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: all versions have this function, and it only writes the three numbers.
        let code = unsafe {
            let get_version: aclrtGetVersion = self.function("aclrtGetVersion")?;
            get_version(&mut major, &mut minor, &mut patch)
        };
        let version = format!("{major}.{minor}.{patch}");
        if code != ACL_SUCCESS || major != ACL_MAJOR {
            return Err(LoadError::Version { library: self.names(), version });
        }
        Ok(version)
    }
}
