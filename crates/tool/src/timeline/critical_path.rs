//! The critical path of a launch: what its time was spent on, found from its end backwards. On a rank the path goes back
//! in time until a wait that another rank ended, and on from that rank's notify.

use super::{Launch, Span, Wait};

/// Between blocks of a task that lie closer together, in nanoseconds, nothing else is worth telling.
pub const BREATH: u64 = 1000;

/// A piece of the path.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub rank: u32,
    pub span: Span,
    pub what: What,
}

/// What a piece of the path is.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// Blocks of a task run, one after the other.
    Task { name: String, blocks: usize },
    /// No task does: the launch is set up, or its tasks are.
    Between,
    /// A signal is under way to `rank`, from the notify until the waiter goes on.
    Signal { from: u32, cell: String, line: String },
    /// The rank waits for what nobody has told.
    Wait { op: String, line: String },
}

/// The path, from the beginning of the launch to its end.
pub fn critical_path(launch: &Launch) -> Vec<Step> {
    let Some(last) = launch.parts.iter().max_by_key(|part| part.span.end) else { return Vec::new() };
    let (mut rank, mut time) = (last.rank, last.span.end);
    let mut steps = Vec::new();
    // Each wait is passed once at most.
    for _ in 0..=launch.waits.len() {
        let Some(part) = launch.parts.iter().find(|part| part.rank == rank) else { break };
        let held = |wait: &&Wait| wait.rank == rank && wait.span.end <= time && wait.span.end > part.span.begin;
        let wait = launch.waits.iter().filter(held).filter(|wait| holds_up(launch, wait)).max_by_key(|w| w.span.end);
        let begin = wait.map_or(part.span.begin, |wait| wait.span.end).min(time);
        work(launch, rank, Span { begin, end: time }, &mut steps);
        let Some(wait) = wait else { break };
        match &wait.notify {
            Some(notify) if notify.rank != rank => {
                let what = What::Signal { from: notify.rank, cell: wait.cell.clone(), line: notify.line.clone() };
                steps.push(Step { rank, span: Span { begin: notify.at, end: wait.span.end }, what });
                (rank, time) = (notify.rank, notify.at);
            }
            _ => {
                let what = What::Wait { op: wait.op.clone(), line: wait.line.clone() };
                steps.push(Step { rank, span: wait.span, what });
                time = wait.span.begin;
            }
        }
    }
    steps.reverse();
    steps
}

/// The rank could not go on before the signal came: not if its core was busy with another task when it did.
fn holds_up(launch: &Launch, wait: &Wait) -> bool {
    let Some(notify) = &wait.notify else { return wait.span.length() > 0 };
    let busy = launch.tasks.iter().any(|task| {
        (task.rank, task.core) == (wait.rank, wait.core)
            && task.span.begin < notify.at
            && task.span.end > notify.at
            && task.span.end <= wait.span.end
    });
    notify.rank != wait.rank && notify.at > wait.span.begin && !busy
}

/// Appends what a rank did in a span, the last first.
fn work(launch: &Launch, rank: u32, span: Span, steps: &mut Vec<Step>) {
    let mut pieces: Vec<(Span, &str)> = launch
        .tasks
        .iter()
        .filter(|task| task.rank == rank)
        .filter_map(|task| Some((task.span.overlap(span)?, task.name.as_str())))
        .collect();
    pieces.sort_by_key(|(piece, _)| std::cmp::Reverse(piece.end));
    let mut end = span.end;
    for (piece, name) in pieces {
        let Some(piece) = piece.overlap(Span { begin: span.begin, end }) else { continue };
        match steps.last_mut() {
            Some(Step { rank: same, span: last, what: What::Task { name: other, blocks } })
                if *same == rank && other == name && last.begin == end && end - piece.end <= BREATH =>
            {
                (last.begin, *blocks) = (piece.begin, *blocks + 1);
            }
            _ => {
                between(Span { begin: piece.end, end }, rank, steps);
                steps.push(Step { rank, span: piece, what: What::Task { name: name.into(), blocks: 1 } });
            }
        }
        end = piece.begin;
    }
    between(Span { begin: span.begin, end }, rank, steps);
}

