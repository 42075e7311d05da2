//! Element types.

use crate::ir::DType;

/// An element type: a value of `enum pld_dtype`.
pub type pld_dtype_t = u32;

/// Values of `pld_dtype_t`. Elements are widened when they are read as scalars: `f16` and `bf16` to `f32`; `i8`, `u8`,
/// `i16` and `u16` to `i32`; `u32` and `u64` to `i64`.
#[repr(C)]
pub enum pld_dtype {
    /// IEEE binary32.
    PLD_DTYPE_F32 = 1,
    /// IEEE binary16.
    PLD_DTYPE_F16 = 2,
    /// bfloat16.
    PLD_DTYPE_BF16 = 3,
    /// Signed 8 bit.
    PLD_DTYPE_I8 = 4,
    /// Unsigned 8 bit.
    PLD_DTYPE_U8 = 5,
    /// Signed 16 bit.
    PLD_DTYPE_I16 = 6,
    /// Unsigned 16 bit.
    PLD_DTYPE_U16 = 7,
    /// Signed 32 bit; the type of signals.
    PLD_DTYPE_I32 = 8,
    /// Unsigned 32 bit.
    PLD_DTYPE_U32 = 9,
    /// Signed 64 bit.
    PLD_DTYPE_I64 = 10,
    /// Unsigned 64 bit.
    PLD_DTYPE_U64 = 11,
    /// One byte, 0 or 1.
    PLD_DTYPE_BOOL = 12,
    /// OCP 8-bit float E4M3, finite; moved and cast only.
    PLD_DTYPE_F8E4M3 = 13,
    /// OCP 8-bit float E5M2; moved and cast only.
    PLD_DTYPE_F8E5M2 = 14,
}

/// The element type that a number stands for.
pub(super) fn dtype(raw: pld_dtype_t) -> Option<DType> {
    DType::ALL.into_iter().find(|d| *d as u32 == raw)
}

/// The size of one element in bytes; 0 for an unknown type. Local; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_dtype_size(raw: pld_dtype_t) -> usize {
    dtype(raw).map_or(0, |d| d.size() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_language() {
        assert_eq!(dtype(pld_dtype::PLD_DTYPE_F32 as u32), Some(DType::F32));
        assert_eq!(dtype(pld_dtype::PLD_DTYPE_I32 as u32), Some(DType::I32));
        assert_eq!(dtype(pld_dtype::PLD_DTYPE_BOOL as u32), Some(DType::Bool));
        assert_eq!(dtype(pld_dtype::PLD_DTYPE_F8E5M2 as u32), Some(DType::F8E5M2));
        assert_eq!((dtype(0), dtype(15)), (None, None));
    }
}
