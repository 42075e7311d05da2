//! Scalar arithmetic.

use half::{bf16, f16};

use crate::codegen::arguments::Argument;
use crate::codegen::index::Number;
use crate::ir::extent::ExtentData;
use crate::ir::op::Expr as Formula;
use crate::ir::program::ScalarDef;
use crate::ir::{BinaryOp, DType, FaultKind, Scalar, ScalarType, UnaryOp};
use crate::verify::range::Interval;

use super::expr::Size;
use super::function::{Function, Value};
use super::kernel::{Expr, Stmt, Type};

/// The type of an element in C++. Floats of 8 bits are only moved, so that their bits will do.
pub fn cpp_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F16 => "half",
        DType::BF16 => "bfloat16_t",
        DType::I8 => "int8_t",
        DType::U8 | DType::Bool | DType::F8E4M3 | DType::F8E5M2 => "uint8_t",
        DType::I16 => "int16_t",
        DType::U16 => "uint16_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
    }
}

/// The type of an element once it is read.
pub fn scalar_of(dtype: DType) -> ScalarType {
    dtype.scalar().expect("the verifier lets nobody read elements of storage-only types")
}

impl Function<'_, '_> {
    /// The value of a scalar in its own type.
    pub fn value(&mut self, scalar: Scalar) -> Expr {
        let data = &self.program().scalars[scalar];
        match data.def {
            ScalarDef::Float(value) => Expr::float(value),
            ScalarDef::Bool(value) => Expr::bool(value),
            _ if data.ty.is_int() => self.size(scalar).expr(),
            _ => self.scalars[&scalar].expr.clone(),
        }
    }

    /// An integer scalar.
    pub fn size(&mut self, scalar: Scalar) -> Size {
        let program = self.program();
        if let Some(extent) = program.extent_of(scalar) {
            return self.extent(extent);
        }
        match self.unit.arguments(self.version).scalar(program, scalar) {
            Argument::Int(value) if program.scalars[scalar].ty == ScalarType::I32 => {
                Size::Const(i64::from(value as i32))
            }
            Argument::Int(value) => Size::Const(value),
            Argument::Rank => self.rank(),
            Argument::Offset(_) | Argument::Unknown => {
                let Value { expr, is_narrow } = self.scalars[&scalar].clone();
                match expr.as_number() {
                    Some(value) => Size::Const(value),
                    None => Size::Value { expr, is_narrow },
                }
            }
        }
    }

    /// The value of a scalar where type `ty` is needed: integers change their width, and a literal becomes what is needed.
    pub fn value_as(&mut self, scalar: Scalar, ty: ScalarType) -> Expr {
        let program = self.program();
        if ty == ScalarType::F32
            && let Some(extent) = program.extent_of(scalar)
            && let ExtentData::Int(value) = program.extents.get(extent)
        {
            return Expr::float(value as f32);
        }
        if ty.is_int() { self.int_as(scalar, ty).expr() } else { self.value(scalar) }
    }

    /// An integer scalar where the integer type `ty` is needed.
    fn int_as(&mut self, scalar: Scalar, ty: ScalarType) -> Size {
        match (self.size(scalar), ty) {
            (Size::Const(value), ScalarType::I32) => Size::Const(i64::from(value as i32)),
            (Size::Value { expr, is_narrow: false }, ScalarType::I32)
                if !Interval::of_type(ty).contains(self.unit.ranges.of(scalar)) =>
            {
                Size::Value { expr: Expr::call("int32_t", [&expr]), is_narrow: true }
            }
            (size, _) => size,
        }
    }

    /// The values that an integer scalar can have where type `ty` is needed.
    fn range_as(&mut self, scalar: Scalar, ty: ScalarType) -> Interval {
        self.int_as(scalar, ty).constant().map_or_else(|| self.unit.ranges.of(scalar), Interval::point)
    }

    pub fn scalar(&mut self, dst: Scalar, formula: &Formula) {
        let ty = self.program().scalars[dst].ty;
        let value = self.formula(dst, ty, formula);
        self.define(dst, value);
    }

