//! Puts fences into kernels: as few as are needed, as far out of loops as they help.
//!
//! A fence goes right before the statement that needs it, found by walking forwards and keeping of each access how far others
//! are behind it. What turns out to be needless, because another fence came to stand in a better place, goes again. That
//! nothing is missing is checked by [`super::check_fences`], which looks from the other side.
//!
//! The discipline:
//! - A unit waits for another one, or for itself, where both touch the same bytes and one of them writes. Before TPUT and
//!   TGET, which use two units, all do.
//! - All units wait right before each TNOTIFY. What it publishes, the units have written before a barrier, a `dcci`, a
//!   barrier, and a `dsb`. The same comes before a kernel ends that has written into another rank's memory.
//! - Before scalars are read, the cache is invalidated: behind what another unit has written, and of windows behind a wait.

use std::collections::BTreeSet;

use super::effects::{Access, Rules, Units, accesses};
use super::kernel::{Block, Body, Fence, Pipe, Stmt};

/// Puts in all fences that a body without any needs.
pub fn insert(body: &mut Body, rules: &Rules) {
    while let Some(lack) = first_lack(body, rules) {
        let mut places = lack.loops.iter().copied().chain([lack.at]);
        // If nothing helps, the check says what is missing.
        if !places.any(|place| helps(body, rules, &lack, place)) {
            break;
        }
    }
    for at in places(body).into_iter().rev() {
        let fence = take_out(&mut body.code, at);
        if first_lack(body, rules).is_some() {
            put_in(&mut body.code, at, &[fence]);
        }
    }
}

/// Puts in what is lacking at a place, if that is of any use.
fn helps(body: &mut Body, rules: &Rules, lack: &Lack, place: usize) -> bool {
    let count = lack.fences.len();
    put_in(&mut body.code, place, &lack.fences);
    let helps = first_lack(body, rules).is_none_or(|next| (next.at, &next.fences) != (lack.at + count, &lack.fences));
    if !helps {
        (0..count).for_each(|_| _ = take_out(&mut body.code, place));
    }
    helps
}

/// The numbers of the fences of a body.
pub fn places(body: &Body) -> Vec<usize> {
    fn add(block: &Block, number: &mut usize, places: &mut Vec<usize>) {
        for stmt in block {
            places.extend(matches!(stmt, Stmt::Fence(_)).then_some(*number));
            *number += 1;
            for inner in stmt.blocks() {
                add(inner, number, places);
            }
        }
    }
    let mut places = Vec::new();
    add(&body.code, &mut 0, &mut places);
    places
}

/// Takes out the fence with this number.
pub fn take_out(code: &mut Block, at: usize) -> Fence {
    edit(code, at, |block, index| match block.remove(index) {
        Stmt::Fence(fence) => fence,
        stmt => unreachable!("{stmt:?} is no fence"),
    })
}

/// The first statement that needs fences. Statements are numbered in the order in which they stand; the end has a number too.
struct Lack {
    at: usize,
    /// The loops around it, the outermost first.
    loops: Vec<usize>,
    fences: Vec<Fence>,
}

fn first_lack(body: &Body, rules: &Rules) -> Option<Lack> {
    let mut walk = Walk { body, rules, at: 0, loops: Vec::new(), is_silent: false };
    let end = walk.block(&body.code, Some(Past::default()));
    end.and_then(|past| past.map_or(Ok(()), |past| walk.needs(past.lacks_at_end()))).err()
}

/// How far everybody is behind an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Progress {
    /// The units whose next instructions come after it.
    ahead: Units,
    step: Step,
}

/// The way into memory, of what has been written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Somebody has written it.
    Done,
    /// The cache of scalars does not hold it.
    Cleaned,
    /// All units have waited since.
    Settled,
    /// Memory has it.
    Observable,
}

/// What may have happened before a statement.
#[derive(Clone, Default, PartialEq)]
struct Past {
    /// On different ways here, the same access may have come differently far.
    accesses: BTreeSet<(Access, Progress)>,
    /// There was a wait, and the cache may hold what is older.
    is_stale: bool,
    /// All units have waited since anything happened.
    is_idle: bool,
}

