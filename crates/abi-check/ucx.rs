//! Reads `crates/ucx-sys` as bindings to OpenUCX, to be compared with its headers.

use std::path::{Path, PathBuf};
use std::{env, fs};

use ctest::TestGenerator;
use quote::quote;
use syn::{Item, parse_quote};

use crate::signatures::{Functions, Signatures};

/// The header that has all of it.
const HEADER: &str = "#include <ucp/api/ucp.h>\n";

/// The version that the declarations describe, and structures that later versions have made longer. They read of what is
/// longer only what a structure's mask says is there.
const MINOR: u32 = 13;
const LONGER: [&str; 2] = ["ucp_params_t", "ucp_request_param_t"];

/// Makes the test if there are headers: those in the directory `UCX_INCLUDE`, or Debian's.
pub fn generate(root: &Path, out: &Path) {
    println!("cargo:rustc-check-cfg=cfg(ucx_headers)");
    println!("cargo:rerun-if-env-changed=UCX_INCLUDE");
    let include = env::var_os("UCX_INCLUDE").map_or_else(|| PathBuf::from("/usr/include"), PathBuf::from);
    let Some(minor) = minor(&include) else { return };
    println!("cargo:rustc-cfg=ucx_headers");

    let mut items: Vec<Item> = vec![parse_quote!(
        use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
    )];
    let mut signatures = Signatures::default();
    let folder = root.join("crates/ucx-sys/src/declarations");
    println!("cargo:rerun-if-changed={}", folder.display());
    for file in fs::read_dir(folder).expect("a folder") {
        let source = fs::read_to_string(file.expect("a file").path()).expect("a source");
        // The types of several files stand side by side here.
        let source = source.replace("super::", "");
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
    assert!(items.len() > 30 && signatures.0.len() >= 20, "crates/ucx-sys was not understood");

    let functions = signatures.declaration("UcxSignatures");
    fs::write(out.join("ucx_bindings.rs"), quote!(#(#items)* #functions).to_string()).expect("a writable folder");
    let header = HEADER.to_owned() + &enumerations(&items) + &signatures.header("UcxSignatures", "");
    fs::write(out.join("ucx_signatures.h"), header).expect("a writable folder");

    let mut test = TestGenerator::new();
    test.edition(2024).include(out).flag("-isystem").flag(include.to_str().expect("UTF-8"));
    test.header("ucx_signatures.h");
    test.rename_struct_ty(|name| Some(if name == "UcxSignatures" { format!("struct {name}") } else { name.into() }));
    // Nobody knows what these are.
    test.skip_alias(|item| ["ucp_address_t", "ucp_config_t"].contains(&item.ident()));
    // Unions, of which one member is used, and pointers to what is not used here.
    let unused = ["cb", "recv_info", "memh", "addr", "conn_request"];
    test.skip_struct_field_type(move |_, field| unused.contains(&field.ident()));
    test.skip_struct(move |item| minor > MINOR && LONGER.contains(&item.ident()));
    ctest::generate_test(&mut test, out.join("ucx_bindings.rs"), "ucx_test.rs").expect("a test");
}

/// Enumerations that have no name of a type in C get one.
fn enumerations(items: &[Item]) -> String {
    let names = items.iter().filter_map(|item| match item {
        Item::Type(alias) => Some(alias.ident.to_string()),
        _ => None,
    });
    let tags = names.filter(|name| !name.ends_with("_t") && !name.ends_with("_h"));
    tags.map(|name| format!("typedef enum {name} {name};\n")).collect()
}

/// The minor version that headers have, if there are any.
fn minor(include: &Path) -> Option<u32> {
    let header = include.join("ucp/api/ucp_version.h");
    println!("cargo:rerun-if-changed={}", header.display());
    let text = fs::read_to_string(header).ok()?;
    let line = text.lines().find(|line| line.contains("define UCP_API_MINOR"))?;
    line.split_whitespace().last()?.parse().ok()
}
