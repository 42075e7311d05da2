//! The host driver, what it dispatches, and what entries do with their parameters.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::ir::effects::{Effect, Place, Scope, scope};
use crate::ir::extent::ExtentData;
use crate::ir::program::{Param, TensorDef};
use crate::ir::{Buffer, Direction, Entry, Expr, Extent, Op, OpKind, Operand, Scalar, Tensor};

use super::names::count;
use super::report::Subject;
use super::{Context, Position, devices, rules, types};

/// Which windows a tensor may be a view of.
pub(super) type Buffers = SmallVec<[Buffer; 1]>;

/// How a program uses its entries, windows and tensors.
#[derive(Default)]
pub(super) struct Uses {
    dispatched: SecondaryMap<Entry, bool>,
    any_dispatch: bool,
    /// Tensors that some op touches, and writes; for parts the whole.
    touched: SecondaryMap<Tensor, bool>,
    written: SecondaryMap<Tensor, bool>,
    /// Window views that some dispatch passes.
    passed: SecondaryMap<Tensor, bool>,
    /// Where each buffer is allocated.
    allocations: Vec<(Buffer, Op)>,
    /// Where each view is made.
    views: Vec<(Tensor, Buffer, Op)>,
    bound: SecondaryMap<Tensor, Buffers>,
    bindings: Vec<(Tensor, Buffer)>,
    /// How each host tensor is passed: the first dispatch that passes it whole, and in parts.
    whole: SecondaryMap<Tensor, Option<Op>>,
    parts: SecondaryMap<Tensor, Option<Op>>,
}

impl Uses {
    /// Window parameters with each buffer that is passed for them.
    pub fn bindings(&self) -> &[(Tensor, Buffer)] {
        &self.bindings
    }

    /// The buffers that are passed for a window parameter.
    pub fn buffers_of_windows(&self) -> &SecondaryMap<Tensor, Buffers> {
        &self.bound
    }

    /// The rules on one op; remembers what it uses.
    pub fn check(&mut self, cx: &mut Context, here: Position, effects: &[Effect]) {
        match cx.kind(here.op) {
            OpKind::Scalar { expr: Expr::Rank(window) | Expr::NRanks(window), .. } => {
                let root = cx.root(*window);
                self.touched[root] = true;
            }
            _ if here.scope != Scope::Host && scope(cx.kind(here.op)) == Scope::Host => {}
            OpKind::Domain { domain } => devices::declaration(cx, here.op, *domain),
            OpKind::AllocWindow { buffer } => self.allocations.push((*buffer, here.op)),
            OpKind::Window { dst, buffer } => self.views.push((*dst, *buffer, here.op)),
            OpKind::Ranks { first, end, .. } => devices::turns(cx, here.op, *first, *end),
            OpKind::SliceRank { src, .. } => leading_extent(cx, here.op, *src),
            OpKind::Dispatch { entry, args, device } => self.dispatch(cx, here, *entry, args, *device),
            OpKind::Collective(collective) if here.scope == Scope::Host => {
                self.any_dispatch = true;
                collective.tensors().for_each(|view| self.passed[cx.root(view)] = true);
            }
            kind => {
                if let OpKind::Collective(collective) = kind {
                    collective.tensors().for_each(|tensor| self.touched[cx.root(tensor)] = true);
                }
                for effect in effects {
                    let Place::Memory { tensor, .. } = effect.place else { continue };
                    let root = cx.root(tensor);
                    self.touched[root] = true;
                    if effect.access.is_write() {
                        self.written[root] = true;
                        if let TensorDef::Param(_, _, Direction::In) | TensorDef::HostParam(_, Direction::In) =
                            cx.program.tensors[root].def
                        {
                            written_input(cx, here, root);
                        }
                    }
                }
            }
        }
    }

