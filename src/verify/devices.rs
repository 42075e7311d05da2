//! The ranks that dispatches go to, and the domains that they share windows in.

use std::collections::HashMap;

use crate::ir::extent::ExtentData;
use crate::ir::program::{DomainRanks, ScalarDef};
use crate::ir::{BinaryOp, Buffer, Domain, Expr, Extent, Op, OpKind, Scalar};

use super::domains::{declared, list, passed};
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
    let names = cx.names;
    let general = "dispatch inside ranks r in 0..world { ... }, on device r".to_string();
    match cx.program.scalars[cx.original(device)].def {
        ScalarDef::HostParam(_) => {
            format!("{general}, and pass {} to the entry, which leaves ranks out with an if", names.scalar(device))
        }
        ScalarDef::Index(op) => match cx.kind(op) {
            OpKind::For { first, end, .. } => {
                let index = names.scalar(device);
                format!("write ranks {index} in {}..{} for the loop", names.scalar(*first), names.scalar(*end))
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
            OpKind::Scalar { .. } => format!("{general}, and pass {} to the entry", names.scalar(device)),
            _ => format!("{general}, and let the entry look up what it needs"),
        },
        _ => general,
    }
}

/// `r + 1`, with `r` in 0..3, is the index of a loop over 1..4.
fn shifted(cx: &Context, index: Scalar, by: Scalar, sign: i64) -> Option<String> {
    let (first, end) = rank_loop(cx, index)?;
    let by = cx.ranges.of(by).value()?.checked_mul(sign)?;
    let bound = |scalar: Scalar| match cx.ranges.of(scalar).value() {
        Some(value) => value.saturating_add(by).to_string(),
        None if by < 0 => format!("{} - {}", cx.names.scalar(scalar), by.unsigned_abs()),
        None => match cx.program.extent_of(scalar).map(|extent| cx.program.extents.get(extent)) {
            Some(ExtentData::Binary(BinaryOp::Sub, of, less)) if cx.ranges.of_extent(less).value() == Some(by) => {
                cx.names.extent(of)
            }
            _ => format!("{} + {by}", cx.names.scalar(scalar)),
        },
    };
    let index = cx.names.scalar(index);
    Some(format!(
        "let the loop go through the devices: ranks {index} in {}..{} {{ ... device {index} }}",
        bound(first),
        bound(end)
    ))
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

/// The ranks that run a dispatch are members of the domains of its windows, and are known when compiling.
pub(super) fn members(cx: &mut Context, op: Op) {
    let program = cx.program;
    let Some(devices) = cx.domains.devices(op).cloned() else { return };
    if let Some(decides) = devices.apart
        && let Some(buffer) = passed(program, op).next()
    {
        let (condition, place) = (cx.names.op(decides), cx.names.at(decides));
        let message = format!(
            "which ranks run this is not known when compiling, and they share {}",
            program.buffers[buffer].name
        );
        cx.find(&rules::UNCERTAIN_DISPATCH, op, message)
            .note(format!("it depends on {condition}{place}"))
            .note("a rank that is left out would never notify the others")
            .hint("decide by ranks and world only, or dispatch on every rank and pass what decides to the entry");
    }
    for buffer in passed(program, op) {
        let Some(domain) = program.buffers[buffer].domain else { continue };
        let (Some(ranks), Some(members)) = (&devices.ranks, declared(program, domain, cx.known)) else { continue };
        let outside: Vec<u32> = ranks.iter().copied().filter(|rank| !members.contains(rank)).collect();
        if !outside.is_empty() {
            let (buffer, domain) = (&program.buffers[buffer].name, &program.domains[domain].name);
            cx.find(&rules::NOT_MEMBER, op, format!("{} has no part in {buffer}", list(&outside)))
                .note(format!("{domain} is {}, and shares {buffer}", list(&members)))
                .hint(format!("dispatch on the ranks of {domain} only, or add {} to it", list(&outside)));
        }
    }
}

/// The rules on all dispatches together.
pub(super) fn finish(cx: &mut Context) {
    unreached_members(cx);
    one_for_all(cx);
}

/// Every rank of a declared domain gets one of its windows.
fn unreached_members(cx: &mut Context) {
    let program = cx.program;
    for op in program.ops.keys() {
        let OpKind::Domain { domain } = *cx.kind(op) else { continue };
        let Some(mut missing) = declared(program, domain, cx.known) else { continue };
        for dispatch in program.ops.keys() {
            let receives = passed(program, dispatch).any(|buffer| program.buffers[buffer].domain == Some(domain));
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

/// Where a launch decides whether a window is used, it decides so for every rank that shares it.
fn one_for_all(cx: &mut Context) {
    let program = cx.program;
    let mut all: HashMap<Buffer, Vec<u32>> = HashMap::new();
    let mut groups: HashMap<(Buffer, Op, usize), (Op, Vec<u32>)> = HashMap::new();
    for op in program.ops.keys() {
        let Some(devices) = cx.domains.devices(op) else { continue };
        for (buffer, ranks) in passed(program, op).zip(std::iter::repeat(devices.ranks.as_deref().unwrap_or_default()))
        {
            all.entry(buffer).or_default().extend(ranks);
            if let Some((decides, block)) = devices.together {
                groups.entry((buffer, decides, block)).or_insert((op, Vec::new())).1.extend(ranks);
            }
        }
    }
    let mut partial: Vec<_> =
        groups.into_iter().filter(|((b, ..), (_, ran))| !all[b].iter().all(|r| ran.contains(r))).collect();
    partial.sort_unstable_by_key(|&((buffer, ..), (op, _))| (op, buffer));
    partial.dedup_by_key(|&mut (_, (op, _))| op);
    for ((buffer, decides, _), (op, ranks)) in partial {
        let (condition, place, name) = (cx.names.op(decides), cx.names.at(decides), &program.buffers[buffer].name);
        let mut sharers = all[&buffer].clone();
        sharers.sort_unstable();
        sharers.dedup();
        let message = format!("only {} of the ranks that share {name} run this, if a launch decides so", list(&ranks));
        cx.find(&rules::UNCERTAIN_DISPATCH, op, message)
            .note(format!("it depends on {condition}{place}"))
            .note(format!("{name} is shared by {}", list(&sharers)))
            .hint("dispatch on all of these ranks under one condition, or give each group a window of its own");
    }
}
