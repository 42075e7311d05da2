//! Folders of libraries, most of them no good, made here with a C compiler; and the machine's UCX.

use std::fs;
use std::process::{self, Command};

use super::*;

/// A folder of libraries that have the functions they are given, all doing nothing.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ucx-sys-{}-{name}", process::id()));
        fs::create_dir_all(&folder).expect("a writable folder");
        Self(folder)
    }

    /// A UCX with every function but `missing`.
    fn without(missing: &str, version: (u32, u32)) -> Self {
        let hush = ["ucs_global_opts_set_value"];
        let [ucs, ucp] = [[FUNCTIONS[0], &hush].concat(), FUNCTIONS[1].to_vec()].map(|names| {
            let names = names.into_iter().filter(|name| *name != missing);
            names.map(|name| nothing(name, version)).collect::<Vec<_>>()
        });
        Self::new(missing).library(UCS, &ucs).library(UCP, &ucp)
    }

    fn library(self, name: &str, functions: &[String]) -> Self {
        let source = self.0.join("library.c");
        fs::write(&source, functions.join("\n")).expect("a writable folder");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(self.0.join(name)).arg(source).status();
        assert!(built.expect("a C compiler").success(), "{name}");
        self
    }

    fn refused(&self) -> String {
        Ucx::load(Some(&self.0)).err().expect("a UCX that is no good").to_string()
    }

    /// The path of a library, as messages have it.
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn nothing(name: &str, (major, minor): (u32, u32)) -> String {
    if name != "ucp_get_version" {
        return format!("int {name}(void) {{ return 0; }}");
    }
    format!(
        "void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
         {{ *major = {major}; *minor = {minor}; *release = 7; }}"
    )
}

#[test]
fn without_ucx_the_message_says_what_to_install() {
    let empty = Folder::new("empty");
    let error = empty.refused();
    let start = format!("OpenUCX was not found: {} cannot be loaded (", empty.path(UCS));
    assert!(error.starts_with(&start), "{error}");
    let end = "). Install it (Debian's package libucx0, or pip's libucx-cu12), or let PLD_UCX name the folder that has its \
               libraries";
    assert!(error.ends_with(end), "{error}");
}

#[test]
fn every_function_that_is_missing_is_named() {
    for (library, functions) in [(UCS, FUNCTIONS[0]), (UCP, FUNCTIONS[1])] {
        for function in functions {
            let folder = Folder::without(function, (1, 13));
            let expected = format!(
                "this OpenUCX is not complete: {} lacks the function {function}. Install OpenUCX 1.13 or newer",
                folder.path(library)
            );
            assert_eq!(folder.refused(), expected);
        }
    }
}

#[test]
fn another_interface_is_refused_by_its_version() {
    for version in [(1, 12), (2, 0)] {
        let folder = Folder::without("nothing", version);
        let expected = format!(
            "this OpenUCX has version {}.{}.7, and a 1.13 or newer 1.x is needed ({})",
            version.0,
            version.1,
            folder.path(UCP)
        );
        assert_eq!(folder.refused(), expected);
    }
}

#[test]
fn the_machines_ucx_leaves_signals_alone() {
    let handlers = || Signals::save().handlers();
    let before = handlers();
    let ucx = Ucx::get(std::env::var_os("PLD_UCX").as_deref().map(Path::new));
    let ucx = ucx.expect("scripts/setup.sh ucx installs it");
    assert_eq!(handlers(), before);
    assert!(ucx.text(UCS_ERR_UNREACHABLE).to_lowercase().contains("unreachable"));
    assert!(std::ptr::eq(ucx, Ucx::get(Some(Path::new("/nowhere"))).expect("the same")));
}
