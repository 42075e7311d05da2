//! Checks that no fence is missing in a kernel, independently of what put them in: walks backwards, and keeps for everything
//! that needs others to be done what is known of those before, until it meets them.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind, Result};

use super::effects::{Access, Rules, Units, accesses};
use super::kernel::{Block, Body, Fence, Operand, Pipe, Stmt, TileName};

/// Errors: `Internal` if a fence is missing, with the kernel, the two statements, and what is wrong between them.
pub fn check(kernel: &str, body: &Body, rules: &Rules) -> Result<()> {
    let lines = Lines::new(&body.code);
    let mut walk = Walk { body, rules, at: lines.texts.len() };
    let end = [Need::new(walk.at, What::End)].into();
    let hazard = walk.block(&body.code, end).and_then(|needs| Hazard::found(None, &needs, Need::disturbed));
    hazard.map_err(|Hazard { earlier, later, why }| {
        let (earlier, later) = (earlier.map_or("the beginning", |at| lines.text(at)), lines.text(later));
        Error::new(ErrorKind::Internal, format!("kernel {kernel} lacks a fence between {earlier} and {later}: {why}"))
    })
}

const NO_BARRIER: &str = "not all units wait right before it";
const OUTDATED: &str = "the scalars' cache may hold what is older";
const OVERTAKEN: &str = "nothing makes the later unit wait for the earlier one";
const HIDDEN: &str = "what is written may not be in memory";

/// Two statements, by number, that a fence must stand between.
struct Hazard {
    /// None for the beginning of the kernel.
    earlier: Option<usize>,
    later: usize,
    why: &'static str,
}

impl Hazard {
    /// The first one between a statement and what comes later.
    fn found(earlier: Option<usize>, needs: &Needs, why: impl Fn(&Need) -> Option<&'static str>) -> Result<(), Hazard> {
        let hazard = |need: &Need| why(need).map(|why| Hazard { earlier, later: need.at, why });
        needs.iter().find_map(hazard).map_or(Ok(()), Err)
    }
}

/// What needs others to be done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Access(Access),
    /// What other ranks are told.
    Notify,
    /// The end of the kernel.
    End,
}

/// What it needs, and what is known, at a place before it, of all that comes before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    /// The number of its statement: statements are numbered as they stand.
    at: usize,
    what: What,
    /// What these units have before the place is done by then.
    done: Units,
    way: Way,
    /// It is a notify, and no barrier has come yet.
    wants_barrier: bool,
}

/// What still has to come on the way from the writer through the cache into memory; the fences come last ones first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Drain,
    Settle,
    Clean,
    /// Nothing for what these units have before the place.
    Open(Units),
}

impl Way {
    /// The same before a fence.
    fn before(self, fence: Fence) -> Way {
        match (self, fence) {
            (Way::Drain, Fence::Drain) => Way::Settle,
            (Way::Settle, Fence::Barrier(Pipe::All)) => Way::Clean,
            (Way::Clean, Fence::InvalidateCache) => Way::Open(Units::of(Pipe::S)),
            (Way::Open(_), Fence::Barrier(Pipe::All)) => Way::Open(Units::ALL),
            (Way::Open(units), Fence::Order { from, to }) if units.meet(Units::of(to)) => {
                Way::Open(units.with(Units::of(from)))
            }
            (way, _) => way,
        }
    }
}

impl Need {
    fn new(at: usize, what: What) -> Self {
        let scalars = |access: &Access| access.unit == Pipe::S;
        let way = if matches!(&what, What::Access(access) if scalars(access)) { Way::Clean } else { Way::Drain };
        Self { at, what, done: Units::NONE, way, wants_barrier: what == What::Notify }
    }

    /// The units whose waiting makes it come later.
    fn waiting(&self) -> Units {
        match self.what {
            What::Access(access) => self.done.with(access.behind),
            What::Notify | What::End => self.done,
        }
    }

    /// The same before a fence.
    fn before(self, fence: Fence) -> Self {
        let way = self.way.before(fence);
        let done = |units: Units| Self { done: self.done.with(units), way, ..self };
        match fence {
            Fence::Barrier(Pipe::All) => Self { wants_barrier: false, ..done(Units::ALL) },
            Fence::Barrier(unit) if self.waiting().meet(Units::of(unit)) => done(Units::of(unit)),
            // While scalars wait, nobody gets anything new to do.
            Fence::Order { from, to } if to == Pipe::S || self.waiting().meet(Units::of(to)) => done(Units::of(from)),
            Fence::Barrier(_) | Fence::Order { .. } | Fence::InvalidateCache | Fence::Drain => Self { way, ..self },
        }
    }

    /// What is wrong if anything happens now.
    fn disturbed(&self) -> Option<&'static str> {
        self.wants_barrier.then_some(NO_BARRIER)
    }

    /// What is wrong if other ranks have written until now.
    fn outdated(&self, rules: &Rules) -> Option<&'static str> {
        match self.what {
            What::Access(access) if access.is_cached() && rules.is_shared(access.place) => {
                (!matches!(self.way, Way::Open(_))).then_some(OUTDATED)
            }
            _ => None,
        }
    }

    /// What is wrong if nothing but what has been seen so far comes between an access and this.
    fn hazard(&self, earlier: &Access, rules: &Rules) -> Option<&'static str> {
        let is_seen = matches!(self.way, Way::Open(units) if units.meet(Units::of(earlier.unit).with(earlier.ahead)));
        let is_done = |waiting: Units| self.done.meet(Units::of(earlier.unit)) || earlier.ahead.meet(waiting);
        match self.what {
            What::Access(later) if !earlier.conflicts(&later) => None,
            What::Access(later) => {
                let in_order = earlier.unit == later.unit && rules.keeps_order(later.unit);
                if !in_order && !is_done(self.waiting()) {
                    Some(OVERTAKEN)
                } else if later.is_cached() && !is_seen {
                    Some(OUTDATED)
                } else {
                    None
                }
            }
            What::Notify if earlier.is_write() && rules.is_shared(earlier.place) && !is_seen => Some(HIDDEN),
            What::Notify => None,
            What::End if earlier.is_write() && earlier.remote && !is_seen => Some(HIDDEN),
            What::End if earlier.unit != Pipe::S && !is_done(self.done) => Some(OVERTAKEN),
            What::End => None,
        }
    }
}

