//! The host driver, compiled for the rank that executes it.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use smallvec::SmallVec;

use crate::error::Result;
use crate::ir::program::{Host, Param, TensorDef};
use crate::ir::{Block, CallbackArg, Op, OpKind, Operand, Program, Scalar, Tensor};

use super::abi::Frame;
use super::function::Function;
use super::jit::ADDRESS;
use super::size::Size;
use crate::codegen::versions::Version;

impl Function<'_, '_> {
    /// The whole driver, or its tasks on the host.
    pub fn host(&mut self, host: &Host) -> Result<()> {
        for (number, &param) in host.params.iter().enumerate() {
            if let Param::Scalar(scalar) = param {
                let bits = self.launch_argument(number);
                let value = self.scalar_from_bits(bits, self.program().scalars[scalar].ty);
                self.scalars.insert(scalar, value);
            }
        }
        self.block(host.body)
    }

    /// Calls a function of the engine with host tensors: those of all ranks, where the process drives them all.
    pub fn host_task(&mut self, name: &str, args: &[CallbackArg]) {
        let program = self.program();
        let tensors = args.iter().filter_map(|arg| match *arg {
            CallbackArg::Tensor(tensor, _) => Some(tensor),
            CallbackArg::Scalar(_) => None,
        });
        for tensor in tensors.collect::<SmallVec<[Tensor; 8]>>() {
            if let TensorDef::HostParam(number, _) = program.tensors[tensor].def {
                let address = self.launch_argument(number as usize);
                self.bases.insert(tensor, Size::Value(address));
            }
        }
        let block = self.b.ins().iconst(types::I64, 0);
        self.callback(name.into(), args, block, Size::Const(1));
    }

    /// This rank's word of a launch argument.
    fn launch_argument(&mut self, number: usize) -> Value {
        let args = self.frame_field(ADDRESS, offset_of!(Frame, args));
        let row = number as i64 * i64::from(self.unit.binding.nranks);
        let rank = self.rank();
        let word = self.add(rank, Size::Const(row));
        let offset = self.mul(word, Size::Const(size_of::<u64>() as i64));
        let address = self.add(Size::Value(args), offset);
        let address = self.size_value(address);
        self.constant_load(types::I64, address, 0)
    }

    /// A loop over ranks. If all that it does is done by the rank whose index the loop has reached, this rank goes
    /// straight to its own turn.
    pub fn ranks(&mut self, index: Scalar, first: Scalar, end: Scalar, body: Block) -> Result<()> {
        let (first, end) = (self.size(first), self.size(end));
        if !each_rank_for_itself(self.program(), index, body) {
            return self.counted_loop(first, end, Size::Const(1), |f, i| {
                let i = f.b.ins().ireduce(types::I32, i);
                f.scalars.insert(index, i);
                f.block(body)
            });
        }
        let rank = self.rank();
        let (first, end, rank) = (self.size_value(first), self.size_value(end), self.size_value(rank));
        let begun = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, first, rank);
        let open = self.b.ins().icmp(IntCC::SignedLessThan, rank, end);
        let covered = self.b.ins().band(begun, open);
        let (own, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(covered, own, &[], after, &[]);
        self.b.switch_to_block(own);
        let turn = self.b.ins().ireduce(types::I32, rank);
        self.scalars.insert(index, turn);
        self.own_turns.insert(index);
        self.block(body)?;
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        Ok(())
    }

    /// Runs an entry if this rank is the device.
    pub fn dispatch(&mut self, op: Op, args: &[Operand], device: Scalar) -> Result<()> {
        let Some(version) = self.unit.versions.of(op) else { return Ok(()) };
        if self.own_turns.contains(&self.program().original(device)) {
            return self.run_entry(version, args);
        }
        let (device, rank) = (self.size(device), self.rank());
        let (device, rank) = (self.size_value(device), self.size_value(rank));
        let own = self.b.ins().icmp(IntCC::Equal, device, rank);
        let (run, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(own, run, &[], after, &[]);
        self.b.switch_to_block(run);
        self.run_entry(version, args)?;
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        Ok(())
    }

    fn run_entry(&mut self, version: Version, args: &[Operand]) -> Result<()> {
        let callee = self.unit.entry(version)?;
        let passed = self.unit.passed_params(version);
        let values = passed.into_iter().map(|(number, param)| match (args[number], param) {
            (Operand::Tensor(tensor), _) => self.host_tensor(tensor),
            (Operand::Scalar(scalar), Param::Scalar(param)) => self.value_as(scalar, self.program().scalars[param].ty),
            (Operand::Scalar(scalar), Param::Tensor(_)) => self.value(scalar),
        });
        let values: SmallVec<[Value; 8]> = values.collect();
        self.call_part(callee, &values);
        Ok(())
    }

    /// A tensor as an argument: an address, or the offset of a window.
    fn host_tensor(&mut self, tensor: Tensor) -> Value {
        match self.program().tensors[self.program().root(tensor)].def {
            TensorDef::HostParam(number, _) => self.launch_argument(number as usize),
            TensorDef::View(buffer) => {
                let offset = self.unit.binding.layout.buffers[buffer].offset as i64;
                self.b.ins().iconst(ADDRESS, offset)
            }
            ref def => unreachable!("{def:?} is no tensor of the host driver"),
        }
    }
}

/// Every dispatch in the body of a loop over ranks is for the rank that the loop has reached, and one turn does not
/// depend on another.
fn each_rank_for_itself(program: &Program, index: Scalar, body: Block) -> bool {
    let mut own = true;
    program.walk(body, &mut |op| {
        own &= match program.ops[op].kind {
            OpKind::Dispatch { device, .. } => program.original(device) == index,
            OpKind::VarSet { .. } | OpKind::ArraySet { .. } => false,
            _ => true,
        };
    });
    own
}
