//! The task graph of entries as a picture.

use pld::ir::Program;
use pld::passes::task_graph::{Graph, GraphEdge};

use super::layers::{Area, Layers, Link, layers};
use super::svg::{LINE, MARGIN, Picture, downward, text_size};

/// Room between a box and its text.
const PADDING: f64 = 10.0;

/// How far an edge to an earlier task swings out.
const SWING: f64 = 26.0;

/// The tasks of an entry with their places.
pub struct Cluster<'g> {
    graph: &'g Graph,
    layers: Layers,
    /// Edges that lead down.
    down: Vec<&'g GraphEdge>,
    /// Edges of loops, which lead anywhere.
    back: Vec<&'g GraphEdge>,
    with_reasons: bool,
}

/// The graph of every entry.
pub fn draw(program: &Program, graphs: &[Graph]) -> String {
    let mut picture = Picture::new();
    let mut x = MARGIN;
    for graph in graphs {
        let cluster = Cluster::new(graph, true);
        let (width, height) = cluster.size();
        let title = format!("entry {}", program.entries[graph.entry].name);
        let width = width.max(text_size(&title).0);
        let frame = (width + 2.0 * PADDING, height + LINE + 3.0 * PADDING);
        framed(&mut picture, x, MARGIN, frame, &title);
        let left = x + PADDING + (width - cluster.size().0) / 2.0;
        let top = MARGIN + LINE + 2.0 * PADDING;
        cluster.draw_edges(&mut picture, left, top);
        cluster.draw_tasks(&mut picture, left, top);
        x += frame.0 + MARGIN;
    }
    picture.finish()
}

/// A frame with a title.
pub fn framed(picture: &mut Picture, x: f64, y: f64, (width, height): (f64, f64), title: &str) {
    picture.rectangle("frame", Area { x: x + width / 2.0, y: y + height / 2.0, width, height });
    picture.text("title", x + PADDING, y + PADDING + LINE / 2.0, title);
}

impl<'g> Cluster<'g> {
    /// Places the tasks; edges have their reasons as labels if that is wanted.
    pub fn new(graph: &'g Graph, with_reasons: bool) -> Self {
        let box_of = |label: &str| (text_size(label).0 + 2.0 * PADDING, LINE + PADDING);
        let sizes: Vec<(f64, f64)> = graph.tasks.iter().map(|task| box_of(&task.label)).collect();
        let (down, back): (Vec<_>, Vec<_>) = graph.edges.iter().partition(|edge| !edge.carried && edge.from < edge.to);
        let label = |edge: &GraphEdge| if with_reasons { text_size(&edge.reason) } else { (0.0, 0.0) };
        let link = |edge: &&GraphEdge| Link { from: edge.from, to: edge.to, label: label(edge) };
        let links: Vec<Link> = down.iter().map(link).collect();
        Self { graph, layers: layers(&sizes, &links), down, back, with_reasons }
    }

    /// Its extents.
    pub fn size(&self) -> (f64, f64) {
        let text = |edge: &GraphEdge| if self.with_reasons { text_size(&edge.reason).0 } else { 0.0 };
        let right = self.back.iter().map(|edge| self.swing(edge) + text(edge));
        (right.fold(self.layers.width, f64::max), self.layers.height)
    }

    /// How far right an edge of a loop goes: past the tasks that it passes.
    fn swing(&self, edge: &GraphEdge) -> f64 {
        let nodes = &self.layers.nodes;
        let (a, b) = (nodes[edge.from].y, nodes[edge.to].y);
        let passed = nodes.iter().filter(|node| (a.min(b)..=a.max(b)).contains(&node.y));
        passed.map(|node| node.x + node.width / 2.0).fold(0.0, f64::max) + SWING
    }

    /// Where a task is, if the cluster begins at a point.
    pub fn area(&self, task: usize, x: f64, y: f64) -> Area {
        let area = self.layers.nodes[task];
        Area { x: area.x + x, y: area.y + y, ..area }
    }

    /// Draws what leads from task to task.
    pub fn draw_edges(&self, picture: &mut Picture, x: f64, y: f64) {
        let layers = &self.layers;
        for ((edge, points), &(label_x, label_y)) in self.down.iter().zip(&layers.paths).zip(&layers.labels) {
            let points: Vec<_> = points.iter().map(|&(px, py)| (px + x, py + y)).collect();
            picture.path(r#"class="edge""#, &downward(&points), &edge.reason);
            if self.with_reasons {
                let width = text_size(&edge.reason).0;
                picture.rectangle("behind", Area { x: label_x + x, y: label_y + y, width, height: LINE });
                picture.centered("quiet", (label_x + x, label_y + y), &edge.reason);
            }
        }
        for edge in &self.back {
            let (from, to) = (self.area(edge.from, x, y), self.area(edge.to, x, y));
            let (begin, end) = (from.x + from.width / 2.0, to.x + to.width / 2.0);
            // A task that waits for itself has a loop at its side.
            let (begin_y, end_y) = if edge.from == edge.to { (from.y + 7.0, to.y - 7.0) } else { (from.y, to.y) };
            let swing = x + self.swing(edge);
            let path =
                format!("M{begin:.1},{begin_y:.1} C{swing:.1},{begin_y:.1} {swing:.1},{end_y:.1} {end:.1},{end_y:.1}");
            picture.path(r#"class="edge carried""#, &path, &edge.reason);
            if self.with_reasons {
                picture.text("quiet", swing - SWING / 4.0 + 4.0, (begin_y + end_y) / 2.0, &edge.reason);
            }
        }
    }

    /// Draws the tasks.
    pub fn draw_tasks(&self, picture: &mut Picture, x: f64, y: f64) {
        for (task, node) in self.graph.tasks.iter().enumerate() {
            let area = self.area(task, x, y);
            picture.rectangle("box", area);
            picture.centered("", (area.x, area.y), &node.label);
        }
    }
}
