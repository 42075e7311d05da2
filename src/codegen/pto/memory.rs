//! Where tensors lie, and single elements of them.

use crate::codegen::arguments::Argument;
use crate::codegen::index::Indexing;
use crate::error::Result;
use crate::ir::extent::ExtentData;
use crate::ir::program::TensorDef;
use crate::ir::{self, BinaryOp, Scalar, ScalarType, Tensor};
use crate::verify::domains::DomainId;

use super::KernelParam;
use super::bounds::{Index, Indices};
use super::expr::{Size, Sizes};
use super::function::{Function, Value};
use super::kernel::{Element, Expr, Memory, Operand, Pipe, Stmt, Type, View};
use super::plan_tiles::Extent;
use super::region::VIEW_DIMS;
use super::scalar::{cpp_type, scalar_of};

/// Where a tensor begins.
#[derive(Clone, Debug)]
pub struct Base {
    pub start: Start,
    /// Elements behind the start.
    pub offset: Size,
}

/// Where counting begins.
#[derive(Clone, Debug)]
pub enum Start {
    /// At the address that a parameter is.
    Pointer(String),
    /// In every rank's windows, at this many bytes: a parameter, or a number.
    Window(Expr),
}

impl Function<'_, '_> {
    /// Where a tensor begins.
    fn base(&self, tensor: Tensor) -> Base {
        match self.unit.arguments(self.version).tensor(self.program(), tensor) {
            Argument::Offset(offset) => Base { start: Start::Window(Expr::number(offset)), offset: Size::Const(0) },
            _ => self.bases[&tensor].clone(),
        }
    }

    /// The memory that a tensor is part of.
    pub fn memory(&self, tensor: Tensor, peer: Option<&Size>) -> Memory {
        let root = self.program().root(tensor);
        Memory { root: self.aliases.get(&root).copied().unwrap_or(root), remote: peer.is_some() }
    }

    /// The values of the extents of a tensor.
    pub fn shape(&mut self, tensor: Tensor) -> Sizes {
        let program = self.program();
        program.tensors[tensor].shape.iter().map(|&e| self.extent(e)).collect()
    }

    /// Elements between neighbours in each dimension: those of the packed tensor that it is part of.
    pub fn strides(&mut self, tensor: Tensor) -> Sizes {
        let mut stride = Size::Const(1);
        let mut strides = self.shape(self.program().packed(tensor));
        for extent in strides.iter_mut().rev() {
            let outer = stride.mul(extent);
            *extent = std::mem::replace(&mut stride, outer);
        }
        strides
    }

    /// Elements from the start of a tensor to its part at `at`: a number, and the rest.
    fn offset(&mut self, base: &Base, tensor: Tensor, at: &[Size]) -> (i64, Size) {
        let strides = self.strides(tensor);
        let terms = at.iter().zip(&strides).map(|(at, stride)| at.mul(stride));
        let (mut constant, mut variable) = (0i64, Size::Const(0));
        for term in std::iter::once(base.offset.clone()).chain(terms) {
            match term {
                Size::Const(value) => constant = constant.wrapping_add(value),
                value => variable = variable.add(&value),
            }
        }
        (constant, variable)
    }

    /// Where the part of a tensor begins that is at `at`, of `peer`'s copy or of this rank's: a pointer, and elements behind
    /// it.
    pub fn place(&mut self, tensor: Tensor, peer: Option<&Size>, at: &[Size]) -> (Expr, Size) {
        let base = self.base(tensor);
        let (constant, variable) = self.offset(&base, tensor, at);
        let dtype = self.program().tensors[tensor].dtype;
        match base.start {
            Start::Pointer(name) => (Expr::operand(name), variable.add(&Size::Const(constant))),
            Start::Window(at) => {
                let bytes = constant.wrapping_mul(dtype.size());
                let bytes = Size::wide(at).add(&Size::Const(bytes)).expr();
                let ctx = Expr::operand(self.context(tensor));
                let ty = cpp_type(dtype);
                let window = match peer {
                    Some(peer) => Expr::call(format!("pld::peer<{ty}>"), [&ctx, &peer.expr(), &bytes]),
                    None => Expr::call(format!("pld::own<{ty}>"), [&ctx, &bytes]),
                };
                (window, variable)
            }
        }
    }

    /// Address of the part of a tensor that begins at `at`; of `peer`'s copy, or of this rank's.
    pub fn address(&mut self, tensor: Tensor, peer: Option<&Size>, at: &[Size]) -> Expr {
        let (base, elements) = self.place(tensor, peer, at);
        Size::wide(base).add(&elements).expr()
    }

    /// Defines a slice. Its place is checked where it is made, so that its elements need be checked against it only.
    pub fn slice(&mut self, dst: Tensor, src: Tensor, at: &[Scalar]) {
        let program = self.program();
        let at = self.indices(at);
        let shape = self.extent_indices(&program.tensors[dst].shape);
        self.check_region(0, src, &at, &shape);
        let at: Sizes = at.into_iter().map(|index| index.size).collect();
        let base = self.base(src);
        let (constant, variable) = self.offset(&base, src, &at);
        let mut offset = variable.add(&Size::Const(constant));
        if let Size::Value { expr, .. } = &offset
            && !expr.is_operand
        {
            let name = self.names.take(&format!("{}_at", self.unit.text.tensor(dst)));
            self.push(Stmt::Scalar { name: name.clone(), ty: Type::I64, value: expr.clone(), is_const: true });
            offset = Size::wide(Expr::operand(name));
        }
        self.bases.insert(dst, Base { offset, ..base });
    }

