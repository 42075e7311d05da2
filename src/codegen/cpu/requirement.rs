//! What must hold when a program runs, checked or not.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;

use crate::ir::{BinaryOp, Scalar};
use crate::verify::range::Interval;

use super::abi::FaultKind;
use super::function::Function;
use super::size::Size;

impl Function<'_, '_> {
    /// Ends the launch unless `a cmp b`.
    pub fn require(&mut self, cmp: BinaryOp, a: Scalar, b: Scalar, peer: Option<Scalar>) {
        self.demand(FaultKind::Require, cmp, a, b, peer);
    }

    /// Ends the launch unless a peer calls what this rank calls.
    pub fn agree(&mut self, theirs: Scalar, mine: Scalar, peer: Scalar) {
        self.demand(FaultKind::Agree, BinaryOp::Eq, theirs, mine, Some(peer));
    }

    fn demand(&mut self, kind: FaultKind, cmp: BinaryOp, left: Scalar, right: Scalar, peer: Option<Scalar>) {
        let sides = [left, right];
        let [left, right] = sides.map(|side| self.size(side));
        let (a, b) = (self.size_value(left), self.size_value(right));
        let holds = self.int_binary(cmp, a, b, Interval::ALL);
        let wrong = self.b.ins().icmp_imm_u(IntCC::Equal, holds, 0);
        self.unless(wrong, |f| {
            let peer = peer.map_or(Size::Const(-1), |peer| {
                let number = f.size(peer);
                // Ranks have their numbers from the window that one of the two was read from.
                match sides.into_iter().find_map(|side| f.program().window_of(side)) {
                    Some(window) => f.world_rank(window, number),
                    None => number,
                }
            });
            f.fault(kind, &[left, peer], &[right]);
        });
    }
}
