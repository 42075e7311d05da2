//! Tiles: on-chip memory that instructions work on.

use crate::codegen::index::Indexing;
use crate::error::Result;
use crate::ir::{Atomic, DType, FaultKind, ReduceAxis, ReduceOp, Scalar, Tensor, Tile, TileOp};

use super::bounds::Indices;
use super::expr::{Size, Sizes};
use super::function::Function;
use super::kernel::{Expr, Operand, Pipe, Stmt, TileName};
use super::plan_tiles::Extent;
use super::region::{Axis, Part, Side, VIEW_DIMS};
use super::target::{Conversion, Round, Way};

/// What the vector unit works on at once.
const VECTOR_BYTES: i64 = 256;

/// A tile with what is known of it.
#[derive(Clone, Debug)]
pub struct TileValue {
    pub name: TileName,
    pub dtype: DType,
    /// What it has room for.
    pub extent: Extent,
    /// The rows and columns in use.
    pub valid: [Expr; 2],
}

impl Function<'_, '_> {
    /// A tile of the program.
    pub fn tile(&self, tile: Tile) -> TileValue {
        let (name, extent) = self.tiles[&tile].clone();
        let valid = [extent.rows, extent.cols].map(Expr::number);
        TileValue { name, dtype: self.program().tiles[tile].dtype, extent, valid }
    }

    /// A tile of the op's own, as large as another one.
    pub fn tile_like(&mut self, name: &str, dtype: DType, like: &TileValue) -> Result<TileValue> {
        let name = self.temporary(name, dtype, like.extent)?;
        let [rows, cols] = like.valid.clone();
        let (tile, offset) = (name.clone(), Expr::number(0));
        self.push(Stmt::Tile { tile, dtype, rows, cols, offset, resized: false });
        Ok(TileValue { name, dtype, ..like.clone() })
    }

    // To and from memory.

    /// `dst = src[at]`, of `peer` or of this rank.
    pub fn load(&mut self, dst: Tile, src: Tensor, peer: Option<Scalar>, at: &[Scalar]) -> Result<()> {
        let peer = peer.map(|peer| self.peer(src, peer));
        let at = self.indices(at);
        let shape = self.extent_indices(&self.program().tiles[dst].shape);
        self.check_region(0, src, &at, &shape);
        let from = self.part(src, peer.as_ref(), &at);
        self.move_tile(dst, &from, &shape, |tile, from| Stmt::Load { tile, from })
    }

    /// `src -> dst[at]`, of `peer` or of this rank.
    pub fn store(&mut self, src: Tile, dst: Tensor, peer: Option<Scalar>, at: &[Scalar], atomic: Atomic) -> Result<()> {
        let add = atomic == Atomic::Add;
        if add {
            self.check_atomic_add(self.program().tiles[src].dtype)?;
        }
        let peer = peer.map(|peer| self.peer(dst, peer));
        let at = self.indices(at);
        let shape = self.extent_indices(&self.program().tiles[src].shape);
        self.check_region(0, dst, &at, &shape);
        let to = self.part(dst, peer.as_ref(), &at);
        self.move_tile(src, &to, &shape, |tile, to| Stmt::Store { to, tile, add })
    }

    /// A move between a tile and a part of a tensor.
    fn move_tile(
        &mut self,
        tile: Tile,
        part: &Part,
        shape: &Indices,
        stmt: impl Fn(TileName, super::kernel::View) -> Stmt,
    ) -> Result<()> {
        let value = self.tile(tile);
        let side = self.tile_side(&value, shape);
        let axes = self.axes([&part.side, &side], shape, true);
        let origin = [Size::Const(0), Size::Const(0)];
        let is_whole = axes.len() <= VIEW_DIMS;
        self.each_part(&axes, VIEW_DIMS, origin, &mut |f, axes, [behind, tile_behind]| {
            let view = f.view(part, &behind, axes, 0);
            let tile = if is_whole { value.name.clone() } else { f.tile_part(&value, axes, &tile_behind) };
            f.push(stmt(tile, view));
            Ok(())
        })
    }

    /// A tile as memory: rows of whole blocks, one behind the other.
    fn tile_side(&mut self, tile: &TileValue, shape: &Indices) -> Side {
        let mut stride = Size::Const(tile.extent.padded_cols(tile.dtype));
        let mut strides: Sizes = shape.iter().map(|index| index.size.clone()).collect();
        let last = strides.len() - 1;
        strides[last] = Size::Const(1);
        for extent in strides[..last].iter_mut().rev() {
            let outer = stride.mul(extent);
            *extent = std::mem::replace(&mut stride, outer);
        }
        Side { whole: shape.clone(), strides }
    }

    /// Rows of a tile of which a view has too few dimensions.
    fn tile_part(&mut self, tile: &TileValue, axes: &[Axis], behind: &Size) -> TileName {
        let rows = axes[1..].iter().fold(Size::Const(1), |rows, axis| rows.mul(&axis.count)).expr();
        let name = self.names.take(&format!("{}_part", tile.name.name));
        let part = TileName { name, slot: tile.name.slot };
        self.push(Stmt::Tile {
            tile: part.clone(),
            dtype: tile.dtype,
            rows,
            cols: axes[0].count.expr(),
            offset: behind.mul(&Size::Const(tile.dtype.size())).expr(),
            resized: false,
        });
        part
    }

