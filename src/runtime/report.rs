//! What is said when a launch fails: what this rank waited for, what every other rank was doing, and who is late.

use std::fmt::Write;
use std::time::Duration;

use super::control::{Activity, Waiting};
use super::core::Core;
use super::executable::Image;
use super::failure::MAX_MESSAGE;
use super::hooks::{Cmp, Context};
use super::tasks::{Cause, Graph};
use crate::codegen::cpu::FunctionCode;
use crate::codegen::cpu::abi::{Fault, FaultKind};
use crate::codegen::sites::Site;
use crate::error::{Error, ErrorKind};

/// Kept free for what ends a report.
const TAIL: usize = 512;

/// What a peer does, as far as it matters for a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Stance {
    /// Blocked in the launch.
    Waits,
    /// Has not come to what others wait for.
    Late,
    /// Has done its part.
    Ended,
}

/// The report of a cell that did not compare in time.
pub(super) fn wait(context: &Context, waiting: &Waiting, elapsed: Duration) -> Error {
    let Context { image, rank, .. } = *context;
    if waiting.cmp == Cmp::TRANSFERS {
        return transfers(context, waiting, elapsed);
    }
    let condition = condition(image, rank, waiting);
    let site = image.routine.sites.get(waiting.site as usize);
    let mut text = format!("rank {rank} waited {:.1} s for {condition}\n    ", elapsed.as_secs_f64());
    if let Some(place) = site.and_then(place_of) {
        let _ = write!(text, "at {place}, ");
    }
    let _ = write!(text, "launch {} of '{}'", context.launch + 1, image.name);
    let cell = image.windows.in_set(waiting.cell).and_then(|offset| image.cells.at(offset));
    let sharing = cell.as_ref().map_or_else(Vec::new, |cell| cell.ranks.to_vec());
    let notify = cell.map(|cell| match cell.notifies {
        [] => (format!("notify of {}", cell.window), false),
        places => {
            let known: Vec<&str> = places.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
            let list = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
            (format!("notify {}{list}", cell.window), true)
        }
    });
    let mut stances = peers(context, &mut text);
    if !sharing.is_empty() {
        // The others cannot be what this rank waits for.
        stances.retain(|(peer, _)| sharing.contains(peer));
    }
    text.push_str("\n    => ");
    text.push_str(&conclusion(context, &stances, notify));
    Error::new(ErrorKind::Timeout, text)
}

/// The report of transfers with far ranks that do not end.
fn transfers(context: &Context, waiting: &Waiting, elapsed: Duration) -> Error {
    let Context { image, rank, .. } = *context;
    let mut text = format!("rank {rank} waited {:.1} s for its transfers to end\n    ", elapsed.as_secs_f64());
    if let Some(place) = image.routine.sites.get(waiting.site as usize).and_then(place_of) {
        let _ = write!(text, "at {place}, ");
    }
    let _ = write!(text, "launch {} of '{}'", context.launch + 1, image.name);
    peers(context, &mut text);
    text.push_str("\n    => far ranks do not take in what is sent to them, or do not send what is asked of them");
    Error::new(ErrorKind::Timeout, text)
}

/// The report of a rank whose tasks all wait: the first cell, and what has not begun because of it.
pub(super) fn tasks(context: &Context, waiting: &Waiting, graph: &Graph, elapsed: Duration) -> Error {
    const MOST: usize = 4;
    let mut error = wait(context, waiting, elapsed);
    let tasks = &context.image.routine.tasks;
    let held: Vec<_> = graph.held().collect();
    for &(task, other, cause) in held.iter().take(MOST) {
        let (task, other) = (&tasks[task as usize], &tasks[other as usize]);
        let why = match cause {
            Cause::Named => "a dependency".into(),
            Cause::Conflict(access) => format!("both touch {}", task.accesses[*access].name),
        };
        let line = format!("\n    task {} has not begun: it waits for {} ({why})", task.name, other.name);
        if error.message.len() + line.len() <= MAX_MESSAGE {
            error.message.push_str(&line);
        }
    }
    if held.len() > MOST {
        let _ = write!(error.message, "\n    and {} more tasks", held.len() - MOST);
    }
    error
}

