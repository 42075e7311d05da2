//! Tiles: packed memory that kernels work on.

use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::codegen::index::Indexing;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Atomic, DType, Op, OpKind, ReduceAxis, ReduceOp, Scalar, Tensor, Tile, TileOp};

use super::abi::{FaultKind, Transfer};
use super::function::Function;
use super::transfer::Mode;

impl Function<'_, '_> {
    /// Address of a tile.
    pub fn tile_address(&mut self, tile: Tile) -> Value {
        match self.views.get(&tile) {
            Some(&address) => address,
            None => self.scratch(self.unit.scratch.tiles[tile]),
        }
    }

    /// `dst = src[at]`, of `peer` or of this rank. `next` is the op that follows in the block.
    pub fn load(
        &mut self,
        dst: Tile,
        src: Tensor,
        peer: Option<Scalar>,
        at: &[Scalar],
        next: Option<Op>,
    ) -> Result<()> {
        let program = self.program();
        let peer = peer.map(|peer| self.peer(src, peer));
        let at = self.indices(at);
        let shape = self.extent_indices(&program.tiles[dst].shape);
        self.check_region(0, src, &at, &shape);
        let source = self.tensor_side(src, peer, &at);
        let far = peer.map_or(Some(false), |peer| self.is_far(peer));
        if far == Some(false)
            && next.is_some_and(|next| self.is_used_up(dst, next))
            && let Some(address) = self.contiguous(&source, &shape)
        {
            self.views.insert(dst, address);
            return Ok(());
        }
        let destination = self.tile_side(dst);
        let mode = Mode { dtype: program.tiles[dst].dtype, atomic: Atomic::None, peer: None };
        let mapped = |f: &mut Self| {
            f.settle();
            f.move_region(&destination, &source, &shape, mode)
        };
        let Some(peer) = peer else { return mapped(self) };
        self.by_reach(peer, mapped, |f| f.move_far(peer, &source, &destination, &shape, Transfer::Get, mode))
    }

    /// A tile that has just been loaded is used by op `next` and nowhere else, and that op writes tiles only: it may
    /// read the tensor's memory instead, as nothing changes it in between.
    fn is_used_up(&self, tile: Tile, next: Op) -> bool {
        let reads = match self.program().ops[next].kind {
            OpKind::Tile { dst, a, b, .. } => dst != tile && (a == tile || b == crate::ir::TileOrScalar::Tile(tile)),
            OpKind::Cast { dst, src } | OpKind::Copy { dst, src } | OpKind::Reduce { dst, src, .. } => {
                dst != tile && src == tile
            }
            _ => false,
        };
        // The load and the use.
        reads && self.unit.scratch.mentions[tile] == 2
    }

    /// `src -> dst[at]`, of `peer` or of this rank.
    pub fn store(&mut self, src: Tile, dst: Tensor, peer: Option<Scalar>, at: &[Scalar], atomic: Atomic) -> Result<()> {
        let program = self.program();
        let peer = peer.map(|peer| self.peer(dst, peer));
        let at = self.indices(at);
        let shape = self.extent_indices(&program.tiles[src].shape);
        self.check_region(0, dst, &at, &shape);
        let destination = self.tensor_side(dst, peer, &at);
        let source = self.tile_side(src);
        let mode = Mode { dtype: program.tensors[dst].dtype, atomic, peer };
        let mapped = |f: &mut Self| {
            f.settle();
            f.move_region(&destination, &source, &shape, mode)
        };
        let Some(peer) = peer else { return mapped(self) };
        self.by_reach(peer, mapped, |f| f.move_far(peer, &destination, &source, &shape, Transfer::Put, mode))
    }

    pub fn full(&mut self, dst: Tile, value: Scalar) -> Result<()> {
        let dtype = self.program().tiles[dst].dtype;
        let bits = self.element_bits(value, dtype)?;
        let address = self.tile_address(dst);
        self.fill(dtype, address, self.tile_len(dst), bits)
    }

