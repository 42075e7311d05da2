//! Correct programs: the checker finds nothing, and compiled code does what the interpreter says.
#![allow(missing_docs, reason = "a test is its own documentation")]

#[path = "../support/compiled.rs"]
mod compiled;
#[path = "../support/exchanges.rs"]
mod exchanges;
#[path = "../support/programs.rs"]
mod programs;

mod random;
mod shown;
