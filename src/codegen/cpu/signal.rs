//! Signals: cells that one rank changes and another waits for.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Value, types};

use crate::error::Result;
use crate::ir::{NotifyOp, Scalar, ScalarType, Tensor, WaitCmp};

use super::abi::{BELL_STRIDE, Exit, Frame};
use super::function::{Function, PLAIN};
use super::jit::ADDRESS;
use super::size::Size;

const X86: bool = cfg!(target_arch = "x86_64");

impl Function<'_, '_> {
    /// Changes a cell of `peer`, and wakes `peer` if it sleeps.
    ///
    /// A waiter announces its sleep and then looks at the cell once more; here the cell changes and then the
    /// announcement is looked at. With a fence between the two steps on both sides, one of the two sees the other. The
    /// waiter makes both fences if it can.
    pub fn notify(&mut self, window: Tensor, peer: Scalar, at: &[Scalar], value: Scalar, op: NotifyOp) -> Result<()> {
        let peer = self.peer(window, peer);
        let cell = self.element(window, Some(peer), at);
        self.report_notify(peer, cell);
        let value = self.value_as(value, ScalarType::I32);
        let mapped = |f: &mut Self| {
            f.order_far();
            f.signal_mapped(peer, cell, value, op);
            Ok(())
        };
        self.by_reach(peer, mapped, |f| {
            f.signal_far(peer, cell, value, op);
            Ok(())
        })
    }

    fn signal_mapped(&mut self, peer: Size, cell: Value, value: Value, op: NotifyOp) {
        let fenced = self.unit.binding.fenced;
        match op {
            NotifyOp::Add => _ = self.b.ins().atomic_rmw(types::I32, PLAIN, AtomicRmwOp::Add, cell, value),
            NotifyOp::Set if fenced => _ = self.b.ins().atomic_rmw(types::I32, PLAIN, AtomicRmwOp::Xchg, cell, value),
            // Every store of x86 releases; an atomic one would be a fence as well.
            NotifyOp::Set if X86 => _ = self.b.ins().store(PLAIN, value, cell, 0),
            NotifyOp::Set => _ = self.b.ins().atomic_store(PLAIN, value, cell),
        }
        // A locked instruction is a full barrier; elsewhere a later load may still overtake the cell's store.
        if fenced && !X86 {
            self.b.ins().fence();
        }
        let bells = self.frame_field(ADDRESS, offset_of!(Frame, bells));
        let distance = self.mul(peer, Size::Const(BELL_STRIDE as i64));
        let bell = self.add(Size::Value(bells), distance);
        let bell = self.size_value(bell);
        let sleepers = self.b.ins().atomic_load(types::I32, PLAIN, bell);
        let (ring, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(ring);
        self.b.ins().brif(sleepers, ring, &[], on, &[]);
        self.b.switch_to_block(ring);
        let peer = self.size_value(peer);
        let peer = self.b.ins().ireduce(types::I32, peer);
        self.call(self.unit.hooks.ring as *const u8, None, &[self.frame, peer]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Leaves the end of the task open until the cell is as expected.
    pub fn defer_wait(&mut self, window: Tensor, at: &[Scalar], expected: Scalar) {
        let cell = self.element(window, None, at);
        let expected = self.value_as(expected, ScalarType::I32);
        let actual = self.b.ins().atomic_load(types::I32, PLAIN, cell);
        let early = self.b.ins().icmp(IntCC::SignedLessThan, actual, expected);
        let (note, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(early, note, &[], on, &[]);
        self.b.switch_to_block(note);
        let site = self.site();
        let site = self.b.ins().iconst(types::I32, i64::from(site));
        let hook = self.unit.hooks.defer as *const u8;
        let args = [self.frame, cell, expected, site];
        let failed = self.call(hook, Some(types::I32), &args).expect("the hook has a result");
        self.unless(failed, |f| f.exit(Exit::Failed));
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Goes on at once if the cell compares; otherwise the runtime blocks.
    pub fn wait(&mut self, window: Tensor, at: &[Scalar], expected: Scalar, cmp: WaitCmp) {
        let cell = self.element(window, None, at);
        let expected = self.value_as(expected, ScalarType::I32);
        let actual = self.b.ins().atomic_load(types::I32, PLAIN, cell);
        let (differs, code) = match cmp {
            WaitCmp::Eq => (IntCC::NotEqual, 0),
            WaitCmp::Ge => (IntCC::SignedLessThan, 1),
        };
        let differs = self.b.ins().icmp(differs, actual, expected);
        let (block, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(block);
        self.b.ins().brif(differs, block, &[], on, &[]);
        self.b.switch_to_block(block);
        let code = self.b.ins().iconst(types::I32, code);
        let site = self.site();
        let site = self.b.ins().iconst(types::I32, i64::from(site));
        let hook = self.unit.hooks.wait as *const u8;
        let args = [self.frame, cell, expected, code, site];
        let failed = self.call(hook, Some(types::I32), &args).expect("the hook has a result");
        self.unless(failed, |f| f.exit(Exit::Failed));
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }
}
