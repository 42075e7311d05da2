//! What code reports that is made for a trace: where tasks begin and end, how many bytes they move, and whom they notify.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::ir::{DType, Extent, Op, OpKind, Scalar, Tensor};

use super::abi::{Frame, Report};
use super::function::{Function, PLAIN};
use super::size::Size;

/// Which way bytes go.
#[derive(Clone, Copy)]
enum Way {
    /// To a rank.
    Out,
    /// From a rank.
    In,
}

impl Function<'_, '_> {
    /// A block of a task begins.
    pub fn report_begin(&mut self, block: Value) {
        if self.unit.binding.traced {
            let (zero, frame) = (self.b.ins().iconst(types::I64, 0), self.frame);
            for counter in [offset_of!(Frame, written), offset_of!(Frame, read)] {
                self.b.ins().store(PLAIN, zero, frame, counter as i32);
            }
            self.report(Report::TaskBegun, Size::Const(0), block);
        }
    }

    /// It ends.
    pub fn report_end(&mut self, op: Op) {
        if self.unit.binding.traced {
            self.op = op;
            let zero = self.b.ins().iconst(types::I64, 0);
            self.report(Report::TaskEnded, Size::Const(0), zero);
        }
    }

    /// The present op notifies a cell.
    pub fn report_notify(&mut self, peer: Size, cell: Value) {
        if self.unit.binding.traced {
            self.report(Report::Notified, peer, cell);
        }
    }

    fn report(&mut self, report: Report, peer: Size, value: Value) {
        let site = self.site();
        let report = self.b.ins().iconst(types::I32, report as i64);
        let site = self.b.ins().iconst(types::I32, i64::from(site));
        let peer = self.size_value(peer);
        let peer = self.b.ins().ireduce(types::I32, peer);
        self.call(self.unit.hooks.record as *const u8, None, &[self.frame, report, site, peer, value]);
    }

    /// Adds up what an op moves between ranks.
    pub fn count_bytes(&mut self, op: Op) {
        if !self.unit.binding.traced {
            return;
        }
        let program = self.program();
        let of_tile = |tile| (program.tiles[tile].dtype, program.tiles[tile].shape.as_slice());
        match &program.ops[op].kind {
            OpKind::Put { dst, region, .. } => {
                let bytes = self.region_bytes(*dst, region.as_ref().map(|region| region.shape.as_slice()));
                self.count(Way::Out, bytes);
            }
            OpKind::Get { src, region, .. } => {
                let bytes = self.region_bytes(*src, region.as_ref().map(|region| region.shape.as_slice()));
                self.count(Way::In, bytes);
            }
            OpKind::GetReduce { src, peers, region, .. } => {
                let bytes = self.region_bytes(*src, region.as_ref().map(|region| region.shape.as_slice()));
                let (first, end) = (self.size(peers.first), self.size(peers.end));
                let ranks = self.sub(end, first);
                let bytes = self.mul(bytes, ranks);
                self.count(Way::In, bytes);
            }
            OpKind::RemoteStore { src, .. } => {
                let (dtype, shape) = of_tile(*src);
                let bytes = self.bytes(dtype, shape);
                self.count(Way::Out, bytes);
            }
            OpKind::RemoteLoad { dst, .. } => {
                let (dtype, shape) = of_tile(*dst);
                let bytes = self.bytes(dtype, shape);
                self.count(Way::In, bytes);
            }
            _ => {}
        }
    }

    /// Bytes of a region, or of the whole tensor.
    fn region_bytes(&mut self, tensor: Tensor, shape: Option<&[Scalar]>) -> Size {
        let data = &self.program().tensors[tensor];
        let Some(shape) = shape else { return self.bytes(data.dtype, &data.shape) };
        shape.iter().fold(Size::Const(data.dtype.size()), |bytes, &extent| {
            let extent = self.size(extent);
            self.mul(bytes, extent)
        })
    }

    fn bytes(&mut self, dtype: DType, shape: &[Extent]) -> Size {
        shape.iter().fold(Size::Const(dtype.size()), |bytes, &extent| {
            let extent = self.extent(extent);
            self.mul(bytes, extent)
        })
    }

    fn count(&mut self, way: Way, bytes: Size) {
        let counter = match way {
            Way::Out => offset_of!(Frame, written),
            Way::In => offset_of!(Frame, read),
        } as i32;
        let (frame, bytes) = (self.frame, self.size_value(bytes));
        let sum = self.b.ins().load(types::I64, PLAIN, frame, counter);
        let sum = self.b.ins().iadd(sum, bytes);
        self.b.ins().store(PLAIN, sum, frame, counter);
    }
}