    pub fn tile_copy(&mut self, dst: Tile, src: Tile) -> Result<()> {
        if dst == src {
            return Ok(());
        }
        let program = self.program();
        let shape = self.extent_indices(&program.tiles[dst].shape);
        let (destination, source) = (self.tile_side(dst), self.tile_side(src));
        let mode = Mode { dtype: program.tiles[dst].dtype, atomic: Atomic::None, peer: None };
        self.move_region(&destination, &source, &shape, mode)
    }

    pub fn tile_cast(&mut self, dst: Tile, src: Tile) -> Result<()> {
        let (from, to) = (self.program().tiles[src].dtype, self.program().tiles[dst].dtype);
        if from == to {
            return self.tile_copy(dst, src);
        }
        let kernel = self.unit.kernels.cast(from, to);
        let (to, from, len) = (self.tile_address(dst), self.tile_address(src), self.tile_len_value(dst));
        self.call(kernel, None, &[to, from, len]);
        Ok(())
    }

    /// `dst = op a, b` on tiles.
    pub fn tile_binary(&mut self, op: TileOp, dst: Tile, a: Tile, b: Tile) -> Result<()> {
        let dtype = self.program().tiles[a].dtype;
        let kernel = self.kernel(self.unit.kernels.binary(op, dtype))?;
        let b = self.tile_address(b);
        self.elementwise(kernel, op, dtype, dst, a, b)
    }

    /// `dst = op a, b` with the same `b` for every element.
    pub fn tile_scalar(&mut self, op: TileOp, dst: Tile, a: Tile, b: Scalar) -> Result<()> {
        let dtype = self.program().tiles[a].dtype;
        let kernel = self.kernel(self.unit.kernels.binary_scalar(op, dtype))?;
        let b = self.element_bits(b, dtype)?;
        self.elementwise(kernel, op, dtype, dst, a, b)
    }

    fn elementwise(&mut self, kernel: *const u8, op: TileOp, dtype: DType, dst: Tile, a: Tile, b: Value) -> Result<()> {
        let (a, dst, len) = (self.tile_address(a), self.tile_address(dst), self.tile_len_value(dst));
        let by_zero = self.call(kernel, Some(types::I32), &[dst, a, b, len]).expect("the kernel has a result");
        if op == TileOp::Div && !dtype.is_float() {
            self.fault_if(by_zero, FaultKind::Division, &[], &[]);
        }
        Ok(())
    }

    pub fn reduce(&mut self, op: ReduceOp, axis: ReduceAxis, dst: Tile, src: Tile) -> Result<()> {
        if dst == src {
            // Equal shapes: the reduced axis has one element.
            return Ok(());
        }
        let program = self.program();
        let kernel = self.kernel(self.unit.kernels.reduce(op, axis, program.tiles[src].dtype))?;
        let (to, from) = (self.tile_address(dst), self.tile_address(src));
        let shape = self.extent_indices(&program.tiles[src].shape);
        let (rows, cols) = (self.size_value(shape[0].size), self.size_value(shape[1].size));
        self.call(kernel, None, &[to, from, rows, cols]);
        Ok(())
    }

    fn tile_len(&self, tile: Tile) -> i64 {
        let program = self.program();
        let extents = program.tiles[tile].shape.iter().map(|&e| program.extents.eval(e, self.unit.known));
        extents.map(|n| n.expect("tile shapes were evaluated when scratch memory was planned")).product()
    }

    fn tile_len_value(&mut self, tile: Tile) -> Value {
        let len = self.tile_len(tile);
        self.b.ins().iconst(types::I64, len)
    }

    /// A kernel that the verifier has made sure of.
    pub fn kernel(&self, kernel: Option<*const u8>) -> Result<*const u8> {
        kernel.ok_or_else(|| {
            let name = self.program().ops[self.op].kind.name();
            Error::new(ErrorKind::Unsupported, format!("{name} is not possible on elements of this type"))
        })
    }
}
