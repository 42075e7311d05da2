//! What pld uses of OpenUCX: contexts, workers, endpoints and active messages of its layer UCP. The libraries belong to
//! the machine, so nothing is linked: [`Ucx`] holds their functions, loaded when they are first wanted. Names, types and
//! values are those of UCX's headers, and so is their documentation.
#![allow(non_camel_case_types, reason = "the names of C")]

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

mod declarations;
mod load;
mod quiet;

pub use declarations::*;
pub use load::{LoadError, Ucx};
