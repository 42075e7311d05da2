//! Peers whose windows are not mapped here, but reached through the runtime's transport.
//!
//! Transfers are begun and go on while code runs: near memory of those under way is counted in the frame. Code that may
//! touch such memory *settles* first: it waits until nothing is under way. A task settles before it ends. Where the
//! windows of a peer are is known when compiling if the peer is; otherwise code looks it up and has both ways.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::codegen::index::Number;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Atomic, DType, Extent, NotifyOp, Op, OpKind, Region, Scalar};

use super::ADDED;
use super::abi::{Combination, Exit, Frame, Transfer};
use super::bounds::{Index, Peers};
use super::compiler::Compiler;
use super::function::{Function, PLAIN};
use super::jit::ADDRESS;
use super::size::Size;
use super::transfer::{Mode, Side};

/// A task that moves so many bytes to or from far peers in one op may leave its core to others meanwhile.
const BACKGROUND: i64 = 64 << 10;

/// The number of a type among those that are added.
fn accumulator(dtype: DType) -> Result<i64> {
    let number = ADDED.iter().position(|&added| added == dtype).map(|number| number as i64);
    number.ok_or_else(|| Error::new(ErrorKind::Unsupported, format!("elements of {} are not added", dtype.name())))
}

impl Compiler<'_> {
    /// Some ranks are far.
    pub fn has_far(&self) -> bool {
        self.binding.far.iter().any(|&far| far)
    }

    /// A task moves much to or from peers that may be far.
    pub fn moves_far(&self, op: Op) -> bool {
        self.has_far() && self.any_op(op, &mut |kind| self.moved_bytes(kind).is_some_and(|bytes| bytes >= BACKGROUND))
    }

    /// A task moves something to or from peers that may be far.
    pub fn touches_far(&self, op: Op) -> bool {
        self.has_far() && self.any_op(op, &mut |kind| self.moved_bytes(kind).is_some())
    }

    fn any_op(&self, op: Op, holds: &mut dyn FnMut(&OpKind) -> bool) -> bool {
        let mut any = false;
        for block in self.program.ops[op].kind.blocks() {
            self.program.walk(block, &mut |op| any |= holds(&self.program.ops[op].kind));
        }
        any
    }

    /// Bytes that an op moves between ranks, as far as is known; none if it is no such op.
    fn moved_bytes(&self, kind: &OpKind) -> Option<i64> {
        let extents = &self.program.extents;
        let product = |shape: &[Extent]| {
            let mut sizes = shape.iter().map(|&extent| extents.eval(extent, self.known).unwrap_or(BACKGROUND));
            sizes.try_fold(1i64, |product, size| product.checked_mul(size)).unwrap_or(i64::MAX)
        };
        let scalars = |shape: &[Scalar]| {
            let extent = |&scalar| self.program.extent_of(scalar).and_then(|extent| extents.eval(extent, self.known));
            let mut sizes = shape.iter().map(|scalar| extent(scalar).unwrap_or(BACKGROUND));
            sizes.try_fold(1i64, |product, size| product.checked_mul(size)).unwrap_or(i64::MAX)
        };
        let region = |tensor, region: &Option<Region>| {
            let data = &self.program.tensors[tensor];
            let elements = region.as_ref().map_or_else(|| product(&data.shape), |region| scalars(&region.shape));
            elements.saturating_mul(data.dtype.size())
        };
        let tile = |tile| {
            let data = &self.program.tiles[tile];
            product(&data.shape).saturating_mul(data.dtype.size())
        };
        match kind {
            OpKind::Put { dst, region: part, .. } => Some(region(*dst, part)),
            OpKind::Get { src, region: part, .. } | OpKind::GetReduce { src, region: part, .. } => {
                Some(region(*src, part))
            }
            OpKind::RemoteStore { src, .. } => Some(tile(*src)),
            OpKind::RemoteLoad { dst, .. } => Some(tile(*dst)),
            _ => None,
        }
    }
}

