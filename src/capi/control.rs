//! Loops, ifs, requirements, mutable scalars and local arrays.

use super::build::build;
use super::dim::pld_dim_t;
use super::dtype::pld_dtype_t;
use super::pointer::Text;
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::task::{comparison, pld_cmp_t};

/// A mutable scalar.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_var_t {
    /// 0 is no variable.
    pub id: u32,
}

/// A small local array of scalars.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_array_t {
    /// 0 is no array.
    pub id: u32,
}

/// Begins a loop over the integers from `first` up to, but without, `end`, and returns the index, an `i64` that is
/// valid inside. `pld_for_end` ends it.
#[unsafe(no_mangle)]
pub extern "C" fn pld_for_begin(p: Option<&mut pld_program_t>, first: pld_scalar_t, end: pld_scalar_t) -> pld_scalar_t {
    build(p, |c| {
        let (first, end) = (c.get_or_zero(first, "first"), c.get_or_zero(end, "end"));
        let step = c.builder.int(1);
        Some(c.builder.for_begin(first, end, step))
    })
}

/// As `pld_for_begin`, in steps. A step that is not positive ends the launch with `PLD_ERR_ARITHMETIC`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_for_step_begin(
    p: Option<&mut pld_program_t>,
    first: pld_scalar_t,
    end: pld_scalar_t,
    step: pld_scalar_t,
) -> pld_scalar_t {
    build(p, |c| {
        let (first, end) = (c.get_or_zero(first, "first"), c.get_or_zero(end, "end"));
        let step = c.get_or_zero(step, "step");
        Some(c.builder.for_begin(first, end, step))
    })
}

/// Ends the innermost loop.
#[unsafe(no_mangle)]
pub extern "C" fn pld_for_end(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.for_end();
        Some(())
    })
}

/// Begins a part that runs where the `bool` `condition` holds. `pld_else` may follow; `pld_if_end` ends it.
#[unsafe(no_mangle)]
pub extern "C" fn pld_if_begin(p: Option<&mut pld_program_t>, condition: pld_scalar_t) {
    build(p, |c| {
        let condition = c.get_or_zero(condition, "the condition");
        c.builder.if_begin(condition);
        Some(())
    })
}

/// Begins the part that runs where the condition of the open `if` does not hold.
#[unsafe(no_mangle)]
pub extern "C" fn pld_else(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.else_begin();
        Some(())
    })
}

/// Ends the innermost `if`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_if_end(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.if_end();
        Some(())
    })
}

/// Requires that the comparison holds: otherwise the launch ends on every rank with `PLD_ERR_OUT_OF_BOUNDS` naming both
/// values, rank and line, also in an unchecked executable. `peer` is the rank that it is about, which is named too;
/// zero (`pld_no_scalar()`) if there is none. Inside a task; local, does not block, and orders nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pld_require(
    p: Option<&mut pld_program_t>,
    a: pld_scalar_t,
    cmp: pld_cmp_t,
    b: pld_scalar_t,
    peer: pld_scalar_t,
) {
    build(p, |c| {
        let (a, b) = (c.get(a, "the first operand")?, c.get(b, "the second operand")?);
        let cmp = c.known(comparison(cmp), "comparison", cmp)?;
        let peer = if peer.is_zero() { None } else { Some(c.get(peer, "the peer")?) };
        c.builder.require(cmp, a, b, peer);
        Some(())
    })
}

/// A mutable scalar of type `i32`, `i64`, `f32` or `bool`, which begins as `init`. `name` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pld_var(
    p: Option<&mut pld_program_t>,
    name: Text,
    dtype: pld_dtype_t,
    init: pld_scalar_t,
) -> pld_var_t {
    build(p, |c| {
        let (name, ty, init) = (c.optional_name(name), c.scalar_type(dtype)?, c.get(init, "init")?);
        Some(c.builder.var(name, ty, init))
    })
}

/// The present value.
#[unsafe(no_mangle)]
pub extern "C" fn pld_var_get(p: Option<&mut pld_program_t>, var: pld_var_t) -> pld_scalar_t {
    build(p, |c| {
        let var = c.get(var, "the variable")?;
        Some(c.builder.var_get(var))
    })
}

/// Changes the value.
#[unsafe(no_mangle)]
pub extern "C" fn pld_var_set(p: Option<&mut pld_program_t>, var: pld_var_t, value: pld_scalar_t) {
    build(p, |c| {
        let (var, value) = (c.get(var, "the variable")?, c.get(value, "the value")?);
        c.builder.var_set(var, value);
        Some(())
    })
}

/// A local array of `length` scalars of type `i32`, `i64`, `f32` or `bool`, which all begin as `fill`. The length is
/// known when the program is compiled. `name` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pld_array(
    p: Option<&mut pld_program_t>,
    name: Text,
    dtype: pld_dtype_t,
    length: pld_dim_t,
    fill: pld_scalar_t,
) -> pld_array_t {
    build(p, |c| {
        let (name, ty) = (c.optional_name(name), c.scalar_type(dtype)?);
        let (length, fill) = (c.extent(length)?, c.get(fill, "fill")?);
        Some(c.builder.array(name, ty, length, fill))
    })
}

/// An element. An index that is outside ends the launch with `PLD_ERR_OUT_OF_BOUNDS`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_array_get(
    p: Option<&mut pld_program_t>,
    array: pld_array_t,
    index: pld_scalar_t,
) -> pld_scalar_t {
    build(p, |c| {
        let (array, index) = (c.get(array, "the array")?, c.get(index, "the index")?);
        Some(c.builder.array_get(array, index))
    })
}

/// Changes an element. An index that is outside ends the launch with `PLD_ERR_OUT_OF_BOUNDS`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_array_set(
    p: Option<&mut pld_program_t>,
    array: pld_array_t,
    index: pld_scalar_t,
    value: pld_scalar_t,
) {
    build(p, |c| {
        let array = c.get(array, "the array")?;
        let (index, value) = (c.get(index, "the index")?, c.get(value, "the value")?);
        c.builder.array_set(array, index, value);
        Some(())
    })
}