    fn formula(&mut self, dst: Scalar, ty: ScalarType, formula: &Formula) -> Value {
        let range = self.unit.ranges.of(dst);
        let may_wrap = ty.is_int() && range == Interval::of_type(ty);
        let float = |expr| Value { expr, is_narrow: false };
        match *formula {
            Formula::Copy(a) if ty.is_int() => self.int_as(a, ty).into(),
            Formula::Copy(a) => float(self.value_as(a, ty)),
            Formula::Unary(UnaryOp::Not, a) => float(Expr::compound(format!("!{}", self.value(a).as_operand()))),
            Formula::Unary(UnaryOp::Neg, a) if ty == ScalarType::F32 => {
                float(Expr::compound(format!("-{}", self.value_as(a, ty).as_operand())))
            }
            Formula::Unary(UnaryOp::Neg, a) => {
                let a = self.int_as(a, ty);
                self.int_binary(BinaryOp::Sub, &Size::Const(0), &a, ty, Interval::ALL, may_wrap).into()
            }
            Formula::Binary(op, a, b) => {
                let operands = if op.is_comparison() { self.program().common_type(a, b) } else { ty };
                if operands.is_int() {
                    let range = self.range_as(b, operands);
                    let (a, b) = (self.int_as(a, operands), self.int_as(b, operands));
                    self.int_binary(op, &a, &b, operands, range, may_wrap).into()
                } else {
                    let (a, b) = (self.value_as(a, operands), self.value_as(b, operands));
                    float(other_binary(op, &a, &b))
                }
            }
            Formula::Cast(a) => self.cast(a, ty),
            Formula::Select { cond, then, other } => {
                let cond = self.value(cond);
                let [then, other] = [then, other].map(|side| match ty.is_int() {
                    true => self.int_as(side, ty).into(),
                    false => float(self.value_as(side, ty)),
                });
                let cond = if cond.text.contains('?') { cond.as_operand() } else { cond.text };
                let expr = Expr::compound(format!("{cond} ? {} : {}", then.expr.text, other.expr.text));
                Value { expr, is_narrow: then.is_narrow && other.is_narrow }
            }
            Formula::Rank(window) => {
                let context = self.context(window);
                Value { expr: Expr::operand(format!("int32_t({context}->rankId)")), is_narrow: true }
            }
            Formula::NRanks(window) => float(Expr::number(self.nranks(window))),
        }
    }

    /// Gives a result a name if it is to have one.
    pub fn define(&mut self, dst: Scalar, value: Value) {
        let data = &self.program().scalars[dst];
        let has_line = !self.unit.text.is_inline(self.op) && self.unit.text.is_used(dst);
        if !has_line || value.expr.as_number().is_some() {
            self.scalars.insert(dst, value);
            return;
        }
        let name = self.names.take(&self.unit.text.scalar(dst));
        self.push(Stmt::Scalar { name: name.clone(), ty: Type::of(data.ty), value: value.expr, is_const: true });
        self.scalars.insert(dst, Value { expr: Expr::operand(name), is_narrow: data.ty == ScalarType::I32 });
    }

    /// `a op b` on integers; `b` lies in `range`.
    pub fn int_binary(
        &mut self,
        op: BinaryOp,
        a: &Size,
        b: &Size,
        ty: ScalarType,
        range: Interval,
        may_wrap: bool,
    ) -> Size {
        use BinaryOp::*;
        let name = Type::of(ty).name();
        let is_narrow = |size: &Size| match size {
            Size::Const(value) => i32::try_from(*value).is_ok(),
            Size::Value { is_narrow, .. } => *is_narrow,
        };
        let narrow = is_narrow(a) && is_narrow(b);
        let call = |function: &str| {
            let expr = Expr::call(format!("pld::{function}<{name}>"), [&a.expr(), &b.expr()]);
            Size::Value { expr, is_narrow: ty == ScalarType::I32 }
        };
        if let (&Size::Const(x), &Size::Const(y)) = (a, b) {
            let value = match op {
                Add => Some(x.wrapping_add(y)),
                Sub => Some(x.wrapping_sub(y)),
                Mul => Some(x.wrapping_mul(y)),
                Div => x.checked_div(y),
                Rem => x.checked_rem(y),
                Min => Some(x.min(y)),
                Max => Some(x.max(y)),
                _ => None,
            };
            if let Some(value) = value {
                return Size::Const(if ty == ScalarType::I32 { i64::from(value as i32) } else { value });
            }
        }
        match (op, a, b) {
            (Add | Sub, a, Size::Const(0)) | (Mul | Div, a, Size::Const(1)) => return a.clone(),
            (Add, Size::Const(0), b) | (Mul, Size::Const(1), b) => return b.clone(),
            _ => {}
        }
        // Arithmetic of 64 bits needs an operand of 64 bits.
        let (left, right) = (a.expr(), b.expr());
        let plain = |op: &str| {
            let left = if ty == ScalarType::I64 && narrow { Expr::call("int64_t", [&left]) } else { left.clone() };
            Size::Value { expr: Expr::binary(&left, op, &right), is_narrow: ty == ScalarType::I32 && narrow }
        };
        let comparison = |op: &str| Size::Value { expr: Expr::binary(&left, op, &right), is_narrow: false };
        match op {
            Add if may_wrap => call("add"),
            Sub if may_wrap => call("sub"),
            Mul if may_wrap => call("mul"),
            Add if ty == ScalarType::I64 => a.add(b),
            Sub if ty == ScalarType::I64 => a.sub(b),
            Mul if ty == ScalarType::I64 => a.mul(b),
            Add => plain("+"),
            Sub => plain("-"),
            Mul => plain("*"),
            Div | Rem => {
                if range.contains(Interval::point(0)) {
                    let wrong = Expr::binary(&right, "==", &Expr::number(0));
                    self.fault_if(wrong, FaultKind::Division, &[], &[]);
                }
                // The lowest number by -1 is no number.
                match (range.contains(Interval::point(-1)), op) {
                    (true, Div) => call("div"),
                    (true, _) => call("rem"),
                    (false, Div) => plain("/"),
                    (false, _) => plain("%"),
                }
            }
            Min => call("min"),
            Max => call("max"),
            Eq => comparison("=="),
            Ne => comparison("!="),
            Lt => comparison("<"),
            Le => comparison("<="),
            Gt => comparison(">"),
            Ge => comparison(">="),
            And | Or => unreachable!("{op} is refused on integers"),
        }
    }

