//! Elements of all types, and how ranks' elements combine: the reference, in words of its own.

use half::{bf16, f16};
use pld::ir::{Combine, DType};

pub const DTYPES: [DType; 6] = [DType::F32, DType::F16, DType::BF16, DType::I32, DType::I64, DType::I8];
pub const COMBINES: [Combine; 4] = [Combine::Sum, Combine::Max, Combine::Min, Combine::Prod];

/// An element, wide enough for its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f32),
}

pub fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// Appends an element: integers wrap, floats are rounded.
pub fn encode(dtype: DType, number: Number, bytes: &mut Vec<u8>) {
    match (dtype, number) {
        (DType::F32, Number::Float(x)) => bytes.extend(x.to_ne_bytes()),
        (DType::F16, Number::Float(x)) => bytes.extend(f16::from_f32(x).to_ne_bytes()),
        (DType::BF16, Number::Float(x)) => bytes.extend(bf16::from_f32(x).to_ne_bytes()),
        (DType::I32, Number::Int(x)) => bytes.extend((x as i32).to_ne_bytes()),
        (DType::I64, Number::Int(x)) => bytes.extend(x.to_ne_bytes()),
        (DType::I8, Number::Int(x)) => bytes.extend((x as i8).to_ne_bytes()),
        _ => panic!("{number:?} is no {dtype}"),
    }
}

pub fn decode(dtype: DType, bytes: &[u8]) -> Number {
    let same = "as many bytes as an element has";
    match dtype {
        DType::F32 => Number::Float(f32::from_ne_bytes(bytes.try_into().expect(same))),
        DType::F16 => Number::Float(f16::from_ne_bytes(bytes.try_into().expect(same)).to_f32()),
        DType::BF16 => Number::Float(bf16::from_ne_bytes(bytes.try_into().expect(same)).to_f32()),
        DType::I32 => Number::Int(i32::from_ne_bytes(bytes.try_into().expect(same)).into()),
        DType::I64 => Number::Int(i64::from_ne_bytes(bytes.try_into().expect(same))),
        DType::I8 => Number::Int((bytes[0] as i8).into()),
        _ => panic!("no collective combines {dtype}"),
    }
}

/// Elements `first..` of rank `rank`, so that no two ranks or neighbours agree. Products of many neither vanish nor
/// overflow, sums of floats are rounded.
pub fn given(dtype: DType, salt: usize, rank: usize, elements: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(elements.len() * dtype.size() as usize);
    for i in elements {
        let number = if is_float(dtype) {
            Number::Float(0.625 + ((salt * 31 + rank * 37 + i * 11) % 97) as f32 / 129.0)
        } else {
            Number::Int(((rank + 1) * 100_003 + salt * 1009 + i) as i64 * 3 + 1)
        };
        encode(dtype, number, &mut bytes);
    }
    bytes
}

fn combine(op: Combine, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(match op {
            Combine::Sum => a.wrapping_add(b),
            Combine::Prod => a.wrapping_mul(b),
            Combine::Max => a.max(b),
            Combine::Min => a.min(b),
        }),
        (Number::Float(a), Number::Float(b)) => Number::Float(match op {
            Combine::Sum => a + b,
            Combine::Prod => a * b,
            Combine::Max => a.max(b),
            Combine::Min => a.min(b),
        }),
        _ => panic!("{a:?} and {b:?} are not of one type"),
    }
}

/// The combination of what all ranks give, in their order, rounded once.
pub fn reduced(dtype: DType, op: Combine, parts: &[&[u8]]) -> Vec<u8> {
    let size = dtype.size() as usize;
    let mut bytes = Vec::with_capacity(parts[0].len());
    for at in (0..parts[0].len()).step_by(size) {
        let numbers = parts.iter().map(|part| decode(dtype, &part[at..at + size]));
        let all = numbers.reduce(|a, b| combine(op, a, b)).expect("there is a rank");
        encode(dtype, all, &mut bytes);
    }
    bytes
}
