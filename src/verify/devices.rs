//! The ranks that dispatches go to, and the domains that they share windows in.

use std::collections::{BTreeSet, HashMap, HashSet};

use cranelift_entity::SecondaryMap;

use crate::ir::effects::{Peers, Place, effects};
use crate::ir::extent::ExtentData;
use crate::ir::program::{DomainRanks, ScalarDef, TensorDef};
use crate::ir::{BinaryOp, Buffer, Domain, Entry, Expr, Extent, Op, OpKind, Operand, Scalar, Tensor};

use super::domains::{Devices, declared, exchanged, list, passed};
use super::{Context, rules};

/// The device of a dispatch is a rank, and one that is known when compiling.
pub(super) fn check(cx: &mut Context, op: Op, device: Scalar) -> bool {
    let names = cx.names;
    let bounds = rank_loop(cx, device);
    if bounds.is_none() && cx.program.extent_of(cx.original(device)).is_none() {
        let hint = instead(cx, device);
        let message = format!("device {} is not the index of a loop over ranks", names.scalar(device));
        cx.find(&rules::DEVICE, op, message).hint(hint);
        return false;
    }
    let (range, world) = (cx.ranges.of(device), cx.ranges.world());
    if range.max < 0 || (bounds.is_none() && range.min >= world.max) {
        let ranks = cx.all_ranks();
        cx.find(&rules::DEVICE, op, format!("device {} does not exist", names.scalar(device))).note(ranks);
        return false;
    }
    true
}

/// The loop over ranks that a device is the index of.
fn rank_loop(cx: &Context, device: Scalar) -> Option<(Scalar, Scalar)> {
    let ScalarDef::Index(op) = cx.program.scalars[cx.original(device)].def else { return None };
    match cx.kind(op) {
        OpKind::Ranks { first, end, .. } => Some((*first, *end)),
        _ => None,
    }
}

/// What to write in place of a device that is computed.
fn instead(cx: &Context, device: Scalar) -> String {
    let text = cx.names.scalar(device);
    let general = format!("dispatch inside ranks r in 0..world {{ ... }}, on device r, and pass {text} to the entry");
    match cx.program.scalars[cx.original(device)].def {
        ScalarDef::HostParam(_) => format!("{general}, which leaves ranks out with an if"),
        ScalarDef::Index(op) => match cx.kind(op) {
            OpKind::For { first, end, step, .. } => {
                let (first, end, step) = (cx.names.scalar(*first), cx.names.scalar(*end), cx.names.scalar(*step));
                let inside = if step == "1" { "...".into() } else { format!("if {text} % {step} == 0 {{ ... }}") };
                format!("make it a loop over ranks: ranks {text} in {first}..{end} {{ {inside} }}")
            }
            _ => general,
        },
        ScalarDef::Result(op) => match *cx.kind(op) {
            OpKind::Scalar { expr: Expr::Binary(BinaryOp::Add, a, b), .. } => {
                shifted(cx, a, b, 1).or_else(|| shifted(cx, b, a, 1)).unwrap_or(general)
            }
            OpKind::Scalar { expr: Expr::Binary(BinaryOp::Sub, a, b), .. } => shifted(cx, a, b, -1).unwrap_or(general),
            OpKind::Scalar { expr: Expr::Binary(BinaryOp::Mul, a, b), .. } => {
                strided(cx, a, b).or_else(|| strided(cx, b, a)).unwrap_or(general)
            }
            _ => general,
        },
        _ => general,
    }
}

/// `r + 1`, with `r` in 0..3, is the index of a loop over 1..4.
fn shifted(cx: &Context, index: Scalar, by: Scalar, sign: i64) -> Option<String> {
    let (first, end) = rank_loop(cx, index)?;
    let by = cx.ranges.of(by).value()?.checked_mul(sign)?;
    let first = cx.ranges.of(first).value()?.checked_add(by).filter(|&first| first >= 0)?;
    let end = match (cx.ranges.of(end).value(), cx.program.extents.get(cx.program.extent_of(end)?)) {
        (Some(end), _) => end.checked_add(by)?.to_string(),
        (None, ExtentData::Binary(BinaryOp::Sub, of, less)) if cx.ranges.of_extent(less).value() == Some(by) => {
            cx.names.extent(of)
        }
        (None, ExtentData::World | ExtentData::Dim(_)) if by < 0 => {
            format!("{} - {}", cx.names.scalar(end), by.unsigned_abs())
        }
        _ => return None,
    };
    let index = cx.names.scalar(index);
    Some(format!("let the loop go through the devices: ranks {index} in {first}..{end} {{ ... device {index} }}"))
}

