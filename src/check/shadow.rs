//! Who has touched which bytes: the accesses that a later one may race with.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::clock::{Clock, Time};
use crate::ir::Op;
use crate::ir::effects::Access as Does;

/// One access of one task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// What is done.
    pub does: Does,
    /// When it is over.
    pub time: Time,
    /// When it was begun.
    pub issued: Time,
    /// Its task's last wait.
    pub wait: u32,
    /// It is on its way until the piece ends: what else the same task does there meanwhile is not ordered with it.
    pub flying: bool,
    /// The op.
    pub op: Op,
    /// The task, by number of the run.
    pub by: u32,
    /// The write before it at the same place that it comes after: when, and by whom.
    pub after: (Time, u32),
}

impl Access {
    /// Whoever has this clock comes after the access.
    fn before(&self, clock: &Clock, next: &Access) -> bool {
        clock.covers(self.time) && !(self.flying && self.time == next.time)
    }

    /// In no order they give no certain result.
    fn conflicts(&self, other: &Access) -> bool {
        use Does::*;
        let commute = matches!((self.does, other.does), (Read, Read | Await) | (Await, Read));
        let signal = |does| matches!(does, SignalSet | SignalAdd | Await);
        !(commute || signal(self.does) && signal(other.does))
    }

    /// Whoever races with `other`, which came before, races with this access too.
    fn stands_for(&self, other: &Access) -> bool {
        self.does == Does::Write || self.does == other.does && !other.flying
    }
}

/// The accesses to some bytes that count; those that later ones stand for are gone.
type Accesses = SmallVec<[Access; 2]>;

/// The bytes of one piece of memory.
#[derive(Debug, Default)]
pub struct Shadow {
    /// By first byte: the byte behind the last one, and the accesses.
    parts: BTreeMap<usize, (usize, Accesses)>,
}

/// Two accesses to the same bytes in no order.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// The one that came first in this run.
    pub first: Access,
    /// The other one.
    pub second: Access,
    /// The bytes.
    pub bytes: Range<usize>,
}

impl Shadow {
    /// Notes an access to some bytes by somebody with this clock; gives the races.
    pub fn touch(&mut self, bytes: Range<usize>, access: Access, clock: &Clock, races: &mut Vec<Race>) {
        if bytes.is_empty() {
            return;
        }
        if let Some((end, accesses)) = self.parts.get_mut(&bytes.start)
            && *end == bytes.end
        {
            note(accesses, access, clock, &bytes, races);
            return;
        }
        self.split(bytes.start);
        self.split(bytes.end);
        let mut at = bytes.start;
        let mut parts: SmallVec<[(Range<usize>, Accesses); 4]> = SmallVec::new();
        let keys: SmallVec<[usize; 16]> = self.parts.range(bytes.clone()).map(|(&start, _)| start).collect();
        for start in keys {
            let (end, mut accesses) = self.parts.remove(&start).expect("it was just there");
            if at < start {
                add(&mut parts, at..start, SmallVec::from_slice(&[access]));
            }
            note(&mut accesses, access, clock, &(start..end), races);
            add(&mut parts, start..end, accesses);
            at = end;
        }
        if at < bytes.end {
            add(&mut parts, at..bytes.end, SmallVec::from_slice(&[access]));
        }
        self.parts.extend(parts.into_iter().map(|(range, accesses)| (range.start, (range.end, accesses))));
    }

    /// The last write of a byte.
    pub fn last_write(&self, byte: usize) -> Option<Access> {
        self.at(byte).iter().rev().find(|access| access.does.is_write()).copied()
    }

    /// Somebody with this clock comes after a read that knew the write of this time at a byte.
    pub fn is_read(&self, byte: usize, write: Time, clock: &Clock) -> bool {
        let knew = |access: &Access| access.does == Does::Read && access.after.0 == write && clock.covers(access.time);
        self.at(byte).iter().any(knew)
    }

    fn at(&self, byte: usize) -> &[Access] {
        match self.parts.range(..=byte).next_back() {
            Some((_, (end, accesses))) if byte < *end => accesses,
            _ => &[],
        }
    }

    /// Makes a part begin at `at`, if one spans it.
    fn split(&mut self, at: usize) {
        let Some((_, part)) = self.parts.range_mut(..at).next_back() else { return };
        if part.0 > at {
            let behind = (part.0, part.1.clone());
            part.0 = at;
            self.parts.insert(at, behind);
        }
    }
}

