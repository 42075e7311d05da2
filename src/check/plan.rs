//! What all runs of a program have in common.

use std::collections::HashSet;

use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

use super::options::{Arg, Options};
use super::value::Value;
use crate::error::{Error, Result};
use crate::ir::effects::{Access as Does, Effect, Peers, Place, Span, effects};
use crate::ir::extent::Known;
use crate::ir::op::Dims;
use crate::ir::program::{Param, ScalarDef, TensorDef};
use crate::ir::{Array, Block, Buffer, Entry, Extent, Op, OpKind, Operand, Program, Tensor, Tile, Var, WaitCmp};
use crate::passes::plan_windows::{Layout, plan_windows};
use crate::passes::task_graph::{Tasks, tasks};
use crate::verify::domains::Domains;

/// Most launches in a row.
pub const MAX_LAUNCHES: u32 = 1000;

/// Numbers, one a dimension.
pub type Numbers = SmallVec<[i64; 4]>;

/// A place in memory that an op touches, from the table of effects.
#[derive(Clone, Debug)]
pub struct Touch {
    pub does: Does,
    pub tensor: Tensor,
    /// The ranks whose memory it is; none for the own one.
    pub peers: Option<Peers>,
    pub at: Dims,
    pub reach: Reach,
}

/// How far a place reaches.
#[derive(Clone, Debug)]
pub enum Reach {
    Numbers(Numbers),
    Scalars(Dims),
    Whole,
}

/// A program for a world, with what is known before it runs.
pub struct Plan<'p> {
    pub program: &'p Program,
    /// Ops of the program that was given; those behind them are what its collectives are written out as.
    pub given_ops: usize,
    pub options: &'p Options<'p>,
    pub nranks: usize,
    pub layout: Layout,
    pub shapes: SecondaryMap<Tensor, Numbers>,
    pub tiles: SecondaryMap<Tile, Numbers>,
    pub arrays: SecondaryMap<Array, usize>,
    /// What each op does to memory.
    pub touches: SecondaryMap<Op, SmallVec<[Touch; 2]>>,
    /// Scalars before anything runs: literals and sizes have their value.
    pub scalars: Vec<Value>,
    pub tasks: SecondaryMap<Entry, Tasks>,
    /// Variables and arrays that tasks use: an entry that uses them comes after those tasks.
    pub task_vars: SecondaryMap<Var, bool>,
    pub task_arrays: SecondaryMap<Array, bool>,
    /// Those that an entry itself defines.
    pub outer_vars: SecondaryMap<Var, bool>,
    pub outer_arrays: SecondaryMap<Array, bool>,
    /// Buffers of which some wait needs the exact value.
    pub exact: HashSet<Buffer>,
    domains: SecondaryMap<Buffer, Vec<usize>>,
}

impl<'p> Plan<'p> {
    /// Looks at a program without collectives and at the arguments it is to run with.
    pub fn new(program: &'p Program, given_ops: usize, options: &'p Options<'p>) -> Result<Self> {
        let nranks = options.nranks as usize;
        if nranks == 0 || !(1..=MAX_LAUNCHES).contains(&options.launches) {
            let message = format!("a check of {nranks} ranks and {} launches", options.launches);
            return Err(Error::invalid(message));
        }
        let known = Known { world: Some(i64::from(options.nranks)), dims: options.dims };
        let extents = &program.extents;
        let numbers = |shape: &[Extent]| shape.iter().map(|&e| extents.eval(e, known).unwrap_or(0)).collect();
        let domains = Domains::new(program, Some(options.nranks));
        let of = |buffer| domains.of(buffer).map_or(Vec::new(), |domain| domains.ranks[domain].clone());
        let mut plan = Self {
            program,
            given_ops,
            options,
            nranks,
            layout: plan_windows(program, options.nranks)?,
            shapes: program.tensors.iter().map(|(tensor, data)| (tensor, numbers(&data.shape))).collect_map(),
            tiles: program.tiles.iter().map(|(tile, data)| (tile, numbers(&data.shape))).collect_map(),
            arrays: program
                .arrays
                .iter()
                .map(|(array, data)| (array, extents.eval(data.len, known).unwrap_or(0).max(0) as usize))
                .collect_map(),
            scalars: program
                .scalars
                .values()
                .map(|data| match data.def {
                    ScalarDef::Extent(extent) => Value::Int(extents.eval(extent, known).unwrap_or(0).into()),
                    ScalarDef::Float(value) => Value::Float(value),
                    ScalarDef::Bool(value) => Value::Int(value.into()),
                    _ => Value::Int(0),
                })
                .collect(),
            touches: SecondaryMap::new(),
            tasks: SecondaryMap::new(),
            task_vars: SecondaryMap::new(),
            task_arrays: SecondaryMap::new(),
            outer_vars: SecondaryMap::new(),
            outer_arrays: SecondaryMap::new(),
            exact: HashSet::new(),
            domains: program
                .buffers
                .keys()
                .map(|buffer| (buffer, of(buffer).into_iter().map(|rank| rank as usize).collect()))
                .collect_map(),
        };
        plan.touches = program.ops.iter().map(|(op, data)| (op, plan.touches_of(&data.kind))).collect_map();
        let known = Known { world: known.world, dims: &[] };
        for (entry, data) in &program.entries {
            plan.tasks[entry] = tasks(program, entry, known);
            plan.outer(data.body);
        }
        let exact = program.ops.values().filter_map(|op| match op.kind {
            OpKind::Wait { window, cmp: WaitCmp::Eq, .. } => Some(window),
            _ => None,
        });
        plan.exact = exact.flat_map(|window| plan.buffers_of(window)).collect();
        plan.check_args()?;
        Ok(plan)
    }