    fn dispatch(&mut self, cx: &mut Context, here: Position, entry: Entry, args: &[Operand], device: Scalar) {
        let (op, names) = (here.op, cx.names);
        let callee = &cx.program.entries[entry];
        self.any_dispatch = true;
        self.dispatched[entry] = true;
        let placed = devices::check(cx, op, device);
        devices::members(cx, op);
        if args.len() != callee.params.len() {
            let params: Vec<String> = callee.params.iter().map(|&p| names.param(p)).collect();
            let message =
                format!("{} takes {}, not {}", callee.name, count(callee.params.len(), "argument"), args.len());
            cx.find(&rules::ARGUMENT_COUNT, op, message).note(format!("entry {}({})", callee.name, params.join(", ")));
        }
        for (index, (&param, &arg)) in callee.params.iter().zip(args).enumerate() {
            self.argument(cx, op, param, arg, placed.then_some(device));
            if let (Param::Tensor(param), Operand::Tensor(arg)) = (param, arg) {
                let before = callee.params[..index].iter().zip(args);
                let twice = before.filter(|(_, a)| same_memory(cx, **a, arg)).find_map(|(p, _)| match *p {
                    Param::Tensor(other) => (writes(cx, param) || writes(cx, other)).then_some(other),
                    Param::Scalar(_) => None,
                });
                if let Some(other) = twice {
                    let (a, x, y) = (names.tensor(arg), names.tensor(other), names.tensor(param));
                    cx.find(&rules::ALIASED, op, format!("{a} is passed as both {x} and {y}"))
                        .note(names.param(Param::Tensor(other)))
                        .note(names.param(Param::Tensor(param)))
                        .note("a write through one name changes what the other one reads")
                        .hint("pass it once, as inout");
                }
            }
        }
    }

    fn argument(&mut self, cx: &mut Context, op: Op, param: Param, arg: Operand, device: Option<Scalar>) {
        let program = cx.program;
        let names = cx.names;
        match (param, arg) {
            (Param::Scalar(param), Operand::Scalar(arg)) => {
                let ty = program.scalars[param].ty;
                if !types::converts(cx, arg, ty.dtype()) {
                    let message = format!("{} is {ty}, but is given {}", names.scalar(param), program.scalars[arg].ty);
                    cx.find(&rules::CONVERSION, op, message)
                        .note(names.scalar_is(arg))
                        .hint(format!("write cast({}, {ty})", names.scalar(arg)));
                }
            }
            (Param::Tensor(param), Operand::Tensor(arg)) => {
                let (wants, is) = (cx.is_window(param), cx.is_window(arg));
                if wants != is {
                    wrong_kind(cx, op, Param::Tensor(param), Operand::Tensor(arg));
                    return;
                }
                self.pass(cx, op, param, arg, device);
            }
            _ => wrong_kind(cx, op, param, arg),
        }
    }

    fn pass(&mut self, cx: &mut Context, op: Op, param: Tensor, arg: Tensor, device: Option<Scalar>) {
        let program = cx.program;
        let names = cx.names;
        let root = cx.root(arg);
        match program.tensors[root].def {
            TensorDef::View(buffer) => {
                self.passed[root] = true;
                if !self.bound[param].contains(&buffer) {
                    self.bound[param].push(buffer);
                    self.bindings.push((param, buffer));
                }
            }
            TensorDef::HostParam(_, direction) => {
                self.written[root] |= writes(cx, param);
                if direction == Direction::In && writes(cx, param) {
                    let message = format!("{} is an input, but {} is written", names.tensor(root), names.tensor(param));
                    cx.find(&rules::DIRECTION, op, message)
                        .note(names.param(Param::Tensor(root)))
                        .note(names.param(Param::Tensor(param)))
                        .hint(format!("declare {} as inout or out", names.tensor(root)));
                }
                self.how_passed(cx, op, root, param, arg, device);
            }
            _ => {}
        }
        let (p, a) = (&program.tensors[param], &program.tensors[arg]);
        let notes = || [names.tensor_is(param), names.tensor_is(arg)];
        let sides = || (names.tensor(param), names.tensor(arg));
        if p.dtype != a.dtype {
            let (to, from) = sides();
            let message = format!("{to} is {}, but {from} is {}", p.dtype, a.dtype);
            cx.find(&rules::ARGUMENT_DTYPE, op, message).notes(notes());
        } else if p.shape.len() != a.shape.len() {
            let (to, from) = sides();
            let message = format!("{to} has {}, but {from} has {}", count(p.shape.len(), "dimension"), a.shape.len());
            let whole = matches!(a.def, TensorDef::HostParam(..)) && a.shape.len() == p.shape.len() + 1;
            let hint = if whole { format!("pass one rank's part: {from}[r]") } else { String::new() };
            cx.find(&rules::ARGUMENT_SHAPE, op, message).notes(notes()).hint(hint);
        } else if let Some(dim) = cx.shape_mismatch(&p.shape, &a.shape) {
            let (to, from) = sides();
            let (pe, ae) = (names.extent(p.shape[dim]), names.extent(a.shape[dim]));
            cx.find(&rules::ARGUMENT_SHAPE, op, format!("dimension {dim} of {to} is {pe}, but that of {from} is {ae}"))
                .notes(notes())
                .hint("shapes are equal in every dimension, as sizes that are known to be the same");
        }
    }

