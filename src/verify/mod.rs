//! The rules of a program.
//!
//! [`verify`] reports everything that is wrong with a program, not only the first mistake. [`rules`] lists what can be,
//! and each group of rules has a file: `structure` (where ops may stand, what they may use), `types` and `tiles` (element
//! types, ranks, shapes), `sizes`, `bounds` (regions, peers, indices), `comm` (signals and transfers), `host` (the host
//! driver and what it dispatches), `devices` (the ranks that it dispatches to), `collectives`, `tasks` (what orders
//! tasks), `waiters` (deferred waits) and `callbacks` (the engine's own functions). Two analyses serve the rules and code
//! generation: [`domains`] tells which ranks share a window, [`range`] what values scalars can have.
//!
//! An error is only reported for what certainly goes wrong where the op runs: offsets that depend on data are checked
//! when they run. With the world size more is certain than without, so a program is verified when it is finished, and
//! again when it is compiled. Not checked is whether ranks wait for each other in a circle, whether they race, and
//! whether enough notifies are made for what is waited for: that takes an exploration of schedules, which the checker
//! does.

mod bounds;
mod callbacks;
mod collectives;
mod comm;
mod devices;
pub mod domains;
mod host;
mod names;
pub mod range;
mod report;
pub mod rules;
mod sizes;
mod structure;
mod tasks;
#[cfg(test)]
mod tests;
mod tiles;
mod types;
mod waiters;

use std::cell::OnceCell;

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::ReservedValue;

use crate::ir::effects::{self, Scope};
use crate::ir::extent::Known;
use crate::ir::print::Text;
use crate::ir::program::{Param, TensorDef};
use crate::ir::{Block, Diagnostic, Entry, Expr, Extent, Op, OpKind, Program, Scalar, Task, Tensor, Tile};

use domains::Domains;
use names::Names;
use range::{Entered, Ranges};
use report::{Finding, Report, Subject};
use rules::Rule;

/// Every mistake in a program, errors and warnings, in source order; with the size of the world once it is known.
pub fn verify(program: &Program, world: Option<u32>) -> Vec<Diagnostic> {
    verify_with(program, world, &OnceCell::new())
}

/// The same; makes the program's text if a finding needs it.
fn verify_with<'a>(program: &'a Program, world: Option<u32>, text: &'a OnceCell<Text<'a>>) -> Vec<Diagnostic> {
    let names = Names::new(program, text);
    let mut verifier = Verifier {
        cx: Context::new(program, world, names),
        values: structure::Values::new(program),
        signals: comm::Signals::default(),
        uses: host::Uses::default(),
        tasks: tasks::Tasks::default(),
        waiters: waiters::Waiters::default(),
        functions: callbacks::Functions::default(),
    };
    verifier.program();
    verifier.cx.report.finish()
}

/// What every rule sees.
struct Context<'a> {
    program: &'a Program,
    /// The world size, if it is known.
    known: Known<'static>,
    domains: Domains,
    ranges: Ranges,
    /// What each tensor is a part of; [`Program::root`] of every tensor.
    roots: SecondaryMap<Tensor, Option<Tensor>>,
    /// What values are other names of.
    originals: SecondaryMap<Scalar, Option<Scalar>>,
    /// Results of operands that do not go together: their type says nothing.
    untyped: SecondaryMap<Scalar, bool>,
    /// Whether the size of a tile is sound, once it has been looked at.
    sized: SecondaryMap<Tile, Option<bool>>,
    names: Names<'a>,
    report: Report<'a>,
}

impl<'a> Context<'a> {
    fn new(program: &'a Program, world: Option<u32>, names: Names<'a>) -> Self {
        let mut roots = SecondaryMap::with_capacity(program.tensors.len());
        for (tensor, data) in &program.tensors {
            // A part comes after what it is a part of.
            roots[tensor] = match data.def {
                TensorDef::Slice(src, _) | TensorDef::Flat(src) | TensorDef::HostSlice(src, _) => roots[src],
                _ => Some(tensor),
            };
        }
        let mut originals: SecondaryMap<Scalar, Option<Scalar>> = SecondaryMap::new();
        for op in program.ops.values() {
            if let OpKind::Scalar { dst, expr: Expr::Copy(of) } = op.kind {
                originals[dst] = originals[of].or(Some(of));
            }
        }
        let known = Known { world: world.map(i64::from), dims: &[] };
        let domains = Domains::new(program, world);
        let ranges = Ranges::new(program, &domains, world);
        Self {
            program,
            known,
            domains,
            ranges,
            roots,
            originals,
            untyped: SecondaryMap::new(),
            sized: SecondaryMap::new(),
            names,
            report: Report::new(program, names),
        }
    }

