//! libpld: exchanges between ranks over symmetric window memory.
//!
//! A program is built or parsed ([`ir`]), verified ([`verify`]), explored ([`check`]), prepared ([`passes`]), turned into machine code
//! ([`codegen`]) and launched between ranks ([`runtime`]) over a [`transport`]. The product is the C interface in
//! `include/pld.h`, which [`capi`] implements; this crate's Rust interface serves the project's own tests and may
//! change at any time. `ARCHITECTURE.md` is the map.

pub mod capi;
pub mod check;
pub mod codegen;
pub mod environment;
pub mod error;
pub mod ir;
pub mod kernels;
pub mod passes;
mod random;
pub mod runtime;
pub mod transport;
pub mod verify;
