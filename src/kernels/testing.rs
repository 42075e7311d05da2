//! What the kernels' tests share: a slow and plain reference for every element type, and buffers with guards.

use std::fmt;
use std::mem::{size_of, transmute_copy};

use half::{bf16, f16};

use super::{Kernels, Level};
use crate::ir::types::{DType, TileOp};

/// The kernels of every level that this machine has.
pub(super) fn all_kernels() -> Vec<Kernels> {
    Level::ALL.iter().filter_map(|&level| Kernels::new(level)).collect()
}

/// The kernel at an address of the table.
///
/// # Safety
/// `F` is the signature that the table documents.
pub(super) unsafe fn function<F: Copy>(address: *const u8) -> F {
    assert_eq!(size_of::<F>(), size_of::<*const u8>());
    // SAFETY: an address of the table is a function of this signature.
    unsafe { transmute_copy(&address) }
}

const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;

/// Bytes between guards, at a chosen distance from a multiple of 64.
pub(super) struct Guarded {
    memory: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Guarded {
    /// `bytes` at an address of `misalignment` modulo 64.
    pub(super) fn new(bytes: &[u8], misalignment: usize) -> Guarded {
        let mut memory = vec![GUARD_BYTE; bytes.len() + 2 * GUARD + 128];
        let begin = GUARD + memory.as_ptr().align_offset(64) + misalignment % 64;
        memory[begin..begin + bytes.len()].copy_from_slice(bytes);
        Guarded { memory, begin, len: bytes.len() }
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.memory[self.begin..].as_ptr()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory[self.begin..].as_mut_ptr()
    }

    /// The bytes, once the guards are found untouched.
    pub(super) fn bytes(&self) -> &[u8] {
        let end = self.begin + self.len;
        assert!(self.memory[..self.begin].iter().all(|&b| b == GUARD_BYTE), "written before the buffer");
        assert!(self.memory[end..].iter().all(|&b| b == GUARD_BYTE), "written behind the buffer");
        &self.memory[self.begin..end]
    }
}

/// The elements with these bits, one after the other.
pub(super) fn pack(dtype: DType, bits: &[u64]) -> Vec<u8> {
    let bytes = |&bits: &u64| match dtype.size() {
        1 => vec![bits as u8],
        2 => (bits as u16).to_ne_bytes().to_vec(),
        4 => (bits as u32).to_ne_bytes().to_vec(),
        _ => bits.to_ne_bytes().to_vec(),
    };
    bits.iter().flat_map(bytes).collect()
}

/// The bits of elements.
pub(super) fn unpack(dtype: DType, bytes: &[u8]) -> Vec<u64> {
    let bits = |element: &[u8]| match *element {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        ref all => u64::from_ne_bytes(all.try_into().unwrap()),
    };
    bytes.chunks_exact(dtype.size() as usize).map(bits).collect()
}

/// `n` elements: numbers that are hard to get right and pseudo-random bits, from a place in the sequence on.
pub(super) fn samples(dtype: DType, n: usize, seed: u64) -> Vec<u64> {
    let hard = hard_numbers(dtype);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + dtype as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    let mask = u64::MAX >> (64 - 8 * dtype.size());
    let one = |_| match next() {
        r if r % 3 == 0 => hard[(r / 3) as usize % hard.len()],
        r if dtype == DType::Bool => r >> 8 & 1,
        r if dtype == DType::F32 && r % 3 == 1 => u64::from((((r >> 8) as i16) as f32 / 16.0).to_bits()),
        r => (r >> 3 ^ r << 31) & mask,
    };
    (0..n).map(one).collect()
}

fn hard_numbers(dtype: DType) -> Vec<u64> {
    if !dtype.is_float() {
        let bits = 8 * dtype.size() as u32;
        let all = u64::MAX >> (64 - bits);
        return match dtype {
            DType::Bool => vec![0, 1, 2, 0xff],
            _ => [0, 1, 2, 3, all, all - 1, all >> 1, (all >> 1) + 1, (all >> 1) + 2, 1 << (bits - 2) | 1, 100]
                .into_iter()
                .chain(
                    (dtype.size() > 4)
                        .then_some([(1 << 24) + 1, (1 << 53) + 1, 0x7fff_ffbf_ffff_ffff])
                        .into_iter()
                        .flatten(),
                )
                .chain((dtype.size() == 4).then_some([(1 << 24) + 1, (1 << 24) + 3, 0x7fff_ffbf]).into_iter().flatten())
                .collect(),
        };
    }
    let numbers = [
        0.0,
        1.0,
        1.5,
        2.0,
        3.0,
        0.1,
        127.5,
        128.5,
        255.9,
        256.0,
        448.0,
        464.0,
        464.1,
        32768.0,
        57344.0,
        61440.0,
        61441.0,
        65504.0,
        65519.9,
        65520.0,
        65535.9,
        2147483520.0,
        2147483648.0,
        4294967296.0,
        9.2233715e18,
        9.223372e18,
        1.8446744e19,
        3.0e38,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-40,
        1e-45,
        6.1e-5,
        6.0e-8,
        2.98e-8,
        2.97e-8,
        0.015625,
        0.0009765625,
        0.00097,
        0.0019,
        1.0e-5,
        7.6e-6,
        f32::INFINITY,
    ];
    let signs = numbers.into_iter().flat_map(|x| [x, -x]);
    let nans = [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0x7fbf_ffff, 0xffff_ffff].map(f32::from_bits);
    signs.chain(nans).map(|x| encode(dtype, Value::Float(x))).collect()
}

/// The value of an element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// Of every float type.
    Float(f32),
    /// Of every integer type, and of bool.
    Int(i128),
}

