//! The declarations of `crates/ucx-sys` and the headers of OpenUCX agree: layouts, constants, signatures.
#![cfg(ucx_headers)]
#![allow(missing_docs, non_camel_case_types, non_snake_case, clippy::all, clippy::print_stderr, clippy::print_stdout)]
#![allow(clippy::undocumented_unsafe_blocks, reason = "all of it is generated")]

// For the symbols of the C side of this test.
use pld_abi_check as _;

mod bindings {
    include!(concat!(env!("OUT_DIR"), "/ucx_bindings.rs"));
}

mod comparison {
    use crate::bindings::*;

    include!(concat!(env!("OUT_DIR"), "/ucx_test.rs"));

    #[test]
    fn headers_and_declarations_agree() {
        main();
    }
}
