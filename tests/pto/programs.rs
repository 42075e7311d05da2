//! The programs of the repository, and their kernels.

use std::borrow::Cow;
use std::path::Path;

use pld::codegen::pto::{Module, Options, emit};
use pld::error::Result;
use pld::ir::Program;
use pld::ir::parse::parse;
use pld::passes::expand_collectives::{self, expand_collectives};
use pld::passes::plan_windows::{Layout, plan_windows};
use pld::verify::verify;

/// The name and the text of every program in files.
pub fn all() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs = Vec::new();
    for folder in ["tests/conformance", "examples/pld"] {
        for file in std::fs::read_dir(root.join(folder)).expect("the folder is there") {
            let path = file.expect("the folder can be read").path();
            if path.extension().is_some_and(|extension| extension == "pld") {
                let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
                programs.push((name, std::fs::read_to_string(&path).expect("the file can be read")));
            }
        }
    }
    programs.sort();
    programs
}

/// The program; none if it is not for worlds of this size.
pub fn parsed(text: &str, nranks: u32) -> Option<Program> {
    let program = parse(text, "test.pld").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
    verify(&program, Some(nranks)).is_empty().then_some(program)
}

/// Its kernels.
pub fn emitted(program: &Program, options: &Options) -> Result<Module> {
    let (program, layout) = prepared(program, options)?;
    emit(&program, &layout, options)
}

/// The program without collectives, and the places of its windows.
pub fn prepared<'p>(program: &'p Program, options: &Options) -> Result<(Cow<'p, Program>, Layout)> {
    let target =
        expand_collectives::Target { checked: options.checked, ..expand_collectives::Target::new(options.nranks) };
    let program = expand_collectives(program, &target)?;
    let layout = plan_windows(&program, options.nranks)?;
    Ok((program, layout))
}
