//! Environment variables: all are in the library's list, and in the table of `docs/running.md`.

use std::path::Path;

use pld::environment::VARIABLES;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the file is there")
}

#[test]
fn every_variable_is_documented() {
    let document = read("docs/running.md");
    let (_, section) = document.split_once("### Environment variables\n").expect("the section");
    let rows: Vec<&str> =
        section.lines().take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with("| `PLD_")).collect();
    for variable in VARIABLES {
        let name = format!("`{}`", variable.name);
        assert!(rows.iter().any(|row| row.contains(&name)), "{name} is not in the table");
    }
    let named = rows.iter().flat_map(|row| row.split('`')).filter(|word| word.starts_with("PLD_"));
    for name in named {
        assert!(VARIABLES.iter().any(|variable| variable.name == name), "{name} is not in the list");
    }
}