impl Function<'_, '_> {
    /// Whether a peer is far; none if only the running code can tell.
    pub fn is_far(&self, peer: Size) -> Option<bool> {
        if !self.unit.has_far() {
            return Some(false);
        }
        let peer = peer.constant()?;
        Some(usize::try_from(peer).ok().and_then(|peer| self.unit.binding.far.get(peer)).is_some_and(|&far| far))
    }

    /// Makes the code for a peer whose windows are mapped, for one that is far, or both.
    pub fn by_reach(
        &mut self,
        peer: Size,
        mapped: impl FnOnce(&mut Self) -> Result<()>,
        far: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match self.is_far(peer) {
            Some(false) => mapped(self),
            Some(true) => far(self),
            None => {
                let table = self.frame_field(ADDRESS, offset_of!(Frame, far));
                let entry = self.add(Size::Value(table), peer);
                let entry = self.size_value(entry);
                let is_far = self.b.ins().uload8(types::I32, PLAIN, entry, 0);
                let (there, here, after) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
                self.b.ins().brif(is_far, there, &[], here, &[]);
                self.b.switch_to_block(there);
                far(self)?;
                self.b.ins().jump(after, &[]);
                self.b.switch_to_block(here);
                self.settled = false;
                mapped(self)?;
                self.b.ins().jump(after, &[]);
                self.b.switch_to_block(after);
                self.settled = false;
                Ok(())
            }
        }
    }

    /// Moves a region to a far peer, or from it.
    pub fn move_far(
        &mut self,
        peer: Size,
        far: &Side,
        near: &Side,
        shape: &[Index],
        way: Transfer,
        mode: Mode,
    ) -> Result<()> {
        let kind = match (way, mode.atomic) {
            (Transfer::Put, Atomic::Add) => Transfer::Accumulate as i64 + accumulator(mode.dtype)?,
            (way, _) => way as i64,
        };
        self.each_rows(far, near, shape, |f, far, near, rows| {
            let kind = f.b.ins().iconst(types::I32, kind);
            let peer = f.size_value(peer);
            let peer = f.b.ins().ireduce(types::I32, peer);
            let bytes = f.mul(rows.row, Size::Const(mode.dtype.size()));
            let [far_stride, near_stride, count, bytes] =
                [rows.dst_stride, rows.src_stride, rows.count, bytes].map(|size| f.size_value(size));
            let site = f.site();
            let site = f.b.ins().iconst(types::I32, i64::from(site));
            let args = [f.frame, kind, peer, far, near, far_stride, near_stride, count, bytes, site];
            f.call_hook(f.unit.hooks.far.transfer as *const u8, &args);
            Ok(())
        })?;
        self.settled = false;
        Ok(())
    }

    /// Changes a cell of a far peer.
    pub fn signal_far(&mut self, peer: Size, cell: Value, value: Value, op: NotifyOp) {
        let peer = self.size_value(peer);
        let peer = self.b.ins().ireduce(types::I32, peer);
        let add = self.b.ins().iconst(types::I32, i64::from(op == NotifyOp::Add));
        let site = self.site();
        let site = self.b.ins().iconst(types::I32, i64::from(site));
        self.call_hook(self.unit.hooks.far.signal as *const u8, &[self.frame, peer, cell, value, add, site]);
    }