/// `r * 2` is the index of a loop that leaves ranks out.
fn strided(cx: &Context, index: Scalar, by: Scalar) -> Option<String> {
    rank_loop(cx, index)?;
    let (by, index) = (cx.ranges.of(by).value().filter(|&by| by > 1)?, cx.names.scalar(index));
    Some(format!("leave ranks out: ranks {index} in 0..world {{ if {index} % {by} == 0 {{ ... device {index} }} }}"))
}

/// A loop over ranks goes through ranks.
pub(super) fn turns(cx: &mut Context, op: Op, first: Scalar, end: Scalar) {
    let (from, to, world) = (cx.ranges.of(first), cx.ranges.of(end), cx.ranges.world());
    if from.max < 0 || to.min > world.max {
        let names = cx.names;
        let message = format!("{}..{} are not all ranks", names.scalar(first), names.scalar(end));
        let ranks = cx.all_ranks();
        cx.find(&rules::DEVICE, op, message).note(ranks).hint("write 0..world");
    }
}

/// The ranks of a declared domain exist, each once.
pub(super) fn declaration(cx: &mut Context, op: Op, domain: Domain) {
    let program = cx.program;
    let data = &program.domains[domain];
    let name = &data.name;
    let extents: &[Extent] = match &data.ranks {
        DomainRanks::Range(first, end) => &[*first, *end],
        DomainRanks::List(ranks) => ranks,
    };
    if let Some(&extent) = extents.iter().find(|&&extent| program.extents.is_dynamic(extent)) {
        let message = format!("domain {name} depends on {}, which is bound at launch", cx.names.extent(extent));
        cx.find(&rules::DOMAIN, op, message).hint("which ranks share windows is decided when compiling");
        return;
    }
    let values = extents.iter().filter_map(|&extent| program.extents.eval(extent, cx.known));
    let ranks: Vec<i64> = match data.ranks {
        DomainRanks::Range(..) => match values.collect::<Vec<_>>()[..] {
            // More than the first ranks outside need not be named.
            [first, end] => (first..end.min(first.saturating_add(cx.known.world.unwrap_or(0) + 2))).collect(),
            _ => return,
        },
        DomainRanks::List(_) => values.collect(),
    };
    if ranks.is_empty() && extents.iter().all(|&extent| program.extents.eval(extent, cx.known).is_some()) {
        cx.find(&rules::DOMAIN, op, format!("domain {name} has no ranks"))
            .hint("name at least one: domain 0..world, domain [0, 2]");
    }
    let exists = |rank: i64| rank >= 0 && cx.known.world.is_none_or(|world| rank < world);
    if let Some(&outside) = ranks.iter().find(|&&rank| !exists(rank)) {
        let all = cx.all_ranks();
        cx.find(&rules::DOMAIN, op, format!("domain {name} has rank {outside}, which does not exist")).note(all);
    }
    if let Some((_, twice)) = ranks.iter().enumerate().find(|(i, rank)| ranks[..*i].contains(rank)) {
        cx.find(&rules::DOMAIN, op, format!("domain {name} has rank {twice} twice"))
            .hint("a rank has one number in a domain; leave the second one out");
    }
}

/// The ranks that run a dispatch are members of the declared domains of its windows.
pub(super) fn members(cx: &mut Context, op: Op) {
    let program = cx.program;
    let Some(devices) = cx.domains.devices(op).cloned() else { return };
    for buffer in passed(program, op) {
        let Some(domain) = program.buffers[buffer].domain else { continue };
        let (Some(ranks), Some(members)) = (&devices.ranks, declared(program, domain, cx.known)) else { continue };
        let outside: Vec<u32> = ranks.iter().copied().filter(|rank| !members.contains(rank)).collect();
        if !outside.is_empty() {
            let (buffer, domain) = (&program.buffers[buffer].name, &program.domains[domain].name);
            let outside = list(&outside);
            cx.find(
                &rules::NOT_MEMBER,
                op,
                format!("domain {domain} leaves out {outside}, to which this passes {buffer}"),
            )
            .note(format!("{domain} is {}, and shares {buffer}", list(&members)))
            .hint(format!("dispatch on the ranks of {domain} only, or add {outside} to it"));
        }
    }
}

