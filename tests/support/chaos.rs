//! Programs that the builder accepts and that mean nothing: any value wherever a value of its kind can stand.

use pld::ir::builder::Builder;
use pld::ir::extent::Shape;
use pld::ir::op::{Dims, Operand, Region, Staging, TileOrScalar};
use pld::ir::program::{BufferSize, DomainRanks};
use pld::ir::*;

/// The program that a string of choices makes.
pub fn program(choices: &[u8]) -> Program {
    let mut chaos = Chaos::new(choices);
    while chaos.choices.len() > 0 {
        chaos.step();
    }
    while let Some(end) = chaos.open.pop() {
        end(&mut chaos.b);
    }
    chaos.b.finish().unwrap_or_else(|mistakes| panic!("the generator misuses the builder: {}", mistakes[0]))
}

struct Chaos<'a> {
    choices: std::slice::Iter<'a, u8>,
    b: Builder,
    /// How to end each open block.
    open: Vec<fn(&mut Builder)>,
    scalars: Vec<Scalar>,
    extents: Vec<Extent>,
    tensors: Vec<Tensor>,
    tiles: Vec<Tile>,
    vars: Vec<Var>,
    arrays: Vec<Array>,
    buffers: Vec<Buffer>,
    entries: Vec<Entry>,
    tasks: Vec<Task>,
    named: usize,
}

fn next(choices: &mut std::slice::Iter<u8>) -> usize {
    choices.next().copied().unwrap_or_default().into()
}

fn pick<T: Copy>(choices: &mut std::slice::Iter<u8>, all: &[T]) -> T {
    all[next(choices) % all.len()]
}

impl<'a> Chaos<'a> {
    fn new(choices: &'a [u8]) -> Self {
        let mut b = Builder::new("chaos");
        let mut scalars: Vec<Scalar> = [-1, 0, 1, 3, i64::MAX].into_iter().map(|v| b.int(v)).collect();
        scalars.extend([b.world(), b.float(1.5), b.bool(true)]);
        let mut extents: Vec<Extent> = [-2, 0, 1, 8].into_iter().map(|v| b.extent_int(v)).collect();
        extents.extend([b.extent_world(), b.dim("n")]);
        let mut chaos = Self {
            choices: choices.iter(),
            b,
            open: Vec::new(),
            scalars,
            extents,
            tensors: Vec::new(),
            tiles: Vec::new(),
            vars: Vec::new(),
            arrays: Vec::new(),
            buffers: Vec::new(),
            entries: Vec::new(),
            tasks: Vec::new(),
            named: 0,
        };
        for _ in 0..2 {
            chaos.entry();
        }
        for _ in 0..2 {
            let (name, dtype, shape) = (chaos.name(), chaos.dtype(), chaos.shape());
            let direction = chaos.of(Direction::ALL);
            chaos.tensors.extend(chaos.b.host_tensor(&name, dtype, shape, direction));
        }
        let name = chaos.name();
        chaos.scalars.extend(chaos.b.host_scalar(&name, ScalarType::F32));
        chaos
    }

    fn next(&mut self) -> usize {
        next(&mut self.choices)
    }

    fn flag(&mut self) -> bool {
        self.next() > 127
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        pick(&mut self.choices, all)
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("name{}", self.named)
    }

    fn dtype(&mut self) -> DType {
        self.of(&DType::ALL)
    }

    fn ty(&mut self) -> ScalarType {
        self.of(&[ScalarType::I32, ScalarType::I64, ScalarType::F32, ScalarType::Bool])
    }

    fn domain(&mut self) -> Domain {
        let (name, ranks) = (self.name(), self.shape());
        let ranks = match ranks[..] {
            [first, end] => DomainRanks::Range(first, end),
            _ => DomainRanks::List(ranks.to_vec()),
        };
        self.b.domain(&name, ranks)
    }

    fn scalar(&mut self) -> Scalar {
        pick(&mut self.choices, &self.scalars)
    }

    fn tensor(&mut self) -> Tensor {
        pick(&mut self.choices, &self.tensors)
    }

    fn tile(&mut self) -> Tile {
        if self.tiles.is_empty() {
            let (dtype, shape) = (self.dtype(), self.shape());
            self.tiles.push(self.b.tile(dtype, shape));
        }
        pick(&mut self.choices, &self.tiles)
    }

    fn dims(&mut self) -> Dims {
        (0..self.next() % 4).map(|_| self.scalar()).collect()
    }

    fn shape(&mut self) -> Shape {
        (0..1 + self.next() % 3).map(|_| pick(&mut self.choices, &self.extents)).collect()
    }

    fn region(&mut self) -> Option<Region> {
        (self.flag()).then(|| Region { dst: self.dims(), src: self.dims(), shape: self.dims() })
    }

