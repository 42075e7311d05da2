//! Where ops may stand, and what they may use.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::ir::effects::{self, Effect, Place, Scope};
use crate::ir::program::{Loc, Param, ScalarDef};
use crate::ir::{Array, Buffer, Domain, Expr, Op, OpKind, Operand, Program, Scalar, Tensor, Tile, Var};

use super::names::Thing;
use super::report::Subject;
use super::{Context, Position, rules};

/// What a program must have.
pub(super) fn program(cx: &mut Context) {
    if cx.program.host.is_none() {
        let hint =
            "allocate the windows and dispatch an entry on every rank: ranks r in 0..world { dispatch ... device r }";
        cx.report.add(&rules::NO_HOST, Subject::Program, "the program has no host driver").hint(hint);
    }
}

/// An op stands where its scope allows it.
pub(super) fn placement(cx: &mut Context, here: Position) -> bool {
    let kind = cx.kind(here.op);
    let wanted = effects::scope(kind);
    let fits = match wanted {
        Scope::Anywhere => true,
        Scope::EntryOrInCore => here.scope != Scope::Host,
        Scope::InCoreOrHost => matches!(here.scope, Scope::InCore | Scope::Host),
        scope => scope == here.scope,
    };
    let name = kind.name();
    if !fits {
        let stands = match here.scope {
            Scope::Host => "in the host driver",
            Scope::InCore => "inside a task",
            _ => "outside a task",
        };
        let hint = match (wanted, here.scope) {
            (Scope::InCore, Scope::Host) => "move it into a task of an entry, and dispatch the entry",
            (Scope::InCore | Scope::InCoreOrHost, _) => "put it into a task: at name { ... }",
            (Scope::Entry, Scope::InCore) => "a task cannot hold another one; end the first before it",
            (Scope::Entry | Scope::EntryOrInCore, _) => "move it into an entry, and dispatch the entry",
            (Scope::Host, _) => "move it to the host driver, and pass what it gives as an argument of the dispatch",
            _ => "",
        };
        let message = format!("{name} stands {stands}");
        let task = here.task.map(|task| format!("the task is {}", cx.program.tasks[task].name));
        cx.find(&rules::SCOPE, here.op, message).note(task.unwrap_or_default()).hint(hint);
    } else if matches!(kind, OpKind::AllocWindow { .. }) && here.nested {
        cx.find(&rules::ALLOCATION, here.op, "alloc_window stands inside a loop or an if")
            .note("windows are allocated once, on every rank, before anything is dispatched")
            .hint("move it to the beginning of the host driver");
    }
    fits
}

type Several = SmallVec<[Thing; 8]>;

/// The values that are defined where the walk is.
pub(super) struct Values {
    defined: Vec<Thing>,
    scalars: SecondaryMap<Scalar, bool>,
    tensors: SecondaryMap<Tensor, bool>,
    tiles: SecondaryMap<Tile, bool>,
    vars: SecondaryMap<Var, bool>,
    arrays: SecondaryMap<Array, bool>,
    buffers: SecondaryMap<Buffer, bool>,
    domains: SecondaryMap<Domain, bool>,
}

impl Values {
    pub fn new(program: &Program) -> Self {
        let mut scalars = SecondaryMap::with_capacity(program.scalars.len());
        for (scalar, data) in &program.scalars {
            scalars[scalar] = matches!(data.def, ScalarDef::Extent(_) | ScalarDef::Float(_) | ScalarDef::Bool(_));
        }
        Self {
            defined: Vec::new(),
            scalars,
            tensors: SecondaryMap::with_capacity(program.tensors.len()),
            tiles: SecondaryMap::with_capacity(program.tiles.len()),
            vars: SecondaryMap::new(),
            arrays: SecondaryMap::new(),
            buffers: SecondaryMap::new(),
            domains: SecondaryMap::new(),
        }
    }

    fn slot(&mut self, value: Thing) -> &mut bool {
        match value {
            Thing::Scalar(v) => &mut self.scalars[v],
            Thing::Tensor(v) => &mut self.tensors[v],
            Thing::Tile(v) => &mut self.tiles[v],
            Thing::Var(v) => &mut self.vars[v],
            Thing::Array(v) => &mut self.arrays[v],
            Thing::Buffer(v) => &mut self.buffers[v],
            Thing::Domain(v) => &mut self.domains[v],
        }
    }

    fn define(&mut self, value: Thing) {
        if !std::mem::replace(self.slot(value), true) {
            self.defined.push(value);
        }
    }

    pub fn define_scalar(&mut self, scalar: Scalar) {
        self.define(Thing::Scalar(scalar));
    }

    pub fn define_params(&mut self, params: &[Param]) {
        for param in params {
            self.define(match *param {
                Param::Tensor(tensor) => Thing::Tensor(tensor),
                Param::Scalar(scalar) => Thing::Scalar(scalar),
            });
        }
    }