/// The rules on all dispatches together.
pub(super) fn finish(cx: &mut Context) {
    unreached_members(cx);
    certainty(cx);
    mixed_domains(cx);
    collective_domains(cx);
}

/// A value that is a peer for two windows means the same rank for both.
fn mixed_domains(cx: &mut Context) {
    let program = cx.program;
    for (entry, data) in &program.entries {
        // The windows that each value is a peer for, and where it is so first.
        let mut uses: Vec<(Scalar, Tensor, Op)> = Vec::new();
        let mut seen = HashSet::new();
        program.walk(data.body, &mut |op| {
            for effect in effects(program, cx.kind(op)) {
                if let Place::Memory { tensor, peer: Some(Peers::One(peer)), .. } = effect.place
                    && program.extent_of(cx.original(peer)).is_none()
                    && seen.insert((cx.original(peer), cx.root(tensor)))
                {
                    uses.push((cx.original(peer), cx.root(tensor), op));
                }
            }
        });
        let dispatches: Vec<Op> = program.ops.keys().filter(|&op| dispatched(cx, op) == Some(entry)).collect();
        for (number, &(peer, window, op)) in uses.iter().enumerate() {
            for &(_, first, earlier) in uses[..number].iter().filter(|(other, ..)| *other == peer) {
                let differ = |&dispatch: &Op| {
                    let (a, b) = (shared_by(cx, dispatch, first)?, shared_by(cx, dispatch, window)?);
                    a.iter().zip(b).any(|(a, b)| a != b).then(|| (dispatch, list(a), list(b)))
                };
                let Some((dispatch, of_first, of_window)) = dispatches.iter().find_map(differ) else { continue };
                let names = cx.names;
                let (peer, first, window) = (names.scalar(peer), names.tensor(first), names.tensor(window));
                let message =
                    format!("{peer} is a peer for {first} and for {window}, which number their ranks differently");
                cx.find(&rules::MIXED_DOMAINS, op, message)
                    .note(format!("{}{}", names.op(earlier), names.at(earlier)))
                    .note(format!("{}{}", names.op(dispatch), names.at(dispatch)))
                    .note(format!("there {first} is shared by {of_first}, and {window} by {of_window}"))
                    .hint(format!("compute one peer with rank({first}), and the other with rank({window})"));
                break;
            }
        }
    }
}

/// The entry that a dispatch runs.
fn dispatched(cx: &Context, op: Op) -> Option<Entry> {
    match cx.kind(op) {
        OpKind::Dispatch { entry, .. } => Some(*entry),
        _ => None,
    }
}

/// What a dispatch passes for a window parameter, if it is one of the entry that it runs.
fn buffer_of(cx: &Context, dispatch: Op, window: Tensor) -> Option<Buffer> {
    let OpKind::Dispatch { entry, args, .. } = cx.kind(dispatch) else { return None };
    let TensorDef::Window(callee, index) = cx.program.tensors[window].def else { return None };
    let Operand::Tensor(view) = *args.get(index as usize).filter(|_| callee == *entry)? else { return None };
    match cx.program.tensors[view].def {
        TensorDef::View(buffer) => Some(buffer),
        _ => None,
    }
}

/// The ranks that share what a dispatch passes for a window parameter.
fn shared_by<'c>(cx: &'c Context, dispatch: Op, window: Tensor) -> Option<&'c [u32]> {
    Some(&cx.domains.ranks[cx.domains.of(buffer_of(cx, dispatch, window)?)?])
}

/// The ranks that take part in a collective have all its windows, and number each other alike in those that others
/// reach into.
fn collective_domains(cx: &mut Context) {
    let program = cx.program;
    for (op, data) in &program.ops {
        let OpKind::Collective(collective) = &data.kind else { continue };
        let Some(window) = collective.window() else { continue };
        let differs = |dispatch: Option<Op>| {
            let shared = |tensor: Tensor| {
                let buffer = match program.tensors[tensor].def {
                    TensorDef::View(buffer) => buffer,
                    _ => buffer_of(cx, dispatch?, cx.root(tensor))?,
                };
                Some((&program.buffers[buffer].name, &cx.domains.ranks[cx.domains.of(buffer)?]))
            };
            let (name, ranks) = shared(window)?;
            let others = collective.tensors().filter(|&tensor| dispatch.is_none() || collective.signal == Some(tensor));
            let (other, outside) =
                others.filter_map(|tensor| Some((tensor, shared(tensor)?))).find_map(|(tensor, of)| {
                    let reached = tensor == window || collective.signal == Some(tensor);
                    let lacks = if reached { of.1 != ranks } else { !ranks.iter().all(|rank| of.1.contains(rank)) };
                    lacks.then_some(of)
                })?;
            Some(format!("{name} is shared by {}, and {other} by {}", list(ranks), list(outside)))
        };
        let of_tasks = || program.ops.keys().find_map(|dispatch| differs(Some(dispatch)));
        if let Some(note) = differs(None).or_else(of_tasks) {
            cx.find(&rules::COLLECTIVE_DOMAIN, op, "not the same ranks share the windows of this collective")
                .note(note)
                .hint("name one domain in their allocations: alloc_window [...] f32 in pair");
        }
    }
}

