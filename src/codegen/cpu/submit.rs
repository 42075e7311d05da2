//! How an entry runs its tasks.
//!
//! While no task of the rank is pending, a task that cannot block is simply called: what it could wait for has ended.
//! Otherwise it is submitted to the runtime, with what it touches and what it depends on.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::{Array, Op, OpKind, Task, Var};
use crate::passes::task_graph::{Access, Atom, Hull, Linear, Node, Root};

use super::abi::{Exit, Frame, SUBMIT_FAILED};
use super::function::{Function, Level, PLAIN};
use super::size::Size;
use crate::codegen::captures::{Capture, captures};

/// A task as its entry calls it.
struct Call {
    number: u32,
    /// Arguments, in memory.
    args: Value,
    blocks: Size,
}

impl Function<'_, '_> {
    /// Runs a task, or submits it.
    pub fn task(&mut self, op: Op) -> Result<()> {
        let tasks = self.tasks.clone();
        let node = tasks.node(op);
        let kind = &self.program().ops[op].kind;
        let captures = captures(self.program(), self.unit.arguments(), op);
        let blocks = match *kind {
            OpKind::Task { grid: Some(grid), .. } => self.size(grid.blocks),
            OpKind::Extern { blocks: Some(blocks), .. } => self.size(blocks),
            _ => Size::Const(1),
        };
        let args = self.stack_slot(8 * captures.len() as i64);
        for (index, &capture) in captures.iter().enumerate() {
            let value = self.capture(capture);
            let value = if self.unit.binding.offloaded { self.word(value) } else { value };
            self.b.ins().store(PLAIN, value, args, 8 * index as i32);
        }
        let roots = node.accesses.iter().map(|access| tasks.root(access.root)).collect();
        let all_of = node.all_of().filter_map(|task| self.numbers.get(&task).copied()).collect();
        let (callee, number) = self.unit.task(node, captures, roots, all_of)?;
        self.numbers.insert(node.task, number);
        let call = Call { number, args, blocks };

        // Where nothing comes after a single task, nothing could run while it blocks.
        let alone = node.last && blocks == Size::Const(1);
        let in_place = !self.unit.binding.offloaded && !node.defers && (!self.unit.may_block(node) || alone);
        let Some(callee) = callee.filter(|_| in_place) else {
            self.submit(&call, node);
            return Ok(());
        };
        let live = self.live();
        let (pending, idle, after) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(pending);
        self.b.ins().brif(live, pending, &[], idle, &[]);
        self.b.switch_to_block(pending);
        self.submit(&call, node);
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(idle);
        match blocks {
            Size::Const(1) => {
                let zero = self.b.ins().iconst(types::I64, 0);
                self.call_part(callee, &[args, zero]);
            }
            blocks => self.counted_loop(Size::Const(0), blocks, Size::Const(1), |f, block| {
                f.call_part(callee, &[args, block]);
                Ok(())
            })?,
        }
        self.set_handle(node.task, None);
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        Ok(())
    }

    /// A value as 64 bits: integers keep their sign.
    fn word(&mut self, value: Value) -> Value {
        match self.type_of(value) {
            types::I64 => value,
            types::F32 => {
                let bits = self.b.ins().bitcast(types::I32, MemFlagsData::new(), value);
                self.b.ins().uextend(types::I64, bits)
            }
            types::I8 => self.b.ins().uextend(types::I64, value),
            _ => self.b.ins().sextend(types::I64, value),
        }
    }

    fn live(&mut self) -> Value {
        let frame = self.frame;
        self.b.ins().load(types::I64, PLAIN, frame, offset_of!(Frame, live) as i32)
    }

    fn submit(&mut self, call: &Call, node: &Node) {
        let words: usize = node.accesses.iter().map(|access| 2 * access.part.len()).sum();
        let regions = self.stack_slot(8 * words as i64);
        let mut word = 0;
        for access in &node.accesses {
            self.part(access, |f, value| {
                f.b.ins().store(PLAIN, value, regions, 8 * word);
                word += 1;
            });
        }
        let deps = self.stack_slot(8 * node.latest().count() as i64);
        for (index, task) in node.latest().enumerate() {
            let handle = match self.handles.get(&task) {
                Some(&slot) => self.b.ins().load(types::I64, PLAIN, slot, 0),
                // It stands later: the verifier has said so.
                None => self.b.ins().iconst(types::I64, 0),
            };
            self.b.ins().store(PLAIN, handle, deps, 8 * index as i32);
        }
        let number = self.b.ins().iconst(types::I32, i64::from(call.number));
        let blocks = self.size_value(call.blocks);
        let hook = self.unit.hooks.submit as *const u8;
        let args = [self.frame, number, call.args, blocks, regions, deps];
        let handle = self.call(hook, Some(types::I64), &args).expect("the hook has a result");
        let failed = self.b.ins().icmp_imm_s(IntCC::Equal, handle, SUBMIT_FAILED as i64);
        self.unless(failed, |f| f.exit(Exit::Failed));
        self.set_handle(node.task, Some(handle));
    }

