//! Reads `src/capi` as bindings to a foreign library, to be compared with `include/pld.h`.

use std::fs;
use std::path::Path;

use quote::{ToTokens, quote};
use syn::{FnArg, GenericArgument, Item, PathArguments, ReturnType, Type, parse_quote};

use crate::signatures::Signatures;

/// Pointer types of `src/capi/pointer.rs` and `options.rs`, which are plain pointers in C.
const POINTERS: &[(&str, &str)] = &[
    ("Args", "*const pld_arg_t"),
    ("Bytes", "*const c_void"),
    ("BytesOut", "*mut c_void"),
    ("CallbackArgs", "*const pld_callback_arg_t"),
    ("Callbacks", "*const pld_callback_t"),
    ("CheckOptions", "*const pld_check_options_t"),
    ("CheckOptionsOut", "*mut pld_check_options_t"),
    ("CheckReportOut", "*mut pld_check_report_t"),
    ("CollectiveOptions", "*const pld_collective_options_t"),
    ("CollectiveOptionsOut", "*mut pld_collective_options_t"),
    ("CompileOptions", "*const pld_compile_options_t"),
    ("CompileOptionsOut", "*mut pld_compile_options_t"),
    ("Devices", "*const i32"),
    ("Dims", "*const pld_dim_t"),
    ("DlTensor", "*const DLManagedTensor"),
    ("Executable", "*mut pld_executable_t"),
    ("ExpandOptions", "*const pld_expand_options_t"),
    ("ExpandOptionsOut", "*mut pld_expand_options_t"),
    ("Operands", "*const pld_operand_t"),
    ("PredicatePtr", "*const pld_predicate_t"),
    ("Resident", "*mut pld_resident_t"),
    ("Run", "*mut pld_run_t"),
    ("Scalars", "*const pld_scalar_t"),
    ("TaskOptions", "*const pld_task_options_t"),
    ("TaskOptionsOut", "*mut pld_task_options_t"),
    ("Tasks", "*const pld_task_t"),
    ("TensorHandles", "*const pld_tensor_t"),
    ("Tensors", "*const pld_tensor_arg_t"),
    ("NativeStream", "*mut c_void"),
    ("Text", "*const c_char"),
    ("TextBuffer", "*mut c_char"),
    ("World", "*mut pld_world_t"),
    ("WorldOptions", "*const pld_world_options_t"),
    ("WorldOptionsOut", "*mut pld_world_options_t"),
];

/// Makes the test.
pub fn generate(root: &Path, out: &Path) {
    let capi = root.join("src/capi");
    println!("cargo:rerun-if-changed={}", capi.display());
    println!("cargo:rerun-if-changed={}", root.join("include/pld.h").display());

    let mut files: Vec<_> = fs::read_dir(&capi).expect("src/capi").map(|f| f.expect("a file").path()).collect();
    files.sort();
    let mut bindings = Bindings::default();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
        let source = fs::read_to_string(file).expect("a source");
        for item in syn::parse_file(&source).expect("Rust").items {
            bindings.add(item);
        }
    }
    assert!(bindings.functions.0.len() > 80 && bindings.structs.len() > 8, "src/capi was not understood");

    fs::write(out.join("pld_bindings.rs"), bindings.text()).expect("a writable folder");
    fs::write(out.join("pld_signatures.h"), bindings.functions.header("PldSignatures", "")).expect("a writable folder");

    let mut test = ctest::TestGenerator::new();
    test.edition(2024).define("PLD_NO_LOCATIONS", None);
    test.header("pld.h").include(root.join("include")).header("pld_signatures.h").include(out);
    test.rename_type(|name| (name == "DLManagedTensor").then(|| "struct DLManagedTensor".into()));
    test.skip_struct(move |item| bindings.opaque.iter().any(|name| name == item.ident()));
    ctest::generate_test(&mut test, out.join("pld_bindings.rs"), "pld_test.rs").expect("a test");
}

