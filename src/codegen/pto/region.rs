//! Regions of memory, as the views that instructions move.

use smallvec::SmallVec;

use crate::codegen::index::Indexing;
use crate::error::Result;
use crate::ir::{DType, Tensor};

use super::bounds::{Index, Indices};
use super::expr::{Size, Sizes};
use super::function::Function;
use super::kernel::{Expr, Memory, Stmt, View};

/// Dimensions of a view.
pub const VIEW_DIMS: usize = 5;

/// One side of a move: where a region lies in packed memory.
#[derive(Clone, Debug)]
pub struct Side {
    /// The extents of the memory that it is part of.
    pub whole: Indices,
    /// Elements between neighbours in each dimension of that memory.
    pub strides: Sizes,
}

/// A side that is part of a tensor.
#[derive(Clone, Debug)]
pub struct Part {
    pub tensor: Tensor,
    pub memory: Memory,
    pub dtype: DType,
    /// Where it begins.
    pub address: Expr,
    pub side: Side,
}

/// A dimension of a move, of both sides.
#[derive(Clone, Debug)]
pub struct Axis {
    pub count: Size,
    /// The count is not above it, if that is known.
    pub most: Option<i64>,
    pub strides: [Size; 2],
}

/// The dimensions of a move, innermost first.
pub type Axes = SmallVec<[Axis; 4]>;

impl Function<'_, '_> {
    /// The part of a tensor that begins at `at`; of `peer`'s copy, or of this rank's.
    pub fn part(&mut self, tensor: Tensor, peer: Option<&Size>, at: &[Index]) -> Part {
        let program = self.program();
        let at: Sizes = at.iter().map(|index| index.size.clone()).collect();
        Part {
            tensor,
            memory: self.memory(tensor, peer),
            dtype: program.tensors[tensor].dtype,
            address: self.address(tensor, peer, &at),
            side: Side {
                whole: self.extent_indices(&program.tensors[program.packed(tensor)].shape),
                strides: self.strides(tensor),
            },
        }
    }

    /// The dimensions of a move: neighbours that lie one behind the other on both sides become one. Where rows have to
    /// stay rows, the last dimension stays for itself.
    pub fn axes(&self, sides: [&Side; 2], shape: &[Index], keeps_rows: bool) -> Axes {
        let fills = |extent: &Index, dim: usize| sides.iter().all(|side| self.same_size(extent, &side.whole[dim]));
        let most = |extent: &Index, dim: usize| {
            let bounds = sides.iter().map(|side| side.whole[dim].range.max).chain([extent.range.max]);
            bounds.min().filter(|&most| most != i64::MAX).map(|most| most.max(0))
        };
        let (last, outer) = shape.split_last().expect("a region has a dimension");
        let ones = [Size::Const(1), Size::Const(1)];
        let mut axes: Axes = SmallVec::new();
        axes.push(Axis { count: last.size.clone(), most: most(last, outer.len()), strides: ones });
        // What lies inside dimension `dim` is all there, so that its elements are as far apart as they are large.
        let mut is_packed = fills(last, outer.len());
        for (dim, extent) in outer.iter().enumerate().rev() {
            if extent.size == Size::Const(1) {
                is_packed &= fills(extent, dim);
                continue;
            }
            if is_packed && !(keeps_rows && axes.len() == 1) {
                let inner = axes.last_mut().expect("there is the last dimension");
                inner.count = inner.count.mul(&extent.size);
                inner.most = inner.most.zip(most(extent, dim)).and_then(|(a, b)| a.checked_mul(b));
            } else {
                let strides = sides.map(|side| side.strides[dim].clone());
                axes.push(Axis { count: extent.size.clone(), most: most(extent, dim), strides });
            }
            is_packed = fills(extent, dim);
        }
        axes
    }

    /// Statements for each part of a move that has at most `dims` dimensions, given these and where the part begins on
    /// both sides, in elements.
    #[allow(clippy::type_complexity, reason = "what a part is, and where it begins")]
    pub fn each_part(
        &mut self,
        axes: &[Axis],
        dims: usize,
        begin: [Size; 2],
        body: &mut dyn FnMut(&mut Self, &[Axis], [Size; 2]) -> Result<()>,
    ) -> Result<()> {
        if axes.len() <= dims {
            return body(self, axes, begin);
        }
        let (outer, inner) = axes.split_last().expect("there are more dimensions than none");
        self.counted_loop("part", &Size::Const(0), &outer.count, &Size::Const(1), false, |f, index| {
            let index = Size::wide(index);
            let [a, b] = [0, 1].map(|side| begin[side].add(&index.mul(&outer.strides[side])));
            f.each_part(inner, dims, [a, b], body)
        })
    }

    /// Names the region of a tensor that a move has on its side number `side`, `behind` elements after its begin.
    pub fn view(&mut self, part: &Part, behind: &Size, axes: &[Axis], side: usize) -> View {
        let (mut shape, mut strides) = (Vec::new(), Vec::new());
        for axis in axes {
            shape.push(axis.count.expr());
            strides.push(axis.strides[side].expr());
        }
        // Dimensions of one element are as far apart as all that is inside them.
        let outermost = axes.last().expect("a view has a dimension");
        let all = outermost.count.mul(&outermost.strides[side]).expr();
        shape.resize(VIEW_DIMS, Expr::number(1));
        strides.resize(VIEW_DIMS, all);
        shape.reverse();
        strides.reverse();
        let suffix = if part.memory.remote { "there" } else { "here" };
        let name = self.names.take(&format!("{}_{suffix}", self.unit.text.tensor(part.tensor)));
        let view = View { name, memory: part.memory };
        let address = match behind {
            Size::Const(0) => part.address.clone(),
            behind => Size::wide(part.address.clone()).add(behind).expr(),
        };
        let five = |all: Vec<Expr>| Box::new(<[Expr; VIEW_DIMS]>::try_from(all).expect("a view has five dimensions"));
        let (shape, strides) = (five(shape), five(strides));
        self.push(Stmt::View { view: view.clone(), dtype: part.dtype, address, shape, strides });
        view
    }

    /// Statements of a move of `shape`, under the condition that it has elements where that is not known.
    pub fn unless_empty(&mut self, shape: &[Index], body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let conditions: Vec<String> = shape
            .iter()
            .filter(|extent| extent.range.min <= 0)
            .map(|extent| Expr::binary(&extent.size.expr(), ">", &Expr::number(0)).text)
            .collect();
        if conditions.is_empty() {
            return body(self);
        }
        let then = self.nested(body)?;
        self.push(Stmt::If { cond: Expr::compound(conditions.join(" && ")), then, other: Vec::new() });
        Ok(())
    }
}
