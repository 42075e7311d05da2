//! A row of the table: what is measured, by whom, and what is aimed for.

use std::fmt;

use crate::rank::Bench;

/// Measures a row on one rank, taking samples of [`VALUE`] and of limits.
pub type Measure = fn(&Bench) -> Result<(), String>;

/// Series of the value of the row itself.
pub const VALUE: &str = "value";
/// Series whose names begin so are limits of the row; the best of them counts.
pub const LIMIT: &str = "limit";

/// Unit of a row's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    GigabytesPerSecond,
    Megabytes,
    Percent,
}

/// What a row's value should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Nothing in particular: the row is for information.
    None,
    /// At most (for bandwidths: at least) this much.
    Absolute(f64),
    /// At most (at least) this many times the limit.
    TimesLimit(f64),
    /// At most this much more than the limit.
    OverLimit(f64),
    /// Better than every peer.
    AheadOfPeers,
    /// This many times better than every peer.
    TimesAheadOfPeers(f64),
    /// At most this many times the limit, and better than every peer.
    TimesLimitAheadOfPeers(f64),
}

/// A row of the table.
pub struct Row {
    /// `group/measure`.
    pub name: &'static str,
    pub unit: Unit,
    pub measure: Measure,
    /// Number of processes that measure it.
    pub ranks: u32,
    /// What of the peers' programs it is compared with: the better of these series.
    pub peer_series: &'static [&'static str],
    pub target: Target,
}

impl Row {
    /// A row that one process measures, without peers or target.
    pub fn new(name: &'static str, unit: Unit, measure: Measure) -> Self {
        Self { name, unit, measure, ranks: 1, peer_series: &[], target: Target::None }
    }

    /// Measured by `ranks` processes.
    pub fn ranks(self, ranks: u32) -> Self {
        Self { ranks, ..self }
    }

    /// Compared with these series of the peers' programs, run with as many ranks.
    pub fn peers(self, series: &'static [&'static str]) -> Self {
        Self { peer_series: series, ..self }
    }

    /// Aims for `target`.
    pub fn target(self, target: Target) -> Self {
        Self { target, ..self }
    }
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::GigabytesPerSecond => "GB/s",
            Unit::Megabytes => "MB",
            Unit::Percent => "%",
        }
    }

    /// `a` is better than `b`.
    pub fn better(self, a: f64, b: f64) -> bool {
        match self {
            Unit::GigabytesPerSecond => a > b,
            _ => a < b,
        }
    }

    /// What is `factor` times as good as `value`.
    fn improved(self, value: f64, factor: f64) -> f64 {
        if self.better(1.0, 0.0) { value * factor } else { value / factor }
    }

    /// The best of some values.
    pub fn best(self, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        values.into_iter().reduce(|a, b| if self.better(b, a) { b } else { a })
    }
}

impl Target {
    /// `value` reaches the target; `None` if what it is compared with is not known.
    pub fn met(self, unit: Unit, value: f64, limit: Option<f64>, best_peer: Option<f64>) -> Option<bool> {
        let reaches = |bound: f64| !unit.better(bound, value);
        let ahead = || best_peer.map(|peer| unit.better(value, peer));
        match self {
            Target::None => None,
            Target::Absolute(bound) => Some(reaches(bound)),
            Target::TimesLimit(factor) => limit.map(|limit| reaches(limit * factor)),
            Target::OverLimit(more) => limit.map(|limit| reaches(limit + more)),
            Target::AheadOfPeers => ahead(),
            Target::TimesAheadOfPeers(factor) => best_peer.map(|peer| reaches(unit.improved(peer, factor))),
            Target::TimesLimitAheadOfPeers(factor) => match (limit.map(|limit| reaches(limit * factor)), ahead()) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
        }
    }

    /// What `value` is divided by to see how it does: the limit, or the best peer if that is what counts.
    pub fn reference(self, limit: Option<f64>, best_peer: Option<f64>) -> Option<f64> {
        match self {
            Target::AheadOfPeers | Target::TimesAheadOfPeers(_) => best_peer,
            Target::Absolute(_) => None,
            _ => limit,
        }
    }

