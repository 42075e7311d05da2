//! The ops that a running program may have to name.

use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::{BinaryOp, CallbackArg, Op, OpKind, Program, Task, Tensor};

/// An op that can go wrong, block, or be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The op as program text, such as `wait signal[src, 0] >= 1`.
    pub text: String,
    /// `file:line` where it was written; may be empty.
    pub place: String,
    /// Name of its task; empty outside tasks.
    pub task: String,
    /// Its tensor operands.
    pub operands: Vec<SiteOperand>,
    /// What it requires: the two sides as program text, and how they must compare.
    pub required: Option<(String, BinaryOp, String)>,
}

/// A tensor operand of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteOperand {
    /// Its name in program text.
    pub name: String,
    /// `window[3072, 4096] i8`, with the shape in numbers where known.
    pub ty: String,
    /// Its extents, -1 where they are bound at launch.
    pub shape: Vec<i64>,
}

/// The sites of a program, numbered as code asks for them.
#[derive(Default)]
pub struct Sites {
    numbers: SecondaryMap<Op, Option<u32>>,
    ops: Vec<(Op, Option<Task>)>,
}

impl Sites {
    /// Numbers the tasks first: ranks tell each other where they are, while what else has a number depends on what is
    /// known of a rank when compiling.
    pub fn new(program: &Program) -> Self {
        let mut sites = Self::default();
        for entry in program.entries.values() {
            program.walk(entry.body, &mut |op| {
                if let Some((task, _)) = program.ops[op].kind.task() {
                    sites.number(op, Some(task));
                }
            });
        }
        sites
    }

    /// The number of an op's site.
    pub fn number(&mut self, op: Op, task: Option<Task>) -> u32 {
        *self.numbers[op].get_or_insert_with(|| {
            self.ops.push((op, task));
            self.ops.len() as u32 - 1
        })
    }

    /// All sites, by number.
    pub fn finish(self, program: &Program, known: Known) -> Vec<Site> {
        let text = Text::new(program);
        let operand = |tensor: Tensor| SiteOperand {
            name: text.tensor(tensor),
            ty: text.tensor_type(tensor),
            shape: program.tensors[tensor]
                .shape
                .iter()
                .map(|&e| program.extents.eval(e, known).unwrap_or(-1))
                .collect(),
        };
        let site = |(op, task): (Op, Option<Task>)| Site {
            text: text.op(op),
            place: program.place(program.ops[op].loc),
            task: task.map_or_else(String::new, |task| program.tasks[task].name.clone()),
            operands: operands(&program.ops[op].kind).into_iter().map(operand).collect(),
            required: match program.ops[op].kind {
                OpKind::Require { cmp, a, b, .. } => Some((text.scalar(a), cmp, text.scalar(b))),
                _ => None,
            },
        };
        self.ops.into_iter().map(site).collect()
    }
}

/// The tensors that an op names, destination first.
pub fn operands(op: &OpKind) -> SmallVec<[Tensor; 2]> {
    match *op {
        OpKind::Put { dst, src, .. } | OpKind::Get { dst, src, .. } | OpKind::GetReduce { dst, src, .. } => {
            smallvec![dst, src]
        }
        OpKind::Slice { src: tensor, .. }
        | OpKind::Flatten { src: tensor, .. }
        | OpKind::Read { src: tensor, .. }
        | OpKind::Load { src: tensor, .. }
        | OpKind::RemoteLoad { src: tensor, .. }
        | OpKind::Write { dst: tensor, .. }
        | OpKind::Store { dst: tensor, .. }
        | OpKind::RemoteStore { dst: tensor, .. }
        | OpKind::Notify { window: tensor, .. }
        | OpKind::Wait { window: tensor, .. }
        | OpKind::DeferWait { window: tensor, .. } => smallvec![tensor],
        OpKind::Task { ref options, .. } => options.predicate.iter().map(|p| p.tensor).collect(),
        OpKind::Extern { ref args, ref options, .. } => {
            let tensors = args.iter().filter_map(|arg| match *arg {
                CallbackArg::Tensor(tensor, _) => Some(tensor),
                CallbackArg::Scalar(_) => None,
            });
            options.predicate.iter().map(|p| p.tensor).chain(tensors).collect()
        }
        _ => SmallVec::new(),
    }
}
