//! Options structs across versions: each begins with its size as the caller's header has it.

use crate::error::{Error, ErrorKind, Result};

use super::check::{pld_check_options_t, pld_check_report_t};
use super::collective::pld_collective_options_t;
use super::executable::pld_compile_options_t;
use super::program::pld_expand_options_t;
use super::task::pld_task_options_t;
use super::world::pld_world_options_t;

/// More than any options struct will ever have; a size beyond is garbage.
const MOST: usize = 4096;

/// Alignment and granularity of every version of a struct: it may have got its first pointer later.
const ALIGN: usize = align_of::<u32>();

/// Size that a struct says it has, if that can be.
fn checked_size(size: usize, what: &str, init: &str) -> Result<usize> {
    if size == 0 || size > MOST || !size.is_multiple_of(ALIGN) {
        let message = format!("{what}: struct_size is {size}; {init} sets it");
        return Err(Error::invalid(message));
    }
    Ok(size)
}

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident or $out:ident of $options:ident, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(*const $options);

        impl $name {
            /// The options: defaults if NULL, and where the caller's struct ends early.
            pub(super) fn read(self) -> Result<$options> {
                // SAFETY: zeros are valid in every field: numbers, pointers and optional functions.
                let mut options: $options = unsafe { std::mem::zeroed() };
                if self.0.is_null() {
                    return Ok(options);
                }
                if !self.0.cast::<u32>().is_aligned() {
                    return Err(Error::invalid(concat!($what, ": the options are misaligned")));
                }
                // SAFETY: not NULL, so at least the size is there; that many bytes are readable, the header demands.
                let bytes = unsafe {
                    let size = self.0.cast::<u32>().read() as usize;
                    let size = checked_size(size, $what, concat!("pld_", $what, "_options_init"))?;
                    std::slice::from_raw_parts(self.0.cast::<u8>(), size)
                };
                let known = bytes.len().min(size_of::<$options>());
                if let Some(unknown) = bytes[known..].iter().position(|&byte| byte != 0) {
                    let message = format!(
                        "{}: byte {} of the options is set, but this version knows {known}", $what, known + unknown
                    );
                    return Err(Error::new(ErrorKind::Version, message));
                }
                // SAFETY: both are `known` bytes long and apart; what C puts into the fields is valid, garbage numbers
                // included: enums are integers, and functions and pointers are as the header demands.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut options).cast::<u8>(), known) };
                Ok(options)
            }
        }

        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $out(*mut $options);

        impl $out {
            /// Makes `size` bytes of options that say all defaults.
            pub(super) fn init(self, size: usize) -> Result<()> {
                if self.0.is_null() || !self.0.cast::<u32>().is_aligned() {
                    return Err(Error::invalid(concat!($what, ": the options are NULL or misaligned")));
                }
                let size = checked_size(size, $what, concat!("pld_", $what, "_options_init"))?;
                // SAFETY: not NULL, so `size` writable bytes, which is enough for the size itself.
                unsafe {
                    self.0.cast::<u8>().write_bytes(0, size);
                    self.0.cast::<u32>().write(size as u32);
                }
                Ok(())
            }
        }
    )*};
}

options! {
    /// A `pld_world_options_t *`.
    WorldOptions or WorldOptionsOut of pld_world_options_t, "world";
    /// A `pld_compile_options_t *`.
    CompileOptions or CompileOptionsOut of pld_compile_options_t, "compile";
    /// A `pld_task_options_t *`.
    TaskOptions or TaskOptionsOut of pld_task_options_t, "task";
    /// A `pld_check_options_t *`.
    CheckOptions or CheckOptionsOut of pld_check_options_t, "check";
    /// A `pld_collective_options_t *`.
    CollectiveOptions or CollectiveOptionsOut of pld_collective_options_t, "collective";
    /// A `pld_expand_options_t *`.
    ExpandOptions or ExpandOptionsOut of pld_expand_options_t, "expand";
}