    /// Combines regions of several peers, some of which are far; `from` is where rank 0's would be.
    #[expect(clippy::too_many_arguments, reason = "they are what a combination consists of")]
    pub fn combine_far(
        &mut self,
        kernel: *const u8,
        window: crate::ir::Tensor,
        peers: Peers,
        to: &Side,
        from: &Side,
        shape: &[Index],
        sizes: [i64; 2],
    ) -> Result<()> {
        let ranks = self.stack_slot(size_of::<u32>() as i64 * self.nranks(window));
        self.list_ranks(ranks, window, peers)?;
        let job = self.stack_slot(size_of::<Combination>() as i64);
        self.settle();
        self.each_rows(to, from, shape, |f, to, from, rows| {
            let kernel = f.b.ins().iconst(ADDRESS, kernel as i64);
            let [to_stride, from_stride, count, elements, npeers] =
                [rows.dst_stride, rows.src_stride, rows.count, rows.row, peers.count].map(|size| f.size_value(size));
            let [to_size, from_size] = sizes.map(|size| f.b.ins().iconst(types::I64, size));
            let words = [
                (offset_of!(Combination, kernel), kernel),
                (offset_of!(Combination, to), to),
                (offset_of!(Combination, from), from),
                (offset_of!(Combination, to_stride), to_stride),
                (offset_of!(Combination, from_stride), from_stride),
                (offset_of!(Combination, rows), count),
                (offset_of!(Combination, elements), elements),
                (offset_of!(Combination, to_size), to_size),
                (offset_of!(Combination, from_size), from_size),
                (offset_of!(Combination, ranks), ranks),
                (offset_of!(Combination, nranks), npeers),
            ];
            for (offset, word) in words {
                f.b.ins().store(PLAIN, word, job, offset as i32);
            }
            let site = f.site();
            let site = f.b.ins().iconst(types::I32, i64::from(site));
            f.call_hook(f.unit.hooks.far.combine as *const u8, &[f.frame, job, site]);
            Ok(())
        })
    }

    /// In front of an op that may touch memory which transfers under way use.
    pub fn settle_before(&mut self, op: Op) {
        match self.program().ops[op].kind {
            OpKind::Scalar { .. }
            | OpKind::VarDef { .. }
            | OpKind::VarGet { .. }
            | OpKind::VarSet { .. }
            | OpKind::ArrayDef { .. }
            | OpKind::ArrayGet { .. }
            | OpKind::ArraySet { .. }
            | OpKind::For { .. }
            | OpKind::If { .. }
            | OpKind::Slice { .. }
            | OpKind::Flatten { .. }
            | OpKind::Require { .. }
            | OpKind::Agree { .. }
            | OpKind::Wait { .. }
            | OpKind::DeferWait { .. }
            // These look themselves what they may touch.
            | OpKind::Put { .. }
            | OpKind::Get { .. }
            | OpKind::GetReduce { .. }
            | OpKind::RemoteStore { .. }
            | OpKind::RemoteLoad { .. }
            | OpKind::Notify { .. } => {}
            _ => self.settle(),
        }
    }

    /// Goes on when no transfer is under way.
    pub fn settle(&mut self) {
        if !self.transfers || self.settled {
            return;
        }
        let [outgoing, incoming] = [offset_of!(Frame, outgoing), offset_of!(Frame, incoming)].map(|field| {
            let counter = self.frame_field(ADDRESS, field);
            self.b.ins().atomic_load(types::I32, PLAIN, counter)
        });
        let under_way = self.b.ins().bor(outgoing, incoming);
        let (block, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(block);
        self.b.ins().brif(under_way, block, &[], on, &[]);
        self.b.switch_to_block(block);
        let site = self.site();
        let site = self.b.ins().iconst(types::I32, i64::from(site));
        self.call_hook(self.unit.hooks.far.settle as *const u8, &[self.frame, site]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
        self.settled = true;
    }

    /// In front of a signal to a peer whose windows are mapped: what this rank has written to far peers is there. To itself
    /// it need not say so: what it sends comes behind that.
    pub fn order_far(&mut self) {
        let alone = self.unit.binding.far.iter().filter(|&&far| !far).count() == 1;
        if self.unit.has_far() && !alone {
            let site = self.site();
            let site = self.b.ins().iconst(types::I32, i64::from(site));
            self.call_hook(self.unit.hooks.far.order as *const u8, &[self.frame, site]);
        }
    }

    /// Calls a hook that returns other than 0 if the launch has failed.
    fn call_hook(&mut self, hook: *const u8, args: &[Value]) {
        let failed = self.call(hook, Some(types::I32), args).expect("the hook has a result");
        self.unless(failed, |f| f.exit(Exit::Failed));
    }
}
