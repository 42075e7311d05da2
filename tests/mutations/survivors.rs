//! The mutants that are not found, and why.

/// A mutant that is not found.
pub struct Survivor {
    pub mutant: &'static str,
    pub why: Why,
    /// In words.
    #[allow(dead_code, reason = "for the reader")]
    pub reason: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Why {
    /// It means the same.
    Equivalent,
    /// It means something else.
    Missed,
}

pub const TWO_COUNTERS: &[Survivor] = &[];

pub const PHASES: &[Survivor] = &[];

pub const CREDITS: &[Survivor] = &[];

pub const MOE: &[Survivor] = &[];
