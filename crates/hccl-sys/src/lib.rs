//! What pld and its tests use of CANN's C interfaces: ACL, the runtime of a card, and HCCL, which brings the cards of
//! several ranks together. The libraries belong to the toolkit of the machine, so nothing is linked: [`Cann`] holds their
//! functions, loaded when they are first wanted. Names, types and values are the vendor's, and so is their documentation.
//!
//! With the feature `bindgen` the declarations come from the headers of the toolkit that `ASCEND_HOME_PATH` names, or from
//! the include directories that `CANN_INCLUDE` lists. It needs libclang.
#![allow(non_camel_case_types, non_snake_case, reason = "the names of C")]

/// Function types, each by its function's name.
macro_rules! functions {
    ($(
        $(#[$attribute:meta])*
        pub fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
    )*) => {
        $(
            $(#[$attribute])*
            pub type $name = unsafe extern "C" fn($($argument: $type),*) $(-> $result)?;
        )*
    };
}

#[cfg(not(feature = "bindgen"))]
mod declarations;
#[cfg(feature = "bindgen")]
#[allow(missing_docs, non_upper_case_globals, clippy::all, reason = "all of it is generated")]
mod declarations {
    include!(concat!(env!("OUT_DIR"), "/declarations.rs"));
}
mod load;
mod names;

pub use declarations::*;
pub use load::{Cann, LoadError};
pub use names::{acl_error_name, hccl_result_name};
