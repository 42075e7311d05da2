//! The host driver: which entries each rank runs in a launch, and with what.

use cranelift_entity::SecondaryMap;

use super::machine::Stop;
use super::options::{Arg, Scalar as Passed};
use super::plan::{Numbers, Plan};
use super::registers::{Base, Next, Registers, View, Views};
use super::value::{Value, decode};
use crate::ir::program::{Param, TensorDef};
use crate::ir::{CallbackArg, Entry, Op, OpKind, Operand, Scalar, Tensor};

/// A dispatch that a rank runs.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The entry.
    pub entry: Entry,
    /// Values of its scalar parameters.
    pub scalars: Vec<(Scalar, Value)>,
    /// Its tensor parameters.
    pub views: Views,
}

/// What a launch is to do.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The dispatches of each rank, in order.
    pub ranks: Vec<Vec<Dispatch>>,
    /// Functions of the engine that are called behind them, with their scalars.
    pub host_tasks: Vec<(Op, Vec<Passed>)>,
}

/// Runs the host driver for a launch.
pub fn launch(plan: &Plan, launch: u32) -> Result<Launch, Stop> {
    let program = plan.program;
    let mut all = Launch { ranks: vec![Vec::new(); plan.nranks], host_tasks: Vec::new() };
    let Some(host) = &program.host else { return Ok(all) };
    let mut registers = Registers::new(plan, 0, SecondaryMap::new(), host.body);
    for (number, &param) in host.params.iter().enumerate() {
        if let (Param::Scalar(scalar), Arg::Bits(bits)) = (param, &plan.options.args[plan.args_of(launch) + number]) {
            let dtype = program.scalars[scalar].ty.dtype();
            registers.set(scalar, decode(&bits.to_ne_bytes()[..dtype.size() as usize], dtype));
        }
    }
    loop {
        let op = match registers.next(plan, None, false).map_err(|fault| Stop::Fault(fault, None))? {
            Next::Op(op) => op,
            Next::Drain | Next::End => return Ok(all),
            Next::TooLong => return Err(Stop::TooLong),
        };
        match &program.ops[op].kind {
            OpKind::Dispatch { entry, args, device } => {
                let rank = usize::try_from(registers.int(*device)).ok();
                if let Some(rank) = rank.and_then(|rank| all.ranks.get_mut(rank)) {
                    rank.push(dispatch(plan, &registers, *entry, args));
                }
            }
            OpKind::HostTask { args, .. } => {
                let scalars = args.iter().filter_map(CallbackArg::scalar);
                all.host_tasks.push((op, scalars.map(|scalar| registers.passed(plan, scalar)).collect()));
            }
            _ => {}
        }
    }
}

fn dispatch(plan: &Plan, host: &Registers, entry: Entry, args: &[Operand]) -> Dispatch {
    let program = plan.program;
    let mut dispatch = Dispatch { entry, scalars: Vec::new(), views: SecondaryMap::new() };
    for (&arg, &param) in args.iter().zip(&program.entries[entry].params) {
        match (arg, param) {
            (Operand::Scalar(arg), Param::Scalar(param)) => {
                dispatch.scalars.push((param, host.scalar_as(arg, program.scalars[param].ty)));
            }
            (Operand::Tensor(arg), Param::Tensor(param)) => {
                let (base, offset) = match program.tensors[program.root(arg)].def {
                    TensorDef::View(buffer) => (Base::Window(buffer), plan.layout.buffers[buffer].offset as i64),
                    TensorDef::HostParam(number, _) => (Base::Arg(number as usize), 0),
                    ref def => unreachable!("{def:?} in the host driver"),
                };
                dispatch.views[param] = Some(View { base, offset, strides: strides(plan, param) });
            }
            _ => unreachable!("kinds of arguments and parameters differ"),
        }
    }
    dispatch
}

/// Bytes between neighbours of a tensor without gaps.
fn strides(plan: &Plan, tensor: Tensor) -> Numbers {
    let mut strides = plan.shapes[tensor].clone();
    let mut stride = plan.program.tensors[tensor].dtype.size();
    for extent in strides.iter_mut().rev() {
        stride *= std::mem::replace(extent, stride);
    }
    strides
}
