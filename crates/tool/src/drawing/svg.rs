//! SVG, as little of it as the pictures need.

use std::fmt::Write;

use super::layers::Area;

/// Width of a character of a label.
const CHARACTER: f64 = 7.23;

/// Height of a line of text.
pub const LINE: f64 = 16.0;

/// Room around everything.
pub const MARGIN: f64 = 20.0;

const STYLE: &str = "\
text { font: 12px 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #24292f; }
.title { font-weight: bold; }
.quiet { fill: #57606a; }
.behind { fill: #f6f8fa; }
.frame { fill: #f6f8fa; stroke: #d0d7de; }
.box { fill: #ffffff; stroke: #57606a; }
.edge { fill: none; stroke: #8c959f; stroke-width: 1.2; marker-end: url(#arrow); }
.carried { stroke-dasharray: 5 4; }
.signal { fill: none; stroke-width: 1.6; }
";

/// A picture as it grows.
pub struct Picture {
    body: String,
    width: f64,
    height: f64,
}

/// Extents of a text on one line.
pub fn text_size(text: &str) -> (f64, f64) {
    if text.is_empty() { (0.0, 0.0) } else { (text.chars().count() as f64 * CHARACTER, LINE) }
}

impl Picture {
    /// An empty one.
    pub fn new() -> Self {
        Self { body: String::new(), width: 0.0, height: 0.0 }
    }

    /// The picture reaches at least this far.
    pub fn reach(&mut self, x: f64, y: f64) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    /// A rectangle with round corners.
    pub fn rectangle(&mut self, class: &str, area: Area) {
        let (x, y) = (area.x - area.width / 2.0, area.y - area.height / 2.0);
        let (width, height) = (area.width, area.height);
        _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="5"/>"#
        );
        self.reach(x + width, y + height);
    }

    /// A plain rectangle of a colour, from its upper left corner. What it is about is shown by whoever points at it.
    pub fn bar(&mut self, fill: &str, (x, y): (f64, f64), (width, height): (f64, f64), about: &str) {
        let about = escaped(about);
        _ = writeln!(
            self.body,
            r#"<rect fill="{fill}" x="{x:.2}" y="{y:.1}" width="{width:.2}" height="{height:.1}"><title>{about}</title></rect>"#
        );
        self.reach(x + width, y + height);
    }

    /// Text that begins at `x` and has its middle line at `y`.
    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let y = y + 4.0;
        _ = writeln!(self.body, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escaped(text));
        self.reach(x + text_size(text).0, y);
    }

    /// Text with its middle at a point.
    pub fn centered(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.text(class, x - text_size(text).0 / 2.0, y, text);
    }

    /// A curve; `path` in SVG's words. What it is about is shown by whoever points at it.
    pub fn path(&mut self, attributes: &str, path: &str, about: &str) {
        let about = if about.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(about)) };
        _ = writeln!(self.body, r#"<path {attributes} d="{path}">{about}</path>"#);
    }

    /// An arrow head for lines of a colour.
    pub fn arrow(&mut self, id: &str, color: &str) {
        _ = writeln!(
            self.body,
            r#"<marker id="{id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse" markerUnits="userSpaceOnUse"><path d="M0,0.5 L8,4 L0,7.5 z" fill="{color}"/></marker>"#
        );
    }

    /// The file.
    pub fn finish(mut self) -> String {
        self.arrow("arrow", "#8c959f");
        let (width, height) = (self.width + MARGIN, self.height + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>\n{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// A curve through points, one below the other.
pub fn downward(points: &[(f64, f64)]) -> String {
    let mut path = format!("M{:.1},{:.1}", points[0].0, points[0].1);
    for pair in points.windows(2) {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        let middle = (y + to_y) / 2.0;
        _ = write!(path, " C{x:.1},{middle:.1} {to_x:.1},{middle:.1} {to_x:.1},{to_y:.1}");
    }
    path
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