impl Past {
    fn join(mut self, other: Past) -> Past {
        self.accesses.extend(other.accesses);
        self.is_stale |= other.is_stale;
        self.is_idle &= other.is_idle;
        self
    }

    fn add(&mut self, stmt: &Stmt, next: &[Access]) {
        for access in next {
            self.accesses.retain(|(earlier, _)| earlier != access);
            self.accesses.insert((*access, Progress { ahead: access.ahead, step: Step::Done }));
        }
        self.is_stale |= matches!(stmt, Stmt::Wait { .. });
        self.is_idle &= next.is_empty() && !matches!(stmt, Stmt::Notify { .. });
    }

    fn pass(&mut self, fence: &Fence) {
        let accesses = std::mem::take(&mut self.accesses);
        self.accesses =
            accesses.into_iter().map(|(access, progress)| (access, progress.behind(&access, fence))).collect();
        self.is_stale &= *fence != Fence::InvalidateCache;
        self.is_idle = *fence == Fence::Barrier(Pipe::All);
    }

    fn lacks(&self, rules: &Rules, next: &[Access]) -> Vec<Fence> {
        let is_transfer = next.iter().any(|access| access.behind != Units::of(access.unit));
        let mut orders: Vec<Fence> = Vec::new();
        let mut invalidates = false;
        for later in next {
            invalidates |= self.is_stale && later.is_cached() && rules.is_shared(later.place);
            for (earlier, progress) in self.accesses.iter().filter(|(earlier, _)| earlier.conflicts(later)) {
                let keeps_order = earlier.unit == later.unit && rules.keeps_order(later.unit);
                let order = match (earlier.unit, later.unit) {
                    _ if is_transfer => Fence::Barrier(Pipe::All),
                    (from, to) if from == to => Fence::Barrier(to),
                    (from, to) => Fence::Order { from, to },
                };
                if !keeps_order && !progress.ahead.meet(later.behind) && !orders.contains(&order) {
                    orders.push(order);
                }
                invalidates |= later.is_cached() && progress.step < Step::Cleaned;
            }
        }
        orders.into_iter().chain(invalidates.then_some(Fence::InvalidateCache)).collect()
    }

    fn lacks_at_notify(&self, rules: &Rules) -> Vec<Fence> {
        let is_published = |access: &Access| rules.is_shared(access.place);
        if self.hides(is_published) { publication() } else { barrier_if(!self.is_idle) }
    }

    fn lacks_at_end(&self) -> Vec<Fence> {
        let is_busy = |(access, progress): &(Access, Progress)| access.unit != Pipe::S && progress.ahead != Units::ALL;
        if self.hides(|access| access.remote) { publication() } else { barrier_if(self.accesses.iter().any(is_busy)) }
    }

    /// Something has been written that memory may not have yet.
    fn hides(&self, is_meant: impl Fn(&Access) -> bool) -> bool {
        let is_hidden = |(access, progress): &(Access, Progress)| {
            access.is_write() && is_meant(access) && progress.step < Step::Observable
        };
        self.accesses.iter().any(is_hidden)
    }
}

impl Progress {
    /// How far it is behind a fence.
    fn behind(self, access: &Access, fence: &Fence) -> Self {
        let is_before = |unit: Pipe| access.unit == unit || self.ahead.meet(Units::of(unit));
        let ahead = |units: Units| Self { ahead: self.ahead.with(units), ..self };
        match *fence {
            Fence::Barrier(Pipe::All) if self.step == Step::Cleaned => Self { ahead: Units::ALL, step: Step::Settled },
            Fence::Barrier(Pipe::All) => ahead(Units::ALL),
            Fence::Barrier(unit) if is_before(unit) => ahead(Units::of(unit)),
            // Scalars issue for all.
            Fence::Order { from, to: Pipe::S } if is_before(from) => ahead(Units::ALL),
            Fence::Order { from, to } if is_before(from) => ahead(Units::of(to)),
            Fence::InvalidateCache if is_before(Pipe::S) => Self { step: self.step.max(Step::Cleaned), ..self },
            Fence::Drain if self.step == Step::Settled => Self { step: Step::Observable, ..self },
            Fence::Barrier(_) | Fence::Order { .. } | Fence::InvalidateCache | Fence::Drain => self,
        }
    }
}