/// The report of a function of the engine that returned an error.
pub(super) fn callback(context: &Context, code: &FunctionCode, block: i64, blocks: i64, status: i32) -> Error {
    let Context { image, rank, launch, .. } = *context;
    let site = image.routine.sites.get(code.site as usize);
    let place = site.and_then(place_of).map(|p| format!("at {p}, ")).unwrap_or_default();
    let block = if blocks == 1 { String::new() } else { format!("block {block} of {blocks}, ") };
    let launch = format!("launch {} of '{}'", launch + 1, image.name);
    let message = format!("rank {rank}: function {} returned {status}\n    {place}{block}{launch}", code.name);
    Error::new(ErrorKind::Callback, message)
}

/// The report of a launch or reset that could not go on because peers were late.
pub(super) fn gate(context: &Context, purpose: &str, elapsed: Duration) -> Error {
    let Context { image, rank, launch, .. } = *context;
    let mut text = format!("rank {rank} waited {:.1} s {purpose}", elapsed.as_secs_f64());
    let _ = if purpose == "to begin" {
        write!(text, "\n    launch {} of '{}'", launch + 1, image.name)
    } else {
        write!(text, "\n    after launch {launch} of '{}'", image.name)
    };
    peers(context, &mut text);
    Error::new(ErrorKind::Timeout, text)
}

