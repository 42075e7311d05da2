//! Where tensors lie, and single elements of them.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use half::{bf16, f16};

use crate::codegen::index::Indexing;
use crate::error::Result;
use crate::ir::extent::ExtentData;
use crate::ir::program::ScalarDef;
use crate::ir::{DType, Scalar, ScalarType, Tensor};

use super::abi::Frame;
use super::bounds::{Index, Indices};
use super::function::{Function, PLAIN};
use super::jit::ADDRESS;
use super::size::{Size, Sizes};
use crate::codegen::arguments::Argument;

impl Function<'_, '_> {
    /// Where a tensor begins: an address, or for a window the offset in every rank's windows.
    pub fn base(&mut self, tensor: Tensor) -> Size {
        match self.unit.arguments().tensor(self.program(), tensor) {
            Argument::Offset(offset) => Size::Const(offset),
            _ => self.bases[&tensor],
        }
    }

    /// Bytes between neighbours in each dimension: those of the packed tensor that it is part of.
    pub fn strides(&mut self, tensor: Tensor) -> Sizes {
        let packed = self.program().packed(tensor);
        let mut stride = Size::Const(self.program().tensors[packed].dtype.size());
        let mut strides: Sizes = self.shape(packed);
        for extent in strides.iter_mut().rev() {
            let outer = self.mul(stride, *extent);
            *extent = std::mem::replace(&mut stride, outer);
        }
        strides
    }

    /// Where the part of a tensor that begins at `at` begins: constant and variable part of its [`Self::base`].
    fn offset(&mut self, tensor: Tensor, at: &[Size]) -> (i64, Size) {
        let base = self.base(tensor);
        let strides = self.strides(tensor);
        let mut terms: Sizes = Sizes::from_slice(&[base]);
        for (&at, stride) in at.iter().zip(strides) {
            terms.push(self.mul(at, stride));
        }
        let (mut constant, mut variable) = (0i64, Size::Const(0));
        for term in terms {
            match term {
                Size::Const(value) => constant = constant.wrapping_add(value),
                value => variable = self.add(variable, value),
            }
        }
        (constant, variable)
    }

    /// Defines a slice. Its place is checked where it is made, so that its elements need be checked against it only.
    pub fn slice(&mut self, dst: Tensor, src: Tensor, at: &[Scalar]) {
        let program = self.program();
        let at = self.indices(at);
        let shape = self.extent_indices(&program.tensors[dst].shape);
        self.check_region(0, src, &at, &shape);
        let at: Sizes = at.iter().map(|i| i.size).collect();
        let (constant, variable) = self.offset(src, &at);
        let base = self.add(variable, Size::Const(constant));
        self.bases.insert(dst, base);
    }

    /// Defines a tensor as all elements of a packed one.
    pub fn flatten(&mut self, dst: Tensor, src: Tensor) {
        let base = self.base(src);
        self.bases.insert(dst, base);
    }

    /// Address of the part of a tensor that begins at `at`; of `peer`'s copy, or of this rank's.
    pub fn address(&mut self, tensor: Tensor, peer: Option<Size>, at: &[Size]) -> Value {
        let (constant, variable) = self.offset(tensor, at);
        let origin = if self.unit.is_window(tensor) { self.windows(peer) } else { Size::Const(0) };
        let address = self.add(origin, variable);
        let address = self.add(address, Size::Const(constant));
        self.size_value(address)
    }

    /// Address of the windows of `peer`, or of this rank.
    fn windows(&mut self, peer: Option<Size>) -> Size {
        let windows = self.frame_field(ADDRESS, offset_of!(Frame, windows));
        let rank = match peer {
            Some(peer) => peer,
            None => self.rank(),
        };
        self.copy_of(windows, rank)
    }

    /// The address in the windows of `rank` of what lies at `address` in those of rank 0.
    pub fn copy_of(&mut self, address: Value, rank: Size) -> Size {
        let distance = self.mul(rank, Size::Const(self.unit.binding.stride as i64));
        self.add(Size::Value(address), distance)
    }

