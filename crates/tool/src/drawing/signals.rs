//! Who signals whom, as a picture: a column for each rank with its tasks from top to bottom, a colour for each signal.

use std::collections::BTreeMap;

use pld::check::{RankTask, Signal, Signals};
use pld::ir::Program;
use pld::passes::task_graph::Graph;

use super::layers::Area;
use super::svg::{LINE, MARGIN, Picture, text_size};
use super::tasks::{Cluster, framed};

/// Room between a frame and what is in it.
const PADDING: f64 = 12.0;

/// Room between ranks, for what goes from one to the next.
const STREET: f64 = 80.0;

/// How far signals swing out that stay on their rank.
const SWING: f64 = 30.0;

/// Room above and below tasks, where signals pass ranks.
const DETOUR: f64 = 24.0;

/// Signals that pass more ranks pass this much further out.
const LANE: f64 = 5.0;

const COLORS: [&str; 8] = ["#0969da", "#cf222e", "#1a7f37", "#8250df", "#bc4c00", "#bf3989", "#1b7c83", "#9a6700"];

/// The picture; `describe` says for the legend what a signal is.
pub fn draw(program: &Program, graphs: &[Graph], signals: &Signals, describe: impl Fn(&Signal) -> String) -> String {
    let mut picture = Picture::new();
    let mut legend: Vec<String> = signals.signals.iter().map(&describe).collect();
    let mut seen = Vec::new();
    legend.retain(|text| {
        !seen.contains(text) && {
            seen.push(text.clone());
            true
        }
    });
    let color = |index: usize| COLORS[index % COLORS.len()];
    (0..legend.len()).for_each(|index| picture.arrow(&format!("arrow{index}"), color(index)));

    let clusters: Vec<Cluster> = graphs.iter().map(|graph| Cluster::new(graph, false)).collect();
    let columns = Columns::new(&mut picture, program, graphs, &clusters, signals);
    let ports = Ports::new(signals);
    for (number, signal) in signals.signals.iter().enumerate() {
        let (from, to) = (signals.tasks[signal.from], signals.tasks[signal.to]);
        let text = describe(signal);
        let index = legend.iter().position(|known| *known == text).expect("it is in the legend");
        let path = curve(number, (from.rank, columns.boxes[&from]), (to.rank, columns.boxes[&to]), &ports);
        let attributes = format!(r#"class="signal" stroke="{}" marker-end="url(#arrow{index})""#, color(index));
        picture.path(&attributes, &path, &format!("rank {} to rank {}: {text}", from.rank, to.rank));
    }
    // Over the signals that pass behind them.
    columns.clusters.iter().for_each(|&(cluster, x, y)| cluster.draw_tasks(&mut picture, x, y));
    for (index, text) in legend.iter().enumerate() {
        let y = columns.bottom + MARGIN + LINE * (index as f64 + 0.5);
        let line = format!("M{MARGIN:.1},{y:.1} h30");
        let attributes = format!(r#"class="signal" stroke="{}" marker-end="url(#arrow{index})""#, color(index));
        picture.path(&attributes, &line, "");
        picture.text("", MARGIN + 40.0, y, text);
    }
    picture.finish()
}

/// The ranks beside one another.
struct Columns<'g> {
    /// Each entry of each rank, and where it begins.
    clusters: Vec<(&'g Cluster<'g>, f64, f64)>,
    /// Where each task is.
    boxes: BTreeMap<RankTask, Area>,
    /// Where the frames end.
    bottom: f64,
}

impl<'g> Columns<'g> {
    /// Places all tasks, and draws what is behind the signals.
    fn new(
        picture: &mut Picture,
        program: &Program,
        graphs: &[Graph],
        clusters: &'g [Cluster<'g>],
        signals: &Signals,
    ) -> Self {
        let mut columns = Self { clusters: Vec::new(), boxes: BTreeMap::new(), bottom: MARGIN };
        let title = |graph: &Graph| format!("entry {}", program.entries[graph.entry].name);
        let widths = graphs.iter().zip(clusters).map(|(graph, of)| of.size().0.max(text_size(&title(graph)).0));
        let width = widths.fold(0.0, f64::max);
        let nranks = signals.tasks.iter().map(|task| task.rank + 1).max().unwrap_or(0);
        for rank in 0..nranks {
            let begins = |graph: &Graph| {
                let own = |task: &RankTask| task.rank == rank && graph.tasks.iter().any(|t| t.op == task.op);
                signals.tasks.iter().position(own)
            };
            let mut own: Vec<_> = graphs.iter().zip(clusters).filter(|(graph, _)| begins(graph).is_some()).collect();
            own.sort_by_key(|(graph, _)| begins(graph));
            let left = MARGIN + f64::from(rank) * (width + 2.0 * PADDING + STREET);
            let heights = own.iter().map(|(_, cluster)| LINE + cluster.size().1 + 2.0 * DETOUR);
            let frame = (width + 2.0 * PADDING, LINE + 2.0 * PADDING + heights.sum::<f64>());
            framed(picture, left, MARGIN, frame, &format!("rank {rank}"));
            let mut y = MARGIN + LINE + 2.0 * PADDING;
            for (graph, cluster) in own {
                picture.text("quiet", left + PADDING, y, &title(graph));
                y += LINE + DETOUR;
                let x = left + PADDING + (width - cluster.size().0) / 2.0;
                cluster.draw_edges(picture, x, y);
                columns.clusters.push((cluster, x, y));
                for (number, task) in graph.tasks.iter().enumerate() {
                    columns.boxes.insert(RankTask { rank, op: task.op }, cluster.area(number, x, y));
                }
                y += cluster.size().1 + DETOUR;
            }
            columns.bottom = columns.bottom.max(MARGIN + frame.1);
        }
        columns
    }
}

