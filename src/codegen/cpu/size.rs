//! Integers whose value may be known when compiling.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use smallvec::SmallVec;

use crate::codegen::index::Number;
use crate::ir::extent::ExtentData;
use crate::ir::{BinaryOp, Extent, Scalar, Tensor};

use super::abi::Frame;
use super::function::Function;
use super::jit::ADDRESS;

/// A 64-bit integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Known when compiling.
    Const(i64),
    /// Known when the code runs.
    Value(Value),
}

/// Sizes, one a dimension.
pub type Sizes = SmallVec<[Size; 4]>;

impl Number for Size {
    fn constant(&self) -> Option<i64> {
        match *self {
            Size::Const(value) => Some(value),
            Size::Value(_) => None,
        }
    }
}

impl From<i64> for Size {
    fn from(value: i64) -> Self {
        Size::Const(value)
    }
}

impl Function<'_, '_> {
    pub fn size_value(&mut self, size: Size) -> Value {
        match size {
            Size::Const(value) => self.b.ins().iconst(types::I64, value),
            Size::Value(value) => value,
        }
    }

    pub fn add(&mut self, a: Size, b: Size) -> Size {
        match (a, b) {
            (Size::Const(a), Size::Const(b)) => Size::Const(a.wrapping_add(b)),
            (a, Size::Const(0)) | (Size::Const(0), a) => a,
            (Size::Value(a), Size::Const(b)) | (Size::Const(b), Size::Value(a)) => {
                Size::Value(self.b.ins().iadd_imm_s(a, b))
            }
            (Size::Value(a), Size::Value(b)) => Size::Value(self.b.ins().iadd(a, b)),
        }
    }

    pub fn sub(&mut self, a: Size, b: Size) -> Size {
        match (a, b) {
            (a, Size::Const(b)) => self.add(a, Size::Const(b.wrapping_neg())),
            (a, Size::Value(b)) => {
                let a = self.size_value(a);
                Size::Value(self.b.ins().isub(a, b))
            }
        }
    }

    pub fn mul(&mut self, a: Size, b: Size) -> Size {
        match (a, b) {
            (Size::Const(a), Size::Const(b)) => Size::Const(a.wrapping_mul(b)),
            (_, Size::Const(0)) | (Size::Const(0), _) => Size::Const(0),
            (a, Size::Const(1)) | (Size::Const(1), a) => a,
            (Size::Value(a), Size::Const(b)) | (Size::Const(b), Size::Value(a)) => {
                Size::Value(self.b.ins().imul_imm_s(a, b))
            }
            (Size::Value(a), Size::Value(b)) => Size::Value(self.b.ins().imul(a, b)),
        }
    }

    /// The value of an extent.
    pub fn extent(&mut self, extent: Extent) -> Size {
        let program = self.program();
        if let Some(value) = program.extents.eval(extent, self.unit.known) {
            return Size::Const(value);
        }
        match program.extents.get(extent) {
            ExtentData::Int(value) => Size::Const(value),
            ExtentData::World => Size::Const(i64::from(self.unit.binding.nranks)),
            ExtentData::Dim(dim) => match program.extents.dims[dim].value {
                Some(value) => self.extent(value),
                None => {
                    let dims = self.frame_field(ADDRESS, offset_of!(Frame, dims));
                    Size::Value(self.constant_load(types::I64, dims, 8 * i64::from(dim.as_u32())))
                }
            },
            ExtentData::Binary(op, a, b) => {
                let range = self.unit.ranges.of_extent(b);
                let (a, b) = (self.extent(a), self.extent(b));
                match op {
                    BinaryOp::Add => self.add(a, b),
                    BinaryOp::Sub => self.sub(a, b),
                    BinaryOp::Mul => self.mul(a, b),
                    _ => {
                        let (a, b) = (self.size_value(a), self.size_value(b));
                        Size::Value(self.int_binary(op, a, b, range))
                    }
                }
            }
        }
    }

    /// The values of the extents of a tensor.
    pub fn shape(&mut self, tensor: Tensor) -> Sizes {
        let program = self.program();
        program.tensors[tensor].shape.iter().map(|&e| self.extent(e)).collect()
    }

    /// An integer scalar as a size.
    pub fn size(&mut self, scalar: Scalar) -> Size {
        if let Some(extent) = self.program().extent_of(scalar) {
            return self.extent(extent);
        }
        if let Some(argument) = self.known_argument(scalar) {
            return argument;
        }
        let value = self.value(scalar);
        if self.type_of(value) == types::I32 {
            return Size::Value(self.b.ins().sextend(types::I64, value));
        }
        Size::Value(value)
    }
}
