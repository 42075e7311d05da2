//! The engine's own functions: one signature a name, and host tasks behind everything else.

use std::collections::HashMap;

use crate::ir::effects::Scope;
use crate::ir::program::TensorDef;
use crate::ir::{CallbackArg, DType, Direction, Op, OpKind, ScalarType, Tensor};

use super::names::count;
use super::{Context, Position, rules};

/// The functions that a program names.
#[derive(Default)]
pub(super) struct Functions<'a> {
    /// Where each was named first.
    first: HashMap<&'a str, (Op, &'a [CallbackArg])>,
    /// The host tasks that no dispatch has followed so far.
    host_tasks: Vec<Op>,
}

/// What two arguments must have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tensor(DType, Direction),
    /// Of 64 bits, whatever it was.
    Integer,
    Float,
    Bool,
}

impl Kind {
    fn of(cx: &Context, arg: CallbackArg) -> Self {
        match arg {
            CallbackArg::Tensor(tensor, direction) => Kind::Tensor(cx.program.tensors[tensor].dtype, direction),
            CallbackArg::Scalar(scalar) => match cx.program.scalars[scalar].ty {
                ScalarType::I32 | ScalarType::I64 => Kind::Integer,
                ScalarType::F32 => Kind::Float,
                ScalarType::Bool => Kind::Bool,
            },
        }
    }

    fn text(self) -> String {
        match self {
            Kind::Tensor(dtype, direction) => format!("a tensor of {dtype} {}", direction.name()),
            Kind::Integer => "an integer".into(),
            Kind::Float => "an f32".into(),
            Kind::Bool => "a bool".into(),
        }
    }
}

impl<'a> Functions<'a> {
    /// The rules on one op.
    pub fn check(&mut self, cx: &mut Context<'a>, here: Position) {
        match cx.kind(here.op) {
            OpKind::Extern { task, args, .. } => self.signature(cx, here.op, &cx.program.tasks[*task].name, args),
            OpKind::HostTask { name, args } => {
                self.signature(cx, here.op, name, args);
                if here.scope == Scope::Host {
                    self.host_tasks.push(here.op);
                    host_task(cx, here, name, args);
                }
            }
            OpKind::Dispatch { .. } | OpKind::Collective(_) if here.scope == Scope::Host => {
                for op in self.host_tasks.drain(..) {
                    let names = cx.names;
                    cx.find(&rules::HOST_TASK, op, "a host task stands before what ranks do")
                        .note(format!("{}{}", names.op(here.op), names.at(here.op)))
                        .hint("host tasks run when the ranks have done their part: move it to the end");
                }
            }
            _ => {}
        }
    }

    fn signature(&mut self, cx: &mut Context<'a>, op: Op, name: &'a str, args: &'a [CallbackArg]) {
        let &mut (first, known) = self.first.entry(name).or_insert((op, args));
        let kinds = args.iter().zip(known).map(|(&a, &b)| (Kind::of(cx, a), Kind::of(cx, b)));
        let differs = kinds.enumerate().find(|(_, (a, b))| a != b);
        let message = match differs {
            Some((index, (a, b))) => {
                format!("argument {index} of {name} is {}, but before it was {}", a.text(), b.text())
            }
            None if args.len() != known.len() => {
                format!("{name} is given {}, but before {}", count(args.len(), "argument"), known.len())
            }
            None => return,
        };
        let names = cx.names;
        cx.find(&rules::SIGNATURE, op, message)
            .note(format!("{}{}", names.op(first), names.at(first)))
            .hint("one name is one function; give the other one a name of its own");
    }
}

fn host_task(cx: &mut Context, here: Position, name: &str, args: &[CallbackArg]) {
    if here.nested {
        cx.find(&rules::HOST_TASK, here.op, "a host task stands inside a loop or an if")
            .note("it runs once a launch, when the ranks have done their part")
            .hint("move it to the end of the host driver");
    }
    for arg in args {
        if let CallbackArg::Tensor(tensor, _) = *arg {
            whole(cx, here.op, name, tensor);
        }
    }
}

/// A host task sees tensors of the host driver only.
fn whole(cx: &mut Context, op: Op, function: &str, tensor: Tensor) {
    let names = cx.names;
    let name = names.tensor(tensor);
    let (what, hint) = match cx.program.tensors[tensor].def {
        TensorDef::HostParam(..) => return,
        TensorDef::HostSlice(src, _) => ("one rank's part", format!("pass the whole: {}", names.tensor(src))),
        _ => ("a window", "store what it needs into an output of the entry".into()),
    };
    cx.find(
        &rules::HOST_TASK_ARGUMENT,
        op,
        format!("{function} takes tensors of the host driver, but {name} is {what}"),
    )
    .note(names.tensor_is(tensor))
    .hint(hint);
}
