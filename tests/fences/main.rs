//! Fences of PTO kernels: put in by one pass, checked by another.

#[path = "../support/choices.rs"]
mod choices;
#[path = "../support/text.rs"]
mod text;

mod bodies;
mod random;