    /// In words, with the unit that values of the row have.
    pub fn text(self, unit: Unit) -> String {
        let bound = if unit.better(1.0, 0.0) { ">=" } else { "<=" };
        match self {
            Target::None => String::new(),
            Target::Absolute(value) => format!("{bound} {value} {unit}"),
            Target::TimesLimit(factor) => format!("{bound} {factor} x limit"),
            Target::OverLimit(more) => format!("{bound} limit + {more} {unit}"),
            Target::AheadOfPeers => "ahead of peers".to_owned(),
            Target::TimesAheadOfPeers(factor) => format!("ahead of peers by {factor} x"),
            Target::TimesLimitAheadOfPeers(factor) => format!("{bound} {factor} x limit, ahead of peers"),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bandwidths_are_judged_in_their_own_direction() {
        let (us, gb) = (Unit::Microseconds, Unit::GigabytesPerSecond);
        assert_eq!(Target::TimesLimit(1.25).met(us, 0.125, Some(0.1), None), Some(true));
        assert_eq!(Target::TimesLimit(1.25).met(us, 0.126, Some(0.1), None), Some(false));
        assert_eq!(Target::TimesLimit(0.5).met(gb, 10.0, Some(20.0), None), Some(true));
        assert_eq!(Target::TimesLimit(0.5).met(gb, 9.9, Some(20.0), None), Some(false));
        assert_eq!(us.best([3.0, 1.0, 2.0]), Some(1.0));
        assert_eq!(gb.best([3.0, 1.0, 4.0]), Some(4.0));
    }

    #[test]
    fn what_is_not_measured_is_not_judged() {
        let us = Unit::Microseconds;
        assert_eq!(Target::TimesLimit(2.0).met(us, 1.0, None, Some(5.0)), None);
        assert_eq!(Target::AheadOfPeers.met(us, 1.0, Some(5.0), None), None);
        assert_eq!(Target::TimesLimitAheadOfPeers(2.0).met(us, 1.0, Some(1.0), None), None);
        assert_eq!(Target::TimesLimitAheadOfPeers(2.0).met(us, 9.0, Some(1.0), None), Some(false));
        assert_eq!(Target::TimesLimitAheadOfPeers(2.0).met(us, 1.0, Some(1.0), Some(0.9)), Some(false));
        assert_eq!(Target::TimesLimitAheadOfPeers(2.0).met(us, 1.0, Some(1.0), Some(1.1)), Some(true));
        assert_eq!(Target::None.met(us, 1.0, Some(1.0), Some(1.0)), None);
        assert_eq!(Target::TimesAheadOfPeers(1.5).met(us, 1.0, Some(1.0), None), None);
    }

    #[test]
    fn several_times_better_than_peers() {
        let (us, gb) = (Unit::Microseconds, Unit::GigabytesPerSecond);
        assert_eq!(Target::TimesAheadOfPeers(1.5).met(us, 2.0, None, Some(3.0)), Some(true));
        assert_eq!(Target::TimesAheadOfPeers(1.5).met(us, 2.1, None, Some(3.0)), Some(false));
        assert_eq!(Target::TimesAheadOfPeers(1.5).met(gb, 3.0, None, Some(2.0)), Some(true));
        assert_eq!(Target::TimesAheadOfPeers(1.5).met(gb, 2.9, None, Some(2.0)), Some(false));
        assert_eq!(Target::TimesAheadOfPeers(1.5).reference(None, Some(3.0)), Some(3.0));
        assert_eq!(Target::TimesAheadOfPeers(1.5).text(us), "ahead of peers by 1.5 x");
    }

    #[test]
    fn absolute_and_added_bounds() {
        let ns = Unit::Nanoseconds;
        assert_eq!(Target::Absolute(100.0).met(ns, 100.0, None, None), Some(true));
        assert_eq!(Target::Absolute(100.0).met(ns, 101.0, None, None), Some(false));
        assert_eq!(Target::OverLimit(0.2).met(Unit::Microseconds, 0.3, Some(0.05), None), Some(false));
        assert_eq!(Target::OverLimit(0.2).text(Unit::Microseconds), "<= limit + 0.2 us");
        assert_eq!(Target::TimesLimit(0.95).text(Unit::GigabytesPerSecond), ">= 0.95 x limit");
    }
}
