//! Nothing to use: the test of this crate is its purpose. Its build script makes C and Rust code that compares
//! `include/pld.h` with `src/capi`.
