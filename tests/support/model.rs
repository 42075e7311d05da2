//! The meaning of programs, written as plainly as possible: one rank after the other, element by element.
//!
//! The ranks of a `ranks` loop run one after the other, so a rank sees all that lower ranks did in the same loop.
//! Programs must not depend on that; a wait is taken to succeed.

use std::collections::HashMap;

use half::{bf16, f16};
use pld::codegen::cpu::abi::FaultKind;
use pld::ir::extent::Known;
use pld::ir::op::{Dims, Region};
use pld::ir::print::print;
use pld::ir::program::{DomainRanks, Param, ScalarDef, TensorDef};
use pld::ir::{
    Array, Atomic, BinaryOp, Block, Buffer, DType, Entry, Expr, Extent, NotifyOp, Op, OpKind, Operand, Program,
    ReduceAxis, ReduceOp, Scalar, ScalarType, Tensor, Tile, TileOp, TileOrScalar, UnaryOp, Var,
};
use pld::passes::plan_windows::{Layout, plan_windows};

use crate::ranks::Arg;

/// A scalar or element. Integers of every width are exact here and wrap when they are stored in their type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Int(i128),
    Float(f32),
}

use Value::{Float, Int};

/// A run-time mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub op: Op,
    pub kind: FaultKind,
    pub dim: u32,
    pub operand: u32,
    pub offsets: Vec<i64>,
    pub extents: Vec<i64>,
}

/// Where a tensor lies.
#[derive(Clone, Copy, Debug)]
enum Base {
    Window(Buffer),
    Arg(usize),
}

/// A tensor: where its first element lies, and bytes between neighbours.
#[derive(Clone, Debug)]
struct View {
    base: Base,
    offset: i64,
    strides: Vec<i64>,
}

/// What all ranks have.
pub struct Model<'p> {
    program: &'p Program,
    layout: Layout,
    dims: Vec<i64>,
    pub windows: Vec<Vec<u8>>,
    /// Arguments by host parameter and rank.
    pub args: Vec<Vec<Vec<u8>>>,
    bits: Vec<u64>,
    host: Registers,
    /// The ranks that share each buffer; while they are looked for, dispatches only tell theirs.
    domains: HashMap<Buffer, Vec<usize>>,
    looking: bool,
}

/// What one rank, or the host, computes with.
#[derive(Default)]
struct Registers {
    rank: usize,
    op: Option<Op>,
    scalars: HashMap<Scalar, Value>,
    vars: HashMap<Var, Value>,
    arrays: HashMap<Array, Vec<Value>>,
    tiles: HashMap<Tile, Vec<Value>>,
    views: HashMap<Tensor, View>,
}

type Step<T = ()> = Result<T, Fault>;

impl<'p> Model<'p> {
    pub fn new(program: &'p Program, nranks: u32, args: &[Arg], dims: &[i64], windows: &[Vec<u8>]) -> Self {
        let layout = plan_windows(program, nranks).unwrap();
        let windows = if windows.is_empty() { vec![vec![0; layout.bytes]; nranks as usize] } else { windows.to_vec() };
        let parts = |arg: &Arg| match arg {
            Arg::Ranked(parts) => parts.clone(),
            Arg::Bits(_) => Vec::new(),
        };
        let bits = |arg: &Arg| match arg {
            Arg::Ranked(_) => 0,
            Arg::Bits(bits) => *bits,
        };
        Self {
            program,
            layout,
            dims: dims.to_vec(),
            windows,
            args: args.iter().map(parts).collect(),
            bits: args.iter().map(bits).collect(),
            host: Registers::default(),
            domains: HashMap::new(),
            looking: false,
        }
    }

    pub fn run(&mut self) -> Step {
        self.look_for_domains()?;
        let mut host = std::mem::take(&mut self.host);
        let body = self.program.host.as_ref().unwrap().body;
        self.block(&mut host, body)
    }

    fn look_for_domains(&mut self) -> Step {
        self.looking = true;
        self.block(&mut Registers::default(), self.program.host.as_ref().unwrap().body)?;
        self.looking = false;
        self.domains.values_mut().for_each(|ranks| {
            ranks.sort_unstable();
            ranks.dedup();
        });
        for (buffer, data) in &self.program.buffers {
            let Some(domain) = data.domain else { continue };
            let ranks = match &self.program.domains[domain].ranks {
                DomainRanks::Range(first, end) => (self.extent(*first)..self.extent(*end)).collect(),
                DomainRanks::List(ranks) => self.shape(ranks),
            };
            self.domains.insert(buffer, ranks.iter().map(|&rank| rank as usize).collect());
        }
        Ok(())
    }

