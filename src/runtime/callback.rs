//! The engine's own functions, as tasks of a program.

use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_void};

use crate::codegen::cpu::FunctionCode;
pub use crate::codegen::cpu::abi::View;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{OpKind, Program};

/// A function of the engine: 0 if all went well; anything else ends the launch.
pub type CallbackFn = unsafe extern "C" fn(context: *const CallbackContext, user_data: *mut c_void) -> i32;

/// A function and what it is called with. It may be called from several threads at once.
#[derive(Clone, Copy, Debug)]
pub struct Callback {
    /// The function.
    pub function: CallbackFn,
    /// Passed on to it.
    pub user_data: *mut c_void,
}

// SAFETY: the pointer is only handed back to the engine, which promises that its function may be called by any thread.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

/// What a call is about.
#[repr(C)]
#[derive(Debug)]
pub struct CallbackContext {
    /// Size of this struct: a newer library may append fields.
    pub struct_size: u32,
    /// The rank; for a host task the first rank of the process.
    pub rank: u32,
    /// Number of ranks of the world.
    pub nranks: u32,
    /// Which of the rank's cores runs the call, from 0.
    pub core: u32,
    /// The block of the grid, from 0.
    pub block: i64,
    /// Number of blocks.
    pub blocks: i64,
    /// The launch of the executable, from 1.
    pub launch: u64,
    /// Name of the function in the program.
    pub name: *const c_char,
    /// The tensors among the arguments, in order.
    pub tensors: *const View,
    /// Number of tensors.
    pub ntensors: usize,
    /// The scalars among the arguments, in order: `i32` and `i64` as 64-bit integers, `bool` as 0 or 1, `f32` as the
    /// bits of a double.
    pub scalars: *const i64,
    /// Number of scalars.
    pub nscalars: usize,
    /// Where ranks are cards, the stream on which an extern task queues its work: the tensors are memory of the card, and
    /// what the task comes after may not have ended yet. Null on a CPU, and for host tasks.
    pub stream: *mut c_void,
}

/// Each extern and host task has a function, and each function is that of one.
pub(super) fn check(program: &Program, callbacks: &[(String, Callback)]) -> Result<()> {
    let given = |name: &str| callbacks.iter().any(|(given, _)| given == name);
    if let Some(name) = names(program).iter().find(|name| !given(name)) {
        return Err(Error::invalid(format!("{name:?} of program {:?} has no function", program.name)));
    }
    check_names(program, callbacks)
}

/// Each function is that of an extern or host task.
pub fn check_names(program: &Program, callbacks: &[(String, Callback)]) -> Result<()> {
    let names = names(program);
    match callbacks.iter().find(|(name, _)| !names.contains(name.as_str())) {
        None => Ok(()),
        Some((name, _)) => {
            let has = if names.is_empty() { "it has none".into() } else { format!("it has {}", list(&names)) };
            let message = format!("{name:?} is no extern or host task of program {:?}: {has}", program.name);
            Err(Error::invalid(message))
        }
    }
}

/// The functions in the order of `functions`, with their names. Of two with one name the last one counts, so that options
/// override what a program brings along.
pub(super) fn by_number(
    functions: &[FunctionCode],
    callbacks: &[(String, Callback)],
) -> Result<Box<[(CString, Callback)]>> {
    let find = |function: &FunctionCode| {
        let found = callbacks.iter().rfind(|(name, _)| *name == function.name);
        let name = CString::new(function.name.as_str()).ok();
        let missing = || Error::new(ErrorKind::Internal, format!("function {} got lost", function.name));
        name.zip(found).map(|(name, (_, callback))| (name, *callback)).ok_or_else(missing)
    };
    functions.iter().map(find).collect()
}

/// The names of all extern and host tasks.
fn names(program: &Program) -> BTreeSet<&str> {
    let functions = program.ops.values().filter_map(|op| match &op.kind {
        OpKind::Extern { task, .. } => Some(program.tasks[*task].name.as_str()),
        OpKind::HostTask { name, .. } => Some(name.as_str()),
        _ => None,
    });
    functions.collect()
}

fn list(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}
