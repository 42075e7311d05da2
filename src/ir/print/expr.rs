//! Expressions and places, with as few parentheses as their meaning needs.

use std::fmt::Write;

use super::Text;
use crate::ir::extent::ExtentData;
use crate::ir::program::ScalarDef;
use crate::ir::syntax::Precedence;
use crate::ir::{BinaryOp, Expr, Extent, OpKind, PeerRange, Scalar, Tensor, UnaryOp};

impl Text<'_> {
    /// A value: its name, or how it is computed where it has none.
    pub fn scalar(&self, scalar: Scalar) -> String {
        let mut out = String::new();
        self.put_scalar(&mut out, scalar, Precedence::Or);
        out
    }

    /// A size.
    pub fn extent(&self, extent: Extent) -> String {
        let mut out = String::new();
        self.put_extent(&mut out, extent, Precedence::Or);
        out
    }

    /// A rank after `@`: anything that is not plain stands in parentheses.
    pub(super) fn peer(&self, peer: Scalar) -> String {
        let element = matches!(self.inline_op(peer), Some(OpKind::Read { .. } | OpKind::ArrayGet { .. }));
        let text = self.scalar(peer);
        if element || self.precedence(peer) < Precedence::Primary { format!("@({text})") } else { format!("@{text}") }
    }

    /// Ranks after `@`.
    pub(super) fn peers(&self, peers: PeerRange) -> String {
        format!("{}..{}", self.peer(peers.first), &self.peer(peers.end)[1..])
    }

    /// `x[i, j]`.
    pub(super) fn place(&self, tensor: Tensor, at: &[Scalar]) -> String {
        let mut out = self.names.tensors[tensor].clone();
        self.put_list(&mut out, at);
        out
    }

    pub(super) fn list(&self, scalars: &[Scalar]) -> String {
        let mut out = String::new();
        self.put_list(&mut out, scalars);
        out
    }

    pub(super) fn shape(&self, extents: &[Extent]) -> String {
        let mut out = String::from("[");
        for (i, &extent) in extents.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            self.put_extent(&mut out, extent, Precedence::Or);
        }
        out.push(']');
        out
    }

    fn put_list(&self, out: &mut String, scalars: &[Scalar]) {
        out.push('[');
        self.put_arguments(out, scalars);
        out.push(']');
    }

    fn put_arguments(&self, out: &mut String, scalars: &[Scalar]) {
        for (i, &scalar) in scalars.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            self.put_scalar(out, scalar, Precedence::Or);
        }
    }

    /// The op whose result stands here in place of a name.
    pub(super) fn inline_op(&self, scalar: Scalar) -> Option<&OpKind> {
        match self.program.scalars[scalar].def {
            ScalarDef::Result(op) if self.inline.scalar(scalar) => Some(&self.program.ops[op].kind),
            _ => None,
        }
    }

    fn precedence(&self, scalar: Scalar) -> Precedence {
        match (self.program.scalars[scalar].def, self.inline_op(scalar)) {
            (ScalarDef::Extent(e), _) => self.extent_precedence(e),
            (ScalarDef::Float(value), _) if value.is_sign_negative() && !value.is_nan() => Precedence::Unary,
            (_, Some(OpKind::Scalar { expr, .. })) => match expr {
                Expr::Unary(UnaryOp::Neg, _) => Precedence::Unary,
                Expr::Unary(UnaryOp::Not, _) => Precedence::Not,
                Expr::Binary(op, ..) => op.precedence().unwrap_or(Precedence::Primary),
                _ => Precedence::Primary,
            },
            _ => Precedence::Primary,
        }
    }

    /// Writes a value that stands where at least `least` is needed.
    pub(super) fn put_scalar(&self, out: &mut String, scalar: Scalar, least: Precedence) {
        if let ScalarDef::Extent(e) = self.program.scalars[scalar].def {
            return self.put_extent(out, e, least);
        }
        let parenthesised = self.precedence(scalar) < least;
        out.push_str(if parenthesised { "(" } else { "" });
        match (self.program.scalars[scalar].def, self.inline_op(scalar)) {
            (ScalarDef::Float(value), _) => put_float(out, value),
            (ScalarDef::Bool(value), _) => _ = write!(out, "{value}"),
            (_, Some(kind)) => self.put_result(out, kind),
            _ => out.push_str(&self.names.scalars[scalar]),
        }
        out.push_str(if parenthesised { ")" } else { "" });
    }

    /// The right side of a definition, or an expression inside another one.
    pub(super) fn put_result(&self, out: &mut String, kind: &OpKind) {
        match kind {
            OpKind::Scalar { dst, expr } => self.put_expr(out, *dst, expr),
            OpKind::VarGet { var, .. } => out.push_str(&self.names.vars[*var]),
            OpKind::ArrayGet { array, index, .. } => {
                out.push_str(&self.names.arrays[*array]);
                self.put_list(out, &[*index]);
            }
            OpKind::Read { src, at, .. } => out.push_str(&self.place(*src, at)),
            _ => {}
        }
    }

    fn put_expr(&self, out: &mut String, dst: Scalar, expr: &Expr) {
        match *expr {
            Expr::Unary(UnaryOp::Neg, a) => {
                out.push('-');
                self.put_scalar(out, a, Precedence::Primary);
            }
            Expr::Unary(UnaryOp::Not, a) => {
                // `not a < b` would be right too, but reads wrongly.
                out.push_str("not ");
                self.put_scalar(out, a, Precedence::Unary);
            }
            Expr::Binary(op, a, b) => match op.precedence() {
                Some(level) => {
                    let left = if level == Precedence::Comparison { level.tighter() } else { level };
                    self.put_scalar(out, a, left);
                    _ = write!(out, " {op} ");
                    self.put_scalar(out, b, level.tighter());
                }
                None => match (op, self.inline_op(a)) {
                    (BinaryOp::Min, Some(&OpKind::Scalar { expr: Expr::Binary(BinaryOp::Max, x, low), .. })) => {
                        self.put_call(out, "clamp", &[x, low, b]);
                    }
                    _ => self.put_call(out, op.name(), &[a, b]),
                },
            },
            Expr::Cast(a) => {
                out.push_str("cast(");
                self.put_scalar(out, a, Precedence::Or);
                _ = write!(out, ", {})", self.program.scalars[dst].ty);
            }
            Expr::Select { cond, then, other } => self.put_call(out, "select", &[cond, then, other]),
            Expr::Rank(window) => _ = write!(out, "rank({})", self.names.tensors[window]),
            Expr::NRanks(window) => _ = write!(out, "nranks({})", self.names.tensors[window]),
            Expr::Copy(a) => self.put_scalar(out, a, Precedence::Or),
        }
    }

    fn put_call(&self, out: &mut String, function: &str, arguments: &[Scalar]) {
        out.push_str(function);
        out.push('(');
        self.put_arguments(out, arguments);
        out.push(')');
    }

    /// The operand of a size that is written as a negation: the parser makes `0 - e` of `-e`.
    fn negated(&self, extent: Extent) -> Option<Extent> {
        match self.program.extents.get(extent) {
            ExtentData::Binary(BinaryOp::Sub, zero, e)
                if self.program.extents.get(zero) == ExtentData::Int(0)
                    && !matches!(self.program.extents.get(e), ExtentData::Int(_)) =>
            {
                Some(e)
            }
            _ => None,
        }
    }

    fn extent_precedence(&self, extent: Extent) -> Precedence {
        match self.program.extents.get(extent) {
            ExtentData::Int(value) if value < 0 => Precedence::Unary,
            ExtentData::Binary(..) if self.negated(extent).is_some() => Precedence::Unary,
            ExtentData::Binary(op, ..) => op.precedence().unwrap_or(Precedence::Primary),
            _ => Precedence::Primary,
        }
    }

    fn put_extent(&self, out: &mut String, extent: Extent, least: Precedence) {
        let parenthesised = self.extent_precedence(extent) < least;
        out.push_str(if parenthesised { "(" } else { "" });
        match self.program.extents.get(extent) {
            ExtentData::Int(value) => _ = write!(out, "{value}"),
            ExtentData::World => out.push_str("world"),
            ExtentData::Dim(dim) => out.push_str(&self.program.extents.dims[dim].name),
            ExtentData::Binary(op, a, b) => {
                if let Some(e) = self.negated(extent) {
                    out.push('-');
                    self.put_extent(out, e, Precedence::Primary);
                } else if let Some(level) = op.precedence() {
                    self.put_extent(out, a, level);
                    _ = write!(out, " {op} ");
                    self.put_extent(out, b, level.tighter());
                } else {
                    let arguments = match (op, self.program.extents.get(a)) {
                        (BinaryOp::Min, ExtentData::Binary(BinaryOp::Max, x, low)) => &[x, low, b][..],
                        _ => &[a, b],
                    };
                    out.push_str(if arguments.len() == 3 { "clamp" } else { op.name() });
                    out.push('(');
                    for (i, &argument) in arguments.iter().enumerate() {
                        out.push_str(if i > 0 { ", " } else { "" });
                        self.put_extent(out, argument, Precedence::Or);
                    }
                    out.push(')');
                }
            }
        }
        out.push_str(if parenthesised { ")" } else { "" });
    }
}

fn put_float(out: &mut String, value: f32) {
    // `{:?}` is the shortest text that reads back as the same value.
    if value.is_nan() { out.push_str("nan") } else { _ = write!(out, "{value:?}") }
}
