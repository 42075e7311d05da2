//! Programs compiled for a world.

use std::borrow::Cow;
use std::cell::UnsafeCell;
use std::ffi::CString;
use std::sync::Arc;

use super::aligned::Aligned;
use super::args::{Signature, Table};
use super::callback::{self, Callback};
use super::cards::Kernels;
use super::cells::Cells;
use super::core::Core;
use super::hooks;
use super::recovery::{Message, Step, Topic};
use super::time::LaunchTime;
use super::trace::Labels;
use super::windows::Windows;
use super::world::World;
use crate::codegen::cpu::abi::{Driver, Hooks};
use crate::codegen::cpu::{self, Binding, Code, FunctionCode, TaskCode};
use crate::codegen::sites::Site;
use crate::error::{Error, ErrorKind, Result};
use crate::ir::print::print;
use crate::ir::{NumberedCall, Program, Severity};
use crate::passes::expand_collectives::{Target, expand_collectives};
use crate::passes::plan_windows::{Layout, plan_windows};
use crate::passes::share_windows::Pool;
use crate::verify::rules::NEVER_NOTIFIED;
use crate::verify::verify;

/// How a program is compiled.
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// Windows keep what is in them from launch to launch: no zeroing, and nothing to wait for at the beginning.
    pub persistent: bool,
    /// Leave out the checks of offsets and peers that are only known when the program runs.
    pub unchecked: bool,
    /// The engine's functions, by their names in the program; of several for one name the last counts.
    pub callbacks: Vec<(String, Callback)>,
    /// The pool that its windows lie in: persistent memory that lives as long as the world. Windows of one name are the
    /// same in all programs of a pool.
    pub pool: Option<String>,
    /// Note when each rank begins and ends its part of a launch, see [`Executable::time`].
    pub timed: bool,
    /// Bytes of windows that the pool can take; the first program that names the pool says it. None for as many as that
    /// program has.
    pub pool_bytes: Option<usize>,
}

/// A program compiled for a world, with windows of its own or in a pool. Keeps its world.
pub struct Executable {
    // Before the world: windows go before what they were made with.
    pub(super) image: Arc<Image>,
    pub(super) world: Arc<World>,
}

/// What is left of a program when it is compiled.
pub(super) struct Routine {
    pub(super) driver: Driver,
    pub(super) host_tasks: Option<Driver>,
    pub(super) scratch_bytes: usize,
    pub(super) sites: Vec<Site>,
    pub(super) tasks: Vec<TaskCode>,
    pub(super) functions: Vec<FunctionCode>,
    pub(super) calls: Vec<NumberedCall>,
    /// What `driver` lies in; none for a function of this program.
    pub(super) _code: Option<Code>,
}

/// The part of an executable that its world knows too.
pub(super) struct Image {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) routine: Routine,
    pub(super) windows: Arc<Windows>,
    pub(super) cells: Arc<Cells>,
    /// Its tasks, where ranks are cards.
    pub(super) kernels: Option<Kernels>,
    pub(super) signature: Signature,
    /// What the program's functions are, by number, with their names.
    pub(super) callbacks: Box<[(CString, Callback)]>,
    /// Tile memory of each rank that this process drives.
    pub(super) scratch: Box<[Aligned]>,
    /// When each of them had its part of the last launch; none unless it is wanted.
    pub(super) times: Box<[LaunchTime]>,
    /// Arguments of launches, for the holder of the world's turn.
    pub(super) table: UnsafeCell<Table>,
}

