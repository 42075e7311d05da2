//! Mutable scalars and local arrays.

use crate::codegen::captures::Capture;
use crate::error::Result;
use crate::ir::{Array, Scalar, ScalarType, Var};

use super::KernelParam;
use super::function::{Function, Value};
use super::kernel::{Expr, Stmt, Type};

/// Bytes of the stack that the arrays of a kernel may take: a quarter of it.
const STACK_BYTES: i64 = 8 << 10;

impl Function<'_, '_> {
    pub fn var_def(&mut self, var: Var, init: Scalar) {
        let ty = self.program().vars[var].ty;
        let value = self.value_as(init, ty);
        let name = self.names.take(self.unit.text.var(var));
        self.push(Stmt::Scalar { name: name.clone(), ty: Type::of(ty), value, is_const: false });
        self.vars.insert(var, Expr::operand(name));
    }

    pub fn var_get(&mut self, dst: Scalar, var: Var) {
        let ty = self.program().vars[var].ty;
        let is_captured = self.params.iter().any(|param| param.kind == KernelParam::Capture(Capture::Var(var)));
        let value = Value { expr: self.vars[&var].clone(), is_narrow: ty == ScalarType::I32 && !is_captured };
        self.define(dst, value);
    }

    pub fn var_set(&mut self, var: Var, value: Scalar) -> Result<()> {
        if self.params.iter().any(|param| param.kind == KernelParam::Capture(Capture::Var(var))) {
            let name = self.unit.text.var(var);
            return Err(self.unsupported(format!(
                "a kernel cannot change {name}, a variable of the entry, which is in host memory; write what it computes \
                 into a tensor or window, and read it there"
            )));
        }
        let value = self.value_as(value, self.program().vars[var].ty);
        self.push(Stmt::Assign { place: self.vars[&var].clone(), value });
        Ok(())
    }

    pub fn array_def(&mut self, array: Array, fill: Scalar) -> Result<()> {
        let data = &self.program().arrays[array];
        let len = self.array_len(array);
        let bytes = len.saturating_mul(data.ty.dtype().size());
        self.array_bytes = self.array_bytes.saturating_add(bytes);
        if self.array_bytes > STACK_BYTES {
            return Err(self.unsupported(format!(
                "the arrays of the task take {} bytes, but a kernel has {STACK_BYTES} bytes of stack for them; keep what is \
                 large in a tensor or window",
                self.array_bytes
            )));
        }
        let fill = self.value_as(fill, data.ty);
        let name = self.names.take(self.unit.text.array(array));
        self.push(Stmt::Array { name: name.clone(), ty: Type::of(data.ty), len, fill });
        self.arrays.insert(array, name);
        Ok(())
    }

    pub fn array_get(&mut self, dst: Scalar, array: Array, index: Scalar) -> Result<()> {
        let is_narrow = self.program().arrays[array].ty == ScalarType::I32;
        let expr = self.array_element(array, index)?;
        self.define(dst, Value { expr, is_narrow });
        Ok(())
    }

    pub fn array_set(&mut self, array: Array, index: Scalar, value: Scalar) -> Result<()> {
        let value = self.value_as(value, self.program().arrays[array].ty);
        let place = self.array_element(array, index)?;
        self.push(Stmt::Assign { place, value });
        Ok(())
    }

    fn array_element(&mut self, array: Array, index: Scalar) -> Result<Expr> {
        let Some(name) = self.arrays.get(&array).cloned() else {
            let name = self.unit.text.array(array);
            return Err(self.unsupported(format!(
                "a kernel cannot use {name}, an array of the entry, which is in host memory; define it in the task, or keep \
                 it in a tensor or window"
            )));
        };
        let index = self.array_index(index, self.array_len(array));
        Ok(Expr::operand(format!("{name}[{}]", index.text)))
    }

    fn array_len(&self, array: Array) -> i64 {
        let len = self.program().extents.eval(self.program().arrays[array].len, self.unit.known);
        len.expect("the verifier has evaluated lengths of arrays")
    }
}
