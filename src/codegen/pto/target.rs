//! What the targets can do.

use crate::ir::{DType, ReduceOp, TileOp};

/// A generation of NPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Ascend 910B and 910C.
    A2A3,
    /// Ascend 950.
    A5,
}

/// How an op on elements of a type is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By an instruction of the vector unit.
    Vector,
    /// By the vector unit on f32, to which elements are converted and back.
    InF32,
    /// Element by element, by the scalar unit.
    Scalar,
}

/// A step of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// What comes out.
    pub to: DType,
    /// How the vector unit rounds; the scalar unit does it without.
    pub round: Option<Round>,
}

/// How a conversion of the vector unit rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To the nearest, of two the even one.
    Nearest,
    /// Toward zero, and to the nearest number that there is.
    TruncateAndSaturate,
    /// Integers, which wrap.
    Wrap,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 2] = [Target::A2A3, Target::A5];

    /// Most rows of a tile that loads and stores move.
    pub const MAX_ROWS: i64 = 4095;

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Target::A2A3 => "a2a3",
            Target::A5 => "a5",
        }
    }

    /// The target that `name` names.
    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }

    /// Bytes of the unified buffer, where tiles lie.
    pub fn ub_bytes(self) -> i64 {
        match self {
            Target::A2A3 => 192 << 10,
            Target::A5 => 256 << 10,
        }
    }

    /// Stores can add to elements of the type, atomically.
    pub fn has_atomic_add(self, dtype: DType) -> bool {
        use DType::*;
        match dtype {
            F32 | F16 | I32 | I16 | I8 => true,
            BF16 => self == Target::A2A3,
            _ => false,
        }
    }

    /// How two tiles, or a tile and a scalar, are combined.
    pub fn arithmetic(self, op: TileOp, dtype: DType) -> Way {
        use DType::*;
        let divides = op == TileOp::Div;
        match dtype {
            F32 | F16 => Way::Vector,
            BF16 if self == Target::A5 && !divides => Way::Vector,
            BF16 => Way::InF32,
            // Nothing but the scalar unit notices a division by zero.
            _ if divides => Way::Scalar,
            I32 | I16 => Way::Vector,
            U32 | U16 | I64 | U64 if self == Target::A5 => Way::Vector,
            I8 | U8 if self == Target::A5 && op != TileOp::Mul => Way::Vector,
            _ => Way::Scalar,
        }
    }

    /// How rows or columns of a tile are reduced.
    pub fn reduction(self, op: ReduceOp, dtype: DType) -> Way {
        match dtype {
            DType::F32 | DType::I32 | DType::I16 => Way::Vector,
            DType::F16 if op == ReduceOp::Max => Way::Vector,
            DType::F16 | DType::BF16 => Way::InF32,
            _ => Way::Scalar,
        }
    }

    /// How a tile is filled with a number.
    pub fn fill(self, dtype: DType) -> Way {
        if dtype.size() == 8 && self == Target::A2A3 { Way::Scalar } else { Way::Vector }
    }

    /// The steps that convert one type to another, different one.
    pub fn conversions(self, from: DType, to: DType) -> Vec<Conversion> {
        use DType::*;
        let vector = |from, to| round(from, to).map(|round| Conversion { to, round: Some(round) });
        if let Some(direct) = vector(from, to) {
            return vec![direct];
        }
        let mut steps = Vec::new();
        // The scalar unit knows integers and f32. Integers of 8 bits are exact in f16.
        let (first, last) = match (from, to) {
            (I8 | U8 | Bool, F32 | BF16 | I16 | I32) => (Some(F16), None),
            (F16 | BF16, F16 | BF16) => (Some(F32), None),
            (F16 | BF16, _) => (Some(F32), None),
            (_, F16 | BF16) => (None, Some(F32)),
            _ => (None, None),
        };
        let mut at = from;
        for between in first.into_iter().chain(last) {
            if at != between {
                steps.extend(self.conversions(at, between));
                at = between;
            }
        }
        match vector(at, to) {
            Some(step) => steps.push(step),
            None if at == from && first.is_none() && last.is_none() => steps.push(Conversion { to, round: None }),
            None => steps.extend(self.conversions(at, to)),
        }
        steps
    }
}

/// How the vector unit of all targets converts, where it means the same as a cast.
fn round(from: DType, to: DType) -> Option<Round> {
    use DType::*;
    match (from, to) {
        (F16 | BF16 | I16 | I32 | I64, F32) | (F32, F16 | BF16) | (I8 | U8 | Bool | I16, F16) => Some(Round::Nearest),
        (F32, I16 | I32 | I64) | (F16, I8 | U8 | I16 | I32) | (BF16, I32) => Some(Round::TruncateAndSaturate),
        (I32, I64 | I16) | (I64, I32) => Some(Round::Wrap),
        _ => None,
    }
}