// SAFETY: `table` is used by the holder of the world's turn only; what a launch shares with rank threads is handed to
// them and back. Everything else is not changed after it was made, or consists of atomics.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Executable {
    /// Verifies a program for the size of the world, compiles it, and allocates its windows. Collective: all ranks
    /// compile the same program with the same options, in the same order.
    pub fn compile(program: &Program, world: &Arc<World>, options: &CompileOptions) -> Result<Arc<Executable>> {
        let core = world.core();
        let target = Target {
            nranks: core.nranks,
            crowded: core.crowded,
            hosts: core.far().map_or_else(Vec::new, |far| far.hosts().to_vec()),
            checked: !options.unchecked,
        };
        // A mistake is told to all ranks when they agree on the program.
        let (program, sound) = match write_out(program, &target, options.pool.is_some()) {
            Ok(program) => (program, Ok(())),
            Err(mistake) => (Cow::Borrowed(program), Err(mistake)),
        };
        Self::build(
            &program,
            world,
            options,
            |_| sound,
            |binding, hooks| {
                let code = cpu::compile(&program, binding, hooks)?;
                Ok(Routine {
                    driver: code.driver,
                    host_tasks: code.host_tasks,
                    scratch_bytes: code.scratch_bytes,
                    sites: code.sites.clone(),
                    tasks: code.tasks.clone(),
                    functions: code.functions.clone(),
                    calls: code.calls.clone(),
                    _code: Some(code),
                })
            },
        )
    }

    /// [`Executable::compile`] with any verifier and compiler.
    pub(super) fn build(
        program: &Program,
        world: &Arc<World>,
        options: &CompileOptions,
        check: impl FnOnce(u32) -> Result<()>,
        compile: impl FnOnce(&Binding, &Hooks) -> Result<Routine>,
    ) -> Result<Arc<Executable>> {
        let core = world.core();
        let _turn = core.take(Step::Compile(&program.name))?;
        let nranks = core.nranks;

        let prepared = check(nranks).and_then(|()| {
            callback::check(program, &options.callbacks)?;
            let mut layout = plan_windows(program, nranks)?;
            let pool = plan_pool(core, program, options, &mut layout)?;
            Ok((layout, pool, Signature::new(program, core)?))
        });
        let mine = prepared.as_ref().map(|(layout, pool, _)| description(program, layout, pool.as_ref(), options));
        agree(core, &program.name, mine.map_err(Clone::clone))?;
        let (layout, pool, signature) = prepared?;

        let (bytes, persistent) = match &pool {
            Some(pool) => (pool.capacity, true),
            None => (layout.bytes, options.persistent),
        };
        let windows = match pool.as_ref().and_then(|pool| core.pools.windows(&pool.name)) {
            Some(windows) => windows,
            None => {
                let windows =
                    Windows::allocate(&**core.transport, core.board.far(), bytes, persistent, core.meeting_deadline());
                Arc::new(windows.map_err(|e| core.lost(e))?)
            }
        };
        let offloaded = core.transport.cards().is_some();
        let binding = Binding {
            nranks,
            rank: (core.local.len() == 1).then_some(core.local.start),
            stride: windows.stride(),
            layout: &layout,
            checked: !options.unchecked,
            shaken: core.shaken,
            traced: core.trace.is_some(),
            offloaded,
            far: core.board.far(),
            fenced: core.fenced,
        };
        let compiled = compile(&binding, &hooks::HOOKS).and_then(|mut routine| {
            let scratch: Result<_> = core.local.clone().map(|_| Aligned::new(routine.scratch_bytes, "tiles")).collect();
            let callbacks = callback::by_number(&routine.functions, &options.callbacks)?;
            let Routine { tasks, sites, .. } = &mut routine;
            let kernels = Kernels::build(core, program, &layout, &windows, tasks, !options.unchecked, sites)?;
            Ok((routine, scratch?, callbacks, kernels))
        });
        agree(core, &program.name, compiled.as_ref().map(|_| "compiled".into()).map_err(Clone::clone))?;
        let (routine, scratch, callbacks, kernels) = compiled?;

        if let Some(pool) = pool {
            core.pools.keep(pool, &windows);
        }
        let image = core.add_image(|id| Image {
            id,
            name: program.name.clone(),
            routine,
            windows,
            cells: Arc::new(Cells::new(program, &layout, nranks)),
            kernels,
            table: UnsafeCell::new(signature.table()),
            signature,
            callbacks,
            scratch,
            times: if options.timed {
                core.local.clone().map(|_| LaunchTime::default()).collect()
            } else {
                Box::default()
            },
        });
        if let Some(trace) = &core.trace {
            let (program, sites) = (image.name.clone(), image.routine.sites.clone());
            let labels = Labels { program, sites, cells: image.cells.clone(), sets: image.windows.sets() };
            trace.name(image.id, labels);
        }
        Ok(Arc::new(Executable { image, world: world.clone() }))
    }
}