    // What is computed with them.

    pub fn full(&mut self, dst: Tile, value: Scalar) {
        let dst = self.tile(dst);
        let value = self.as_element(value, dst.dtype);
        let (instruction, unit) = match self.unit.options.target.fill(dst.dtype) {
            Way::Scalar => ("pld::scalar::fill", Pipe::S),
            Way::Vector | Way::InF32 => ("TEXPANDS", Pipe::V),
        };
        self.compute(instruction, unit, &dst, vec![Operand::Value(value)]);
    }

    pub fn tile_copy(&mut self, dst: Tile, src: Tile) {
        if dst != src {
            let (dst, src) = (self.tile(dst), self.tile(src));
            self.compute("TMOV", Pipe::V, &dst, vec![Operand::Tile(src.name)]);
        }
    }

    pub fn tile_cast(&mut self, dst: Tile, src: Tile) -> Result<()> {
        let (to, from) = (self.tile(dst), self.tile(src));
        if to.dtype == from.dtype {
            self.tile_copy(dst, src);
            return Ok(());
        }
        self.convert(&to, &from)
    }

    /// `dst = src` in another type, over other types if there is no direct way.
    pub fn convert(&mut self, dst: &TileValue, src: &TileValue) -> Result<()> {
        let steps = self.unit.options.target.conversions(src.dtype, dst.dtype);
        let mut at = src.clone();
        for (index, step) in steps.iter().enumerate() {
            let is_last = index + 1 == steps.len();
            let next = match is_last {
                true => dst.clone(),
                false => self.tile_like(&format!("{}_{}", src.name.name, step.to), step.to, src)?,
            };
            self.convert_once(&next, &at, *step);
            at = next;
        }
        Ok(())
    }

    fn convert_once(&mut self, dst: &TileValue, src: &TileValue, step: Conversion) {
        let source = Operand::Tile(src.name.clone());
        let Some(round) = step.round else {
            let instruction = match (src.dtype, dst.dtype) {
                (_, DType::Bool) => "pld::scalar::is_nonzero",
                (DType::F8E4M3, _) => "pld::scalar::from_f8<pld::E4M3>",
                (DType::F8E5M2, _) => "pld::scalar::from_f8<pld::E5M2>",
                (_, DType::F8E4M3) => "pld::scalar::to_f8<pld::E4M3>",
                (_, DType::F8E5M2) => "pld::scalar::to_f8<pld::E5M2>",
                _ => "pld::scalar::cast",
            };
            return self.compute(instruction, Pipe::S, dst, vec![source]);
        };
        let constants: &[&str] = match round {
            Round::Nearest => &["RoundMode::CAST_RINT"],
            Round::TruncateAndSaturate => &["RoundMode::CAST_TRUNC", "SaturationMode::ON"],
            Round::Wrap => &["RoundMode::CAST_NONE"],
        };
        let constants = constants.iter().map(|&text| Operand::Value(Expr::operand(text)));
        self.compute("TCVT", Pipe::V, dst, std::iter::once(source).chain(constants).collect());
    }

    /// `dst = op a, b` on tiles of the program.
    pub fn tile_binary(&mut self, op: TileOp, dst: Tile, a: Tile, b: Tile) -> Result<()> {
        let [dst, a, b] = [dst, a, b].map(|tile| self.tile(tile));
        self.combine(op, &dst, &a, &b)
    }

    /// `dst = op a, b`.
    pub fn combine(&mut self, op: TileOp, dst: &TileValue, a: &TileValue, b: &TileValue) -> Result<()> {
        let second = Operand::Tile(b.name.clone());
        match self.unit.options.target.arithmetic(op, a.dtype) {
            Way::Vector => self.compute(instructions(op).0, Pipe::V, dst, vec![Operand::Tile(a.name.clone()), second]),
            Way::InF32 => {
                let x = self.widened(a)?;
                let y = if a.name == b.name { x.clone() } else { self.widened(b)? };
                self.compute(
                    instructions(op).0,
                    Pipe::V,
                    &x,
                    vec![Operand::Tile(x.name.clone()), Operand::Tile(y.name)],
                );
                self.convert(dst, &x)?;
            }
            Way::Scalar => self.by_element(op, dst, a, second),
        }
        Ok(())
    }

    /// `dst = op a, b` with the same `b` for every element.
    pub fn tile_scalar(&mut self, op: TileOp, dst: Tile, a: Tile, b: Scalar) -> Result<()> {
        let (dst, a) = (self.tile(dst), self.tile(a));
        let operand = |f: &mut Self| Operand::Value(f.as_element(b, a.dtype));
        match self.unit.options.target.arithmetic(op, a.dtype) {
            Way::Vector => {
                let b = operand(self);
                self.compute(instructions(op).1, Pipe::V, &dst, vec![Operand::Tile(a.name), b]);
            }
            Way::InF32 => {
                let x = self.widened(&a)?;
                let b = Operand::Value(self.rounded(b, a.dtype));
                self.compute(instructions(op).1, Pipe::V, &x, vec![Operand::Tile(x.name.clone()), b]);
                self.convert(&dst, &x)?;
            }
            Way::Scalar => {
                let b = operand(self);
                self.by_element(op, &dst, &a, b);
            }
        }
        Ok(())
    }