fn between(span: Span, rank: u32, steps: &mut Vec<Step>) {
    if span.begin < span.end {
        steps.push(Step { rank, span, what: What::Between });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Notify, Part, Task};
    use super::*;

    fn span(begin: u64, end: u64) -> Span {
        Span { begin, end }
    }

    fn task(rank: u32, name: &str, begin: u64, end: u64) -> Task {
        let (name, span) = (name.to_string(), span(begin, end));
        Task { rank, core: 0, span, name, line: String::new(), written: 0, read: 0 }
    }

    fn wait(rank: u32, begin: u64, end: u64, notify: Option<(u32, u64)>) -> Wait {
        let notify = notify.map(|(rank, at)| Notify { rank, core: 0, at, line: "f:9".into() });
        let (op, task, cell, line) = ("wait s[0] >= 1".into(), "listen".into(), "s[0]".into(), "f:7".into());
        Wait { rank, core: 0, span: span(begin, end), op, task, cell, line, notify }
    }

    fn launch(ends: [u64; 2], tasks: Vec<Task>, waits: Vec<Wait>) -> Launch {
        let parts = ends.iter().zip(0..).map(|(&end, rank)| Part { rank, span: span(100, end) }).collect();
        Launch { program: "p".into(), number: 1, parts, tasks, waits }
    }

    fn shown(launch: &Launch) -> Vec<(u32, u64, u64, What)> {
        let steps = critical_path(launch).into_iter();
        steps.map(|step| (step.rank, step.span.begin, step.span.end, step.what)).collect()
    }

    fn runs(name: &str) -> What {
        What::Task { name: name.into(), blocks: 1 }
    }

    #[test]
    fn the_path_goes_over_to_who_was_late() {
        let tasks = vec![task(0, "listen", 110, 300), task(1, "compute", 120, 240), task(1, "tell", 240, 260)];
        let launch = launch([310, 270], tasks, vec![wait(0, 115, 255, Some((1, 250)))]);
        let signal = What::Signal { from: 1, cell: "s[0]".into(), line: "f:9".into() };
        let expected = vec![
            (1, 100, 120, What::Between),
            (1, 120, 240, runs("compute")),
            (1, 240, 250, runs("tell")),
            (0, 250, 255, signal),
            (0, 255, 300, runs("listen")),
            (0, 300, 310, What::Between),
        ];
        assert_eq!(shown(&launch), expected);
    }

    #[test]
    fn blocks_of_a_grid_are_one_step() {
        let tasks = vec![task(0, "push", 100, 180), task(0, "push", 190, 290), task(0, "push", 1_300, 1_400)];
        let launch = launch([1_400, 150], tasks, Vec::new());
        let push = |blocks| What::Task { name: "push".into(), blocks };
        let expected = vec![(0, 100, 290, push(2)), (0, 290, 1_300, What::Between), (0, 1_300, 1_400, push(1))];
        assert_eq!(shown(&launch), expected);
    }

    #[test]
    fn a_signal_that_had_come_before_holds_nobody_up() {
        let tasks = vec![task(0, "listen", 100, 300)];
        let launch = launch([300, 200], tasks, vec![wait(0, 150, 160, Some((1, 120)))]);
        assert_eq!(shown(&launch), vec![(0, 100, 300, runs("listen"))]);
    }

    #[test]
    fn a_core_that_was_busy_is_why() {
        let tasks = vec![task(0, "other", 110, 290), task(0, "listen", 290, 300)];
        let launch = launch([300, 200], tasks, vec![wait(0, 105, 290, Some((1, 150)))]);
        assert_eq!(shown(&launch)[1], (0, 110, 290, runs("other")));
    }

    #[test]
    fn nobody_told() {
        let launch = launch([300, 200], vec![task(0, "listen", 110, 300)], vec![wait(0, 120, 300, None)]);
        let waits = What::Wait { op: "wait s[0] >= 1".into(), line: "f:7".into() };
        let expected = vec![(0, 100, 110, What::Between), (0, 110, 120, runs("listen")), (0, 120, 300, waits)];
        assert_eq!(shown(&launch), expected);
    }
}
