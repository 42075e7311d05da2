//! Program text, from a file or from standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pld::ir::parse::parse;
use pld::ir::{Diagnostic, Program, Severity};
use pld::verify::verify;

use crate::console;
use crate::excerpt::excerpt;
use crate::exit::{Exit, Failure, Result};

/// A text and the name that messages call it.
pub struct Source {
    /// The name: a path as it was given, or `<stdin>`.
    pub name: String,
    /// Where it is kept; none for standard input.
    pub path: Option<PathBuf>,
    /// The text.
    pub text: String,
}

impl Source {
    /// Reads a file; `-` is standard input.
    pub fn read(path: &Path) -> Result<Self> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "<stdin>".into() } else { path.display().to_string() };
        let bytes = if is_stdin {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(path)
        };
        let bytes = bytes.map_err(|cause| Failure::file(Path::new(&name), cause))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            Failure::file(Path::new(&name), format!("line {line} is not UTF-8, so this is no program text"))
        })?;
        Ok(Self { name, path: (!is_stdin).then(|| path.into()), text })
    }

    /// The program, if the text is one.
    pub fn parse(&self) -> Result<Program, Vec<Diagnostic>> {
        parse(&self.text, &self.name)
    }

    /// The program; or says on standard error why the text is none.
    pub fn parsed(&self) -> Result<Program> {
        self.parse().map_err(|mistakes| self.refuse(&mistakes))
    }

    /// The program, if no rule speaks against it in a world of that size; or says on standard error what is wrong.
    pub fn verified(&self, nranks: Option<u32>) -> Result<Program> {
        let program = self.parsed()?;
        let mut errors = verify(&program, nranks);
        errors.retain(|finding| finding.severity == Severity::Error);
        if errors.is_empty() { Ok(program) } else { Err(self.refuse(&errors)) }
    }

    fn refuse(&self, errors: &[Diagnostic]) -> Failure {
        let shown = errors.iter().try_for_each(|error| console::print_error(excerpt(error, &self.text)));
        let message = format!("{}: {}", self.name, count(errors.len(), "error"));
        shown.map_or_else(Failure::from, |()| Failure { exit: Exit::Findings, message })
    }
}

/// `1 error`, `2 errors`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
