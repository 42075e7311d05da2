//! `pld fmt`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use pld::ir::print::print;

use crate::comments::with_comments;
use crate::console::{self, STRONG};
use crate::exit::{Exit, Failure, Result};
use crate::source::Source;

const EXAMPLES: &str = "\
Examples:
  pld fmt exchange.pld                 in place
  pld fmt --check examples/pld/*.pld   names the files that would change, and exits with 1 if there are any
  pld fmt - < exchange.pld             from standard input to standard output";

/// Writes programs in the one form that the library prints; comments and single blank lines stay
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Fmt {
    /// Programs; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing
    #[arg(long)]
    check: bool,
}

impl Fmt {
    /// Formats every file that can be formatted.
    pub fn run(self) -> Result<Exit> {
        let mut exit = Exit::Ok;
        for path in &self.files {
            let formatted = Source::read(path).and_then(|source| self.file(&source));
            match formatted {
                Ok(Exit::Ok) => {}
                Ok(other) => exit = other,
                Err(failure) if failure.exit == Exit::Closed => return Err(failure),
                Err(failure) => {
                    console::error(&failure.message)?;
                    exit = failure.exit;
                }
            }
        }
        Ok(exit)
    }

    fn file(&self, source: &Source) -> Result<Exit> {
        let formatted = format(source)?;
        if self.check {
            if formatted == source.text {
                return Ok(Exit::Ok);
            }
            console::print(format!("{STRONG}{}{STRONG:#} is not formatted\n", source.name))?;
            return Ok(Exit::Findings);
        }
        match &source.path {
            None => console::print(&formatted)?,
            Some(_) if formatted == source.text => {}
            Some(path) => fs::write(path, &formatted).map_err(|cause| Failure::file(path, cause))?,
        }
        Ok(Exit::Ok)
    }
}

fn format(source: &Source) -> Result<String> {
    let program = source.parsed()?;
    let printed = print(&program);
    let formatted = with_comments(&source.text, &printed);
    // Better no format than another program.
    let again = Source { text: formatted, name: source.name.clone(), path: None };
    match again.parse() {
        Ok(same) if print(&same) == printed => Ok(again.text),
        _ => {
            let message =
                format!("{}: its comments have no place in the formatted text; it stays as it is", source.name);
            Err(Failure { exit: Exit::Findings, message })
        }
    }
}