    /// The tile in f32.
    fn widened(&mut self, tile: &TileValue) -> Result<TileValue> {
        let wide = self.tile_like(&format!("{}_f32", tile.name.name), DType::F32, tile)?;
        self.convert(&wide, tile)?;
        Ok(wide)
    }

    /// `dst = op a, b` by the scalar unit; the launch ends on a division by zero.
    fn by_element(&mut self, op: TileOp, dst: &TileValue, a: &TileValue, b: Operand) {
        let operands = vec![Operand::Tile(a.name.clone()), b];
        let instruction = instructions(op).2;
        if op != TileOp::Div {
            return self.compute(instruction, Pipe::S, dst, operands);
        }
        let flag = self.names.take("by_zero");
        let dst = dst.name.clone();
        self.push(Stmt::Compute { instruction, unit: Pipe::S, dst, operands, flag: Some(flag.clone()) });
        self.fault_if(Expr::operand(flag), FaultKind::Division, &[], &[]);
    }

    pub fn reduce(&mut self, op: ReduceOp, axis: ReduceAxis, dst: Tile, src: Tile) -> Result<()> {
        if dst == src {
            // Equal shapes: the reduced axis has one element.
            return Ok(());
        }
        let (dst, src) = (self.tile(dst), self.tile(src));
        match self.unit.options.target.reduction(op, src.dtype) {
            Way::Vector => self.reduce_by_vector(op, axis, &dst, &src),
            Way::InF32 => {
                let wide = self.widened(&src)?;
                let result = self.tile_like(&format!("{}_f32", dst.name.name), DType::F32, &dst)?;
                self.reduce_by_vector(op, axis, &result, &wide)?;
                self.convert(&dst, &result)
            }
            Way::Scalar => {
                let instruction = match (op, axis) {
                    (ReduceOp::Sum, ReduceAxis::Row) => "pld::scalar::row_sum",
                    (ReduceOp::Max, ReduceAxis::Row) => "pld::scalar::row_max",
                    (ReduceOp::Sum, ReduceAxis::Col) => "pld::scalar::col_sum",
                    (ReduceOp::Max, ReduceAxis::Col) => "pld::scalar::col_max",
                };
                self.compute(instruction, Pipe::S, &dst, vec![Operand::Tile(src.name)]);
                Ok(())
            }
        }
    }

    fn reduce_by_vector(&mut self, op: ReduceOp, axis: ReduceAxis, dst: &TileValue, src: &TileValue) -> Result<()> {
        let mut operands = vec![Operand::Tile(src.name.clone())];
        let instruction = match (op, axis) {
            (ReduceOp::Sum, ReduceAxis::Row) => "TROWSUM",
            (ReduceOp::Max, ReduceAxis::Row) => "TROWMAX",
            (ReduceOp::Sum, ReduceAxis::Col) => "TCOLSUM",
            (ReduceOp::Max, ReduceAxis::Col) => "TCOLMAX",
        };
        if axis == ReduceAxis::Row {
            let extent = row_scratch(op, src);
            operands.push(Operand::Scratch(self.temporary_tile("scratch", src.dtype, extent)?));
        }
        self.compute(instruction, Pipe::V, dst, operands);
        Ok(())
    }

    fn compute(&mut self, instruction: &'static str, unit: Pipe, dst: &TileValue, operands: Vec<Operand>) {
        self.push(Stmt::Compute { instruction, unit, dst: dst.name.clone(), operands, flag: None });
    }
}

/// What the reduction of rows needs besides: a sum adds the vectors of a row in pairs, a maximum keeps one.
fn row_scratch(op: ReduceOp, src: &TileValue) -> Extent {
    let vector = VECTOR_BYTES / src.dtype.size();
    let vectors = (src.extent.cols + vector - 1) / vector;
    let kept = if op == ReduceOp::Sum { (vectors + 1) / 2 } else { 1 };
    Extent { cols: src.extent.cols.min(kept * vector), ..src.extent }
}

/// What combines two tiles, a tile and a scalar, and either of them by the scalar unit.
fn instructions(op: TileOp) -> (&'static str, &'static str, &'static str) {
    match op {
        TileOp::Add => ("TADD", "TADDS", "pld::scalar::add"),
        TileOp::Sub => ("TSUB", "TSUBS", "pld::scalar::sub"),
        TileOp::Mul => ("TMUL", "TMULS", "pld::scalar::mul"),
        TileOp::Div => ("TDIV", "TDIVS", "pld::scalar::div"),
        TileOp::Max => ("TMAX", "TMAXS", "pld::scalar::max"),
        TileOp::Min => ("TMIN", "TMINS", "pld::scalar::min"),
    }
}
