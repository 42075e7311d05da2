//! Documents that tests hold against what they are about.

use std::path::Path;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the project.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The document is as it has to be; `PLD_TEST_BLESS=1` makes it so.
pub fn bless(path: &str, document: &str, right: &str) {
    if right != document {
        assert!(std::env::var_os("PLD_TEST_BLESS").is_some(), "{path} is not right; it has to be\n{right}");
        std::fs::write(root().join(path), right).expect("the document is writable");
    }
}
