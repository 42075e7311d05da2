//! With the feature `bindgen`, the declarations are made from a toolkit's headers.

fn main() {
    #[cfg(feature = "bindgen")]
    generate::declarations();
}

#[cfg(feature = "bindgen")]
mod generate {
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    use bindgen::callbacks::{IntKind, ParseCallbacks};
    use bindgen::{Builder, CodegenConfig, EnumVariation, Formatter, RustEdition};

    /// The headers; some versions of CANN have communicators in one of their own.
    const HEADERS: &str = "
        #include <acl/acl_rt.h>
        #include <hccl/hccl.h>
        #if __has_include(<hccl/hccl_comm.h>)
        #include <hccl/hccl_comm.h>
        #endif
    ";

    /// Writes `declarations.rs`, in the form of `src/declarations`.
    pub fn declarations() {
        let types = builder().with_codegen_config(CodegenConfig::TYPES | CodegenConfig::VARS);
        let functions = builder().with_codegen_config(CodegenConfig::FUNCTIONS);
        let text = |builder: Builder| builder.generate().expect("CANN's headers").to_string();
        let functions = text(functions).replace("unsafe extern \"C\" {", "functions! {");
        let out = env::var_os("OUT_DIR").expect("set by Cargo");
        fs::write(Path::new(&out).join("declarations.rs"), text(types) + &functions).expect("a writable folder");
    }

    fn builder() -> Builder {
        let headers = Builder::default()
            .header_contents("cann.hpp", HEADERS)
            .clang_args(include_directories().iter().map(|directory| format!("-isystem{}", directory.display())))
            .rust_edition(RustEdition::Edition2024)
            .formatter(Formatter::None)
            .generate_comments(false)
            .layout_tests(false)
            .default_enum_style(EnumVariation::Consts)
            .prepend_enum_name(false)
            .parse_callbacks(Box::new(Macros));
        declared().iter().fold(headers, Builder::allowlist_item)
    }

    /// The names that `src/declarations` has.
    fn declared() -> Vec<String> {
        let mut names = Vec::new();
        println!("cargo:rerun-if-changed=src/declarations");
        for file in fs::read_dir("src/declarations").expect("a folder") {
            for line in fs::read_to_string(file.expect("a file").path()).expect("a source").lines() {
                let words = line.trim().strip_prefix("pub ").and_then(|item| item.split_once(' '));
                if let Some((_, name)) =
                    words.filter(|(kind, _)| ["type", "const", "struct", "union", "fn"].contains(kind))
                {
                    names.extend(name.split(|c: char| !c.is_alphanumeric() && c != '_').next().map(String::from));
                }
            }
        }
        names
    }

    /// Where the headers are: as `CANN_INCLUDE` says, or in the toolkit.
    fn include_directories() -> Vec<PathBuf> {
        println!("cargo:rerun-if-env-changed=CANN_INCLUDE");
        println!("cargo:rerun-if-env-changed=ASCEND_HOME_PATH");
        if let Some(directories) = env::var_os("CANN_INCLUDE") {
            return env::split_paths(&directories).collect();
        }
        let home = env::var_os("ASCEND_HOME_PATH").expect("CANN_INCLUDE or ASCEND_HOME_PATH");
        vec![Path::new(&home).join("include")]
    }

    /// The types of constants that are macros, and so have none in C.
    #[derive(Debug)]
    struct Macros;

    impl ParseCallbacks for Macros {
        fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
            if name.starts_with("ACL_ERROR_") || name == "ACL_SUCCESS" {
                Some(IntKind::Int)
            } else if name.contains("_EXPORT_FLAG_") {
                Some(IntKind::U64)
            } else {
                Some(IntKind::U32)
            }
        }
    }
}