    fn kind(&self, op: Op) -> &'a OpKind {
        &self.program.ops[op].kind
    }

    fn find(&mut self, rule: &Rule, op: Op, message: impl Into<String>) -> Finding<'_> {
        self.report.add(rule, Subject::Op(op), message)
    }

    fn root(&self, tensor: Tensor) -> Tensor {
        self.roots[tensor].unwrap_or(tensor)
    }

    fn is_window(&self, tensor: Tensor) -> bool {
        matches!(self.program.tensors[self.root(tensor)].def, TensorDef::Window(..) | TensorDef::View(_))
    }

    /// `the world has 4 ranks, 0 to 3`.
    fn all_ranks(&self) -> String {
        match self.known.world {
            Some(world) => format!("the world has {}, 0 to {}", names::count(world as usize, "rank"), world - 1),
            None => "ranks are 0 to world - 1".into(),
        }
    }

    /// Two sizes are equal in every launch.
    fn same(&self, a: Extent, b: Extent) -> bool {
        a == b || self.program.extents.sum(&[(a, 1), (b, -1)], self.known) == Some(0)
    }

    /// Two sizes are not known to be equal, and will not be once the world is known.
    fn mismatch(&self, a: Extent, b: Extent) -> bool {
        let sum = self.program.extents.sum(&[(a, 1), (b, -1)], self.known);
        match sum {
            Some(difference) => difference != 0,
            None => self.known.world.is_some() || !(self.has_world(a) || self.has_world(b)),
        }
    }

    fn has_world(&self, e: Extent) -> bool {
        use crate::ir::extent::ExtentData::*;
        match self.program.extents.get(e) {
            Int(_) => false,
            World => true,
            Dim(dim) => self.program.extents.dims[dim].value.is_some_and(|value| self.has_world(value)),
            Binary(_, a, b) => self.has_world(a) || self.has_world(b),
        }
    }

    /// The first dimension in which two shapes of one rank do not match.
    fn shape_mismatch(&self, a: &[Extent], b: &[Extent]) -> Option<usize> {
        a.iter().zip(b).position(|(&a, &b)| self.mismatch(a, b))
    }

    /// The value behind its other names.
    fn original(&self, scalar: Scalar) -> Scalar {
        self.originals[scalar].unwrap_or(scalar)
    }
}

/// Where a walk over the program is.
#[derive(Clone, Copy, Debug)]
struct Position {
    op: Op,
    /// Host, entry or InCore.
    scope: Scope,
    entry: Option<Entry>,
    task: Option<Task>,
    /// Loops and ifs around the op that it may not run under.
    conditions: u32,
    /// The op is inside a loop or an if.
    nested: bool,
    /// The outermost loop around the op, in its task or outside of tasks.
    within: Option<Op>,
    /// How often the op runs at least, each time its task does.
    times: i64,
    /// What runs the op in several copies: a grid, or a loop over ranks.
    copies: Option<Op>,
    /// Only deps order tasks here.
    manual: bool,
    /// The op may run.
    reached: bool,
}

struct Verifier<'a> {
    cx: Context<'a>,
    values: structure::Values,
    signals: comm::Signals,
    uses: host::Uses,
    tasks: tasks::Tasks,
    waiters: waiters::Waiters,
    functions: callbacks::Functions<'a>,
}

impl Verifier<'_> {
    fn program(&mut self) {
        let program = self.cx.program;
        let start = |scope, entry| Position {
            op: Op::reserved_value(),
            scope,
            entry,
            task: None,
            conditions: 0,
            nested: false,
            within: None,
            times: 1,
            copies: None,
            manual: false,
            reached: true,
        };
        structure::program(&mut self.cx);
        sizes::params(&mut self.cx);
        for (entry, data) in &program.entries {
            self.enter_body(&data.params, data.body, start(Scope::Entry, Some(entry)));
            self.tasks.finish_entry(&mut self.cx);
        }
        if let Some(host) = &program.host {
            self.enter_body(&host.params, host.body, start(Scope::Host, None));
        }
        self.uses.finish(&mut self.cx);
        self.signals.finish(&mut self.cx, &self.uses);
    }

    fn enter_body(&mut self, params: &[Param], body: Block, here: Position) {
        let outer = self.values.enter();
        self.values.define_params(params);
        self.block(body, here);
        self.values.leave(outer);
    }

    fn block(&mut self, block: Block, around: Position) {
        for &op in &self.cx.program.blocks[block] {
            let here = Position { op, ..around };
            let kind = self.cx.kind(op);
            let effects = effects::effects(self.cx.program, kind);
            // A mistake is not also told its consequences.
            let placed = structure::placement(&mut self.cx, here);
            let defined = self.values.check(&mut self.cx, here, &effects);
            let sound = placed && defined && comm::check(&mut self.cx, here) && types::check(&mut self.cx, here);
            if sound && here.reached {
                bounds::check(&mut self.cx, here, &effects);
            }
            self.signals.note(&mut self.cx, here, &effects);
            self.uses.check(&mut self.cx, here, &effects);
            self.tasks.check(&mut self.cx, here, &effects);
            self.waiters.check(&mut self.cx, here);
            self.functions.check(&mut self.cx, here);
            for (index, inner) in kind.blocks().into_iter().enumerate() {
                self.inner(inner, index, kind, here);
            }
        }
    }

    fn inner(&mut self, block: Block, index: usize, kind: &OpKind, here: Position) {
        let entered = self.cx.ranges.entered(self.cx.program, here.op, index);
        let mut inside = Position {
            conditions: here.conditions + u32::from(entered != Entered::Always),
            reached: here.reached && entered != Entered::Never,
            nested: here.nested || matches!(kind, OpKind::For { .. } | OpKind::If { .. } | OpKind::Ranks { .. }),
            manual: here.manual || matches!(kind, OpKind::Manual { .. }),
            ..here
        };
        match *kind {
            OpKind::Task { task, .. } => {
                inside = Position { scope: Scope::InCore, task: Some(task), within: None, times: 1, ..inside };
            }
            OpKind::For { first, end, step, .. } => {
                inside.within = here.within.or(Some(here.op));
                inside.times = here.times.saturating_mul(self.cx.ranges.least_trips(first, end, step));
            }
            OpKind::If { .. } if entered != Entered::Always => inside.times = 0,
            _ => {}
        }
        if let OpKind::Task { grid: Some(_), .. } | OpKind::Ranks { .. } = kind {
            inside.copies = Some(here.op);
        }
        let outer = self.values.enter();
        if let Some(index) = kind.index() {
            self.values.define_scalar(index);
        }
        self.block(block, inside);
        self.values.leave(outer);
    }
}
