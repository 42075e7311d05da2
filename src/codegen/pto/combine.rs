//! Combination of a region of a window over several ranks.

use crate::codegen::index::{Indexing, Number};
use crate::error::Result;
use crate::ir::{Combine, DType, PeerRange, Region, Tensor, TileOp};

use super::bounds::Peers;
use super::expr::Size;
use super::function::Function;
use super::kernel::{Expr, Stmt};
use super::plan_tiles::Extent;
use super::region::{Axis, Part};
use super::tile::TileValue;

/// Bytes of f32 in a chunk.
const CHUNK_BYTES: i64 = 32 << 10;

/// Most tiles that a chunk needs: as it comes, in f32, the result, and that in its own type.
const TILES: i64 = 4;

/// One combination.
struct Combination<'a> {
    op: TileOp,
    src: Tensor,
    at: &'a [super::bounds::Index],
    peers: Peers,
    to: Part,
    /// What a chunk has room for.
    chunk: Extent,
}

impl Function<'_, '_> {
    pub fn get_reduce(
        &mut self,
        op: Combine,
        dst: Tensor,
        src: Tensor,
        peers: PeerRange,
        region: Option<&Region>,
    ) -> Result<()> {
        let op = match op {
            Combine::Sum => TileOp::Add,
            Combine::Prod => TileOp::Mul,
            Combine::Max => TileOp::Max,
            Combine::Min => TileOp::Min,
        };
        let peers = self.peers(src, peers);
        let [dst_at, src_at, shape] = self.region(dst, src, region);
        let to = self.part(dst, None, &dst_at);
        let from = self.part(src, None, &src_at);
        let axes = self.axes([&to.side, &from.side], &shape, false);
        // Sizes of the widest type, so that chunks of all of them have the same extents.
        let widest = to.dtype.size().max(from.dtype.size()).max(DType::F32.size());
        let chunk = self.chunk(&axes, [0, 0], widest, CHUNK_BYTES, TILES);
        let combination = Combination { op, src, at: &src_at, peers, to, chunk };
        self.unless_empty(&shape, |f| {
            let origin = [Size::Const(0), Size::Const(0)];
            f.each_part(&axes, 2, origin, &mut |f, axes, behind| f.each_chunk(&combination, axes, behind))
        })
    }

    /// Steps through rows, and through columns, by chunks.
    fn each_chunk(&mut self, combination: &Combination, axes: &[Axis], behind: [Size; 2]) -> Result<()> {
        let Extent { rows, cols } = combination.chunk;
        let one = [];
        let outer = axes.get(1..).unwrap_or(&one);
        self.in_chunks("row", outer.first(), rows, behind, &mut |f, row, behind| {
            f.in_chunks("col", axes.first(), cols, behind, &mut |f, col, behind| {
                let axes: Vec<Axis> = col.iter().chain(&row).cloned().collect();
                f.combine_chunk(combination, &axes, behind)
            })
        })
    }

    /// Steps through an axis by chunks of `most`.
    #[allow(clippy::type_complexity, reason = "what a chunk is, and where it begins")]
    fn in_chunks(
        &mut self,
        name: &str,
        axis: Option<&Axis>,
        most: i64,
        behind: [Size; 2],
        body: &mut dyn FnMut(&mut Self, Option<Axis>, [Size; 2]) -> Result<()>,
    ) -> Result<()> {
        let Some(axis) = axis else { return body(self, None, behind) };
        if axis.most.is_some_and(|all| all <= most) {
            return body(self, Some(axis.clone()), behind);
        }
        let step = Size::Const(most);
        self.counted_loop(name, &Size::Const(0), &axis.count, &step, false, |f, index| {
            let index = Size::wide(index);
            let [a, b] = [0, 1].map(|side| behind[side].add(&index.mul(&axis.strides[side])));
            let count = match most {
                1 => Size::Const(1),
                _ => f.named(&format!("{name}s"), axis.count.sub(&index).min(&step)),
            };
            body(f, Some(Axis { count, most: Some(most), strides: axis.strides.clone() }), [a, b])
        })
    }

    /// A size, computed once.
    fn named(&mut self, name: &str, size: Size) -> Size {
        if size.constant().is_some() {
            return size;
        }
        let name = self.names.take(name);
        let value = size.expr();
        self.push(Stmt::Scalar { name: name.clone(), ty: super::kernel::Type::I64, value, is_const: true });
        Size::wide(Expr::operand(name))
    }

    /// Combines one chunk: the first rank's, then one rank's after the other.
    fn combine_chunk(
        &mut self,
        combination: &Combination,
        axes: &[Axis],
        [dst_behind, src_behind]: [Size; 2],
    ) -> Result<()> {
        let Combination { op, src, peers, to, chunk, .. } = combination;
        let dtype = self.program().tensors[*src].dtype;
        let rows = axes.get(1).map_or(Size::Const(1), |axis| axis.count.clone());
        let valid = [rows.expr(), axes[0].count.expr()];
        let wide = if dtype.is_float() { DType::F32 } else { dtype };
        let all = self.chunk_tile("all", wide, *chunk, &valid)?;
        let theirs = self.chunk_tile("theirs", dtype, *chunk, &valid)?;
        let first = if wide == dtype { &all } else { &theirs };
        self.load_chunk(combination, first, axes, &src_behind, &peers.first)?;
        if wide != dtype {
            self.convert(&all, &theirs)?;
        }
        if peers.count != Size::Const(1) {
            let nranks = self.nranks(*src);
            let widened = match wide == dtype {
                true => theirs.clone(),
                false => self.chunk_tile("theirs_f32", wide, *chunk, &valid)?,
            };
            self.counted_loop("k", &Size::Const(1), &peers.count, &Size::Const(1), false, |f, k| {
                let number = peers.first.add(&Size::wide(k));
                let peer = match peers.first {
                    Size::Const(0) => number,
                    _ => f.named("peer", Size::wide(Expr::binary(&number.expr(), "%", &Expr::number(nranks)))),
                };
                f.load_chunk(combination, &theirs, axes, &src_behind, &peer)?;
                if wide != dtype {
                    f.convert(&widened, &theirs)?;
                }
                f.combine(*op, &all, &all, &widened)
            })?;
        }
        let result = match wide == to.dtype {
            true => all,
            false => {
                let result = self.chunk_tile("result", to.dtype, *chunk, &valid)?;
                self.convert(&result, &all)?;
                result
            }
        };
        let to = self.view(to, &dst_behind, axes, 0);
        self.push(Stmt::Store { to, tile: result.name, add: false });
        Ok(())
    }

    fn load_chunk(
        &mut self,
        combination: &Combination,
        tile: &TileValue,
        axes: &[Axis],
        behind: &Size,
        peer: &Size,
    ) -> Result<()> {
        let part = self.part(combination.src, Some(peer), combination.at);
        let from = self.view(&part, behind, axes, 1);
        self.push(Stmt::Load { tile: tile.name.clone(), from });
        Ok(())
    }

    fn chunk_tile(&mut self, name: &str, dtype: DType, extent: Extent, valid: &[Expr; 2]) -> Result<TileValue> {
        let name = self.temporary(name, dtype, extent)?;
        let [rows, cols] = valid.clone();
        let (tile, offset) = (name.clone(), Expr::number(0));
        self.push(Stmt::Tile { tile, dtype, rows, cols, offset, resized: false });
        Ok(TileValue { name, dtype, extent, valid: valid.clone() })
    }
}
