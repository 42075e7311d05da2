//! What several test programs share.

pub mod chaos;
pub mod programs;
