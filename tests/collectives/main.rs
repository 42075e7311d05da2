//! Collectives: what they leave, on any number of ranks, for any count, type and mode, in any order.
#![allow(missing_docs, reason = "a test is its own documentation")]

mod calls;
mod case;
mod matrix;
mod numbers;