fn add(parts: &mut SmallVec<[(Range<usize>, Accesses); 4]>, range: Range<usize>, accesses: Accesses) {
    match parts.last_mut() {
        Some((last, same)) if *same == accesses => last.end = range.end,
        _ => parts.push((range, accesses)),
    }
}

fn note(accesses: &mut Accesses, mut access: Access, clock: &Clock, bytes: &Range<usize>, races: &mut Vec<Race>) {
    for earlier in accesses.iter() {
        if earlier.before(clock, &access) {
            if earlier.does.is_write() {
                access.after = (earlier.time, earlier.by);
            }
        } else if earlier.conflicts(&access) {
            races.push(Race { first: *earlier, second: access, bytes: bytes.clone() });
        }
    }
    accesses.retain(|earlier| !(earlier.before(clock, &access) && access.stands_for(earlier)));
    accesses.push(access);
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use super::*;

    fn access(does: Does, lane: u32, piece: u32) -> Access {
        let time = Time { lane, piece };
        Access {
            does,
            time,
            issued: time,
            wait: 0,
            flying: false,
            op: Op::from_u32(0),
            by: lane,
            after: (Time::default(), 0),
        }
    }

    /// Touches with a clock that knows these pieces and the access itself.
    fn touch(shadow: &mut Shadow, bytes: Range<usize>, access: Access, known: &[(u32, u32)]) -> Vec<Race> {
        let mut clock = Clock::default();
        known.iter().for_each(|&(lane, piece)| clock.learn(Time { lane, piece }));
        clock.learn(access.time);
        let mut races = Vec::new();
        shadow.touch(bytes, access, &clock, &mut races);
        races
    }

    #[test]
    fn races_are_found_on_the_bytes_that_both_touch() {
        let mut shadow = Shadow::default();
        assert_eq!(touch(&mut shadow, 8..32, access(Does::Write, 0, 1), &[]), []);
        let races = touch(&mut shadow, 0..16, access(Does::Read, 1, 1), &[]);
        assert_eq!(races.iter().map(|race| race.bytes.clone()).collect::<Vec<_>>(), [8..16]);
        assert_eq!(touch(&mut shadow, 16..64, access(Does::Read, 1, 1), &[(0, 1)]), [], "ordered");
        assert_eq!(touch(&mut shadow, 0..64, access(Does::Write, 2, 1), &[(0, 1), (1, 1)]), []);
        let next = access(Does::Write, 3, 1);
        assert_eq!(touch(&mut shadow, 0..64, next, &[(0, 1), (1, 1), (2, 1)]), []);
        assert_eq!(shadow.parts.len(), 1, "what happened to all of it alike is one part");
        assert_eq!(shadow.last_write(63).map(|write| write.by), Some(3));
        assert_eq!(shadow.last_write(64), None);
    }

    #[test]
    fn signals_do_not_race_with_each_other() {
        let mut shadow = Shadow::default();
        touch(&mut shadow, 0..4, access(Does::Accumulate, 0, 1), &[]);
        let sums = touch(&mut shadow, 0..4, access(Does::Accumulate, 1, 1), &[]);
        assert_eq!(sums.len(), 1, "floats may round in either way");
        assert_eq!(touch(&mut shadow, 0..4, access(Does::Read, 2, 1), &[(1, 1)]).len(), 1, "the other addition");
        touch(&mut shadow, 8..12, access(Does::SignalAdd, 0, 1), &[]);
        assert_eq!(touch(&mut shadow, 8..12, access(Does::Await, 1, 1), &[]), []);
        assert_eq!(touch(&mut shadow, 8..12, access(Does::Write, 2, 1), &[]).len(), 2);
    }

    #[test]
    fn what_is_on_its_way_is_not_ordered_with_its_own_task() {
        let mut shadow = Shadow::default();
        let put = Access { flying: true, ..access(Does::Write, 0, 1) };
        touch(&mut shadow, 0..4, put, &[]);
        assert_eq!(touch(&mut shadow, 0..4, put, &[]).len(), 1, "a second one may overtake it");
        assert_eq!(touch(&mut shadow, 0..4, access(Does::Read, 0, 2), &[(0, 1)]), [], "it has landed");
    }
}