    fn cast(&mut self, from: Scalar, to: ScalarType) -> Value {
        let source = self.program().scalars[from].ty;
        let value =
            if source.is_int() { self.size(from).into() } else { Value { expr: self.value(from), is_narrow: false } };
        let name = Type::of(to).name();
        let narrow = to == ScalarType::I32;
        let expr = match (source, to) {
            _ if source == to => return value,
            (ScalarType::F32, ScalarType::I32 | ScalarType::I64) => {
                Expr::call(format!("pld::saturate<{name}>"), [&value.expr])
            }
            (ScalarType::F32, ScalarType::Bool) => Expr::binary(&value.expr, "!=", &Expr::float(0.0)),
            (_, ScalarType::Bool) => Expr::binary(&value.expr, "!=", &Expr::number(0)),
            (ScalarType::I32, ScalarType::I64) if !value.is_narrow => return value,
            _ => Expr::call(name, [&value.expr]),
        };
        Value { expr, is_narrow: narrow }
    }

    /// A scalar as an element.
    pub fn as_element(&mut self, scalar: Scalar, dtype: DType) -> Expr {
        match dtype {
            DType::F32 => self.value_as(scalar, ScalarType::F32),
            DType::F16 => Expr::call("half", [&self.value_as(scalar, ScalarType::F32)]),
            DType::BF16 => Expr::call("pld::bf16", [&self.value_as(scalar, ScalarType::F32)]),
            DType::Bool => Expr::call("uint8_t", [&self.value(scalar)]),
            DType::I64 | DType::U64 => {
                let value = self.value_as(scalar, ScalarType::I64);
                if dtype == DType::U64 { Expr::call("uint64_t", [&value]) } else { value }
            }
            _ => match self.int_as(scalar, ScalarType::I64) {
                Size::Const(value) => Expr::number(match dtype {
                    DType::I8 => i64::from(value as i8),
                    DType::U8 => i64::from(value as u8),
                    DType::I16 => i64::from(value as i16),
                    DType::U16 => i64::from(value as u16),
                    DType::U32 => i64::from(value as u32),
                    _ => i64::from(value as i32),
                }),
                Size::Value { expr, is_narrow: true } if dtype == DType::I32 => expr,
                Size::Value { expr, .. } => Expr::call(cpp_type(dtype), [&expr]),
            },
        }
    }

    /// A float scalar as it is once it has been an element.
    pub fn rounded(&mut self, scalar: Scalar, dtype: DType) -> Expr {
        let literal = match self.program().scalars[scalar].def {
            ScalarDef::Float(value) => Some(value),
            ScalarDef::Extent(extent) => match self.program().extents.get(extent) {
                ExtentData::Int(value) => Some(value as f32),
                _ => None,
            },
            _ => None,
        };
        match (literal, dtype) {
            (Some(value), DType::BF16) => Expr::float(bf16::from_f32(value).to_f32()),
            (Some(value), DType::F16) => Expr::float(f16::from_f32(value).to_f32()),
            (None, DType::BF16) => Expr::call("pld::float_of", [&self.as_element(scalar, dtype)]),
            _ => Expr::call("float", [&self.as_element(scalar, dtype)]),
        }
    }
}

impl From<Size> for Value {
    fn from(size: Size) -> Self {
        match size {
            Size::Const(value) => Value { expr: Expr::number(value), is_narrow: false },
            Size::Value { expr, is_narrow } => Value { expr, is_narrow },
        }
    }
}

/// `a op b` on floats or bools.
fn other_binary(op: BinaryOp, a: &Expr, b: &Expr) -> Expr {
    match op {
        BinaryOp::Min => Expr::call("pld::min<float>", [a, b]),
        BinaryOp::Max => Expr::call("pld::max<float>", [a, b]),
        BinaryOp::And => Expr::binary(a, "&&", b),
        BinaryOp::Or => Expr::binary(a, "||", b),
        op => Expr::binary(a, op.name(), b),
    }
}
