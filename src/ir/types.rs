//! Element types and the small enums of the ops.

use std::fmt;

/// Element type of a tensor, window or tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum DType {
    /// IEEE binary32.
    F32 = 1,
    /// IEEE binary16.
    F16 = 2,
    /// bfloat16.
    BF16 = 3,
    /// Signed 8 bit.
    I8 = 4,
    /// Unsigned 8 bit.
    U8 = 5,
    /// Signed 16 bit.
    I16 = 6,
    /// Unsigned 16 bit.
    U16 = 7,
    /// Signed 32 bit; the type of signals.
    I32 = 8,
    /// Unsigned 32 bit.
    U32 = 9,
    /// Signed 64 bit.
    I64 = 10,
    /// Unsigned 64 bit.
    U64 = 11,
    /// One byte, 0 or 1.
    Bool = 12,
    /// OCP 8-bit float E4M3 (finite, no infinities); storage only.
    F8E4M3 = 13,
    /// OCP 8-bit float E5M2; storage only.
    F8E5M2 = 14,
}

/// Type of a scalar value. Elements are widened to one of these when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum ScalarType {
    /// Signed 32 bit.
    I32,
    /// Signed 64 bit: loop indices, sizes, literals.
    I64,
    /// IEEE binary32.
    F32,
    /// True or false.
    Bool,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 14] = [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::Bool,
        DType::F8E4M3,
        DType::F8E5M2,
    ];

    /// Name in program text.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::U64 => "u64",
            DType::Bool => "bool",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
        }
    }

    /// The type that `name` names in program text.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Size of one element in bytes.
    pub fn size(self) -> i64 {
        match self {
            DType::I8 | DType::U8 | DType::Bool | DType::F8E4M3 | DType::F8E5M2 => 1,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::I64 | DType::U64 => 8,
        }
    }

    /// Moved and cast, but never computed with.
    pub fn is_storage_only(self) -> bool {
        matches!(self, DType::F8E4M3 | DType::F8E5M2)
    }

    /// A floating-point type, the storage-only ones included.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16) || self.is_storage_only()
    }

    /// Can be the target of an atomic add (on the CPU; other targets have tables of their own).
    pub fn has_atomic_add(self) -> bool {
        use DType::*;
        matches!(self, F32 | F16 | BF16 | I32 | I16 | I8)
    }

    /// The scalar type that an element has once read; none for storage-only types. `u32` widens to `i64`; `u64` keeps
    /// its bits in an `i64`.
    pub fn scalar(self) -> Option<ScalarType> {
        match self {
            DType::F32 | DType::F16 | DType::BF16 => Some(ScalarType::F32),
            DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32 => Some(ScalarType::I32),
            DType::U32 | DType::I64 | DType::U64 => Some(ScalarType::I64),
            DType::Bool => Some(ScalarType::Bool),
            DType::F8E4M3 | DType::F8E5M2 => None,
        }
    }
}

