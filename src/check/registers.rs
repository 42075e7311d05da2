//! What a rank or a task computes with, and its place in the program: scalars, variables, arrays, and control flow.

use std::rc::Rc;

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

use super::fault::{Fault, Step};
use super::options::Scalar as Passed;
use super::plan::{Numbers, Plan};
use super::value::{Value, cast, float_op, int_op, wrap};
use crate::ir::program::TensorDef;
use crate::ir::{Array, Block, Buffer, DType, Expr, FaultKind, Op, OpKind, Scalar, ScalarType, Tensor, UnaryOp, Var};

use Value::{Float, Int};

/// The memory that a tensor is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The windows, of any rank.
    Window(Buffer),
    /// An argument, of the own rank.
    Arg(usize),
}

/// A tensor: where its first element lies, and bytes between neighbours.
#[derive(Clone, Debug)]
pub struct View {
    /// The memory.
    pub base: Base,
    /// Bytes from its beginning.
    pub offset: i64,
    /// Bytes, one number a dimension.
    pub strides: Numbers,
}

impl View {
    /// Where the element at these indices lies.
    pub fn at(&self, indices: &[i64]) -> i64 {
        self.offset + self.strides.iter().zip(indices).map(|(stride, index)| stride * index).sum::<i64>()
    }
}

/// Tensors by name.
pub type Views = SecondaryMap<Tensor, Option<View>>;

/// Where the program goes on, in each block that is open.
#[derive(Clone, Debug)]
struct Frame {
    block: Block,
    next: usize,
    /// The loop whose body it is: index, next value, end, step.
    turns: Option<(Scalar, i128, i128, i128)>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This op, which is no scalar work and no control flow.
    Op(Op),
    /// A variable that tasks use too: they come first.
    Drain,
    /// Nothing.
    End,
    /// More work than a run may be.
    TooLong,
}

/// Most work of one run: scalar ops, turns of loops, and other ops.
pub const MOST_WORK: u64 = 50_000_000;

/// Scalars and the like of the host driver, an entry or a task.
#[derive(Clone, Debug)]
pub struct Registers {
    /// The rank.
    pub rank: usize,
    /// Scalars.
    pub scalars: Vec<Value>,
    /// Tensors.
    pub views: Rc<Views>,
    /// Scalar work and turns of loops so far.
    pub work: u64,
    vars: SecondaryMap<Var, Option<Value>>,
    arrays: SecondaryMap<Array, Vec<Value>>,
    frames: SmallVec<[Frame; 4]>,
}

impl Registers {
    /// Begins with a block.
    pub fn new(plan: &Plan, rank: usize, views: Views, body: Block) -> Self {
        Self {
            rank,
            scalars: plan.scalars.clone(),
            views: Rc::new(views),
            work: 0,
            vars: SecondaryMap::new(),
            arrays: SecondaryMap::new(),
            frames: smallvec::smallvec![Frame { block: body, next: 0, turns: None }],
        }
    }

    /// A task that begins with what its entry knows now.
    pub fn inside(&self, body: Option<Block>) -> Self {
        Self {
            rank: self.rank,
            scalars: self.scalars.clone(),
            views: self.views.clone(),
            work: 0,
            vars: SecondaryMap::new(),
            arrays: SecondaryMap::new(),
            frames: body.map(|block| Frame { block, next: 0, turns: None }).into_iter().collect(),
        }
    }

    /// Does scalar work and follows loops and ifs up to the next other op. Variables of the entry are in `outer`; in the
    /// entry itself, which has none, `pending` says that tasks are under way.
    pub fn next(&mut self, plan: &Plan, mut outer: Option<&mut Registers>, pending: bool) -> Step<Next> {
        loop {
            let Some(frame) = self.frames.last_mut() else { return Ok(Next::End) };
            if self.work > MOST_WORK {
                return Ok(Next::TooLong);
            }
            let Some(&op) = plan.program.blocks[frame.block].get(frame.next) else {
                match &mut frame.turns {
                    Some((index, next, end, step)) if *next < *end => {
                        self.scalars[index.index()] = Int(*next);
                        *next += *step;
                        frame.next = 0;
                        self.work += 1;
                    }
                    _ => _ = self.frames.pop(),
                }
                continue;
            };
            let kind = &plan.program.ops[op].kind;
            if pending && outer.is_none() && is_shared(plan, kind) {
                return Ok(Next::Drain);
            }
            frame.next += 1;
            self.work += 1;
            if !self.control(plan, op, outer.as_deref_mut())? {
                return Ok(Next::Op(op));
            }
        }
    }

