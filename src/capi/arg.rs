//! Arguments of a launch.

use std::ffi::c_void;

use smallvec::SmallVec;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::DType;
use crate::runtime::{Arg, TensorArg};

use super::dim::PLD_MAX_RANK;
use super::dtype::{dtype, pld_dtype_t};
use super::pointer::{Args, DlTensor, Resident, Tensors};

/// What an argument is: a value of `enum pld_arg_kind`.
pub type pld_arg_kind_t = u32;

/// Values of `pld_arg_kind_t`.
#[repr(C)]
pub enum pld_arg_kind {
    /// None: `pld_check` makes one up; a launch takes no such argument.
    PLD_ARG_GENERATED = 0,
    /// A tensor: `tensor`. In a world of threads the whole one, with its leading rank axis; in a world of processes this
    /// rank's part of it, without.
    PLD_ARG_TENSOR = 1,
    /// One tensor a rank, without the leading rank axis: `parts`. Worlds of threads only.
    PLD_ARG_PARTS = 2,
    /// An integer, for a parameter of type `i32` or `i64`: `integer`.
    PLD_ARG_INT = 3,
    /// A number for a parameter of type `f32`: `real`.
    PLD_ARG_FLOAT = 4,
    /// For a parameter of type `bool`: `integer`, other than 0 for true.
    PLD_ARG_BOOL = 5,
    /// Memory that lives with the ranks: `resident`, of the executable's world.
    PLD_ARG_RESIDENT = 6,
}

/// A tensor in the engine's memory. Made by `pld_tensor_of` or `pld_tensor_of_dlpack`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_tensor_arg_t {
    /// Its first element, aligned to the element's size. Written only if the parameter is not `PLD_IN`.
    pub data: *mut c_void,
    /// Element type.
    pub dtype: pld_dtype_t,
    /// Number of dimensions.
    pub ndims: u32,
    /// Its extents, outermost first, in elements.
    pub shape: [i64; PLD_MAX_RANK],
    /// Distances between neighbours in each dimension, in elements; all 0 for row-major without gaps, which is also the
    /// only layout that is accepted.
    pub strides: [i64; PLD_MAX_RANK],
    /// If not NULL, this DLPack tensor in CPU memory instead of all the above. It stays the caller's.
    pub dlpack: DlTensor,
}

/// An argument of a launch. Made by `pld_arg_tensor`, `pld_arg_dlpack`, `pld_arg_parts`, `pld_arg_resident`,
/// `pld_arg_int`, `pld_arg_float` or `pld_arg_bool`; `pld_arg_generated` makes one for
/// `pld_check`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_arg_t {
    /// What it is, and so which of the following counts.
    pub kind: pld_arg_kind_t,
    /// Number of `parts`: that of the ranks.
    pub nparts: u32,
    /// The tensor.
    pub tensor: pld_tensor_arg_t,
    /// One tensor a rank.
    pub parts: Tensors,
    /// The integer or bool.
    pub integer: i64,
    /// The number.
    pub real: f64,
    /// The resident.
    pub resident: Resident,
}

/// A launch's arguments as the runtime takes them; without heap memory for usual numbers.
pub(super) struct Arguments;

impl Arguments {
    /// Calls `run` with the arguments.
    pub(super) fn with<T>(args: Args, count: usize, run: impl FnOnce(&[Arg]) -> Result<T>) -> Result<T> {
        let args = args.get(count).ok_or_else(|| Error::invalid(format!("args is NULL, but nargs is {count}")))?;
        // First all parts, so that the arguments can refer to them.
        let mut parts: SmallVec<[TensorArg; 16]> = SmallVec::new();
        for (index, arg) in args.iter().enumerate().filter(|(_, arg)| arg.is(pld_arg_kind::PLD_ARG_PARTS)) {
            let count = arg.nparts as usize;
            let null = || Error::invalid(format!("argument {index}: parts is NULL, but nparts is {count}"));
            for part in arg.parts.get(count).ok_or_else(null)? {
                parts.push(part.read().map_err(|e| of_argument(index, e))?);
            }
        }
        let mut unused = &parts[..];
        let mut converted: SmallVec<[Arg; 16]> = SmallVec::new();
        for (index, arg) in args.iter().enumerate() {
            converted.push(if arg.is(pld_arg_kind::PLD_ARG_PARTS) {
                let (mine, rest) = unused.split_at(arg.nparts as usize);
                unused = rest;
                Arg::Ranks(mine)
            } else {
                arg.read().map_err(|e| of_argument(index, e))?
            });
        }
        run(&converted)
    }
}

/// An error about one of a list of arguments.
pub(super) fn of_argument(index: usize, error: Error) -> Error {
    Error::new(error.kind, format!("argument {index}: {error}"))
}

