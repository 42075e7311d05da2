//! The library's version.

use std::ffi::c_char;

/// The version of the library that runs: `major * 10000 + minor * 100 + patch`; the header's is `PLD_VERSION`. Local;
/// callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_version() -> u32 {
    let part = |text: &str| text.parse::<u32>().unwrap_or_default();
    let (major, minor) = (part(env!("CARGO_PKG_VERSION_MAJOR")), part(env!("CARGO_PKG_VERSION_MINOR")));
    major * 10000 + minor * 100 + part(env!("CARGO_PKG_VERSION_PATCH"))
}

/// The same as text, such as `0.1.0`. Never NULL, static. Local; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_version_string() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
