//! Findings as people read them: with the source line, and a mark where it is.

use std::fmt::Write;

use pld::ir::{Diagnostic, Severity};

use crate::console::{ERROR, FRAME, GOOD, STRONG, WARNING};

/// A finding with the line of `text` that it is about.
pub fn excerpt(finding: &Diagnostic, text: &str) -> String {
    let style = match finding.severity {
        Severity::Error => ERROR,
        Severity::Warning => WARNING,
    };
    let (severity, code, message) = (finding.severity, finding.code, &finding.message);
    let mut out = format!("{style}{severity}[{code}]{style:#}{STRONG}: {message}{STRONG:#}\n");
    let line = (finding.line as usize).checked_sub(1).and_then(|index| text.lines().nth(index));
    let number = if line.is_some() { finding.line.to_string() } else { String::new() };
    let gutter = " ".repeat(number.len());
    if !finding.file.is_empty() {
        _ = write!(out, "{gutter}{FRAME}-->{FRAME:#} {}", finding.file);
        if let Some(line) = line {
            let (begin, _) = marked(line, finding);
            _ = write!(out, ":{number}:{}", begin + 1);
        }
        out.push('\n');
    }
    let framed = |out: &mut String, number: &str, content: &str| {
        let row = format!("{FRAME}{number} |{FRAME:#} {content}");
        _ = writeln!(out, "{}", row.trim_end());
    };
    if let Some(line) = line {
        let (begin, width) = marked(line, finding);
        // A tab is as wide in the line of the mark as above it.
        let space: String = line.chars().take(begin).map(|c| if c == '\t' { c } else { ' ' }).collect();
        framed(&mut out, &gutter, "");
        framed(&mut out, &number, line);
        framed(&mut out, &gutter, &format!("{space}{style}{}{style:#}", "^".repeat(width)));
    } else if !finding.snippet.is_empty() {
        framed(&mut out, &gutter, &finding.snippet);
    }
    for note in &finding.notes {
        _ = writeln!(out, "{gutter} {FRAME}={FRAME:#} {note}");
    }
    if !finding.hint.is_empty() {
        _ = writeln!(out, "{gutter} {FRAME}={FRAME:#} {GOOD}hint{GOOD:#}: {}", finding.hint);
    }
    out.push('\n');
    out
}

/// The part of a line that is marked, in characters: the word at a column, or the op that the finding is about, or the
/// whole line without its comment.
fn marked(line: &str, finding: &Diagnostic) -> (usize, usize) {
    let code = line.split('#').next().unwrap_or(line).trim_end();
    if let Some(begin) = (finding.column as usize).checked_sub(1) {
        let rest = code.chars().skip(begin);
        let word = rest.take_while(|c| c.is_alphanumeric() || *c == '_').count();
        return (begin, word.max(1));
    }
    let op = code.find(&finding.snippet).filter(|_| !finding.snippet.is_empty());
    let begin = op.unwrap_or(code.len() - code.trim_start().len());
    let marked = if op.is_some() { &finding.snippet } else { &code[begin..] };
    (code[..begin].chars().count(), marked.chars().count().max(1))
}
