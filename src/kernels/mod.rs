//! Vector work of generated code: copies, tile arithmetic, casts, reductions, atomic adds.
//!
//! Generated code calls kernels by address. [`kernels`] is the table for this CPU; its methods give the address of an
//! `unsafe extern "C"` function, whose signature they document. Pointers are aligned to their elements and need no more.
//! A size of zero is legal with any pointer. Results are the same at every [`Level`], bit by bit.

#[macro_use]
mod level;

mod atomic;
mod cast;
mod copy;
mod element;
mod reduce;
mod small_float;
mod tile;

use std::sync::OnceLock;

use half::{bf16, f16};

pub use level::Level;

use crate::ir::types::{DType, ReduceAxis, ReduceOp, TileOp};
use element::{Bool, F8E4M3, F8E5M2};

/// The kernels of one level.
#[derive(Debug)]
pub struct Kernels {
    level: Level,
}

/// The kernels for this CPU: those of its best level.
pub fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS
        .get_or_init(|| Level::ALL.iter().rev().find_map(|&level| Kernels::new(level)).expect("portable is available"))
}

/// `$body` with `$E` as the Rust type of the elements of `$dtype`; the second form is for the types with arithmetic.
macro_rules! with_element {
    ($dtype:expr, $E:ident => $body:expr) => {
        match $dtype {
            DType::Bool => with_element!(@ $E = Bool => $body),
            DType::F8E4M3 => with_element!(@ $E = F8E4M3 => $body),
            DType::F8E5M2 => with_element!(@ $E = F8E5M2 => $body),
            dtype => with_element!(dtype, $E => $body, else => unreachable!("the rest has arithmetic")),
        }
    };
    ($dtype:expr, $E:ident => $body:expr, else => $other:expr) => {
        match $dtype {
            DType::F32 => with_element!(@ $E = f32 => $body),
            DType::F16 => with_element!(@ $E = f16 => $body),
            DType::BF16 => with_element!(@ $E = bf16 => $body),
            DType::I8 => with_element!(@ $E = i8 => $body),
            DType::U8 => with_element!(@ $E = u8 => $body),
            DType::I16 => with_element!(@ $E = i16 => $body),
            DType::U16 => with_element!(@ $E = u16 => $body),
            DType::I32 => with_element!(@ $E = i32 => $body),
            DType::U32 => with_element!(@ $E = u32 => $body),
            DType::I64 => with_element!(@ $E = i64 => $body),
            DType::U64 => with_element!(@ $E = u64 => $body),
            DType::Bool | DType::F8E4M3 | DType::F8E5M2 => $other,
        }
    };
    (@ $E:ident = $ty:ty => $body:expr) => {{
        type $E = $ty;
        $body
    }};
}

impl Kernels {
    /// The kernels of `level`, if this CPU can run them.
    pub fn new(level: Level) -> Option<Kernels> {
        level.available().then_some(Kernels { level })
    }

    /// The level whose instructions they use.
    pub fn level(&self) -> Level {
        self.level
    }

    /// `fn(dst: *mut u8, src: *const u8, bytes: usize)`: copies. The regions do not overlap.
    pub fn copy(&self) -> *const u8 {
        copy::copy(self.level)
    }

    /// `fn(dst: *mut u8, dst_stride: usize, src: *const u8, src_stride: usize, rows: usize, row_bytes: usize)`: copies
    /// rows that lie `stride` bytes apart. The regions do not overlap.
    pub fn copy_2d(&self) -> *const u8 {
        copy::copy_2d(self.level)
    }

    /// `fn(dst: *mut E, dst_stride: usize, src: *const E, src_stride: usize, rows: usize, cols: usize)`, strides in bytes:
    /// `dst[i] += src[i]`, each element atomically, relaxed. None for types without atomic add.
    pub fn accumulate_2d(&self, dtype: DType) -> Option<*const u8> {
        Some(match dtype {
            DType::F32 => atomic::accumulate_2d::<f32> as *const u8,
            DType::F16 => atomic::accumulate_2d::<f16> as *const u8,
            DType::BF16 => atomic::accumulate_2d::<bf16> as *const u8,
            DType::I32 => atomic::accumulate_2d::<i32> as *const u8,
            DType::I16 => atomic::accumulate_2d::<i16> as *const u8,
            DType::I8 => atomic::accumulate_2d::<i8> as *const u8,
            _ => return None,
        })
    }

