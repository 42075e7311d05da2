//! A row of the table: what is measured, by whom, and what is aimed for.

use std::fmt;

use crate::link::Link;
use crate::rank::Bench;

/// Measures a row on one rank, taking samples of [`VALUE`] and of limits.
pub type Measure = Box<dyn Fn(&Bench) -> Result<(), String>>;

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
    /// At most (for bandwidths: at least) this much.
    Absolute(f64),
    /// At most (at least) this many times the limit.
    TimesLimit(f64),
    /// At most this much more than the limit.
    OverLimit(f64),
    /// Better than every peer.
    AheadOfPeers,
    /// At most (at least) this many times the best peer.
    TimesBestPeer(f64),
}

/// A row of the table.
pub struct Row {
    /// `group/measure`.
    pub name: String,
    pub unit: Unit,
    pub measure: Measure,
    /// Number of processes that measure it.
    pub ranks: u32,
    /// What is between them.
    pub link: Link,
    /// What of the peers' programs it is compared with: the better of these series.
    pub peer_series: Vec<String>,
    /// All of them are to be met. Without any the row is for information.
    pub targets: Vec<Target>,
}

impl Row {
    /// A row that one process measures, without peers or targets.
    pub fn new(name: impl Into<String>, unit: Unit, measure: impl Fn(&Bench) -> Result<(), String> + 'static) -> Self {
        let measure = Box::new(measure);
        Self {
            name: name.into(),
            unit,
            measure,
            ranks: 1,
            link: Link::Windows,
            peer_series: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Measured by `ranks` processes.
    pub fn ranks(self, ranks: u32) -> Self {
        Self { ranks, ..self }
    }

    /// Whose ranks reach each other over `link`.
    pub fn over(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// Compared with this series of the peers' programs, run with as many ranks over the same link.
    pub fn peer(mut self, series: impl Into<String>) -> Self {
        self.peer_series.push(series.into());
        self
    }

    /// Aims for `target`, besides others.
    pub fn target(mut self, target: Target) -> Self {
        self.targets.push(target);
        self
    }

    /// `value` reaches all targets; `None` if there are none, or if what it is compared with is not known.
    pub fn met(&self, value: f64, limit: Option<f64>, best_peer: Option<f64>) -> Option<bool> {
        let met = self.targets.iter().map(|target| target.met(self.unit, value, limit, best_peer));
        met.reduce(|a, b| if a == Some(false) || b == Some(false) { Some(false) } else { a.and(b) })?
    }

    /// What a value is divided by to see how it does: what the first target compares it with; the limit without targets.
    pub fn reference(&self, limit: Option<f64>, best_peer: Option<f64>) -> Option<f64> {
        self.targets.first().map_or(limit, |target| target.reference(limit, best_peer))
    }

    /// All targets in words.
    pub fn target_text(&self) -> String {
        let texts: Vec<String> = self.targets.iter().map(|target| target.text(self.unit)).collect();
        texts.join(", ")
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

    /// The best of some values.
    pub fn best(self, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        values.into_iter().reduce(|a, b| if self.better(b, a) { b } else { a })
    }
}

impl Target {
    /// `value` reaches the target; `None` if what it is compared with is not known.
    fn met(self, unit: Unit, value: f64, limit: Option<f64>, best_peer: Option<f64>) -> Option<bool> {
        let reaches = |bound: f64| !unit.better(bound, value);
        match self {
            Target::Absolute(bound) => Some(reaches(bound)),
            Target::TimesLimit(factor) => limit.map(|limit| reaches(limit * factor)),
            Target::OverLimit(more) => limit.map(|limit| reaches(limit + more)),
            Target::AheadOfPeers => best_peer.map(|peer| unit.better(value, peer)),
            Target::TimesBestPeer(factor) => best_peer.map(|peer| reaches(peer * factor)),
        }
    }

    /// What it compares a value with.
    fn reference(self, limit: Option<f64>, best_peer: Option<f64>) -> Option<f64> {
        match self {
            Target::Absolute(_) => None,
            Target::TimesLimit(_) | Target::OverLimit(_) => limit,
            Target::AheadOfPeers | Target::TimesBestPeer(_) => best_peer,
        }
    }

    /// In words, with the unit that values of the row have.
    fn text(self, unit: Unit) -> String {
        let bound = if unit.better(1.0, 0.0) { ">=" } else { "<=" };
        match self {
            Target::Absolute(value) => format!("{bound} {value} {unit}"),
            Target::TimesLimit(factor) => format!("{bound} {factor} x limit"),
            Target::OverLimit(more) => format!("{bound} limit + {more} {unit}"),
            Target::AheadOfPeers => "ahead of peers".to_owned(),
            Target::TimesBestPeer(factor) => format!("{bound} {} x best peer", (factor * 1e3).round() / 1e3),
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

    fn row(unit: Unit, targets: &[Target]) -> Row {
        let row = Row::new("group/measure", unit, |_| Ok(()));
        targets.iter().fold(row, |row, &target| row.target(target))
    }

    #[test]
    fn times_and_bandwidths_are_judged_in_their_own_direction() {
        let us = row(Unit::Microseconds, &[Target::TimesLimit(1.25)]);
        assert_eq!(us.met(0.125, Some(0.1), None), Some(true));
        assert_eq!(us.met(0.126, Some(0.1), None), Some(false));
        let gb = row(Unit::GigabytesPerSecond, &[Target::TimesLimit(0.5)]);
        assert_eq!(gb.met(10.0, Some(20.0), None), Some(true));
        assert_eq!(gb.met(9.9, Some(20.0), None), Some(false));
        assert_eq!(gb.target_text(), ">= 0.5 x limit");
        assert_eq!(us.unit.best([3.0, 1.0, 2.0]), Some(1.0));
        assert_eq!(gb.unit.best([3.0, 1.0, 4.0]), Some(4.0));
    }

    #[test]
    fn all_targets_are_to_be_met() {
        let row = row(Unit::Microseconds, &[Target::TimesLimit(2.0), Target::AheadOfPeers]);
        assert_eq!(row.met(1.0, None, Some(5.0)), None);
        assert_eq!(row.met(1.0, Some(1.0), None), None);
        assert_eq!(row.met(9.0, Some(1.0), None), Some(false));
        assert_eq!(row.met(9.0, None, Some(5.0)), Some(false));
        assert_eq!(row.met(1.0, Some(1.0), Some(1.0)), Some(false));
        assert_eq!(row.met(1.0, Some(1.0), Some(1.1)), Some(true));
        assert_eq!(row.target_text(), "<= 2 x limit, ahead of peers");
        assert_eq!(row.reference(Some(3.0), Some(4.0)), Some(3.0));
    }

    #[test]
    fn a_row_without_targets_is_not_judged() {
        let row = row(Unit::Microseconds, &[]);
        assert_eq!(row.met(1.0, Some(1.0), Some(1.0)), None);
        assert_eq!(row.reference(Some(3.0), Some(4.0)), Some(3.0));
    }

    #[test]
    fn several_times_better_than_peers() {
        let us = row(Unit::Microseconds, &[Target::TimesBestPeer(0.5)]);
        assert_eq!(us.met(2.0, None, Some(4.0)), Some(true));
        assert_eq!(us.met(2.1, None, Some(4.0)), Some(false));
        assert_eq!(us.met(2.0, Some(1.0), None), None);
        assert_eq!(us.reference(Some(3.0), Some(4.0)), Some(4.0));
        assert_eq!(us.target_text(), "<= 0.5 x best peer");
        let gb = row(Unit::GigabytesPerSecond, &[Target::TimesBestPeer(1.5)]);
        assert_eq!(gb.met(3.0, None, Some(2.0)), Some(true));
        assert_eq!(gb.met(2.9, None, Some(2.0)), Some(false));
    }

    #[test]
    fn absolute_and_added_bounds() {
        let ns = row(Unit::Nanoseconds, &[Target::Absolute(100.0)]);
        assert_eq!(ns.met(100.0, None, None), Some(true));
        assert_eq!(ns.met(101.0, None, None), Some(false));
        let us = row(Unit::Microseconds, &[Target::OverLimit(0.2)]);
        assert_eq!(us.met(0.3, Some(0.05), None), Some(false));
        assert_eq!(us.target_text(), "<= limit + 0.2 us");
    }
}
