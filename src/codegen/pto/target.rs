//! The generations of NPUs.

/// What kernels are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Ascend 910B and 910C.
    A2A3,
    /// Ascend 950.
    A5,
}