    /// A host tensor is passed in parts, each to its own rank, or whole.
    fn how_passed(
        &mut self,
        cx: &mut Context,
        op: Op,
        host: Tensor,
        param: Tensor,
        arg: Tensor,
        device: Option<Scalar>,
    ) {
        let names = cx.names;
        let name = || names.tensor(host);
        if let TensorDef::HostSlice(_, rank) = cx.program.tensors[arg].def {
            if let Some(device) = device
                && !same_rank(cx, rank, device)
            {
                let message = format!("the part of rank {} goes to rank {}", names.scalar(rank), names.scalar(device));
                cx.find(&rules::SLICE_DEVICE, op, message).note("a rank's memory holds its own part only").hint(
                    format!(
                        "pass {}[{}], and fetch what another rank has through a window",
                        name(),
                        names.scalar(device)
                    ),
                );
            }
            self.parts[host].get_or_insert(op);
        } else {
            if self.whole[host].is_none()
                && writes(cx, param)
                && device.is_none_or(|device| cx.ranges.of(device).value().is_none())
            {
                cx.find(&rules::SHARED_OUTPUT, op, format!("every rank writes the whole of {}", name()))
                    .note(names.param(Param::Tensor(host)))
                    .note("between threads it is one memory, between processes each has its own")
                    .hint(format!("give it a leading extent of world, and pass {}[r]", name()));
            }
            self.whole[host].get_or_insert(op);
        }
        if let (Some(whole), Some(parts)) = (self.whole[host], self.parts[host])
            && whole.max(parts) == op
        {
            let other = whole.min(parts);
            cx.find(&rules::RANKED_AND_PLAIN, op, format!("{} is passed whole and in parts", name()))
                .note(format!("the other way: {}{}", names.op(other), names.at(other)))
                .note("a process of one rank holds only its own part")
                .hint("declare two tensors");
        }
    }

    /// The rules on what is never used.
    pub fn finish(&self, cx: &mut Context) {
        let program = cx.program;
        let names = cx.names;
        if program.host.is_some() && !self.any_dispatch {
            cx.report.add(
                &rules::NO_DISPATCH,
                Subject::Host,
                "the host driver dispatches nothing, so a launch does nothing",
            );
        }
        for (entry, data) in &program.entries {
            if program.host.is_some() && !self.dispatched[entry] {
                let message = format!("entry {} is never dispatched", data.name);
                cx.report.add(&rules::UNUSED_ENTRY, Subject::Entry(entry), message);
            }
            for param in &data.params {
                let &Param::Tensor(tensor) = param else { continue };
                match program.tensors[tensor].def {
                    TensorDef::Window(..) if !self.touched[tensor] => {
                        let message = format!("{} never uses its window {}", data.name, names.tensor(tensor));
                        cx.report.add(&rules::UNUSED_WINDOW, Subject::Param(tensor), message);
                    }
                    TensorDef::Param(_, _, Direction::Out) if !self.written[tensor] => {
                        let message = format!("{} never writes its output {}", data.name, names.tensor(tensor));
                        cx.report.add(&rules::NEVER_WRITTEN, Subject::Param(tensor), message);
                    }
                    _ => {}
                }
            }
        }
        let mut reached: SecondaryMap<Buffer, bool> = SecondaryMap::new();
        self.views.iter().for_each(|&(view, buffer, _)| reached[buffer] |= self.passed[view]);
        for &(view, _, op) in self.views.iter().filter(|&&(view, buffer, _)| reached[buffer] && !self.passed[view]) {
            let message = format!("the view {} is passed to no dispatch", names.tensor(view));
            cx.find(&rules::UNUSED_WINDOW, op, message);
        }
        for &(buffer, op) in self.allocations.iter().filter(|(buffer, _)| !reached[*buffer]) {
            let name = &program.buffers[buffer].name;
            match self.views.iter().find(|&&(_, viewed, _)| viewed == buffer) {
                Some(&(view, ..)) => {
                    let view = names.tensor(view);
                    cx.find(
                        &rules::UNUSED_BUFFER,
                        op,
                        format!("no dispatch receives a view of {name}, so no rank shares it"),
                    )
                    .hint(format!("pass {view} to a window parameter, or remove it"));
                }
                None => {
                    cx.find(&rules::UNUSED_BUFFER, op, format!("no view of {name} is made, so no rank can use it"))
                        .hint(format!("type it in the rank loop: w = window {name} [...] f32"));
                }
            }
        }
        devices::finish(cx);
        unbound_dims(cx);
    }
}

