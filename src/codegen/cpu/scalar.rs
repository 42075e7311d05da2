//! Scalar arithmetic.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};

use crate::ir::extent::ExtentData;
use crate::ir::op::Expr;
use crate::ir::program::ScalarDef;
use crate::ir::{BinaryOp, Scalar, ScalarType, UnaryOp};
use crate::verify::range::Interval;

use super::abi::FaultKind;
use super::function::Function;
use super::size::Size;
use crate::codegen::arguments::Argument;

/// The machine type of a scalar; a bool is a byte, 0 or 1.
pub fn scalar_type(ty: ScalarType) -> Type {
    match ty {
        ScalarType::I32 => types::I32,
        ScalarType::I64 => types::I64,
        ScalarType::F32 => types::F32,
        ScalarType::Bool => types::I8,
    }
}

impl Function<'_, '_> {
    /// The value of a scalar in its own type.
    pub fn value(&mut self, scalar: Scalar) -> Value {
        let data = &self.program().scalars[scalar];
        match data.def {
            ScalarDef::Extent(extent) => {
                let size = self.extent(extent);
                self.size_value(size)
            }
            ScalarDef::Float(value) => self.b.ins().f32const(value),
            ScalarDef::Bool(value) => self.b.ins().iconst(types::I8, i64::from(value)),
            _ => match self.known_argument(scalar) {
                Some(argument) => {
                    let value = self.size_value(argument);
                    self.convert_int(value, scalar_type(data.ty))
                }
                None => self.scalars[&scalar],
            },
        }
    }

    /// What every dispatch passes for a parameter.
    pub fn known_argument(&mut self, scalar: Scalar) -> Option<Size> {
        match self.unit.arguments().scalar(self.program(), scalar) {
            Argument::Int(value) if self.program().scalars[scalar].ty == ScalarType::I32 => {
                Some(Size::Const(i64::from(value as i32)))
            }
            Argument::Int(value) => Some(Size::Const(value)),
            Argument::Rank => Some(self.rank()),
            Argument::Offset(_) | Argument::Unknown => None,
        }
    }

    /// The value of a scalar where type `ty` is needed: integers change their width, and a literal becomes what is
    /// needed.
    pub fn value_as(&mut self, scalar: Scalar, ty: ScalarType) -> Value {
        if ty == ScalarType::F32
            && let Some(extent) = self.program().extent_of(scalar)
            && let ExtentData::Int(value) = self.program().extents.get(extent)
        {
            return self.b.ins().f32const(value as f32);
        }
        if let Some(value) = self.wrapped_constant(scalar, ty) {
            return self.b.ins().iconst(scalar_type(ty), value);
        }
        let value = self.value(scalar);
        if ty.is_int() { self.convert_int(value, scalar_type(ty)) } else { value }
    }

    /// The number that a size or literal becomes where the integer type `ty` is needed.
    fn wrapped_constant(&self, scalar: Scalar, ty: ScalarType) -> Option<i64> {
        let value = self.program().int_value(scalar, self.unit.known)?;
        match ty {
            ScalarType::I64 => Some(value),
            ScalarType::I32 => Some(i64::from(value as i32)),
            ScalarType::F32 | ScalarType::Bool => None,
        }
    }

    /// The values that an integer scalar can have where type `ty` is needed.
    fn range_as(&self, scalar: Scalar, ty: ScalarType) -> Interval {
        self.wrapped_constant(scalar, ty).map_or_else(|| self.unit.ranges.of(scalar), Interval::point)
    }

    /// An integer in another width, wrapping.
    fn convert_int(&mut self, value: Value, ty: Type) -> Value {
        let from = self.type_of(value);
        if from.bits() < ty.bits() {
            self.b.ins().sextend(ty, value)
        } else if from.bits() > ty.bits() {
            self.b.ins().ireduce(ty, value)
        } else {
            value
        }
    }

    pub fn scalar(&mut self, dst: Scalar, expr: &Expr) {
        let ty = self.program().scalars[dst].ty;
        let value = match *expr {
            Expr::Copy(a) => self.value_as(a, ty),
            Expr::Unary(UnaryOp::Not, a) => {
                let a = self.value(a);
                self.b.ins().bxor_imm_u(a, 1)
            }
            Expr::Unary(UnaryOp::Neg, a) => {
                let a = self.value_as(a, ty);
                if ty == ScalarType::F32 { self.b.ins().fneg(a) } else { self.b.ins().ineg(a) }
            }
            Expr::Binary(op, a, b) => {
                let operands = if op.is_comparison() { self.program().common_type(a, b) } else { ty };
                let range = self.range_as(b, operands);
                let (a, b) = (self.value_as(a, operands), self.value_as(b, operands));
                if operands == ScalarType::F32 { self.float_binary(op, a, b) } else { self.int_binary(op, a, b, range) }
            }
            Expr::Cast(a) => self.cast(a, ty),
            Expr::Select { cond, then, other } => {
                let (cond, then, other) = (self.value(cond), self.value_as(then, ty), self.value_as(other, ty));
                self.b.ins().select(cond, then, other)
            }
            Expr::Rank(window) => {
                let rank = self.domain_rank(window);
                let rank = self.size_value(rank);
                self.convert_int(rank, types::I32)
            }
            Expr::NRanks(window) => {
                let nranks = self.nranks(window);
                self.b.ins().iconst(types::I32, nranks)
            }
        };
        self.scalars.insert(dst, value);
    }

