//! Which schedules are run.

use std::collections::HashMap;

use super::classify::{Key, Shown, classify, results};
use super::describe::Writer;
use super::machine::{Machine, Stop};
use super::options::{Explore, Schedule};
use super::plan::Plan;
use super::reduce::Tree;
use super::task::Thread;
use super::{Finding, Report, rules};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::Severity;
use crate::random::Random;

/// Steps of a run up to which all its schedules may be few.
const SMALL: usize = 400;

/// Chooses the next step.
enum Chooser {
    Random(Random),
    Pct(Pct),
    Choices(std::vec::IntoIter<u16>),
}

/// Priorities: the possible block with the highest one goes on. At a few points the one that would go on becomes the
/// last.
struct Pct {
    random: Random,
    priorities: HashMap<Thread, u64>,
    /// Of the ranks, where all blocks of one go together.
    ranks: Option<Vec<u64>>,
    changes: Vec<u64>,
    steps: u64,
    lowest: u64,
}

impl Chooser {
    fn new(schedule: &Schedule, nranks: usize) -> Self {
        match schedule {
            Schedule::Random(seed) => Chooser::Random(Random::new(*seed)),
            Schedule::Pct(seed) => {
                let mut random = Random::new(!seed);
                let ranks = (random.below(2) == 0).then(|| (0..nranks).map(|_| random.any() >> 8).collect());
                let count = random.below(4);
                // Programs have a few steps or thousands: the points are as likely at any order of magnitude.
                let changes = (0..count).map(|_| random.any() >> (64 - 12 + random.below(10))).collect();
                Chooser::Pct(Pct { random, priorities: HashMap::new(), ranks, changes, steps: 0, lowest: 1 << 20 })
            }
            Schedule::Choices(choices) => Chooser::Choices(choices.clone().into_iter()),
        }
    }

    /// A generator for where remote writes land.
    fn landings(schedule: &Schedule) -> Option<Random> {
        match schedule {
            Schedule::Random(seed) | Schedule::Pct(seed) => Some(Random::new(seed ^ 0x5bd1_e995)),
            Schedule::Choices(_) => None,
        }
    }

    fn choose(&mut self, machine: &Machine, possible: &[usize]) -> usize {
        match self {
            Chooser::Random(random) => random.below(possible.len()),
            Chooser::Choices(choices) => choices.next().map_or(0, usize::from).min(possible.len() - 1),
            Chooser::Pct(pct) => pct.choose(machine, possible),
        }
    }
}

impl Pct {
    fn choose(&mut self, machine: &Machine, possible: &[usize]) -> usize {
        let mut best = self.best(machine, possible);
        if self.changes.contains(&self.steps) {
            self.lowest -= 1;
            self.priorities.insert(machine.block(possible[best]).key, self.lowest);
            best = self.best(machine, possible);
        }
        self.steps += 1;
        best
    }

    fn best(&mut self, machine: &Machine, possible: &[usize]) -> usize {
        let priority = |&at: &usize| {
            let key = machine.block(possible[at]).key;
            *self.priorities.entry(key).or_insert_with(|| {
                let own = self.random.any() >> 8 | 1 << 40;
                self.ranks.as_ref().map_or(own, |ranks| ranks[key.0] << 4 | 1 << 40 | own & 0xf)
            })
        };
        (0..possible.len()).max_by_key(priority).expect("something is possible")
    }
}

/// A run to its end, and the choices that it made.
pub fn run<'p>(plan: &'p Plan<'p>, schedule: &Schedule) -> (Machine<'p>, Vec<u16>) {
    let mut machine = Machine::new(plan, Chooser::landings(schedule));
    let mut chooser = Chooser::new(schedule, plan.nranks);
    let mut choices = Vec::new();
    loop {
        let possible = machine.possible();
        if possible.is_empty() {
            return (machine, choices);
        }
        let choice = chooser.choose(&machine, &possible);
        choices.push(choice as u16);
        machine.step(possible[choice]);
    }
}

/// What has been found so far.
struct Search<'p> {
    plan: &'p Plan<'p>,
    report: Report,
    found: Vec<(Key, Schedule, Vec<u16>)>,
    /// The outputs of the first run that came to its end.
    reference: Option<Vec<Vec<u8>>>,
    /// A run took too long.
    cut: bool,
}