    /// Begins a block; [`Values::leave`] with the result ends it.
    pub fn enter(&self) -> usize {
        self.defined.len()
    }

    /// Forgets what the block has defined.
    pub fn leave(&mut self, outer: usize) {
        for value in self.defined.split_off(outer) {
            *self.slot(value) = false;
        }
    }

    /// Everything that the op uses is defined; then what it defines is.
    pub fn check(&mut self, cx: &mut Context, here: Position, effects: &[Effect]) -> bool {
        let (mut used, mut made) = (SmallVec::new(), SmallVec::new());
        uses_and_definitions(cx.program, cx.kind(here.op), effects, &mut used, &mut made);
        let mut sound = true;
        for value in used {
            if !*self.slot(value) {
                sound = false;
                undefined(cx, here.op, value);
                // Once is enough.
                self.define(value);
            }
        }
        for value in made {
            self.define(value);
        }
        sound
    }
}

fn uses_and_definitions(program: &Program, kind: &OpKind, effects: &[Effect], used: &mut Several, made: &mut Several) {
    kind.for_each_scalar(|scalar| used.push(Thing::Scalar(scalar)));
    made.extend(kind.result().map(Thing::Scalar));
    used.extend(kind.task().iter().flat_map(|(_, options)| &options.no_dep).map(|&tensor| Thing::Tensor(tensor)));
    match kind {
        OpKind::Scalar { expr: Expr::Rank(window) | Expr::NRanks(window), .. } => used.push(Thing::Tensor(*window)),
        OpKind::Slice { dst, src, .. } | OpKind::SliceRank { dst, src, .. } => {
            used.push(Thing::Tensor(*src));
            made.push(Thing::Tensor(*dst));
        }
        OpKind::Flatten { dst, src } => {
            used.push(Thing::Tensor(*src));
            made.push(Thing::Tensor(*dst));
        }
        OpKind::Collective(collective) => {
            used.extend(collective.tensors().map(Thing::Tensor));
        }
        OpKind::Domain { domain } => made.push(Thing::Domain(*domain)),
        OpKind::AllocWindow { buffer } => {
            used.extend(program.buffers[*buffer].domain.map(Thing::Domain));
            made.push(Thing::Buffer(*buffer));
        }
        OpKind::Window { dst, buffer } => {
            used.push(Thing::Buffer(*buffer));
            made.push(Thing::Tensor(*dst));
        }
        OpKind::Dispatch { args, .. } => {
            used.extend(args.iter().filter_map(|arg| match *arg {
                Operand::Tensor(tensor) => Some(Thing::Tensor(tensor)),
                Operand::Scalar(_) => None,
            }));
        }
        OpKind::VarDef { var, .. } => made.push(Thing::Var(*var)),
        OpKind::VarSet { var, .. } => used.push(Thing::Var(*var)),
        OpKind::ArrayDef { array, .. } => made.push(Thing::Array(*array)),
        OpKind::ArraySet { array, .. } => used.push(Thing::Array(*array)),
        _ => {
            for effect in effects {
                match effect.place {
                    Place::Tile(tile) if effect.access.is_write() => made.push(Thing::Tile(tile)),
                    Place::Tile(tile) => used.push(Thing::Tile(tile)),
                    Place::Memory { tensor, .. } => used.push(Thing::Tensor(tensor)),
                    Place::Var(var) => used.push(Thing::Var(var)),
                    Place::Array(array) => used.push(Thing::Array(array)),
                }
            }
        }
    }
}

fn undefined(cx: &mut Context, op: Op, value: Thing) {
    let program = cx.program;
    let names = cx.names;
    let name = names.of(value);
    let loc = match value {
        Thing::Scalar(s) => match program.scalars[s].def {
            ScalarDef::Index(op) | ScalarDef::Result(op) => program.ops[op].loc,
            _ => Loc::default(),
        },
        Thing::Tensor(t) => program.tensors[t].loc,
        Thing::Tile(t) => program.tiles[t].loc,
        Thing::Buffer(b) => program.buffers[b].loc,
        Thing::Domain(d) => program.domains[d].loc,
        Thing::Var(_) | Thing::Array(_) => Loc::default(),
    };
    let place = program.place(loc);
    let note = if place.is_empty() { String::new() } else { format!("{name} is defined at {place}") };
    let hint = match value {
        Thing::Scalar(s) if matches!(program.scalars[s].def, ScalarDef::Param(..) | ScalarDef::HostParam(_)) => {
            "a parameter belongs to its own entry; pass it as an argument of the dispatch"
        }
        Thing::Scalar(_) => "to carry a value out of a block, define a var before the block and assign to it inside",
        Thing::Tile(_) => "define the tile before the block, and overwrite it inside",
        _ => "define it before the block, or use it inside only",
    };
    cx.find(&rules::UNDEFINED, op, format!("{name} is not defined here")).note(note).hint(hint);
}
