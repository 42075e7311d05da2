//! The parameters of a host driver, for those who have a program that others wrote.

use std::ffi::{CString, c_char, c_void};

use crate::error::Error;
use crate::ir::extent::Known;
use crate::ir::{Direction, ParameterKind};

use super::dtype::pld_dtype_t;
use super::entry::{number, pld_direction_t};
use super::guard;
use super::host::{pld_operand_kind, pld_operand_kind_t};
use super::program::pld_program_t;
use super::status::pld_status_t;

/// A parameter of the host driver: an argument of a launch. Name and shape live until the callback returns.
#[repr(C)]
pub struct pld_param_t {
    /// Its name.
    pub name: *const c_char,
    /// A tensor or a scalar.
    pub kind: pld_operand_kind_t,
    /// The type of its elements, or of the scalar.
    pub dtype: pld_dtype_t,
    /// What is done with it.
    pub direction: pld_direction_t,
    /// 1 if every rank has a part of the tensor, along its first dimension; else 0.
    pub sliced: u32,
    /// Number of dimensions of the whole tensor.
    pub ndims: u32,
    /// Its extents, outermost first, in elements; -1 for one that is not known before a launch, or without the number of
    /// ranks.
    pub shape: *const i64,
}

/// Gets every parameter of a host driver, in order. It must not throw or jump out.
pub type pld_param_fn = Option<extern "C" fn(param: *const pld_param_t, user_data: *mut c_void)>;

/// Tells what a launch of the finished program is given. `nranks` is the number of ranks, or 0 if it is open. Local; any
/// number of threads may do it at once.
///
/// Errors: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_params(
    p: Option<&pld_program_t>,
    nranks: u32,
    callback: pld_param_fn,
    user_data: *mut c_void,
) -> pld_status_t {
    guard::status(|| {
        let p = p.ok_or_else(|| Error::invalid("the program is NULL"))?;
        let callback = callback.ok_or_else(|| Error::invalid("callback is NULL"))?;
        let program = p.finished()?;
        let world = (nranks > 0).then_some(i64::from(nranks));
        let known = Known { world, dims: &[] };
        for parameter in program.parameters() {
            let name = CString::new(parameter.name).unwrap_or_default();
            let (kind, dtype, direction, is_sliced, shape) = match parameter.kind {
                ParameterKind::Scalar(ty) => {
                    (pld_operand_kind::PLD_OPERAND_SCALAR, ty.dtype(), Direction::In, false, Vec::new())
                }
                ParameterKind::Tensor { dtype, direction, sliced, shape } => {
                    let leading = sliced.then_some(world).into_iter();
                    let shape = leading.chain(shape.iter().map(|&extent| program.extents.eval(extent, known)));
                    let shape: Vec<i64> = shape.map(|extent| extent.unwrap_or(-1)).collect();
                    (pld_operand_kind::PLD_OPERAND_TENSOR, dtype, direction, sliced, shape)
                }
            };
            let param = pld_param_t {
                name: name.as_ptr(),
                kind: kind as pld_operand_kind_t,
                dtype: dtype as pld_dtype_t,
                direction: number(direction),
                sliced: is_sliced.into(),
                ndims: shape.len() as u32,
                shape: shape.as_ptr(),
            };
            callback(&param, user_data);
        }
        Ok(())
    })
}