/// Where signals leave and reach the sides of their tasks, so that they do so beside one another.
struct Ports {
    /// For the begin and the end of each signal: its number at that side, and how many there are.
    of: Vec<[(usize, usize); 2]>,
}

impl Ports {
    fn new(signals: &Signals) -> Self {
        let mut at_side: BTreeMap<(usize, bool), Vec<(usize, usize)>> = BTreeMap::new();
        for (number, signal) in signals.signals.iter().enumerate() {
            let (from, to) = (signals.tasks[signal.from].rank, signals.tasks[signal.to].rank);
            at_side.entry((signal.from, from < to)).or_default().push((number, 0));
            at_side.entry((signal.to, to < from)).or_default().push((number, 1));
        }
        // Those that go around others do not cross those that do not.
        let around = |&(number, _): &(usize, usize)| {
            let signal: &Signal = &signals.signals[number];
            let (from, to) = (signals.tasks[signal.from].rank, signals.tasks[signal.to].rank);
            if from < to { -i64::from(to - from) } else { i64::from(from - to) }
        };
        let mut of = vec![[(0, 1); 2]; signals.signals.len()];
        for ends in at_side.values_mut() {
            ends.sort_by_key(around);
            for (index, &(number, end)) in ends.iter().enumerate() {
                of[number][end] = (index, ends.len());
            }
        }
        Self { of }
    }

    fn y(&self, signal: usize, end: usize, area: Area) -> f64 {
        let (index, count) = self.of[signal][end];
        area.y + area.height * 0.8 * ((index as f64 + 0.5) / count as f64 - 0.5)
    }
}

/// From the side of one task to that of another.
fn curve(signal: usize, (from_rank, from): (u32, Area), (to_rank, to): (u32, Area), ports: &Ports) -> String {
    let (begin_y, end_y) = (ports.y(signal, 0, from), ports.y(signal, 1, to));
    // Signals of a rank to itself are at the left of its tasks.
    let (out, into) =
        if from_rank < to_rank { (1.0, -1.0) } else { (-1.0, if from_rank == to_rank { -1.0 } else { 1.0 }) };
    let (begin, end) = (from.x + out * from.width / 2.0, to.x + into * to.width / 2.0);
    let passed = from_rank.abs_diff(to_rank).saturating_sub(1);
    if from_rank == to_rank {
        let swing = begin.min(end) - SWING;
        return format!("M{begin:.1},{begin_y:.1} C{swing:.1},{begin_y:.1} {swing:.1},{end_y:.1} {end:.1},{end_y:.1}");
    }
    let reach = out * STREET * if passed == 0 { 0.6 } else { 0.5 };
    if passed == 0 {
        let (first, second) = (begin + reach, end - reach);
        return format!("M{begin:.1},{begin_y:.1} C{first:.1},{begin_y:.1} {second:.1},{end_y:.1} {end:.1},{end_y:.1}");
    }
    // Around the tasks in between: above on the way to higher ranks, below on the way back.
    let around = from.height / 2.0 + (LANE * f64::from(passed) + 1.0).min(DETOUR - LANE);
    let way = if out < 0.0 { from.y.max(to.y) + around } else { from.y.min(to.y) - around };
    let (first, second) = (begin + reach, end - reach);
    let (on, off) = (begin + 2.0 * reach, end - 2.0 * reach);
    format!(
        "M{begin:.1},{begin_y:.1} C{first:.1},{begin_y:.1} {first:.1},{way:.1} {on:.1},{way:.1} \
         L{off:.1},{way:.1} C{second:.1},{way:.1} {second:.1},{end_y:.1} {end:.1},{end_y:.1}"
    )
}