    /// Runs an op if it is scalar work or control flow.
    fn control(&mut self, plan: &Plan, op: Op, outer: Option<&mut Registers>) -> Step<bool> {
        let program = plan.program;
        match program.ops[op].kind {
            OpKind::Scalar { dst, ref expr } => {
                let value = self.expr(plan, op, expr, program.scalars[dst].ty)?;
                self.set(dst, value);
            }
            OpKind::VarDef { var, init: value } | OpKind::VarSet { var, value } => {
                let value = self.scalar_as(value, program.vars[var].ty);
                self.of_var(plan, var, outer).vars[var] = Some(value);
            }
            OpKind::VarGet { dst, var } => {
                let value = self.of_var(plan, var, outer).vars[var].unwrap_or(Int(0));
                self.set(dst, value);
            }
            OpKind::ArrayDef { array, fill } => {
                let fill = self.scalar_as(fill, program.arrays[array].ty);
                self.of_array(plan, array, outer).arrays[array] = vec![fill; plan.arrays[array]];
            }
            OpKind::ArrayGet { dst, array, index } => {
                let index = self.array_index(plan, op, array, index)?;
                let value = self.of_array(plan, array, outer).arrays[array][index];
                self.set(dst, value);
            }
            OpKind::ArraySet { array, index, value } => {
                let value = self.scalar_as(value, program.arrays[array].ty);
                let index = self.array_index(plan, op, array, index)?;
                self.of_array(plan, array, outer).arrays[array][index] = value;
            }
            OpKind::For { index, first, end, step, body } => {
                let (first, end, step) = (self.int(first), self.int(end), self.int(step));
                if step <= 0 {
                    return Err(Fault::new(op, FaultKind::Step, &[step], &[]));
                }
                self.turns(body, index, first, end, step);
            }
            OpKind::Ranks { index, first, end, body } => self.turns(body, index, self.int(first), self.int(end), 1),
            OpKind::If { cond, then, other } => {
                let taken = if self.holds(cond) { Some(then) } else { other };
                self.frames.extend(taken.map(|block| Frame { block, next: 0, turns: None }));
            }
            OpKind::Manual { body } => self.frames.push(Frame { block: body, next: 0, turns: None }),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn turns(&mut self, block: Block, index: Scalar, first: i64, end: i64, step: i64) {
        // The end of a block begins the next turn.
        let turns = Some((index, first.into(), end.into(), step.into()));
        self.frames.push(Frame { block, next: usize::MAX, turns });
    }

    /// An open loop whose next turns come to an op.
    pub fn turns_again(&self, plan: &Plan, op: Op) -> bool {
        self.frames.iter().any(|frame| {
            let mut inside = false;
            plan.program.walk(frame.block, &mut |other| inside |= other == op);
            inside && frame.turns.is_some_and(|(_, next, end, _)| next < end)
        })
    }

    fn of_var<'a>(&'a mut self, plan: &Plan, var: Var, outer: Option<&'a mut Registers>) -> &'a mut Registers {
        outer.filter(|_| plan.outer_vars[var]).unwrap_or(self)
    }

    fn of_array<'a>(&'a mut self, plan: &Plan, array: Array, outer: Option<&'a mut Registers>) -> &'a mut Registers {
        outer.filter(|_| plan.outer_arrays[array]).unwrap_or(self)
    }

    fn array_index(&self, plan: &Plan, op: Op, array: Array, index: Scalar) -> Step<usize> {
        let (index, len) = (self.int(index), plan.arrays[array]);
        let inside = usize::try_from(index).ok().filter(|&index| index < len);
        inside.ok_or_else(|| Fault::new(op, FaultKind::Array, &[index], &[len as i64]))
    }

    fn expr(&self, plan: &Plan, op: Op, expr: &Expr, ty: ScalarType) -> Step<Value> {
        let program = plan.program;
        Ok(match *expr {
            Expr::Copy(a) => self.scalar_as(a, ty),
            Expr::Unary(UnaryOp::Not, a) => Int((!self.holds(a)).into()),
            Expr::Unary(UnaryOp::Neg, a) => match self.scalar_as(a, ty) {
                Int(a) => wrap(Int(-a), ty.dtype()),
                Float(a) => Float(-a),
            },
            Expr::Binary(binary, a, b) => {
                let operands = if binary.is_comparison() { program.common_type(a, b) } else { ty };
                match (self.scalar_as(a, operands), self.scalar_as(b, operands)) {
                    (Int(a), Int(b)) => {
                        let division = || Fault::new(op, FaultKind::Division, &[], &[]);
                        wrap(Int(int_op(binary, a, b).ok_or_else(division)?), ty.dtype())
                    }
                    (Float(a), Float(b)) => float_op(binary, a, b),
                    (a, b) => unreachable!("{a:?} {binary} {b:?}"),
                }
            }
            Expr::Cast(a) => {
                let from = program.scalars[a].ty.dtype();
                cast(self.scalar(a), from, ty.dtype())
            }
            Expr::Select { cond, then, other } => self.scalar_as(if self.holds(cond) { then } else { other }, ty),
            Expr::Rank(window) => {
                let number = plan.domain(self.buffer(plan, window)).iter().position(|&rank| rank == self.rank);
                Int(number.expect("a window is dispatched to the ranks of its domain") as i128)
            }
            Expr::NRanks(window) => Int(plan.domain(self.buffer(plan, window)).len() as i128),
        })
    }

    /// The buffer that a window is a view of.
    pub fn buffer(&self, plan: &Plan, window: Tensor) -> Buffer {
        match (&plan.program.tensors[plan.program.root(window)].def, &self.views[window]) {
            (&TensorDef::View(buffer), _) | (_, &Some(View { base: Base::Window(buffer), .. })) => buffer,
            (def, _) => unreachable!("{def:?} is no window"),
        }
    }

    /// Gives a scalar its value.
    pub fn set(&mut self, scalar: Scalar, value: Value) {
        self.scalars[scalar.index()] = value;
    }

    /// A scalar's value.
    pub fn scalar(&self, scalar: Scalar) -> Value {
        self.scalars[scalar.index()]
    }

    /// A scalar in a type; integer literals adapt.
    pub fn scalar_as(&self, scalar: Scalar, ty: ScalarType) -> Value {
        match self.scalar(scalar) {
            Int(value) if ty == ScalarType::F32 => Float(value as f32),
            value => wrap(value, ty.dtype()),
        }
    }

    /// A scalar as an element.
    pub fn as_element(&self, scalar: Scalar, dtype: DType) -> Value {
        match self.scalar(scalar) {
            Int(value) if dtype.is_float() => wrap(Float(value as f32), dtype),
            value => wrap(value, dtype),
        }
    }

    /// A condition holds.
    pub fn holds(&self, scalar: Scalar) -> bool {
        self.scalar(scalar) != Int(0)
    }

    /// An integer.
    pub fn int(&self, scalar: Scalar) -> i64 {
        match self.scalar(scalar) {
            Int(value) => value as i64,
            Float(value) => unreachable!("{value} is no integer"),
        }
    }

    /// A scalar as a function of the engine gets it.
    pub fn passed(&self, plan: &Plan, scalar: Scalar) -> Passed {
        match self.scalar_as(scalar, plan.program.scalars[scalar].ty) {
            Int(value) => Passed::Int(value as i64),
            Float(value) => Passed::Float(value),
        }
    }

    /// Integers.
    pub fn ints(&self, scalars: &[Scalar]) -> Numbers {
        scalars.iter().map(|&scalar| self.int(scalar)).collect()
    }
}

/// The op uses a variable or an array that tasks use too.
fn is_shared(plan: &Plan, kind: &OpKind) -> bool {
    match *kind {
        OpKind::VarDef { var, .. } | OpKind::VarSet { var, .. } | OpKind::VarGet { var, .. } => plan.task_vars[var],
        OpKind::ArrayDef { array, .. } | OpKind::ArraySet { array, .. } | OpKind::ArrayGet { array, .. } => {
            plan.task_arrays[array]
        }
        _ => false,
    }
}
