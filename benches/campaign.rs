//! A whole run: rows and peers in rounds, so that all see the same machine, until there are enough samples.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::link::Link;
use crate::method::{Sample, Summary, evaluate, usual_trip};
use crate::peers::Peer;
use crate::row::{LIMIT, Row, VALUE};
use crate::team::{self, Named};

/// Rounds of a full run at least, and at most.
const ROUNDS: std::ops::RangeInclusive<u32> = 3..=12;
/// Samples of a series that are enough.
const ENOUGH: usize = 7;

/// How a run is done.
pub struct Plan {
    /// One round of few iterations, only to see that everything works.
    pub quick: bool,
    /// No new round begins after this time.
    pub budget: Duration,
}

/// A number of ranks, and what is between them.
pub type Setting = (u32, Link);

/// Who was measured: a row's own series, or one of a peer in a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Row { row: String, series: String },
    Peer { peer: &'static str, setting: Setting, series: String },
}

/// All samples of a run, and what went wrong.
#[derive(Default)]
pub struct Campaign {
    samples: BTreeMap<Source, Vec<Sample>>,
    /// What went wrong last, by row or peer. It has no further turn.
    pub errors: BTreeMap<String, String>,
    pub rounds: u32,
}

/// What is known of a row at the end.
pub struct Outcome {
    pub value: Option<Summary>,
    /// The best limit.
    pub limit: Option<f64>,
    /// The best series of each peer.
    pub peers: Vec<(&'static str, f64)>,
}

impl Campaign {
    /// Measures `rows` and `peers`.
    pub fn run(rows: &[Row], peers: &[Peer], plan: &Plan) -> Self {
        let begin = Instant::now();
        let mut campaign = Self::default();
        let rounds = if plan.quick { 1..=1 } else { ROUNDS };
        while campaign.rounds < *rounds.end() {
            campaign.rounds += 1;
            campaign.round(rows, peers, plan.quick);
            let spent = begin.elapsed();
            let another = spent / campaign.rounds;
            if spent + another > plan.budget || campaign.rounds >= *rounds.start() && campaign.has_enough() {
                break;
            }
        }
        campaign
    }

    fn round(&mut self, rows: &[Row], peers: &[Peer], quick: bool) {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.link.available()).collect();
        for row in &rows {
            progress(&format!("round {}: {}", self.rounds, row.name));
            if self.errors.contains_key(&row.name) {
                continue;
            }
            match team::measure(row, quick) {
                Ok(samples) => self.add(samples, |series| Source::Row { row: row.name.clone(), series }),
                Err(error) => _ = self.errors.insert(row.name.clone(), error),
            }
        }
        for (setting, series) in peer_series(&rows) {
            for peer in peers {
                progress(&format!("round {}: {}, {} ranks", self.rounds, peer.name, setting.0));
                if self.errors.contains_key(peer.name) {
                    continue;
                }
                let seconds = if quick { 1e-4 } else { 4e-3 };
                match peer.measure(&series, setting, seconds) {
                    Ok(samples) => self.add(samples, |series| Source::Peer { peer: peer.name, setting, series }),
                    Err(error) => _ = self.errors.insert(peer.name.to_owned(), error),
                }
            }
        }
        progress("");
    }

    fn add(&mut self, samples: Vec<Named>, source: impl Fn(String) -> Source) {
        for Named { series, sample } in samples {
            self.samples.entry(source(series)).or_default().push(sample);
        }
    }

    /// The usual trip of a cache line in this run; 0 if the machine never stood still.
    pub fn usual_trip(&self) -> f64 {
        usual_trip(self.samples.values().flatten()).unwrap_or(0.0)
    }

    /// How many samples were taken, and how many of them count.
    pub fn counts(&self) -> (usize, usize) {
        let usual = self.usual_trip();
        let kept = self.samples.values().filter_map(|s| evaluate(s, usual)).map(|s| s.runs).sum();
        (self.samples.values().map(Vec::len).sum(), kept)
    }

    fn has_enough(&self) -> bool {
        let usual = self.usual_trip();
        self.samples.values().all(|s| evaluate(s, usual).is_some_and(|s| s.runs >= ENOUGH))
    }

    /// What is known of `row`.
    pub fn outcome(&self, row: &Row) -> Outcome {
        let usual = self.usual_trip();
        let of = |source: &Source| self.samples.get(source).and_then(|samples| evaluate(samples, usual));
        let own = |series: &str| of(&Source::Row { row: row.name.clone(), series: series.to_owned() });
        let limits = self.samples.keys().filter_map(|source| match source {
            Source::Row { row: name, series } if *name == row.name && series.starts_with(LIMIT) => {
                Some(of(source)?.median)
            }
            _ => None,
        });
        let mut peers: Vec<(&'static str, f64)> = Vec::new();
        for (source, samples) in &self.samples {
            let Source::Peer { peer, setting, series } = source else { continue };
            if *setting != (row.ranks, row.link) || !row.peer_series.contains(series) {
                continue;
            }
            let Some(Summary { median, .. }) = evaluate(samples, usual) else { continue };
            match peers.iter_mut().find(|(name, _)| name == peer) {
                Some((_, best)) if row.unit.better(median, *best) => *best = median,
                Some(_) => {}
                None => peers.push((peer, median)),
            }
        }
        Outcome { value: own(VALUE), limit: row.unit.best(limits), peers }
    }
}

/// What the peers' programs have to measure, by setting.
fn peer_series<'r>(rows: &[&'r Row]) -> BTreeMap<Setting, Vec<&'r str>> {
    let mut wanted: BTreeMap<Setting, Vec<&str>> = BTreeMap::new();
    for row in rows {
        for series in &row.peer_series {
            let all = wanted.entry((row.ranks, row.link)).or_default();
            if !all.contains(&series.as_str()) {
                all.push(series);
            }
        }
    }
    wanted
}

/// Says what is going on, on one line of the terminal.
fn progress(what: &str) {
    use std::io::IsTerminal;
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        // Nobody needs it.
        let _ = write!(terminal, "\r\x1b[K{what}");
        let _ = terminal.flush();
    }
}
