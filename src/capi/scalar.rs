//! Scalars: values of type `i32`, `i64`, `f32` or `bool`, each assigned once.

use crate::ir::{BinaryOp, UnaryOp};

use super::build::build;
use super::dtype::pld_dtype_t;
use super::pointer::{Scalars, Text};
use super::program::pld_program_t;

/// A scalar: a value of a program, or with `PLD_INT` an integer that stands in the call itself. Zeros are neither.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_scalar_t {
    /// The value; 0 for an integer.
    pub id: u32,
    /// 1 for an integer, else 0.
    pub is_int: u32,
    /// The integer.
    pub imm: i64,
}

impl pld_scalar_t {
    /// A value of a program.
    pub(super) const fn value(id: u32) -> Self {
        Self { id, is_int: 0, imm: 0 }
    }

    /// No scalar, where a call can do without.
    pub(super) fn is_zero(self) -> bool {
        self.id == 0 && self.is_int == 0
    }

    /// The integer that stands in the call itself.
    pub(super) fn immediate(self) -> Option<i64> {
        (self.id == 0 && self.is_int == 1).then_some(self.imm)
    }
}

fn binary(p: Option<&mut pld_program_t>, op: BinaryOp, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    build(p, |c| {
        let (a, b) = (c.get(a, "the first operand")?, c.get(b, "the second operand")?);
        Some(c.builder.binary(op, a, b))
    })
}

fn unary(p: Option<&mut pld_program_t>, op: UnaryOp, a: pld_scalar_t) -> pld_scalar_t {
    build(p, |c| {
        let a = c.get(a, "the operand")?;
        Some(c.builder.unary(op, a))
    })
}

/// `a + b`. Integers wrap; `i32` with `i64` gives `i64`; an integer of `PLD_INT` takes the other operand's type.
#[unsafe(no_mangle)]
pub extern "C" fn pld_add(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Add, a, b)
}

/// `a - b`, with the types of `pld_add`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_sub(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Sub, a, b)
}

/// `a * b`, with the types of `pld_add`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_mul(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Mul, a, b)
}

/// `a / b`, with the types of `pld_add`. Integers truncate toward zero; division by zero ends the launch with
/// `PLD_ERR_ARITHMETIC`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_div(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Div, a, b)
}

/// The remainder of `a / b`, integers only, with the sign of `a`; by zero ends the launch with `PLD_ERR_ARITHMETIC`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_mod(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Rem, a, b)
}

/// The smaller one; NaN if one is NaN.
#[unsafe(no_mangle)]
pub extern "C" fn pld_min(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Min, a, b)
}

/// The larger one; NaN if one is NaN.
#[unsafe(no_mangle)]
pub extern "C" fn pld_max(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Max, a, b)
}

/// Whether both `bool`s hold. Both are evaluated.
#[unsafe(no_mangle)]
pub extern "C" fn pld_and(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::And, a, b)
}

/// Whether one of two `bool`s holds. Both are evaluated.
#[unsafe(no_mangle)]
pub extern "C" fn pld_or(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Or, a, b)
}

/// Whether `a` is equal to `b`: a `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_eq(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Eq, a, b)
}

/// Whether `a` differs from `b`: a `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_ne(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Ne, a, b)
}

/// Whether `a` is less than `b`: a `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_lt(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Lt, a, b)
}

/// Whether `a` is less than or equal to `b`: a `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_le(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Le, a, b)
}

/// Whether `a` is greater than `b`: a `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_gt(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Gt, a, b)
}

/// Whether `a` is greater than or equal to `b`: a `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_ge(p: Option<&mut pld_program_t>, a: pld_scalar_t, b: pld_scalar_t) -> pld_scalar_t {
    binary(p, BinaryOp::Ge, a, b)
}

/// `-a`; integers wrap.
#[unsafe(no_mangle)]
pub extern "C" fn pld_neg(p: Option<&mut pld_program_t>, a: pld_scalar_t) -> pld_scalar_t {
    unary(p, UnaryOp::Neg, a)
}

/// The opposite of a `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_not(p: Option<&mut pld_program_t>, a: pld_scalar_t) -> pld_scalar_t {
    unary(p, UnaryOp::Not, a)
}

/// The sum of `count` values, from the first to the last; 0 if there are none. The macro `pld_sum(p, a, b, ...)`
/// counts for you.
#[unsafe(no_mangle)]
pub extern "C" fn pld_sum_n(p: Option<&mut pld_program_t>, values: Scalars, count: usize) -> pld_scalar_t {
    build(p, |c| {
        let values = c.known(values.get(count), "a NULL list of values with count", count)?;
        let values = c.scalars(values, "a summand")?;
        let sum = values.into_iter().reduce(|sum, value| c.builder.binary(BinaryOp::Add, sum, value));
        Some(sum.unwrap_or_else(|| c.builder.int(0)))
    })
}

/// `x` where it lies between `low` and `high`, else the nearer one; `high` if `low` is greater.
#[unsafe(no_mangle)]
pub extern "C" fn pld_clamp(
    p: Option<&mut pld_program_t>,
    x: pld_scalar_t,
    low: pld_scalar_t,
    high: pld_scalar_t,
) -> pld_scalar_t {
    build(p, |c| {
        let (x, low, high) = (c.get(x, "x")?, c.get(low, "low")?, c.get(high, "high")?);
        let raised = c.builder.binary(BinaryOp::Max, x, low);
        Some(c.builder.binary(BinaryOp::Min, raised, high))
    })
}

/// `then` where the `bool` `condition` holds, else `otherwise`. Both are evaluated.
#[unsafe(no_mangle)]
pub extern "C" fn pld_select(
    p: Option<&mut pld_program_t>,
    condition: pld_scalar_t,
    then: pld_scalar_t,
    otherwise: pld_scalar_t,
) -> pld_scalar_t {
    build(p, |c| {
        let condition = c.get(condition, "the condition")?;
        let (then, otherwise) = (c.get(then, "then")?, c.get(otherwise, "otherwise")?);
        Some(c.builder.select(condition, then, otherwise))
    })
}

/// `a` as `i32`, `i64`, `f32` or `bool`. Integers wrap; floats truncate toward zero and saturate, NaN becomes 0.
#[unsafe(no_mangle)]
pub extern "C" fn pld_cast(p: Option<&mut pld_program_t>, a: pld_scalar_t, dtype: pld_dtype_t) -> pld_scalar_t {
    build(p, |c| {
        let (a, ty) = (c.get(a, "the operand")?, c.scalar_type(dtype)?);
        Some(c.builder.cast(ty, a))
    })
}

/// A number of type `f32`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_float(p: Option<&mut pld_program_t>, value: f32) -> pld_scalar_t {
    build(p, |c| Some(c.builder.float(value)))
}

/// True (other than 0) or false (0), of type `bool`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_bool(p: Option<&mut pld_program_t>, value: i32) -> pld_scalar_t {
    build(p, |c| Some(c.builder.bool(value != 0)))
}

/// The value under a name, which the program's text and all messages show.
#[unsafe(no_mangle)]
pub extern "C" fn pld_let(p: Option<&mut pld_program_t>, name: Text, value: pld_scalar_t) -> pld_scalar_t {
    build(p, |c| {
        let (name, value) = (c.name(name), c.get(value, "the value")?);
        Some(c.builder.name_scalar(value, name))
    })
}
