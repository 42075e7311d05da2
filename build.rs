//! Names the shared library as programs that link to it will look for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The part of the version that changes with the ABI; cmake/PldVersion.cmake makes the same name.
    let abi = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpld.so.{abi}");
}
