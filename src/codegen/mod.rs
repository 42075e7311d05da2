//! Machine code from programs, one folder a target.

pub mod cpu;
