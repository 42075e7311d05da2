//! Makes C and Rust code that compares headers with Rust declarations, by the `ctest` crate.

mod cann;
mod pld;
mod signatures;
mod ucx;

use std::env;
use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = env::var_os("OUT_DIR").expect("set by Cargo");
    pld::generate(&root, Path::new(&out));
    cann::generate(&root, Path::new(&out));
    ucx::generate(&root, Path::new(&out));
}