    fn staging(&mut self) -> Staging {
        Staging { chunk_rows: self.next() as i64 - 2, chunk_cols: 1, pipeline: self.flag() }
    }

    fn entry(&mut self) {
        let name = self.name();
        self.entries.push(self.b.entry_begin(&name));
        self.open.push(Builder::entry_end);
        for kind in 0..3 {
            let (name, dtype, shape) = (self.name(), self.dtype(), self.shape());
            match kind {
                0 => self.scalars.extend(self.b.param_scalar(&name, ScalarType::I32)),
                1 => self.tensors.extend(self.b.param_window(&name, dtype, shape)),
                _ => {
                    let direction = self.of(Direction::ALL);
                    self.tensors.extend(self.b.param_tensor(&name, dtype, shape, direction));
                }
            }
        }
        for _ in 0..self.next() % 32 {
            self.step();
        }
        while let Some(end) = self.open.pop() {
            end(&mut self.b);
        }
    }

    fn some<T>(&mut self, one: fn(&mut Self) -> Option<T>) -> Vec<T> {
        (0..self.next() % 3).filter_map(|_| one(self)).collect()
    }

    fn options(&mut self) -> TaskOptions {
        let predicate = self.flag().then(|| {
            let cmp = self.of(&[BinaryOp::Eq, BinaryOp::Lt, BinaryOp::Ge]);
            Predicate { tensor: self.tensor(), at: self.dims(), cmp, value: self.next() as i64 - 128 }
        });
        let deps = self.some(|c| (!c.tasks.is_empty()).then(|| pick(&mut c.choices, &c.tasks)));
        TaskOptions { deps, no_dep: self.some(|c| Some(c.tensor())), predicate, allow_early_resolve: self.flag() }
    }

    fn callback_args(&mut self) -> Vec<CallbackArg> {
        self.some(|c| {
            let tensor = c.flag().then(|| CallbackArg::Tensor(c.tensor(), c.of(Direction::ALL)));
            tensor.or_else(|| Some(CallbackArg::Scalar(c.scalar())))
        })
    }

