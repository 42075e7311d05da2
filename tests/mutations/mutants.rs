//! All mutants of a program: one notify, wait, threshold or edge is not what it was.

use std::collections::HashSet;

use super::text::{Statement, print, statements};

pub struct Mutant {
    /// The task, and what was done to it.
    pub name: String,
    pub text: String,
}

/// The mutants of a program with one entry, from its printed text.
pub fn mutants(text: &str) -> Vec<Mutant> {
    let program = statements(text);
    let mut maker = Maker { seen: HashSet::from([print(&program)]), program, mutants: Vec::new() };
    let entry = maker.program.iter().position(|s| s.head.starts_with("entry ")).expect("an entry");
    let tasks = maker.program[entry].body.clone().expect("an entry has tasks");
    let mut windows = windows(&maker.program[entry].head);
    windows.retain(|window| uses_in_tasks(&tasks, window) > 1);
    maker.entry(&[entry], &tasks, &windows);
    maker.mutants
}

/// How many tasks use something.
fn uses_in_tasks(statements: &[Statement], name: &str) -> usize {
    let of = |statement: &Statement| match (task_name(&statement.head), &statement.body) {
        (None, Some(body)) => uses_in_tasks(body, name),
        (Some(_), _) => usize::from(uses(statement, name)),
        (None, None) => 0,
    };
    statements.iter().map(of).sum()
}

