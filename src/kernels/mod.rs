//! Vector work of generated code: copies, tile arithmetic, casts, reductions, combinations, atomic adds.
//!
//! Generated code calls kernels by address. [`kernels`] is the table for this CPU; its methods give the address of an
//! `unsafe extern "C"` function, whose signature they document. Pointers are aligned to their elements and need no
//! more; a size of zero is legal with any pointer. Results are the same at every [`Level`], bit by bit, but for the
//! payload of a NaN.

#[macro_use]
mod level;

mod atomic;
mod cast;
mod combine;
mod copy;
mod element;
mod pace;
mod reduce;
mod small_float;
#[cfg(test)]
mod testing;
mod tile;

use std::sync::OnceLock;

use half::{bf16, f16};

pub use level::Level;
pub use pace::Pace;

use crate::ir::types::{Combine, DType, ReduceAxis, ReduceOp, TileOp};
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

    /// `fn(dst: *mut u8, src: *const u8, bytes: usize)`: copies, as if through a buffer if the regions overlap.
    pub fn copy(&self) -> *const u8 {
        copy::copy as *const u8
    }

    /// `fn(dst: *mut u8, src: *const u8, bytes: usize, pace: *const Pace)`: the same into the memory of the peer that
    /// `pace` is about.
    pub fn copy_to_peer(&self) -> *const u8 {
        copy::copy_to_peer as *const u8
    }

    /// `fn(dst: *mut u8, dst_stride: usize, src: *const u8, src_stride: usize, rows: usize, row_bytes: usize)`: copies
    /// rows that lie `stride` bytes apart, one after the other. Where regions overlap, later rows see what earlier ones wrote.
    pub fn copy_2d(&self) -> *const u8 {
        copy::copy_2d as *const u8
    }

    /// `fn(dst: *mut E, dst_stride: usize, src: *const E, src_stride: usize, rows: usize, cols: usize)`: strides in
    /// bytes; `dst[i] += src[i]`, each element atomically, relaxed. None for types without atomic add.
    pub fn accumulate_2d(&self, dtype: DType) -> Option<*const u8> {
        Some(match dtype {
            DType::F32 => atomic::accumulate_2d::<f32>(self.level),
            DType::F16 => atomic::accumulate_2d::<f16>(self.level),
            DType::BF16 => atomic::accumulate_2d::<bf16>(self.level),
            DType::I32 => atomic::accumulate_2d::<i32>(self.level),
            DType::I16 => atomic::accumulate_2d::<i16>(self.level),
            DType::I8 => atomic::accumulate_2d::<i8>(self.level),
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

    /// `fn(dst: *mut E, a: *const E, bits: u64, n: usize) -> i32`: as [`Kernels::binary`], but the second operand is
    /// the element in the low bits of `bits`.
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

    /// `fn(dst: *mut D, srcs: *const *const S, count: usize, n: usize)`: `dst[i] = srcs[0][i] op srcs[1][i] op …`; `dst`
    /// may be one of the sources. None for types without arithmetic, and for two types unless both are f32, f16 or bf16.
    pub fn combine(&self, op: Combine, to: DType, from: DType) -> Option<*const u8> {
        macro_rules! with_op {
            ($D:ty, $S:ty) => {
                match op {
                    Combine::Sum => combine::combine::<$D, $S, tile::Add>(self.level),
                    Combine::Prod => combine::combine::<$D, $S, tile::Mul>(self.level),
                    Combine::Max => combine::combine::<$D, $S, tile::Max>(self.level),
                    Combine::Min => combine::combine::<$D, $S, tile::Min>(self.level),
                }
            };
        }
        Some(match (to, from) {
            (DType::F32, DType::F16) => with_op!(f32, f16),
            (DType::F32, DType::BF16) => with_op!(f32, bf16),
            (DType::F16, DType::F32) => with_op!(f16, f32),
            (DType::F16, DType::BF16) => with_op!(f16, bf16),
            (DType::BF16, DType::F32) => with_op!(bf16, f32),
            (DType::BF16, DType::F16) => with_op!(bf16, f16),
            _ if to == from => with_element!(to, E => with_op!(E, E), else => return None),
            _ => return None,
        })
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

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::testing::{all_kernels, function};
    use super::*;

    #[test]
    fn the_table_is_of_the_best_level() {
        assert_eq!(kernels().level(), all_kernels().last().unwrap().level());
    }

    #[test]
    fn arithmetic_is_for_all_but_bool_and_storage_only_types() {
        for dtype in DType::ALL {
            let has = dtype != DType::Bool && !dtype.is_storage_only();
            for &op in TileOp::ALL {
                assert_eq!(kernels().binary(op, dtype).is_some(), has, "{op} {dtype}");
                assert_eq!(kernels().binary_scalar(op, dtype).is_some(), has, "{op} {dtype}");
            }
            for &op in Combine::ALL {
                for to in DType::ALL {
                    let floats = [to, dtype].iter().all(|d| d.is_float() && !d.is_storage_only());
                    let has = has && (to == dtype || floats);
                    assert_eq!(kernels().combine(op, to, dtype).is_some(), has, "{op} {dtype} {to}");
                }
            }
            for &op in ReduceOp::ALL {
                for &axis in ReduceAxis::ALL {
                    assert_eq!(kernels().reduce(op, axis, dtype).is_some(), has, "{axis}_{op} {dtype}");
                }
            }
            assert_eq!(kernels().accumulate_2d(dtype).is_some(), dtype.has_atomic_add(), "{dtype}");
            assert_eq!(kernels().element_to_f32(dtype).is_some(), dtype.is_float() && dtype.size() == 2, "{dtype}");
            assert_eq!(kernels().element_from_f32(dtype).is_some(), dtype.is_float() && dtype.size() == 2, "{dtype}");
        }
    }

    #[test]
    fn nothing_can_be_anywhere() {
        type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize);
        type Strided = unsafe extern "C" fn(*mut u8, usize, *const u8, usize, usize, usize);
        type Fill = unsafe extern "C" fn(*mut u8, usize, u64);
        type Binary = unsafe extern "C" fn(*mut u8, *const u8, *const u8, usize) -> i32;
        type BinaryScalar = unsafe extern "C" fn(*mut u8, *const u8, u64, usize) -> i32;
        type Reduce = unsafe extern "C" fn(*mut u8, *const u8, usize, usize);
        type Combined = unsafe extern "C" fn(*mut u8, *const *const u8, usize, usize);
        for kernels in all_kernels() {
            // SAFETY: the documented signatures; nothing is read or written.
            unsafe {
                function::<Copy>(kernels.copy())(null_mut(), null(), 0);
                function::<Strided>(kernels.copy_2d())(null_mut(), 8, null(), 8, 0, 8);
                function::<Strided>(kernels.copy_2d())(null_mut(), 0, null(), 0, 8, 0);
            }
            for dtype in DType::ALL {
                // SAFETY: as above.
                unsafe {
                    function::<Fill>(kernels.fill(dtype))(null_mut(), 0, 1);
                    for to in DType::ALL {
                        function::<Copy>(kernels.cast(dtype, to))(null_mut(), null(), 0);
                    }
                    if let Some(accumulate) = kernels.accumulate_2d(dtype).map(|a| function::<Strided>(a)) {
                        accumulate(null_mut(), 8, null(), 8, 0, 1);
                        accumulate(null_mut(), 0, null(), 0, 8, 0);
                    }
                    for binary in TileOp::ALL.iter().filter_map(|&op| kernels.binary(op, dtype)) {
                        assert_eq!(function::<Binary>(binary)(null_mut(), null(), null(), 0), 0);
                    }
                    for binary in TileOp::ALL.iter().filter_map(|&op| kernels.binary_scalar(op, dtype)) {
                        assert_eq!(function::<BinaryScalar>(binary)(null_mut(), null(), 1, 0), 0);
                    }
                    for combine in Combine::ALL.iter().filter_map(|&op| kernels.combine(op, dtype, dtype)) {
                        function::<Combined>(combine)(null_mut(), [null(); 5].as_ptr(), 5, 0);
                        function::<Combined>(combine)(null_mut(), [null()].as_ptr(), 1, 0);
                    }
                    for &op in ReduceOp::ALL {
                        if let Some(rows) = kernels.reduce(op, ReduceAxis::Row, dtype) {
                            function::<Reduce>(rows)(null_mut(), null(), 0, 3);
                        }
                        if let Some(columns) = kernels.reduce(op, ReduceAxis::Col, dtype) {
                            function::<Reduce>(columns)(null_mut(), null(), 3, 0);
                        }
                    }
                }
            }
        }
    }
}
