//! Values, and what is computed with them.

use half::{bf16, f16};
use smallvec::SmallVec;

use crate::ir::{BinaryOp, Combine, DType, ReduceOp, TileOp};

/// A scalar or an element. Integers of every width are exact here, and wrap when they are kept in their type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// An integer, or a bool as 0 or 1.
    Int(i128),
    /// A float of any width.
    Float(f32),
}

use Value::{Float, Int};

/// The element that these bytes are. Floats of 8 bits keep their bits, as an integer: they are only moved and cast.
pub fn decode(bytes: &[u8], dtype: DType) -> Value {
    macro_rules! int {
        ($ty:ty) => {
            Int(<$ty>::from_ne_bytes(bytes.try_into().unwrap()).into())
        };
    }
    match dtype {
        DType::F32 => Float(f32::from_ne_bytes(bytes.try_into().unwrap())),
        DType::F16 => Float(f16::from_ne_bytes(bytes.try_into().unwrap()).to_f32()),
        DType::BF16 => Float(bf16::from_ne_bytes(bytes.try_into().unwrap()).to_f32()),
        DType::I8 => int!(i8),
        DType::U8 | DType::Bool | DType::F8E4M3 | DType::F8E5M2 => int!(u8),
        DType::I16 => int!(i16),
        DType::U16 => int!(u16),
        DType::I32 => int!(i32),
        DType::U32 => int!(u32),
        DType::I64 => int!(i64),
        DType::U64 => int!(u64),
    }
}

/// The bytes of an element.
pub fn encode(value: Value, dtype: DType) -> SmallVec<[u8; 8]> {
    match (value, dtype) {
        (Float(v), DType::F32) => SmallVec::from_slice(&v.to_ne_bytes()),
        (Float(v), DType::F16) => SmallVec::from_slice(&f16::from_f32(v).to_ne_bytes()),
        (Float(v), DType::BF16) => SmallVec::from_slice(&bf16::from_f32(v).to_ne_bytes()),
        (Int(v), _) => match dtype.size() {
            1 => SmallVec::from_slice(&(v as u8).to_ne_bytes()),
            2 => SmallVec::from_slice(&(v as u16).to_ne_bytes()),
            4 => SmallVec::from_slice(&(v as u32).to_ne_bytes()),
            _ => SmallVec::from_slice(&(v as u64).to_ne_bytes()),
        },
        _ => panic!("{value:?} is no {dtype}"),
    }
}

/// The value that a type keeps of a value of its kind.
pub fn wrap(value: Value, dtype: DType) -> Value {
    match value {
        Float(_) if dtype == DType::F32 => value,
        _ => decode(&encode(value, dtype), dtype),
    }
}

/// A cast between element types.
pub fn cast(value: Value, from: DType, to: DType) -> Value {
    let value = match value {
        Int(bits) if from.is_storage_only() => Float(small_float(bits as u8, from)),
        value => value,
    };
    match value {
        value if to.is_storage_only() => Int(nearest_small_float(float(value), to).into()),
        Int(v) if to == DType::Bool => Int((v != 0).into()),
        Float(v) if to == DType::Bool => Int((v != 0.0).into()),
        Int(v) if to.is_float() => wrap(Float(v as f32), to),
        Float(v) if !to.is_float() => {
            let (min, max) = match to {
                DType::I8 => (i8::MIN.into(), i8::MAX.into()),
                DType::U8 => (0, u8::MAX.into()),
                DType::I16 => (i16::MIN.into(), i16::MAX.into()),
                DType::U16 => (0, u16::MAX.into()),
                DType::I32 => (i32::MIN.into(), i32::MAX.into()),
                DType::U32 => (0, u32::MAX.into()),
                DType::I64 => (i64::MIN.into(), i64::MAX.into()),
                _ => (0, i128::from(u64::MAX)),
            };
            Int((v as i128).clamp(min, max))
        }
        value => wrap(value, to),
    }
}

fn float(value: Value) -> f32 {
    match value {
        Int(v) => v as f32,
        Float(v) => v,
    }
}

/// Bits of the mantissa and bias of the exponent.
fn small_format(dtype: DType) -> (i32, i32) {
    if dtype == DType::F8E4M3 { (3, 7) } else { (2, 15) }
}

/// The number that a float of 8 bits is: E4M3 without infinities, E5M2 with them.
fn small_float(bits: u8, dtype: DType) -> f32 {
    let (mantissa_bits, bias) = small_format(dtype);
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let magnitude = i32::from(bits & 0x7f);
    let (exponent, mantissa) = (magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1));
    let scale = 2f32.powi(-mantissa_bits);
    sign * match dtype {
        DType::F8E4M3 if magnitude == 0x7f => f32::NAN,
        DType::F8E5M2 if magnitude == 0x7c => f32::INFINITY,
        DType::F8E5M2 if magnitude > 0x7c => f32::NAN,
        _ if exponent == 0 => mantissa as f32 * scale * 2f32.powi(1 - bias),
        _ => (1.0 + mantissa as f32 * scale) * 2f32.powi(exponent - bias),
    }
}

/// The nearest float of 8 bits, of two the even one. Too large a number becomes the largest one, or infinity.
fn nearest_small_float(value: f32, dtype: DType) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let (largest, nan) = if dtype == DType::F8E4M3 { (0x7e, 0x7f) } else { (0x7b, 0x7e) };
    if value.is_nan() {
        return sign | nan;
    }
    let magnitude = f64::from(value.abs());
    let number = |bits: u8| f64::from(small_float(bits, dtype));
    // Where the next number would stand decides what rounds up to infinity.
    let half_step = (number(largest) - number(largest - 1)) / 2.0;
    if dtype == DType::F8E5M2 && magnitude >= number(largest) + half_step {
        return sign | 0x7c;
    }
    let below = (0..=largest).rev().find(|&bits| number(bits) <= magnitude).expect("0 is the least");
    if below == largest {
        return sign | largest;
    }
    let (down, up) = (magnitude - number(below), number(below + 1) - magnitude);
    sign | if down < up || down == up && below % 2 == 0 { below } else { below + 1 }
}

