//! Every schedule, but of those that differ only in the order of independent steps one: dynamic partial-order reduction.
//!
//! Two steps depend on each other if both are about one cell, and not both add to it or both wait for it, or if both add
//! floats at one place. After each run, wherever a step could have come before an earlier one that it depends on, that
//! order is noted to be tried. Steps that have been tried at a point *sleep* there until something that they depend on
//! happens.
//! (C. Flanagan, P. Godefroid: Dynamic partial-order reduction for model checking software, POPL 2005.)

use std::collections::BTreeSet;

use super::machine::{Footprint, Machine};
use super::plan::Plan;
use super::task::Thread;

/// A point of the tree of schedules.
#[derive(Debug)]
struct Point {
    possible: Vec<Thread>,
    /// The step that is being tried, and what it was about.
    thread: Thread,
    footprint: Footprint,
    /// Steps to try.
    todo: BTreeSet<Thread>,
    /// Steps that need not be tried: they have been, here or with the same result elsewhere.
    asleep: Vec<(Thread, Footprint)>,
}

/// The schedules that have been run, and those to run.
#[derive(Debug, Default)]
pub struct Tree {
    path: Vec<Point>,
    begun: bool,
}

impl Footprint {
    fn depends(&self, other: &Footprint) -> bool {
        let about = |a: &Footprint, b: &Footprint| {
            a.notified.is_some_and(|(cell, adds)| {
                b.awaited.contains(&cell) || b.notified.is_some_and(|(other, also)| cell == other && !(adds && also))
            })
        };
        let sums = self.sums.iter().any(|(piece, bytes)| {
            other.sums.iter().any(|(at, also)| piece == at && bytes.start < also.end && also.start < bytes.end)
        });
        sums || about(self, other) || about(other, self)
    }
}

impl Tree {
    /// All have been run.
    pub fn is_done(&self) -> bool {
        self.begun && self.path.is_empty()
    }

    /// Runs the next schedule: its end and its choices. None if all have been run, or if this one turned out to be like
    /// others.
    pub fn run<'p>(&mut self, plan: &'p Plan<'p>) -> Option<(Machine<'p>, Vec<u16>)> {
        if self.begun && !self.next() {
            return None;
        }
        self.begun = true;
        let mut machine = Machine::new(plan, None);
        let mut choices = Vec::new();
        let mut depth = 0;
        let whole = loop {
            let possible = machine.possible();
            if possible.is_empty() {
                break true;
            }
            let threads: Vec<Thread> = possible.iter().map(|&block| machine.block(block).key).collect();
            if depth == self.path.len() {
                let asleep = self.path.last().map_or(Vec::new(), |last| {
                    let stays = |(thread, footprint): &&(Thread, Footprint)| {
                        *thread != last.thread && !footprint.depends(&last.footprint)
                    };
                    last.asleep.iter().filter(stays).cloned().collect()
                });
                let awake = threads.iter().find(|thread| asleep.iter().all(|(other, _)| other != *thread));
                let Some(&thread) = awake else { break false };
                let todo = BTreeSet::from([thread]);
                let footprint = Footprint::default();
                self.path.push(Point { possible: threads.clone(), thread, footprint, todo, asleep });
            }
            let choice = threads.iter().position(|&thread| thread == self.path[depth].thread);
            let Some(choice) = choice else { unreachable!("the same steps lead to the same point") };
            machine.step(possible[choice]);
            self.path[depth].footprint = machine.footprint.clone();
            choices.push(choice as u16);
            depth += 1;
        };
        self.note_orders();
        whole.then_some((machine, choices))
    }

    /// Goes on to the next schedule, if there is one.
    fn next(&mut self) -> bool {
        while let Some(point) = self.path.last_mut() {
            let tried = (point.thread, std::mem::take(&mut point.footprint));
            point.asleep.push(tried);
            let asleep: BTreeSet<Thread> = point.asleep.iter().map(|(thread, _)| *thread).collect();
            if let Some(&thread) = point.todo.difference(&asleep).next() {
                point.thread = thread;
                return true;
            }
            self.path.pop();
        }
        false
    }

    /// Looks for steps that could have come before others which they depend on.
    fn note_orders(&mut self) {
        let count = self.path.len();
        // What came before each step for a reason: its own thread, who began it, and what it depends on.
        let mut before: Vec<Bits> = Vec::with_capacity(count);
        let mut orders: Vec<(usize, usize)> = Vec::new();
        for step in 0..count {
            let point = &self.path[step];
            let mut own = Bits::new(count);
            for earlier in (0..step).rev() {
                if own.has(earlier) {
                    continue;
                }
                let other = &self.path[earlier];
                if other.thread == point.thread || other.footprint.begun.contains(&point.thread) {
                    own.join(&before[earlier]);
                    own.set(earlier);
                }
            }
            let mut direct = Vec::new();
            for earlier in (0..step).rev() {
                if !own.has(earlier) && self.path[earlier].footprint.depends(&point.footprint) {
                    direct.push(earlier);
                    own.join(&before[earlier]);
                    own.set(earlier);
                }
            }
            orders.extend(direct.into_iter().map(|earlier| (earlier, step)));
            before.push(own);
        }
        for (earlier, step) in orders {
            let thread = self.path[step].thread;
            let leads = (earlier + 1..step)
                .filter(|&between| before[step].has(between) && !before[between].has(earlier))
                .map(|between| self.path[between].thread)
                .chain([thread]);
            let leads: Vec<Thread> = leads.collect();
            let point = &mut self.path[earlier];
            match leads.iter().find(|thread| point.possible.contains(thread)) {
                Some(&thread) => _ = point.todo.insert(thread),
                None => point.todo.extend(point.possible.iter().copied()),
            }
        }
    }
}

