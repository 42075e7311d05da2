//! Regions inside their tensors, views inside their buffers, peers inside the world.
//!
//! Only what is certain is an error: offsets whose bounds are taken when the op runs, see [`super::range`].

use smallvec::{SmallVec, smallvec};

use crate::ir::effects::{Access, Effect, Peers, Place, Span};
use crate::ir::op::{Dims, PeerRange};
use crate::ir::program::{BufferSize, ScalarDef};
use crate::ir::{BinaryOp, Buffer, Expr, Extent, Grid, Op, OpKind, Scalar, ScalarType, Tensor};

use super::names::{Thing, count};
use super::range::Interval;
use super::{Context, Position, rules};

/// The values of an op's operands are in bounds.
pub(super) fn check(cx: &mut Context, here: Position, effects: &[Effect]) {
    let op = here.op;
    let kind = cx.kind(op);
    match kind {
        OpKind::Scalar { expr: Expr::Binary(BinaryOp::Div | BinaryOp::Rem, a, b), .. }
            if cx.program.scalars[*a].ty.is_int() && cx.ranges.of(*b).value() == Some(0) =>
        {
            let message = format!("{} is divided by 0", cx.names.scalar(*a));
            let divisor = define(cx, *b);
            cx.find(&rules::DIVISION, op, message).note(divisor);
        }
        OpKind::ArrayGet { array, index, .. } | OpKind::ArraySet { array, index, .. } => {
            let data = &cx.program.arrays[*array];
            let length = cx.ranges.of_extent(data.len);
            if let Some(outside) = outside(cx, here, *index, length) {
                let name = cx.names.of(Thing::Array(*array));
                let text = cx.names.extent(data.len);
                let note = format!("{name} is array {} [{text}]{}", data.ty, equals(&text, length));
                let from = define(cx, *index);
                cx.find(&rules::ARRAY_INDEX, op, format!("element {outside} is outside {name}")).note(note).note(from);
            }
        }
        OpKind::For { step, .. } if cx.ranges.of(*step).max < 1 => {
            let message = format!("the step of this loop is {}", cx.names.scalar(*step));
            let note = define(cx, *step);
            cx.find(&rules::STEP, op, message)
                .note(note)
                .hint("count up, and compute the descending value from the index");
        }
        OpKind::Task { grid: Some(Grid { blocks, .. }), .. } | OpKind::Extern { blocks: Some(blocks), .. }
            if cx.ranges.of(*blocks).max < 0 =>
        {
            let message = format!("the number of blocks is {}", at_most(cx, *blocks));
            let note = define(cx, *blocks);
            cx.find(&rules::BLOCK_COUNT, op, message).note(note).hint("a task of 0 blocks is over at once");
        }
        OpKind::Slice { dst, src, at } => {
            let shape = cx.program.tensors[*dst].shape.clone();
            region(cx, here, None, *src, at, &Span::Shape(shape));
        }
        OpKind::Put { region: Some(region), .. }
        | OpKind::Get { region: Some(region), .. }
        | OpKind::GetReduce { region: Some(region), .. } => {
            for (dim, &extent) in region.shape.iter().enumerate() {
                if cx.ranges.of(extent).max >= 0 {
                    continue;
                }
                let message = format!("extent {dim} of the region is {}", at_most(cx, extent));
                let note = define(cx, extent);
                cx.find(&rules::NEGATIVE_EXTENT, op, message).note(note);
            }
        }
        OpKind::Window { dst, buffer } => view(cx, op, *dst, *buffer),
        OpKind::Collective(collective) => {
            if let (Some(window), Some(root)) = (collective.window(), collective.root()) {
                check_peer(cx, here, cx.root(window), root);
            }
        }
        OpKind::Wait { window, expected, .. } => expectation(cx, op, *window, *expected),
        _ => {}
    }
    for effect in effects {
        match effect.place {
            Place::Memory { tensor, peer: Some(Peers::One(peer)), .. } => check_peer(cx, here, cx.root(tensor), peer),
            Place::Memory { tensor, peer: Some(Peers::Range(peers)), .. } => {
                check_peer(cx, here, cx.root(tensor), peers.first);
                check_number(cx, here.op, cx.root(tensor), peers);
            }
            _ => {}
        }
    }
    for effect in effects {
        if let Place::Memory { tensor, at, span, .. } = &effect.place {
            region(cx, here, Some(effect.access), *tensor, at, span);
        }
    }
}