/// The value of the element with these bits.
pub(super) fn decode(dtype: DType, bits: u64) -> Value {
    match dtype {
        DType::F32 => Value::Float(f32::from_bits(bits as u32)),
        DType::F16 => Value::Float(f16::from_bits(bits as u16).to_f32()),
        DType::BF16 => Value::Float(bf16::from_bits(bits as u16).to_f32()),
        DType::F8E4M3 => Value::Float(float8_value(bits as u8, 4, 3, false)),
        DType::F8E5M2 => Value::Float(float8_value(bits as u8, 5, 2, true)),
        DType::Bool => Value::Int(i128::from(bits != 0)),
        DType::I8 => Value::Int(bits as i8 as i128),
        DType::U8 => Value::Int(bits as u8 as i128),
        DType::I16 => Value::Int(bits as i16 as i128),
        DType::U16 => Value::Int(bits as u16 as i128),
        DType::I32 => Value::Int(bits as i32 as i128),
        DType::U32 => Value::Int(bits as u32 as i128),
        DType::I64 => Value::Int(bits as i64 as i128),
        DType::U64 => Value::Int(bits as i128),
    }
}

/// The bits of the element that a value becomes by a cast.
pub(super) fn encode(dtype: DType, value: Value) -> u64 {
    let mask = u64::MAX >> (64 - 8 * dtype.size());
    let float = |x: f32| match dtype {
        DType::F32 => u64::from(x.to_bits()),
        DType::F16 => u64::from(f16::from_f32(x).to_bits()),
        DType::BF16 => u64::from(bf16::from_f32(x).to_bits()),
        DType::F8E4M3 => u64::from(float8_bits(x, 4, 3, false)),
        _ => u64::from(float8_bits(x, 5, 2, true)),
    };
    match value {
        Value::Float(x) if dtype.is_float() => float(x),
        Value::Int(i) if dtype.is_float() => float(i as f32),
        Value::Float(x) if dtype == DType::Bool => u64::from(x != 0.0),
        Value::Int(i) if dtype == DType::Bool => u64::from(i != 0),
        Value::Int(i) => i as u64 & mask,
        Value::Float(x) => {
            let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
            let bits = 8 * dtype.size() as u32 - u32::from(signed);
            let high = (1i128 << bits) - 1;
            let low = if signed { -high - 1 } else { 0 };
            // f64 holds every f32, and i128 every f32 in these bounds.
            let truncated = f64::from(x).trunc();
            let saturated = if x.is_nan() { 0 } else { (truncated as i128).clamp(low, high) };
            saturated as u64 & mask
        }
    }
}