fn barrier_if(is_needed: bool) -> Vec<Fence> {
    is_needed.then_some(Fence::Barrier(Pipe::All)).into_iter().collect()
}

/// Puts into memory what anybody has written.
fn publication() -> Vec<Fence> {
    vec![Fence::Barrier(Pipe::All), Fence::InvalidateCache, Fence::Barrier(Pipe::All), Fence::Drain]
}

/// Walks through a kernel, up to the first lack.
struct Walk<'k> {
    body: &'k Body,
    rules: &'k Rules<'k>,
    at: usize,
    loops: Vec<usize>,
    /// In a loop of which not all is known yet.
    is_silent: bool,
}

impl Walk<'_> {
    fn needs(&self, fences: Vec<Fence>) -> Result<(), Lack> {
        if fences.is_empty() || self.is_silent {
            return Ok(());
        }
        Err(Lack { at: self.at, loops: self.loops.clone(), fences })
    }

    /// What may have happened behind a block; nothing if its end is never reached.
    fn block(&mut self, block: &Block, mut past: Option<Past>) -> Result<Option<Past>, Lack> {
        for stmt in block {
            past = self.stmt(stmt, past)?;
        }
        Ok(past)
    }

    fn stmt(&mut self, stmt: &Stmt, past: Option<Past>) -> Result<Option<Past>, Lack> {
        let at = self.at;
        match stmt {
            Stmt::If { then, other, .. } => {
                self.at += 1;
                let then = self.block(then, past.clone())?;
                let other = self.block(other, past)?;
                return Ok(join(then, other));
            }
            Stmt::For { body, .. } => {
                self.loops.push(at);
                let mut before = past;
                let is_silent = std::mem::replace(&mut self.is_silent, true);
                loop {
                    self.at = at + 1;
                    let after = self.block(body, before.clone())?;
                    let again = join(before.clone(), after);
                    if again == before {
                        break;
                    }
                    before = again;
                }
                self.is_silent = is_silent;
                if !is_silent {
                    self.at = at + 1;
                    self.block(body, before.clone())?;
                }
                self.loops.pop();
                return Ok(before);
            }
            _ => {}
        }
        let Some(mut past) = past else {
            self.at += 1;
            return Ok(None);
        };
        let next = accesses(self.body, stmt);
        self.needs(past.lacks(self.rules, &next))?;
        match stmt {
            Stmt::Notify { .. } => self.needs(past.lacks_at_notify(self.rules))?,
            Stmt::Return => self.needs(past.lacks_at_end())?,
            _ => {}
        }
        self.at += 1;
        match stmt {
            Stmt::Return | Stmt::Fault { .. } => return Ok(None),
            Stmt::Fence(fence) => past.pass(fence),
            _ => past.add(stmt, &next),
        }
        Ok(Some(past))
    }
}

fn join(one: Option<Past>, other: Option<Past>) -> Option<Past> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.join(other)),
        (one, other) => one.or(other),
    }
}

/// Puts fences before the statement with this number.
fn put_in(code: &mut Block, at: usize, fences: &[Fence]) {
    edit(code, at, |block, index| _ = block.splice(index..index, fences.iter().copied().map(Stmt::Fence)));
}

/// Shows the block in which the statement with this number stands, and its place there.
fn edit<R>(block: &mut Block, at: usize, change: impl FnOnce(&mut Block, usize) -> R) -> R {
    let mut number = 0;
    for index in 0..block.len() {
        if number == at {
            return change(block, index);
        }
        number += 1;
        for inner in block[index].blocks_mut() {
            let count = size(inner);
            if at < number + count {
                return edit(inner, at - number, change);
            }
            number += count;
        }
    }
    let end = block.len();
    change(block, end)
}

/// How many numbers the statements of a block have.
fn size(block: &Block) -> usize {
    block.iter().map(|stmt| 1 + stmt.blocks().into_iter().map(size).sum::<usize>()).sum()
}
