//! A launch as swim lanes: a row for each core of each rank, time from left to right. Under the tasks of a row are its
//! waits, with a line from the notify that ended each.

use std::collections::BTreeSet;

use super::svg::{LINE, MARGIN, Picture, text_size};
use crate::timeline::critical_path::{BREATH, Step, What};
use crate::timeline::{Launch, Span, Task};

/// Width of the time axis.
const WIDTH: f64 = 1100.0;
/// Room for the names of the rows.
const LABELS: f64 = 130.0;
/// Height of a row: tasks, waits, and room.
const TASKS: f64 = 26.0;
const WAITS: f64 = 7.0;
const ROW: f64 = 52.0;

const COLORS: [&str; 8] = ["#54aeff", "#6fdd8b", "#ffb77c", "#d8b9ff", "#ffc1ba", "#eac54f", "#76e3ea", "#b8c4ce"];
const WAIT_COLOR: &str = "#d1242f";
const PATH_COLOR: &str = "#82071e";

/// Draws a launch, with its critical path marked.
pub fn draw(launch: &Launch, path: &[Step]) -> String {
    let mut picture = Picture::new();
    let span = launch.span();
    let scale = Scale { span };
    let rows: Vec<(u32, u32)> = rows(launch).into_iter().collect();
    let top = MARGIN + 2.0 * LINE + 14.0;
    let place = |rank: u32, core: u32| {
        let row = rows.iter().position(|&row| row == (rank, core)).unwrap_or(0);
        top + row as f64 * ROW
    };
    picture.arrow("told", WAIT_COLOR);
    let title = format!("{}, launch {}: {}", launch.program, launch.number, microseconds(span.length()));
    picture.text("title", MARGIN, MARGIN, &title);
    axis(&mut picture, &scale, top, rows.len());

    for &(rank, core) in &rows {
        let y = place(rank, core);
        let name = if core == 0 { format!("rank {rank}") } else { format!("       core {core}") };
        picture.text("", MARGIN, y + TASKS / 2.0, &name);
        picture.bar("#f6f8fa", (LABELS, y), (WIDTH, TASKS), &name);
    }
    let names: BTreeSet<&str> = launch.tasks.iter().map(|task| task.name.as_str()).collect();
    for task in &launch.tasks {
        let (x, width) = scale.place(task.span);
        let color = names.iter().position(|name| *name == task.name).unwrap_or(0) % COLORS.len();
        let y = place(task.rank, task.core);
        let bytes = format!("{} bytes written, {} read", task.written, task.read);
        let about = format!("{} ({}), {}, {bytes}", task.name, task.line, microseconds(task.span.length()));
        picture.bar(COLORS[color], (x, y), (width, TASKS), &about);
    }
    for (first, last) in runs(&launch.tasks) {
        let (x, width) = scale.place(Span { begin: first.span.begin, end: last.span.end });
        if text_size(&first.name).0 + 6.0 < width {
            let y = place(first.rank, first.core) + TASKS / 2.0;
            picture.centered("", (x + width / 2.0, y), &first.name);
        }
    }
    for wait in &launch.waits {
        let (x, width) = scale.place(wait.span);
        let y = place(wait.rank, wait.core) + TASKS + 3.0;
        let by = wait.notify.as_ref().map_or("nobody".into(), |notify| format!("rank {}", notify.rank));
        let length = microseconds(wait.span.length());
        let about = format!("{} is {}, {length}, told by {by}", wait.op, wait.cell);
        picture.bar(WAIT_COLOR, (x, y), (width, WAITS), &about);
        if let Some(notify) = &wait.notify
            && notify.rank != wait.rank
            && notify.at > wait.span.begin.max(span.begin)
        {
            let (from, to) = (scale.x(notify.at), scale.x(wait.span.end));
            let begin = place(notify.rank, notify.core) + TASKS;
            let (begin, end) = if begin < y { (begin, y) } else { (begin - TASKS, y + WAITS) };
            let line = format!("M{from:.1},{begin:.1} L{to:.1},{end:.1}");
            let attributes = format!(r#"class="signal" stroke="{WAIT_COLOR}" opacity="0.7" marker-end="url(#told)""#);
            picture.path(&attributes, &line, &format!("{} ({})", wait.cell, notify.line));
        }
    }
    for step in path {
        let (x, width) = scale.place(step.span);
        if let What::Task { .. } | What::Between = step.what {
            let line = format!("M{x:.1},{y:.1} h{width:.1}", y = place(step.rank, 0) - 4.0);
            let attributes = format!(r#"stroke="{PATH_COLOR}" stroke-width="3" fill="none""#);
            picture.path(&attributes, &line, "critical path");
        }
    }
    picture.finish()
}

/// The first and the last of pieces of one task that follow one another on a core.
fn runs(tasks: &[Task]) -> Vec<(&Task, &Task)> {
    let mut sorted: Vec<&Task> = tasks.iter().collect();
    sorted.sort_by_key(|task| (task.rank, task.core, task.span.begin));
    let same = |a: &&Task, b: &&Task| {
        let near = b.span.begin.saturating_sub(a.span.end) <= BREATH;
        (a.rank, a.core, &a.name) == (b.rank, b.core, &b.name) && near
    };
    sorted.chunk_by(same).map(|run| (run[0], run[run.len() - 1])).collect()
}

/// Every core that does something.
fn rows(launch: &Launch) -> BTreeSet<(u32, u32)> {
    let first = launch.parts.iter().map(|part| (part.rank, 0));
    first.chain(launch.tasks.iter().map(|task| (task.rank, task.core))).collect()
}

/// Time as distance.
struct Scale {
    span: Span,
}

impl Scale {
    fn x(&self, time: u64) -> f64 {
        let part = time.saturating_sub(self.span.begin) as f64 / self.span.length().max(1) as f64;
        LABELS + part.min(1.0) * WIDTH
    }

    /// Where a span begins, and its width: enough to be seen.
    fn place(&self, span: Span) -> (f64, f64) {
        let begin = self.x(span.begin);
        (begin, (self.x(span.end) - begin).max(0.7))
    }
}

fn axis(picture: &mut Picture, scale: &Scale, top: f64, rows: usize) {
    let bottom = top + rows as f64 * ROW;
    let step = step(scale.span.length());
    for time in (0..=scale.span.length()).step_by(step as usize) {
        let x = scale.x(scale.span.begin + time);
        picture.path(r##"stroke="#d0d7de" stroke-width="1""##, &format!("M{x:.1},{:.1} V{bottom:.1}", top - 8.0), "");
        picture.centered("quiet", (x, top - 18.0), &microseconds(time));
    }
}

/// A round number of nanoseconds, so that there are some six of them.
fn step(length: u64) -> u64 {
    let least = (length / 6).max(1);
    let power = 10u64.pow(least.ilog10());
    [1, 2, 5, 10].into_iter().map(|digit| digit * power).find(|&step| step >= least).unwrap_or(least)
}

/// As people read it.
pub fn microseconds(ns: u64) -> String {
    if ns >= 100_000 || ns.is_multiple_of(1000) {
        format!("{} us", (ns as f64 / 1000.0).round())
    } else {
        format!("{:.2} us", ns as f64 / 1000.0)
    }
}