impl ScalarType {
    /// Name in program text.
    pub fn name(self) -> &'static str {
        self.dtype().name()
    }

    /// The type that `name` names in program text.
    pub fn from_name(name: &str) -> Option<ScalarType> {
        [ScalarType::I32, ScalarType::I64, ScalarType::F32, ScalarType::Bool].into_iter().find(|t| t.name() == name)
    }

    /// The element type of the same values.
    pub fn dtype(self) -> DType {
        match self {
            ScalarType::I32 => DType::I32,
            ScalarType::I64 => DType::I64,
            ScalarType::F32 => DType::F32,
            ScalarType::Bool => DType::Bool,
        }
    }

    /// `i32` or `i64`.
    pub fn is_int(self) -> bool {
        matches!(self, ScalarType::I32 | ScalarType::I64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every variant, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Name in program text.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The variant that `name` names in program text.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named_enum! {
    /// What a callee does with a tensor parameter.
    Direction {
        /// Read.
        In = "in",
        /// Written.
        Out = "out",
        /// Read and written.
        InOut = "inout",
    }
}

named_enum! {
    /// How a notify changes its cell.
    NotifyOp {
        /// Adds the value, atomically.
        Add = "+=",
        /// Replaces the cell by the value.
        Set = "=",
    }
}

named_enum! {
    /// How a wait compares its cell with the expected value (signed).
    WaitCmp {
        /// Cell equal to expected.
        Eq = "==",
        /// Cell greater than or equal to expected.
        Ge = ">=",
    }
}

named_enum! {
    /// How a remote write combines with what is there.
    Atomic {
        /// Overwrites.
        None = "none",
        /// Adds per element, atomically.
        Add = "add",
    }
}

named_enum! {
    /// Binary op on scalars. Both operands are always evaluated.
    BinaryOp {
        /// Wrapping addition.
        Add = "+",
        /// Wrapping subtraction.
        Sub = "-",
        /// Wrapping multiplication.
        Mul = "*",
        /// Division, truncating toward zero on integers; by zero ends the launch.
        Div = "/",
        /// Remainder with the sign of the dividend, integers only; by zero ends the launch.
        Rem = "%",
        /// The smaller one.
        Min = "min",
        /// The larger one.
        Max = "max",
        /// Equal.
        Eq = "==",
        /// Not equal.
        Ne = "!=",
        /// Less.
        Lt = "<",
        /// Less or equal.
        Le = "<=",
        /// Greater.
        Gt = ">",
        /// Greater or equal.
        Ge = ">=",
        /// Both, on bool.
        And = "and",
        /// Either, on bool.
        Or = "or",
    }
}

impl BinaryOp {
    /// Yields a bool from two numbers.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// Takes and yields bools.
    pub fn is_logic(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or)
    }
}

named_enum! {
    /// Unary op on scalars.
    UnaryOp {
        /// Negation, on numbers.
        Neg = "-",
        /// Negation, on bool.
        Not = "not",
    }
}

named_enum! {
    /// Elementwise op on tiles.
    TileOp {
        /// Sum.
        Add = "add",
        /// Difference.
        Sub = "sub",
        /// Product.
        Mul = "mul",
        /// Quotient; integers truncate, and division by zero ends the launch.
        Div = "div",
        /// Larger one.
        Max = "max",
        /// Smaller one.
        Min = "min",
    }
}

named_enum! {
    /// How the elements of ranks combine: in the order of the ranks; f16 and bf16 in f32, integers wrap.
    Combine {
        /// Sum.
        Sum = "sum",
        /// Product.
        Prod = "prod",
        /// Maximum.
        Max = "max",
        /// Minimum.
        Min = "min",
    }
}

named_enum! {
    /// The algorithm of a collective; never changes what it means.
    Mode {
        /// The library's choice.
        Auto = "auto",
        /// Every rank stages what it gives, and takes from all: one synchronisation.
        Mesh = "mesh",
        /// Straight between the windows, without staging: two synchronisations. Not for allreduce.
        Direct = "direct",
        /// Partial results travel from neighbour to neighbour. For allreduce.
        Ring = "ring",
        /// Each rank combines its share of the elements and hands it to all. For allreduce.
        TwoPhase = "two_phase",
        /// Inside hosts and between them: what goes to another host goes there once. Not for all-to-alls.
        Hierarchical = "hierarchical",
    }
}

named_enum! {
    /// Reduction of a tile along one axis.
    ReduceOp {
        /// Sum; f16 and bf16 accumulate in f32.
        Sum = "sum",
        /// Maximum.
        Max = "max",
    }
}

named_enum! {
    /// Axis of a tile reduction.
    ReduceAxis {
        /// Along each row: `[r, c]` becomes `[r, 1]`.
        Row = "row",
        /// Along each column: `[r, c]` becomes `[1, c]`.
        Col = "col",
    }
}
