//! Regions of memory: between tensors, tiles and peers.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use smallvec::SmallVec;

use crate::codegen::index::{Indexing, Number};
use crate::error::Result;
use crate::ir::{Atomic, DType, Region, Scalar, Tensor, Tile};

use super::abi::{Frame, Pace, Transfer};
use super::bounds::{Index, Indices};
use super::function::Function;
use super::jit::ADDRESS;
use super::size::{Size, Sizes};

/// Moves of at most this many bytes are made of loads and stores.
const INLINE_BYTES: i64 = 64;

/// Shorter moves go the same way to every peer.
const ROW_BYTES: i64 = 1024;

/// One side of a move: a region in packed memory.
pub struct Side {
    /// It lies in a window.
    window: bool,
    /// Where the region begins.
    address: Value,
    /// The extents of the memory that it is part of.
    whole: Indices,
    /// Bytes between neighbours in each dimension of that memory.
    strides: Sizes,
}

/// A dimension of a move that contiguous bytes do not cover, so that it has to be stepped through.
struct Step {
    count: Size,
    dst_stride: Size,
    src_stride: Size,
}

/// A move: contiguous rows, and steps between them, innermost first.
struct Plan {
    row: Size,
    steps: SmallVec<[Step; 4]>,
}

/// Contiguous rows at equal distances.
#[derive(Clone, Copy)]
pub struct Rows {
    /// Elements of a row.
    pub row: Size,
    pub count: Size,
    /// Bytes from row to row.
    pub dst_stride: Size,
    pub src_stride: Size,
}

/// What a move does with each element.
#[derive(Clone, Copy)]
pub struct Mode {
    pub dtype: DType,
    pub atomic: Atomic,
    /// The rank whose memory it goes to, if that may be another one.
    pub peer: Option<Size>,
}

impl Function<'_, '_> {
    pub fn put(
        &mut self,
        dst: Tensor,
        peer: Scalar,
        src: Tensor,
        region: Option<&Region>,
        atomic: Atomic,
    ) -> Result<()> {
        let peer = self.peer(dst, peer);
        self.transfer((dst, Some(peer)), (src, None), region, atomic)
    }

    pub fn get(&mut self, dst: Tensor, src: Tensor, peer: Scalar, region: Option<&Region>) -> Result<()> {
        let peer = self.peer(src, peer);
        self.transfer((dst, None), (src, Some(peer)), region, Atomic::None)
    }

    fn transfer(
        &mut self,
        (dst, dst_peer): (Tensor, Option<Size>),
        (src, src_peer): (Tensor, Option<Size>),
        region: Option<&Region>,
        atomic: Atomic,
    ) -> Result<()> {
        let [dst_at, src_at, shape] = self.region(dst, src, region);
        let mode = Mode { dtype: self.program().tensors[dst].dtype, atomic, peer: dst_peer };
        let to = self.tensor_side(dst, dst_peer, &dst_at);
        let from = self.tensor_side(src, src_peer, &src_at);
        let (peer, way) = match (dst_peer, src_peer) {
            (Some(peer), _) => (peer, Transfer::Put),
            (None, peer) => (peer.expect("one side is a peer's"), Transfer::Get),
        };
        let mapped = |f: &mut Self| f.transfer_mapped(&to, &from, &shape, mode);
        self.by_reach(peer, mapped, |f| match way {
            Transfer::Get => f.move_far(peer, &from, &to, &shape, way, mode),
            _ => f.move_far(peer, &to, &from, &shape, way, mode),
        })
    }