/// The callee may write what is passed for the parameter.
fn writes(cx: &Context, param: Tensor) -> bool {
    matches!(cx.program.tensors[param].def, TensorDef::Param(_, _, Direction::Out | Direction::InOut))
}

/// Both arguments are the same tensor.
fn same_memory(cx: &Context, a: Operand, b: Tensor) -> bool {
    let Operand::Tensor(a) = a else { return false };
    match (&cx.program.tensors[a].def, &cx.program.tensors[b].def) {
        (TensorDef::HostSlice(x, i), TensorDef::HostSlice(y, j)) => x == y && same_rank(cx, *i, *j),
        _ => a == b,
    }
}

fn wrong_kind(cx: &mut Context, op: Op, param: Param, arg: Operand) {
    let names = cx.names;
    let kind = |cx: &Context, tensor| if cx.is_window(tensor) { "a window" } else { "a tensor" };
    let (wants, name) = match param {
        Param::Tensor(tensor) => (kind(cx, tensor), names.tensor(tensor)),
        Param::Scalar(scalar) => ("a scalar", names.scalar(scalar)),
    };
    let (is, given) = match arg {
        Operand::Tensor(tensor) => (kind(cx, tensor), names.tensor(tensor)),
        Operand::Scalar(scalar) => ("a scalar", names.scalar(scalar)),
    };
    let hint = match (wants, is) {
        ("a window", "a tensor") => "pass a view: w = window buffer [...] dtype",
        ("a tensor", "a window") => "declare the parameter as a window",
        _ => "arguments stand in the order of the parameters",
    };
    cx.find(&rules::ARGUMENT_KIND, op, format!("{name} is {wants}, but {given} is {is}"))
        .note(names.param(param))
        .hint(hint);
}

fn written_input(cx: &mut Context, here: Position, tensor: Tensor) {
    let names = cx.names;
    cx.find(&rules::DIRECTION, here.op, format!("{} is written, but it is an input", names.tensor(tensor)))
        .note(names.param(Param::Tensor(tensor)))
        .hint(format!("declare {} as out, or as inout if it is read too", names.tensor(tensor)));
}

fn is_world_extent(cx: &Context, extent: Extent) -> bool {
    let value = cx.ranges.of_extent(extent).value();
    let is_by_name = match cx.program.extents.get(extent) {
        ExtentData::World => true,
        ExtentData::Dim(dim) => cx.program.extents.dims[dim].value.is_some_and(|value| is_world_extent(cx, value)),
        _ => false,
    };
    is_by_name || (value.is_some() && value == cx.known.world)
}

fn same_rank(cx: &Context, a: Scalar, b: Scalar) -> bool {
    let (a, b) = (cx.original(a), cx.original(b));
    let value = cx.ranges.of(a).value();
    a == b || (value.is_some() && value == cx.ranges.of(b).value())
}

fn leading_extent(cx: &mut Context, op: Op, src: Tensor) {
    let names = cx.names;
    let data = &cx.program.tensors[src];
    if !matches!(data.def, TensorDef::HostParam(..)) {
        cx.find(&rules::LEADING_EXTENT, op, format!("{} is not a tensor of the host driver", names.tensor(src)))
            .note(names.tensor_is(src))
            .hint("only host tensors have a part for each rank");
    } else if !is_world_extent(cx, data.shape[0]) {
        let (name, parts) = (names.tensor(src), names.extent(data.shape[0]));
        cx.find(&rules::LEADING_EXTENT, op, format!("{name} has {parts} parts, not one a rank"))
            .note(names.tensor_is(src))
            .hint(format!("declare {name} with a leading extent of world"));
    }
}

/// Each dimension that is bound at launch can be read off an argument.
fn unbound_dims(cx: &mut Context) {
    let program = cx.program;
    let mut bound: SecondaryMap<crate::ir::Dim, bool> = SecondaryMap::new();
    for param in program.host.iter().flat_map(|host| &host.params) {
        let &Param::Tensor(tensor) = param else { continue };
        for &extent in &program.tensors[tensor].shape {
            if let ExtentData::Dim(dim) = program.extents.get(extent) {
                bound[dim] = true;
            }
        }
    }
    for (dim, data) in &program.extents.dims {
        if data.value.is_none() && !bound[dim] && program.host.is_some() {
            let name = &data.name;
            cx.report
                .add(
                    &rules::UNBOUND_DIM,
                    Subject::Host,
                    format!("no host tensor has {name} as an extent, so it is never bound"),
                )
                .hint(format!("declare a host tensor with {name} itself as one of its extents, or make it a const"));
        }
    }
}
