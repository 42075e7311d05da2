//! Random scalar programs.

use pld::ir::builder::Builder;
use pld::ir::types::{BinaryOp, UnaryOp};
use pld::ir::{Array, DType, Direction, Operand, Program, Scalar, ScalarType, Tensor, Var};
use smallvec::smallvec;

use crate::choices::Choices;
use crate::ranks::{Arg, Bytes};

const TYPES: [ScalarType; 4] = [ScalarType::I64, ScalarType::I32, ScalarType::F32, ScalarType::Bool];

/// Element types that a scalar of each type is written to and read from.
const ELEMENTS: [&[DType]; 4] = [
    &[DType::I64, DType::U64, DType::U32],
    &[DType::I32, DType::I8, DType::U8, DType::I16, DType::U16],
    &[DType::F32, DType::F16, DType::BF16],
    &[DType::Bool],
];

const LEN: i64 = 64;

/// One tensor parameter an element type, in the order of `ELEMENTS`.
fn dtypes() -> Vec<DType> {
    ELEMENTS.concat()
}

struct Maker {
    b: Builder,
    choices: Choices,
    /// Values in scope, by type.
    pool: [Vec<Scalar>; 4],
    vars: Vec<(usize, Var)>,
    arrays: Vec<(usize, Array)>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    written: i64,
    depth: usize,
}

impl Maker {
    fn literal(&mut self, ty: usize) -> Scalar {
        match TYPES[ty] {
            ScalarType::F32 => {
                let value = self.choices.of(&[0.0, 1.0, -1.5, 0.1, 1e30, f32::NAN, f32::INFINITY, -3e9]);
                self.b.float(value)
            }
            ScalarType::Bool => {
                let value = self.choices.below(2) == 1;
                self.b.bool(value)
            }
            _ => {
                let value = self.choices.of(&[0, 1, -1, 2, 7, 100, -3, i32::MIN.into(), i64::MAX, i64::MIN]);
                let literal = self.b.int(value);
                // A literal that does not fit its use wraps there; a cast gives it a type of its own.
                if i32::try_from(value).is_ok() { literal } else { self.b.cast(TYPES[ty], literal) }
            }
        }
    }

    fn pick(&mut self, ty: usize) -> Scalar {
        match self.choices.below(6) {
            0 => self.literal(ty),
            _ if self.pool[ty].is_empty() => self.literal(ty),
            _ => {
                let at = self.choices.below(self.pool[ty].len());
                self.pool[ty][at]
            }
        }
    }

    fn add(&mut self, ty: usize, value: Scalar) {
        self.pool[ty].push(value);
    }

    fn type_of(&self, value: Scalar) -> usize {
        let ty = self.b.program().scalars[value].ty;
        TYPES.iter().position(|&t| t == ty).unwrap()
    }

    /// An index that is mostly in range.
    fn at(&mut self) -> Scalar {
        let index = self.pick(1);
        if self.choices.below(12) == 0 {
            return index;
        }
        let len = self.b.int(LEN);
        let small = self.b.binary(BinaryOp::Rem, index, len);
        let zero = self.b.int(0);
        self.b.binary(BinaryOp::Max, small, zero)
    }

    fn compute(&mut self) {
        let ty = self.choices.below(4);
        let value = match self.choices.below(8) {
            0 => {
                let from = self.choices.below(4);
                let from = self.pick(from);
                self.b.cast(TYPES[ty], from)
            }
            1 => {
                let (cond, then, other) = (self.pick(3), self.pick(ty), self.pick(ty));
                self.b.select(cond, then, other)
            }
            2 => {
                let a = self.pick(ty);
                let op = if TYPES[ty] == ScalarType::Bool { UnaryOp::Not } else { UnaryOp::Neg };
                self.b.unary(op, a)
            }
            3 => {
                let of = self.choices.below(3);
                let (a, b) = (self.pick(of), self.pick(of));
                use BinaryOp::*;
                let op = self.choices.of(&[Eq, Ne, Lt, Le, Gt, Ge]);
                self.b.binary(op, a, b)
            }
            4 => {
                let dtype = self.choices.below(ELEMENTS[ty].len());
                let tensor = self.inputs[ELEMENTS[..ty].concat().len() + dtype];
                let at = self.at();
                self.b.read(tensor, &[at])
            }
            _ => {
                use BinaryOp::*;
                let (op, other) = match TYPES[ty] {
                    ScalarType::Bool => (self.choices.of(&[And, Or]), ty),
                    ScalarType::F32 => (self.choices.of(&[Add, Sub, Mul, Div, Min, Max]), ty),
                    // Integers of both widths mix.
                    _ => (self.choices.of(&[Add, Sub, Mul, Min, Max, Div, Rem]), self.choices.below(2)),
                };
                let (a, b) = (self.pick(ty), self.pick(other));
                self.b.binary(op, a, b)
            }
        };
        let ty = self.type_of(value);
        self.add(ty, value);
    }

