//! Pointers to more than one value, as C passes them. Only C callers make them, and the header says what they promise:
//! NULL, or `n` readable values that stay as they are during the call. That promise is what every read here stands on.

use std::ffi::{CStr, c_char, c_void};

use crate::error::{Error, Result};

use super::arg::{DLManagedTensor, pld_arg_t, pld_tensor_arg_t};
use super::callback::{pld_callback_arg_t, pld_callback_t};
use super::dim::pld_dim_t;
use super::executable::pld_executable_t;
use super::host::pld_operand_t;
use super::resident::pld_resident_t;
use super::run::pld_run_t;
use super::scalar::pld_scalar_t;
use super::task::{pld_predicate_t, pld_task_t};
use super::tensor::pld_tensor_t;
use super::world::pld_world_t;

/// A `const char *`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// The NUL-terminated string; none if it is NULL.
    pub(super) fn get<'a>(self) -> Option<&'a CStr> {
        // SAFETY: not NULL, so NUL-terminated and unchanged during the call; see the module.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }

    /// The NUL-terminated string, which must be there and UTF-8.
    pub(super) fn str<'a>(self, what: &str) -> Result<&'a str> {
        let text = self.get().ok_or_else(|| Error::invalid(format!("{what} is NULL")))?;
        text.to_str().map_err(|e| Error::invalid(format!("{what} is not UTF-8 at byte {}", e.valid_up_to())))
    }

    /// `size` bytes of text, which must be UTF-8.
    pub(super) fn str_of_size<'a>(self, size: usize, what: &str) -> Result<&'a str> {
        let bytes: &[u8] = if size == 0 {
            &[]
        } else if self.0.is_null() || size > isize::MAX as usize {
            return Err(absent(what, size));
        } else {
            // SAFETY: not NULL, so `size` readable bytes; see the module.
            unsafe { std::slice::from_raw_parts(self.0.cast(), size) }
        };
        std::str::from_utf8(bytes)
            .map_err(|e| Error::invalid(format!("{what} is not UTF-8 at byte {}", e.valid_up_to())))
    }
}

/// A `char *` to write to.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct TextBuffer(*mut c_char);

impl TextBuffer {
    /// Writes `text`, cut to `size` bytes at a whole character, with a terminating NUL. Nothing without space.
    pub(super) fn write(self, text: &str, size: usize) {
        if self.0.is_null() || size == 0 {
            return;
        }
        let cut = text.floor_char_boundary(size - 1);
        // SAFETY: not NULL, so `size` writable bytes, and `cut` is less than that; `text` is the library's own.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), self.0, cut);
            self.0.add(cut).write(0);
        }
    }
}

/// A `const void *` to bytes to read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bytes(*const c_void);

impl Bytes {
    /// Memory that another argument of the caller points to.
    pub(super) fn at(data: *const c_void) -> Self {
        Self(data)
    }

    /// The `size` bytes, which must be there.
    pub(super) fn get<'a>(self, size: usize, what: &str) -> Result<&'a [u8]> {
        match size {
            0 => Ok(&[]),
            _ if self.0.is_null() || size > isize::MAX as usize => Err(absent(what, size)),
            // SAFETY: not NULL, so `size` readable bytes; see the module.
            _ => Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), size) }),
        }
    }
}

/// A `void *` to bytes to write.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct BytesOut(*mut c_void);

impl BytesOut {
    /// The `size` bytes, which must be there.
    pub(super) fn get<'a>(self, size: usize, what: &str) -> Result<&'a mut [u8]> {
        match size {
            0 => Ok(&mut []),
            _ if self.0.is_null() || size > isize::MAX as usize => Err(absent(what, size)),
            // SAFETY: not NULL, so `size` writable bytes that nobody else uses during the call.
            _ => Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), size) }),
        }
    }
}

fn absent(what: &str, size: usize) -> Error {
    Error::invalid(format!("{what} is NULL, or its size {size} is impossible"))
}

/// A `void *`: a stream of the engine.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct NativeStream(*mut c_void);

impl NativeStream {
    /// Calls `act` with it.
    pub(super) fn with<R>(self, act: impl FnOnce(*mut c_void) -> R) -> R {
        act(self.0)
    }
}

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident of $item:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(*const $item);

        impl $name {
            /// The `count` values; none if there should be some but the pointer is NULL or misaligned.
            pub(super) fn get<'a>(self, count: usize) -> Option<&'a [$item]> {
                if count == 0 {
                    return Some(&[]);
                }
                let readable = !self.0.is_null() && self.0.is_aligned() && count <= isize::MAX as usize / size_of::<$item>();
                // SAFETY: not NULL, so `count` readable values; see the module.
                readable.then(|| unsafe { std::slice::from_raw_parts(self.0, count) })
            }
        }
    )*};
}

lists! {
    /// A `const pld_scalar_t *`.
    Scalars of pld_scalar_t;
    /// A `const pld_dim_t *`.
    Dims of pld_dim_t;
    /// A `const pld_operand_t *`.
    Operands of pld_operand_t;
    /// A `const pld_arg_t *`.
    Args of pld_arg_t;
    /// A `const pld_tensor_arg_t *`.
    Tensors of pld_tensor_arg_t;
    /// A `const pld_tensor_t *`.
    TensorHandles of pld_tensor_t;
    /// A `const pld_task_t *`.
    Tasks of pld_task_t;
    /// A `const pld_callback_arg_t *`.
    CallbackArgs of pld_callback_arg_t;
    /// A `const pld_callback_t *`.
    Callbacks of pld_callback_t;
    /// A `const int32_t *`.
    Devices of i32;
}

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident of $object:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(*const $object);

        impl $name {
            /// The object, which must be there.
            pub(super) fn get<'a>(self, what: &str) -> Result<&'a $object> {
                // SAFETY: NULL or alive during the call, as the header demands; it is not changed but through what is
                // made for several threads.
                unsafe { self.0.as_ref() }.ok_or_else(|| Error::invalid(format!("{what} is NULL")))
            }
        }
    )*};
}

// Objects that C sees as changed by the call, although several threads may make it at once.
objects! {
    /// A `pld_world_t *`.
    World of pld_world_t;
    /// A `pld_executable_t *`.
    Executable of pld_executable_t;
    /// A `pld_resident_t *`.
    Resident of pld_resident_t;
    /// A `pld_run_t *`.
    Run of pld_run_t;
}

macro_rules! optional {
    ($($(#[$doc:meta])* $name:ident of $object:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(*const $object);

        impl $name {
            /// What it points to, if it is not NULL.
            pub(super) fn get<'a>(self) -> Option<&'a $object> {
                // SAFETY: NULL or alive during the call, as the header demands.
                unsafe { self.0.as_ref() }
            }
        }
    )*};
}

optional! {
    /// A `const struct DLManagedTensor *`.
    DlTensor of DLManagedTensor;
    /// A `const pld_predicate_t *`.
    PredicatePtr of pld_predicate_t;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_whole_character() {
        let mut buffer = [1 as c_char; 8];
        TextBuffer(buffer.as_mut_ptr()).write("abcä!", 5);
        assert_eq!(Text(buffer.as_ptr()).str("text"), Ok("abc"));
        TextBuffer(buffer.as_mut_ptr()).write("abcä!", 8);
        assert_eq!(Text(buffer.as_ptr()).str("text"), Ok("abcä!"));
        assert_eq!(buffer[7], 1, "nothing is written past the NUL");
    }
}
