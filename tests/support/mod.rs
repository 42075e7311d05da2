//! What several integration tests share.

pub mod processes;