/// All that comes later; on different ways, different things may be known for the same.
type Needs = BTreeSet<Need>;

/// Walks through a kernel backwards, up to the first hazard.
struct Walk<'k> {
    body: &'k Body,
    rules: &'k Rules<'k>,
    /// The number of the statement behind.
    at: usize,
}

impl Walk<'_> {
    /// The needs before a block.
    fn block(&mut self, block: &Block, after: Needs) -> Result<Needs, Hazard> {
        block.iter().rev().try_fold(after, |needs, stmt| self.stmt(stmt, needs))
    }

    fn stmt(&mut self, stmt: &Stmt, mut needs: Needs) -> Result<Needs, Hazard> {
        match stmt {
            Stmt::If { then, other, .. } => {
                let mut before = self.block(other, needs.clone())?;
                before.extend(self.block(then, needs)?);
                self.at -= 1;
                return Ok(before);
            }
            Stmt::For { body, .. } => {
                let end = self.at;
                loop {
                    self.at = end;
                    let count = needs.len();
                    needs.extend(self.block(body, needs.clone())?);
                    if needs.len() == count {
                        break;
                    }
                }
                self.at -= 1;
                return Ok(needs);
            }
            _ => self.at -= 1,
        }
        match stmt {
            Stmt::Return => return Ok([Need::new(self.at, What::End)].into()),
            Stmt::Fault { .. } => return Ok(Needs::new()),
            Stmt::Fence(fence) => {
                if *fence != Fence::Barrier(Pipe::All) {
                    self.meet(&needs, Need::disturbed)?;
                }
                return Ok(needs.into_iter().map(|need| need.before(*fence)).collect());
            }
            Stmt::Notify { .. } => self.meet(&needs, Need::disturbed)?,
            Stmt::Wait { .. } => self.meet(&needs, |need| need.outdated(self.rules))?,
            _ => {}
        }
        let accesses = accesses(self.body, stmt);
        for access in &accesses {
            self.meet(&needs, |need| need.disturbed().or_else(|| need.hazard(access, self.rules)))?;
        }
        // What is known for the next time around a loop is less than what was known for this one.
        needs.retain(|need| need.at != self.at);
        needs.extend(accesses.into_iter().map(|access| Need::new(self.at, What::Access(access))));
        needs.extend(matches!(stmt, Stmt::Notify { .. }).then(|| Need::new(self.at, What::Notify)));
        Ok(needs)
    }

    /// This statement meets what comes later.
    fn meet(&self, needs: &Needs, why: impl Fn(&Need) -> Option<&'static str>) -> Result<(), Hazard> {
        Hazard::found(Some(self.at), needs, why)
    }
}

/// The statements as text, by number.
struct Lines {
    texts: Vec<String>,
}

impl Lines {
    fn new(code: &Block) -> Self {
        let mut lines = Self { texts: Vec::new() };
        lines.add(code, &mut String::new());
        lines
    }

    fn text(&self, at: usize) -> &str {
        self.texts.get(at).map_or("the end", String::as_str)
    }

    /// `op`: the last one of the program, and its place.
    fn add(&mut self, code: &Block, op: &mut String) {
        for stmt in code {
            if let Stmt::Op { text, place } = stmt {
                *op = format!(" of '{text}'{}{place}", if place.is_empty() { "" } else { ", " });
            }
            self.texts.push(name(stmt) + op);
            match stmt {
                Stmt::If { then, other, .. } => [then, other].into_iter().for_each(|block| self.add(block, op)),
                Stmt::For { body, .. } => self.add(body, op),
                _ => {}
            }
        }
    }
}

/// A statement in a few words.
fn name(stmt: &Stmt) -> String {
    let listed = |tiles: &[TileName]| tiles.iter().map(|tile| format!(", {}", tile.name)).collect::<String>();
    match stmt {
        Stmt::Read { name, from, .. } => format!("{name} = *({})", from.address().text),
        Stmt::Load { tile, from } => format!("TLOAD({}, {})", tile.name, from.name),
        Stmt::Store { to, tile, .. } => format!("TSTORE({}, {})", to.name, tile.name),
        Stmt::Compute { instruction, dst, operands, .. } => {
            let operand = |operand: &Operand| match operand {
                Operand::Tile(tile) | Operand::Scratch(tile) => format!(", {}", tile.name),
                Operand::Value(value) => format!(", {}", value.text),
            };
            format!("{instruction}({}{})", dst.name, operands.iter().map(operand).collect::<String>())
        }
        Stmt::Put { to, from, staging, .. } => format!("TPUT({}, {}{})", to.name, from.name, listed(staging)),
        Stmt::Get { to, from, staging } => format!("TGET({}, {}{})", to.name, from.name, listed(staging)),
        Stmt::Notify { cell, .. } => format!("TNOTIFY({})", cell.address().text),
        Stmt::Wait { cell, .. } => format!("TWAIT({})", cell.address().text),
        Stmt::Fence(fence) => format!("{fence:?}"),
        Stmt::Return => "return".into(),
        _ => "a statement".into(),
    }
}