/// Adds a line for every other rank.
fn peers(context: &Context, text: &mut String) -> Vec<(u32, Stance)> {
    let mut stances = Vec::new();
    let mut left_out = 0;
    let Context { core, image, launch, .. } = *context;
    let answers = core.ask_far(image.id, launch);
    for peer in (0..core.nranks).filter(|&peer| peer != context.rank) {
        let answer = answers.iter().find(|answer| answer.rank == peer);
        let (stance, what) = match answer {
            Some(answer) => (answer.stance, answer.what.clone()),
            None if core.board.is_far(peer) && !core.board.control(peer).has_left() => {
                (Stance::Late, "does not say what it does".into())
            }
            None => describe(core, image, launch, peer),
        };
        stances.push((peer, stance));
        let line = format!("\n    rank {peer}: {what}");
        if text.len() + line.len() + TAIL <= MAX_MESSAGE {
            text.push_str(&line);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let _ = write!(text, "\n    and {left_out} more ranks");
    }
    stances
}

/// What a rank does about a launch.
pub(super) fn describe(core: &Core, image: &Image, launch: u64, peer: u32) -> (Stance, String) {
    let control = core.board.control(peer);
    let done = image.windows.progress(peer).done() > launch;
    if control.has_left() {
        return (if done { Stance::Ended } else { Stance::Late }, "has left the world".into());
    }
    match control.activity() {
        Some(activity) => {
            let here = activity.executable == image.id && activity.launch == launch;
            let stance = match (activity.waiting, done) {
                (Some(_), false) => Stance::Waits,
                (_, true) => Stance::Ended,
                (None, false) => Stance::Late,
            };
            let theirs = core.image(activity.executable);
            let mut what = doing(theirs.as_deref(), peer, &activity);
            if !here {
                let name = theirs.as_ref().map_or("another program", |i| &i.name);
                let _ = write!(what, ", launch {} of '{name}'", activity.launch + 1);
            }
            (stance, what)
        }
        None if done => (Stance::Ended, format!("has ended launch {}", launch + 1)),
        None => (Stance::Late, format!("has not started launch {}", launch + 1)),
    }
}

fn doing(image: Option<&Image>, peer: u32, activity: &Activity) -> String {
    let site = |index: u32| image.and_then(|i| i.routine.sites.get(index as usize));
    match (activity.waiting, image, activity.task.and_then(site)) {
        (Some(waiting), Some(image), _) => format!("waits for {}", condition(image, peer, &waiting)),
        (Some(_), None, _) => "waits".into(),
        (None, _, Some(task)) => match place_of(task) {
            Some(place) => format!("in task {place}"),
            None => "in a task".into(),
        },
        (None, _, None) => "before its first task".into(),
    }
}

/// `signal[3, 0] >= 1 (is 0)`.
fn condition(image: &Image, rank: u32, waiting: &Waiting) -> String {
    if waiting.cmp == Cmp::TRANSFERS {
        return "its transfers to end".into();
    }
    let cell = image.windows.in_set(waiting.cell).and_then(|offset| image.cells.at(offset));
    let cell = cell.map_or_else(|| format!("the cell at byte {}", waiting.cell), |c| c.text);
    let cmp = if waiting.cmp == Cmp::EQ { "==" } else { ">=" };
    let actual = image.windows.cell(rank, waiting.cell).map_or_else(|| "?".into(), |v| v.to_string());
    format!("{cell} {cmp} {} (is {actual})", waiting.expected)
}

/// `dispatch_wait (moe.cpp:160)`.
fn place_of(site: &Site) -> Option<String> {
    match (site.task.as_str(), site.place.as_str()) {
        ("", "") => None,
        (task, "") => Some(task.into()),
        ("", place) => Some(place.into()),
        (task, place) => Some(format!("{task} ({place})")),
    }
}

/// Who is late, and for what.
fn conclusion(context: &Context, stances: &[(u32, Stance)], notify: Option<(String, bool)>) -> String {
    let launch = format!("launch {} of '{}'", context.launch + 1, context.image.name);
    let notify = match notify {
        Some((notify, true)) => notify,
        Some((notify, false)) => return format!("there is no {notify} in the program"),
        None => "what this rank waits for".into(),
    };
    let with = |stance| stances.iter().filter(move |s| s.1 == stance).map(|s| s.0);
    let late: Vec<u32> = with(Stance::Late).collect();
    let ended: Vec<u32> = with(Stance::Ended).collect();
    if !late.is_empty() {
        format!("{} not reached {notify} of {launch}", ranks_have(&late))
    } else if !ended.is_empty() {
        format!("{} ended {launch} without the missing {notify}", ranks_have(&ended))
    } else if stances.is_empty() {
        format!("there is no other rank, and this one has not reached {notify}")
    } else if stances.len() as u32 + 1 < context.core.nranks {
        format!("all ranks that share the window wait, so none reaches {notify}")
    } else {
        format!("all ranks wait, so none reaches {notify}")
    }
}

/// `rank 0 has`, `ranks 0, 2 and 3 have`.
fn ranks_have(ranks: &[u32]) -> String {
    const MOST: usize = 16;
    let names: Vec<String> = ranks.iter().take(MOST).map(u32::to_string).collect();
    match (names.as_slice(), ranks.len()) {
        ([one], _) => format!("rank {one} has"),
        (some, all) if all > MOST => format!("ranks {} and {} more have", some.join(", "), all - MOST),
        ([some @ .., last], _) => format!("ranks {} and {last} have", some.join(", ")),
        ([], _) => "no rank has".into(),
    }
}

/// The report of what a run-time check found.
pub(super) fn fault(context: &Context, fault: &Fault) -> Error {
    let Context { image, rank, .. } = *context;
    let site = image.routine.sites.get(fault.site as usize);
    let op = site.map_or("an op", |s| &s.text);
    let first = fault.offsets[0];
    let kinds = [
        FaultKind::Bounds,
        FaultKind::Peer,
        FaultKind::Array,
        FaultKind::Division,
        FaultKind::Step,
        FaultKind::Require,
        FaultKind::Agree,
    ];
    let (kind, what) = match kinds.into_iter().find(|k| *k as u32 == fault.kind) {
        Some(FaultKind::Bounds) => (ErrorKind::OutOfBounds, bounds(site, fault)),
        Some(FaultKind::Peer) => {
            let (nranks, world) = (fault.extents[0], i64::from(context.core.nranks));
            let set = if nranks == world { "world" } else { "domain" };
            let what = match fault.offsets[1] {
                end if end == first.wrapping_add(1) => format!("peer {first} is outside the {set} of {nranks} ranks"),
                end => format!("peers {first}..{end} are not a round of the {set} of {nranks} ranks"),
            };
            (ErrorKind::OutOfBounds, what)
        }
        Some(FaultKind::Array) => {
            (ErrorKind::OutOfBounds, format!("index {first} is outside an array of {}", fault.extents[0]))
        }
        Some(FaultKind::Division) => (ErrorKind::Arithmetic, "division by zero".into()),
        Some(FaultKind::Step) => (ErrorKind::Arithmetic, format!("the step {first} is not positive")),
        Some(FaultKind::Require) => (ErrorKind::OutOfBounds, requirement(site, fault)),
        Some(FaultKind::Agree) => return disagreement(context, fault),
        None => (ErrorKind::Internal, format!("fault {}", fault.kind)),
    };
    let place = site.and_then(place_of).map(|p| format!("at {p}, ")).unwrap_or_default();
    let launch = format!("launch {} of '{}'", context.launch + 1, image.name);
    Error::new(kind, format!("rank {rank}: {what}\n    {op}\n    {place}{launch}"))
}

fn bounds(site: Option<&Site>, fault: &Fault) -> String {
    let operand = site.and_then(|s| s.operands.get(fault.operand as usize));
    let (name, ty, rank) = match operand {
        Some(o) => (o.name.as_str(), o.ty.as_str(), o.shape.len().min(fault.offsets.len())),
        None => ("a tensor", "", 1),
    };
    let (offsets, extents) = (&fault.offsets[..rank], &fault.extents[..rank]);
    format!("a region of {extents:?} at {offsets:?} reaches outside {name} ({ty}) in dimension {}", fault.dim)
}

/// `rows is 5, but must be <= room, which is 4; this is about rank 0`.
fn requirement(site: Option<&Site>, fault: &Fault) -> String {
    let ([left, peer, ..], right) = (fault.offsets, fault.extents[0]);
    let Some((a, cmp, b)) = site.and_then(|s| s.required.as_ref()) else { return format!("{left} and {right}") };
    let mut text = if *a == left.to_string() { a.clone() } else { format!("{a} is {left}, but") };
    let _ = write!(text, " must be {cmp} {b}");
    if *b != right.to_string() {
        let _ = write!(text, ", which is {right}");
    }
    if peer >= 0 {
        let _ = write!(text, "; this is about rank {peer}");
    }
    text
}

/// The report of ranks that call different collectives.
fn disagreement(context: &Context, fault: &Fault) -> Error {
    let Context { image, rank, launch, .. } = *context;
    let ([theirs, peer, ..], mine) = (fault.offsets, fault.extents[0]);
    let same = theirs as u16 == mine as u16;
    let call = |value: i64| {
        let call = image.routine.calls.iter().find(|call| call.number == value as u16);
        let root = if same { format!(" with root {}", value >> 16) } else { String::new() };
        match call {
            Some(call) if call.place.is_empty() => format!("{}{root}", call.name),
            Some(call) => format!("{}{root} ({})", call.name, call.place),
            None => format!("something else ({value})"),
        }
    };
    let (mine, theirs) = (call(mine), call(theirs));
    let text = format!("rank {rank} calls {mine}, but rank {peer} calls {theirs}");
    Error::new(ErrorKind::Mismatch, format!("{text}\n    launch {} of '{}'", launch + 1, image.name))
}

#[cfg(test)]
mod tests {
    use super::ranks_have;

    #[test]
    fn ranks_are_listed_as_people_do() {
        assert_eq!(ranks_have(&[4]), "rank 4 has");
        assert_eq!(ranks_have(&[0, 7]), "ranks 0 and 7 have");
        assert_eq!(ranks_have(&[0, 2, 3]), "ranks 0, 2 and 3 have");
        let many: Vec<u32> = (0..20).collect();
        assert!(ranks_have(&many).ends_with("14, 15 and 4 more have"));
    }
}