/// Value of an 8-bit float by its definition.
fn float8_value(bits: u8, exponent_bits: u32, mantissa_bits: u32, has_infinity: bool) -> f32 {
    let sign = if bits >> 7 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> mantissa_bits & ((1 << exponent_bits) - 1));
    let mantissa = f32::from(bits & ((1 << mantissa_bits) - 1));
    let (bias, scale) = ((1 << (exponent_bits - 1)) - 1, f32::from(1u8 << mantissa_bits));
    if has_infinity && exponent == (1 << exponent_bits) - 1 {
        return if mantissa == 0.0 { sign * f32::INFINITY } else { f32::NAN };
    }
    if !has_infinity && bits & 0x7f == 0x7f {
        return f32::NAN;
    }
    match exponent {
        0 => sign * mantissa / scale * 2f32.powi(1 - bias),
        _ => sign * (1.0 + mantissa / scale) * 2f32.powi(exponent - bias),
    }
}

/// Bits of the nearest 8-bit float, found by looking at all of them.
fn float8_bits(x: f32, exponent_bits: u32, mantissa_bits: u32, has_infinity: bool) -> u8 {
    let sign = ((x.to_bits() >> 31) as u8) << 7;
    if x.is_nan() {
        return sign | 0x7f;
    }
    let magnitude = f64::from(x.abs());
    let value = |bits| f64::from(float8_value(bits, exponent_bits, mantissa_bits, has_infinity));
    let largest = if has_infinity { 0x7b } else { 0x7e };
    // Half a step beyond the largest number is where it would round up to the next one.
    let beyond = value(largest) + (value(largest) - value(largest - 1)) / 2.0;
    if magnitude >= beyond {
        return sign | if has_infinity { 0x7c } else { largest };
    }
    let distance = |bits: u8| (value(bits) - magnitude).abs();
    let nearest =
        (0..=largest).min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))).unwrap();
    sign | nearest
}

/// The bits of `a op b`, computed plainly; the divisor of integers is not zero.
pub(super) fn binary(op: TileOp, dtype: DType, a: u64, b: u64) -> u64 {
    let value = match (decode(dtype, a), decode(dtype, b)) {
        (Value::Float(x), Value::Float(y)) => Value::Float(match op {
            TileOp::Add => x + y,
            TileOp::Sub => x - y,
            TileOp::Mul => x * y,
            TileOp::Div => x / y,
            TileOp::Max | TileOp::Min if x.is_nan() || y.is_nan() => f32::NAN,
            TileOp::Max if x == y => {
                if x.is_sign_positive() {
                    x
                } else {
                    y
                }
            }
            TileOp::Min if x == y => {
                if x.is_sign_negative() {
                    x
                } else {
                    y
                }
            }
            TileOp::Max => x.max(y),
            TileOp::Min => x.min(y),
        }),
        (Value::Int(x), Value::Int(y)) => Value::Int(match op {
            TileOp::Add => x + y,
            TileOp::Sub => x - y,
            TileOp::Mul => x.wrapping_mul(y),
            TileOp::Div => x / y,
            TileOp::Max => x.max(y),
            TileOp::Min => x.min(y),
        }),
        _ => unreachable!("two elements of one type"),
    };
    encode(dtype, value)
}

/// Asserts that elements are equal: bit by bit, except that a NaN is a NaN.
pub(super) fn assert_elements(dtype: DType, found: &[u64], expected: &[u64], what: fmt::Arguments<'_>) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let is_nan = |bits| matches!(decode(dtype, bits), Value::Float(x) if x.is_nan());
        assert!(
            found == expected || is_nan(found) && is_nan(expected),
            "{what}, element {i}: {found:#x} = {:?}, expected {expected:#x} = {:?}",
            decode(dtype, found),
            decode(dtype, expected),
        );
    }
}
