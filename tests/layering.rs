//! Who may know whom. `ARCHITECTURE.md` draws it; this test holds it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer, and the layers that it may use besides itself.
const LAYERS: &[(&str, &[&str])] = &[
    ("capi", &["runtime", "transport", "check", "passes", "verify", "ir", "error"]),
    ("runtime", &["transport", "codegen", "passes", "verify", "ir", "environment", "random", "error"]),
    ("transport", &["environment", "error"]),
    ("check", &["passes", "verify", "ir", "random", "error"]),
    ("codegen", &["kernels", "passes", "verify", "ir", "error"]),
    ("kernels", &["ir", "error"]),
    ("passes", &["verify", "ir", "error"]),
    ("verify", &["ir", "error"]),
    ("ir", &["error"]),
    ("environment", &[]),
    ("random", &[]),
    ("error", &[]),
];

/// Where memory is touched directly.
const UNSAFE: &[&str] = &["capi", "runtime", "transport", "codegen", "kernels"];

/// What the layers below the runtime do not do: they are the same on every machine and every day.
const IMPURE: &[&str] = &["std::env", "std::fs", "std::net", "std::process", "std::thread", "std::time", "std::io"];
const PURE: &[&str] = &["check", "codegen", "passes", "verify", "ir"];

#[test]
fn modules_use_only_what_they_may() {
    let mut wrong = Vec::new();
    for source in sources() {
        let (_, allowed) = LAYERS
            .iter()
            .find(|(name, _)| *name == source.layer)
            .unwrap_or_else(|| panic!("{}: layer {:?} is not in the list", source.path.display(), source.layer));
        for used in source.uses() {
            if used != source.layer && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{} uses crate::{used}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unsafe_code_and_exports_are_where_they_belong() {
    let mut wrong = Vec::new();
    for source in sources() {
        let layer = source.layer.as_str();
        if source.code.contains("unsafe") && !UNSAFE.contains(&layer) {
            wrong.push(format!("{} has unsafe code", source.path.display()));
        }
        if ["no_mangle", "export_name"].iter().any(|word| source.code.contains(word)) && layer != "capi" {
            wrong.push(format!("{} exports a symbol", source.path.display()));
        }
        if layer != "environment" && ["env::var", "env::set_var"].iter().any(|word| source.code.contains(word)) {
            wrong.push(format!("{} looks into the environment", source.path.display()));
        }
        for word in IMPURE.iter().filter(|_| PURE.contains(&layer)) {
            if source.code.contains(word) {
                wrong.push(format!("{} uses {word}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A source file without its comments.
struct Source {
    path: PathBuf,
    layer: String,
    code: String,
}

impl Source {
    /// The layers that it names: in `crate::ir::…` and in `crate::{ir::…, error::…}`.
    fn uses(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for path in self.code.split("crate::").skip(1) {
            match path.strip_prefix('{') {
                None => used.extend(first_name(path)),
                Some(list) => {
                    let mut depth = 0;
                    let mut begin = true;
                    for (at, c) in list.char_indices() {
                        if begin && depth == 0 && c.is_alphabetic() {
                            used.extend(first_name(&list[at..]));
                            begin = false;
                        }
                        match c {
                            '{' => depth += 1,
                            '}' if depth == 0 => break,
                            '}' => depth -= 1,
                            ',' if depth == 0 => begin = true,
                            _ => {}
                        }
                    }
                }
            }
        }
        used
    }
}

fn first_name(path: &str) -> Option<String> {
    let name: String = path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The sources of the library, without files of tests; what stands at its root only names the layers.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(&folder).expect("a folder") {
            let path = item.expect("an item").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(&root).expect("a path below src");
            let layer = inside.components().next().expect("a name").as_os_str().to_string_lossy();
            let layer = layer.trim_end_matches(".rs").to_owned();
            let test = path.ends_with("tests.rs");
            if path.extension().is_some_and(|e| e == "rs") && layer != "lib" && !test {
                let text = fs::read_to_string(&path).expect("a source");
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let code = code.collect::<Vec<_>>().join("\n");
                found.push(Source { path: inside.into(), layer, code });
            }
        }
    }
    assert!(found.len() > 40, "{} sources", found.len());
    found
}
