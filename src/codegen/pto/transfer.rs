//! Regions between the memories of ranks, through tiles.

use crate::codegen::index::Indexing;
use crate::error::Result;
use crate::ir::op::Staging;
use crate::ir::{Atomic, DType, Region, Scalar, Tensor};

use super::expr::Size;
use super::function::Function;
use super::kernel::{Expr, Stmt, TileName};
use super::plan_tiles::{BLOCK, Extent};
use super::region::{Axis, VIEW_DIMS};
use super::target::Target;

/// Bytes of a chunk where the program names none: large enough that the way costs more than the start.
const CHUNK_BYTES: i64 = 32 << 10;

impl Function<'_, '_> {
    pub fn put(
        &mut self,
        dst: Tensor,
        peer: Scalar,
        src: Tensor,
        region: Option<&Region>,
        atomic: Atomic,
        staging: Staging,
    ) -> Result<()> {
        let peer = self.peer(dst, peer);
        self.transfer((dst, Some(peer)), (src, None), region, atomic, staging)
    }

    pub fn get(
        &mut self,
        dst: Tensor,
        src: Tensor,
        peer: Scalar,
        region: Option<&Region>,
        staging: Staging,
    ) -> Result<()> {
        let peer = self.peer(src, peer);
        self.transfer((dst, None), (src, Some(peer)), region, Atomic::None, staging)
    }

    fn transfer(
        &mut self,
        (dst, dst_peer): (Tensor, Option<Size>),
        (src, src_peer): (Tensor, Option<Size>),
        region: Option<&Region>,
        atomic: Atomic,
        staging: Staging,
    ) -> Result<()> {
        let dtype = self.program().tensors[dst].dtype;
        if atomic == Atomic::Add {
            self.check_atomic_add(dtype)?;
        }
        let [dst_at, src_at, shape] = self.region(dst, src, region);
        let to = self.part(dst, dst_peer.as_ref(), &dst_at);
        let from = self.part(src, src_peer.as_ref(), &src_at);
        let is_staged = staging.chunk_rows > 0 || staging.chunk_cols > 0;
        let axes = self.axes([&to.side, &from.side], &shape, is_staged);
        self.unless_empty(&shape, |f| {
            let origin = [Size::Const(0), Size::Const(0)];
            f.each_part(&axes, VIEW_DIMS, origin, &mut |f, axes, [dst_behind, src_behind]| {
                let tiles = f.staging(dtype, axes, staging)?;
                let from = f.view(&from, &src_behind, axes, 1);
                let to = f.view(&to, &dst_behind, axes, 0);
                f.push(match dst_peer {
                    Some(_) => Stmt::Put { to, from, staging: tiles, add: atomic == Atomic::Add },
                    None => Stmt::Get { to, from, staging: tiles },
                });
                Ok(())
            })
        })
    }

    /// The target adds to elements of the type.
    pub fn check_atomic_add(&self, dtype: DType) -> Result<()> {
        let target = self.unit.options.target;
        if target.has_atomic_add(dtype) {
            return Ok(());
        }
        let can: Vec<&str> = DType::ALL.iter().filter(|&&d| target.has_atomic_add(d)).map(|d| d.name()).collect();
        Err(self.unsupported(format!(
            "{} has no atomic add of {dtype}; it has {}. Add in f32, or let each rank write a place of its own and combine \
             them with get_sum",
            target.name(),
            can.join(" ")
        )))
    }

    /// The tiles that a transfer goes through: one, or two in turn.
    fn staging(&mut self, dtype: DType, axes: &[Axis], staging: Staging) -> Result<Vec<TileName>> {
        let names: &[&str] = if staging.pipeline { &["ping", "pong"] } else { &["staging"] };
        let named =
            (staging.chunk_rows > 0 || staging.chunk_cols > 0).then_some([staging.chunk_rows, staging.chunk_cols]);
        let bytes = if named.is_some() { i64::MAX } else { CHUNK_BYTES };
        let chunk = self.chunk(axes, named.unwrap_or_default(), dtype.size(), bytes, names.len() as i64);
        let tiles = names.iter().map(|name| self.temporary(name, dtype, chunk)).collect::<Result<Vec<_>>>()?;
        let rows = axes[1..].iter().fold(Size::Const(1), |rows, axis| rows.mul(&axis.count));
        let [rows, cols] = [(rows, chunk.rows), (axes[0].count.clone(), chunk.cols)]
            .map(|(count, most)| count.min(&Size::Const(most)).expr());
        for tile in &tiles {
            let (tile, rows, cols) = (tile.clone(), rows.clone(), cols.clone());
            self.push(Stmt::Tile { tile, dtype, rows, cols, offset: Expr::number(0), resized: true });
        }
        Ok(tiles)
    }

    /// A chunk of a move: of at most as many rows and columns as the program names (0 for all), of at most `bytes` with
    /// elements of `size` bytes, and so that `count` of them fit into what is left of the unified buffer.
    pub fn chunk(&self, axes: &[Axis], named: [i64; 2], size: i64, bytes: i64, count: i64) -> Extent {
        let room = (self.unit.options.target.ub_bytes() - self.top) / count / BLOCK * BLOCK;
        let room = room.min(bytes).max(BLOCK);
        let most = |named: i64, all: Option<i64>| match named {
            0 => all.unwrap_or(i64::MAX),
            named => named.min(all.unwrap_or(i64::MAX)),
        };
        let [rows, cols] = [most(named[0], most_rows(axes)), most(named[1], axes[0].most)];
        let cols = cols.clamp(1, room / size);
        let row_bytes = (cols * size + BLOCK - 1) / BLOCK * BLOCK;
        Extent { rows: rows.clamp(1, Target::MAX_ROWS).min(room / row_bytes), cols }
    }
}

/// Rows of a move: all dimensions but the last one.
fn most_rows(axes: &[Axis]) -> Option<i64> {
    axes[1..].iter().try_fold(1i64, |rows, axis| rows.checked_mul(axis.most?))
}
