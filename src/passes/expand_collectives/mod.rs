//! Writes collectives out in the ops that users write.
//!
//! Calls on one *channel* pair in their order. A channel has windows of its own: cells, by which ranks tell each other
//! that they have arrived, and a stage, from which others take. A collective of the host driver first becomes an entry
//! with a task that calls it; then each call is replaced by its algorithm.

mod algorithms;
mod all_to_all_v;
mod channels;
mod exchange;
mod from_host;
mod hierarchy;
mod levels;
mod meeting;
mod mesh;
mod tuning;
mod windows;

use std::borrow::Cow;

use crate::error::Result;
use crate::ir::extent::Known;
use crate::ir::program::TensorDef;
use crate::ir::{Block, Collective, Entry, Mode, Op, OpKind, Program, Scalar, Tensor};

use channels::Channels;
use exchange::Exchange;
use levels::{Levels, Spread};

/// What the choice of algorithms depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Ranks of the world.
    pub nranks: u32,
    /// There are more ranks than CPUs.
    pub crowded: bool,
    /// The host of each rank; none if all run on one. Ranks of one host see each other's windows in their own address
    /// space.
    pub hosts: Vec<u32>,
    /// Ranks compare what they call.
    pub checked: bool,
}

impl Target {
    /// Ranks of one host with a CPU each, who compare what they call.
    pub fn new(nranks: u32) -> Self {
        Self { nranks, crowded: false, hosts: Vec::new(), checked: true }
    }

    /// The same on hosts with so many ranks each, side by side; the last one has the rest.
    pub fn on_hosts(nranks: u32, ranks_per_host: u32) -> Self {
        Self { hosts: (0..nranks).map(|rank| rank / ranks_per_host).collect(), ..Self::new(nranks) }
    }

    fn is_one_host(&self) -> bool {
        self.hosts.windows(2).all(|pair| pair[0] == pair[1])
    }

    fn known(&self) -> Known<'static> {
        Known { world: Some(i64::from(self.nranks)), dims: &[] }
    }
}

/// A call of a collective inside a task.
struct Call {
    op: Op,
    block: Block,
    entry: Entry,
    collective: Collective,
    /// The blocks that share the work: how many, and which one runs.
    lanes: Option<(i64, Scalar)>,
    /// How its ranks are spread over hosts, if evenly.
    levels: Option<Levels>,
}

/// A verified program without collectives: the same one if it has none.
///
/// Errors: `Unsupported` if there are more different calls than numbers for them.
pub fn expand_collectives<'p>(program: &'p Program, target: &Target) -> Result<Cow<'p, Program>> {
    let has_calls = program.ops.values().any(|op| matches!(op.kind, OpKind::Collective(_)));
    if !has_calls {
        return Ok(Cow::Borrowed(program));
    }
    let mut builder = from_host::move_into_entries(program, target);
    let mut calls = calls(builder.program());
    let spreads = levels::spreads(builder.program(), &calls, target);
    for (call, spread) in calls.iter_mut().zip(spreads) {
        call.collective.mode = mode(builder.program(), &call.collective, spread, target);
        call.levels = spread.levels();
    }
    let channels = Channels::new(&mut builder, &calls, target)?;
    for call in calls {
        let loc = builder.program().ops[call.op].loc;
        let ops = builder.apart(loc, |b| Exchange::begin(b, &channels, &call, target).write_out(&call, target));
        builder.replace(call.block, call.op, ops);
    }
    Ok(Cow::Owned(builder.finish().expect("additions to a sound program are sound")))
}

/// The calls, in the order of the text.
fn calls(program: &Program) -> Vec<Call> {
    let mut calls = Vec::new();
    for (entry, data) in &program.entries {
        calls_in(program, entry, data.body, None, &mut calls);
    }
    calls
}

fn calls_in(program: &Program, entry: Entry, block: Block, lanes: Option<(i64, Scalar)>, calls: &mut Vec<Call>) {
    for &op in &program.blocks[block] {
        let kind = &program.ops[op].kind;
        let lanes = match kind {
            OpKind::Task { grid: Some(grid), .. } => {
                program.int_value(grid.blocks, Known::default()).map(|blocks| (blocks, grid.index))
            }
            _ => lanes,
        };
        if let OpKind::Collective(collective) = kind {
            calls.push(Call { op, block, entry, collective: (**collective).clone(), lanes, levels: None });
        }
        for inner in kind.blocks() {
            calls_in(program, entry, inner, lanes, calls);
        }
    }
}

/// The algorithm of a call.
fn mode(program: &Program, collective: &Collective, spread: Spread, target: &Target) -> Mode {
    let Some(tensor) = data(collective) else {
        return if spread.levels().is_some() { Mode::Hierarchical } else { Mode::Mesh };
    };
    // Only a mesh takes from no place in another rank's data, which may be a different one there.
    if collective.window().is_some_and(|window| !is_symmetric(program, window)) {
        return Mode::Mesh;
    }
    match collective.mode {
        Mode::Auto => {}
        Mode::Hierarchical if spread.levels().is_none() => {}
        mode => return mode,
    }
    let bytes = elements(program, tensor, target) * program.tensors[tensor].dtype.size();
    tuning::choose(collective.name(), bytes, spread, target)
}

/// A tensor is in the same place on every rank, for all that is known before it runs.
fn is_symmetric(program: &Program, tensor: Tensor) -> bool {
    match &program.tensors[tensor].def {
        TensorDef::Slice(src, at) => {
            at.iter().all(|&offset| program.extent_of(offset).is_some()) && is_symmetric(program, *src)
        }
        TensorDef::Flat(src) => is_symmetric(program, *src),
        _ => true,
    }
}

/// The tensor whose size decides: none for a barrier.
fn data(collective: &Collective) -> Option<Tensor> {
    use crate::ir::CollectiveKind::*;
    match collective.kind {
        Barrier { .. } => None,
        Allreduce { data, .. } | ReduceScatter { data, .. } | Broadcast { data, .. } => Some(data),
        Allgather { dst, .. } | AllToAll { dst, .. } => Some(dst),
        AllToAllV(ref v) => Some(v.src),
    }
}

/// How many elements a tensor has.
fn elements(program: &Program, tensor: Tensor, target: &Target) -> i64 {
    extents(program, tensor, target).iter().product()
}

/// The numbers that a tensor's extents are.
fn extents(program: &Program, tensor: Tensor, target: &Target) -> Vec<i64> {
    let value =
        |&extent| program.extents.eval(extent, target.known()).expect("sizes of collectives are known with the world");
    program.tensors[tensor].shape.iter().map(value).collect()
}
