//! The `ctest` crate compares types of fields, and of functions only that they exist. So functions become fields: of a
//! structure of function pointers, which C declares with the types that its header gives them.

use std::fmt::Write;

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::parse_quote;

/// Functions that both sides declare.
#[derive(Default)]
pub struct Signatures(pub Vec<syn::Signature>);

impl Signatures {
    /// The structure, as Rust has it.
    pub fn declaration(&self, name: &str) -> syn::ItemStruct {
        let structure = syn::Ident::new(name, Span::call_site());
        let names = self.0.iter().map(|function| &function.ident);
        let types = self.0.iter().map(|function| -> syn::Type {
            let (inputs, output) = (&function.inputs, &function.output);
            parse_quote!(Option<unsafe extern "C" fn(#inputs) #output>)
        });
        parse_quote! {
            #[repr(C)]
            pub struct #structure { #(pub #names: #types,)* }
        }
    }

    /// The structure for C or, with the `scope` `::`, for C++.
    pub fn header(&self, name: &str, scope: &str) -> String {
        let mut text = format!("struct {name} {{\n");
        for function in self.0.iter().map(|function| &function.ident) {
            writeln!(text, "    __typeof__(&{scope}{function}) {function};").expect("memory");
        }
        text + "};\n"
    }
}

/// What stands in the `functions!` of a crate.
pub struct Functions(pub Vec<syn::Signature>);

impl Parse for Functions {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut functions = Vec::new();
        while !input.is_empty() {
            functions.push(input.parse::<syn::ForeignItemFn>()?.sig);
        }
        Ok(Self(functions))
    }
}