/// A `pld_check_report_t *`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct CheckReportOut(*mut pld_check_report_t);

impl CheckReportOut {
    /// The size that the caller's struct has; none if there is no struct.
    pub(super) fn size(self) -> Result<Option<usize>> {
        if self.0.is_null() {
            return Ok(None);
        }
        if !self.0.cast::<u32>().is_aligned() {
            return Err(Error::invalid("out_report is misaligned"));
        }
        // SAFETY: not NULL, so at least the size is there.
        let size = unsafe { self.0.cast::<u32>().read() } as usize;
        checked_size(size, "out_report", "its sizeof").map(Some)
    }

    /// Fills the caller's struct, which is of that size: as much of it as is known, and the rest with zeros.
    pub(super) fn write(self, size: usize, report: &pld_check_report_t) {
        let known = size.min(size_of::<pld_check_report_t>());
        // SAFETY: `size` bytes are writable, the header demands, and the report is at least `known` bytes long.
        unsafe {
            self.0.cast::<u8>().write_bytes(0, size);
            std::ptr::copy_nonoverlapping((&raw const *report).cast::<u8>(), self.0.cast(), known);
            self.0.cast::<u32>().write(size as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options in a caller's buffer that may be longer than they are.
    #[repr(C, align(8))]
    struct Longer {
        options: pld_compile_options_t,
        tail: [u32; 6],
    }

    const SIZE: u32 = size_of::<pld_compile_options_t>() as u32;

    fn longer(struct_size: u32, persistent: u32, unchecked: u32, tail: [u32; 6]) -> Longer {
        let mut options = CompileOptions(std::ptr::null()).read().expect("the defaults");
        (options.struct_size, options.persistent, options.unchecked) = (struct_size, persistent, unchecked);
        (options.ncallbacks, options.pool_bytes) = (6, 11);
        Longer { options, tail }
    }

    fn read(size: u32, tail: [u32; 6]) -> Result<pld_compile_options_t> {
        let longer = longer(size, 7, 9, tail);
        CompileOptions((&raw const longer).cast()).read()
    }

    #[test]
    fn sizes_of_other_versions() {
        let older = read(8, [5; 6]).expect("a shorter struct");
        assert_eq!((older.persistent, older.unchecked), (7, 0), "what the older struct does not have is default");
        let first = read(12, [5; 6]).expect("the struct of the first version");
        assert_eq!((first.persistent, first.unchecked, first.ncallbacks, first.pool_bytes), (7, 9, 0, 0));
        let same = read(SIZE, [5; 6]).expect("the same struct");
        assert_eq!((same.persistent, same.unchecked, same.ncallbacks, same.pool_bytes), (7, 9, 6, 11));
        let newer = read(SIZE + 20, [0; 6]).expect("a longer struct with a zero tail");
        assert_eq!((newer.persistent, newer.unchecked, newer.pool_bytes), (7, 9, 11));
        let error = read(SIZE + 20, [0, 0, 1, 0, 0, 0]).err().expect("an unknown option");
        assert_eq!(error.kind, ErrorKind::Version);
        assert!(error.message.contains(&format!("byte {}", SIZE + 8)), "{error}");
        for garbage in [0, 2, 13, 5000, u32::MAX] {
            let error = read(garbage, [0; 6]).err().expect("garbage");
            assert_eq!(error.kind, ErrorKind::InvalidArgument, "size {garbage}");
        }
    }

    #[test]
    fn init_fills_as_much_as_the_caller_has() {
        let mut longer = longer(1, 2, 3, [4; 6]);
        assert_eq!(CompileOptionsOut((&raw mut longer).cast()).init(SIZE as usize + 16), Ok(()));
        let options = &longer.options;
        assert_eq!((options.struct_size, options.persistent, options.unchecked), (SIZE + 16, 0, 0));
        assert_eq!((options.ncallbacks, options.pool_bytes), (0, 0));
        assert_eq!(longer.tail, [0, 0, 0, 0, 4, 4]);
    }
}
