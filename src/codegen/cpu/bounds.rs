//! Run-time checks: offsets, extents, peers and indices that are not known to be good when compiling.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, BlockArg, InstBuilder, Value, types};
use smallvec::SmallVec;

use crate::codegen::index::{self, Indexing, Number};
use crate::ir::builder::MAX_RANK;
use crate::ir::{Extent, PeerRange, Program, Scalar, Tensor};
use crate::verify::range::{Interval, Ranges};

use super::abi::{Exit, Fault, FaultKind, Frame};
use super::function::{Function, PLAIN};
use super::size::Size;

pub type Index = index::Index<Size>;
pub type Indices = index::Indices<Size>;
pub type Peers = index::Peers<Size>;

impl Indexing for Function<'_, '_> {
    type Size = Size;

    fn program(&self) -> &Program {
        self.program()
    }

    fn ranges(&self) -> &Ranges {
        &self.unit.ranges
    }

    fn size(&mut self, scalar: Scalar) -> Size {
        self.size(scalar)
    }

    fn extent(&mut self, extent: Extent) -> Size {
        self.extent(extent)
    }

    fn check_region(&mut self, operand: u32, tensor: Tensor, at: &[Index], extents: &[Index]) {
        self.check_region(operand, tensor, at, extents);
    }
}

impl Function<'_, '_> {
    /// Ends the launch unless the region `extents` at `at` lies in a tensor, the op's operand number `operand`. A region
    /// without elements may be anywhere.
    pub fn check_region(&mut self, operand: u32, tensor: Tensor, at: &[Index], extents: &[Index]) {
        if !self.unit.binding.checked {
            return;
        }
        let program = self.program();
        // Comparisons that hold if the region reaches outside.
        let mut overruns: SmallVec<[(usize, IntCC, Size, Size); 8]> = SmallVec::new();
        for (dim, (&bound, (at, extent))) in
            program.tensors[tensor].shape.iter().zip(at.iter().zip(extents)).enumerate()
        {
            let whole = at.size == Size::Const(0) && extent.extent.is_some_and(|e| program.extents.same(e, bound));
            if whole {
                continue;
            }
            let bound = self.extent_index(bound);
            let fits = |range: Interval| range.min >= 0 && range.max <= bound.range.min;
            let end = at.range.max.saturating_add(extent.range.max);
            if extent.range.min >= 0 && fits(Interval { min: at.range.min, max: end }) {
                continue;
            }
            // Compared without sign, so that a negative number is too large. Once the extent is known to fit, the
            // difference cannot overflow, as offset + extent might.
            let (first, last) = if extent.size == Size::Const(1) {
                (IntCC::UnsignedGreaterThanOrEqual, bound.size)
            } else {
                if !fits(extent.range) {
                    overruns.push((dim, IntCC::UnsignedGreaterThan, extent.size, bound.size));
                }
                (IntCC::UnsignedGreaterThan, self.sub(bound.size, extent.size))
            };
            overruns.push((dim, first, at.size, last));
        }
        if overruns.is_empty() {
            return;
        }
        let bad = self.b.create_block();
        self.b.set_cold_block(bad);
        let dim = self.b.append_block_param(bad, types::I32);
        for (dim, wrong, value, bound) in overruns {
            let (value, bound) = (self.size_value(value), self.size_value(bound));
            let wrong = self.b.ins().icmp(wrong, value, bound);
            let good = self.b.create_block();
            let dim = self.b.ins().iconst(types::I32, dim as i64);
            self.b.ins().brif(wrong, bad, &[BlockArg::Value(dim)], good, &[]);
            self.b.switch_to_block(good);
        }
        let good = self.b.current_block().expect("the last block was switched to");
        self.b.switch_to_block(bad);
        if extents.iter().any(|e| e.range.min <= 0) {
            self.pass_empty(extents, good);
        }
        let offsets: SmallVec<[Size; 8]> = at.iter().map(|i| i.size).collect();
        let extents: SmallVec<[Size; 8]> = extents.iter().map(|i| i.size).collect();
        let field = offset_of!(Frame, fault) as i32;
        let frame = self.frame;
        self.b.ins().store(PLAIN, dim, frame, field + offset_of!(Fault, dim) as i32);
        let operand = self.b.ins().iconst(types::I32, operand as i64);
        self.b.ins().store(PLAIN, operand, frame, field + offset_of!(Fault, operand) as i32);
        self.fault(FaultKind::Bounds, &offsets, &extents);
        self.b.switch_to_block(good);
    }

