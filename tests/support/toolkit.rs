//! A simulated CANN. The environment says what it is like:
//!
//! - `CANN_SIM_DEVICES`, `CANN_SIM_CORES`, `CANN_SIM_MEMORY`: cards of the host (8), blocks that a card runs at once (48), its
//!   bytes; `CANN_SIM_SOC`, `CANN_SIM_VERSION`: what cards and ACL say that they are; `CANN_SIM_FABRIC=0`: no fabric handles.
//! - `CANN_SIM_FAIL=FUNCTION:N=CODE,…`: call N of a function fails with the code; `*` for N means every call.
//! - `CANN_SIM_REPORT=FILE`: gets the process's calls and live objects as JSON when it ends; `%p` in the name is its number.
//! - `ASCEND_RT_VISIBLE_DEVICES`, `HCCL_CONNECT_TIMEOUT` and `HCCL_EXEC_TIMEOUT` mean what they mean to CANN.

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
