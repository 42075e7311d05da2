//! Collectives: where they stand, what they are given, and how it fits together.

use smallvec::SmallVec;

use crate::ir::collective::AllToAllV;
use crate::ir::effects::Scope;
use crate::ir::extent::Shape;
use crate::ir::{Collective, CollectiveKind, DType, Extent, Mode, Op, OpKind, Tensor};

use super::names::count;
use super::{Context, Position, rules, types};

/// Element types that ranks combine.
const COMBINED: [DType; 6] = [DType::F32, DType::F16, DType::BF16, DType::I32, DType::I64, DType::I8];

/// The rules on one collective; whether its operands are sound.
pub(super) fn check(cx: &mut Context, here: Position, collective: &Collective) -> bool {
    place(cx, here, collective);
    mode(cx, here.op, collective);
    let sound = windows(cx, here, collective)
        & fixed(cx, here.op, collective)
        & packed(cx, here.op, collective)
        & dtypes(cx, here.op, collective);
    sound && distinct(cx, here.op, collective) && shapes(cx, here.op, collective) && root(cx, here.op, collective)
}

/// Each rank makes the call once.
fn place(cx: &mut Context, here: Position, collective: &Collective) {
    let (op, name) = (here.op, collective.name());
    let copies = here.copies.map(|copies| (copies, cx.kind(copies)));
    if let Some((ranks, OpKind::Ranks { .. })) = copies {
        let note = format!("{}{}", cx.names.op(ranks), cx.names.at(ranks));
        cx.find(&rules::COLLECTIVE_PLACE, op, format!("{name} stands in a loop over ranks"))
            .note(note)
            .hint("it is one call of all ranks: make the views before the loop, and call it outside");
    } else if let Some((grid, _)) = copies {
        let note = format!("{}{}", cx.names.op(grid), cx.names.at(grid));
        cx.find(&rules::COLLECTIVE_PLACE, op, format!("every block of a grid would call this {name}"))
            .note(note)
            .hint(format!("call it in a task of its own: at name {{ {name} ... }}"));
    }
    let cores = collective.cores;
    if cores < 1 {
        cx.find(&rules::CORES, op, format!("{name} on {cores} cores")).hint("give at least 1");
    } else if cores > 1 && here.scope == Scope::InCore {
        cx.find(&rules::CORES, op, format!("{name} on {cores} cores, but a task has one"))
            .hint("call it in the host driver, between dispatches");
    }
}

fn mode(cx: &mut Context, op: Op, collective: &Collective) {
    let modes: &[Mode] = match collective.kind {
        CollectiveKind::Barrier { .. } => &[Mode::Auto],
        CollectiveKind::Allreduce { .. } => &[Mode::Auto, Mode::Mesh, Mode::Ring, Mode::TwoPhase, Mode::Hierarchical],
        CollectiveKind::AllToAll { .. } | CollectiveKind::AllToAllV(_) => &[Mode::Auto, Mode::Mesh, Mode::Direct],
        _ => &[Mode::Auto, Mode::Mesh, Mode::Direct, Mode::Hierarchical],
    };
    if !modes.contains(&collective.mode) {
        let known: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
        let message = format!("{} has no mode {}", collective.name(), collective.mode);
        cx.find(&rules::COLLECTIVE_MODE, op, message).hint(format!("it has {}", known.join(", ")));
    }
}

/// What other ranks reach into is a window; in the host driver everything is.
fn windows(cx: &mut Context, here: Position, collective: &Collective) -> bool {
    let (names, name) = (cx.names, collective.name());
    let reached = collective.window().into_iter().chain(collective.signal);
    let operands: SmallVec<[Tensor; 8]> = match here.scope {
        Scope::Host => reached.chain(collective.operands().into_iter().map(|(tensor, _)| tensor)).collect(),
        _ => reached.collect(),
    };
    let Some(tensor) = operands.into_iter().find(|&tensor| !cx.is_window(tensor)) else { return true };
    let text = names.tensor(tensor);
    let hint = match here.scope {
        Scope::Host => "copy it into a window in an entry, or call the collective in a task".into(),
        _ => format!("declare the parameter as a window, and pass a view of a window buffer: {text}: window[...]"),
    };
    cx.find(&rules::NOT_WINDOW, here.op, format!("{name} works on windows, but {text} is a tensor"))
        .note(names.tensor_is(tensor))
        .hint(hint);
    false
}

