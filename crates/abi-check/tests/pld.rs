//! Layouts, constants and signatures of `include/pld.h` and of `src/capi` are the same, and so are the functions.
#![allow(missing_docs, non_camel_case_types, clippy::all, clippy::print_stderr, clippy::print_stdout)]
#![allow(clippy::undocumented_unsafe_blocks, reason = "all of it is generated")]

// For their symbols: the library's, and those of the C side of this test.
use pld as _;
use pld_abi_check as _;

mod bindings {
    include!(concat!(env!("OUT_DIR"), "/pld_bindings.rs"));
}

mod comparison {
    use crate::bindings::*;

    include!(concat!(env!("OUT_DIR"), "/pld_test.rs"));

    #[test]
    fn header_and_library_agree() {
        main();
    }
}
