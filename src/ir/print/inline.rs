//! Which results are written inside the statement that uses them.
//!
//! An unnamed result with a single use moves there if nothing that stands in between could change what it reads, or
//! could happen although it fails. The text then means the same as the ops in their order.

use std::collections::HashMap;

use cranelift_entity::{EntitySet, SecondaryMap};

use crate::ir::effects::{Access, Place, effects};
use crate::ir::program::{Program, ScalarDef};
use crate::ir::{Array, BinaryOp, Block, Expr, Op, OpKind, Operand, Scalar, Tensor, Var};

/// Deepest expression that is written in one piece.
const MAX_DEPTH: u8 = 64;

/// The ops that use a value.
#[derive(Clone, Copy, Default)]
enum Users {
    #[default]
    None,
    One(Op),
    Many,
}

impl Users {
    fn add(&mut self, op: Op) {
        *self = if matches!(self, Users::None) { Users::One(op) } else { Users::Many };
    }
}

/// The values that are written where they are used.
pub(super) struct Inline {
    scalars: EntitySet<Scalar>,
    tensors: EntitySet<Tensor>,
    used: EntitySet<Scalar>,
}

impl Inline {
    pub(super) fn new(program: &Program) -> Self {
        let mut analysis = Analysis::new(program);
        let bodies = program.entries.values().map(|e| e.body).chain(program.host.as_ref().map(|h| h.body));
        for body in bodies {
            analysis.count_uses(body);
            analysis.place(body);
            analysis.limit_depth(body);
        }
        analysis.inline
    }

    /// The scalar has no statement of its own.
    pub(super) fn scalar(&self, scalar: Scalar) -> bool {
        self.scalars.contains(scalar)
    }

    /// The rank slice has no statement of its own.
    pub(super) fn tensor(&self, tensor: Tensor) -> bool {
        self.tensors.contains(tensor)
    }

    /// Some op uses the scalar.
    pub(super) fn is_used(&self, scalar: Scalar) -> bool {
        self.used.contains(scalar)
    }

    /// The op has no statement of its own.
    pub(super) fn op(&self, kind: &OpKind) -> bool {
        match *kind {
            OpKind::SliceRank { dst, .. } => self.tensor(dst),
            _ => kind.result().is_some_and(|dst| self.scalar(dst)),
        }
    }
}

/// The nearest statements after the present one, by index in the block, that a read must not move past.
struct Barriers {
    memory: usize,
    block: usize,
    vars: HashMap<Var, usize>,
    arrays: HashMap<Array, usize>,
}

const FAR: usize = usize::MAX;

impl Barriers {
    /// The first statement that the op must not move past.
    fn limit(&self, program: &Program, kind: &OpKind) -> usize {
        match kind {
            OpKind::Scalar { dst, expr: Expr::Binary(BinaryOp::Div | BinaryOp::Rem, ..) }
                if program.scalars[*dst].ty.is_int() =>
            {
                self.memory.min(self.block)
            }
            OpKind::VarGet { var, .. } => self.vars.get(var).copied().unwrap_or(FAR).min(self.block),
            OpKind::ArrayGet { array, .. } => {
                self.arrays.get(array).copied().unwrap_or(FAR).min(self.memory).min(self.block)
            }
            OpKind::Read { .. } => self.memory.min(self.block),
            _ => FAR,
        }
    }

    fn pass(&mut self, program: &Program, kind: &OpKind, index: usize) {
        if !kind.blocks().is_empty() {
            self.block = index;
        }
        for effect in effects(program, kind) {
            match effect.place {
                Place::Memory { .. } if effect.access != Access::Read => self.memory = index,
                Place::Var(var) if effect.access.is_write() => {
                    self.vars.insert(var, index);
                }
                Place::Array(array) if effect.access.is_write() => {
                    self.arrays.insert(array, index);
                }
                _ => {}
            }
        }
    }
}

struct Analysis<'p> {
    program: &'p Program,
    users: SecondaryMap<Scalar, Users>,
    tensor_users: SecondaryMap<Tensor, Users>,
    inline: Inline,
}

impl<'p> Analysis<'p> {
    fn new(program: &'p Program) -> Self {
        let inline = Inline { scalars: EntitySet::new(), tensors: EntitySet::new(), used: EntitySet::new() };
        let (users, tensor_users) = (SecondaryMap::new(), SecondaryMap::new());
        Self { program, users, tensor_users, inline }
    }

    fn count_uses(&mut self, body: Block) {
        let program = self.program;
        program.walk(body, &mut |op| {
            let kind = &program.ops[op].kind;
            kind.for_each_scalar(|s| {
                self.users[s].add(op);
                self.inline.used.insert(s);
            });
            if let OpKind::Dispatch { args, .. } = kind {
                for arg in args {
                    if let Operand::Tensor(t) = *arg {
                        self.tensor_users[t].add(op);
                    }
                }
            } else if let OpKind::SliceRank { src, .. } = *kind {
                // A slice of a slice is no expression: the inner one needs a statement.
                self.tensor_users[src] = Users::Many;
            }
        });
    }

    /// Decides block by block, from the last op to the first: a user is decided before what it uses.
    fn place(&mut self, block: Block) {
        let program = self.program;
        let ops = &program.blocks[block];
        for inner in ops.iter().flat_map(|op| program.ops[*op].kind.blocks()) {
            self.place(inner);
        }
        // The index of the statement that each op of the block is written in.
        let mut statement: HashMap<Op, usize> = HashMap::new();
        let mut barriers = Barriers { memory: FAR, block: FAR, vars: HashMap::new(), arrays: HashMap::new() };
        for (index, &op) in ops.iter().enumerate().rev() {
            let kind = &program.ops[op].kind;
            let users = match *kind {
                OpKind::Scalar { expr: Expr::Copy(_), .. } => Users::None,
                OpKind::SliceRank { dst, .. } if program.tensors[dst].name.is_none() => self.tensor_users[dst],
                _ => match kind.result() {
                    Some(dst) if program.scalars[dst].name.is_none() => self.users[dst],
                    _ => Users::None,
                },
            };
            let target = match users {
                Users::One(user) => statement.get(&user).copied(),
                _ => None,
            };
            match target.filter(|&at| barriers.limit(program, kind) >= at) {
                Some(at) => {
                    statement.insert(op, at);
                    match *kind {
                        OpKind::SliceRank { dst, .. } => _ = self.inline.tensors.insert(dst),
                        _ => _ = kind.result().map(|dst| self.inline.scalars.insert(dst)),
                    }
                }
                None => {
                    statement.insert(op, index);
                }
            }
            barriers.pass(program, kind, index);
        }
    }

    /// Gives a statement to every result that would make an expression too deep.
    fn limit_depth(&mut self, body: Block) {
        let program = self.program;
        let mut depths: SecondaryMap<Scalar, u8> = SecondaryMap::new();
        program.walk(body, &mut |op| {
            let kind = &program.ops[op].kind;
            let Some(dst) = kind.result().filter(|&dst| self.inline.scalar(dst)) else { return };
            let mut depth = 0;
            kind.for_each_scalar(|s| {
                if matches!(program.scalars[s].def, ScalarDef::Result(_)) {
                    depth = depth.max(depths[s]);
                }
            });
            if depth < MAX_DEPTH {
                depths[dst] = depth + 1;
            } else {
                self.inline.scalars.remove(dst);
            }
        });
    }
}
