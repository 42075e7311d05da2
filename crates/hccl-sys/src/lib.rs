//! What of CANN's C interfaces pld uses: ACL, the runtime of a card, and HCCL, which brings the ranks' cards together.
//! The libraries belong to the toolkit of the machine, so nothing is linked: [`Cann`] holds their functions, loaded when
//! they are first wanted. Names, types and values are the vendor's; so C's documentation of them holds.
#![allow(non_camel_case_types, non_snake_case, reason = "the names of C")]

/// Function types, each by its function's name.
macro_rules! functions {
    ($(
        $(#[$attribute:meta])*
        pub fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;
    )*) => {
        $(
            $(#[$attribute])*
            pub type $name = unsafe extern "C" fn($($argument: $type),*) -> $result;
        )*
    };
}

mod acl;
mod hccl;
mod load;
mod names;

pub use acl::*;
pub use hccl::*;
pub use load::{Cann, LoadError};
pub use names::{acl_error_name, hccl_result_name};