    fn transfer_mapped(&mut self, to: &Side, from: &Side, shape: &[Index], mode: Mode) -> Result<()> {
        self.settle();
        if !self.may_be_identical(to, from, mode) {
            return self.move_region(to, from, shape, mode);
        }
        let differ = self.b.ins().icmp(IntCC::NotEqual, to.address, from.address);
        let (go, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(differ, go, &[], after, &[]);
        self.b.switch_to_block(go);
        self.move_region(to, from, shape, mode)?;
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        Ok(())
    }

    /// A rank may copy a region of its own window to where it already is, which kernels do not allow.
    fn may_be_identical(&self, dst: &Side, src: &Side, mode: Mode) -> bool {
        mode.atomic == Atomic::None && dst.window && src.window && dst.strides == src.strides
    }

    /// The part of a tensor that begins at `at`.
    pub fn tensor_side(&mut self, tensor: Tensor, peer: Option<Size>, at: &[Index]) -> Side {
        let program = self.program();
        let at: Sizes = at.iter().map(|i| i.size).collect();
        Side {
            window: self.unit.is_window(tensor),
            address: self.address(tensor, peer, &at),
            whole: self.extent_indices(&program.tensors[program.packed(tensor)].shape),
            strides: self.strides(tensor),
        }
    }

    /// A whole tile.
    pub fn tile_side(&mut self, tile: Tile) -> Side {
        let program = self.program();
        let whole = self.extent_indices(&program.tiles[tile].shape);
        let mut stride = Size::Const(program.tiles[tile].dtype.size());
        let mut strides: Sizes = whole.iter().map(|i| i.size).collect();
        for extent in strides.iter_mut().rev() {
            let outer = self.mul(stride, *extent);
            *extent = std::mem::replace(&mut stride, outer);
        }
        Side { window: false, address: self.tile_address(tile), whole, strides }
    }

    /// The address of a region, if its bytes are contiguous.
    pub fn contiguous(&mut self, side: &Side, shape: &[Index]) -> Option<Value> {
        self.plan(side, side, shape).steps.is_empty().then_some(side.address)
    }

    /// Moves a region of `shape`.
    pub fn move_region(&mut self, dst: &Side, src: &Side, shape: &[Index], mode: Mode) -> Result<()> {
        let plan = self.plan(dst, src, shape);
        let (inner, outer) = plan.steps.split_at(plan.steps.len().min(1));
        self.step_through(dst.address, src.address, outer, &mut |f, dst, src| match inner {
            [step] => f.move_rows(dst, src, step, plan.row, mode),
            _ => f.move_row(dst, src, plan.row, mode),
        })
    }

    /// Makes code for the rows of a region of `shape`, as many at a time as lie at equal distances on both sides: given where
    /// they begin there.
    pub fn each_rows(
        &mut self,
        dst: &Side,
        src: &Side,
        shape: &[Index],
        mut rows: impl FnMut(&mut Self, Value, Value, Rows) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan(dst, src, shape);
        let (inner, outer) = plan.steps.split_at(plan.steps.len().min(1));
        let all = match inner {
            [step] => {
                Rows { row: plan.row, count: step.count, dst_stride: step.dst_stride, src_stride: step.src_stride }
            }
            _ => Rows { row: plan.row, count: Size::Const(1), dst_stride: Size::Const(0), src_stride: Size::Const(0) },
        };
        self.step_through(dst.address, src.address, outer, &mut |f, dst, src| rows(f, dst, src, all))
    }

    /// Makes code for each row of a region of `shape`, given where it begins on both sides and its elements.
    pub fn each_row(
        &mut self,
        dst: &Side,
        src: &Side,
        shape: &[Index],
        mut row: impl FnMut(&mut Self, Value, Value, Size) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan(dst, src, shape);
        self.step_through(dst.address, src.address, &plan.steps, &mut |f, dst, src| row(f, dst, src, plan.row))
    }

    /// Finds the longest contiguous rows.
    fn plan(&mut self, dst: &Side, src: &Side, shape: &[Index]) -> Plan {
        let (&last, outer) = shape.split_last().expect("a region has a dimension");
        let mut plan = Plan { row: last.size, steps: SmallVec::new() };
        let fills = |f: &Self, extent: Index, dim: usize| {
            f.same_size(extent, dst.whole[dim]) && f.same_size(extent, src.whole[dim])
        };
        // What lies inside dimension `dim` is all there, so that its elements are as far apart as they are large.
        let mut packed = fills(self, last, outer.len());
        for (dim, &extent) in outer.iter().enumerate().rev() {
            if extent.size == Size::Const(1) {
                packed &= fills(self, extent, dim);
                continue;
            }
            if packed {
                let inner = plan.steps.last().map_or(plan.row, |step| step.count);
                let merged = self.mul(inner, extent.size);
                *plan.steps.last_mut().map_or(&mut plan.row, |step| &mut step.count) = merged;
            } else {
                let (dst_stride, src_stride) = (dst.strides[dim], src.strides[dim]);
                plan.steps.push(Step { count: extent.size, dst_stride, src_stride });
            }
            packed = fills(self, extent, dim);
        }
        plan
    }

    fn same_size(&self, a: Index, b: Index) -> bool {
        let same = |x, y| self.program().extents.same(x, y);
        a.size == b.size || a.extent.zip(b.extent).is_some_and(|(x, y)| same(x, y))
    }

    fn step_through(
        &mut self,
        dst: Value,
        src: Value,
        steps: &[Step],
        body: &mut dyn FnMut(&mut Self, Value, Value) -> Result<()>,
    ) -> Result<()> {
        let [inner @ .., step] = steps else { return body(self, dst, src) };
        self.counted_loop(Size::Const(0), step.count, Size::Const(1), |f, i| {
            let mut advance = |start, stride| {
                let distance = f.mul(Size::Value(i), stride);
                let address = f.add(Size::Value(start), distance);
                f.size_value(address)
            };
            let (dst, src) = (advance(dst, step.dst_stride), advance(src, step.src_stride));
            f.step_through(dst, src, inner, body)
        })
    }

    fn move_row(&mut self, dst: Value, src: Value, row: Size, mode: Mode) -> Result<()> {
        if mode.atomic == Atomic::Add {
            let single = Step { count: Size::Const(1), dst_stride: Size::Const(0), src_stride: Size::Const(0) };
            return self.move_rows(dst, src, &single, row, mode);
        }
        let bytes = self.mul(row, Size::Const(mode.dtype.size()));
        match bytes {
            Size::Const(bytes @ 0..=INLINE_BYTES) => self.move_inline(dst, src, bytes),
            bytes => {
                let length = self.size_value(bytes);
                match mode.peer {
                    Some(peer) if bytes.constant().is_none_or(|bytes| bytes >= ROW_BYTES) => {
                        let pace = self.pace(peer);
                        self.call(self.unit.kernels.copy_to_peer(), None, &[dst, src, length, pace]);
                    }
                    _ => _ = self.call(self.unit.kernels.copy(), None, &[dst, src, length]),
                }
            }
        }
        Ok(())
    }

    /// What is known of the way to a peer.
    fn pace(&mut self, peer: Size) -> Value {
        let paces = self.frame_field(ADDRESS, offset_of!(Frame, paces));
        let distance = self.mul(peer, Size::Const(size_of::<Pace>() as i64));
        let pace = self.add(Size::Value(paces), distance);
        self.size_value(pace)
    }

    fn move_rows(&mut self, dst: Value, src: Value, step: &Step, row: Size, mode: Mode) -> Result<()> {
        let (kernel, row) = match mode.atomic {
            Atomic::None => (self.unit.kernels.copy_2d(), self.mul(row, Size::Const(mode.dtype.size()))),
            Atomic::Add => (self.kernel(self.unit.kernels.accumulate_2d(mode.dtype))?, row),
        };
        let [dst_stride, src_stride, count, row] =
            [step.dst_stride, step.src_stride, step.count, row].map(|size| self.size_value(size));
        self.call(kernel, None, &[dst, dst_stride, src, src_stride, count, row]);
        Ok(())
    }

    /// Loads all bytes, then stores them, so that the two may overlap.
    fn move_inline(&mut self, dst: Value, src: Value, bytes: i64) {
        const UNALIGNED: MemFlagsData = MemFlagsData::new().with_notrap();
        const WIDTHS: [(i64, Type); 5] =
            [(16, types::I8X16), (8, types::I64), (4, types::I32), (2, types::I16), (1, types::I8)];
        let mut pieces: SmallVec<[(i32, Value); 8]> = SmallVec::new();
        let mut done = 0;
        while done < bytes {
            let fits = WIDTHS.into_iter().find(|(width, _)| done + width <= bytes);
            let (width, ty) = fits.expect("the last width is one byte");
            pieces.push((done as i32, self.b.ins().load(ty, UNALIGNED, src, done as i32)));
            done += width;
        }
        for (offset, piece) in pieces {
            self.b.ins().store(UNALIGNED, piece, dst, offset);
        }
    }
}
