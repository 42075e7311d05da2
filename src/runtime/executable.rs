//! Programs compiled for a world.

use std::alloc::Layout as Allocation;
use std::cell::UnsafeCell;
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;

use super::args::{Signature, Table};
use super::callback::{self, Callback};
use super::cells::Cells;
use super::core::Core;
use super::hooks;
use super::windows::Windows;
use super::world::World;
use crate::codegen::cpu::abi::{Driver, Hooks};
use crate::codegen::cpu::{self, Binding, Code, FunctionCode, Site, TaskCode};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::print::print;
use crate::ir::{Program, Severity};
use crate::passes::plan_windows::{Layout, plan_windows};
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
}

/// A program compiled for a world, with windows of its own. Keeps its world.
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
    /// What `driver` lies in; none for a function of this program.
    pub(super) _code: Option<Code>,
}

/// The part of an executable that its world knows too.
pub(super) struct Image {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) routine: Routine,
    pub(super) windows: Windows,
    pub(super) cells: Cells,
    pub(super) signature: Signature,
    /// What the program's functions are, by number, with their names.
    pub(super) callbacks: Box<[(CString, Callback)]>,
    /// Tile memory of each rank that this process drives.
    pub(super) scratch: Box<[Scratch]>,
    /// For the holder of the world's turn.
    pub(super) state: UnsafeCell<State>,
}

// SAFETY: `state` is used by the holder of the world's turn only; what a launch shares with rank threads is handed to
// them and back. Everything else is not changed after it was made, or consists of atomics.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

/// What changes from launch to launch.
pub(super) struct State {
    pub(super) table: Table,
    /// Launches that were begun.
    pub(super) launches: u64,
    /// Resets that were begun.
    pub(super) resets: u64,
}

impl Executable {
    /// Verifies a program for the size of the world, compiles it, and allocates its windows. Collective: all ranks
    /// compile the same program with the same options, in the same order.
    pub fn compile(program: &Program, world: &Arc<World>, options: &CompileOptions) -> Result<Arc<Executable>> {
        let check = |nranks| check_rules(program, nranks);
        Self::build(program, world, options, check, |binding, hooks| {
            let code = cpu::compile(program, binding, hooks)?;
            Ok(Routine {
                driver: code.driver,
                host_tasks: code.host_tasks,
                scratch_bytes: code.scratch_bytes,
                sites: code.sites.clone(),
                tasks: code.tasks.clone(),
                functions: code.functions.clone(),
                _code: Some(code),
            })
        })
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
        let _turn = core.take()?;
        let nranks = core.nranks;

        let prepared = check(nranks)
            .and_then(|()| callback::check(program, &options.callbacks))
            .and_then(|()| Ok((plan_windows(program, nranks)?, Signature::new(program, nranks, core.rank)?)));
        let mine = prepared.as_ref().map(|(layout, _)| description(program, layout, options));
        agree(core, &program.name, mine.map_err(Clone::clone))?;
        let (layout, signature) = prepared?;

        let windows = Windows::allocate(&**core.transport, layout.bytes, options.persistent, core.meeting_deadline())
            .map_err(|e| lost(core, e))?;
        let binding = Binding {
            nranks,
            rank: (core.local.len() == 1).then_some(core.local.start),
            stride: windows.stride(),
            layout: &layout,
            checked: !options.unchecked,
        };
        let compiled = compile(&binding, &hooks::HOOKS).and_then(|routine| {
            let scratch: Result<_> = core.local.clone().map(|_| Scratch::new(routine.scratch_bytes)).collect();
            let callbacks = callback::by_number(&routine.functions, &options.callbacks)?;
            Ok((routine, scratch?, callbacks))
        });
        agree(core, &program.name, compiled.as_ref().map(|_| "compiled".into()).map_err(Clone::clone))?;
        let (routine, scratch, callbacks) = compiled?;

        let image = core.add_image(|id| Image {
            id,
            name: program.name.clone(),
            routine,
            windows,
            cells: Cells::new(program, &layout, nranks),
            state: UnsafeCell::new(State { table: signature.table(), launches: 0, resets: 0 }),
            signature,
            callbacks,
            scratch,
        });
        Ok(Arc::new(Executable { image, world: world.clone() }))
    }
}

/// Everything that the verifier finds wrong, now that the world is known.
fn check_rules(program: &Program, nranks: u32) -> Result<()> {
    let errors = verify(program, Some(nranks)).into_iter().filter(|d| d.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::new(ErrorKind::Verify, errors.join("\n"))) }
}

/// What the ranks must agree on, and read when they do not.
fn description(program: &Program, layout: &Layout, options: &CompileOptions) -> String {
    let text = print(program);
    let persistent = if options.persistent { "persistent" } else { "fresh" };
    let checked = if options.unchecked { "unchecked" } else { "checked" };
    let (name, bytes, lines) = (&program.name, layout.bytes, text.lines().count());
    format!("'{name}' ({lines} lines, hash {:016x}, {bytes} bytes of {persistent} windows, {checked})", hash(&text))
}

/// FNV-1a: the same on every host and in every version of the library.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Compares this rank's step of compiling with everyone's: all go on, or all get an error.
fn agree(core: &Core, name: &str, mine: Result<String>) -> Result<()> {
    const DONE: u8 = 0;
    const FAILED: u8 = 1;
    const LONGEST: usize = 1024;
    let (tag, text) = match &mine {
        Ok(text) => (DONE, text.as_str()),
        Err(error) => (FAILED, error.message.lines().next().unwrap_or_default()),
    };
    let mut message = vec![tag];
    message.extend(text.bytes().take(LONGEST));
    let all = core.transport.exchange(&message, core.meeting_deadline()).map_err(|e| lost(core, e))?;
    mine?;
    let says = |rank: usize| String::from_utf8_lossy(all[rank].get(1..).unwrap_or_default()).into_owned();
    if let Some(rank) = all.iter().position(|m| m.first() != Some(&DONE)) {
        let message = format!("rank {rank} did not compile '{name}': {}", says(rank));
        return Err(Error::new(ErrorKind::Mismatch, message));
    }
    match all.iter().position(|m| *m != all[0]) {
        None => Ok(()),
        Some(rank) => {
            let message = format!("ranks compile different programs: rank 0 {}, rank {rank} {}", says(0), says(rank));
            Err(Error::new(ErrorKind::Mismatch, message))
        }
    }
}

/// A rank that is lost while all work together fails the world.
fn lost(core: &Core, error: Error) -> Error {
    if error.kind == ErrorKind::PeerLost {
        core.fail(core.local.start, &error);
    }
    error
}

/// Tile memory of a rank.
pub(super) struct Scratch {
    data: NonNull<u8>,
    allocation: Allocation,
}

// SAFETY: memory that belongs to whoever holds this.
unsafe impl Send for Scratch {}

impl Scratch {
    pub(super) fn new(bytes: usize) -> Result<Self> {
        let no_memory = || Error::new(ErrorKind::NoMemory, format!("no memory for {bytes} bytes of tiles"));
        let allocation = Allocation::from_size_align(bytes.max(1), 64).map_err(|_| no_memory())?;
        // SAFETY: the size is not 0.
        let data = NonNull::new(unsafe { std::alloc::alloc_zeroed(allocation) }).ok_or_else(no_memory)?;
        Ok(Self { data, allocation })
    }

    pub(super) fn bytes(&self) -> usize {
        self.allocation.size()
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.data.as_ptr()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no launch uses it any more.
        unsafe { std::alloc::dealloc(self.data.as_ptr(), self.allocation) };
    }
}