/// Every rank of a declared domain gets one of its windows.
fn unreached_members(cx: &mut Context) {
    let program = cx.program;
    for op in program.ops.keys() {
        let OpKind::Domain { domain } = *cx.kind(op) else { continue };
        let Some(mut missing) = declared(program, domain, cx.known) else { continue };
        let shared = |buffer: Buffer| program.buffers[buffer].domain == Some(domain);
        for dispatch in program.ops.keys() {
            if exchanged(program, dispatch).into_iter().any(shared) {
                missing.clear();
            }
            let receives = passed(program, dispatch).any(shared);
            match cx.domains.devices(dispatch) {
                Some(devices) if receives => match &devices.ranks {
                    Some(ranks) => missing.retain(|rank| !ranks.contains(rank)),
                    // Another rule tells why.
                    None => missing.clear(),
                },
                _ => {}
            }
        }
        if !missing.is_empty() {
            let name = &program.domains[domain].name;
            cx.find(
                &rules::UNREACHED_MEMBER,
                op,
                format!("no dispatch passes a window of {name} to {}", list(&missing)),
            )
            .note("a rank that is left out would never notify the others")
            .hint(format!("dispatch on all ranks of {name}, or take the ones that are left out from it"));
        }
    }
}

/// A rank that shares a window is certain to run a dispatch that receives it; or else a launch decides so for all those
/// ranks together.
fn certainty(cx: &mut Context) {
    let program = cx.program;
    // Who shares a buffer without being certain of a dispatch.
    let mut uncertain: SecondaryMap<Buffer, BTreeSet<u32>> = SecondaryMap::new();
    let mut sets: HashMap<(Buffer, Op, usize), BTreeSet<u32>> = HashMap::new();
    let receives: Vec<(Op, Buffer, Devices)> = program
        .ops
        .keys()
        .filter_map(|op| Some((op, cx.domains.devices(op)?)))
        .flat_map(|(op, devices)| passed(program, op).map(move |buffer| (op, buffer, devices.clone())))
        .collect();
    for (_, buffer, devices) in &receives {
        uncertain[*buffer].extend(devices.ranks.iter().flatten());
        if let Some((decides, block)) = devices.together {
            sets.entry((*buffer, decides, block)).or_default().extend(devices.ranks.iter().flatten());
        }
    }
    for (_, buffer, devices) in receives.iter().filter(|(.., d)| d.together.is_none() && d.apart.is_none()) {
        devices.ranks.iter().flatten().for_each(|rank| _ = uncertain[*buffer].remove(rank));
    }
    let mut reported = HashSet::new();
    for (op, buffer, devices) in receives {
        let (names, name) = (cx.names, &program.buffers[buffer].name);
        let concerned = devices.ranks.as_ref().is_none_or(|ranks| ranks.iter().any(|r| uncertain[buffer].contains(r)));
        let (decides, message) = match devices {
            _ if !concerned => continue,
            Devices { apart: Some(decides), .. } => {
                (decides, format!("a launch decides which ranks run this, and they share {name}"))
            }
            Devices { together: Some((decides, block)), .. } => {
                let set = &sets[&(buffer, decides, block)];
                let others: Vec<u32> = uncertain[buffer].difference(set).copied().collect();
                if others.is_empty() {
                    continue;
                }
                (decides, format!("a launch may leave out {}, which {name} is shared with", list(&others)))
            }
            _ => continue,
        };
        if reported.insert(op) {
            cx.find(&rules::UNCERTAIN_DISPATCH, op, message)
                .note(format!("it depends on {}{}", names.op(decides), names.at(decides)))
                .note("a rank that is left out would never notify the others")
                .hint("decide by ranks and world only, or dispatch on every rank and pass what decides to the entry");
        }
    }
}
