//! Ranks on several hosts, which reach each other by OpenUCX.

pub mod network;