/// The declarations as those of a foreign library.
#[derive(Default)]
struct Bindings {
    aliases: Vec<syn::ItemType>,
    constants: Vec<syn::ItemConst>,
    structs: Vec<syn::ItemStruct>,
    /// Types of which C knows the name only.
    opaque: Vec<syn::Ident>,
    functions: Signatures,
}

impl Bindings {
    fn add(&mut self, item: Item) {
        match item {
            Item::Type(mut alias) if is_of_c(&alias.ident) => {
                alias.attrs.clear();
                *alias.ty = plain(&alias.ty);
                self.aliases.push(alias);
            }
            Item::Const(mut constant) if constant.ident.to_string().starts_with("PLD_") && is_public(&constant.vis) => {
                constant.attrs.clear();
                self.constants.push(constant);
            }
            Item::Struct(mut item) if is_of_c(&item.ident) && has(&item.attrs, "repr") => {
                item.attrs = vec![parse_quote!(#[repr(C)])];
                for field in &mut item.fields {
                    field.attrs.clear();
                    field.ty = plain(&field.ty);
                }
                self.structs.push(item);
            }
            Item::Struct(item) if is_of_c(&item.ident) || item.ident == "DLManagedTensor" => {
                self.opaque.push(item.ident)
            }
            Item::Enum(item) if item.ident.to_string().starts_with("pld_") => self.add_enum(&item),
            Item::Fn(function) if has(&function.attrs, "unsafe") => self.add_function(function.sig),
            _ => {}
        }
    }

    /// An enum's values, which have the type that the functions take.
    fn add_enum(&mut self, item: &syn::ItemEnum) {
        let ty = syn::Ident::new(&format!("{}_t", item.ident), item.ident.span());
        for variant in &item.variants {
            let (name, (_, value)) = (&variant.ident, variant.discriminant.as_ref().expect("an explicit value"));
            self.constants.push(parse_quote!(pub const #name: #ty = #value;));
        }
    }

    fn add_function(&mut self, mut function: syn::Signature) {
        for input in &mut function.inputs {
            if let FnArg::Typed(argument) = input {
                *argument.ty = plain(&argument.ty);
            }
        }
        if let ReturnType::Type(_, ty) = &mut function.output {
            **ty = plain(ty);
        }
        function.abi = None;
        self.functions.0.push(function);
    }

    fn text(&self) -> String {
        let Self { aliases, constants, structs, opaque, functions } = self;
        let (signatures, functions) = (functions.declaration("PldSignatures"), &functions.0);
        quote! {
            use std::ffi::{c_char, c_void};
            #(#aliases)*
            #(#constants)*
            #(#structs)*
            #(#[repr(C)] pub struct #opaque { of: [u8; 0] })*
            #signatures
            unsafe extern "C" { #(pub #functions;)* }
        }
        .to_string()
    }
}

fn is_of_c(name: &syn::Ident) -> bool {
    name.to_string().starts_with("pld_")
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

fn has(attributes: &[syn::Attribute], name: &str) -> bool {
    attributes.iter().any(|a| a.path().is_ident(name))
}

/// A type as C sees it: references and boxes are pointers.
fn plain(ty: &Type) -> Type {
    match ty {
        Type::Reference(reference) => {
            let target = plain(&reference.elem);
            if reference.mutability.is_some() { parse_quote!(*mut #target) } else { parse_quote!(*const #target) }
        }
        Type::Path(path) => {
            let last = path.path.segments.last().expect("a name");
            if let Some((_, pointer)) = POINTERS.iter().find(|(name, _)| last.ident == name) {
                return syn::parse_str(pointer).expect("a pointer");
            }
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return ty.clone() };
            let Some(GenericArgument::Type(inner)) = arguments.args.first() else { return ty.clone() };
            match (last.ident.to_string().as_str(), inner) {
                // A function pointer stays optional.
                ("Option", Type::BareFn(_)) => ty.clone(),
                ("Option" | "MaybeUninit", _) => plain(inner),
                ("Box", _) => {
                    let target = plain(inner);
                    parse_quote!(*mut #target)
                }
                _ => panic!("a type that C has not: {}", ty.to_token_stream()),
            }
        }
        _ => ty.clone(),
    }
}
