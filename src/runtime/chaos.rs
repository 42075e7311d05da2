//! Chaos: ranks are held up at random places, so that their ops meet in orders that an undisturbed run hardly ever shows.
//!
//! What is drawn depends on the seed, the rank, the launch and how often the rank has drawn in it; when anything happens
//! depends on the machine. Time that ranks are held up is limited, so that waits do not run into their time-out.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use crate::environment::CHAOS;
use crate::error::{Error, Result};
use crate::random::mix;

/// Longest time that a rank is held up in a launch.
const LONGEST: Duration = Duration::from_millis(100);

/// All ranks together are held up for at most this part of the time-out.
const PART_OF_TIMEOUT: u32 = 4;

/// How many of 64 stops are sleeps; each launch of a rank draws one of them.
const MOODS: [u64; 4] = [0, 4, 12, 32];

/// How many of 64 stops, behind the sleeps, yield.
const YIELDS: u64 = 16;

/// The seed that a world has: its option, else what the environment says; 0 is none.
pub(super) fn seed(option: u64) -> Result<u64> {
    if option == 0 { from_environment(CHAOS.read().as_deref()) } else { Ok(option) }
}

fn from_environment(value: Option<&OsStr>) -> Result<u64> {
    let Some(value) = value else { return Ok(0) };
    let seed = value.to_str().and_then(|text| text.trim().parse().ok());
    seed.ok_or_else(|| Error::invalid(format!("{} is {value:?}, not a seed: a whole number, 0 for none", CHAOS.name)))
}

/// What draws are for. Each kind is a sequence of its own, since how often some happen depends on timing.
#[derive(Clone, Copy)]
enum Kind {
    /// Stops at places of the program.
    Stop,
    /// Stops before a peer that sleeps is woken.
    Wake,
    /// Which of several comes first.
    Order,
}

/// The chaos of a rank.
pub(super) struct Chaos {
    seed: u64,
    /// Longest time to hold the rank up in a launch.
    longest: Duration,
    /// Drawn for the launch.
    launch: AtomicU64,
    /// Number of draws in this launch, by kind.
    drawn: [AtomicU64; 3],
    /// Nanoseconds for which the rank was held up in this launch.
    slept: AtomicU64,
}

impl Chaos {
    /// For a rank of `nranks` that wait no longer than `timeout`; none without a seed.
    pub(super) fn new(seed: u64, rank: u32, nranks: u32, timeout: Duration) -> Option<Self> {
        (seed != 0).then(|| Self {
            seed: mix(mix(seed) ^ u64::from(rank)),
            longest: (timeout / PART_OF_TIMEOUT / nranks).min(LONGEST),
            launch: AtomicU64::new(0),
            drawn: Default::default(),
            slept: AtomicU64::new(0),
        })
    }

    /// A launch of an executable begins: the rank comes late.
    pub(super) fn begin(&self, executable: u32, launch: u64) {
        let drawn = mix(mix(self.seed ^ u64::from(executable)) ^ launch);
        self.launch.store(drawn, Ordering::Relaxed);
        self.drawn.iter().for_each(|drawn| drawn.store(0, Ordering::Relaxed));
        self.slept.store(0, Ordering::Relaxed);
        let late = self.draw(Kind::Stop);
        if late & 1 == 1 {
            self.sleep(Duration::from_micros((late >> 8) % 400));
        }
    }

    /// Holds the rank up, or not, at a place of the program.
    pub(super) fn stop(&self) {
        self.hold_up(Kind::Stop);
    }

    /// The same before a sleeping peer is woken.
    pub(super) fn stop_before_waking(&self) {
        self.hold_up(Kind::Wake);
    }

    /// One of `count`; 0 if there is none.
    pub(super) fn choose(&self, count: usize) -> usize {
        if count > 1 { (self.draw(Kind::Order) % count as u64) as usize } else { 0 }
    }

    fn draw(&self, kind: Kind) -> u64 {
        let count = self.drawn[kind as usize].fetch_add(1, Ordering::Relaxed);
        mix(self.launch.load(Ordering::Relaxed) ^ mix((kind as u64) << 48 | count))
    }

    fn hold_up(&self, kind: Kind) {
        let draw = self.draw(kind);
        let sleeps = MOODS[(self.launch.load(Ordering::Relaxed) >> 62) as usize];
        match draw % 64 {
            stop if stop >= sleeps + YIELDS => {}
            stop if stop >= sleeps => yield_now(),
            0 => self.sleep(Duration::from_micros(200 + (draw >> 8) % 800)),
            _ => self.sleep(Duration::from_micros(10 + (draw >> 8) % 60)),
        }
    }

    fn sleep(&self, time: Duration) {
        let begin = Instant::now();
        if Duration::from_nanos(self.slept.load(Ordering::Relaxed)) + time <= self.longest {
            sleep(time);
            self.slept.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn order(seed: u64, rank: u32, launch: u64) -> Vec<usize> {
        let chaos = Chaos::new(seed, rank, 2, Duration::ZERO).unwrap();
        chaos.begin(0, launch);
        (0..20).map(|_| chaos.choose(1000)).collect()
    }

    #[test]
    fn draws_depend_on_seed_rank_and_launch_only() {
        assert_eq!(order(1, 0, 0), order(1, 0, 0));
        let orders = [order(1, 0, 0), order(2, 0, 0), order(1, 1, 0), order(1, 0, 1)];
        for (i, one) in orders.iter().enumerate() {
            assert!(orders[..i].iter().all(|other| other != one), "{i}");
        }
        assert!(Chaos::new(0, 0, 2, LONG).is_none());
    }

    #[test]
    fn stops_are_part_of_no_order() {
        let chaos = Chaos::new(7, 0, 2, Duration::ZERO).unwrap();
        chaos.begin(0, 3);
        let choices = (0..20).map(|_| {
            chaos.stop();
            chaos.stop_before_waking();
            chaos.choose(1000)
        });
        assert_eq!(choices.collect::<Vec<_>>(), order(7, 0, 3));
        assert_eq!(chaos.choose(0), 0);
    }

    /// Every sleep that begins fits what is left.
    #[test]
    fn a_rank_is_held_up_for_a_part_of_the_time_out() {
        let limit = |nranks, timeout| Chaos::new(1, 0, nranks, timeout).unwrap().longest;
        assert_eq!(limit(2, LONG), LONGEST);
        assert_eq!(limit(4, Duration::from_millis(320)), Duration::from_millis(20));
        assert_eq!(limit(1, Duration::MAX), LONGEST);
        let chaos = Chaos::new(1, 0, 2, Duration::from_millis(8)).unwrap();
        for launch in 0..20 {
            chaos.begin(0, launch);
            let mut before = Duration::ZERO;
            for _ in 0..200 {
                chaos.stop();
                let slept = Duration::from_nanos(chaos.slept.load(Ordering::Relaxed));
                assert!(slept == before || before < chaos.longest, "{slept:?} after {before:?}");
                before = slept;
            }
        }
    }

    #[test]
    fn the_seed_is_a_number() {
        let seed = |text: &str| from_environment(Some(OsStr::new(text)));
        assert_eq!(from_environment(None), Ok(0));
        assert_eq!(seed("0"), Ok(0));
        assert_eq!(seed(" 18446744073709551615 "), Ok(u64::MAX));
        for bad in ["x", "-1", "1.5", "0x10", "18446744073709551616"] {
            let error = seed(bad).unwrap_err();
            assert_eq!(error.message, format!("PLD_CHAOS is {bad:?}, not a seed: a whole number, 0 for none"));
        }
    }
}