    fn touches_of(&self, kind: &OpKind) -> SmallVec<[Touch; 2]> {
        let touch = |Effect { access, place }| match place {
            Place::Memory { tensor, peer, at, span } => {
                let reach = match span {
                    Span::Element => Reach::Numbers(Numbers::from_elem(1, at.len())),
                    Span::Shape(shape) => Reach::Numbers(shape.iter().map(|&extent| self.extent(extent)).collect()),
                    Span::Dims(dims) => Reach::Scalars(dims),
                    Span::Whole => Reach::Whole,
                };
                Some(Touch { does: access, tensor, peers: peer, at, reach })
            }
            Place::Tile(_) | Place::Var(_) | Place::Array(_) => None,
        };
        effects(self.program, kind).into_iter().filter_map(touch).collect()
    }

    /// The value of a size.
    pub fn extent(&self, extent: Extent) -> i64 {
        let known = Known { world: Some(self.nranks as i64), dims: self.options.dims };
        self.program.extents.eval(extent, known).unwrap_or(0)
    }

    /// Looks for what an entry defines outside its tasks, and for what the tasks use.
    fn outer(&mut self, block: Block) {
        let program = self.program;
        for &op in &program.blocks[block] {
            match program.ops[op].kind {
                OpKind::VarDef { var, .. } => self.outer_vars[var] = true,
                OpKind::ArrayDef { array, .. } => self.outer_arrays[array] = true,
                OpKind::Task { body, .. } => program.walk(body, &mut |op| {
                    for effect in effects(program, &program.ops[op].kind) {
                        match effect.place {
                            Place::Var(var) => self.task_vars[var] = true,
                            Place::Array(array) => self.task_arrays[array] = true,
                            Place::Memory { .. } | Place::Tile(_) => {}
                        }
                    }
                }),
                ref kind => kind.blocks().into_iter().for_each(|inner| self.outer(inner)),
            }
        }
    }

    /// The arguments are those of the host driver.
    fn check_args(&self) -> Result<()> {
        let Some(host) = &self.program.host else { return Err(Error::invalid("the program has no host driver")) };
        let (count, given) = (host.params.len(), self.options.args.len());
        if given != count && given != count * self.options.launches as usize {
            let message = format!(
                "'{}' takes {count} arguments, or as many for each of {} launches, not {given}",
                self.program.name, self.options.launches
            );
            return Err(Error::invalid(message));
        }
        for (index, arg) in self.options.args.iter().enumerate() {
            let param = host.params[index % count];
            let (right, bytes) = match param {
                Param::Scalar(_) => (matches!(arg, Arg::Bits(_)), 0),
                Param::Tensor(tensor) => {
                    let ranked = self.program.is_sliced(tensor);
                    let elements: i64 = self.shapes[tensor].iter().skip(usize::from(ranked)).product();
                    let bytes = (elements * self.program.tensors[tensor].dtype.size()) as usize;
                    let right = match arg {
                        Arg::Ranked(parts) => {
                            parts.len() == self.nranks && parts.iter().all(|part| part.len() == bytes)
                        }
                        Arg::Shared(whole) => !ranked && whole.len() == bytes,
                        Arg::Bits(_) => false,
                    };
                    (right, bytes)
                }
            };
            if !right {
                let wanted = match param {
                    Param::Scalar(_) => "a scalar".into(),
                    Param::Tensor(_) => format!("a tensor of {bytes} bytes for each of {} ranks", self.nranks),
                };
                return Err(Error::invalid(format!("argument {index} of '{}' is not {wanted}", self.program.name)));
            }
        }
        Ok(())
    }

    /// The first argument of a launch.
    pub fn args_of(&self, launch: u32) -> usize {
        let count = self.program.host.as_ref().map_or(0, |host| host.params.len());
        if self.options.args.len() == count { 0 } else { launch as usize * count }
    }

    /// The ranks that share a buffer, in the order of their numbers.
    pub fn domain(&self, buffer: Buffer) -> &[usize] {
        &self.domains[buffer]
    }

    /// The call that an op is part of, of those that the program makes.
    pub fn call_of(&self, op: Op) -> Option<Op> {
        let (program, loc) = (self.program, self.program.ops[op].loc);
        let calls =
            program.ops.iter().take(self.given_ops).filter(|(_, data)| matches!(data.kind, OpKind::Collective(_)));
        let mut here = calls.filter(|(_, data)| op.index() >= self.given_ops && data.loc == loc);
        here.next().map(|(call, _)| call)
    }

    /// The buffers that a window parameter, or a part of one, may be.
    pub fn buffers_of(&self, tensor: Tensor) -> Vec<Buffer> {
        let program = self.program;
        let root = program.root(tensor);
        let TensorDef::Window(entry, number) = program.tensors[root].def else { return Vec::new() };
        let passed = program.ops.values().filter_map(|op| match &op.kind {
            OpKind::Dispatch { entry: callee, args, .. } if *callee == entry => match args.get(number as usize) {
                Some(&Operand::Tensor(view)) => match program.tensors[view].def {
                    TensorDef::View(buffer) => Some(buffer),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        });
        passed.collect()
    }
}

/// Collects pairs into a map with a default for the rest.
trait CollectMap<K: EntityRef, V: Clone> {
    fn collect_map(self) -> SecondaryMap<K, V>;
}

impl<K: EntityRef, V: Clone + Default, I: Iterator<Item = (K, V)>> CollectMap<K, V> for I {
    fn collect_map(self) -> SecondaryMap<K, V> {
        let mut map = SecondaryMap::new();
        for (key, value) in self {
            map[key] = value;
        }
        map
    }
}