impl pld_arg_t {
    pub(super) fn is(&self, kind: pld_arg_kind) -> bool {
        self.kind == kind as pld_arg_kind_t
    }

    // On the launch path: a result that is returned through memory would be written and read in different widths.
    #[inline(always)]
    pub(super) fn read(&self) -> Result<Arg<'_>> {
        if self.is(pld_arg_kind::PLD_ARG_TENSOR) {
            self.tensor.read().map(Arg::Tensor)
        } else if self.is(pld_arg_kind::PLD_ARG_INT) {
            Ok(Arg::Int(self.integer))
        } else if self.is(pld_arg_kind::PLD_ARG_FLOAT) {
            Ok(Arg::Float(self.real))
        } else if self.is(pld_arg_kind::PLD_ARG_BOOL) {
            Ok(Arg::Bool(self.integer != 0))
        } else if self.is(pld_arg_kind::PLD_ARG_RESIDENT) {
            Ok(Arg::Resident(&self.resident.get("resident")?.resident))
        } else {
            Err(Error::invalid(format!("kind {} is unknown", self.kind)))
        }
    }
}

impl pld_tensor_arg_t {
    #[inline(always)]
    pub(super) fn read(&self) -> Result<TensorArg<'_>> {
        if let Some(managed) = self.dlpack.get() {
            return managed.dl_tensor.read();
        }
        let ndims = self.ndims as usize;
        if ndims > PLD_MAX_RANK {
            return Err(Error::invalid(format!("{ndims} dimensions, but {PLD_MAX_RANK} are possible")));
        }
        let dtype = dtype(self.dtype).ok_or_else(|| Error::invalid(format!("dtype {} is unknown", self.dtype)))?;
        let strides = &self.strides[..ndims];
        Ok(TensorArg {
            data: self.data.cast(),
            dtype,
            shape: &self.shape[..ndims],
            strides: strides.iter().any(|&s| s != 0).then_some(strides),
        })
    }
}

/// DLPack's tensor with its owner, as in the versions 0.2 to 1.x; the newer versioned struct is another type.
#[repr(C)]
pub struct DLManagedTensor {
    dl_tensor: DLTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// DLPack's tensor.
#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DLDevice {
    device_type: i32,
    device_id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

impl DLTensor {
    fn read(&self) -> Result<TensorArg<'_>> {
        // CPU memory, also where a GPU driver has pinned it.
        const CPU: [i32; 3] = [1, 3, 11];
        if !CPU.contains(&self.device.device_type) {
            let message = format!("a DLPack tensor of device type {}, not in CPU memory", self.device.device_type);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let DLDataType { code, bits, lanes } = self.dtype;
        let unknown = || {
            let message = format!("a DLPack type of code {code}, {bits} bits, {lanes} lanes");
            Error::new(ErrorKind::Unsupported, message)
        };
        let dtype = self.dtype.read().ok_or_else(unknown)?;
        let ndim = self.ndim;
        if !(0..=PLD_MAX_RANK as i32).contains(&ndim) || (ndim > 0 && self.shape.is_null()) {
            return Err(Error::invalid(format!("a DLPack tensor of {ndim} dimensions, or without a shape")));
        }
        // SAFETY: DLPack has `ndim` values behind the shape (not NULL as just checked) unless it is 0, and behind the
        // strides unless they are NULL; the tensor lives during the call.
        let list = |first: *const i64| unsafe { std::slice::from_raw_parts(first, ndim as usize) };
        let shape = if ndim == 0 { &[] } else { list(self.shape) };
        let strides = (ndim > 0 && !self.strides.is_null()).then(|| list(self.strides));
        let data = if self.data.is_null() { self.data } else { self.data.wrapping_byte_add(self.byte_offset as usize) };
        Ok(TensorArg { data: data.cast(), dtype, shape, strides })
    }
}

impl DLDataType {
    fn read(self) -> Option<DType> {
        if self.lanes != 1 {
            return None;
        }
        Some(match (self.code, self.bits) {
            (0, 8) => DType::I8,
            (0, 16) => DType::I16,
            (0, 32) => DType::I32,
            (0, 64) => DType::I64,
            (1, 8) => DType::U8,
            (1, 16) => DType::U16,
            (1, 32) => DType::U32,
            (1, 64) => DType::U64,
            (2, 16) => DType::F16,
            (2, 32) => DType::F32,
            (4, 16) => DType::BF16,
            (6, 8) => DType::Bool,
            (10, 8) => DType::F8E4M3,
            (12, 8) => DType::F8E5M2,
            _ => return None,
        })
    }
}
