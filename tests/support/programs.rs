//! Random programs.
//!
//! A program is made of a string of bytes, each a choice, so that a shorter or smaller string makes a simpler program:
//! property tests can shrink it. The programs keep to the rules of the language: types agree, offsets and peers are
//! inside, sizes are constant. Their waits need not end, though; they are made to be printed, verified and compiled.

use pld::ir::builder::Builder;
use pld::ir::extent::Shape;
use pld::ir::op::{Dims, Operand, Region, Staging, TileOrScalar};
use pld::ir::program::{BufferSize, DomainRanks};
use pld::ir::*;

/// The program that a string of choices makes.
pub fn program(choices: &[u8]) -> Program {
    let mut generator = Generator::new(choices);
    generator.entry();
    generator.host();
    generator.b.finish().unwrap_or_else(|mistakes| panic!("the generator breaks a rule: {}", mistakes[0]))
}

/// Names that collide with each other, with dimensions, and with what the printer makes up.
const NAMES: &[&str] = &["v", "acc", "x", "y", "v1", "v1_2", "t1", "_v1", "i", "n", "D", "c1", "out", "r", "acc_2"];

const TILE_OPS: &[TileOp] = &[TileOp::Add, TileOp::Sub, TileOp::Mul, TileOp::Div, TileOp::Max, TileOp::Min];

/// Parameters of the entry, and what is in scope at a point of it.
#[derive(Clone, Default)]
struct Scope {
    ints: Vec<Scalar>,
    floats: Vec<Scalar>,
    bools: Vec<Scalar>,
    int_vars: Vec<Var>,
    float_vars: Vec<Var>,
    arrays: Vec<Array>,
    tiles: Vec<Tile>,
    /// Of shape `[2, D]` or larger, f32, readable and writable.
    parts: Vec<Tensor>,
}

struct Generator<'a> {
    choices: std::slice::Iter<'a, u8>,
    b: Builder,
    scope: Scope,
    depth: usize,
    d: Extent,
    n: Extent,
    entry: Option<Entry>,
    /// Tasks so far.
    tasks: Vec<Task>,
    /// Inside a manual scope.
    manual: bool,
    /// `tensor[8] i32 in`
    table: Tensor,
    /// `tensor[4, D] f16 inout`
    half: Tensor,
    /// `window[world, D] f32`
    rows: Tensor,
    /// `window[4, D] f16`
    half_window: Tensor,
    /// `window[world, 2] i32`
    signal: Tensor,
}

impl<'a> Generator<'a> {
    fn new(choices: &'a [u8]) -> Self {
        let mut b = Builder::new("random");
        let n = b.dim("n");
        let eight = b.extent_int(8);
        let d = b.constant("D", eight);
        let none = Tensor::from_u32(0);
        Self {
            choices: choices.iter(),
            b,
            scope: Scope::default(),
            depth: 0,
            d,
            n,
            entry: None,
            tasks: Vec::new(),
            manual: false,
            table: none,
            half: none,
            rows: none,
            half_window: none,
            signal: none,
        }
    }

