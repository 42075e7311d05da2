//! Nothing to use: the tests of this crate are its purpose. Its build script makes C and Rust code that compares
//! `include/pld.h` with `src/capi`, and `crates/hccl-sys` and `crates/ucx-sys` with their headers where there are any.
