//! Tasks: the InCore scopes of an entry, and what orders them.

use crate::ir::builder::BAD_ARGUMENT;
use crate::ir::op::Dims;
use crate::ir::{self, BinaryOp, Predicate, Task, Tensor};

use super::build::{Call, Handle, build};
use super::guard;
use super::options::{TaskOptions, TaskOptionsOut};
use super::pointer::{PredicatePtr, Scalars, Tasks, TensorHandles, Text};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::status::pld_status_t;
use super::tensor::pld_tensor_t;

/// A task, for others to depend on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_task_t {
    /// 0 is no task.
    pub id: u32,
}

/// A comparison: a value of `enum pld_cmp`.
pub type pld_cmp_t = u32;

/// Values of `pld_cmp_t`.
#[repr(C)]
pub enum pld_cmp {
    /// Equal.
    PLD_CMP_EQ = 1,
    /// Not equal.
    PLD_CMP_NE = 2,
    /// Less.
    PLD_CMP_LT = 3,
    /// Less or equal.
    PLD_CMP_LE = 4,
    /// Greater.
    PLD_CMP_GT = 5,
    /// Greater or equal.
    PLD_CMP_GE = 6,
}

/// One element of a tensor, compared with a number when the task could begin: unless it holds, the task is over without
/// having run. Made by `pld_predicate`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_predicate_t {
    /// A tensor of integers or bools.
    pub tensor: pld_tensor_t,
    /// How the element is compared.
    pub cmp: pld_cmp_t,
    /// The element.
    pub offsets: Scalars,
    /// Number of offsets.
    pub noffsets: usize,
    /// What it is compared with.
    pub value: i64,
}

/// What a task is told besides its body. Made by `pld_task_defaults` or `pld_deps`, or for one call by `PLD_DEPS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_task_options_t {
    /// `sizeof(pld_task_options_t)`.
    pub struct_size: u32,
    /// Other than 0: targets that stage tasks ahead may stage those that wait for this one. Never changes a result.
    pub allow_early_resolve: u32,
    /// Tasks that come first, whatever they touch: see `pld_at_begin`.
    pub deps: Tasks,
    /// Number of `deps`.
    pub ndeps: usize,
    /// Tensors, or slices, whose accesses by this task order nothing.
    pub no_dep: TensorHandles,
    /// Number of `no_dep`.
    pub n_no_dep: usize,
    /// If not NULL, the task runs only if this holds.
    pub predicate: PredicatePtr,
}

/// Sets all options to their defaults. `size` is `sizeof(pld_task_options_t)` in the caller's header. Local; callable
/// from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_task_options_init(options: TaskOptionsOut, size: usize) -> pld_status_t {
    guard::status(|| options.init(size))
}

/// Begins a task of the open entry: the only place of loads, stores, transfers, signals and tile arithmetic. The name
/// appears in reports. `options` may be NULL. `pld_task_end` ends it.
///
/// Tasks of an entry run in any order that keeps this: a task waits for the tasks before it that wrote what it touches
/// or touched what it writes, and for its `deps`. (A put, remote store or notify writes its target, whoever the peer is;
/// additions commute.) A task that stands before in the same or an enclosing block counts with its latest instance, one
/// inside an earlier loop or if with all its instances so far, of which there may be none.
#[unsafe(no_mangle)]
pub extern "C" fn pld_at_begin(p: Option<&mut pld_program_t>, name: Text, options: TaskOptions) {
    build(p, |c| {
        let (name, options) = (c.name(name), c.task_options(options));
        c.builder.at_begin(name, options);
        Some(())
    })
}

/// Begins a task that is a grid of `blocks` blocks, and returns which of them runs: 0 to `blocks - 1`. The blocks run in
/// any order, also at the same time; the task is over when all are. Otherwise as `pld_at_begin`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_spmd_begin(
    p: Option<&mut pld_program_t>,
    name: Text,
    blocks: pld_scalar_t,
    options: TaskOptions,
) -> pld_scalar_t {
    build(p, |c| {
        let (name, blocks) = (c.name(name), c.get_or_zero(blocks, "blocks"));
        let options = c.task_options(options);
        Some(c.builder.spmd_begin(name, blocks, options).1)
    })
}

/// The block of the open grid, as `pld_spmd_begin` returned it.
#[unsafe(no_mangle)]
pub extern "C" fn pld_block_index(p: Option<&mut pld_program_t>) -> pld_scalar_t {
    build(p, |c| c.builder.block_index())
}