    /// Defines a tensor as all elements of a packed one.
    pub fn flatten(&mut self, dst: Tensor, src: Tensor) {
        let base = self.base(src);
        self.bases.insert(dst, base);
    }

    /// One element of this rank's memory, or of `peer`'s.
    pub fn element(&mut self, tensor: Tensor, peer: Option<&Size>, at: &[Scalar]) -> Element {
        let at = self.indices(at);
        let ones: Indices = at.iter().map(|_| Index::number(1)).collect();
        self.check_region(0, tensor, &at, &ones);
        let at: Sizes = at.into_iter().map(|index| index.size).collect();
        let (base, index) = self.place(tensor, peer, &at);
        let dtype = self.program().tensors[tensor].dtype;
        Element { memory: self.memory(tensor, peer), dtype, base, index: index.expr() }
    }

    pub fn read(&mut self, dst: Scalar, src: Tensor, at: &[Scalar]) {
        let from = self.element(src, None, at);
        if !self.unit.text.is_used(dst) {
            return;
        }
        let ty = scalar_of(from.dtype);
        let name = match &self.program().scalars[dst].name {
            Some(name) => name.clone(),
            None => format!("{}_value", self.unit.text.tensor(src)),
        };
        let name = self.names.take(&name);
        self.push(Stmt::Read { name: name.clone(), ty: Type::of(ty), from });
        self.scalars.insert(dst, Value { expr: Expr::operand(name), is_narrow: ty == ScalarType::I32 });
    }

    /// Writes an element by way of a tile: the scalar unit would write back the whole line around it, over what others have
    /// written there.
    pub fn write(&mut self, dst: Tensor, at: &[Scalar], value: Scalar) -> Result<()> {
        let dtype = self.program().tensors[dst].dtype;
        let value = self.as_element(value, dtype);
        let to = self.element(dst, None, at);
        let name = format!("{}_value", self.unit.text.tensor(dst));
        let tile = self.temporary_tile(&name, dtype, Extent { rows: 1, cols: 1 })?;
        let (dst, operands) = (tile.clone(), vec![Operand::Value(value)]);
        self.push(Stmt::Compute { instruction: "pld::scalar::fill", unit: Pipe::S, dst, operands, flag: None });
        let view = View { name: self.names.take("element"), memory: to.memory };
        let one = || Box::new([1; VIEW_DIMS].map(Expr::number));
        let (address, shape, strides) = (to.address(), one(), one());
        self.push(Stmt::View { view: view.clone(), dtype, address, shape, strides });
        self.push(Stmt::Store { to: view, tile, add: false });
        Ok(())
    }

    // What comes with the launch.

    /// This rank.
    pub fn rank(&mut self) -> Size {
        self.use_param(KernelParam::Rank)
    }

    /// The domain of a window.
    pub fn domain(&self, window: Tensor) -> DomainId {
        let program = self.program();
        let TensorDef::Window(_, index) = program.tensors[program.root(window)].def else {
            unreachable!("a window in a task is a parameter of the entry")
        };
        self.unit.versions.get(self.version).domains[index as usize]
            .expect("a window is shared by the ranks of a domain")
    }

    /// How many ranks share a window.
    pub fn nranks(&self, window: Tensor) -> i64 {
        self.unit.domains.ranks[self.domain(window)].len() as i64
    }

    /// The name of the context of a window's domain.
    pub fn context(&mut self, window: Tensor) -> String {
        let domain = self.domain(window);
        self.use_param(KernelParam::Context(domain)).expr().text
    }

    /// The parameter, which the kernel has then.
    fn use_param(&mut self, kind: KernelParam) -> Size {
        let param = self.params.iter_mut().find(|param| param.kind == kind).expect("every parameter has a name");
        param.is_used = true;
        Size::wide(Expr::operand(param.name.clone()))
    }

    /// The value of an extent.
    pub fn extent(&mut self, extent: ir::Extent) -> Size {
        let program = self.program();
        if let Some(value) = program.extents.eval(extent, self.unit.known) {
            return Size::Const(value);
        }
        match program.extents.get(extent) {
            ExtentData::Int(value) => Size::Const(value),
            ExtentData::World => Size::Const(i64::from(self.unit.options.nranks)),
            ExtentData::Dim(dim) => match program.extents.dims[dim].value {
                Some(value) => self.extent(value),
                None => self.use_param(KernelParam::Dim(dim)),
            },
            ExtentData::Binary(op, a, b) => {
                let range = self.unit.ranges.of_extent(b);
                let (a, b) = (self.extent(a), self.extent(b));
                match op {
                    BinaryOp::Add => a.add(&b),
                    BinaryOp::Sub => a.sub(&b),
                    BinaryOp::Mul => a.mul(&b),
                    _ => self.int_binary(op, &a, &b, ScalarType::I64, range, false),
                }
            }
        }
    }
}
