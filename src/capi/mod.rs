//! The C interface: the only `extern "C"` that is exported. Convert, call, store; one file a noun.
//!
//! Names are spelled as in the header, which is generated from these files: their doc comments are its comments, and
//! `cbindgen.toml` holds its first page. Every function runs inside a [`guard`]: a panic becomes `PLD_ERR_INTERNAL`.
//! What a signature says is what the C caller promises: `Option<&T>` is a `const T *` that is NULL or valid,
//! `Option<&mut T>` a `T *` that nobody else uses during the call, `Option<Box<T>>` a handle that ends here, and the
//! types of [`mod@pointer`] are strings and lists. So these functions need no unsafe code of their own.
#![allow(non_camel_case_types, reason = "names are spelled as in the header")]

mod build;
mod guard;
mod handle;
mod options;
mod pointer;
mod reserve;

pub mod arg;
pub mod callback;
pub mod check;
pub mod collective;
pub mod control;
pub mod dim;
pub mod domain;
pub mod dtype;
pub mod entry;
pub mod executable;
pub mod host;
pub mod info;
pub mod log;
pub mod param;
pub mod program;
pub mod resident;
pub mod run;
pub mod scalar;
pub mod signal;
pub mod status;
pub mod task;
pub mod tensor;
pub mod tile;
pub mod transfer;
pub mod version;
pub mod world;
