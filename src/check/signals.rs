//! Who signals whom, in one run.

use std::collections::HashSet;

use super::machine::Machine;
use crate::ir::{Buffer, NotifyOp, Op};

/// The tasks of a run, and the signals between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signals {
    /// By rank, in the order in which they begin; all instances and blocks of a task are one.
    pub tasks: Vec<RankTask>,
    /// By the task that waits.
    pub signals: Vec<Signal>,
    /// All launches have come to their end; otherwise the signals are those until then.
    pub done: bool,
}

/// A task of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RankTask {
    /// The rank.
    pub rank: u32,
    /// The op that is the task.
    pub op: Op,
}

/// Notifies of one task that waits of another one need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Who notifies, by number among [`Signals::tasks`].
    pub from: usize,
    /// Who waits.
    pub to: usize,
    /// The window that the cells are in.
    pub buffer: Buffer,
    /// The op of the notifies.
    pub notify: Op,
    /// The op of the waits.
    pub wait: Op,
}

impl Signals {
    /// What a run has shown.
    pub(super) fn of(machine: &Machine) -> Self {
        let task = |by: u32| {
            let who = &machine.who[by as usize];
            RankTask { rank: who.rank as u32, op: who.op }
        };
        let mut tasks: Vec<RankTask> = (0..machine.who.len() as u32).map(task).collect();
        let mut seen = HashSet::new();
        tasks.retain(|task| seen.insert(*task));
        tasks.sort_by_key(|task| task.rank);
        let number = |by: u32| tasks.iter().position(|t| *t == task(by)).expect("every task that has begun is there");
        let mut signals: Vec<Signal> = Vec::new();
        for seen in &machine.seen {
            let Some(awaited) = seen.awaited else { continue };
            // What came behind the note that was enough came early by chance; what came before a set no longer counts.
            let notes = &machine.cells[&awaited.cell].notes[..seen.notes];
            let enough = notes.iter().position(|note| awaited.holds(note.result)).map_or(notes.len(), |at| at + 1);
            let first = notes[..enough].iter().rposition(|note| note.does == NotifyOp::Set).unwrap_or(0);
            for note in &notes[first..enough] {
                let (from, to, buffer) = (number(note.by), number(seen.by), awaited.buffer);
                let signal = Signal { from, to, buffer, notify: note.op, wait: awaited.op };
                if !signals.contains(&signal) {
                    signals.push(signal);
                }
            }
        }
        signals.sort_by_key(|signal| (signal.to, signal.from, signal.wait, signal.notify));
        Self { tasks, signals, done: machine.is_done() }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::{Options, inputs, signals};
    use crate::ir::parse::parse;

    /// Who signals task `wait_one` and `wait_two` of rank 0, if each rank notifies with this op.
    fn notifiers(notify: &str) -> [Vec<u32>; 2] {
        let text = format!(
            "program p\n\
             entry e(c: window[1] i32, me: i32) {{\n\
             at tell {{ {notify} }}\n\
             at wait_one {{ if me == 0 {{ wait c[0] >= 1 }} }}\n\
             at wait_two {{ if me == 0 {{ wait c[0] >= 2 }} }}\n\
             }}\n\
             host () {{\n\
             c_buf = alloc_window [1] i32\n\
             ranks r in 0..world {{\n c = window c_buf [1] i32\n dispatch e(c, r) device r\n }}\n\
             }}\n"
        );
        let program = parse(&text, "test.pld").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let nranks = 3;
        let inputs = inputs(&program, nranks, 1, crate::check::Fill::Iota, 0, &[]).unwrap();
        let options = Options { nranks, dims: &inputs.dims, args: &inputs.args, ..Options::default() };
        let found = signals(&program, &options).unwrap();
        assert!(found.done);
        let name = |task: usize| {
            let op = found.tasks[task].op;
            program.ops[op].kind.task().map(|(task, _)| program.tasks[task].name.as_str()).unwrap()
        };
        ["wait_one", "wait_two"].map(|waits| {
            let signals = found.signals.iter().filter(|signal| name(signal.to) == waits);
            signals.map(|signal| found.tasks[signal.from].rank).collect()
        })
    }

    #[test]
    fn only_notifies_that_are_needed_count() {
        let [one, two] = notifiers("notify c[0] @0 += 1");
        assert_eq!((one.len(), two.len()), (1, 2), "of three additions");
        assert_eq!(one[0], two[0], "the first one is enough for the first wait");
        assert_eq!(notifiers("if me == 2 { notify c[0] @0 = 2 }"), [[2], [2]]);
    }
}
