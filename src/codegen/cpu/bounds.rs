//! Run-time checks: offsets, extents, peers and indices that are not known to be good when compiling.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};
use smallvec::SmallVec;

use crate::ir::builder::MAX_RANK;
use crate::ir::{Extent, Scalar, Tensor};

use super::abi::{Exit, Fault, FaultKind, Frame};
use super::arguments::Argument;
use super::function::{Function, PLAIN};
use super::size::Size;

/// An offset, extent, peer or array index, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Index {
    /// Its value.
    pub size: Size,
    /// Least and most it can be.
    pub range: (i64, i64),
    /// The extent that it is, if it is one.
    pub extent: Option<Extent>,
}

/// Indices, one a dimension.
pub type Indices = SmallVec<[Index; 4]>;

/// Values that nothing is known of.
const ANY: (i64, i64) = (i64::MIN, i64::MAX);

impl Index {
    /// The number zero.
    pub const ZERO: Index = Index { size: Size::Const(0), range: (0, 0), extent: None };

    /// The number one.
    pub const ONE: Index = Index { size: Size::Const(1), range: (1, 1), extent: None };
}

/// A branch to the code that reports a region which lies outside in dimension `dim`.
struct Overrun {
    wrong: Value,
    dim: usize,
}

impl Function<'_, '_> {
    /// An integer scalar, with what is known of it.
    pub fn index(&mut self, scalar: Scalar) -> Index {
        let size = self.size(scalar);
        let range = match size {
            Size::Const(value) => (value, value),
            Size::Value(_) => self.range(scalar),
        };
        Index { size, range, extent: self.program().extent_of(scalar) }
    }

    pub fn indices(&mut self, scalars: &[Scalar]) -> Indices {
        scalars.iter().map(|&s| self.index(s)).collect()
    }

    /// An extent, with what is known of it.
    pub fn extent_index(&mut self, extent: Extent) -> Index {
        let size = self.extent(extent);
        let range = size.constant().map_or(ANY, |value| (value, value));
        Index { size, range, extent: Some(extent) }
    }

    pub fn extent_indices(&mut self, shape: &[Extent]) -> Indices {
        shape.iter().map(|&e| self.extent_index(e)).collect()
    }

    fn range(&self, scalar: Scalar) -> (i64, i64) {
        match self.unit.arguments.scalar(self.program(), scalar) {
            Argument::Rank => (0, i64::from(self.unit.binding.nranks) - 1),
            _ => ANY,
        }
    }

    /// Ends the launch unless the region `extents` at `at` lies in a tensor, the op's operand number `operand`.
    pub fn check_region(&mut self, operand: usize, tensor: Tensor, at: &[Index], extents: &[Index]) {
        if !self.unit.binding.checked {
            return;
        }
        let program = self.program();
        let mut overruns: SmallVec<[Overrun; 8]> = SmallVec::new();
        for (dim, (&bound, (at, extent))) in
            program.tensors[tensor].shape.iter().zip(at.iter().zip(extents)).enumerate()
        {
            let whole = at.size == Size::Const(0) && extent.extent.is_some_and(|e| program.extents.same(e, bound));
            if whole {
                continue;
            }
            let bound = self.extent(bound);
            let fits = |least: i64, most: i64, bound: Size| least >= 0 && bound.constant().is_some_and(|b| most <= b);
            let reach = at.range.1.saturating_add(extent.range.1);
            if extent.range.0 >= 0 && fits(at.range.0, reach, bound) {
                continue;
            }
            // Compared without sign, so that a negative number is too large. Once the extent is known to fit, the
            // difference cannot overflow, as offset + extent might.
            if !fits(extent.range.0, extent.range.1, bound) {
                let (extent, bound) = (self.size_value(extent.size), self.size_value(bound));
                let wrong = self.b.ins().icmp(IntCC::UnsignedGreaterThan, extent, bound);
                overruns.push(Overrun { wrong, dim });
            }
            let last = self.sub(bound, extent.size);
            let (at, last) = (self.size_value(at.size), self.size_value(last));
            let wrong = self.b.ins().icmp(IntCC::UnsignedGreaterThan, at, last);
            overruns.push(Overrun { wrong, dim });
        }
        if overruns.is_empty() {
            return;
        }
        let bad = self.b.create_block();
        self.b.set_cold_block(bad);
        let dim = self.b.append_block_param(bad, types::I32);
        for overrun in overruns {
            let good = self.b.create_block();
            let which = self.b.ins().iconst(types::I32, overrun.dim as i64);
            self.b.ins().brif(overrun.wrong, bad, &[BlockArg::Value(which)], good, &[]);
            self.b.switch_to_block(good);
        }
        let good = self.b.current_block().expect("the last block was switched to");
        self.b.switch_to_block(bad);
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

    /// A peer, which the launch ends for if it is not in the world.
    pub fn peer(&mut self, peer: Scalar) -> Size {
        let peer = self.index(peer);
        let nranks = i64::from(self.unit.binding.nranks);
        if self.unit.binding.checked && (peer.range.0 < 0 || peer.range.1 >= nranks) {
            self.check_below(peer.size, nranks, FaultKind::Peer, &[]);
        }
        peer.size
    }

    /// An index into an array of `len` elements.
    pub fn array_index(&mut self, index: Scalar, len: i64) -> Size {
        let index = self.index(index);
        if self.unit.binding.checked && (index.range.0 < 0 || index.range.1 >= len) {
            self.check_below(index.size, len, FaultKind::Array, &[Size::Const(len)]);
        }
        index.size
    }

    fn check_below(&mut self, index: Size, bound: i64, kind: FaultKind, extents: &[Size]) {
        let value = self.size_value(index);
        let wrong = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, value, bound);
        self.fault_if(wrong, kind, &[index], extents);
    }

    /// Ends the launch if `wrong` is not zero.
    pub fn fault_if(&mut self, wrong: Value, kind: FaultKind, offsets: &[Size], extents: &[Size]) {
        self.unless(wrong, |f| f.fault(kind, offsets, extents));
    }

    /// Ends the launch: fills the frame's fault and returns.
    fn fault(&mut self, kind: FaultKind, offsets: &[Size], extents: &[Size]) {
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
