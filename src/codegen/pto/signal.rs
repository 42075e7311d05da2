//! Signals: cells that one rank changes and another waits for.

use crate::ir::{NotifyOp, Scalar, ScalarType, Tensor, WaitCmp};

use super::function::Function;
use super::kernel::Stmt;

impl Function<'_, '_> {
    /// Changes a cell of `peer`.
    pub fn notify(&mut self, window: Tensor, peer: Scalar, at: &[Scalar], value: Scalar, op: NotifyOp) {
        let peer = self.peer(window, peer);
        let cell = self.element(window, Some(&peer), at);
        let value = self.value_as(value, ScalarType::I32);
        self.push(Stmt::Notify { cell, value, op });
    }

    /// Goes on when the cell compares.
    pub fn wait(&mut self, window: Tensor, at: &[Scalar], expected: Scalar, cmp: WaitCmp) {
        let cell = self.element(window, None, at);
        let expected = self.value_as(expected, ScalarType::I32);
        let site = self.site();
        self.push(Stmt::Wait { cell, expected, cmp, site });
    }

    /// Ends the task only when the cell is as expected: a wait where it stands, as the task does nothing else behind it.
    pub fn defer_wait(&mut self, window: Tensor, at: &[Scalar], expected: Scalar) {
        self.wait(window, at, expected, WaitCmp::Ge);
    }
}
