//! Run-time checks: offsets, extents, peers and indices that are not known to be good when compiling.

use crate::codegen::index::{self, Indexing, Number};
use crate::ir::{Extent, FaultKind, PeerRange, Program, Scalar, Tensor};
use crate::verify::range::{Interval, Ranges};

use super::expr::Size;
use super::function::Function;
use super::kernel::{Expr, Stmt};

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
    /// The two are known to be the same number.
    pub fn same_size(&self, a: &Index, b: &Index) -> bool {
        a.size == b.size || a.extent.zip(b.extent).is_some_and(|(x, y)| self.program().extents.same(x, y))
    }

    /// Ends the launch unless the region `extents` at `at` lies in a tensor, the op's operand number `operand`. A region
    /// without elements may be anywhere.
    pub fn check_region(&mut self, operand: u32, tensor: Tensor, at: &[Index], extents: &[Index]) {
        if !self.unit.options.checked {
            return;
        }
        let shape = &self.program().tensors[tensor].shape;
        for (dim, (&bound, (offset, extent))) in shape.iter().zip(at.iter().zip(extents)).enumerate() {
            let bound = self.extent_index(bound);
            if offset.size == Size::Const(0) && self.same_size(extent, &bound) {
                continue;
            }
            let fits = |range: Interval| range.min >= 0 && range.max <= bound.range.min;
            let end = offset.range.max.saturating_add(extent.range.max);
            if extent.range.min >= 0 && fits(Interval { min: offset.range.min, max: end }) {
                continue;
            }
            // Compared without sign, so that a negative number is too large. Once the extent is known to fit, the
            // difference cannot overflow, as offset + extent might.
            let overruns = beyond(&offset.size, ">", &bound.size.sub(&extent.size));
            let mut wrong = match () {
                _ if extent.size == Size::Const(1) => beyond(&offset.size, ">=", &bound.size),
                _ if offset.size == Size::Const(0) => beyond(&extent.size, ">", &bound.size),
                _ if fits(extent.range) => overruns,
                _ => Expr::compound(format!("{} || {}", beyond(&extent.size, ">", &bound.size).text, overruns.text)),
            };
            let may_be_empty = extents.iter().filter(|extent| extent.range.min <= 0).map(|extent| extent.size.expr());
            let least = may_be_empty.reduce(|least, size| Expr::call("pld::min<int64_t>", [&least, &size]));
            if let Some(least) = least {
                wrong = Expr::compound(format!("{} != 0 && {}", least.as_operand(), wrong.as_operand()));
            }
            let site = self.site();
            let exprs = |indices: &[Index]| indices.iter().map(|index| index.size.expr()).collect();
            let (offsets, extents) = (exprs(at), exprs(extents));
            let fault = Stmt::Fault { kind: FaultKind::Bounds, site, dim: dim as u32, operand, offsets, extents };
            self.push(Stmt::If { cond: wrong, then: vec![fault], other: Vec::new() });
        }
    }

    /// The number that a peer has in a window's domain; the launch ends if it is not in the domain.
    pub fn peer(&mut self, window: Tensor, peer: Scalar) -> Size {
        let peer = self.index(peer);
        let nranks = self.nranks(window);
        if self.unit.options.checked && !below(nranks).contains(peer.range) {
            let end = peer.size.add(&Size::Const(1));
            self.check_below(&peer.size, nranks, FaultKind::Peer, &[peer.size.clone(), end]);
        }
        peer.size
    }

    /// Peers by their numbers in a window's domain; the launch ends unless they are a round of it at most.
    pub fn peers(&mut self, window: Tensor, peers: PeerRange) -> Peers {
        let (first, end) = (self.index(peers.first), self.size(peers.end));
        let (nranks, count) = (self.nranks(window), end.sub(&first.size));
        if self.unit.options.checked {
            let offsets = [first.size.clone(), end];
            if !below(nranks).contains(first.range) {
                self.check_below(&first.size, nranks, FaultKind::Peer, &offsets);
            }
            let others = count.add(&Size::Const(-1));
            if others.constant().is_none_or(|others| !(0..nranks).contains(&others)) {
                self.check_below(&others, nranks, FaultKind::Peer, &offsets);
            }
        }
        Peers { first: first.size, count }
    }

    /// An index into an array of `len` elements.
    pub fn array_index(&mut self, scalar: Scalar, len: i64) -> Expr {
        let index = self.index(scalar);
        let shown = self.below.iter().any(|&(s, bound)| s == scalar && bound <= len);
        if self.unit.options.checked && !shown && !below(len).contains(index.range) {
            self.check_below(&index.size, len, FaultKind::Array, std::slice::from_ref(&index.size));
            self.below.push((scalar, len));
        }
        index.size.expr()
    }

    fn check_below(&mut self, index: &Size, bound: i64, kind: FaultKind, offsets: &[Size]) {
        let bound = Size::Const(bound);
        self.fault_if(beyond(index, ">=", &bound), kind, offsets, &[bound]);
    }

    /// Ends the launch if `wrong` holds.
    pub fn fault_if(&mut self, wrong: Expr, kind: FaultKind, offsets: &[Size], extents: &[Size]) {
        let site = self.site();
        let exprs = |sizes: &[Size]| sizes.iter().map(Size::expr).collect();
        let (offsets, extents) = (exprs(offsets), exprs(extents));
        let fault = Stmt::Fault { kind, site, dim: 0, operand: 0, offsets, extents };
        self.push(Stmt::If { cond: wrong, then: vec![fault], other: Vec::new() });
    }
}

/// `a op b` without sign.
fn beyond(a: &Size, op: &str, b: &Size) -> Expr {
    let [a, b] = [a, b].map(|size| match size {
        Size::Const(0..) => size.expr(),
        // A negative 32-bit number is a large one of 64 bits too.
        size => Expr::call("uint64_t", [&size.expr()]),
    });
    Expr::binary(&a, op, &b)
}

/// The numbers from 0 to below `bound`.
fn below(bound: i64) -> Interval {
    Interval { min: 0, max: bound - 1 }
}
