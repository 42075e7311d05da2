//! The shared library exports what `include/pld.h` declares, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn library_exports_the_functions_of_the_header() {
    let library = library();
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().expect("nm of binutils");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout).expect("symbols in UTF-8");
    let exported: BTreeSet<&str> = listing.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/pld.h");
    let header = std::fs::read_to_string(path).expect("the header");
    let declared: BTreeSet<&str> = header.split("PLD_API").filter_map(declared_name).collect();

    assert!(declared.len() > 80, "{declared:?}");
    let missing: Vec<_> = declared.difference(&exported).collect();
    let extra: Vec<_> = exported.difference(&declared).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:?}, extra: {extra:?}");
}

/// The library that Cargo builds for this test: beside its executable.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this executable");
    test.with_file_name("libpld.so")
}

/// The function that a declaration declares: `pld_status_t pld_launch(...`.
fn declared_name(declaration: &str) -> Option<&str> {
    let (head, _) = declaration.split_once('(')?;
    let name = head.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    name.starts_with("pld_").then_some(name)
}