    fn write(&mut self) {
        let ty = self.choices.below(4);
        let value = self.pick(ty);
        let dtype = self.choices.below(ELEMENTS[ty].len());
        let tensor = self.outputs[ELEMENTS[..ty].concat().len() + dtype];
        let at = self.b.int(self.written % LEN);
        self.written += 1;
        self.b.write(tensor, &[at], value);
    }

    fn local(&mut self) {
        let ty = self.choices.below(4);
        let value = self.pick(ty);
        match self.choices.below(6) {
            0 => {
                let var = self.b.var(None, TYPES[ty], value);
                self.vars.push((ty, var));
            }
            1 => {
                let len = self.choices.of(&[1, 5, LEN, 2000]);
                let len = self.b.extent_int(len);
                let array = self.b.array(None, TYPES[ty], len, value);
                self.arrays.push((ty, array));
            }
            2 | 3 if !self.vars.is_empty() => {
                let at = self.choices.below(self.vars.len());
                let (ty, var) = self.vars[at];
                if self.choices.below(2) == 0 {
                    let value = self.pick(ty);
                    self.b.var_set(var, value);
                } else {
                    let value = self.b.var_get(var);
                    self.add(ty, value);
                }
            }
            _ if !self.arrays.is_empty() => {
                let at = self.choices.below(self.arrays.len());
                let (ty, array) = self.arrays[at];
                // Outside of tasks all is right: no edge says if a mistake there comes before one in a task.
                let index = if self.depth == 0 { self.b.int(0) } else { self.at() };
                if self.choices.below(2) == 0 {
                    let value = self.pick(ty);
                    self.b.array_set(array, index, value);
                } else {
                    let value = self.b.array_get(array, index);
                    self.add(ty, value);
                }
            }
            _ => {}
        }
    }

    /// What is defined in a block goes out of scope with it.
    fn scoped(&mut self, build: impl FnOnce(&mut Self)) {
        let pool = self.pool.clone();
        let (vars, arrays) = (self.vars.clone(), self.arrays.clone());
        self.depth += 1;
        build(self);
        self.depth -= 1;
        (self.pool, self.vars, self.arrays) = (pool, vars, arrays);
    }

    fn control(&mut self) {
        if self.choices.below(2) == 0 {
            let cond = self.pick(3);
            self.b.if_begin(cond);
            self.scoped(Self::statements);
            if self.choices.below(2) == 0 {
                self.b.else_begin();
                self.scoped(Self::statements);
            }
            self.b.if_end();
        } else {
            let first = self.choices.of(&[0, 3, -2, i64::MAX - 5, i64::MIN + 1]);
            let count = self.choices.between(-1, 4);
            let step = self.choices.of(&[1, 1, 2, i64::MAX]);
            let end = first.saturating_add(count.saturating_mul(step));
            let (mut first, mut end, mut step) = (self.b.int(first), self.b.int(end), self.b.int(step));
            // A step, positive or not, that is only known when the loop begins.
            if self.choices.below(8) == 0 {
                (first, end, step) = (self.b.int(0), self.b.int(3), self.pick(1));
            }
            let index = self.b.for_begin(first, end, step);
            self.scoped(|maker| {
                maker.add(0, index);
                maker.statements();
            });
            self.b.for_end();
        }
    }