    fn step(&mut self) {
        match self.next() % 40 {
            0 | 1 if self.open.len() < 20 => {
                let (name, options) = (self.name(), self.options());
                self.tasks.push(self.b.at_begin(&name, options));
                self.open.push(|b| _ = b.task_end());
            }
            33 if self.open.len() < 20 => {
                let (name, blocks, options) = (self.name(), self.scalar(), self.options());
                let (task, index) = self.b.spmd_begin(&name, blocks, options);
                self.tasks.push(task);
                self.scalars.push(index);
                self.open.push(|b| _ = b.task_end());
            }
            34 if self.open.len() < 20 => {
                self.b.manual_begin();
                self.open.push(Builder::manual_end);
            }
            35 => {
                let (blocks, args, options) =
                    (self.flag().then(|| self.scalar()), self.callback_args(), self.options());
                self.tasks.push(self.b.extern_task("engine", blocks, args, options));
            }
            36 => {
                let args = self.callback_args();
                self.b.host_task("engine", args);
            }
            37 | 38 => {
                let (window, at, expected) = (self.tensor(), self.dims(), self.scalar());
                self.b.defer_wait(window, &at, expected);
            }
            2 if self.open.len() < 20 => {
                let (first, end, step) = (self.scalar(), self.scalar(), self.scalar());
                self.scalars.push(self.b.for_begin(first, end, step));
                self.open.push(Builder::for_end);
            }
            3 if self.open.len() < 20 => {
                let cond = self.scalar();
                self.b.if_begin(cond);
                self.open.push(Builder::if_end);
            }
            4 if self.open.len() < 20 => {
                let (first, end) = (self.scalar(), self.scalar());
                self.scalars.push(self.b.ranks_begin(first, end));
                self.open.push(Builder::ranks_end);
            }
            5 | 6 if self.open.len() > 1 => {
                let end = self.open.pop().expect("a block is open");
                end(&mut self.b);
            }
            7 | 8 => {
                let (op, a, b) = (self.of(BinaryOp::ALL), self.scalar(), self.scalar());
                self.scalars.push(self.b.binary(op, a, b));
            }
            9 => {
                let (op, a) = (self.of(UnaryOp::ALL), self.scalar());
                self.scalars.push(self.b.unary(op, a));
            }
            10 => {
                let (ty, a) = (self.ty(), self.scalar());
                self.scalars.push(self.b.cast(ty, a));
            }
            11 => {
                let (cond, a, b) = (self.scalar(), self.scalar(), self.scalar());
                self.scalars.push(self.b.select(cond, a, b));
            }
            12 => {
                let window = self.tensor();
                let value = if self.flag() { self.b.rank(window) } else { self.b.nranks(window) };
                self.scalars.push(value);
            }
            13 => {
                let (scalar, name) = (self.scalar(), self.name());
                self.scalars.push(self.b.name_scalar(scalar, &name));
            }
            14 => {
                let (ty, init) = (self.ty(), self.scalar());
                self.vars.push(self.b.var(None, ty, init));
            }
            15 if !self.vars.is_empty() => {
                let var = pick(&mut self.choices, &self.vars);
                self.scalars.push(self.b.var_get(var));
                let value = self.scalar();
                self.b.var_set(var, value);
            }
            16 => {
                let (ty, shape, fill) = (self.ty(), self.shape(), self.scalar());
                self.arrays.push(self.b.array(None, ty, shape[0], fill));
            }
            17 if !self.arrays.is_empty() => {
                let array = pick(&mut self.choices, &self.arrays);
                let (index, value) = (self.scalar(), self.scalar());
                self.scalars.push(self.b.array_get(array, index));
                self.b.array_set(array, index, value);
            }
            18 => {
                let (src, at, shape) = (self.tensor(), self.dims(), self.shape());
                self.tensors.push(self.b.slice(src, &at, shape));
            }
            19 => {
                let (src, at) = (self.tensor(), self.dims());
                self.scalars.push(self.b.read(src, &at));
            }
            20 => {
                let (dst, at, value) = (self.tensor(), self.dims(), self.scalar());
                self.b.write(dst, &at, value);
            }
            21 => {
                let (src, at, shape) = (self.tensor(), self.dims(), self.shape());
                self.tiles.push(self.b.load(src, &at, shape));
            }
            22 => {
                let (src, dst, at) = (self.tile(), self.tensor(), self.dims());
                self.b.store(src, dst, &at);
            }
            23 => {
                let (dtype, shape, value) = (self.dtype(), self.shape(), self.scalar());
                self.tiles.push(self.b.full(dtype, shape, value));
            }
            24 => {
                let (dtype, src) = (self.dtype(), self.tile());
                self.tiles.push(self.b.tile_cast(dtype, src));
            }
            25 => {
                let (op, a, b, scalar) = (self.of(TileOp::ALL), self.tile(), self.tile(), self.scalar());
                let b = if self.flag() { TileOrScalar::Tile(b) } else { TileOrScalar::Scalar(scalar) };
                let value = self.b.tile_op(op, a, b);
                let dst = self.tile();
                self.b.assign(dst, value);
            }
            26 => {
                let (op, axis, src) = (self.of(ReduceOp::ALL), self.of(ReduceAxis::ALL), self.tile());
                self.tiles.push(self.b.reduce(op, axis, src));
            }
            27 => {
                let (dst, peer, src, region) = (self.tensor(), self.scalar(), self.tensor(), self.region());
                let (atomic, staging) = (self.of(Atomic::ALL), self.staging());
                self.b.put(dst, peer, src, region, atomic, staging);
            }
            28 => {
                let (dst, peer, src, region) = (self.tensor(), self.scalar(), self.tensor(), self.region());
                let staging = self.staging();
                self.b.get(dst, peer, src, region, staging);
            }
            29 => {
                let (src, peer, at, shape) = (self.tensor(), self.scalar(), self.dims(), self.shape());
                let tile = self.b.remote_load(src, peer, &at, shape);
                let (dst, peer, atomic) = (self.tensor(), self.scalar(), self.of(Atomic::ALL));
                self.b.remote_store(tile, dst, peer, &at, atomic);
            }
            30 => {
                let (window, peer, at, value) = (self.tensor(), self.scalar(), self.dims(), self.scalar());
                let (op, cmp) = (self.of(NotifyOp::ALL), self.of(WaitCmp::ALL));
                self.b.notify(window, peer, &at, value, op);
                let (window, at, expected) = (self.tensor(), self.dims(), self.scalar());
                self.b.wait(window, &at, expected, cmp);
            }
            31 => {
                let (name, dtype, shape) = (self.name(), self.dtype(), self.shape());
                let size = BufferSize::Shape(dtype, shape);
                let domain = if self.flag() { Some(self.domain()) } else { None };
                self.buffers.push(self.b.alloc_window_in(domain, &name, size));
            }
            32 if !self.buffers.is_empty() => {
                let buffer = pick(&mut self.choices, &self.buffers);
                let (dtype, shape) = (self.dtype(), self.shape());
                self.tensors.push(self.b.window(buffer, dtype, shape));
                let (src, rank) = (self.tensor(), self.scalar());
                self.tensors.push(self.b.slice_rank(src, rank));
            }
            _ => {
                let (entry, device) = (pick(&mut self.choices, &self.entries), self.scalar());
                let args = (0..self.next() % 5).map(|i| match i % 2 {
                    0 => Operand::Scalar(self.scalar()),
                    _ => Operand::Tensor(self.tensor()),
                });
                let args = args.collect();
                self.b.dispatch(entry, device, args);
            }
        }
    }
}
