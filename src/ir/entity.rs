//! Typed ids of a program's entities.

use cranelift_entity::entity_impl;

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )*};
}

entities! {
    /// A single-assignment scalar value.
    Scalar = "v";
    /// Global memory with a shape: a parameter, a window view, or a slice of either.
    Tensor = "x";
    /// An on-chip register with a static shape.
    Tile = "t";
    /// A mutable scalar.
    Var = "var";
    /// A small local array of scalars.
    Array = "arr";
    /// A symmetric window buffer: the same region on every rank.
    Buffer = "buf";
    /// A comm domain that the program names: the ranks that share windows.
    Domain = "domain";
    /// A named dimension: a constant of the program, or bound at launch.
    Dim = "dim";
    /// A size: an expression that is constant during a launch.
    Extent = "extent";
    /// The per-rank code that a host driver dispatches.
    Entry = "entry";
    /// One InCore scope of an entry.
    Task = "task";
    /// A list of ops.
    Block = "block";
    /// One op.
    Op = "op";
    /// A source file that locations name.
    File = "file";
}
