//! Layouts, constants and signatures of `include/pld.h` and of the library are the same.
#![allow(missing_docs, non_camel_case_types, clippy::print_stderr, clippy::print_stdout, reason = "generated code")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "generated code")]

use pld::capi::arg::*;
use pld::capi::control::*;
use pld::capi::dim::*;
use pld::capi::dtype::*;
use pld::capi::entry::*;
use pld::capi::executable::*;
use pld::capi::host::*;
use pld::capi::log::*;
use pld::capi::program::*;
use pld::capi::run::*;
use pld::capi::scalar::*;
use pld::capi::signal::*;
use pld::capi::status::*;
use pld::capi::task::*;
use pld::capi::tensor::*;
use pld::capi::tile::*;
use pld::capi::transfer::*;
use pld::capi::version::*;
use pld::capi::world::*;

include!(concat!(env!("OUT_DIR"), "/test.rs"));
