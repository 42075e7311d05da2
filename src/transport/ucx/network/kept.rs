//! Memory that far ranks reach: kept from when all have it until all have dropped it, as files in shared memory are.

use std::fmt;
use std::sync::Arc;

use super::inbox::Part;
use crate::transport::Mapping;

/// This rank's part of a memory.
pub struct Kept {
    /// Where it is.
    pub part: Part,
    /// Keeps it there.
    _mapping: Arc<Mapping>,
    /// This rank has dropped it.
    pub dropped: bool,
    /// By rank, those that have dropped theirs.
    pub released: Vec<bool>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, dropped, released, .. } = self;
        f.debug_struct("Kept").field("part", part).field("dropped", dropped).field("released", released).finish()
    }
}

impl Kept {
    pub fn new(part: Part, mapping: Arc<Mapping>, nranks: usize) -> Self {
        Self { part, _mapping: mapping, dropped: false, released: vec![false; nranks] }
    }
}
