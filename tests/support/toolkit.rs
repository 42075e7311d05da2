//! A simulated CANN.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The toolkit directory of the simulated CANN (`tests/cann_sim`), for `ASCEND_HOME_PATH`: made when it is first wanted.
pub fn toolkit() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cann_sim");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cann_sim/toolkit.sh");
    let made = Command::new(&script).arg(&home).output().expect("the toolkit's script");
    assert!(made.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&made.stderr));
    home
}
