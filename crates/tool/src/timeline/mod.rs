//! A trace, as launches: what each rank did in each of them, and which notify ended which wait.

pub mod critical_path;
mod read;
pub mod waits;

pub use read::read;

/// A span of time, in nanoseconds of the trace's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub begin: u64,
    pub end: u64,
}

impl Span {
    pub fn length(self) -> u64 {
        self.end - self.begin
    }

    /// What both have in common.
    pub fn overlap(self, other: Span) -> Option<Span> {
        let (begin, end) = (self.begin.max(other.begin), self.end.min(other.end));
        (begin < end).then_some(Span { begin, end })
    }
}

/// One launch of a program.
#[derive(Debug, Default)]
pub struct Launch {
    pub program: String,
    /// From 1.
    pub number: u64,
    pub parts: Vec<Part>,
    pub tasks: Vec<Task>,
    pub waits: Vec<Wait>,
}

/// What a rank has of a launch.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    pub rank: u32,
    pub span: Span,
}

/// A task on a core, or the piece of it from one wait to the next.
#[derive(Debug, PartialEq, Eq)]
pub struct Task {
    pub rank: u32,
    pub core: u32,
    pub span: Span,
    pub name: String,
    /// `file:line`.
    pub line: String,
    pub written: u64,
    pub read: u64,
}

/// A task that waited.
#[derive(Debug, PartialEq, Eq)]
pub struct Wait {
    pub rank: u32,
    pub core: u32,
    pub span: Span,
    /// The op as text, or `to begin`.
    pub op: String,
    pub task: String,
    pub cell: String,
    /// `file:line`.
    pub line: String,
    /// The last notify of the cell before the wait ended.
    pub notify: Option<Notify>,
}

/// A notify, at the rank that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    pub rank: u32,
    pub core: u32,
    pub at: u64,
    pub line: String,
}

impl Launch {
    /// From the first rank that comes to the last one that ends.
    pub fn span(&self) -> Span {
        let begin = self.parts.iter().map(|part| part.span.begin).min().unwrap_or_default();
        let end = self.parts.iter().map(|part| part.span.end).max().unwrap_or_default();
        Span { begin, end }
    }
}