/// What an op does to a region.
fn reach(kind: &OpKind, access: Option<Access>) -> String {
    match (access, kind) {
        (_, OpKind::Read { .. }) => "this reads".into(),
        (_, OpKind::Write { .. }) => "this writes".into(),
        (_, OpKind::Task { .. } | OpKind::Extern { .. }) => "the predicate reads".into(),
        (Some(Access::Read), _) => format!("{} reads", kind.name()),
        (Some(Access::Write | Access::Accumulate), _) => format!("{} writes", kind.name()),
        (Some(Access::SignalSet | Access::SignalAdd), _) => "notify goes".into(),
        (Some(Access::Await), _) => format!("{} looks", kind.name()),
        (None, _) => format!("{} reaches", kind.name()),
    }
}

/// One extent of a region.
#[derive(Clone, Copy)]
enum Length {
    One,
    Extent(Extent),
    Scalar(Scalar),
}

/// A region is inside its tensor, as far as that is certain.
fn region(cx: &mut Context, here: Position, access: Option<Access>, tensor: Tensor, at: &Dims, span: &Span) {
    let program = cx.program;
    let names = cx.names;
    let lengths: SmallVec<[Length; 4]> = match span {
        Span::Whole => return,
        Span::Element => smallvec![Length::One; at.len()],
        Span::Shape(shape) => shape.iter().map(|&e| Length::Extent(e)).collect(),
        Span::Dims(dims) => dims.iter().map(|&s| Length::Scalar(s)).collect(),
    };
    let intervals: SmallVec<[Interval; 4]> = lengths.iter().map(|&length| interval(cx, length)).collect();
    // A region with a zero extent is nowhere, whatever its offsets.
    if intervals.iter().any(|length| length.min < 1) && !lengths.iter().all(|&l| launch_constant(cx, l)) {
        return;
    }
    if intervals.iter().any(|length| length.max < 1) {
        return;
    }
    for (dim, (&offset, &length)) in at.iter().zip(&lengths).enumerate() {
        let extent = program.tensors[tensor].shape[dim];
        let Some(outside) = overreach(cx, here, offset, length, extent) else { continue };
        let name = names.tensor(tensor);
        let what = reach(cx.kind(here.op), access);
        let (message, hint) = match outside {
            Overreach::Before(offset) => {
                (format!("{what} before the beginning of {name}: index {offset} of dimension {dim}"), String::new())
            }
            Overreach::Past(last) => {
                let size = names.extent(extent);
                let hint = match length {
                    Length::One => format!("the last index is {}", last_index(cx, extent)),
                    _ => format!("offset + extent is at most {size}{}", equals(&size, cx.ranges.of_extent(extent))),
                };
                (format!("{what} past the end of {name}: index {last} of dimension {dim}"), hint)
            }
        };
        let mut notes = vec![names.tensor_is(tensor)];
        notes[0].push_str(&in_numbers(cx, tensor));
        notes.push(define(cx, offset));
        if let Length::Scalar(s) = length {
            notes.push(define(cx, s));
        }
        cx.find(&rules::REGION, here.op, message).notes(notes).hint(hint);
        // One dimension tells enough.
        return;
    }
}

/// How a region leaves its tensor.
enum Overreach {
    Before(i64),
    /// At this index, as text: a number, or an expression of sizes.
    Past(String),
}

fn overreach(cx: &Context, here: Position, offset: Scalar, length: Length, extent: Extent) -> Option<Overreach> {
    let (o, l, e) = (cx.ranges.of(offset), interval(cx, length), cx.ranges.of_extent(extent));
    let conditions = here.conditions;
    let offset_taken = cx.ranges.takes_bounds(offset, conditions);
    let least = if offset_taken { o.min } else { o.max };
    if least < 0 {
        return Some(Overreach::Before(least));
    }
    // The largest end that certainly occurs; without elements the region is nowhere.
    let shortest = l.min.max(1);
    let (length_taken, together) = match length {
        Length::Scalar(s) => {
            (cx.ranges.takes_bounds(s, conditions), cx.ranges.takes_bounds_together(offset, s, conditions))
        }
        _ => (l.value().is_some(), offset_taken && l.value().is_some()),
    };
    let sum = |a: i64, b: i64| i128::from(a) + i128::from(b);
    let mut end = sum(o.min, shortest);
    if offset_taken {
        end = end.max(sum(o.max, shortest));
    }
    if length_taken {
        end = end.max(sum(o.min, l.max));
    }
    if together {
        end = end.max(sum(o.max, l.max));
    }
    if end > e.max.into() {
        return Some(Overreach::Past((end - 1).to_string()));
    }
    if o.value().is_some() && l.value().is_some() && e.value().is_some() {
        return None;
    }
    // Without numbers, the sizes may still tell.
    let offset_extent = cx.program.extent_of(cx.original(offset))?;
    let length_extent = match length {
        Length::One => None,
        Length::Extent(e) => Some(e),
        Length::Scalar(s) => Some(cx.program.extent_of(cx.original(s))?),
    };
    let mut terms = vec![(offset_extent, 1), (extent, -1)];
    terms.extend(length_extent.map(|l| (l, 1)));
    let past = cx.program.extents.sum(&terms, cx.known)?.saturating_add(i64::from(length_extent.is_none()));
    (past > 0).then(|| {
        let end = cx.names.extent(extent);
        let last = past - 1;
        Overreach::Past(if last == 0 { end } else { format!("{end} + {last}") })
    })
}

