//! One function in the making: what its code has at hand, and control flow.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, SigRef, Type, Value, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::FunctionBuilder;
use smallvec::SmallVec;

use crate::codegen::index::Number;
use crate::error::Result;
use crate::ir::op::TileOrScalar;
use crate::ir::{Array, Block, Op, OpKind, Program, Scalar, Task, Tensor, Tile, Var};
use crate::passes::task_graph::Tasks;

use super::abi::{Exit, FaultKind, Frame};
use super::compiler::Compiler;
use super::jit::ADDRESS;
use super::locals::VarPlace;
use super::size::Size;
use crate::codegen::captures::Capture;

/// Which part of a program a function is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The host driver.
    Host,
    /// The part of the host driver that calls the engine's functions when the ranks have done theirs.
    HostTasks,
    /// An entry.
    Entry,
    /// A task of an entry.
    Task(Task),
}

/// An access to memory that is there and aligned for its type.
pub const PLAIN: MemFlagsData = MemFlagsData::new().with_notrap().with_aligned();

/// A load from memory that nobody writes during a launch.
const CONSTANT: MemFlagsData = PLAIN.with_readonly().with_can_move();

/// A function in the making.
pub struct Function<'c, 'p> {
    pub unit: &'c mut Compiler<'p>,
    pub b: FunctionBuilder<'c>,
    /// The op that code is being made for.
    pub op: Op,
    pub frame: Value,
    pub scalars: HashMap<Scalar, Value>,
    /// Where tensors begin: addresses, or for windows offsets in the windows.
    pub bases: HashMap<Tensor, Size>,
    pub vars: HashMap<Var, VarPlace>,
    pub arrays: HashMap<Array, Value>,
    /// Tiles that stand for the memory they were loaded from.
    pub views: HashMap<Tile, Value>,
    /// Scalars that checks have shown to be at least 0 and below a bound, in the open blocks.
    pub below: Vec<(Scalar, i64)>,
    /// Indices of rank loops of which this function executes its own rank's turn only.
    pub own_turns: HashSet<Scalar>,
    pub level: Level,
    /// The tasks of the entry.
    pub tasks: Rc<Tasks>,
    /// Variables and arrays of the entry that its tasks use.
    pub shared: HashSet<Capture>,
    /// Numbers of the tasks so far.
    pub numbers: HashMap<Task, u32>,
    /// Where the handles of tasks are that others depend on.
    pub handles: HashMap<Task, Value>,
    /// Transfers of this function may be under way.
    pub transfers: bool,
    /// None is, at this place.
    pub settled: bool,
    params: Vec<Value>,
    signatures: Vec<(SmallVec<[Type; 8]>, Option<Type>, SigRef)>,
}

impl<'c, 'p> Function<'c, 'p> {
    pub fn new(unit: &'c mut Compiler<'p>, mut b: FunctionBuilder<'c>, level: Level) -> Self {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let params = b.block_params(entry).to_vec();
        Self {
            unit,
            b,
            op: Op::from_u32(0),
            frame: params[0],
            scalars: HashMap::new(),
            bases: HashMap::new(),
            vars: HashMap::new(),
            arrays: HashMap::new(),
            views: HashMap::new(),
            below: Vec::new(),
            own_turns: HashSet::new(),
            level,
            tasks: Rc::default(),
            shared: HashSet::new(),
            numbers: HashMap::new(),
            handles: HashMap::new(),
            transfers: false,
            settled: false,
            params: params[1..].to_vec(),
            signatures: Vec::new(),
        }
    }