    fn known(&self) -> Known<'_> {
        Known { world: Some(self.windows.len() as i64), dims: &self.dims }
    }

    fn extent(&self, extent: Extent) -> i64 {
        self.program.extents.eval(extent, self.known()).unwrap_or_else(|| panic!("no value: {}", print(self.program)))
    }

    fn shape(&self, shape: &[Extent]) -> Vec<i64> {
        shape.iter().map(|&e| self.extent(e)).collect()
    }

    fn block(&mut self, r: &mut Registers, block: Block) -> Step {
        for &op in &self.program.blocks[block] {
            r.op = Some(op);
            self.op(r, op)?;
        }
        Ok(())
    }

    fn op(&mut self, r: &mut Registers, op: Op) -> Step {
        let program = self.program;
        match &program.ops[op].kind {
            OpKind::Scalar { dst, expr } => {
                let value = self.expr(r, expr, program.scalars[*dst].ty)?;
                r.scalars.insert(*dst, value);
            }
            OpKind::VarDef { var, init: value } | OpKind::VarSet { var, value } => {
                let value = self.scalar_as(r, *value, program.vars[*var].ty);
                r.vars.insert(*var, value);
            }
            OpKind::VarGet { dst, var } => {
                r.scalars.insert(*dst, r.vars[var]);
            }
            OpKind::ArrayDef { array, fill } => {
                let fill = self.scalar_as(r, *fill, program.arrays[*array].ty);
                r.arrays.insert(*array, vec![fill; self.extent(program.arrays[*array].len) as usize]);
            }
            OpKind::ArrayGet { dst, array, index } => {
                let index = self.array_index(r, *array, *index)?;
                r.scalars.insert(*dst, r.arrays[array][index]);
            }
            OpKind::ArraySet { array, index, value } => {
                let value = self.scalar_as(r, *value, program.arrays[*array].ty);
                let index = self.array_index(r, *array, *index)?;
                r.arrays.get_mut(array).unwrap()[index] = value;
            }
            OpKind::For { index, first, end, step, body } => {
                let (first, end, step) = (self.int(r, *first), self.int(r, *end), self.int(r, *step));
                if step <= 0 {
                    return Err(self.fault(r, FaultKind::Step, &[step], &[]));
                }
                let mut i = i128::from(first);
                while i < i128::from(end) {
                    r.scalars.insert(*index, Int(i));
                    self.block(r, *body)?;
                    i += i128::from(step);
                }
            }
            OpKind::If { cond, then, other } => {
                if self.scalar(r, *cond) != Int(0) {
                    self.block(r, *then)?;
                } else if let Some(other) = other {
                    self.block(r, *other)?;
                }
            }
            OpKind::Task { grid: Some(grid), body, .. } => {
                for block in 0..self.int(r, grid.blocks) {
                    r.scalars.insert(grid.index, Int(block.into()));
                    self.block(r, *body)?;
                }
            }
            OpKind::Task { body, .. } | OpKind::Manual { body } => self.block(r, *body)?,
            OpKind::Extern { .. } | OpKind::DeferWait { .. } | OpKind::HostTask { .. } => {
                panic!("{} is outside the model", program.ops[op].kind.name())
            }
            OpKind::Slice { dst, src, at } => {
                let at = self.ints(r, at);
                let shape = self.shape(&program.tensors[*dst].shape);
                self.check(r, 0, *src, &at, &shape)?;
                let mut view = r.views[src].clone();
                view.offset += view.strides.iter().zip(&at).map(|(s, a)| s * a).sum::<i64>();
                r.views.insert(*dst, view);
            }
            OpKind::Read { dst, src, at } => {
                let at = self.ints(r, at);
                self.check(r, 0, *src, &at, &vec![1; at.len()])?;
                let dtype = program.tensors[*src].dtype;
                let value = self.element(r, *src, r.rank, &at);
                let ty = dtype.scalar().unwrap();
                r.scalars.insert(*dst, wrap(value, ty.dtype()));
            }
            OpKind::Write { dst, at, value } => {
                let at = self.ints(r, at);
                self.check(r, 0, *dst, &at, &vec![1; at.len()])?;
                let value = self.as_element(r, *value, program.tensors[*dst].dtype);
                self.set_element(r, *dst, r.rank, &at, value);
            }
            OpKind::Load { dst, src, at } => self.load(r, *dst, *src, None, at)?,
            OpKind::RemoteLoad { dst, src, peer, at } => self.load(r, *dst, *src, Some(*peer), at)?,
            OpKind::Store { src, dst, at } => self.store(r, *src, *dst, None, at, Atomic::None)?,
            OpKind::RemoteStore { src, dst, peer, at, atomic } => {
                self.store(r, *src, *dst, Some(*peer), at, *atomic)?;
            }
            OpKind::Full { dst, value } => {
                let value = self.as_element(r, *value, program.tiles[*dst].dtype);
                let len = self.shape(&program.tiles[*dst].shape).iter().product::<i64>();
                r.tiles.insert(*dst, vec![value; len as usize]);
            }
            OpKind::Copy { dst, src } => {
                r.tiles.insert(*dst, r.tiles[src].clone());
            }
            OpKind::Cast { dst, src } => {
                let to = program.tiles[*dst].dtype;
                let tile = r.tiles[src].iter().map(|&v| convert(v, to)).collect();
                r.tiles.insert(*dst, tile);
            }
            OpKind::Tile { op, dst, a, b } => {
                let dtype = program.tiles[*a].dtype;
                let a = r.tiles[a].clone();
                let b = match b {
                    TileOrScalar::Tile(b) => r.tiles[b].clone(),
                    TileOrScalar::Scalar(b) => vec![self.as_element(r, *b, dtype); a.len()],
                };
                let tile: Option<Vec<Value>> = a.iter().zip(&b).map(|(&x, &y)| tile_op(*op, dtype, x, y)).collect();
                let tile = tile.ok_or_else(|| self.fault(r, FaultKind::Division, &[], &[]))?;
                r.tiles.insert(*dst, tile);
            }
            OpKind::Reduce { op, axis, dst, src } => {
                let shape = self.shape(&program.tiles[*src].shape);
                let (rows, cols) = (shape[0] as usize, shape[1] as usize);
                let (dtype, tile) = (program.tiles[*src].dtype, r.tiles[src].clone());
                let lines: Vec<Vec<Value>> = match axis {
                    ReduceAxis::Row => (0..rows).map(|i| tile[i * cols..][..cols].to_vec()).collect(),
                    ReduceAxis::Col => (0..cols).map(|j| (0..rows).map(|i| tile[i * cols + j]).collect()).collect(),
                };
                r.tiles.insert(*dst, lines.iter().map(|line| reduce(*op, dtype, line)).collect());
            }
            OpKind::Put { dst, peer, src, region, atomic, .. } => {
                let peer = self.peer(r, *dst, *peer)?;
                self.transfer(r, (*dst, peer), (*src, r.rank), region.as_ref(), *atomic)?;
            }
            OpKind::Get { dst, src, peer, region, .. } => {
                let peer = self.peer(r, *src, *peer)?;
                self.transfer(r, (*dst, r.rank), (*src, peer), region.as_ref(), Atomic::None)?;
            }
            OpKind::Notify { window, peer, at, value, op } => {
                let peer = self.peer(r, *window, *peer)?;
                let at = self.ints(r, at);
                self.check(r, 0, *window, &at, &vec![1; at.len()])?;
                let Int(value) = self.scalar_as(r, *value, ScalarType::I32) else { panic!("a signal is an integer") };
                let Int(old) = self.element(r, *window, peer, &at) else { panic!("a signal is an integer") };
                let new = if *op == NotifyOp::Add { old + value } else { value };
                self.set_element(r, *window, peer, &at, wrap(Int(new), DType::I32));
            }
            OpKind::Wait { window, at, .. } => {
                let at = self.ints(r, at);
                self.check(r, 0, *window, &at, &vec![1; at.len()])?;
            }
            OpKind::Ranks { index, first, end, body } => {
                for i in self.int(r, *first)..self.int(r, *end) {
                    r.scalars.insert(*index, Int(i.into()));
                    self.block(r, *body)?;
                }
            }
            OpKind::Dispatch { entry, args, device } => self.dispatch(r, *entry, args, *device)?,
            OpKind::Domain { .. } | OpKind::AllocWindow { .. } | OpKind::Window { .. } | OpKind::SliceRank { .. } => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, host: &Registers, entry: Entry, args: &[Operand], device: Scalar) -> Step {
        let device = self.int(host, device);
        if device < 0 || device >= self.windows.len() as i64 {
            return Ok(());
        }
        let mut r = Registers { rank: device as usize, ..Default::default() };
        let program = self.program;
        if self.looking {
            for arg in args {
                if let Operand::Tensor(tensor) = *arg
                    && let TensorDef::View(buffer) = program.tensors[tensor].def
                {
                    self.domains.entry(buffer).or_default().push(r.rank);
                }
            }
            return Ok(());
        }
        for (&arg, &param) in args.iter().zip(&program.entries[entry].params) {
            match (arg, param) {
                (Operand::Scalar(arg), Param::Scalar(param)) => {
                    let value = self.scalar_as(host, arg, program.scalars[param].ty);
                    r.scalars.insert(param, value);
                }
                (Operand::Tensor(arg), Param::Tensor(param)) => {
                    let (base, offset) = match program.tensors[program.root(arg)].def {
                        TensorDef::View(buffer) => (Base::Window(buffer), self.layout.buffers[buffer].offset as i64),
                        TensorDef::HostParam(number, _) => (Base::Arg(number as usize), 0),
                        ref def => panic!("{def:?} in the host driver"),
                    };
                    let data = &program.tensors[param];
                    let mut strides = self.shape(&data.shape);
                    let mut stride = data.dtype.size();
                    for extent in strides.iter_mut().rev() {
                        stride *= std::mem::replace(extent, stride);
                    }
                    r.views.insert(param, View { base, offset, strides });
                }
                _ => panic!("kinds of arguments and parameters differ"),
            }
        }
        self.block(&mut r, program.entries[entry].body)
    }

    // Scalars.

    fn scalar(&self, r: &Registers, scalar: Scalar) -> Value {
        let data = &self.program.scalars[scalar];
        match data.def {
            ScalarDef::Extent(e) => Int(self.extent(e).into()),
            ScalarDef::Float(value) => Float(value),
            ScalarDef::Bool(value) => Int(value.into()),
            ScalarDef::HostParam(number) => {
                decode(&self.bits[number as usize].to_ne_bytes()[..data.ty.dtype().size() as usize], data.ty.dtype())
            }
            _ => r.scalars[&scalar],
        }
    }

    /// A scalar where a type is needed.
    fn scalar_as(&self, r: &Registers, scalar: Scalar, ty: ScalarType) -> Value {
        match self.scalar(r, scalar) {
            Int(value) if ty == ScalarType::F32 => Float(value as f32),
            value => wrap(value, ty.dtype()),
        }
    }

    /// A scalar as an element.
    fn as_element(&self, r: &Registers, scalar: Scalar, dtype: DType) -> Value {
        match self.scalar(r, scalar) {
            Int(value) if dtype.is_float() => wrap(Float(value as f32), dtype),
            value => wrap(value, dtype),
        }
    }

    fn int(&self, r: &Registers, scalar: Scalar) -> i64 {
        match self.scalar(r, scalar) {
            Int(value) => value as i64,
            Float(value) => panic!("{value} is no integer"),
        }
    }

    fn ints(&self, r: &Registers, scalars: &Dims) -> Vec<i64> {
        scalars.iter().map(|&s| self.int(r, s)).collect()
    }

    fn expr(&self, r: &Registers, expr: &Expr, ty: ScalarType) -> Step<Value> {
        Ok(match *expr {
            Expr::Copy(a) => self.scalar_as(r, a, ty),
            Expr::Unary(UnaryOp::Not, a) => Int((self.scalar(r, a) == Int(0)).into()),
            Expr::Unary(UnaryOp::Neg, a) => match self.scalar_as(r, a, ty) {
                Int(a) => wrap(Int(-a), ty.dtype()),
                Float(a) => Float(-a),
            },
            Expr::Binary(op, a, b) => {
                let operands = if op.is_comparison() { self.program.common_type(a, b) } else { ty };
                match (self.scalar_as(r, a, operands), self.scalar_as(r, b, operands)) {
                    (Int(a), Int(b)) => {
                        let result = int_op(op, a, b).ok_or_else(|| self.fault(r, FaultKind::Division, &[], &[]))?;
                        wrap(Int(result), ty.dtype())
                    }
                    (Float(a), Float(b)) => float_op(op, a, b),
                    (a, b) => panic!("{a:?} {op} {b:?}"),
                }
            }
            Expr::Cast(a) => convert(self.scalar(r, a), ty.dtype()),
            Expr::Select { cond, then, other } => {
                let chosen = if self.scalar(r, cond) == Int(0) { other } else { then };
                self.scalar_as(r, chosen, ty)
            }
            Expr::Rank(window) => {
                let number = self.domain(r, window).iter().position(|&rank| rank == r.rank);
                Int(number.expect("the rank is in the domain") as i128)
            }
            Expr::NRanks(window) => Int(self.domain(r, window).len() as i128),
        })
    }

    // Checks.

    fn fault(&self, r: &Registers, kind: FaultKind, offsets: &[i64], extents: &[i64]) -> Fault {
        let op = r.op.expect("an op runs");
        Fault { op, kind, dim: u32::MAX, operand: u32::MAX, offsets: offsets.to_vec(), extents: extents.to_vec() }
    }

    fn check(&self, r: &Registers, operand: u32, tensor: Tensor, at: &[i64], extents: &[i64]) -> Step {
        if extents.iter().min() == Some(&0) {
            return Ok(());
        }
        let shape = self.shape(&self.program.tensors[tensor].shape);
        for dim in 0..shape.len() {
            let end = i128::from(at[dim]) + i128::from(extents[dim]);
            if at[dim] < 0 || extents[dim] < 0 || end > shape[dim].into() {
                let fault = self.fault(r, FaultKind::Bounds, at, extents);
                return Err(Fault { dim: dim as u32, operand, ..fault });
            }
        }
        Ok(())
    }

    fn peer(&self, r: &Registers, window: Tensor, peer: Scalar) -> Step<usize> {
        let (peer, domain) = (self.int(r, peer), self.domain(r, window));
        if peer < 0 || peer >= domain.len() as i64 {
            return Err(self.fault(r, FaultKind::Peer, &[peer], &[domain.len() as i64]));
        }
        Ok(domain[peer as usize])
    }

    /// The ranks that share a window, in the order of their numbers.
    fn domain(&self, r: &Registers, window: Tensor) -> &[usize] {
        let Base::Window(buffer) = r.views[&window].base else { panic!("a peer's memory is a window") };
        &self.domains[&buffer]
    }

    fn array_index(&self, r: &Registers, array: Array, index: Scalar) -> Step<usize> {
        let (index, len) = (self.int(r, index), r.arrays[&array].len() as i64);
        if index < 0 || index >= len {
            return Err(self.fault(r, FaultKind::Array, &[index], &[len]));
        }
        Ok(index as usize)
    }

    // Memory.

    fn memory(&mut self, r: &Registers, tensor: Tensor, rank: usize, at: &[i64]) -> &mut [u8] {
        let view = &r.views[&tensor];
        let offset = view.offset + view.strides.iter().zip(at).map(|(s, a)| s * a).sum::<i64>();
        let all = match view.base {
            Base::Window(_) => &mut self.windows[rank],
            Base::Arg(number) => &mut self.args[number][rank],
        };
        &mut all[offset as usize..][..self.program.tensors[tensor].dtype.size() as usize]
    }

    fn element(&mut self, r: &Registers, tensor: Tensor, rank: usize, at: &[i64]) -> Value {
        let dtype = self.program.tensors[tensor].dtype;
        decode(self.memory(r, tensor, rank, at), dtype)
    }

    fn set_element(&mut self, r: &Registers, tensor: Tensor, rank: usize, at: &[i64], value: Value) {
        let bytes = encode(value, self.program.tensors[tensor].dtype);
        self.memory(r, tensor, rank, at).copy_from_slice(&bytes);
    }

    fn load(&mut self, r: &mut Registers, dst: Tile, src: Tensor, peer: Option<Scalar>, at: &Dims) -> Step {
        let rank = peer.map_or(Ok(r.rank), |peer| self.peer(r, src, peer))?;
        let (at, shape) = (self.ints(r, at), self.shape(&self.program.tiles[dst].shape));
        self.check(r, 0, src, &at, &shape)?;
        let tile = positions(&shape).iter().map(|p| self.element(r, src, rank, &sum(&at, p))).collect();
        r.tiles.insert(dst, tile);
        Ok(())
    }

    fn store(
        &mut self,
        r: &Registers,
        src: Tile,
        dst: Tensor,
        peer: Option<Scalar>,
        at: &Dims,
        atomic: Atomic,
    ) -> Step {
        let rank = peer.map_or(Ok(r.rank), |peer| self.peer(r, dst, peer))?;
        let (at, shape) = (self.ints(r, at), self.shape(&self.program.tiles[src].shape));
        self.check(r, 0, dst, &at, &shape)?;
        for (position, &value) in positions(&shape).iter().zip(&r.tiles[&src]) {
            self.land(r, dst, rank, &sum(&at, position), value, atomic);
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        r: &Registers,
        (dst, dst_rank): (Tensor, usize),
        (src, src_rank): (Tensor, usize),
        region: Option<&Region>,
        atomic: Atomic,
    ) -> Step {
        let (dst_at, src_at, shape) = match region {
            Some(region) => (self.ints(r, &region.dst), self.ints(r, &region.src), self.ints(r, &region.shape)),
            None => {
                let shape = self.shape(&self.program.tensors[dst].shape);
                (vec![0; shape.len()], vec![0; shape.len()], shape)
            }
        };
        self.check(r, 0, dst, &dst_at, &shape)?;
        self.check(r, 1, src, &src_at, &shape)?;
        let moved: Vec<_> =
            positions(&shape).into_iter().map(|p| (self.element(r, src, src_rank, &sum(&src_at, &p)), p)).collect();
        for (value, position) in moved {
            self.land(r, dst, dst_rank, &sum(&dst_at, &position), value, atomic);
        }
        Ok(())
    }

    fn land(&mut self, r: &Registers, dst: Tensor, rank: usize, at: &[i64], value: Value, atomic: Atomic) {
        let dtype = self.program.tensors[dst].dtype;
        let value = match atomic {
            Atomic::None => value,
            Atomic::Add => {
                let old = self.element(r, dst, rank, at);
                tile_op(TileOp::Add, dtype, old, value).expect("addition has a result")
            }
        };
        self.set_element(r, dst, rank, at, value);
    }
}

fn sum(a: &[i64], b: &[i64]) -> Vec<i64> {
    a.iter().zip(b).map(|(x, y)| x + y).collect()
}

/// Every position in a region, row-major.
fn positions(shape: &[i64]) -> Vec<Vec<i64>> {
    shape.iter().fold(vec![Vec::new()], |outer, &extent| {
        outer.iter().flat_map(|p| (0..extent).map(move |i| p.iter().copied().chain([i]).collect())).collect()
    })
}

pub fn decode(bytes: &[u8], dtype: DType) -> Value {
    macro_rules! int {
        ($ty:ty) => {
            Int(<$ty>::from_ne_bytes(bytes.try_into().unwrap()).into())
        };
    }
    match dtype {
        DType::F32 => Float(f32::from_ne_bytes(bytes.try_into().unwrap())),
        DType::F16 => Float(f16::from_ne_bytes(bytes.try_into().unwrap()).to_f32()),
        DType::BF16 => Float(bf16::from_ne_bytes(bytes.try_into().unwrap()).to_f32()),
        DType::I8 => int!(i8),
        DType::U8 | DType::Bool | DType::F8E4M3 | DType::F8E5M2 => int!(u8),
        DType::I16 => int!(i16),
        DType::U16 => int!(u16),
        DType::I32 => int!(i32),
        DType::U32 => int!(u32),
        DType::I64 => int!(i64),
        DType::U64 => int!(u64),
    }
}

pub fn encode(value: Value, dtype: DType) -> Vec<u8> {
    match (value, dtype) {
        (Float(v), DType::F32) => v.to_ne_bytes().to_vec(),
        (Float(v), DType::F16) => f16::from_f32(v).to_ne_bytes().to_vec(),
        (Float(v), DType::BF16) => bf16::from_f32(v).to_ne_bytes().to_vec(),
        (Int(v), _) => match dtype.size() {
            1 => (v as u8).to_ne_bytes().to_vec(),
            2 => (v as u16).to_ne_bytes().to_vec(),
            4 => (v as u32).to_ne_bytes().to_vec(),
            _ => (v as u64).to_ne_bytes().to_vec(),
        },
        _ => panic!("{value:?} is no {dtype}"),
    }
}

/// The value that a type keeps of a value of its kind.
fn wrap(value: Value, dtype: DType) -> Value {
    decode(&encode(value, dtype), dtype)
}

/// A cast.
fn convert(value: Value, to: DType) -> Value {
    match value {
        Int(v) if to == DType::Bool => Int((v != 0).into()),
        Float(v) if to == DType::Bool => Int((v != 0.0).into()),
        Int(v) if to.is_float() => wrap(Float(v as f32), to),
        Float(v) if !to.is_float() => {
            let (min, max) = match to {
                DType::I8 => (i8::MIN.into(), i8::MAX.into()),
                DType::U8 => (0, u8::MAX.into()),
                DType::I16 => (i16::MIN.into(), i16::MAX.into()),
                DType::U16 => (0, u16::MAX.into()),
                DType::I32 => (i32::MIN.into(), i32::MAX.into()),
                DType::U32 => (0, u32::MAX.into()),
                DType::I64 => (i64::MIN.into(), i64::MAX.into()),
                _ => (0, i128::from(u64::MAX)),
            };
            Int((v as i128).clamp(min, max))
        }
        value => wrap(value, to),
    }
}

fn int_op(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b)?,
        BinaryOp::Rem => a.checked_rem(b)?,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::Eq => (a == b).into(),
        BinaryOp::Ne => (a != b).into(),
        BinaryOp::Lt => (a < b).into(),
        BinaryOp::Le => (a <= b).into(),
        BinaryOp::Gt => (a > b).into(),
        BinaryOp::Ge => (a >= b).into(),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
    })
}