impl Search<'_> {
    fn note(&mut self, machine: &Machine, schedule: impl FnOnce() -> Schedule, choices: &[u16]) {
        self.report.schedules += 1;
        self.report.steps += choices.len() as u64;
        self.cut |= machine.stop == Some(Stop::TooLong);
        let new: Vec<Key> = classify(machine, self.reference.as_deref())
            .iter()
            .map(Shown::key)
            .filter(|key| self.found.iter().all(|(known, ..)| known != key))
            .collect();
        if !new.is_empty() {
            let schedule = schedule();
            self.found.extend(new.into_iter().map(|key| (key, schedule.clone(), choices.to_vec())));
        }
        self.set_reference(machine);
    }

    fn set_reference(&mut self, machine: &Machine) {
        if self.reference.is_none() && machine.is_done() && machine.races.is_empty() {
            self.reference = Some(results(machine));
        }
    }

    fn run(&mut self, schedule: &Schedule) -> usize {
        let (machine, choices) = run(self.plan, schedule);
        self.note(&machine, || schedule.clone(), &choices);
        choices.len()
    }

    /// The finding in its shortest schedule, described.
    fn describe(&self, writer: &Writer, key: Key, schedule: &Schedule, choices: &[u16]) -> Option<Finding> {
        let shows = |schedule: &Schedule| {
            let (machine, _) = run(self.plan, schedule);
            let shown = classify(&machine, self.reference.as_deref()).into_iter().find(|shown| shown.key() == key)?;
            let diagnostic = writer.describe(&machine, &shown);
            Some(Finding { diagnostic, schedule: schedule.clone() })
        };
        let prefix = |len: usize| {
            let mut choices = choices[..len].to_vec();
            while choices.last() == Some(&0) {
                choices.pop();
            }
            shows(&Schedule::Choices(choices))
        };
        let mut finding = if self.plan.options.replay.is_some() { None } else { prefix(choices.len()) };
        if finding.is_some() {
            let (mut none, mut all) = (0, choices.len());
            if let Some(empty) = prefix(0) {
                (finding, all) = (Some(empty), 0);
            }
            while none + 1 < all {
                let half = none.midpoint(all);
                match prefix(half) {
                    Some(shorter) => (finding, all) = (Some(shorter), half),
                    None => none = half,
                }
            }
        }
        let mut finding = finding.or_else(|| shows(schedule))?;
        finding.diagnostic.notes.push(format!("schedule {}", finding.schedule));
        Some(finding)
    }

    fn finish(mut self) -> Result<Report> {
        if self.cut && self.found.is_empty() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a run takes too many steps to be checked: make it smaller",
            ));
        }
        let writer = Writer::new(self.plan);
        let mut findings: Vec<(Key, Finding)> = self
            .found
            .iter()
            .filter_map(|(key, schedule, choices)| Some((*key, self.describe(&writer, *key, schedule, choices)?)))
            .collect();
        // What is wrong in itself explains why results differ.
        let unstable = |key: &Key| key.0 == rules::UNSTABLE.code.0;
        if findings.iter().any(|(key, finding)| !unstable(key) && finding.diagnostic.severity == Severity::Error) {
            findings.retain(|(key, _)| !unstable(key));
        }
        findings.sort_by_key(|((code, op, other), _)| (*op, *code, *other));
        self.report.findings = findings.into_iter().map(|(_, finding)| finding).collect();
        Ok(self.report)
    }
}

/// Runs schedules as the options say.
pub fn explore(plan: &Plan, go_on: &mut dyn FnMut() -> bool) -> Result<Report> {
    let options = plan.options;
    let mut search = Search { plan, report: Report::default(), found: Vec::new(), reference: None, cut: false };
    if let Some(schedule) = &options.replay {
        // What results were compared with.
        let (first, _) = run(plan, &Schedule::Choices(Vec::new()));
        search.set_reference(&first);
        search.run(schedule);
        return search.finish();
    }
    let steps = search.run(&Schedule::Choices(Vec::new()));
    let exhaustive = match options.explore {
        Explore::Exhaustive => options.schedules,
        Explore::Auto if steps <= SMALL => options.schedules / 2,
        _ => 0,
    };
    if exhaustive > 1 {
        let mut tree = Tree::default();
        // Some tries end early, as it turns out that they are like others.
        for _ in 0..2 * exhaustive {
            if search.report.schedules >= exhaustive || !go_on() {
                break;
            }
            match tree.run(plan) {
                Some((machine, choices)) => search.note(&machine, || Schedule::Choices(choices.clone()), &choices),
                None if tree.is_done() => {
                    search.report.complete = !search.cut;
                    return search.finish();
                }
                None => {}
            }
        }
    }
    let mut seed = options.seed;
    while search.report.schedules < options.schedules && options.explore != Explore::Exhaustive && go_on() {
        let pct = match options.explore {
            Explore::Pct => true,
            Explore::Random => false,
            _ => seed % 2 == 1,
        };
        search.run(&if pct { Schedule::Pct(seed) } else { Schedule::Random(seed) });
        seed = seed.wrapping_add(1);
    }
    search.finish()
}
