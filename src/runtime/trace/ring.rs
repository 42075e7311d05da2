//! What one core has done lately: written by the thread that is the core, read when it is at rest.

use std::sync::atomic::{AtomicU64, Ordering};

/// Events that a core keeps until they are written to the file; more than that, and the oldest ones are lost.
pub const CAPACITY: usize = 1 << 16;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// A launch has begun on the rank.
    LaunchBegun,
    /// It has ended.
    LaunchEnded,
    /// A task's code has begun. `a` is the block.
    TaskBegun,
    /// It has ended. `a` and `b` are the bytes that it has written at ranks and read from them.
    TaskEnded,
    /// A task leaves the core to others, because it waits.
    TaskStopped,
    /// It goes on.
    TaskResumed,
    /// A task has waited: from ticks `a`, for the cell at offset `b` of the windows.
    Waited,
    /// A task notifies the cell at offset `b` of `peer`.
    Notified,
}

const KINDS: [Kind; 8] = [
    Kind::LaunchBegun,
    Kind::LaunchEnded,
    Kind::TaskBegun,
    Kind::TaskEnded,
    Kind::TaskStopped,
    Kind::TaskResumed,
    Kind::Waited,
    Kind::Notified,
];

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, see [`super::clock::ticks`].
    pub ticks: u64,
    /// What.
    pub kind: Kind,
    /// Of [`Kind::Notified`], the rank.
    pub peer: u16,
    /// The executable, by number.
    pub image: u32,
    /// The launch, from 0.
    pub launch: u32,
    /// The op.
    pub site: u32,
    /// As the kind says.
    pub a: u64,
    /// As the kind says.
    pub b: u64,
}

/// An event in memory. Words are atomic because a core that is stuck in a function of the engine may go on while others
/// read.
type Words = [AtomicU64; 5];

/// The events of one core.
pub struct Ring {
    words: Box<[Words]>,
    /// Number of events so far.
    written: AtomicU64,
}

impl Ring {
    pub fn new() -> Self {
        Self { words: (0..CAPACITY).map(|_| Words::default()).collect(), written: AtomicU64::new(0) }
    }

    /// Adds an event. By one thread at a time.
    #[inline]
    pub fn push(&self, event: &Event) {
        let at = self.written.load(Ordering::Relaxed);
        let kind = event.kind as u64 | u64::from(event.peer) << 16 | u64::from(event.image) << 32;
        let site = u64::from(event.launch) | u64::from(event.site) << 32;
        for (word, value) in self.words[at as usize % CAPACITY].iter().zip([event.ticks, kind, site, event.a, event.b])
        {
            word.store(value, Ordering::Relaxed);
        }
        self.written.store(at + 1, Ordering::Release);
    }

    /// Gives every event from number `from` on to `each`; how many of them are lost, and the number of the next one.
    pub fn read(&self, from: u64, mut each: impl FnMut(Event)) -> (u64, u64) {
        let written = self.written.load(Ordering::Acquire);
        let first = from.max(written.saturating_sub(CAPACITY as u64));
        for at in first..written {
            let [ticks, kind, site, a, b] =
                self.words[at as usize % CAPACITY].each_ref().map(|w| w.load(Ordering::Relaxed));
            // A kind that is none is an event that is being overwritten.
            let Some(&known) = KINDS.get(usize::from(kind as u16)) else { continue };
            let (peer, image, launch, site) =
                ((kind >> 16) as u16, (kind >> 32) as u32, site as u32, (site >> 32) as u32);
            each(Event { ticks, kind: known, peer, image, launch, site, a, b });
        }
        (first - from, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Event {
        let kind = KINDS[number as usize % KINDS.len()];
        let small = number as u32;
        Event {
            ticks: number << 40 | 1,
            kind,
            peer: 300,
            image: small ^ 7,
            launch: !small,
            site: small << 1,
            a: !number,
            b: number,
        }
    }

    fn read(ring: &Ring, from: u64) -> (Vec<Event>, u64, u64) {
        let mut events = Vec::new();
        let (lost, next) = ring.read(from, |event| events.push(event));
        (events, lost, next)
    }

    #[test]
    fn events_come_back_as_they_were() {
        let ring = Ring::new();
        assert_eq!(KINDS.map(|kind| kind as u16), [0, 1, 2, 3, 4, 5, 6, 7]);
        (0..20).for_each(|number| ring.push(&event(number)));
        assert_eq!(read(&ring, 0), ((0..20).map(event).collect(), 0, 20));
        ring.push(&event(20));
        assert_eq!(read(&ring, 20), (vec![event(20)], 0, 21));
        assert_eq!(read(&ring, 21), (vec![], 0, 21));
    }

    #[test]
    fn the_oldest_events_are_lost_first() {
        let ring = Ring::new();
        let count = CAPACITY as u64 + 5;
        (0..count).for_each(|number| ring.push(&event(number)));
        let (events, lost, next) = read(&ring, 2);
        assert_eq!((events.len(), events[0], lost, next), (CAPACITY, event(5), 3, count));
    }
}