/// A set of steps.
#[derive(Clone, Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, bit: usize) -> bool {
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn set(&mut self, bit: usize) {
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn join(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::check::classify::classify;
    use crate::check::options::{Options, Schedule};
    use crate::check::{Fill, explore, inputs};
    use crate::ir::Op;
    use crate::ir::parse::parse;

    /// What a run shows and leaves. Which of several additions moved a cell on is a matter of their order, which counts for
    /// nothing else.
    type Result = (BTreeSet<(&'static str, Option<Op>)>, Vec<Vec<u8>>);

    fn result(machine: &Machine) -> Result {
        let keys = classify(machine, None).iter().map(|shown| (shown.rule.code.0, shown.op)).collect();
        let whole = std::iter::once(0..machine.plan.layout.bytes).collect::<Vec<_>>();
        let windows = |rank| machine.memory.gather(machine.memory.windows(rank), &whole);
        (keys, (0..machine.plan.nranks).map(windows).collect())
    }

    /// The results of all schedules, one by one.
    fn all(plan: &Plan) -> (HashSet<Result>, usize) {
        let (mut results, mut count) = (HashSet::new(), 0);
        let mut choices: Vec<u16> = Vec::new();
        loop {
            let (machine, _) = explore::run(plan, &Schedule::Choices(choices.clone()));
            results.insert(result(&machine));
            count += 1;
            let mut widths = Vec::new();
            let mut machine = Machine::new(plan, None);
            loop {
                let possible = machine.possible();
                if possible.is_empty() {
                    break;
                }
                let choice = usize::from(choices.get(widths.len()).copied().unwrap_or(0));
                widths.push(possible.len());
                machine.step(possible[choice]);
            }
            choices.resize(widths.len(), 0);
            let Some(last) = (0..widths.len()).rev().find(|&at| usize::from(choices[at]) + 1 < widths[at]) else {
                return (results, count);
            };
            choices.truncate(last + 1);
            choices[last] += 1;
        }
    }

    fn assert_reduced(body: &[&str], launches: u32) {
        let driver = "host (epoch: i32) {\n  buf = alloc_window [2] i32\n  ranks r in 0..world {\n    sig = window buf [2] \
                      i32\n    dispatch e(sig, r, epoch) device r\n  }\n}";
        let entry = "program p\nentry e(sig: window[2] i32, me: i32, epoch: i32) {";
        let text = format!("{entry}\n{}\n}}\n{driver}\n", body.join("\n"));
        let program = parse(&text, "test.pld").unwrap_or_else(|e| panic!("{}", e[0]));
        let inputs = inputs(&program, 2, launches, Fill::Iota, 0, &[]).unwrap();
        let options =
            Options { launches, persistent: true, dims: &inputs.dims, args: &inputs.args, ..Options::default() };
        let plan = Plan::new(&program, program.ops.len(), &options).unwrap();
        let (results, count) = all(&plan);
        let (mut tree, mut reduced, mut runs) = (Tree::default(), HashSet::new(), 0);
        while !tree.is_done() {
            if let Some((machine, _)) = tree.run(&plan) {
                reduced.insert(result(&machine));
                runs += 1;
            }
        }
        assert_eq!(results, reduced, "{text}");
        assert!(runs < count, "{runs} of {count} schedules:\n{text}");
    }

    #[test]
    fn the_schedules_that_are_left_out_show_nothing_new() {
        // One cell with sets, additions and waits of both kinds.
        assert_reduced(&["at a {", "notify sig[0] @0 = me + 1", "wait sig[0] >= me", "}"], 1);
        let counted =
            ["at a {", "notify sig[0] @0 += 1", "if me == 0 { wait sig[0] == 1 }", "notify sig[0] @0 += 1", "}"];
        assert_reduced(&counted, 1);
        // A circle, or not, as the tasks come.
        let first = ["at a no_dep [sig] {", "wait sig[0] >= 1", "notify sig[1] @(1 - me) += 1", "}"];
        let second = [
            "at b no_dep [sig] {",
            "notify sig[0] @(1 - me) = 1",
            "wait sig[1] >= 1",
            "notify sig[0] @(1 - me) = 0",
            "}",
        ];
        assert_reduced(&[&first[..], &second[..]].concat(), 1);
        // Two launches that may overtake each other.
        assert_reduced(&["at a {", "notify sig[0] @(1 - me) = epoch", "wait sig[0] >= 1", "}"], 2);
        let both = ["at a {", "notify sig[0] @(1 - me) += 1", "wait sig[0] >= epoch", "wait sig[0] == 1", "}"];
        assert_reduced(&both, 2);
    }
}
