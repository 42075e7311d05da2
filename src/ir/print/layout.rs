//! Lines and their alignment: neighbouring lines of the same form stand in columns.

/// A line in parts. All but the last are padded to the widest of the neighbours with the same form.
#[derive(Default)]
pub(super) struct Line {
    cells: Vec<String>,
    /// What lines must have in common to be aligned; none for a plain line.
    form: Option<String>,
}

impl Line {
    pub(super) fn new(form: &str) -> Self {
        Self { cells: Vec::new(), form: Some(form.into()) }
    }

    /// A part that is the same in lines of this form.
    pub(super) fn fixed(mut self, text: &str) -> Self {
        if let Some(form) = &mut self.form {
            form.push_str(text);
            form.push('\n');
        }
        self.cells.push(text.into());
        self
    }

    /// A part that may differ, padded.
    pub(super) fn column(mut self, text: &str) -> Self {
        if let Some(form) = &mut self.form {
            form.push('\t');
        }
        self.cells.push(text.into());
        self
    }

    /// The end of the line.
    pub(super) fn rest(mut self, text: &str) -> Self {
        self.cells.push(text.into());
        self
    }

    /// Width without padding.
    pub(super) fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.len() + 1).sum::<usize>().saturating_sub(1)
    }
}

/// Collects lines.
#[derive(Default)]
pub(super) struct Layout {
    lines: Vec<(usize, Line)>,
}

impl Layout {
    pub(super) fn line(&mut self, indent: usize, text: String) {
        self.push(indent, Line { cells: vec![text], form: None });
    }

    pub(super) fn push(&mut self, indent: usize, line: Line) {
        self.lines.push((indent, line));
    }

    pub(super) fn finish(self) -> String {
        let mut out = String::new();
        let alike = |a: &(usize, Line), b: &(usize, Line)| a.0 == b.0 && a.1.form.is_some() && a.1.form == b.1.form;
        for group in self.lines.chunk_by(alike) {
            let columns = group[0].1.cells.len();
            let width = |i: usize| group.iter().map(|(_, line)| line.cells[i].len()).max().unwrap_or(0);
            let widths: Vec<usize> = (0..columns).map(width).collect();
            for (indent, line) in group {
                let start = out.len();
                out.extend(std::iter::repeat_n("  ", *indent));
                for (cell, width) in line.cells.iter().zip(&widths) {
                    out.push_str(cell);
                    out.extend(std::iter::repeat_n(' ', width - cell.len() + 1));
                }
                out.truncate(start + out[start..].trim_end().len());
                out.push('\n');
            }
        }
        out
    }
}