    pub fn program(&self) -> &'p Program {
        self.unit.program
    }

    /// The parameters after the frame.
    pub fn params(&self) -> &[Value] {
        &self.params
    }

    pub fn finish(mut self, config: TargetFrontendConfig) {
        self.b.seal_all_blocks();
        self.b.finalize(config);
    }

    /// Makes something from outside known in this function.
    pub fn bind_capture(&mut self, capture: Capture, value: Value) {
        match capture {
            Capture::Scalar(scalar) => {
                self.scalars.insert(scalar, value);
            }
            Capture::Tensor(tensor) => {
                self.bases.insert(tensor, Size::Value(value));
            }
            Capture::Var(var) => {
                self.vars.insert(var, VarPlace::Memory(value));
            }
            Capture::Array(array) => {
                self.arrays.insert(array, value);
            }
        }
    }

    pub fn capture(&mut self, capture: Capture) -> Value {
        match capture {
            Capture::Scalar(scalar) => self.value(scalar),
            Capture::Tensor(tensor) => {
                let base = self.base(tensor);
                self.size_value(base)
            }
            Capture::Var(var) => match self.vars[&var] {
                VarPlace::Memory(address) => address,
                VarPlace::Register(register) => self.b.use_var(register),
            },
            Capture::Array(array) => self.arrays[&array],
        }
    }

    // The frame.

    /// A pointer or number of the frame that is constant during a launch.
    pub fn frame_field(&mut self, ty: Type, offset: usize) -> Value {
        let frame = self.frame;
        self.constant_load(ty, frame, offset as i64)
    }

    /// A load from memory that is constant during a launch.
    pub fn constant_load(&mut self, ty: Type, address: Value, offset: i64) -> Value {
        self.b.ins().load(ty, CONSTANT, address, offset as i32)
    }

    /// This rank.
    pub fn rank(&mut self) -> Size {
        match self.unit.binding.rank {
            Some(rank) => Size::Const(i64::from(rank)),
            None => {
                let rank = self.frame_field(types::I32, offset_of!(Frame, rank));
                Size::Value(self.b.ins().uextend(types::I64, rank))
            }
        }
    }

    /// Records that the rank has come to this op.
    pub fn mark_place(&mut self, op: Op) {
        self.op = op;
        let site = self.site();
        let place = self.frame_field(ADDRESS, offset_of!(Frame, place));
        let site = self.b.ins().iconst(types::I64, i64::from(site));
        self.b.ins().store(PLAIN, site, place, 0);
    }

    /// The number of the present op's site.
    pub fn site(&mut self) -> u32 {
        let task = match self.level {
            Level::Task(task) => Some(task),
            Level::Host | Level::HostTasks | Level::Entry => None,
        };
        self.unit.sites.number(self.op, task)
    }

    // Calls and returns.

    /// Calls a function of this process.
    pub fn call(&mut self, function: *const u8, result: Option<Type>, args: &[Value]) -> Option<Value> {
        let params: SmallVec<[Type; 8]> = args.iter().map(|&arg| self.b.func.dfg.value_type(arg)).collect();
        let known = self.signatures.iter().find(|(p, r, _)| *p == params && *r == result);
        let signature = match known {
            Some(&(_, _, signature)) => signature,
            None => {
                let signature = self.unit.jit.signature(&params, result);
                let signature = self.b.import_signature(signature);
                self.signatures.push((params, result, signature));
                signature
            }
        };
        let callee = self.b.ins().iconst(ADDRESS, function as i64);
        let call = self.b.ins().call_indirect(signature, callee, args);
        self.b.inst_results(call).first().copied()
    }

    /// Calls a function of this program and returns if it does not end well.
    pub fn call_part(&mut self, callee: cranelift_module::FuncId, args: &[Value]) {
        let callee = self.unit.jit.import(callee, self.b.func);
        let mut all: SmallVec<[Value; 8]> = SmallVec::from_slice(&[self.frame]);
        all.extend_from_slice(args);
        let call = self.b.ins().call(callee, &all);
        let exit = self.b.inst_results(call)[0];
        self.unless(exit, |f| {
            f.b.ins().return_(&[exit]);
        });
    }

    /// Returns.
    pub fn exit(&mut self, exit: Exit) {
        let exit = self.b.ins().iconst(types::I32, exit as i64);
        self.b.ins().return_(&[exit]);
    }

    /// Goes on if `wrong` is zero; otherwise runs `cold`, which returns.
    pub fn unless(&mut self, wrong: Value, cold: impl FnOnce(&mut Self)) {
        let (bad, good) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(bad);
        self.b.ins().brif(wrong, bad, &[], good, &[]);
        self.b.switch_to_block(bad);
        cold(self);
        self.b.switch_to_block(good);
    }

    // Ops.

    /// Makes code for every op of a block.
    pub fn block(&mut self, block: Block) -> Result<()> {
        let program = self.program();
        let ops = &program.blocks[block];
        let known = self.below.len();
        // A loop comes here again from its end.
        self.settled = false;
        for (index, &op) in ops.iter().enumerate() {
            self.op(op, ops.get(index + 1).copied())?;
        }
        self.below.truncate(known);
        self.settled = false;
        Ok(())
    }

    fn op(&mut self, op: Op, next: Option<Op>) -> Result<()> {
        self.op = op;
        self.stop_before(op);
        self.count_bytes(op);
        self.settle_before(op);
        match &self.program().ops[op].kind {
            OpKind::Scalar { dst, expr } => self.scalar(*dst, expr),
            OpKind::VarDef { var, init } => self.var_def(*var, *init),
            OpKind::VarGet { dst, var } => self.var_get(*dst, *var),
            OpKind::VarSet { var, value } => self.var_set(*var, *value),
            OpKind::ArrayDef { array, fill } => self.array_def(*array, *fill)?,
            OpKind::ArrayGet { dst, array, index } => self.array_get(*dst, *array, *index),
            OpKind::ArraySet { array, index, value } => self.array_set(*array, *index, *value),
            OpKind::For { index, first, end, step, body } => self.for_loop(*index, *first, *end, *step, *body)?,
            OpKind::If { cond, then, other } => self.if_else(*cond, *then, *other)?,
            OpKind::Task { .. } | OpKind::Extern { .. } => self.task(op)?,
            OpKind::Manual { body } => self.block(*body)?,
            OpKind::DeferWait { window, at, expected } => self.defer_wait(*window, at, *expected),
            OpKind::Slice { dst, src, at } => self.slice(*dst, *src, at),
            OpKind::Flatten { dst, src } => self.flatten(*dst, *src),
            OpKind::Read { dst, src, at } => self.read(*dst, *src, at)?,
            OpKind::Write { dst, at, value } => self.write(*dst, at, *value)?,
            OpKind::Load { dst, src, at } => self.load(*dst, *src, None, at, next)?,
            OpKind::RemoteLoad { dst, src, peer, at } => self.load(*dst, *src, Some(*peer), at, next)?,
            OpKind::Store { src, dst, at } => self.store(*src, *dst, None, at, crate::ir::Atomic::None)?,
            OpKind::RemoteStore { src, dst, peer, at, atomic } => self.store(*src, *dst, Some(*peer), at, *atomic)?,
            OpKind::Full { dst, value } => self.full(*dst, *value)?,
            OpKind::Copy { dst, src } => self.tile_copy(*dst, *src)?,
            OpKind::Cast { dst, src } => self.tile_cast(*dst, *src)?,
            OpKind::Tile { op, dst, a, b: TileOrScalar::Tile(b) } => self.tile_binary(*op, *dst, *a, *b)?,
            OpKind::Tile { op, dst, a, b: TileOrScalar::Scalar(b) } => self.tile_scalar(*op, *dst, *a, *b)?,
            OpKind::Reduce { op, axis, dst, src } => self.reduce(*op, *axis, *dst, *src)?,
            OpKind::Put { dst, peer, src, region, atomic, .. } => {
                self.put(*dst, *peer, *src, region.as_ref(), *atomic)?;
            }
            OpKind::Get { dst, src, peer, region, .. } => self.get(*dst, *src, *peer, region.as_ref())?,
            OpKind::GetReduce { op, dst, src, peers, region } => {
                self.get_reduce(*op, *dst, *src, *peers, region.as_ref())?;
            }
            OpKind::Require { cmp, a, b, peer } => self.require(*cmp, *a, *b, *peer),
            OpKind::Agree { theirs, mine, peer, .. } => self.agree(*theirs, *mine, *peer),
            OpKind::Notify { window, peer, at, value, op } => self.notify(*window, *peer, at, *value, *op)?,
            OpKind::Wait { window, at, expected, cmp } => {
                self.wait(*window, at, *expected, *cmp);
                self.stop();
            }
            OpKind::Ranks { .. } | OpKind::Dispatch { .. } if self.level == Level::HostTasks => {}
            OpKind::HostTask { name, args } if self.level == Level::HostTasks => self.host_task(name, args),
            OpKind::Ranks { index, first, end, body } => self.ranks(*index, *first, *end, *body)?,
            OpKind::Dispatch { args, device, .. } => self.dispatch(op, args, *device)?,
            // Named by what uses them.
            OpKind::Domain { .. } | OpKind::AllocWindow { .. } | OpKind::Window { .. } | OpKind::SliceRank { .. } => {}
            OpKind::HostTask { .. } => {}
            OpKind::Collective(_) => unreachable!("collectives are written out before"),
        }
        Ok(())
    }

    fn if_else(&mut self, cond: Scalar, then: Block, other: Option<Block>) -> Result<()> {
        let cond = self.value(cond);
        let (yes, join) = (self.b.create_block(), self.b.create_block());
        let no = if other.is_some() { self.b.create_block() } else { join };
        self.b.ins().brif(cond, yes, &[], no, &[]);
        self.b.switch_to_block(yes);
        self.block(then)?;
        self.b.ins().jump(join, &[]);
        if let Some(other) = other {
            self.b.switch_to_block(no);
            self.block(other)?;
            self.b.ins().jump(join, &[]);
        }
        self.b.switch_to_block(join);
        Ok(())
    }

    fn for_loop(&mut self, index: Scalar, first: Scalar, end: Scalar, step: Scalar, body: Block) -> Result<()> {
        let (first, end, step) = (self.size(first), self.size(end), self.size(step));
        if !matches!(step, Size::Const(1..)) {
            let value = self.size_value(step);
            let wrong = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, value, 1);
            self.fault_if(wrong, FaultKind::Step, &[step], &[]);
        }
        self.counted_loop(first, end, step, |f, i| {
            f.scalars.insert(index, i);
            f.block(body)
        })
    }

    /// Runs `body` with first, first + step, … while below `end`, all `i64`; `step` is positive.
    pub fn counted_loop(
        &mut self,
        first: Size,
        end: Size,
        step: Size,
        body: impl FnOnce(&mut Self, Value) -> Result<()>,
    ) -> Result<()> {
        let may_wrap = end.constant().zip(step.constant()).is_none_or(|(end, step)| end.checked_add(step).is_none());
        let (first, end) = (self.size_value(first), self.size_value(end));
        let (again, done) = (self.b.create_block(), self.b.create_block());
        let index = self.b.append_block_param(again, types::I64);
        let some = self.b.ins().icmp(IntCC::SignedLessThan, first, end);
        self.b.ins().brif(some, again, &[BlockArg::Value(first)], done, &[]);
        self.b.switch_to_block(again);
        body(self, index)?;
        let (more, next) = if may_wrap {
            // The index is below the end, so the distance fits 64 bits without sign, where index + step might not.
            let left = self.b.ins().isub(end, index);
            let step = self.size_value(step);
            (self.b.ins().icmp(IntCC::UnsignedGreaterThan, left, step), self.b.ins().iadd(index, step))
        } else {
            let step = self.size_value(step);
            let next = self.b.ins().iadd(index, step);
            (self.b.ins().icmp(IntCC::SignedLessThan, next, end), next)
        };
        self.b.ins().brif(more, again, &[BlockArg::Value(next)], done, &[]);
        self.b.switch_to_block(done);
        Ok(())
    }

    /// Type of a value.
    pub fn type_of(&self, value: Value) -> Type {
        self.b.func.dfg.value_type(value)
    }
}