    /// Keeps the handle of the latest instance of a task that others depend on.
    fn set_handle(&mut self, task: Task, handle: Option<Value>) {
        if let Some(&slot) = self.handles.get(&task) {
            let handle = handle.unwrap_or_else(|| self.b.ins().iconst(types::I64, 0));
            self.b.ins().store(PLAIN, handle, slot, 0);
        }
    }

    /// First and last index of each dimension of an access.
    fn part(&mut self, access: &Access, mut store: impl FnMut(&mut Self, Value)) {
        let shape = match access.root {
            Root::Tensor(tensor) if !access.part.is_empty() => self.shape(tensor),
            _ => SmallVec::new(),
        };
        for (hull, extent) in access.part.iter().zip(shape) {
            let (first, last) = self.hull(hull.as_ref(), extent);
            let (first, last) = (self.size_value(first), self.size_value(last));
            store(self, first);
            store(self, last);
        }
    }

    /// A hull; one that reaches outside the tensor covers all of the dimension, as arithmetic may have wrapped.
    fn hull(&mut self, hull: Option<&Hull>, extent: Size) -> (Size, Size) {
        const WHOLE: (Size, Size) = (Size::Const(0), Size::Const(i64::MAX));
        let Some(hull) = hull else { return WHOLE };
        let (first, last) = (self.linear(&hull.first), self.linear(&hull.last));
        match (first, last, extent) {
            (Size::Const(0), last, _) if last == WHOLE.1 => WHOLE,
            (Size::Const(first @ 0..), Size::Const(last), Size::Const(extent)) if last < extent => {
                (Size::Const(first), Size::Const(last))
            }
            _ => {
                let (first, last, extent) = (self.size_value(first), self.size_value(last), self.size_value(extent));
                let starts = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, first, 0);
                let ends = self.b.ins().icmp(IntCC::SignedLessThan, last, extent);
                let inside = self.b.ins().band(starts, ends);
                let (zero, most) = (self.size_value(WHOLE.0), self.size_value(WHOLE.1));
                let first = self.b.ins().select(inside, first, zero);
                let last = self.b.ins().select(inside, last, most);
                (Size::Value(first), Size::Value(last))
            }
        }
    }

    fn linear(&mut self, form: &Linear) -> Size {
        let mut sum = Size::Const(form.constant);
        for &(atom, factor) in &form.terms {
            let value = match atom {
                Atom::Extent(extent) => self.extent(extent),
                Atom::Scalar(scalar) => self.size(scalar),
            };
            let term = self.mul(value, Size::Const(factor));
            sum = self.add(sum, term);
        }
        sum
    }

    /// Gives every task that another one depends on a place for its handle.
    pub fn make_handles(&mut self) {
        let tasks = self.tasks.clone();
        for task in tasks.nodes.iter().flat_map(Node::latest) {
            if !self.handles.contains_key(&task) {
                let slot = self.stack_slot(8);
                self.handles.insert(task, slot);
                self.set_handle(task, None);
            }
        }
    }

    /// Waits until all tasks of the entry have ended.
    pub fn drain(&mut self) {
        let live = self.live();
        let (pending, after) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(pending);
        self.b.ins().brif(live, pending, &[], after, &[]);
        self.b.switch_to_block(pending);
        let hook = self.unit.hooks.drain as *const u8;
        let failed = self.call(hook, Some(types::I32), &[self.frame]).expect("the hook has a result");
        self.unless(failed, |f| f.exit(Exit::Failed));
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
    }

    /// The entry itself uses a variable or array that tasks use too: they come first.
    pub fn sync_var(&mut self, var: Var) {
        if self.level == Level::Entry && self.shared.contains(&Capture::Var(var)) {
            self.drain();
        }
    }

    /// The same for an array.
    pub fn sync_array(&mut self, array: Array) {
        if self.level == Level::Entry && self.shared.contains(&Capture::Array(array)) {
            self.drain();
        }
    }
}
