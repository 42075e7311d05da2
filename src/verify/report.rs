//! Collects findings and puts them in source order.

use crate::ir::program::{Loc, Param, TensorDef};
use crate::ir::{Block, Diagnostic, Entry, Op, Program, Tensor};

use super::names::Names;
use super::rules::Rule;

/// What a finding is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// An op; its text is the snippet.
    Op(Op),
    /// An entry.
    Entry(Entry),
    /// A tensor parameter of an entry or of the host driver.
    Param(Tensor),
    /// The host driver.
    Host,
    /// The program.
    Program,
}

/// The findings so far.
pub(super) struct Report<'a> {
    program: &'a Program,
    names: Names<'a>,
    findings: Vec<(u64, Diagnostic)>,
}

impl<'a> Report<'a> {
    pub fn new(program: &'a Program, names: Names<'a>) -> Self {
        Self { program, names, findings: Vec::new() }
    }

    /// Adds a finding; notes and hint are appended to what is returned.
    pub fn add(&mut self, rule: &Rule, subject: Subject, message: impl Into<String>) -> Finding<'_> {
        let program = self.program;
        let (order, loc, snippet) = match subject {
            Subject::Op(op) => (order(op), program.ops[op].loc, self.names.op(op)),
            Subject::Entry(entry) => {
                let data = &program.entries[entry];
                (self.before_block(data.body), data.loc, format!("entry {}", data.name))
            }
            Subject::Param(tensor) => {
                let data = &program.tensors[tensor];
                let body = match data.def {
                    TensorDef::Param(entry, ..) | TensorDef::Window(entry, _) => Some(program.entries[entry].body),
                    _ => program.host.as_ref().map(|host| host.body),
                };
                let order = body.map_or(u64::MAX, |body| self.before_block(body));
                (order, data.loc, self.names.param(Param::Tensor(tensor)))
            }
            Subject::Host => {
                let order = program.host.as_ref().map_or(u64::MAX, |host| self.before_block(host.body));
                let loc = program.host.as_ref().map_or(Loc::default(), |host| host.loc);
                (order, loc, "host".into())
            }
            Subject::Program => (u64::MAX, Loc { file: program.files.keys().next(), ..Loc::default() }, String::new()),
        };
        let diagnostic = Diagnostic {
            severity: rule.severity,
            code: rule.code,
            file: loc.file.map(|file| program.files[file].clone()).unwrap_or_default(),
            line: loc.line,
            // A column belongs to a line of source text; the snippet is the op, printed.
            column: 0,
            message: message.into(),
            snippet,
            notes: Vec::new(),
            hint: String::new(),
        };
        self.findings.push((order, diagnostic));
        Finding(&mut self.findings.last_mut().expect("it has just been added").1)
    }

    /// Ops are numbered in source order; what owns a block stands before its first op.
    fn before_block(&self, block: Block) -> u64 {
        self.program.blocks[block].first().map_or(u64::MAX - 1, |&op| order(op) - 1)
    }

    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.findings.sort_by_key(|(order, _)| *order);
        self.findings.into_iter().map(|(_, diagnostic)| diagnostic).collect()
    }
}

fn order(op: Op) -> u64 {
    2 * u64::from(op.as_u32()) + 1
}

/// A finding that may get notes and a hint.
pub(super) struct Finding<'a>(&'a mut Diagnostic);

impl Finding<'_> {
    pub fn note(self, note: impl Into<String>) -> Self {
        let note = note.into();
        if !note.is_empty() {
            self.0.notes.push(note);
        }
        self
    }

    pub fn notes(self, notes: impl IntoIterator<Item = String>) -> Self {
        notes.into_iter().fold(self, Self::note)
    }

    pub fn hint(self, hint: impl Into<String>) {
        self.0.hint = hint.into();
    }
}
