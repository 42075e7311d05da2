//! Graphs and launches as pictures.

pub mod lanes;
pub mod layers;
pub mod signals;
pub mod svg;
pub mod tasks;