    fn statements(&mut self) {
        for _ in 0..self.choices.between(1, 8) {
            if self.choices.ended() {
                return;
            }
            match self.choices.below(8) {
                0 if self.depth < 3 => self.control(),
                1 | 2 => self.write(),
                3 => self.local(),
                _ => self.compute(),
            }
        }
    }
}

/// A program of one rank: entry-level scalars, and tasks that use them.
pub fn program(choices: Vec<u32>) -> Program {
    let mut b = Builder::new("scalars");
    let entry = b.entry_begin("e");
    let len = b.extent_int(LEN);
    let names = |prefix: &str| dtypes().into_iter().map(|d| (format!("{prefix}_{d}"), d)).collect::<Vec<_>>();
    let mut params = |direction, prefix| -> Vec<Tensor> {
        let all = names(prefix).into_iter();
        all.map(|(name, dtype)| b.param_tensor(&name, dtype, smallvec![len], direction).unwrap()).collect()
    };
    let (inputs, outputs) = (params(Direction::In, "x"), params(Direction::Out, "y"));
    let scalars: Vec<Scalar> = TYPES.iter().map(|&ty| b.param_scalar(&format!("s_{ty}"), ty).unwrap()).collect();
    let pool = [vec![scalars[0]], vec![scalars[1]], vec![scalars[2]], vec![scalars[3]]];
    let choices = Choices::new(choices);
    let (vars, arrays) = (Vec::new(), Vec::new());
    let mut maker = Maker { b, choices, pool, vars, arrays, inputs, outputs, written: 0, depth: 0 };
    for task in 0..3 {
        // Outside of tasks there are no tensors.
        for _ in 0..maker.choices.below(6) {
            maker.local();
        }
        maker.b.at_begin(&format!("task_{task}"), Default::default());
        maker.scoped(|maker| {
            while !maker.choices.ended() && maker.choices.below(6) > 0 {
                maker.statements();
            }
            maker.write();
        });
        maker.b.task_end();
    }
    let mut b = maker.b;
    b.entry_end();
    let one = b.extent_world();
    let mut tensors = |direction, prefix| -> Vec<Operand> {
        let all = names(prefix).into_iter();
        let all: Vec<Tensor> =
            all.map(|(name, dtype)| b.host_tensor(&name, dtype, smallvec![one, len], direction).unwrap()).collect();
        all.into_iter().map(Operand::Tensor).collect()
    };
    let mut args = tensors(Direction::In, "hx");
    args.extend(tensors(Direction::Out, "hy"));
    let scalars: Vec<Scalar> = TYPES.iter().map(|&ty| b.host_scalar(&format!("h_{ty}"), ty).unwrap()).collect();
    let (zero, world) = (b.int(0), b.world());
    let r = b.ranks_begin(zero, world);
    for arg in &mut args {
        if let Operand::Tensor(tensor) = arg {
            *tensor = b.slice_rank(*tensor, r);
        }
    }
    args.extend(scalars.into_iter().map(Operand::Scalar));
    b.dispatch(entry, r, args);
    b.ranks_end();
    b.finish().unwrap()
}

/// Its arguments.
pub fn args() -> Vec<Arg> {
    let bytes = |dtype: DType| -> Vec<u8> {
        let len = (LEN * dtype.size()) as usize;
        match dtype {
            DType::Bool => (0..len).map(|i| (i % 3 == 1).into()).collect(),
            DType::F32 => f32::bytes(&(0..LEN).map(|i| (i - 30) as f32 * 1.25).collect::<Vec<_>>()),
            // Every pattern is a number here; of the floats, some are subnormal or not finite.
            _ => (0..len).map(|i| (i * 37 + i / 5 + 3) as u8).collect(),
        }
    };
    let inputs = dtypes().into_iter().map(|d| Arg::Ranked(vec![bytes(d)]));
    let outputs = dtypes().into_iter().map(|d| Arg::Ranked(vec![vec![0; (LEN * d.size()) as usize]]));
    let scalars = [-5i64 as u64, 7, u64::from(2.5f32.to_bits()), 1].map(Arg::Bits);
    inputs.chain(outputs).chain(scalars).collect()
}
