//! Mistakes that show only when a program runs.

/// Kind of a run-time mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// A region reaches outside its tensor: `offsets`, `extents`, `dim`, `operand` are set.
    Bounds = 1,
    /// A peer outside the domain: `offsets[0]` is the peer, `extents[0]` the number of ranks. Of several peers,
    /// `offsets` is the range.
    Peer = 2,
    /// An index outside a local array: `offsets[0]` is the index, `extents[0]` the length.
    Array = 3,
    /// Integer division by zero.
    Division = 4,
    /// A loop step that is not positive: `offsets[0]` is the step.
    Step = 5,
    /// What is required does not hold: `offsets` is the left side and the peer that it is about, or -1; `extents[0]` the
    /// right side.
    Require = 6,
    /// A peer calls another collective: `offsets` is the number of its call and the peer, `extents[0]` the own number.
    Agree = 7,
}
