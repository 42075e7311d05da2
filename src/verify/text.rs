//! Stand-in for the printer.
use crate::ir::extent::ExtentData;
use crate::ir::program::ScalarDef;
use crate::ir::{Extent, Op, Program, Scalar, Tensor};

pub fn op_text(program: &Program, op: Op) -> String {
    program.ops[op].kind.name().into()
}

pub fn extent_text(program: &Program, e: Extent) -> String {
    match program.extents.get(e) {
        ExtentData::Int(v) => v.to_string(),
        ExtentData::World => "world".into(),
        ExtentData::Dim(d) => program.extents.dims[d].name.clone(),
        ExtentData::Binary(op, a, b) => format!("({} {op} {})", extent_text(program, a), extent_text(program, b)),
    }
}

pub fn scalar_text(program: &Program, s: Scalar) -> String {
    match (&program.scalars[s].name, program.scalars[s].def) {
        (Some(name), _) => name.clone(),
        (None, ScalarDef::Extent(e)) => extent_text(program, e),
        (None, ScalarDef::Float(f)) => format!("{f:?}"),
        (None, ScalarDef::Bool(b)) => b.to_string(),
        _ => s.to_string(),
    }
}

pub fn tensor_type_text(program: &Program, t: Tensor) -> String {
    let data = &program.tensors[t];
    let extents: Vec<String> = data.shape.iter().map(|&e| extent_text(program, e)).collect();
    let what = if program.is_window(t) { "window" } else { "tensor" };
    format!("{what}[{}] {}", extents.join(", "), data.dtype)
}