fn interval(cx: &Context, length: Length) -> Interval {
    match length {
        Length::One => Interval::point(1),
        Length::Extent(e) => cx.ranges.of_extent(e),
        Length::Scalar(s) => cx.ranges.of(s),
    }
}

/// The length is constant during a launch, though it may be unknown now.
fn launch_constant(cx: &Context, length: Length) -> bool {
    match length {
        Length::One | Length::Extent(_) => true,
        Length::Scalar(s) => cx.program.extent_of(cx.original(s)).is_some(),
    }
}

/// The largest index of a dimension.
fn last_index(cx: &Context, extent: Extent) -> String {
    match cx.ranges.of_extent(extent).value() {
        Some(value) => (value - 1).to_string(),
        None => format!("{} - 1", cx.names.extent(extent)),
    }
}

/// `, which is 4`, where a size is not written as a number.
fn equals(text: &str, interval: Interval) -> String {
    match interval.value() {
        Some(value) if value.to_string() != text => format!(", which is {value}"),
        _ => String::new(),
    }
}

/// `, which is [4, 256]`, where a shape is not written in numbers.
fn in_numbers(cx: &Context, tensor: Tensor) -> String {
    let shape = &cx.program.tensors[tensor].shape;
    let numbers: Option<Vec<String>> =
        shape.iter().map(|&e| cx.ranges.of_extent(e).value().map(|v| v.to_string())).collect();
    let Some(numbers) = numbers else { return String::new() };
    let numbers = format!("[{}]", numbers.join(", "));
    if numbers == cx.names.shape(shape) { String::new() } else { format!(", which is {numbers}") }
}

/// `row = e * 192 + 3 is 0 to 3072`: where a value comes from and what it can be; empty for literals.
fn define(cx: &Context, scalar: Scalar) -> String {
    let program = cx.program;
    let names = cx.names;
    let range = cx.ranges.of(scalar);
    let full = Interval::of_type(program.scalars[scalar].ty);
    let text = names.scalar(scalar);
    let values = match range.value() {
        Some(value) if value.to_string() == text => return String::new(),
        Some(value) => format!("is {value}"),
        None if range == full || matches!(program.scalars[scalar].def, ScalarDef::Extent(_)) => String::new(),
        None if range.max == full.max => format!("is at least {}", range.min),
        None if range.min == full.min => format!("is at most {}", range.max),
        None => format!("is {} to {}", range.min, range.max),
    };
    let definition = match program.scalars[scalar].def {
        ScalarDef::Result(op) | ScalarDef::Index(op) if program.scalars[scalar].name.is_some() => names.op(op),
        _ => text.clone(),
    };
    match (matches!(program.scalars[scalar].def, ScalarDef::Index(_)), values.is_empty()) {
        (_, true) if definition == text => String::new(),
        (_, true) => definition,
        (true, false) => format!("{text} {values} in {definition}"),
        (false, false) => format!("{definition} {values}"),
    }
}

fn at_most(cx: &Context, scalar: Scalar) -> String {
    let range = cx.ranges.of(scalar);
    match range.value() {
        Some(value) => value.to_string(),
        None => format!("at most {}", range.max),
    }
}

/// The value that is certainly outside `0..length`.
fn outside(cx: &Context, here: Position, index: Scalar, length: Interval) -> Option<i64> {
    let range = cx.ranges.of(index);
    let taken = cx.ranges.takes_bounds(index, here.conditions);
    let (low, high) = if taken { (range.min, range.max) } else { (range.max, range.min) };
    match () {
        _ if low < 0 => Some(low),
        _ if high >= length.max => Some(high),
        _ => None,
    }
}

