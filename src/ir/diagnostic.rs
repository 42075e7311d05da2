//! What is said about a mistake, and how it reads.

use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Legal, but likely not what is meant.
    Warning,
    /// The program is refused.
    Error,
}

/// Stable code of a rule, such as `PLD-V012`: P for text, B for building, V for verifying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

/// One finding: where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The rule.
    pub code: Code,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown (C has lines only).
    pub column: u32,
    /// What is wrong, with the numbers.
    pub message: String,
    /// The op as program text, or the source line.
    pub snippet: String,
    /// More about it, one fact a line; may be empty.
    pub notes: Vec<String>,
    /// What would make it right; may be empty.
    pub hint: String,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if self.line > 0 {
                write!(f, "{}:", self.line)?;
            }
            if self.column > 0 {
                write!(f, "{}:", self.column)?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        if !self.snippet.is_empty() {
            write!(f, "\n    {}", self.snippet)?;
            if self.column > 0 {
                write!(f, "\n    {:>1$}", "^", self.column as usize)?;
            }
        }
        for note in &self.notes {
            write!(f, "\n        {note}")?;
        }
        if !self.hint.is_empty() {
            write!(f, "\n    hint: {}", self.hint)?;
        }
        Ok(())
    }
}