    /// Address of one element of this rank's memory, or of `peer`'s.
    pub fn element(&mut self, tensor: Tensor, peer: Option<Size>, at: &[Scalar]) -> Value {
        let at = self.indices(at);
        let ones: Indices = at.iter().map(|_| Index::number(1)).collect();
        self.check_region(0, tensor, &at, &ones);
        let at: Sizes = at.iter().map(|i| i.size).collect();
        self.address(tensor, peer, &at)
    }

    pub fn read(&mut self, dst: Scalar, src: Tensor, at: &[Scalar]) -> Result<()> {
        let address = self.element(src, None, at);
        let value = match self.program().tensors[src].dtype {
            DType::F32 => self.b.ins().load(types::F32, PLAIN, address, 0),
            DType::I32 => self.b.ins().load(types::I32, PLAIN, address, 0),
            DType::I64 | DType::U64 => self.b.ins().load(types::I64, PLAIN, address, 0),
            DType::U32 => self.b.ins().uload32(PLAIN, address, 0),
            DType::I16 => self.b.ins().sload16(types::I32, PLAIN, address, 0),
            DType::U16 => self.b.ins().uload16(types::I32, PLAIN, address, 0),
            DType::I8 => self.b.ins().sload8(types::I32, PLAIN, address, 0),
            DType::U8 => self.b.ins().uload8(types::I32, PLAIN, address, 0),
            DType::Bool => self.b.ins().load(types::I8, PLAIN, address, 0),
            dtype @ (DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2) => {
                let bits = self.b.ins().uload16(types::I32, PLAIN, address, 0);
                let kernel = self.kernel(self.unit.kernels.element_to_f32(dtype))?;
                self.call(kernel, Some(types::F32), &[bits]).expect("the kernel has a result")
            }
        };
        self.scalars.insert(dst, value);
        Ok(())
    }

    pub fn write(&mut self, dst: Tensor, at: &[Scalar], value: Scalar) -> Result<()> {
        let dtype = self.program().tensors[dst].dtype;
        let value = self.element_value(value, dtype)?;
        let address = self.element(dst, None, at);
        let wide = self.type_of(value).bytes() as i64 > dtype.size();
        match dtype.size() {
            1 if wide => self.b.ins().istore8(PLAIN, value, address, 0),
            2 if wide => self.b.ins().istore16(PLAIN, value, address, 0),
            _ => self.b.ins().store(PLAIN, value, address, 0),
        };
        Ok(())
    }

    /// A scalar as an element: in a machine type of at least the element's size.
    fn element_value(&mut self, scalar: Scalar, dtype: DType) -> Result<Value> {
        let ty = match dtype {
            DType::F32 | DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => ScalarType::F32,
            DType::I64 | DType::U64 => ScalarType::I64,
            DType::Bool => ScalarType::Bool,
            _ => ScalarType::I32,
        };
        let literal = self.float_literal(scalar);
        let bits = match dtype {
            DType::F16 => literal.map(|value| f16::from_f32(value).to_bits()),
            DType::BF16 => literal.map(|value| bf16::from_f32(value).to_bits()),
            DType::F8E4M3 | DType::F8E5M2 => None,
            _ => return Ok(self.value_as(scalar, ty)),
        };
        if let Some(bits) = bits {
            return Ok(self.b.ins().iconst(types::I32, i64::from(bits)));
        }
        let value = self.value_as(scalar, ty);
        let kernel = self.kernel(self.unit.kernels.element_from_f32(dtype))?;
        Ok(self.call(kernel, Some(types::I32), &[value]).expect("the kernel has a result"))
    }

    /// The bits of a scalar as an element, zero-extended.
    pub fn element_bits(&mut self, scalar: Scalar, dtype: DType) -> Result<Value> {
        let value = self.element_value(scalar, dtype)?;
        Ok(self.bits(value))
    }

    fn float_literal(&self, scalar: Scalar) -> Option<f32> {
        match self.program().scalars[scalar].def {
            ScalarDef::Float(value) => Some(value),
            ScalarDef::Extent(extent) => match self.program().extents.get(extent) {
                ExtentData::Int(value) => Some(value as f32),
                _ => None,
            },
            _ => None,
        }
    }
}
