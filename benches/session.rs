//! libpld as an engine uses it: through its C interface.

use std::ffi::{CStr, c_char, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use half::bf16;
use pld::capi::arg::{pld_arg_kind, pld_arg_t, pld_tensor_arg_t};
use pld::capi::callback::pld_task_context_t;
use pld::capi::dtype::pld_dtype;
use pld::capi::world::pld_world_options_t;

use crate::rank::{Bench, pin, unpin};

/// A function of the engine.
pub type Function = unsafe extern "C" fn(context: *const pld_task_context_t, user_data: *mut c_void) -> i32;

/// `pld_callback_t`.
#[repr(C)]
struct Callback {
    name: *const c_char,
    function: Function,
    user_data: *mut c_void,
}

/// The beginning of `pld_compile_options_t`, which is what `struct_size` says.
#[repr(C)]
struct CompileOptions {
    struct_size: u32,
    persistent: u32,
    unchecked: u32,
    callbacks: *const Callback,
    ncallbacks: usize,
}

// As `pld.h` declares them; handles are `c_void`.
#[expect(improper_ctypes, reason = "an argument may point to a resident, which only the library looks into")]
unsafe extern "C" {
    fn pld_last_error(buffer: *mut c_char, size: usize) -> usize;
    fn pld_program_parse(
        text: *const c_char,
        size: usize,
        file: *const c_char,
        callback: *const c_void,
        user_data: *mut c_void,
        out_program: *mut *mut c_void,
    ) -> i32;
    fn pld_program_destroy(p: *mut c_void);
    fn pld_world_create(options: *const pld_world_options_t, out_world: *mut *mut c_void) -> i32;
    fn pld_world_join(options: *const pld_world_options_t, out_world: *mut *mut c_void) -> i32;
    fn pld_world_destroy(w: *mut c_void);
    fn pld_compile(
        p: *const c_void,
        w: *const c_void,
        options: *const CompileOptions,
        out_executable: *mut *mut c_void,
    ) -> i32;
    fn pld_launch(x: *const c_void, args: *const pld_arg_t, nargs: usize) -> i32;
    fn pld_executable_destroy(x: *mut c_void);
}

/// What a status says.
fn check(status: i32) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    let mut message = vec![0_u8; 4096];
    // SAFETY: the buffer is as long as is said.
    let length = unsafe { pld_last_error(message.as_mut_ptr().cast(), message.len()) };
    message.truncate(length.min(message.len() - 1));
    Err(format!("status {status}: {}", String::from_utf8_lossy(&message)))
}

/// A program.
pub struct Program(*mut c_void);

/// A world.
pub struct World(*mut c_void);

/// A program compiled for a world.
pub struct Executable(*mut c_void);

/// An argument of a launch.
pub type Arg = pld_arg_t;

impl Program {
    /// The program that `text` says.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut program = null_mut();
        // SAFETY: `text` is as long as is said; the rest may be NULL.
        check(unsafe {
            pld_program_parse(text.as_ptr().cast(), text.len(), null(), null(), null_mut(), &mut program)
        })?;
        Ok(Self(program))
    }
}

impl World {
    /// The world of this team, in which each process is a rank; they meet by the environment that the team was given.
    /// A rank is pinned after it has joined, as those of the peers' programs are.
    pub fn join(bench: &Bench) -> Result<Self, String> {
        unpin();
        let mut world = null_mut();
        // SAFETY: options may be NULL.
        check(unsafe { pld_world_join(null(), &mut world) })?;
        pin(bench.rank());
        Ok(Self(world))
    }

    /// A world of threads of this process, of which only this one, rank 0, is pinned.
    pub fn create(nranks: u32) -> Result<Self, String> {
        unpin();
        // SAFETY: all fields may be 0.
        let mut options: pld_world_options_t = unsafe { zeroed() };
        options.struct_size = size_of_val(&options) as u32;
        options.nranks = nranks;
        let mut world = null_mut();
        // SAFETY: the options are as they should be.
        check(unsafe { pld_world_create(&options, &mut world) })?;
        pin(0);
        Ok(Self(world))
    }

