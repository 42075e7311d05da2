//! The tool as a user at a terminal, or a script, meets it.
#![allow(missing_docs, reason = "a test is its own documentation")]

mod bench;
mod check;
mod emit;
mod fmt;
mod graph;
mod help;
mod hosts;
mod info;
mod npy;
mod print;
mod run;
mod spawn;
mod support;
mod trace;
