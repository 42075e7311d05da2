//! The engine's own functions as tasks of a program.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use crate::error::{Error, Result};
use crate::ir::builder::BAD_ARGUMENT;
use crate::ir::{CallbackArg, Task};
use crate::runtime::{Callback, CallbackContext, CallbackFn, View};

use super::build::{Call, build};
use super::dtype::pld_dtype_t;
use super::entry::{direction, pld_direction_t};
use super::options::TaskOptions;
use super::pointer::{CallbackArgs, Callbacks, Text};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::task::pld_task_t;
use super::tensor::pld_tensor_t;

/// A tensor as a function of the engine sees it: memory of the rank that the call is about.
#[repr(C)]
pub struct pld_task_tensor_t {
    /// Its first element. Only what the argument's direction says may be done with it.
    pub data: *mut c_void,
    /// Element type.
    pub dtype: pld_dtype_t,
    /// Number of dimensions.
    pub ndims: u32,
    /// Extents, outermost first, in elements.
    pub shape: *const i64,
    /// Distances between neighbours in each dimension, in elements: a slice has gaps.
    pub strides: *const i64,
}

/// What a call of a function of the engine is about. It lives until the function returns.
#[repr(C)]
pub struct pld_task_context_t {
    /// The library's `sizeof(pld_task_context_t)`: a newer one may have more fields.
    pub struct_size: u32,
    /// The rank; for a host task the first rank of the process.
    pub rank: u32,
    /// Number of ranks of the world.
    pub nranks: u32,
    /// Which of the rank's cores makes the call, from 0.
    pub core: u32,
    /// The block, from 0.
    pub block: i64,
    /// Number of blocks.
    pub blocks: i64,
    /// The launch of the executable, from 1.
    pub launch: u64,
    /// Name of the function in the program.
    pub name: *const c_char,
    /// The tensors among the arguments, in order: see `pld_context_tensor`.
    pub tensors: *const pld_task_tensor_t,
    /// Number of tensors.
    pub ntensors: usize,
    /// The values among the arguments, in order: see `pld_context_int` and `pld_context_float`.
    pub scalars: *const i64,
    /// Number of values.
    pub nscalars: usize,
    /// Where ranks are cards (`PLD_TRANSPORT_HCCL`), the `aclrtStream` on which an extern task queues its work, and then
    /// returns: its tensors are memory of the card, and what it comes after may still run there. NULL on CPUs and for
    /// host tasks, which come when all has ended.
    pub stream: *mut c_void,
}

const _: () = {
    assert!(size_of::<pld_task_tensor_t>() == size_of::<View>());
    assert!(size_of::<pld_task_context_t>() == size_of::<CallbackContext>());
    macro_rules! same_offsets {
        ($ours:ty, $theirs:ty: $($field:ident)*) => { $(
            assert!(offset_of!($ours, $field) == offset_of!($theirs, $field));
        )* };
    }
    same_offsets!(pld_task_tensor_t, View: data dtype ndims shape strides);
    same_offsets!(pld_task_context_t, CallbackContext:
        struct_size rank nranks core block blocks launch name tensors ntensors scalars nscalars stream);
};

/// A function of the engine. Returns 0 if all went well; anything else ends the launch on every rank.
///
/// It may be called by several threads at once: the ranks of one process, the cores of a rank, the blocks of a grid. It
/// must not throw or jump out, nor wait for another task or rank. No lock is held meanwhile. Of the library it may call
/// what is callable from any thread and neither blocks nor is collective, such as `pld_world_abort`.
pub type pld_callback_fn =
    Option<unsafe extern "C" fn(context: *const pld_task_context_t, user_data: *mut c_void) -> i32>;

/// A function for a name of a program: see `pld_compile_options_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_callback_t {
    /// The name of extern or host tasks.
    pub name: Text,
    /// The function.
    pub function: pld_callback_fn,
    /// Passed to it.
    pub user_data: *mut c_void,
}

/// An argument of a function of the engine, made by `pld_in`, `pld_out`, `pld_inout` or `pld_value`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_callback_arg_t {
    /// What is done with the tensor; 0 for a value.
    pub direction: pld_direction_t,
    /// The tensor.
    pub tensor: pld_tensor_t,
    /// The value.
    pub scalar: pld_scalar_t,
}

