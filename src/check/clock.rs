//! Vector clocks: what has certainly happened before.
//!
//! Every task that runs has a lane of its own, and counts there the pieces between its releases. A lane is used again by
//! a task that begins after all that its former user did.

/// For each lane, how far one knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(Vec<u32>);

impl Clock {
    /// The last piece of a lane that came before; 0 for none.
    pub fn at(&self, lane: u32) -> u32 {
        self.0.get(lane as usize).copied().unwrap_or(0)
    }

    /// The piece of a lane came before.
    pub fn covers(&self, time: Time) -> bool {
        self.at(time.lane) >= time.piece
    }

    /// Also knows a piece of a lane.
    pub fn learn(&mut self, time: Time) {
        let lane = time.lane as usize;
        if self.0.len() <= lane {
            self.0.resize(lane + 1, 0);
        }
        self.0[lane] = self.0[lane].max(time.piece);
    }

    /// Also knows what another clock knows.
    pub fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}

/// A piece of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// The lane.
    pub lane: u32,
    /// The piece, from 1.
    pub piece: u32,
}

/// The lanes of all ranks.
#[derive(Debug, Default)]
pub struct Lanes {
    /// Last piece that was used, and whether it is in use.
    used: Vec<(u32, bool)>,
    /// Lanes by rank.
    ranks: Vec<Vec<u32>>,
}

impl Lanes {
    /// Lanes for this many ranks.
    pub fn new(nranks: usize) -> Self {
        Self { used: Vec::new(), ranks: vec![Vec::new(); nranks] }
    }

    /// A lane for somebody who begins with what `clock` knows.
    pub fn begin(&mut self, rank: usize, clock: &Clock) -> Time {
        let free = |&&lane: &&u32| {
            let (last, busy) = self.used[lane as usize];
            !busy && clock.covers(Time { lane, piece: last })
        };
        let lane = self.ranks[rank].iter().find(free).copied().unwrap_or_else(|| {
            let lane = self.used.len() as u32;
            self.used.push((0, false));
            self.ranks[rank].push(lane);
            lane
        });
        let used = &mut self.used[lane as usize];
        *used = (used.0 + 1, true);
        Time { lane, piece: used.0 }
    }

    /// The next piece of a lane.
    pub fn advance(&mut self, time: Time) -> Time {
        let used = &mut self.used[time.lane as usize];
        used.0 += 1;
        Time { lane: time.lane, piece: used.0 }
    }

    /// The user of a lane has ended.
    pub fn end(&mut self, time: Time) {
        self.used[time.lane as usize].1 = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_used_again_by_who_comes_after() {
        let mut lanes = Lanes::new(2);
        let mut clock = Clock::default();
        let first = lanes.begin(0, &clock);
        let next = lanes.advance(first);
        assert_ne!(lanes.begin(0, &clock).lane, first.lane, "it is in use");
        lanes.end(next);
        clock.learn(first);
        assert_ne!(lanes.begin(0, &clock).lane, first.lane, "its last piece is not known");
        clock.learn(next);
        assert_ne!(lanes.begin(1, &clock).lane, first.lane, "it is another rank's");
        let again = lanes.begin(0, &clock);
        assert_eq!(again, Time { lane: first.lane, piece: 3 });
        assert!(!clock.covers(again));
    }
}