    /// Goes on to `good` if the region has no element, wherever it is.
    fn pass_empty(&mut self, extents: &[Index], good: ir::Block) {
        let extents: SmallVec<[Value; 8]> = extents.iter().map(|e| self.size_value(e.size)).collect();
        let smallest = extents.into_iter().reduce(|a, b| self.b.ins().smin(a, b)).expect("a region has a dimension");
        let outside = self.b.create_block();
        self.b.set_cold_block(outside);
        self.b.ins().brif(smallest, outside, &[], good, &[]);
        self.b.switch_to_block(outside);
    }

    /// The rank that a peer is in a window's domain; the launch ends if it is not in the domain.
    pub fn peer(&mut self, window: Tensor, peer: Scalar) -> Size {
        let peer = self.index(peer);
        let nranks = self.nranks(window);
        if self.unit.binding.checked && !below(nranks).contains(peer.range) {
            let end = self.add(peer.size, Size::Const(1));
            self.check_below(peer.size, nranks, FaultKind::Peer, &[peer.size, end]);
        }
        self.world_rank(window, peer.size)
    }

    /// Peers by their numbers in a window's domain; the launch ends unless they are a round of it at most.
    pub fn peers(&mut self, window: Tensor, peers: PeerRange) -> Peers {
        let (first, end) = (self.index(peers.first), self.size(peers.end));
        let (nranks, count) = (self.nranks(window), self.sub(end, first.size));
        if self.unit.binding.checked {
            if !below(nranks).contains(first.range) {
                self.check_below(first.size, nranks, FaultKind::Peer, &[first.size, end]);
            }
            let others = self.add(count, Size::Const(-1));
            if others.constant().is_none_or(|others| !(0..nranks).contains(&others)) {
                self.check_below(others, nranks, FaultKind::Peer, &[first.size, end]);
            }
        }
        Peers { first: first.size, count }
    }

    /// An index into an array of `len` elements.
    pub fn array_index(&mut self, scalar: Scalar, len: i64) -> Size {
        let index = self.index(scalar);
        let shown = self.below.iter().any(|&(s, bound)| s == scalar && bound <= len);
        if self.unit.binding.checked && !shown && !below(len).contains(index.range) {
            self.check_below(index.size, len, FaultKind::Array, &[index.size]);
            self.below.push((scalar, len));
        }
        index.size
    }

    fn check_below(&mut self, index: Size, bound: i64, kind: FaultKind, offsets: &[Size]) {
        let value = self.size_value(index);
        let wrong = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, value, bound);
        self.fault_if(wrong, kind, offsets, &[Size::Const(bound)]);
    }

    /// Ends the launch if `wrong` is not zero.
    pub fn fault_if(&mut self, wrong: Value, kind: FaultKind, offsets: &[Size], extents: &[Size]) {
        self.unless(wrong, |f| f.fault(kind, offsets, extents));
    }

    /// Ends the launch: fills the frame's fault and returns.
    pub fn fault(&mut self, kind: FaultKind, offsets: &[Size], extents: &[Size]) {
        debug_assert!(offsets.len() <= MAX_RANK && extents.len() <= MAX_RANK);
        let (frame, field) = (self.frame, offset_of!(Frame, fault) as i32);
        let site = self.site();
        for (value, offset) in [(site, offset_of!(Fault, site)), (kind as u32, offset_of!(Fault, kind))] {
            let value = self.b.ins().iconst(types::I32, i64::from(value));
            self.b.ins().store(PLAIN, value, frame, field + offset as i32);
        }
        for (sizes, offset) in [(offsets, offset_of!(Fault, offsets)), (extents, offset_of!(Fault, extents))] {
            for (i, &size) in sizes.iter().enumerate() {
                let value = self.size_value(size);
                self.b.ins().store(PLAIN, value, frame, field + (offset + 8 * i) as i32);
            }
        }
        self.exit(Exit::Fault);
    }
}

/// The numbers from 0 to below `bound`.
fn below(bound: i64) -> Interval {
    Interval { min: 0, max: bound - 1 }
}