/// A task of the open entry that is the engine's own function: once for each of `blocks` blocks (`PLD_INT(1)` for one).
/// It waits for other tasks, and they for it, by its `options` and by what `args` say is done with the tensors. A window
/// among them is this rank's memory. `PLD_CALLBACK_ARGS` writes the list.
///
/// `name` names the function, in text too: the same name in a program is the same function with arguments of the same
/// kinds. `function` may be NULL if it is given to `pld_compile`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_extern_task(
    p: Option<&mut pld_program_t>,
    name: Text,
    function: pld_callback_fn,
    user_data: *mut c_void,
    args: CallbackArgs,
    nargs: usize,
    blocks: pld_scalar_t,
    options: TaskOptions,
) -> pld_task_t {
    build(p, |c| {
        let (name, args) = (c.callback(name, function, user_data), c.callback_args(args, nargs)?);
        let blocks = if blocks.immediate() == Some(1) { None } else { Some(c.get(blocks, "blocks")?) };
        let options = c.task_options(options);
        Some::<Task>(c.builder.extern_task(name, blocks, args, options))
    })
}

/// The engine's own function on the host, once a launch and process: after all dispatches of the host driver, when the
/// ranks of this process have done their part. Tensors are those of the host driver, whole. Otherwise as
/// `pld_extern_task`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_host_task(
    p: Option<&mut pld_program_t>,
    name: Text,
    function: pld_callback_fn,
    user_data: *mut c_void,
    args: CallbackArgs,
    nargs: usize,
) {
    build(p, |c| {
        let (name, args) = (c.callback(name, function, user_data), c.callback_args(args, nargs)?);
        c.builder.host_task(name, args);
        Some(())
    })
}

/// The functions that a program was built with, by name.
#[derive(Clone, Default)]
pub(super) struct Functions(Vec<(String, Callback)>);

impl Functions {
    /// Notes a function; whether the name had none or this one before.
    fn note(&mut self, name: &str, new: Callback) -> bool {
        match self.0.iter().find(|(known, _)| known == name) {
            Some((_, known)) => std::ptr::fn_addr_eq(known.function, new.function) && known.user_data == new.user_data,
            None => {
                self.0.push((name.into(), new));
                true
            }
        }
    }

    /// These, and those of the options, which come last and so count.
    pub(super) fn with(&self, given: Callbacks, count: usize) -> Result<Vec<(String, Callback)>> {
        let given = given.get(count);
        let given = given.ok_or_else(|| Error::invalid(format!("callbacks is NULL, but ncallbacks is {count}")))?;
        let mut all = self.0.clone();
        for (index, callback) in given.iter().enumerate() {
            let name = callback.name.str(&format!("the name of callback {index}"))?;
            let function = callback_of(callback.function, callback.user_data);
            all.push((name.into(), function.ok_or_else(|| Error::invalid(format!("function {name:?} is NULL")))?));
        }
        Ok(all)
    }
}

fn callback_of(function: pld_callback_fn, user_data: *mut c_void) -> Option<Callback> {
    // SAFETY: the types differ only in that of the context, and both contexts are laid out alike, as is checked above.
    let function = unsafe { std::mem::transmute::<pld_callback_fn, Option<CallbackFn>>(function) };
    function.map(|function| Callback { function, user_data })
}

impl Call<'_> {
    fn callback<'t>(&mut self, name: Text, function: pld_callback_fn, user_data: *mut c_void) -> &'t str {
        let name = self.name(name);
        if let Some(new) = callback_of(function, user_data)
            && !self.functions.note(name, new)
        {
            let hint =
                "the same name is the same function with the same user_data; give the other one a name of its own";
            self.builder.mistake(BAD_ARGUMENT, format!("{name:?} already names another function"), hint);
        }
        name
    }

    fn callback_args(&mut self, args: CallbackArgs, count: usize) -> Option<Vec<CallbackArg>> {
        let args = self.known(args.get(count), "a NULL list of arguments with count", count)?;
        let convert = |arg: &pld_callback_arg_t| match arg.direction {
            0 => Some(CallbackArg::Scalar(self.get(arg.scalar, "a value")?)),
            raw => {
                let direction = self.known(direction(raw), "direction", raw)?;
                Some(CallbackArg::Tensor(self.get(arg.tensor, "a tensor argument")?, direction))
            }
        };
        args.iter().map(convert).collect()
    }
}