    /// The world that `make` makes, with a trace. What it writes, at its end, is not wanted.
    pub fn traced(make: impl FnOnce() -> Result<Self, String>) -> Result<Self, String> {
        const VARIABLE: &str = "PLD_TRACE";
        // SAFETY: this process has no other thread while it makes its worlds, or only such as do not look there.
        unsafe { std::env::set_var(VARIABLE, "/dev/null") };
        let world = make();
        // SAFETY: as above.
        unsafe { std::env::remove_var(VARIABLE) };
        world
    }

    /// Compiles a program for this world.
    pub fn compile(&self, program: &Program, persistent: bool) -> Result<Executable, String> {
        self.compile_with(program, persistent, &[])
    }

    /// The same, with functions for the program's extern tasks.
    pub fn compile_with(
        &self,
        program: &Program,
        persistent: bool,
        functions: &[(&CStr, Function)],
    ) -> Result<Executable, String> {
        let callback =
            |&(name, function): &(&CStr, Function)| Callback { name: name.as_ptr(), function, user_data: null_mut() };
        let callbacks: Vec<Callback> = functions.iter().map(callback).collect();
        let options = CompileOptions {
            struct_size: size_of::<CompileOptions>() as u32,
            persistent: persistent.into(),
            unchecked: 0,
            callbacks: callbacks.as_ptr(),
            ncallbacks: callbacks.len(),
        };
        let mut executable = null_mut();
        // SAFETY: program and world live, and the options are as they should be.
        check(unsafe { pld_compile(program.0, self.0, &options, &mut executable) })?;
        Ok(Executable(executable))
    }
}

impl Executable {
    /// As C has it; it stays this one's.
    pub fn raw(&self) -> *mut c_void {
        self.0
    }

    /// One launch.
    pub fn launch(&self, arguments: &[Arg]) -> Result<(), String> {
        // SAFETY: the executable lives; whoever made the arguments sees to what they point to.
        check(unsafe { pld_launch(self.0, arguments.as_ptr(), arguments.len()) })
    }
}

/// An element of a tensor.
pub trait Element {
    /// Its type in programs.
    const DTYPE: pld_dtype;
}

impl Element for f32 {
    const DTYPE: pld_dtype = pld_dtype::PLD_DTYPE_F32;
}

impl Element for bf16 {
    const DTYPE: pld_dtype = pld_dtype::PLD_DTYPE_BF16;
}

impl Element for i8 {
    const DTYPE: pld_dtype = pld_dtype::PLD_DTYPE_I8;
}

impl Element for i32 {
    const DTYPE: pld_dtype = pld_dtype::PLD_DTYPE_I32;
}

/// A tensor as an argument; `data` has to live until the last launch with it.
pub fn tensor<T: Element>(data: &mut [T], shape: &[i64]) -> Arg {
    assert_eq!(data.len() as i64, shape.iter().product::<i64>());
    // SAFETY: all fields may be 0.
    let mut tensor: pld_tensor_arg_t = unsafe { zeroed() };
    tensor.data = data.as_mut_ptr().cast();
    tensor.dtype = T::DTYPE as u32;
    tensor.ndims = shape.len() as u32;
    tensor.shape[..shape.len()].copy_from_slice(shape);
    Arg { tensor, ..argument(pld_arg_kind::PLD_ARG_TENSOR) }
}

/// An integer as an argument.
pub fn int(value: i64) -> Arg {
    Arg { integer: value, ..argument(pld_arg_kind::PLD_ARG_INT) }
}

/// A bool as an argument.
pub fn bool(value: bool) -> Arg {
    Arg { integer: value.into(), ..argument(pld_arg_kind::PLD_ARG_BOOL) }
}

fn argument(kind: pld_arg_kind) -> Arg {
    // SAFETY: all fields may be 0.
    Arg { kind: kind as u32, ..unsafe { zeroed() } }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by the library, and not used any more.
        unsafe { pld_program_destroy(self.0) };
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: made by the library, and not used any more; executables keep what they need of it.
        unsafe { pld_world_destroy(self.0) };
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: made by the library, and not used any more.
        unsafe { pld_executable_destroy(self.0) };
    }
}