/// Integer arithmetic, exact; none for a division by zero.
pub fn int_op(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b)?,
        BinaryOp::Rem => a.checked_rem(b)?,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Eq => (a == b).into(),
        BinaryOp::Ne => (a != b).into(),
        BinaryOp::Lt => (a < b).into(),
        BinaryOp::Le => (a <= b).into(),
        BinaryOp::Gt => (a > b).into(),
        BinaryOp::Ge => (a >= b).into(),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
    })
}

/// Arithmetic of floats.
pub fn float_op(op: BinaryOp, a: f32, b: f32) -> Value {
    let nan = a.is_nan() || b.is_nan();
    match op {
        BinaryOp::Add => Float(a + b),
        BinaryOp::Sub => Float(a - b),
        BinaryOp::Mul => Float(a * b),
        BinaryOp::Div => Float(a / b),
        BinaryOp::Min | BinaryOp::Max if nan => Float(f32::NAN),
        // Of the two zeros, the negative one is smaller.
        BinaryOp::Min => Float(if a < b || a == b && a.is_sign_negative() { a } else { b }),
        BinaryOp::Max => Float(if a > b || a == b && a.is_sign_positive() { a } else { b }),
        BinaryOp::Eq => Int((a == b).into()),
        BinaryOp::Ne => Int((a != b).into()),
        BinaryOp::Lt => Int((a < b).into()),
        BinaryOp::Le => Int((a <= b).into()),
        BinaryOp::Gt => Int((a > b).into()),
        BinaryOp::Ge => Int((a >= b).into()),
        BinaryOp::Rem | BinaryOp::And | BinaryOp::Or => panic!("{op} on floats"),
    }
}

/// An op on elements of one type; none for a division by zero.
pub fn tile_op(op: TileOp, dtype: DType, a: Value, b: Value) -> Option<Value> {
    let op = match op {
        TileOp::Add => BinaryOp::Add,
        TileOp::Sub => BinaryOp::Sub,
        TileOp::Mul => BinaryOp::Mul,
        TileOp::Div => BinaryOp::Div,
        TileOp::Max => BinaryOp::Max,
        TileOp::Min => BinaryOp::Min,
    };
    let result = match (a, b) {
        (Int(a), Int(b)) => Int(int_op(op, a, b)?),
        (Float(a), Float(b)) => float_op(op, a, b),
        _ => panic!("{a:?} {op} {b:?}"),
    };
    Some(wrap(result, dtype))
}

/// A reduction of a line of elements. Sums of floats are kept in f32, in any order: tests use values whose sums are exact.
pub fn reduce(op: ReduceOp, dtype: DType, line: &[Value]) -> Value {
    let op = if op == ReduceOp::Sum { TileOp::Add } else { TileOp::Max };
    let wide = if dtype.is_float() { DType::F32 } else { dtype };
    let all = line.iter().copied().reduce(|a, b| tile_op(op, wide, a, b).expect("no division"));
    wrap(all.expect("a tile has elements"), dtype)
}

/// Elements of several ranks, combined in their order; of floats, in f32.
pub fn combined(op: Combine, dtype: DType, gifts: impl Iterator<Item = Vec<Value>>) -> Vec<Value> {
    let op = match op {
        Combine::Sum => TileOp::Add,
        Combine::Prod => TileOp::Mul,
        Combine::Max => TileOp::Max,
        Combine::Min => TileOp::Min,
    };
    let wide = if dtype.is_float() { DType::F32 } else { dtype };
    let both = |all: Vec<Value>, next: Vec<Value>| {
        let pairs = all.into_iter().zip(next);
        pairs.map(|(a, b)| tile_op(op, wide, a, b).expect("no division")).collect()
    };
    gifts.reduce(both).expect("at least one rank gives")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_are_those_numbers() {
        let e4m3: Vec<u8> = (0..7).map(|value| nearest_small_float(value as f32, DType::F8E4M3)).collect();
        assert_eq!(e4m3, [0, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c]);
        let e5m2: Vec<u8> = (0..7).map(|value| nearest_small_float(value as f32, DType::F8E5M2)).collect();
        assert_eq!(e5m2, [0, 0x3c, 0x40, 0x42, 0x44, 0x45, 0x46]);
    }

    #[test]
    fn floats_of_8_bits_round_to_the_nearest() {
        for dtype in [DType::F8E4M3, DType::F8E5M2] {
            for bits in (0..=255u8).filter(|&bits| !small_float(bits, dtype).is_nan()) {
                assert_eq!(nearest_small_float(small_float(bits, dtype), dtype), bits, "{dtype} {bits:#x}");
            }
        }
        assert_eq!(nearest_small_float(1e9, DType::F8E4M3), 0x7e, "saturates");
        assert_eq!(nearest_small_float(-1e9, DType::F8E5M2), 0xfc, "overflows");
        assert_eq!(nearest_small_float(17.0, DType::F8E4M3), nearest_small_float(16.0, DType::F8E4M3), "the even one");
        assert!(small_float(nearest_small_float(f32::NAN, DType::F8E5M2), DType::F8E5M2).is_nan());
    }
}