    /// `fn(dst: *mut E, n: usize, bits: u64)`: `n` elements become the one in the low bits of `bits`.
    pub fn fill(&self, dtype: DType) -> *const u8 {
        match dtype.size() {
            1 => tile::fill::<u8>(self.level),
            2 => tile::fill::<u16>(self.level),
            4 => tile::fill::<u32>(self.level),
            _ => tile::fill::<u64>(self.level),
        }
    }

    /// `fn(dst: *mut E, a: *const E, b: *const E, n: usize) -> i32`: `dst[i] = a[i] op b[i]`; `dst` may be `a` or `b`.
    /// Returns 0, or 1 if an integer is divided by zero; `dst` is unspecified then. None for types without arithmetic.
    pub fn binary(&self, op: TileOp, dtype: DType) -> Option<*const u8> {
        Some(with_element!(dtype, E => match op {
            TileOp::Add => tile::binary::<E, tile::Add>(self.level),
            TileOp::Sub => tile::binary::<E, tile::Sub>(self.level),
            TileOp::Mul => tile::binary::<E, tile::Mul>(self.level),
            TileOp::Div => tile::binary::<E, tile::Div>(self.level),
            TileOp::Max => tile::binary::<E, tile::Max>(self.level),
            TileOp::Min => tile::binary::<E, tile::Min>(self.level),
        }, else => return None))
    }

    /// `fn(dst: *mut E, a: *const E, bits: u64, n: usize) -> i32`: as [`Kernels::binary`], but the second operand is the
    /// element in the low bits of `bits`.
    pub fn binary_scalar(&self, op: TileOp, dtype: DType) -> Option<*const u8> {
        Some(with_element!(dtype, E => match op {
            TileOp::Add => tile::binary_scalar::<E, tile::Add>(self.level),
            TileOp::Sub => tile::binary_scalar::<E, tile::Sub>(self.level),
            TileOp::Mul => tile::binary_scalar::<E, tile::Mul>(self.level),
            TileOp::Div => tile::binary_scalar::<E, tile::Div>(self.level),
            TileOp::Max => tile::binary_scalar::<E, tile::Max>(self.level),
            TileOp::Min => tile::binary_scalar::<E, tile::Min>(self.level),
        }, else => return None))
    }

    /// `fn(dst: *mut T, src: *const F, n: usize)`: converts elements. The regions do not overlap.
    pub fn cast(&self, from: DType, to: DType) -> *const u8 {
        with_element!(from, F => with_element!(to, T => cast::cast::<T, F>(self.level)))
    }

    /// `fn(dst: *mut E, src: *const E, rows: usize, cols: usize)`: reduces each row to `dst[rows]`, or each column to
    /// `dst[cols]`. None for types without arithmetic.
    pub fn reduce(&self, op: ReduceOp, axis: ReduceAxis, dtype: DType) -> Option<*const u8> {
        Some(with_element!(dtype, E => match (op, axis) {
            (ReduceOp::Sum, ReduceAxis::Row) => reduce::rows::<E, tile::Add>(self.level),
            (ReduceOp::Max, ReduceAxis::Row) => reduce::rows::<E, tile::Max>(self.level),
            (ReduceOp::Sum, ReduceAxis::Col) => reduce::columns::<E, tile::Add>(self.level),
            (ReduceOp::Max, ReduceAxis::Col) => reduce::columns::<E, tile::Max>(self.level),
        }, else => return None))
    }

    /// `fn(bits: u32) -> f32`: the value of one element; f16 and bf16.
    pub fn element_to_f32(&self, dtype: DType) -> Option<*const u8> {
        match dtype {
            DType::F16 => Some(cast::f16_to_f32 as *const u8),
            DType::BF16 => Some(cast::bf16_to_f32 as *const u8),
            _ => None,
        }
    }

    /// `fn(f32) -> u32`: the bits of the nearest element; f16 and bf16.
    pub fn element_from_f32(&self, dtype: DType) -> Option<*const u8> {
        match dtype {
            DType::F16 => Some(cast::f16_from_f32 as *const u8),
            DType::BF16 => Some(cast::bf16_from_f32 as *const u8),
            _ => None,
        }
    }
}