/// The algorithm is chosen and written out when the program is compiled.
fn fixed(cx: &mut Context, op: Op, collective: &Collective) -> bool {
    let (names, program) = (cx.names, cx.program);
    let is_dynamic = |tensor: Tensor| {
        let extent = program.tensors[tensor].shape.iter().find(|&&extent| program.extents.is_dynamic(extent))?;
        Some((tensor, *extent))
    };
    let Some((tensor, extent)) = collective.tensors().find_map(is_dynamic) else { return true };
    let message = format!("the size {} of {} is only bound at launch", names.extent(extent), names.tensor(tensor));
    cx.find(&rules::DYNAMIC_SIZE, op, message)
        .note("the algorithm of a collective is chosen when the program is compiled")
        .hint("give it the largest size as a const; all_to_all_v moves as many rows as its counts say");
    false
}

fn packed(cx: &mut Context, op: Op, collective: &Collective) -> bool {
    let tensors = collective.operands();
    tensors.into_iter().all(|(tensor, _)| types::packed(cx, op, tensor, collective.name()))
}

fn dtypes(cx: &mut Context, op: Op, collective: &Collective) -> bool {
    let (names, program) = (cx.names, cx.program);
    let (dst, src) = match collective.kind {
        CollectiveKind::Allreduce { data, .. } | CollectiveKind::ReduceScatter { data, .. } => {
            let dtype = program.tensors[data].dtype;
            let sound = COMBINED.contains(&dtype);
            if !sound {
                let able: Vec<&str> = COMBINED.iter().map(|dtype| dtype.name()).collect();
                cx.find(&rules::COMBINED_DTYPE, op, format!("{} does not combine {dtype}", collective.name()))
                    .note(names.tensor_is(data))
                    .note(format!("it combines {}", able.join(", ")))
                    .hint("cast it into a window of one of these types, and the result back");
            }
            return sound;
        }
        CollectiveKind::Barrier { .. } | CollectiveKind::Broadcast { .. } => return true,
        CollectiveKind::Allgather { dst, src } | CollectiveKind::AllToAll { dst, src } => (dst, src),
        CollectiveKind::AllToAllV(AllToAllV { dst, src, .. }) => (dst, src),
    };
    types::same_transfer_dtype(cx, op, dst, src)
}

/// No operand is written while another one of the same memory is used.
fn distinct(cx: &mut Context, op: Op, collective: &Collective) -> bool {
    let names = cx.names;
    let tensors: SmallVec<[(Tensor, bool); 6]> = match collective.kind {
        // Their one operand stands for what is read and what is written.
        CollectiveKind::Allreduce { .. } | CollectiveKind::ReduceScatter { .. } | CollectiveKind::Broadcast { .. } => {
            return true;
        }
        _ => collective.operands().into_iter().map(|(tensor, access)| (tensor, access.is_write())).collect(),
    };
    for (number, &(tensor, written)) in tensors.iter().enumerate() {
        let same = |&&(other, writes): &&(Tensor, bool)| (written || writes) && same_memory(cx, tensor, other);
        if let Some(&(other, _)) = tensors[..number].iter().find(same) {
            let (name, a, b) = (collective.name(), names.tensor(other), names.tensor(tensor));
            let message = match a == b {
                true => format!("{name} is given {a} twice, and writes it"),
                false => format!("{name} is given {a} and {b}, which are the same memory"),
            };
            let hint = "the result needs memory of its own";
            cx.find(&rules::OVERLAP, op, message).note(names.tensor_is(tensor)).hint(hint);
            return false;
        }
    }
    true
}

fn same_memory(cx: &Context, a: Tensor, b: Tensor) -> bool {
    use crate::ir::program::TensorDef::View;
    let program = cx.program;
    let views = matches!((&program.tensors[a].def, &program.tensors[b].def), (View(x), View(y)) if x == y);
    views || program.is_part(a, b) || program.is_part(b, a)
}

fn shapes(cx: &mut Context, op: Op, collective: &Collective) -> bool {
    let program = cx.program;
    let shape = |tensor: Tensor| &program.tensors[tensor].shape;
    let behind = |tensor: Tensor| shape(tensor).get(1..).unwrap_or_default();
    let name = collective.name();
    match collective.kind {
        CollectiveKind::Barrier { .. } | CollectiveKind::Allreduce { .. } | CollectiveKind::Broadcast { .. } => true,
        CollectiveKind::ReduceScatter { data, .. } => rows(cx, op, name, data, data),
        CollectiveKind::Allgather { dst, src } => {
            rows(cx, op, name, dst, dst) && {
                let same = same_amount(cx, behind(dst), shape(src));
                same || unlike(cx, op, name, (dst, "each row of "), (src, ""))
            }
        }
        CollectiveKind::AllToAll { dst, src } => {
            rows(cx, op, name, dst, dst) && rows(cx, op, name, src, dst) && {
                let same = same_amount(cx, behind(dst), behind(src));
                same || unlike(cx, op, name, (dst, ""), (src, ""))
            }
        }
        CollectiveKind::AllToAllV(ref v) => {
            let counts = [v.recv_counts, v.send_counts].into_iter().chain(v.offsets.iter().flat_map(|&(r, s)| [r, s]));
            let counted = counts.fold(true, |sound, tensor| self::counts(cx, op, tensor, v.dst) & sound);
            counted && {
                let same = same_amount(cx, behind(v.dst), behind(v.src));
                same || unlike(cx, op, name, (v.dst, "each row of "), (v.src, "each row of "))
            }
        }
    }
}

