//! The programs of the repository.

use std::path::Path;

use pld::ir::Program;
use pld::ir::parse::parse;
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
