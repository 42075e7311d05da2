//! Expressions, and integers whose value may be known when compiling.

use std::fmt::Display;

use smallvec::SmallVec;

use super::kernel::{Expr, Type};
use crate::codegen::index::Number;
use crate::ir::ScalarType;

/// An integer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// Known when compiling.
    Const(i64),
    /// Known when the kernel runs.
    Value {
        /// What it is.
        expr: Expr,
        /// Its type in C++ has 32 bits.
        is_narrow: bool,
    },
}

/// Sizes, one a dimension.
pub type Sizes = SmallVec<[Size; 4]>;

impl Expr {
    /// A name, a literal, a call: something that binds tighter than any operator.
    pub fn operand(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_operand: true }
    }

    /// Something with an operator.
    pub fn compound(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_operand: false }
    }

    /// An integer literal.
    pub fn number(value: i64) -> Self {
        match value {
            i64::MIN => Self::operand("INT64_MIN"),
            // `-5` binds tighter than what it may stand beside, except another minus.
            value if value < 0 => Self::compound(value.to_string()),
            value => Self::operand(value.to_string()),
        }
    }

    /// A float literal, the same bits.
    pub fn float(value: f32) -> Self {
        match value {
            value if value.is_nan() => Self::operand("__builtin_nanf(\"\")"),
            f32::INFINITY => Self::operand("__builtin_inff()"),
            f32::NEG_INFINITY => Self::compound("-__builtin_inff()"),
            value if value.is_sign_negative() => Self::compound(format!("{value:?}f")),
            value => Self::operand(format!("{value:?}f")),
        }
    }

    /// `true` or `false`.
    pub fn bool(value: bool) -> Self {
        Self::operand(value.to_string())
    }

    /// `function(args)`.
    pub fn call<'a>(function: impl Display, args: impl IntoIterator<Item = &'a Expr>) -> Self {
        let args: Vec<&str> = args.into_iter().map(|arg| arg.text.as_str()).collect();
        Self::operand(format!("{function}({})", args.join(", ")))
    }

    /// `a op b`.
    pub fn binary(a: &Expr, op: &str, b: &Expr) -> Self {
        Self::compound(format!("{} {op} {}", a.as_operand(), b.as_operand()))
    }

    /// As an operand, in parentheses if it needs them.
    pub fn as_operand(&self) -> String {
        if self.is_operand { self.text.clone() } else { format!("({})", self.text) }
    }

    /// The literal that it is, if it is one.
    pub fn as_number(&self) -> Option<i64> {
        self.text.parse().ok()
    }
}

impl Type {
    /// The type of a scalar.
    pub fn of(ty: ScalarType) -> Self {
        match ty {
            ScalarType::I32 => Type::I32,
            ScalarType::I64 => Type::I64,
            ScalarType::F32 => Type::F32,
            ScalarType::Bool => Type::Bool,
        }
    }

    /// Its name in C++.
    pub fn name(self) -> &'static str {
        match self {
            Type::I32 => "int32_t",
            Type::I64 => "int64_t",
            Type::F32 => "float",
            Type::Bool => "bool",
        }
    }
}

impl Number for Size {
    fn constant(&self) -> Option<i64> {
        match self {
            Size::Const(value) => Some(*value),
            Size::Value { .. } => None,
        }
    }
}

impl From<i64> for Size {
    fn from(value: i64) -> Self {
        Size::Const(value)
    }
}

impl Size {
    /// A value of 64 bits.
    pub fn wide(expr: Expr) -> Self {
        match expr.as_number() {
            Some(value) => Size::Const(value),
            None => Size::Value { expr, is_narrow: false },
        }
    }

    /// Its value.
    pub fn expr(&self) -> Expr {
        match self {
            Size::Const(value) => Expr::number(*value),
            Size::Value { expr, .. } => expr.clone(),
        }
    }

    /// Its value in 64 bits, for arithmetic.
    fn widened(&self) -> Expr {
        match self {
            Size::Value { expr, is_narrow: true } => Expr::call("int64_t", [expr]),
            size => size.expr(),
        }
    }

    /// The sum.
    pub fn add(&self, other: &Size) -> Size {
        match (self, other) {
            (Size::Const(a), Size::Const(b)) => Size::Const(a.wrapping_add(*b)),
            (a, Size::Const(0)) | (Size::Const(0), a) => a.clone(),
            (a, Size::Const(b)) if *b < 0 && *b != i64::MIN => a.minus(&Size::Const(-b)),
            (a, b) => {
                let (a, b) = (a.widened(), b.widened());
                Size::wide(Expr::compound(format!("{} + {}", term(&a, &["+", "-"]), term(&b, &["+"]))))
            }
        }
    }

    /// The difference.
    pub fn sub(&self, other: &Size) -> Size {
        match (self, other) {
            (Size::Const(a), Size::Const(b)) => Size::Const(a.wrapping_sub(*b)),
            (a, Size::Const(0)) => a.clone(),
            (a, Size::Const(b)) if *b < 0 && *b != i64::MIN => a.add(&Size::Const(-b)),
            (a, b) => a.minus(b),
        }
    }

    fn minus(&self, other: &Size) -> Size {
        let (a, b) = (self.widened(), other.widened());
        Size::wide(Expr::compound(format!("{} - {}", term(&a, &["+", "-"]), term(&b, &[]))))
    }

    /// The product.
    pub fn mul(&self, other: &Size) -> Size {
        match (self, other) {
            (Size::Const(a), Size::Const(b)) => Size::Const(a.wrapping_mul(*b)),
            (_, Size::Const(0)) | (Size::Const(0), _) => Size::Const(0),
            (a, Size::Const(1)) | (Size::Const(1), a) => a.clone(),
            (a, b) => Size::wide(Expr::binary(&a.widened(), "*", &b.widened())),
        }
    }

    /// The smaller one.
    pub fn min(&self, other: &Size) -> Size {
        match (self, other) {
            (Size::Const(a), Size::Const(b)) => Size::Const(*a.min(b)),
            (a, b) if a == b => a.clone(),
            (a, b) => Size::wide(Expr::call("pld::min<int64_t>", [&a.expr(), &b.expr()])),
        }
    }
}

/// An expression as a term of a sum, without parentheses that it does not need: those of products, and of sums of the
/// `open` operators.
fn term(expr: &Expr, open: &[&str]) -> String {
    let mut depth = 0;
    let is_open = expr.text.split(' ').all(|word| {
        let is_inside =
            depth > 0 || word.contains(|c: char| c.is_alphanumeric() || "()<>[]".contains(c) && word.len() > 1);
        depth += word.matches(['(', '[', '{']).count() as i32 - word.matches([')', ']', '}']).count() as i32;
        is_inside || word == "*" || open.contains(&word)
    });
    if is_open && !expr.text.starts_with('-') { expr.text.clone() } else { expr.as_operand() }
}
