//! Kernels for a host that is not this library's runtime.

use std::borrow::Cow;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Program, Severity};
use crate::passes::expand_collectives::{self, expand_collectives};
use crate::passes::plan_windows::{Layout, plan_windows};
use crate::verify::domains::Domains;
use crate::verify::verify;

use super::{Module, Options, emit};

/// A program's kernels, and what a host that launches them must know.
pub struct Export<'p> {
    /// The program that they were made of: it has no collectives.
    pub program: Cow<'p, Program>,
    /// Where its windows lie.
    pub layout: Layout,
    /// Which ranks share them.
    pub domains: Domains,
    /// The kernels.
    pub module: Module,
}

/// Makes the kernels of any program.
///
/// Errors: `Verify` with the first mistake, if it breaks a rule; `NoSpace` if its windows have no size; `Unsupported` where the
/// target cannot do what it asks.
pub fn export<'p>(program: &'p Program, options: &Options) -> Result<Export<'p>> {
    let mistake = verify(program, Some(options.nranks)).into_iter().find(|found| found.severity == Severity::Error);
    if let Some(mistake) = mistake {
        return Err(Error::new(ErrorKind::Verify, mistake.to_string()));
    }
    let target =
        expand_collectives::Target { checked: options.checked, ..expand_collectives::Target::new(options.nranks) };
    let program = expand_collectives(program, &target)?;
    let layout = plan_windows(&program, options.nranks)?;
    let domains = Domains::new(&program, Some(options.nranks));
    let module = emit(&program, &layout, options)?;
    Ok(Export { program, layout, domains, module })
}