/// Ends the task.
#[unsafe(no_mangle)]
pub extern "C" fn pld_task_end(p: Option<&mut pld_program_t>) -> pld_task_t {
    build(p, |c| c.builder.task_end())
}

/// A task that does nothing: it is over when its `deps` are, and stands for all of them. `PLD_TASKS` writes the list.
#[unsafe(no_mangle)]
pub extern "C" fn pld_join(p: Option<&mut pld_program_t>, name: Text, deps: Tasks, ndeps: usize) -> pld_task_t {
    build(p, |c| {
        let options = ir::TaskOptions { deps: c.tasks(deps, ndeps), ..Default::default() };
        let name = c.name(name);
        c.builder.at_begin(name, options);
        c.builder.task_end()
    })
}

/// Gives a task's id a name, which the program's text shows where others depend on it.
#[unsafe(no_mangle)]
pub extern "C" fn pld_task_name(p: Option<&mut pld_program_t>, task: pld_task_t, name: Text) {
    build(p, |c| {
        let (task, name) = (c.get(task, "the task")?, c.name(name));
        c.builder.name_task(task, name);
        Some(())
    })
}

/// Begins a part of the entry in which tasks wait for their `deps` only, and no other task waits for what they touch.
/// Not inside another one. `pld_manual_end` ends it.
#[unsafe(no_mangle)]
pub extern "C" fn pld_manual_begin(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.manual_begin();
        Some(())
    })
}

/// Ends the manual part.
#[unsafe(no_mangle)]
pub extern "C" fn pld_manual_end(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.manual_end();
        Some(())
    })
}

/// Nobody's accesses to this parameter, or to slices of it, order any tasks.
#[unsafe(no_mangle)]
pub extern "C" fn pld_manual_dep(p: Option<&mut pld_program_t>, tensor: pld_tensor_t) {
    build(p, |c| {
        let tensor = c.get(tensor, "the tensor")?;
        c.builder.manual_dep(tensor);
        Some(())
    })
}

/// The comparison that a number stands for.
pub(super) fn comparison(raw: pld_cmp_t) -> Option<BinaryOp> {
    match raw {
        1 => Some(BinaryOp::Eq),
        2 => Some(BinaryOp::Ne),
        3 => Some(BinaryOp::Lt),
        4 => Some(BinaryOp::Le),
        5 => Some(BinaryOp::Gt),
        6 => Some(BinaryOp::Ge),
        _ => None,
    }
}

// What is wrong with the options must not keep a task from being begun: mistakes are noted and left out.
impl Call<'_> {
    /// The options of a task.
    pub(super) fn task_options(&mut self, options: TaskOptions) -> ir::TaskOptions {
        let options = match options.read() {
            Ok(options) => options,
            Err(error) => {
                self.builder.mistake(BAD_ARGUMENT, error.message, "pld_task_defaults and pld_deps make options");
                return ir::TaskOptions::default();
            }
        };
        ir::TaskOptions {
            deps: self.tasks(options.deps, options.ndeps),
            no_dep: self.no_dep(options.no_dep, options.n_no_dep),
            predicate: options.predicate.get().and_then(|predicate| self.predicate(predicate)),
            allow_early_resolve: options.allow_early_resolve != 0,
        }
    }

    fn tasks(&mut self, tasks: Tasks, count: usize) -> Vec<Task> {
        self.handles(tasks.get(count), count, "deps", "a task of deps")
    }

    fn no_dep(&mut self, tensors: TensorHandles, count: usize) -> Vec<Tensor> {
        self.handles(tensors.get(count), count, "no_dep", "a tensor of no_dep")
    }

    fn handles<H: Handle>(&mut self, list: Option<&[H]>, count: usize, name: &str, each: &str) -> Vec<H::Entity> {
        if list.is_none() {
            self.builder.mistake(BAD_ARGUMENT, format!("{name} is NULL, but its count is {count}"), "");
        }
        list.unwrap_or_default().iter().filter_map(|&handle| self.get(handle, each)).collect()
    }

    fn predicate(&mut self, predicate: &pld_predicate_t) -> Option<Predicate> {
        let tensor = self.get(predicate.tensor, "the tensor of the predicate")?;
        let at: Dims = self.offsets(predicate.offsets, predicate.noffsets)?;
        let cmp = self.known(comparison(predicate.cmp), "comparison", predicate.cmp)?;
        Some(Predicate { tensor, at, cmp, value: predicate.value })
    }
}