    /// A number below `count`; 0 once the choices are used up.
    fn below(&mut self, count: usize) -> usize {
        self.choices.next().map_or(0, |&choice| usize::from(choice) % count)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())]) }
    }

    fn name(&mut self) -> Option<&'static str> {
        if self.below(2) == 0 { None } else { self.pick(NAMES) }
    }

    fn entry(&mut self) {
        let (world, d, n) = (self.b.extent_world(), self.d, self.n);
        let [two, four, eight] = [2, 4, 8].map(|v| self.b.extent_int(v));
        self.entry = Some(self.b.entry_begin("e"));
        let shape = |dims: &[Extent]| Shape::from_slice(dims);
        let names: Vec<&str> = (0..10)
            .map(|i| {
                let own = ["px", "py", "table", "half", "big", "rows", "halves", "signal", "me", "scale"][i];
                self.name().unwrap_or(own)
            })
            .collect();
        let x = self.b.param_tensor(names[0], DType::F32, shape(&[four, d]), Direction::InOut).unwrap();
        let y = self.b.param_tensor(names[1], DType::F32, shape(&[two, d]), Direction::InOut).unwrap();
        self.table = self.b.param_tensor(names[2], DType::I32, shape(&[eight]), Direction::In).unwrap();
        self.half = self.b.param_tensor(names[3], DType::F16, shape(&[four, d]), Direction::InOut).unwrap();
        self.b.param_tensor(names[4], DType::F32, shape(&[n, d]), Direction::In).unwrap();
        self.rows = self.b.param_window(names[5], DType::F32, shape(&[world, d])).unwrap();
        self.half_window = self.b.param_window(names[6], DType::F16, shape(&[four, d])).unwrap();
        self.signal = self.b.param_window(names[7], DType::I32, shape(&[world, two])).unwrap();
        let me = self.b.param_scalar(names[8], ScalarType::I32).unwrap();
        let scale = self.b.param_scalar(names[9], ScalarType::F32).unwrap();
        let flag = self.b.param_scalar("flag", ScalarType::Bool).unwrap();
        self.scope.parts = vec![x, y];
        self.scope.ints.push(me);
        self.scope.floats.push(scale);
        self.scope.bools.push(flag);
        if self.below(3) == 1 {
            self.b.manual_dep(self.rows);
        }
        for _ in 0..1 + self.below(3) {
            self.entry_statement();
        }
        self.task();
        self.b.entry_end();
    }

    fn entry_statement(&mut self) {
        match self.below(10) {
            0 | 1 => self.task(),
            2 => self.slice(),
            3 => self.definition(),
            4 if self.depth < 3 => self.loop_(Self::entry_statement),
            5 if self.depth < 3 => self.if_(Self::entry_statement),
            6 if self.depth < 3 && !self.manual => {
                self.manual = true;
                self.b.manual_begin();
                self.block(Self::entry_statement);
                self.b.manual_end();
                self.manual = false;
            }
            7 => self.waiter(),
            8 => self.extern_task(),
            _ => self.task(),
        }
    }

    fn options(&mut self) -> TaskOptions {
        let predicate = (self.below(4) == 3).then(|| {
            let cmp = [BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Ge][self.below(3)];
            let value = [0, -7, i64::MAX][self.below(3)];
            Predicate { tensor: self.table, at: Dims::from_slice(&[self.index(8)]), cmp, value }
        });
        let no_dep = if self.below(3) == 2 { vec![self.part(), self.signal] } else { Vec::new() };
        TaskOptions { deps: self.deps(), no_dep, predicate, allow_early_resolve: self.below(4) == 1 }
    }

    fn deps(&mut self) -> Vec<Task> {
        let tasks = self.tasks.clone();
        (0..self.below(3)).filter_map(|_| self.pick(&tasks)).collect()
    }

    fn add_task(&mut self, task: Task) {
        if let Some(name) = self.name() {
            self.b.name_task(task, name);
        }
        self.tasks.push(task);
    }

    /// A task with deferred waits, or with nothing.
    fn waiter(&mut self) {
        let options = TaskOptions { deps: self.deps(), ..TaskOptions::default() };
        let task = self.b.at_begin("waiter", options);
        let (me, one) = (self.scope.ints[0], self.b.int(1));
        for _ in 0..self.below(3) {
            let expected = self.b.int(i64::from(i32::MAX));
            self.b.defer_wait(self.signal, &[me, one], expected);
        }
        self.b.task_end();
        self.add_task(task);
    }

    fn extern_task(&mut self) {
        use CallbackArg::{Scalar as Value, Tensor as Memory};
        let (int, float) = (self.int(2), self.float(2));
        let args = vec![
            Memory(self.part(), Direction::InOut),
            Value(int),
            Memory(self.table, Direction::In),
            Value(float),
            Memory(self.half_window, Direction::Out),
        ];
        let blocks = (self.below(2) == 1).then(|| self.index(5));
        let options = self.options();
        let task = self.b.extern_task("engine", blocks, args, options);
        self.add_task(task);
    }

    fn task(&mut self) {
        let name = self.pick(&["move", "add_up", "copy_in"]).unwrap();
        let (scope, options) = (self.scope.clone(), self.options());
        let task = if self.below(3) == 2 {
            let blocks = self.index(5);
            let (task, mut index) = self.b.spmd_begin(name, blocks, options);
            if let Some(name) = self.name() {
                index = self.b.name_scalar(index, name);
            }
            self.scope.ints.push(index);
            task
        } else {
            self.b.at_begin(name, options)
        };
        for _ in 0..self.below(12) {
            self.statement();
        }
        // Uses every parameter, whatever else happens.
        let (me, zero) = (self.scope.ints[0], self.b.int(0));
        self.b.notify(self.signal, me, &[zero, zero], me, NotifyOp::Add);
        self.b.read(self.table, &[zero]);
        self.b.write(self.rows, &[zero, zero], self.scope.floats[0]);
        self.b.task_end();
        self.scope = scope;
        self.add_task(task);
    }

    fn block(&mut self, mut statement: impl FnMut(&mut Self)) {
        let scope = self.scope.clone();
        self.depth += 1;
        for _ in 0..1 + self.below(3) {
            statement(self);
        }
        self.depth -= 1;
        self.scope = scope;
    }

    fn loop_(&mut self, statement: fn(&mut Self)) {
        let zero = self.b.int(0);
        let end = match self.below(3) {
            0 => self.b.world(),
            1 => self.b.int(3),
            _ => {
                let (v, four) = (self.int(2), self.b.int(4));
                self.clamp(v, zero, four)
            }
        };
        let step = self.below(3) as i64 / 2 + 1;
        let step = self.b.int(step);
        let mut index = self.b.for_begin(zero, end, step);
        if let Some(name) = self.name() {
            index = self.b.name_scalar(index, name);
        }
        let scope = self.scope.clone();
        self.scope.ints.push(index);
        self.block(statement);
        self.scope = scope;
        self.b.for_end();
    }

    fn if_(&mut self, statement: fn(&mut Self)) {
        let cond = self.bool(3);
        self.b.if_begin(cond);
        self.block(statement);
        if self.below(2) == 1 {
            self.b.else_begin();
            match self.below(4) {
                0 => {}
                1 if self.depth < 4 => {
                    let scope = self.scope.clone();
                    self.depth += 1;
                    self.if_(statement);
                    self.depth -= 1;
                    self.scope = scope;
                }
                _ => self.block(statement),
            }
        }
        self.b.if_end();
    }

    fn slice(&mut self) {
        let src = self.pick(&self.scope.parts.clone()).unwrap();
        let zero = self.b.int(0);
        let two = self.b.extent_int(2);
        let shape = Shape::from_slice(&[two, self.d]);
        let at = [self.index(1), zero];
        let part = self.b.slice(src, &at, shape);
        if let Some(name) = self.name() {
            self.b.name_tensor(part, name);
        }
        self.scope.parts.push(part);
    }

    /// A named or shared value, a variable, or an array.
    fn definition(&mut self) {
        let name = self.name();
        match self.below(6) {
            0 => {
                let init = self.int(3);
                let ty = if self.below(2) == 0 { ScalarType::I64 } else { ScalarType::I32 };
                let init = self.b.cast(ty, init);
                let var = self.b.var(name, ty, init);
                self.scope.int_vars.push(var);
            }
            1 => {
                let init = self.float(3);
                let var = self.b.var(name, ScalarType::F32, init);
                self.scope.float_vars.push(var);
            }
            2 => {
                let fill = self.b.int(0);
                let len = self.b.extent_int(4);
                let array = self.b.array(name, ScalarType::I32, len, fill);
                self.scope.arrays.push(array);
            }
            3 => {
                let mut value = self.int(4);
                if let Some(name) = name {
                    value = self.b.name_scalar(value, name);
                }
                self.scope.ints.push(value);
            }
            4 => {
                let mut value = self.float(4);
                if let Some(name) = name {
                    value = self.b.name_scalar(value, name);
                }
                self.scope.floats.push(value);
            }
            _ => {
                let mut value = self.bool(4);
                if let Some(name) = name {
                    value = self.b.name_scalar(value, name);
                }
                self.scope.bools.push(value);
            }
        }
    }

    fn statement(&mut self) {
        match self.below(18) {
            0..=2 => self.definition(),
            3 | 4 => self.tile(),
            5 if self.depth < 4 => self.loop_(Self::statement),
            6 if self.depth < 4 => self.if_(Self::statement),
            7 => self.assignment(),
            8 => {
                let (dst, at, value) = (self.part(), self.row(), self.float(3));
                self.b.write(dst, &at, value);
            }
            9 => {
                if let Some(tile) = self.tile_of(DType::F32) {
                    let (dst, at) = (self.part(), self.corner());
                    self.b.store(tile, dst, &at);
                }
            }
            10 => self.transfer(),
            11 => self.half_transfer(),
            12 => {
                if let Some(tile) = self.tile_of(DType::F32) {
                    let (at, peer) = (self.corner(), self.peer());
                    let atomic = if self.below(2) == 0 { Atomic::None } else { Atomic::Add };
                    self.b.remote_store(tile, self.rows, peer, &at, atomic);
                }
            }
            13 => {
                let (cell, peer, value) = (self.cell(), self.peer(), self.int(2));
                self.b.notify(self.signal, peer, &cell, value, NotifyOp::Add);
            }
            14 => {
                let (cell, expected) = (self.cell(), self.int(2));
                let cmp = if self.below(2) == 0 { WaitCmp::Ge } else { WaitCmp::Eq };
                self.b.wait(self.signal, &cell, expected, cmp);
            }
            15 | 16 => self.late_use(),
            _ => self.slice(),
        }
    }

    /// Reads something, does something else, and only then uses what was read.
    fn late_use(&mut self) {
        let value = match self.below(4) {
            0 => self.pick(&self.scope.float_vars.clone()).map(|var| self.b.var_get(var)),
            1 => self.pick(&self.scope.int_vars.clone()).map(|var| {
                let value = self.b.var_get(var);
                self.b.cast(ScalarType::F32, value)
            }),
            2 => self.pick(&self.scope.arrays.clone()).map(|array| {
                let index = self.index(4);
                let value = self.b.array_get(array, index);
                self.b.cast(ScalarType::F32, value)
            }),
            _ => None,
        };
        let (part, at) = (self.part(), self.row());
        let value = value.unwrap_or_else(|| self.b.read(part, &at));
        for _ in 0..self.below(3) {
            match self.below(3) {
                0 => self.statement(),
                _ => self.assignment(),
            }
        }
        let at = self.row();
        self.b.write(part, &at, value);
    }

    fn assignment(&mut self) {
        match self.below(3) {
            0 => {
                if let Some(var) = self.pick(&self.scope.int_vars.clone()) {
                    let ty = self.b.program().vars[var].ty;
                    let value = self.int(3);
                    let value = self.b.cast(ty, value);
                    self.b.var_set(var, value);
                }
            }
            1 => {
                if let Some(var) = self.pick(&self.scope.float_vars.clone()) {
                    let value = self.float(3);
                    self.b.var_set(var, value);
                }
            }
            _ => {
                if let Some(array) = self.pick(&self.scope.arrays.clone()) {
                    let (index, value) = (self.index(4), self.int(3));
                    let value = self.b.cast(ScalarType::I32, value);
                    self.b.array_set(array, index, value);
                }
            }
        }
    }

    fn tile(&mut self) {
        let d = self.d;
        let one = self.b.extent_int(1);
        let row = Shape::from_slice(&[one, d]);
        let two = self.b.extent_int(2);
        let tile = match self.below(9) {
            0 => {
                let (src, at) = (self.part(), self.corner());
                self.b.load(src, &at, row)
            }
            1 => {
                let shape = if self.below(2) == 0 { row } else { Shape::from_slice(&[two, d]) };
                let value = self.float(2);
                self.b.full(DType::F32, shape, value)
            }
            2 => {
                let (at, peer) = (self.corner(), self.peer());
                self.b.remote_load(self.rows, peer, &at, row)
            }
            3 => {
                let at = self.corner();
                self.b.load(self.half, &at, row)
            }
            choice => {
                let Some(src) = self.pick(&self.scope.tiles.clone()) else { return };
                match choice {
                    4 => self.b.copy(src),
                    5 => {
                        let dtype = if self.below(2) == 0 { DType::F16 } else { DType::F32 };
                        self.b.tile_cast(dtype, src)
                    }
                    6 => {
                        let op = if self.below(2) == 0 { ReduceOp::Sum } else { ReduceOp::Max };
                        let axis = if self.below(2) == 0 { ReduceAxis::Row } else { ReduceAxis::Col };
                        self.b.reduce(op, axis, src)
                    }
                    _ => {
                        let op = self.pick(TILE_OPS).unwrap();
                        let alike = self.alike(src);
                        let b = match self.below(2) {
                            0 => TileOrScalar::Tile(self.pick(&alike).unwrap()),
                            _ => TileOrScalar::Scalar(self.float(3)),
                        };
                        self.b.tile_op(op, src, b)
                    }
                }
            }
        };
        let alike = self.alike(tile);
        if self.below(2) == 0
            && let Some(dst) = self.pick(&alike[..alike.len() - 1])
        {
            return self.b.assign(dst, tile);
        }
        if let Some(name) = self.name() {
            self.b.name_tile(tile, name);
        }
        self.scope.tiles.push(tile);
    }

    /// The tiles in scope with the type and shape of `tile`, and `tile` last.
    fn alike(&self, tile: Tile) -> Vec<Tile> {
        let tiles = &self.b.program().tiles;
        let same = |t: &Tile| tiles[*t].dtype == tiles[tile].dtype && tiles[*t].shape == tiles[tile].shape;
        self.scope.tiles.iter().copied().filter(same).chain([tile]).collect()
    }

    /// A tile of shape `[1, D]`.
    fn tile_of(&mut self, dtype: DType) -> Option<Tile> {
        let one = self.b.extent_int(1);
        let shape = Shape::from_slice(&[one, self.d]);
        let tiles = &self.b.program().tiles;
        let fits = |t: &Tile| tiles[*t].dtype == dtype && tiles[*t].shape == shape;
        let tiles: Vec<Tile> = self.scope.tiles.iter().copied().filter(fits).collect();
        self.pick(&tiles)
    }

    fn transfer(&mut self) {
        let (local, local_at, remote_at, peer) = (self.part(), self.corner(), self.corner(), self.peer());
        let rows = if self.below(2) == 0 { self.b.int(1) } else { self.index(2) };
        let width = self.b.size(self.d);
        let shape = Dims::from_slice(&[rows, width]);
        let (local_at, remote_at) = (Dims::from_slice(&local_at), Dims::from_slice(&remote_at));
        let staging = self.staging();
        if self.below(2) == 0 {
            let region = Region { dst: remote_at, src: local_at, shape };
            let atomic = if self.below(2) == 0 { Atomic::None } else { Atomic::Add };
            self.b.put(self.rows, peer, local, Some(region), atomic, staging);
        } else {
            let region = Region { dst: local_at, src: remote_at, shape };
            self.b.get(local, peer, self.rows, Some(region), staging);
        }
    }

    fn half_transfer(&mut self) {
        let (peer, staging) = (self.peer(), self.staging());
        if self.below(2) == 0 {
            let atomic = if self.below(2) == 0 { Atomic::None } else { Atomic::Add };
            self.b.put(self.half_window, peer, self.half, None, atomic, staging);
        } else {
            self.b.get(self.half, peer, self.half_window, None, staging);
        }
    }

    fn staging(&mut self) -> Staging {
        match self.below(3) {
            0 => Staging::default(),
            1 => Staging { chunk_rows: 1, chunk_cols: 4, pipeline: false },
            _ => Staging { chunk_rows: 1, chunk_cols: 8, pipeline: true },
        }
    }

    fn part(&mut self) -> Tensor {
        self.pick(&self.scope.parts.clone()).unwrap()
    }

    /// Offsets at which a `[1, D]` part fits into two rows.
    fn corner(&mut self) -> [Scalar; 2] {
        let zero = self.b.int(0);
        [self.index(1), zero]
    }

    /// Offsets of an element of two rows.
    fn row(&mut self) -> [Scalar; 2] {
        [self.index(2), self.index(8)]
    }

    fn cell(&mut self) -> [Scalar; 2] {
        [self.peer(), self.index(2)]
    }

    /// A rank of the world.
    fn peer(&mut self) -> Scalar {
        match self.below(4) {
            0 => self.b.int(0),
            1 => self.scope.ints[0],
            2 => {
                let (one, world) = (self.b.int(1), self.b.world());
                let next = self.b.binary(BinaryOp::Add, self.scope.ints[0], one);
                self.b.binary(BinaryOp::Rem, next, world)
            }
            _ => {
                let (value, zero, one, world) = (self.int(2), self.b.int(0), self.b.int(1), self.b.world());
                let last = self.b.binary(BinaryOp::Sub, world, one);
                self.clamp(value, zero, last)
            }
        }
    }

    /// An offset below `count`.
    fn index(&mut self, count: i64) -> Scalar {
        if self.below(2) == 0 {
            let literal = self.below(count as usize) as i64;
            return self.b.int(literal);
        }
        let (value, zero, last) = (self.int(2), self.b.int(0), self.b.int(count - 1));
        self.clamp(value, zero, last)
    }

    fn clamp(&mut self, value: Scalar, low: Scalar, high: Scalar) -> Scalar {
        let raised = self.b.binary(BinaryOp::Max, value, low);
        self.b.binary(BinaryOp::Min, raised, high)
    }

    fn in_task(&self) -> bool {
        self.b.nesting() > 1 + self.depth
    }

    fn int(&mut self, depth: usize) -> Scalar {
        let choice = self.below(if depth == 0 { 4 } else { 15 });
        match choice {
            0 => {
                let literal = [0, 1, 2, 7, -3, i64::MAX, i64::MIN, 1 << 40][self.below(8)];
                self.b.int(literal)
            }
            1 => self.b.world(),
            2 => {
                let size = if self.below(2) == 0 { self.n } else { self.d };
                self.b.size(size)
            }
            3 => self.pick(&self.scope.ints.clone()).unwrap(),
            4 => match self.pick(&self.scope.int_vars.clone()) {
                Some(var) => self.b.var_get(var),
                None => self.b.int(5),
            },
            5 => match self.pick(&self.scope.arrays.clone()) {
                Some(array) => {
                    let index = self.index(4);
                    self.b.array_get(array, index)
                }
                None => self.b.int(6),
            },
            6 if self.in_task() => {
                let index = self.index(8);
                self.b.read(self.table, &[index])
            }
            7 => {
                let value = self.float(depth - 1);
                self.b.cast(ScalarType::I32, value)
            }
            8 => {
                let (a, op) = (self.int(depth - 1), if self.below(2) == 0 { BinaryOp::Div } else { BinaryOp::Rem });
                let divisor = self.b.int(3);
                self.b.binary(op, a, divisor)
            }
            9 => {
                let (cond, then, other) = (self.bool(depth - 1), self.int(depth - 1), self.int(depth - 1));
                self.b.select(cond, then, other)
            }
            10 => {
                let a = self.int(depth - 1);
                self.b.unary(UnaryOp::Neg, a)
            }
            11 if self.in_task() => {
                if self.below(2) == 0 {
                    self.b.rank(self.rows)
                } else {
                    self.b.nranks(self.signal)
                }
            }
            _ => {
                let op = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max][self.below(5)];
                let (a, b) = (self.int(depth - 1), self.int(depth - 1));
                let value = self.b.binary(op, a, b);
                if self.below(4) == 3 {
                    self.scope.ints.push(value);
                }
                value
            }
        }
    }

    fn float(&mut self, depth: usize) -> Scalar {
        match self.below(if depth == 0 { 2 } else { 9 }) {
            0 => {
                let literal = [0.5, 1.0, -2.25, 1e-7, 3.4e38, 1e16, f32::INFINITY, -0.0, f32::NAN][self.below(9)];
                self.b.float(literal)
            }
            1 => self.pick(&self.scope.floats.clone()).unwrap(),
            2 => match self.pick(&self.scope.float_vars.clone()) {
                Some(var) => self.b.var_get(var),
                None => self.b.float(1.5),
            },
            3 | 4 if self.in_task() => {
                let (src, at) = (self.part(), self.row());
                self.b.read(src, &at)
            }
            5 => {
                let value = self.int(depth - 1);
                self.b.cast(ScalarType::F32, value)
            }
            6 => {
                let (cond, then, other) = (self.bool(depth - 1), self.float(depth - 1), self.float(depth - 1));
                self.b.select(cond, then, other)
            }
            7 => {
                let a = self.float(depth - 1);
                self.b.unary(UnaryOp::Neg, a)
            }
            _ => {
                let op = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min][self.below(5)];
                let a = self.float(depth - 1);
                let b = if self.below(4) == 0 { self.b.int(2) } else { self.float(depth - 1) };
                let value = self.b.binary(op, a, b);
                if self.below(4) == 3 {
                    self.scope.floats.push(value);
                }
                value
            }
        }
    }

    fn bool(&mut self, depth: usize) -> Scalar {
        use BinaryOp::*;
        match self.below(if depth == 0 { 2 } else { 7 }) {
            0 => {
                let literal = self.below(2) == 0;
                self.b.bool(literal)
            }
            1 => self.pick(&self.scope.bools.clone()).unwrap(),
            2 => {
                let a = self.bool(depth - 1);
                self.b.unary(UnaryOp::Not, a)
            }
            3 => {
                let op = if self.below(2) == 0 { And } else { Or };
                let (a, b) = (self.bool(depth - 1), self.bool(depth - 1));
                self.b.binary(op, a, b)
            }
            4 => {
                let (a, b) = (self.float(depth - 1), self.float(depth - 1));
                self.b.binary(Lt, a, b)
            }
            _ => {
                let op = [Eq, Ne, Lt, Le, Gt, Ge][self.below(6)];
                let (a, b) = (self.int(depth - 1), self.int(depth - 1));
                self.b.binary(op, a, b)
            }
        }
    }

    fn host(&mut self) {
        let (world, d, n) = (self.b.extent_world(), self.d, self.n);
        let [two, four, eight, size] = [2, 4, 8, 4].map(|v| self.b.extent_int(v));
        let shape = |dims: &[Extent]| Shape::from_slice(dims);
        let xs = self.b.host_tensor("xs", DType::F32, shape(&[world, four, d]), Direction::InOut).unwrap();
        let ys = self.b.host_tensor("ys", DType::F32, shape(&[world, two, d]), Direction::InOut).unwrap();
        let table = self.b.host_tensor("table", DType::I32, shape(&[eight]), Direction::In).unwrap();
        let halves = self.b.host_tensor("halves", DType::F16, shape(&[world, four, d]), Direction::InOut).unwrap();
        let big = self.b.host_tensor("big", DType::F32, shape(&[world, n, d]), Direction::In).unwrap();
        let scale = self.b.host_scalar("scale", ScalarType::F32).unwrap();
        let first = self.b.extent_int(0);
        let everyone = (self.below(3) == 1).then(|| self.b.domain("everyone", DomainRanks::Range(first, world)));
        let rows_buffer = if self.below(2) == 0 {
            let size = BufferSize::Shape(DType::F32, shape(&[world, d]));
            self.b.alloc_window_in(everyone, "rows_buf", size)
        } else {
            let (w, d, size) = (self.b.size(world), self.b.size(d), self.b.size(size));
            let count = self.b.binary(BinaryOp::Mul, w, d);
            let bytes = self.b.binary(BinaryOp::Mul, count, size);
            let bytes = self.b.extent(bytes).unwrap();
            self.b.alloc_window_in(everyone, "rows", BufferSize::Bytes(bytes))
        };
        let half_buffer = self.b.alloc_window("half_buf", DType::F16, shape(&[four, d]));
        let signal_buffer = self.b.alloc_window("signal", DType::I32, shape(&[world, two]));
        let (zero, end) = (self.b.int(0), self.b.world());
        for _ in 0..1 + self.below(2) {
            let mut r = self.b.ranks_begin(zero, end);
            if let Some(name) = self.name() {
                r = self.b.name_scalar(r, name);
            }
            let rows = self.b.window(rows_buffer, DType::F32, shape(&[world, d]));
            let half_window = self.b.window(half_buffer, DType::F16, shape(&[four, d]));
            let signal = self.b.window(signal_buffer, DType::I32, shape(&[world, two]));
            if let Some(name) = self.name() {
                self.b.name_tensor(rows, name);
            }
            let parts = [xs, ys, halves, big].map(|t| self.b.slice_rank(t, r));
            if let Some(name) = self.name() {
                self.b.name_tensor(parts[0], name);
            }
            for _ in 0..1 + self.below(2) {
                let flag = self.b.binary(BinaryOp::Ge, r, zero);
                let args = vec![
                    Operand::Tensor(parts[0]),
                    Operand::Tensor(parts[1]),
                    Operand::Tensor(table),
                    Operand::Tensor(parts[2]),
                    Operand::Tensor(parts[3]),
                    Operand::Tensor(rows),
                    Operand::Tensor(half_window),
                    Operand::Tensor(signal),
                    Operand::Scalar(r),
                    Operand::Scalar(scale),
                    Operand::Scalar(flag),
                ];
                self.b.dispatch(self.entry.unwrap(), r, args);
            }
            self.b.ranks_end();
        }
        for _ in 0..self.below(3) {
            let args = vec![CallbackArg::Tensor(xs, Direction::InOut), CallbackArg::Scalar(scale)];
            self.b.host_task("report", args);
        }
    }
}
