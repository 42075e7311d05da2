//! Reads `crates/hccl-sys` as bindings to CANN, to be compared with the vendor's headers.

use std::path::{Path, PathBuf};
use std::{env, fs};

use ctest::{Language, TestGenerator};
use quote::quote;
use syn::{Item, parse_quote};

use crate::signatures::{Functions, Signatures};

/// The headers; some versions of CANN have communicators in one of their own.
const HEADERS: &str = "
#include <acl/acl_rt.h>
#include <hccl/hccl.h>
#if __has_include(<hccl/hccl_comm.h>)
#include <hccl/hccl_comm.h>
#endif
";

/// Makes the test if there are headers: those in the directories of `CANN_INCLUDE`, or of an installed toolkit.
pub fn generate(root: &Path, out: &Path) {
    println!("cargo:rustc-check-cfg=cfg(cann_headers)");
    let Some(include) = include_directories() else { return };
    println!("cargo:rustc-cfg=cann_headers");

    let mut items: Vec<Item> = vec![parse_quote!(
        use std::ffi::{c_char, c_int, c_uint, c_void};
    )];
    let mut signatures = Signatures::default();
    let folder = root.join("crates/hccl-sys/src/declarations");
    println!("cargo:rerun-if-changed={}", folder.display());
    for file in fs::read_dir(folder).expect("a folder") {
        let source = fs::read_to_string(file.expect("a file").path()).expect("a source");
        for item in syn::parse_file(&source).expect("Rust").items {
            match item {
                Item::Macro(functions) => {
                    signatures.0.extend(functions.mac.parse_body::<Functions>().expect("functions").0)
                }
                Item::Use(_) => {}
                item => items.push(item),
            }
        }
    }
    assert!(items.len() > 100 && signatures.0.len() > 50, "crates/hccl-sys was not understood");

    let functions = signatures.declaration("CannSignatures");
    fs::write(out.join("cann_bindings.rs"), quote!(#(#items)* #functions).to_string()).expect("a writable folder");
    let header = HEADERS.to_owned() + &signatures.header("CannSignatures", "::");
    fs::write(out.join("cann_signatures.h"), header).expect("a writable folder");

    let mut test = TestGenerator::new();
    // HCCL's headers are C++.
    test.edition(2024).language(Language::CXX).include(out);
    for directory in include {
        test.flag("-isystem").flag(directory.to_str().expect("UTF-8"));
    }
    test.header("cann_signatures.h");
    test.rename_struct_ty(|name| Some(name.into())).rename_union_ty(|name| Some(name.into()));
    // C++ compares an enumeration's values as int, whatever holds them.
    test.skip_signededness(|name| name != "aclError");
    test.skip_struct(|item| item.ident() == "aclrtLaunchKernelCfg");
    test.rename_struct_field(|_, field| (field.ident() == "type_").then(|| "type".into()));
    ctest::generate_test(&mut test, out.join("cann_bindings.rs"), "cann_test.rs").expect("a test");
}

fn include_directories() -> Option<Vec<PathBuf>> {
    println!("cargo:rerun-if-env-changed=CANN_INCLUDE");
    println!("cargo:rerun-if-env-changed=ASCEND_HOME_PATH");
    if let Some(directories) = env::var_os("CANN_INCLUDE") {
        return Some(env::split_paths(&directories).collect());
    }
    let include = Path::new(&env::var_os("ASCEND_HOME_PATH")?).join("include");
    include.join("acl/acl_rt.h").exists().then(|| vec![include])
}