    /// `a op b` on integers of one width, or on bools; `b` lies in `range`.
    pub fn int_binary(&mut self, op: BinaryOp, a: Value, b: Value, range: Interval) -> Value {
        match op {
            BinaryOp::Add => self.b.ins().iadd(a, b),
            BinaryOp::Sub => self.b.ins().isub(a, b),
            BinaryOp::Mul => self.b.ins().imul(a, b),
            BinaryOp::Div | BinaryOp::Rem => self.divide(op, a, b, range),
            BinaryOp::Min => self.b.ins().smin(a, b),
            BinaryOp::Max => self.b.ins().smax(a, b),
            BinaryOp::And => self.b.ins().band(a, b),
            BinaryOp::Or => self.b.ins().bor(a, b),
            BinaryOp::Eq => self.b.ins().icmp(IntCC::Equal, a, b),
            BinaryOp::Ne => self.b.ins().icmp(IntCC::NotEqual, a, b),
            BinaryOp::Lt => self.b.ins().icmp(IntCC::SignedLessThan, a, b),
            BinaryOp::Le => self.b.ins().icmp(IntCC::SignedLessThanOrEqual, a, b),
            BinaryOp::Gt => self.b.ins().icmp(IntCC::SignedGreaterThan, a, b),
            BinaryOp::Ge => self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, a, b),
        }
    }

    /// Division or remainder. The machine's division traps on the lowest number by -1, so -1 never reaches it.
    fn divide(&mut self, op: BinaryOp, a: Value, b: Value, range: Interval) -> Value {
        if range.contains(Interval::point(0)) {
            let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
            self.fault_if(zero, FaultKind::Division, &[], &[]);
        }
        let machine = |f: &mut Self, b| match op {
            BinaryOp::Div => f.b.ins().sdiv(a, b),
            _ => f.b.ins().srem(a, b),
        };
        if !range.contains(Interval::point(-1)) {
            return machine(self, b);
        }
        let minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let ty = self.type_of(b);
        let one = self.b.ins().iconst(ty, 1);
        let divisor = self.b.ins().select(minus_one, one, b);
        let result = machine(self, divisor);
        if op == BinaryOp::Rem {
            return result;
        }
        let negative = self.b.ins().ineg(a);
        self.b.ins().select(minus_one, negative, result)
    }

    fn float_binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let comparison = match op {
            BinaryOp::Add => return self.b.ins().fadd(a, b),
            BinaryOp::Sub => return self.b.ins().fsub(a, b),
            BinaryOp::Mul => return self.b.ins().fmul(a, b),
            BinaryOp::Div => return self.b.ins().fdiv(a, b),
            BinaryOp::Min => return self.b.ins().fmin(a, b),
            BinaryOp::Max => return self.b.ins().fmax(a, b),
            BinaryOp::Eq => FloatCC::Equal,
            BinaryOp::Ne => FloatCC::NotEqual,
            BinaryOp::Lt => FloatCC::LessThan,
            BinaryOp::Le => FloatCC::LessThanOrEqual,
            BinaryOp::Gt => FloatCC::GreaterThan,
            BinaryOp::Ge => FloatCC::GreaterThanOrEqual,
            BinaryOp::Rem | BinaryOp::And | BinaryOp::Or => unreachable!("{op} is refused on floats"),
        };
        self.b.ins().fcmp(comparison, a, b)
    }

    fn cast(&mut self, from: Scalar, to: ScalarType) -> Value {
        let (value, from) = (self.value(from), self.program().scalars[from].ty);
        match (from, to) {
            _ if from == to => value,
            (ScalarType::F32, ScalarType::I32 | ScalarType::I64) => {
                self.b.ins().fcvt_to_sint_sat(scalar_type(to), value)
            }
            (ScalarType::F32, ScalarType::Bool) => {
                let zero = self.b.ins().f32const(0.0);
                self.b.ins().fcmp(FloatCC::NotEqual, value, zero)
            }
            (_, ScalarType::Bool) => self.b.ins().icmp_imm_s(IntCC::NotEqual, value, 0),
            (ScalarType::Bool, ScalarType::F32) => self.b.ins().fcvt_from_uint(types::F32, value),
            (_, ScalarType::F32) => self.b.ins().fcvt_from_sint(types::F32, value),
            (ScalarType::Bool, _) => self.b.ins().uextend(scalar_type(to), value),
            _ => self.convert_int(value, scalar_type(to)),
        }
    }

    /// The bits of a value as a 64-bit integer, zero-extended.
    pub fn bits(&mut self, value: Value) -> Value {
        let ty = self.type_of(value);
        let int = if ty == types::F32 { self.b.ins().bitcast(types::I32, MemFlagsData::new(), value) } else { value };
        if ty == types::I64 { int } else { self.b.ins().uextend(types::I64, int) }
    }

    /// The scalar that zero-extended bits are.
    pub fn scalar_from_bits(&mut self, bits: Value, ty: ScalarType) -> Value {
        match ty {
            ScalarType::I64 => bits,
            ScalarType::F32 => {
                let bits = self.b.ins().ireduce(types::I32, bits);
                self.b.ins().bitcast(types::F32, MemFlagsData::new(), bits)
            }
            _ => self.b.ins().ireduce(scalar_type(ty), bits),
        }
    }
}