/// Names of the windows of an entry.
fn windows(head: &str) -> Vec<String> {
    let names = head.split([',', '(']).filter_map(|part| part.split_once(": window["));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

fn uses(statement: &Statement, name: &str) -> bool {
    let text = print(std::slice::from_ref(statement));
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// Of the head of a task.
fn task_name(head: &str) -> Option<String> {
    let head = head.split_once(" = ").map_or(head, |(_, head)| head);
    let name = ["at ", "spmd ", "extern "].iter().find_map(|word| head.strip_prefix(word))?;
    Some(name.split([' ', '(']).next().unwrap_or_default().to_owned())
}

struct Maker {
    program: Vec<Statement>,
    /// Texts of the program and of the mutants so far.
    seen: HashSet<String>,
    mutants: Vec<Mutant>,
}

/// The block around a statement, and its place there.
fn around<'a>(program: &'a mut Vec<Statement>, path: &[usize]) -> (&'a mut Vec<Statement>, usize) {
    let (&last, outer) = path.split_last().expect("a path to a statement");
    let block = outer.iter().fold(program, |block, &at| block[at].body.as_mut().expect("a block"));
    (block, last)
}

impl Maker {
    fn add(&mut self, task: &str, what: String, edit: impl FnOnce(&mut Vec<Statement>)) {
        let mut program = self.program.clone();
        edit(&mut program);
        let text = print(&program);
        if self.seen.insert(text.clone()) {
            let mut name = format!("{task}: {what}");
            while self.mutants.iter().any(|mutant| mutant.name == name) {
                name += " (again)";
            }
            self.mutants.push(Mutant { name, text });
        }
    }

    /// Another head for a statement.
    fn head(&mut self, task: &str, path: &[usize], head: &str) {
        let (block, at) = around(&mut self.program, path);
        let what = format!("{} => {head}", block[at].head);
        self.add(task, what, |program| {
            let (block, at) = around(program, path);
            block[at].head = head.to_owned();
        });
    }

    /// The tasks of an entry, or of a loop in it.
    fn entry(&mut self, path: &[usize], statements: &[Statement], windows: &[String]) {
        for (at, statement) in statements.iter().enumerate() {
            let path = [path, &[at]].concat();
            match (task_name(&statement.head), &statement.body) {
                (Some(name), _) => self.task(&name, &path, statement, windows),
                (None, Some(body)) => self.entry(&path, body, windows),
                (None, None) if statement.head.contains("epoch % 2") => {
                    self.head("entry", &path, &statement.head.replace("epoch % 2", "0"));
                }
                (None, None) => {}
            }
        }
    }

    fn task(&mut self, name: &str, path: &[usize], task: &Statement, windows: &[String]) {
        self.edges(name, path, task, windows);
        let mut signals = Vec::new();
        find_signals(task, &mut path.to_vec(), &mut signals);
        for (signal, head) in signals {
            self.add(name, format!("without {head}"), |program| {
                let (block, at) = around(program, &signal);
                block.remove(at);
            });
            for changed in changes(&head) {
                self.head(name, &signal, &changed);
            }
            self.shift(name, path.len(), &signal, &head);
        }
    }

    /// Without one of its `deps`; with a `no_dep`.
    fn edges(&mut self, name: &str, path: &[usize], task: &Statement, windows: &[String]) {
        let head = &task.head;
        if let Some((front, rest)) = head.split_once(" deps [") {
            let (deps, back) = rest.split_once(']').expect("a list ends");
            let deps: Vec<&str> = deps.split(", ").collect();
            for dropped in &deps {
                let kept: Vec<&str> = deps.iter().copied().filter(|dep| dep != dropped).collect();
                let list = if kept.is_empty() { String::new() } else { format!(" deps [{}]", kept.join(", ")) };
                let changed = format!("{front}{list}{back}");
                let what = format!("without deps [{dropped}]");
                self.add(name, what, |program| {
                    let (block, at) = around(program, path);
                    block[at].head = changed;
                });
            }
        }
        for window in windows.iter().filter(|window| uses(task, window)) {
            let (front, back) = match head.find(" as ") {
                Some(at) => head.split_at(at),
                None => (head.as_str(), ""),
            };
            let changed = format!("{front} no_dep [{window}]{back}");
            self.add(name, format!("no_dep [{window}]"), |program| {
                let (block, at) = around(program, path);
                block[at].head = changed;
            });
        }
    }

    /// A signal, with the loops and ifs that hold nothing else, in other places of its block; and with all loops and ifs
    /// around it in other places of the entry. `depth` is the length of the path to the task.
    fn shift(&mut self, name: &str, depth: usize, signal: &[usize], head: &str) {
        let mut unit = signal.to_vec();
        while unit.len() > depth + 1 && around(&mut self.program, &unit).0.len() == 1 {
            unit.pop();
        }
        let (block, at) = around(&mut self.program, &unit);
        let heads: Vec<String> = block.iter().map(|s| s.head.clone()).collect();
        let last = heads.len() - 1;
        let mut places = vec![(0, "first".to_owned()), (last, "last".to_owned())];
        if at > 0 {
            places.insert(0, (at - 1, format!("before {}", heads[at - 1])));
        }
        if at < last {
            places.insert(0, (at + 1, format!("behind {}", heads[at + 1])));
        }
        for (place, what) in places {
            self.add(name, format!("{head} {what}"), |program| {
                let (block, at) = around(program, &unit);
                let unit = block.remove(at);
                block.insert(place, unit);
            });
        }

        // Apart from what else is in the loops.
        let alone = alone(&mut self.program, depth, signal);
        let (task, outer) = (signal[..depth].to_vec(), signal[depth]);
        let take = |program: &mut Vec<Statement>| {
            let (block, at) = around(program, &unit);
            block.remove(at);
        };
        let apart = unit.len() > depth + 1;
        for (place, what) in [(outer, "before"), (outer + 1, "behind"), (0, "first of all")] {
            if apart {
                self.add(name, format!("{head} in a loop of its own, {what}"), |program| {
                    take(program);
                    let mut within = task.clone();
                    within.push(place);
                    let (block, at) = around(program, &within);
                    block.insert(at, alone.clone());
                });
            }
        }
        if head.starts_with("defer_wait ") {
            return;
        }
        // In the tasks beside it that may have it.
        let (tasks, at) = around(&mut self.program, &task);
        let may = |s: &Statement| task_name(&s.head).is_some() && s.body.is_some() && !print_has(s, "defer_wait ");
        let earlier = (0..at).rev().find(|&other| may(&tasks[other]));
        let later = (at + 1..tasks.len()).find(|&other| may(&tasks[other]));
        for (other, end) in [(earlier, true), (later, false)] {
            let Some(other) = other else { continue };
            let other_name = task_name(&around(&mut self.program, &task).0[other].head).expect("a task");
            self.add(name, format!("{head} in task {other_name}"), |program| {
                take(program);
                let (tasks, _) = around(program, &task);
                let body = tasks[other].body.as_mut().expect("a task has a body");
                let place = if end { body.len() } else { 0 };
                body.insert(place, alone.clone());
            });
        }
    }
}

fn print_has(statement: &Statement, text: &str) -> bool {
    print(std::slice::from_ref(statement)).contains(text)
}

/// A signal and the loops and ifs around it, without what else they hold.
fn alone(program: &mut Vec<Statement>, depth: usize, signal: &[usize]) -> Statement {
    let mut statement = {
        let (block, at) = around(program, signal);
        block[at].clone()
    };
    for end in (depth + 1..signal.len()).rev() {
        let (block, at) = around(program, &signal[..end]);
        statement = Statement { head: block[at].head.clone(), body: Some(vec![statement]) };
    }
    statement
}

fn find_signals(statement: &Statement, path: &mut Vec<usize>, found: &mut Vec<(Vec<usize>, String)>) {
    for (at, inner) in statement.body.iter().flatten().enumerate() {
        path.push(at);
        if inner.is_signal() {
            found.push((path.clone(), inner.head.clone()));
        }
        find_signals(inner, path, found);
        path.pop();
    }
}

/// A signal with another value, cell or peer.
fn changes(head: &str) -> Vec<String> {
    let next = |value: &str| format!("({value} + 1) % world");
    let other_cell = |cell: &str| match cell.split_once(", ") {
        Some((first, rest)) => format!("{}, {rest}", next(first)),
        None => next(cell),
    };
    let (front, rest) = head.split_once('[').expect("a cell");
    if front.starts_with("notify ") {
        let (cell, rest) = rest.split_once("] @").expect("a peer");
        let (peer, value) = rest.split_once(" += ").expect("an addition");
        return vec![
            format!("{front}[{cell}] @{peer} += {value} + 1"),
            format!("{front}[{cell}] @{peer} += {value} - 1"),
            format!("{front}[{cell}] @{peer} = {value}"),
            format!("{front}[{}] @{peer} += {value}", other_cell(cell)),
            format!("{front}[{cell}] @({}) += {value}", next(peer)),
        ];
    }
    let (cell, value) = rest.split_once("] >= ").expect("a comparison");
    let mut values = vec![format!("{value} + 1"), format!("{value} - 1")];
    if let Some((epoch, blocks)) = value.split_once(" * ") {
        values.extend([epoch.to_owned(), blocks.to_owned()]);
    } else if value.contains("epoch") {
        values.push(value.replace("epoch", "1"));
    }
    let mut all: Vec<String> = values.iter().map(|value| format!("{front}[{cell}] >= {value}")).collect();
    if front.starts_with("wait ") {
        all.push(format!("{front}[{cell}] == {value}"));
    }
    all.push(format!("{front}[{}] >= {value}", other_cell(cell)));
    all
}