fn float_op(op: BinaryOp, a: f32, b: f32) -> Value {
    let nan = a.is_nan() || b.is_nan();
    match op {
        BinaryOp::Add => Float(a + b),
        BinaryOp::Sub => Float(a - b),
        BinaryOp::Mul => Float(a * b),
        BinaryOp::Div => Float(a / b),
        BinaryOp::Min | BinaryOp::Max if nan => Float(f32::NAN),
        // Of the two zeros, the negative one is smaller.
        BinaryOp::Min => Float(if a < b || a == b && a.is_sign_negative() { a } else { b }),
        BinaryOp::Max => Float(if a > b || a == b && a.is_sign_positive() { a } else { b }),
        BinaryOp::Eq => Int((a == b).into()),
        BinaryOp::Ne => Int((a != b).into()),
        BinaryOp::Lt => Int((a < b).into()),
        BinaryOp::Le => Int((a <= b).into()),
        BinaryOp::Gt => Int((a > b).into()),
        BinaryOp::Ge => Int((a >= b).into()),
        BinaryOp::Rem | BinaryOp::And | BinaryOp::Or => panic!("{op} on floats"),
    }
}

/// None for a division by zero.
fn tile_op(op: TileOp, dtype: DType, a: Value, b: Value) -> Option<Value> {
    let op = match op {
        TileOp::Add => BinaryOp::Add,
        TileOp::Sub => BinaryOp::Sub,
        TileOp::Mul => BinaryOp::Mul,
        TileOp::Div => BinaryOp::Div,
        TileOp::Max => BinaryOp::Max,
        TileOp::Min => BinaryOp::Min,
    };
    let result = match (a, b) {
        (Int(a), Int(b)) => Int(int_op(op, a, b)?),
        (Float(a), Float(b)) => float_op(op, a, b),
        _ => panic!("{a:?} {op} {b:?}"),
    };
    Some(wrap(result, dtype))
}

/// Sums of floats are kept in f32, in any order: tests use values whose sums are exact.
fn reduce(op: ReduceOp, dtype: DType, line: &[Value]) -> Value {
    let op = if op == ReduceOp::Sum { TileOp::Add } else { TileOp::Max };
    let wide = if dtype.is_float() { DType::F32 } else { dtype };
    let all = line.iter().copied().reduce(|a, b| tile_op(op, wide, a, b).expect("no division"));
    wrap(all.expect("a tile has elements"), dtype)
}
