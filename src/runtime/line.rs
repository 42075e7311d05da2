//! Values on cache lines of their own.

use std::ops::Deref;

/// A value that one thread changes in every launch, kept off the lines that others read meanwhile.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Line<T>(pub(super) T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
