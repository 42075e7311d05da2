//! What UCX's headers say, in our words; only what is used here. Structures are as in UCX 1.13: later versions add fields
//! at the end, which they read only if a bit of the structure's mask says so.

mod message;
mod status;
mod worker;

pub use message::*;
pub use status::*;
pub use worker::*;