/// A tensor has as many rows as a window has ranks.
fn rows(cx: &mut Context, op: Op, name: &str, tensor: Tensor, window: Tensor) -> bool {
    let names = cx.names;
    let rows = cx.program.tensors[tensor].shape.first().copied();
    if rows.is_some_and(|rows| is_nranks(cx, &[rows], window)) {
        return true;
    }
    let (text, ranks) = (names.tensor(tensor), domain(cx, window));
    let has = rows.map_or("none".into(), |rows| names.extent(rows));
    cx.find(&rules::COLLECTIVE_SHAPE, op, format!("{name} needs a row of {text} for each rank, but {text} has {has}"))
        .note(names.tensor_is(tensor))
        .note(ranks)
        .hint("let the first extent be the number of ranks");
    false
}

/// The extents may give as many elements as a window has ranks.
fn is_nranks(cx: &Context, shape: &[Extent], window: Tensor) -> bool {
    let nranks = cx.ranges.nranks(cx.root(window));
    let product = shape.iter().try_fold(1i64, |product, &extent| {
        cx.ranges.of_extent(extent).value().and_then(|value| product.checked_mul(value))
    });
    match product {
        Some(product) if cx.known.world.is_some() => nranks.min == product && nranks.max == product,
        Some(product) => nranks.min <= product && product <= nranks.max,
        // Which number of ranks it is, is known later or not at all.
        None => cx.known.world.is_none() && !shape.iter().any(|&extent| cx.program.extents.is_dynamic(extent)),
    }
}

/// `w is shared by 4 ranks`.
fn domain(cx: &Context, window: Tensor) -> String {
    let (nranks, name) = (cx.ranges.nranks(cx.root(window)), cx.names.tensor(window));
    match nranks.value() {
        Some(nranks) => format!("{name} is shared by {}", count(nranks as usize, "rank")),
        None if cx.known.world.is_some() => {
            format!("{name} is shared by {} to {} ranks, as it is dispatched", nranks.min, nranks.max)
        }
        None => String::new(),
    }
}

/// Two shapes have equally many elements, or may have once the world is known.
fn same_amount(cx: &Context, a: &[Extent], b: &[Extent]) -> bool {
    let (mut a, mut b) = (Shape::from_slice(a), Shape::from_slice(b));
    a.retain(|&mut extent| match b.iter().position(|&other| cx.same(extent, other)) {
        Some(at) => {
            b.remove(at);
            false
        }
        None => true,
    });
    let value = |extents: &[Extent]| {
        let values = extents.iter().map(|&extent| cx.ranges.of_extent(extent).value());
        values
            .collect::<Option<Vec<i64>>>()
            .map(|values| values.iter().map(|&value| i128::from(value)).product::<i128>())
    };
    match (value(&a), value(&b)) {
        (Some(a), Some(b)) => a == b,
        _ => cx.known.world.is_none() && a.iter().chain(&b).any(|&extent| cx.has_world(extent)),
    }
}

fn unlike(cx: &mut Context, op: Op, name: &str, dst: (Tensor, &str), src: (Tensor, &str)) -> bool {
    let names = cx.names;
    let (a, b) = (names.tensor(dst.0), names.tensor(src.0));
    let message = format!("{name} needs as many elements in {}{b} as in {}{a}", src.1, dst.1);
    cx.find(&rules::COLLECTIVE_SHAPE, op, message)
        .notes([names.tensor_is(dst.0), names.tensor_is(src.0)])
        .hint("give both sides the same shape behind the first extent");
    false
}

fn counts(cx: &mut Context, op: Op, tensor: Tensor, window: Tensor) -> bool {
    let (names, data) = (cx.names, &cx.program.tensors[tensor]);
    let sound = matches!(data.dtype, DType::I32 | DType::I64) && is_nranks(cx, &data.shape, window);
    if !sound {
        let (text, ranks) = (names.tensor(tensor), domain(cx, window));
        cx.find(&rules::COUNTS, op, format!("{text} does not hold an i32 or i64 for each rank"))
            .note(names.tensor_is(tensor))
            .note(ranks)
            .hint(format!("declare it as {text}: tensor[world] i32"));
    }
    sound
}

fn root(cx: &mut Context, op: Op, collective: &Collective) -> bool {
    collective.root().is_none_or(|root| types::integer(cx, op, root, "a root"))
}
