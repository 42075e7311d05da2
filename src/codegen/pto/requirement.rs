//! What must hold when a program runs, checked or not.

use crate::ir::{BinaryOp, FaultKind, Scalar, Tensor};

use super::expr::Size;
use super::function::Function;
use super::kernel::Expr;

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
        let opposite = match cmp {
            BinaryOp::Eq => "!=",
            BinaryOp::Ne => "==",
            BinaryOp::Lt => ">=",
            BinaryOp::Le => ">",
            BinaryOp::Gt => "<=",
            _ => "<",
        };
        let wrong = Expr::binary(&left.expr(), opposite, &right.expr());
        let peer = peer.map_or(Size::Const(-1), |peer| {
            let number = self.size(peer);
            // Ranks have their numbers from the window that one of the two was read from.
            match sides.into_iter().find_map(|side| self.program().window_of(side)) {
                Some(window) => self.world_rank(window, number),
                None => number,
            }
        });
        self.fault_if(wrong, kind, &[left, peer], &[right]);
    }

    /// The rank of the world that has a number in a window's domain.
    fn world_rank(&self, window: Tensor, number: Size) -> Size {
        let ranks = &self.unit.domains.ranks[self.domain(window)];
        let of = |index: usize| ranks.get(index).map(|&rank| i64::from(rank));
        let (first, second) = (of(0).unwrap_or(0), of(1).unwrap_or(1));
        let step = second - first;
        if ranks.windows(2).all(|pair| i64::from(pair[1]) - i64::from(pair[0]) == step) {
            return number.mul(&Size::Const(step)).add(&Size::Const(first));
        }
        let number = number.expr().as_operand();
        let cases = ranks.iter().enumerate().map(|(index, rank)| format!("{number} == {index} ? {rank} : "));
        Size::wide(Expr::compound(cases.collect::<String>() + "-1"))
    }
}