/// The program without collectives, if it is sound.
fn write_out<'p>(program: &'p Program, target: &Target, pooled: bool) -> Result<Cow<'p, Program>> {
    check_rules(program, target.nranks, pooled)?;
    let expanded = expand_collectives(program, target)?;
    if let Cow::Owned(expanded) = &expanded {
        check_rules(expanded, target.nranks, pooled).map_err(|e| {
            Error::new(ErrorKind::Internal, format!("a collective was not written out well: {}", e.message))
        })?;
    }
    Ok(expanded)
}

/// Everything that the verifier finds wrong, now that the world is known. Only in a pool is there somebody else who may
/// notify what a program waits for.
fn check_rules(program: &Program, nranks: u32, pooled: bool) -> Result<()> {
    let mut findings = verify(program, Some(nranks));
    if !pooled {
        let never_ends = findings.iter_mut().filter(|finding| finding.code == NEVER_NOTIFIED.code);
        never_ends.for_each(|finding| finding.severity = Severity::Error);
    }
    findings.retain(|finding| finding.severity == Severity::Error);
    let errors: Vec<String> = findings.iter().map(ToString::to_string).collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::new(ErrorKind::Verify, errors.join("\n"))) }
}

/// Finds places for the windows of a program that goes into a pool: the pool as it will be.
fn plan_pool(core: &Core, program: &Program, options: &CompileOptions, layout: &mut Layout) -> Result<Option<Pool>> {
    let Some(name) = &options.pool else {
        return match options.pool_bytes {
            None => Ok(None),
            Some(bytes) => Err(Error::invalid(format!("pool_bytes is {bytes}, but no pool is named"))),
        };
    };
    if name.is_empty() {
        return Err(Error::invalid("the name of the pool is empty"));
    }
    let new = || Pool::new(name, options.pool_bytes.unwrap_or(layout.bytes));
    let mut pool = core.pools.plan(name).unwrap_or_else(new);
    pool.place(program, layout)?;
    Ok(Some(pool))
}

/// What the ranks must agree on, and read when they do not.
fn description(program: &Program, layout: &Layout, pool: Option<&Pool>, options: &CompileOptions) -> String {
    let text = print(program);
    let windows = match pool {
        Some(pool) => format!("{} of the {} bytes of pool '{}'", layout.bytes, pool.capacity, pool.name),
        None if options.persistent => format!("{} bytes of persistent windows", layout.bytes),
        None => format!("{} bytes of fresh windows", layout.bytes),
    };
    let checked = if options.unchecked { "unchecked" } else { "checked" };
    let (name, lines, hash) = (&program.name, text.lines().count(), hash(&format!("{text}{layout:?}")));
    format!("'{name}' ({lines} lines, hash {hash:016x}, {windows}, {checked})")
}

/// FNV-1a: the same on every host and in every version of the library.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Compares this rank's step of compiling with everyone's: all go on, or all get an error.
fn agree(core: &Core, name: &str, mine: Result<String>) -> Result<()> {
    let message = match &mine {
        Ok(text) => Message::new(Topic::Compiled, text),
        Err(error) => Message::new(Topic::NotCompiled, error.message.lines().next().unwrap_or_default()),
    };
    let all = core.meet(message)?;
    mine?;
    if let Some(rank) = all.iter().position(|message| !message.is(Topic::Compiled)) {
        let message = format!("rank {rank} did not compile '{name}': {}", all[rank].text());
        return Err(Error::new(ErrorKind::Mismatch, message));
    }
    match all.iter().position(|message| message != &all[0]) {
        None => Ok(()),
        Some(rank) => {
            let (first, other) = (all[0].text(), all[rank].text());
            let message = format!("ranks compile different programs: rank 0 {first}, rank {rank} {other}");
            Err(Error::new(ErrorKind::Mismatch, message))
        }
    }
}
