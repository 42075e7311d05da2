//! The function of a task: its parameters, and what it does before its body.

use std::collections::HashMap;

use crate::codegen::captures::{Capture, captures};
use crate::codegen::versions::Version;
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, DType, Dim, Op, OpKind, Predicate, ScalarType, Task};
use crate::passes::task_graph::aliases;

use super::KernelParam;
use super::expr::Size;
use super::function::{Function, Value};
use super::kernel::{Body, Expr, Stmt, Type};
use super::memory::{Base, Start};
use super::names::Names;
use super::plan_tiles::{TilePlan, plan_tiles};
use super::scalar::{cpp_type, scalar_of};
use super::unit::Unit;

/// A parameter with its C++ type and name.
#[derive(Clone, Debug)]
pub struct Param {
    pub kind: KernelParam,
    /// The element type of what it points to; none for a number.
    pub points_to: Option<&'static str>,
    pub name: String,
    /// The kernel has it.
    pub is_used: bool,
}

impl<'u, 'p> Function<'u, 'p> {
    pub fn new(unit: &'u mut Unit<'p>, version: Version, op: Op, task: Task) -> Self {
        let entry = unit.versions.get(version).entry;
        Self {
            aliases: aliases(unit.program, entry),
            unit,
            version,
            op,
            task,
            body: Body::default(),
            code: Vec::new(),
            names: Names::default(),
            scalars: HashMap::new(),
            bases: HashMap::new(),
            vars: HashMap::new(),
            arrays: HashMap::new(),
            tiles: HashMap::new(),
            plan: TilePlan::default(),
            top: 0,
            below: Vec::new(),
            params: Vec::new(),
            array_bytes: 0,
        }
    }

    /// The parameters and the body of the kernel.
    pub fn lower(mut self) -> Result<(Vec<Param>, Body)> {
        let program = self.program();
        let OpKind::Task { grid, body, options, .. } = &program.ops[self.op].kind else {
            unreachable!("a kernel is made of a task with a body")
        };
        self.plan = plan_tiles(&self.unit.text, program, *body, self.unit.known, self.unit.options.target)
            .map_err(|error| Error { message: self.unsupported(&error.message).message, ..error })?;
        self.top = self.plan.bytes;
        self.declare_params();
        self.push(Stmt::ReturnIfStopped);
        if let Some(predicate) = &options.predicate {
            self.retire_unless(predicate);
        }
        if let Some(grid) = grid {
            let name = self.names.take(&self.unit.text.scalar(grid.index));
            let value = Expr::operand("get_block_idx()");
            self.push(Stmt::Scalar { name: name.clone(), ty: Type::I64, value, is_const: true });
            self.scalars.insert(grid.index, Value { expr: Expr::operand(name), is_narrow: false });
        }
        for (tile, offset, extent) in std::mem::take(&mut self.plan.tiles) {
            let dtype = program.tiles[tile].dtype;
            let name = self.unit.text.tile(tile).to_owned();
            let name = self.slot(&name, dtype, extent, offset);
            self.declare_tile(&name, dtype, extent);
            self.tiles.insert(tile, (name, extent));
            self.plan.tiles.push((tile, offset, extent));
        }
        self.block(*body)?;
        self.body.code = std::mem::take(&mut self.code);
        self.params.retain(|param| param.is_used);
        Ok((self.params, self.body))
    }

    /// Names the parameters in their order, those too that turn out not to be used.
    fn declare_params(&mut self) {
        let program = self.program();
        for (kind, points_to, name) in
            [(KernelParam::Stop, "int32_t", "stop"), (KernelParam::Reports, "pld::Report", "reports")]
        {
            self.params.push(Param { kind, points_to: Some(points_to), name: name.into(), is_used: true });
        }
        self.param(KernelParam::Rank, None, "rank");
        for (index, dim) in program.extents.dims.values().enumerate() {
            if dim.value.is_none() {
                self.param(KernelParam::Dim(Dim::from_u32(index as u32)), None, &dim.name);
            }
        }
        let mut domains: Vec<_> = self.unit.versions.get(self.version).domains.iter().copied().flatten().collect();
        domains.sort_unstable();
        domains.dedup();
        for domain in domains {
            self.param(KernelParam::Context(domain), Some("pld::CommContext"), "ctx");
        }
        for capture in captures(program, self.unit.arguments(self.version), self.op) {
            self.capture(capture);
        }
    }

    fn param(&mut self, kind: KernelParam, points_to: Option<&'static str>, name: &str) -> String {
        let name = self.names.take(name);
        let is_used = matches!(kind, KernelParam::Capture(_));
        self.params.push(Param { kind, points_to, name: name.clone(), is_used });
        name
    }

    /// Makes something from outside known in this kernel.
    fn capture(&mut self, capture: Capture) {
        let program = self.program();
        let kind = KernelParam::Capture(capture);
        match capture {
            Capture::Scalar(scalar) => {
                let name = self.unit.text.scalar(scalar);
                let expr = self.number(kind, &name, program.scalars[scalar].ty);
                self.scalars.insert(scalar, Value { expr, is_narrow: false });
            }
            Capture::Var(var) => {
                let name = self.unit.text.var(var).to_owned();
                let expr = self.number(kind, &name, program.vars[var].ty);
                self.vars.insert(var, expr);
            }
            Capture::Tensor(tensor) => {
                let name = self.unit.text.tensor(tensor);
                let start = if program.is_window(tensor) {
                    Start::Window(Expr::operand(self.param(kind, None, &format!("{name}_at"))))
                } else {
                    Start::Pointer(self.param(kind, Some(cpp_type(program.tensors[tensor].dtype)), &name))
                };
                self.bases.insert(tensor, Base { start, offset: Size::Const(0) });
            }
            // Whoever uses it hears that it cannot be had.
            Capture::Array(array) => {
                let name = self.unit.text.array(array).to_owned();
                self.param(kind, None, &name);
            }
        }
    }

    /// A parameter that is a number, as the type that it has in the program.
    fn number(&mut self, kind: KernelParam, name: &str, ty: ScalarType) -> Expr {
        let (decode, bits) = match ty {
            ScalarType::I32 | ScalarType::I64 => return Expr::operand(self.param(kind, None, name)),
            ScalarType::F32 => ("pld::float_of_bits", format!("{name}_bits")),
            ScalarType::Bool => ("bool", format!("{name}_bits")),
        };
        let bits = Expr::operand(self.param(kind, None, &bits));
        let name = self.names.take(name);
        let value = Expr::call(decode, [&bits]);
        self.push(Stmt::Scalar { name: name.clone(), ty: Type::of(ty), value, is_const: true });
        Expr::operand(name)
    }

    /// Ends the kernel here if the comparison does not hold.
    fn retire_unless(&mut self, predicate: &Predicate) {
        let dtype = self.program().tensors[predicate.tensor].dtype;
        let cell = self.element(predicate.tensor, None, &predicate.at);
        let name = self.names.take("predicate");
        let ty = if dtype == DType::Bool { ScalarType::I32 } else { scalar_of(dtype) };
        self.push(Stmt::Read { name: name.clone(), ty: Type::of(ty), from: cell });
        let opposite = match predicate.cmp {
            BinaryOp::Eq => "!=",
            BinaryOp::Ne => "==",
            BinaryOp::Lt => ">=",
            BinaryOp::Le => ">",
            BinaryOp::Gt => "<=",
            _ => "<",
        };
        let cond = Expr::binary(&Expr::operand(name), opposite, &Expr::number(predicate.value));
        self.push(Stmt::If { cond, then: vec![Stmt::Return], other: Vec::new() });
    }
}
