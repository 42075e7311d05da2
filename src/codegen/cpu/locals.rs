//! Mutable scalars and local arrays.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, StackSlotData, StackSlotKind, Value, types};
use cranelift_frontend::Variable;

use crate::error::Result;
use crate::ir::{Array, Scalar, Var};

use super::abi::Frame;
use super::function::{Function, PLAIN};
use super::jit::ADDRESS;
use super::scalar::scalar_type;
use super::size::Size;
use crate::codegen::captures::Capture;

/// Where a mutable scalar lives.
#[derive(Clone, Copy)]
pub enum VarPlace {
    /// In this function only.
    Register(Variable),
    /// At an address, where tasks reach it too.
    Memory(Value),
}

impl Function<'_, '_> {
    pub fn var_def(&mut self, var: Var, init: Scalar) {
        let ty = scalar_type(self.program().vars[var].ty);
        self.sync_var(var);
        let place = if self.shared.contains(&Capture::Var(var)) {
            VarPlace::Memory(self.stack_slot(i64::from(ty.bytes())))
        } else {
            VarPlace::Register(self.b.declare_var(ty))
        };
        self.vars.insert(var, place);
        self.var_set(var, init);
    }

    pub fn var_get(&mut self, dst: Scalar, var: Var) {
        let ty = scalar_type(self.program().vars[var].ty);
        self.sync_var(var);
        let value = match self.vars[&var] {
            VarPlace::Register(register) => self.b.use_var(register),
            VarPlace::Memory(address) => self.b.ins().load(ty, PLAIN, address, 0),
        };
        self.scalars.insert(dst, value);
    }

    pub fn var_set(&mut self, var: Var, value: Scalar) {
        let value = self.value_as(value, self.program().vars[var].ty);
        self.sync_var(var);
        match self.vars[&var] {
            VarPlace::Register(register) => self.b.def_var(register, value),
            VarPlace::Memory(address) => {
                self.b.ins().store(PLAIN, value, address, 0);
            }
        }
    }

    pub fn array_def(&mut self, array: Array, fill: Scalar) -> Result<()> {
        let data = &self.program().arrays[array];
        let (dtype, len) = (data.ty.dtype(), self.array_len(array));
        let bytes = len * dtype.size();
        self.sync_array(array);
        let address = match self.unit.scratch.arrays[array] {
            Some(offset) => self.scratch(offset),
            None => self.stack_slot(bytes),
        };
        self.arrays.insert(array, address);
        let fill = self.element_bits(fill, dtype)?;
        self.fill(dtype, address, len, fill)
    }

    pub fn array_get(&mut self, dst: Scalar, array: Array, index: Scalar) {
        let ty = scalar_type(self.program().arrays[array].ty);
        self.sync_array(array);
        let address = self.array_element(array, index);
        let value = self.b.ins().load(ty, PLAIN, address, 0);
        self.scalars.insert(dst, value);
    }

    pub fn array_set(&mut self, array: Array, index: Scalar, value: Scalar) {
        let value = self.value_as(value, self.program().arrays[array].ty);
        self.sync_array(array);
        let address = self.array_element(array, index);
        self.b.ins().store(PLAIN, value, address, 0);
    }

    fn array_element(&mut self, array: Array, index: Scalar) -> Value {
        let index = self.array_index(index, self.array_len(array));
        let offset = self.mul(index, Size::Const(self.program().arrays[array].ty.dtype().size()));
        let address = self.add(Size::Value(self.arrays[&array]), offset);
        self.size_value(address)
    }

    fn array_len(&self, array: Array) -> i64 {
        let len = self.program().extents.eval(self.program().arrays[array].len, self.unit.known);
        len.expect("array lengths were evaluated when scratch memory was planned")
    }

    /// Address of fresh bytes on the stack.
    pub fn stack_slot(&mut self, bytes: i64) -> Value {
        const ALIGN_SHIFT: u8 = 4;
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes as u32, ALIGN_SHIFT);
        let slot = self.b.create_sized_stack_slot(slot);
        self.b.ins().stack_addr(ADDRESS, slot, 0)
    }

    /// Address of an offset in scratch memory.
    pub fn scratch(&mut self, offset: i64) -> Value {
        let scratch = self.frame_field(ADDRESS, offset_of!(Frame, scratch));
        if offset == 0 { scratch } else { self.b.ins().iadd_imm_s(scratch, offset) }
    }

    /// Sets `len` elements to the same bits.
    pub fn fill(&mut self, dtype: crate::ir::DType, dst: Value, len: i64, bits: Value) -> Result<()> {
        let len = self.b.ins().iconst(types::I64, len);
        self.call(self.unit.kernels.fill(dtype), None, &[dst, len, bits]);
        Ok(())
    }
}
