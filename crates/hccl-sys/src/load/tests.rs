//! Toolkits, most of them no good, made here with a C compiler.

use std::ffi::CStr;
use std::fs;
use std::process::{self, Command};

use super::*;

/// A toolkit's directory of libraries that have the functions they are given, all doing nothing.
struct Toolkit(PathBuf);

impl Toolkit {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("hccl-sys-{}-{name}", process::id()));
        fs::create_dir_all(home.join("lib64")).expect("a writable folder");
        Self(home)
    }

    /// A toolkit with every function but `missing`.
    fn without(missing: &str) -> Self {
        let [acl, hccl] = REQUIRED.map(|names| {
            let names: Vec<_> = names.iter().copied().filter(|name| *name != missing).collect();
            nothings(&names)
        });
        Self::new(missing).library("libascendcl.so", acl).library("libhccl.so", hccl)
    }

    fn library(self, name: &str, functions: Vec<String>) -> Self {
        let source = self.0.join("library.c");
        fs::write(&source, functions.join("\n")).expect("a writable folder");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-o"])
            .arg(self.0.join("lib64").join(name))
            .arg(source)
            .status();
        assert!(built.expect("a C compiler").success(), "{name}");
        self
    }

    fn load(&self) -> Result<Cann, LoadError> {
        Cann::load(Some(&self.0))
    }

    fn refused(&self) -> String {
        self.load().err().expect("a toolkit that is no good").to_string()
    }

    /// The path of a library, as messages have it.
    fn path(&self, name: &str) -> String {
        self.0.join("lib64").join(name).display().to_string()
    }
}

impl Drop for Toolkit {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn nothing(name: &str) -> String {
    if name == "aclrtGetVersion" { version(1) } else { format!("int {name}(void) {{ return 0; }}") }
}

fn nothings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| nothing(name)).collect()
}

fn version(major: i32) -> String {
    format!(
        "int aclrtGetVersion(int *major, int *minor, int *patch)
         {{ *major = {major}; *minor = 17; *patch = 3; return 0; }}"
    )
}

#[test]
fn without_a_toolkit_the_message_names_the_library_and_the_variable() {
    let error = Libraries::open(None, &["libnot_in_any_toolkit.so"]).err().expect("no such library").to_string();
    assert!(error.starts_with("CANN was not found: libnot_in_any_toolkit.so cannot be loaded ("), "{error}");
    assert!(
        error.ends_with(". Set ASCEND_HOME_PATH to the toolkit's directory, as the toolkit's set_env.sh does"),
        "{error}"
    );
}

#[test]
fn a_directory_that_is_no_toolkit_is_named() {
    let empty = Toolkit::new("empty");
    let error = empty.refused();
    assert!(error.contains(&empty.path("libascendcl.so")), "{error}");
    assert!(error.contains("ASCEND_HOME_PATH should name the toolkit's directory"), "{error}");
}

#[test]
fn what_is_no_library_is_told_in_the_linkers_words() {
    let toolkit = Toolkit::new("text");
    fs::write(
        toolkit.path("libascendcl.so"),
        "this is text, and not a library at all: longer than a header of one, though",
    )
    .expect("a writable folder");
    let error = toolkit.refused();
    assert!(error.contains("invalid ELF header"), "{error}");
}

#[test]
fn both_libraries_of_hccl_are_looked_for() {
    let toolkit = Toolkit::new("no-hccl").library("libascendcl.so", nothings(REQUIRED[0]));
    let error = toolkit.refused();
    for library in ["libhccl.so", "libhcomm.so"] {
        assert!(error.contains(&format!("{} cannot be loaded", toolkit.path(library))), "{error}");
    }
}

#[test]
fn every_function_that_is_missing_is_named() {
    for function in REQUIRED.concat() {
        let toolkit = Toolkit::without(function);
        let library = if REQUIRED[0].contains(&function) { "libascendcl.so" } else { "libhccl.so" };
        let version = if function == "aclrtGetVersion" { "of unknown version" } else { "1.17.3" };
        let expected = format!(
            "this CANN is too old, or not complete: {} (ACL {version}) lacks the function {function}. \
             Install CANN 8.5 or newer",
            toolkit.path(library)
        );
        assert_eq!(toolkit.refused(), expected);
    }
}

#[test]
fn another_interface_is_refused_by_its_version() {
    let toolkit = Toolkit::new("version").library("libascendcl.so", vec![version(2)]);
    let expected = format!(
        "this CANN has another interface: {} has ACL 2.17.3, and ACL 1 is needed. \
         Install a CANN that has it, such as 8.5",
        toolkit.path("libascendcl.so")
    );
    assert_eq!(toolkit.refused(), expected);
}

#[test]
fn functions_of_hccl_are_found_in_either_library() {
    let text = r#"const char *HcclGetErrorString(int code) { return "from hcomm"; }"#;
    let toolkit = Toolkit::without("HcclGetErrorString").library("libhcomm.so", vec![text.into()]);
    let cann = toolkit.load().expect("a toolkit");
    // SAFETY: the function above.
    let found = unsafe { CStr::from_ptr((cann.HcclGetErrorString)(HCCL_E_PARA)) };
    assert_eq!(found.to_str(), Ok("from hcomm"));
}

#[test]
fn optional_functions_may_be_there() {
    let acl = [REQUIRED[0], &["aclrtGetMemInfo"]].concat();
    let toolkit = Toolkit::new("optional").library("libascendcl.so", nothings(&acl));
    let cann = toolkit.library("libhcomm.so", nothings(REQUIRED[1])).load().expect("a toolkit");
    assert!(cann.aclrtGetMemInfo.is_some() && cann.aclrtPointerGetAttributes.is_none());
}

#[test]
fn the_first_toolkit_that_is_loaded_stays() {
    let empty = Toolkit::new("first-empty");
    assert!(Cann::get(Some(&empty.0)).is_err());
    let whole = Toolkit::without("nothing");
    let first = Cann::get(Some(&whole.0)).expect("a toolkit");
    let later = Cann::get(Some(&empty.0)).expect("the same toolkit");
    assert!(std::ptr::eq(first, later));
}