fn check_peer(cx: &mut Context, here: Position, window: Tensor, peer: Scalar) {
    let sizes = cx.ranges.nranks(window);
    // Where an entry serves domains of several sizes, its conditions may tell them apart.
    let sure = here.conditions == 0 && cx.ranges.of(peer).value().is_some();
    let nranks = Interval::point(if sure && cx.known.world.is_some() { sizes.min } else { sizes.max });
    let Some(outside) = outside(cx, here, peer, nranks) else { return };
    let kind = cx.kind(here.op).name();
    let goes = match cx.kind(here.op) {
        OpKind::Collective(_) => "comes from",
        OpKind::GetReduce { .. } => "takes from",
        _ => "goes to",
    };
    let from = define(cx, peer);
    if sizes == cx.ranges.world() {
        let hint = match cx.ranges.of(peer).value() {
            Some(_) => "the last rank is world - 1",
            None => "wrap around, as (me + 1) % world does, or leave the edge out with an if",
        };
        let all = cx.all_ranks();
        cx.find(&rules::PEER, here.op, format!("{kind} {goes} rank {outside}, which does not exist"))
            .note(all)
            .note(from)
            .hint(hint);
        return;
    }
    let name = cx.names.tensor(window);
    let (shared, last) = (count(nranks.max as usize, "rank"), nranks.max - 1);
    cx.find(&rules::PEER, here.op, format!("{kind} {goes} rank {outside} of {name}, which does not exist"))
        .note(format!("{name} is shared by {shared}, which number each other 0 to {last}"))
        .note(from)
        .hint(format!("use rank({name}) and nranks({name}) to compute with the ranks of its domain"));
}

/// At least one and at most all ranks.
fn check_number(cx: &mut Context, op: Op, window: Tensor, peers: PeerRange) {
    let (first, end) = (cx.ranges.of(peers.first), cx.ranges.of(peers.end));
    let most = i128::from(cx.ranges.nranks(window).max);
    let (low, high) = (i128::from(end.min) - i128::from(first.max), i128::from(end.max) - i128::from(first.min));
    if high < 1 || low > most {
        let (names, kind) = (cx.names, cx.kind(op).name());
        let what = if high < 1 { "no rank".into() } else { format!("more than {most} ranks") };
        let (from, to) = (names.scalar(peers.first), names.scalar(peers.end));
        let message = format!("{kind} takes from {what}: from {from}..{to}");
        let notes = [define(cx, peers.first), define(cx, peers.end)];
        cx.find(&rules::PEER, op, message)
            .notes(notes)
            .hint("take from at least one rank, and from none twice: @0..nranks(window) for all");
    }
}

fn view(cx: &mut Context, op: Op, dst: Tensor, buffer: Buffer) {
    let program = cx.program;
    let names = cx.names;
    let (view, buffer) = (&program.tensors[dst], &program.buffers[buffer]);
    let bytes = |size: i64, shape: &[Extent]| {
        shape.iter().try_fold(size, |n, &e| n.checked_mul(program.extents.eval(e, cx.known)?))
    };
    let needed = bytes(view.dtype.size(), &view.shape);
    let has = match &buffer.size {
        BufferSize::Bytes(n) => bytes(1, &[*n]),
        BufferSize::Shape(dtype, shape) => bytes(dtype.size(), shape),
    };
    if let (Some(needed), Some(has)) = (needed, has)
        && (0..needed).contains(&has)
    {
        let name = names.tensor(dst);
        let size = match &buffer.size {
            BufferSize::Bytes(n) => format!("bytes {}", names.extent(*n)),
            BufferSize::Shape(dtype, shape) => format!("{} {dtype}", names.shape(shape)),
        };
        cx.find(&rules::VIEW_SIZE, op, format!("{name} needs {needed} bytes, but {} has {has}", buffer.name))
            .note(format!("{name} is {} {}", names.shape(&view.shape), view.dtype))
            .note(format!("{} = alloc_window {size}", buffer.name))
            .hint(format!("allocate at least {needed} bytes, or view less"));
    }
}

fn expectation(cx: &mut Context, op: Op, window: Tensor, expected: Scalar) {
    let (range, cell) = (cx.ranges.of(expected), Interval::of_type(ScalarType::I32));
    if range.disjoint(cell) {
        let value = if range.value().is_some() { range.min.to_string() } else { format!("at least {}", range.min) };
        let name = cx.names.tensor(window);
        cx.find(&rules::EXPECTATION, op, format!("a cell of {name} can never be {value}"))
            .note(format!("signals are int32: {} to {}", cell.min, cell.max));
    }
}
