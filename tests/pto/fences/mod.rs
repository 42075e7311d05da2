//! Fences: put in by one pass, checked by another.

mod bodies;
mod discipline;
mod emitted;
mod random;
