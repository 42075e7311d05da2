//! Graphs as pictures.

pub mod layers;
pub mod signals;
pub mod svg;
pub mod tasks;
