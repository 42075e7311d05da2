//! A program's text as a tree of statements.

use std::fmt::Write;

/// A line, and the lines in its braces if it has any.
#[derive(Clone, Debug)]
pub struct Statement {
    pub head: String,
    pub body: Option<Vec<Statement>>,
}

impl Statement {
    /// A notify, wait or deferred wait.
    pub fn is_signal(&self) -> bool {
        ["notify ", "wait ", "defer_wait "].iter().any(|word| self.head.starts_with(word))
    }

    fn write(&self, text: &mut String, indent: usize) {
        let open = if self.body.is_some() { " {" } else { "" };
        writeln!(text, "{:indent$}{}{open}", "", self.head).unwrap();
        if let Some(body) = &self.body {
            body.iter().for_each(|statement| statement.write(text, indent + 2));
            writeln!(text, "{:indent$}}}", "").unwrap();
        }
    }
}

pub fn print(statements: &[Statement]) -> String {
    let mut text = String::new();
    statements.iter().for_each(|statement| statement.write(&mut text, 0));
    text
}

/// Reads what [`pld::ir::print`] writes.
pub fn statements(text: &str) -> Vec<Statement> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        // Columns are not kept.
        for word in line.split_whitespace() {
            open += if open.is_empty() { "" } else { " " };
            open += word;
        }
        // A list of parameters goes on.
        if open.matches('(').count() == open.matches(')').count() {
            split(&std::mem::take(&mut open), &mut lines);
        }
    }
    let mut lines = lines.into_iter();
    block(&mut lines)
}

/// A line such as `for i in 0..n { if c { s } }`, and each part of it on a line of its own.
fn split(line: &str, lines: &mut Vec<String>) {
    match (line.split_once(" { "), line.strip_suffix(" }")) {
        (Some((head, _)), Some(inside)) => {
            lines.push(format!("{head} {{"));
            split(&inside[head.len() + 3..], lines);
            lines.push("}".into());
        }
        _ => lines.push(line.into()),
    }
}

fn block(lines: &mut impl Iterator<Item = String>) -> Vec<Statement> {
    let mut all = Vec::new();
    while let Some(line) = lines.next() {
        if line == "}" {
            break;
        }
        let statement = match line.strip_suffix(" {") {
            Some(head) => Statement { head: head.into(), body: Some(block(lines)) },
            None => Statement { head: line, body: None },
        };
        all.push(statement);
    }
    all
}
