//! Executables: programs compiled for a world, and their launches.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::runtime;

use super::arg::Arguments;
use super::guard;
use super::log::Log;
use super::options::{CompileOptions, CompileOptionsOut};
use super::pointer::{Args, Callbacks, Executable, NativeStream, Text, World};
use super::program::pld_program_t;
use super::reserve;
use super::run::pld_run_t;
use super::status::pld_status_t;

/// Memory that compiling takes at most, for a program and for each of its ops.
const MEMORY: usize = 8 << 20;
const MEMORY_OF_OP: usize = 64 << 10;

/// A program compiled for a world. It keeps the world's memory alive. Any number of threads may use it, but a world is
/// used by one call at a time: a launch, reset or compile of another thread meanwhile gets `PLD_ERR_BUSY`.
pub struct pld_executable_t {
    executable: Arc<runtime::Executable>,
    name: String,
    log: Arc<Log>,
}

/// Options of `pld_compile`. `pld_compile_options_init` sets the size; 0 is the default everywhere else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_compile_options_t {
    /// `sizeof(pld_compile_options_t)`.
    pub struct_size: u32,
    /// Other than 0: windows keep their contents from launch to launch, and launches need no barrier. By default every
    /// launch sees zeroed windows.
    pub persistent: u32,
    /// Other than 0: offsets, peers and divisors are not checked when the program runs; a mistake in them is then
    /// undefined behaviour. Nor do ranks compare which collectives they call: if they differ, they wait until the time-out.
    pub unchecked: u32,
    /// Functions for extern and host tasks, by name, in place of those that the program was built with: a program that
    /// was parsed has none.
    pub callbacks: Callbacks,
    /// Number of `callbacks`.
    pub ncallbacks: usize,
    /// The name of the pool that its windows lie in, or NULL for windows of its own. Executables of one pool share
    /// persistent windows by name: the same name is the same memory, of the same size. The pool lives as long as the
    /// world.
    pub pool: Text,
    /// Bytes of windows that the pool can take, each window rounded up to 64; what the first program that names the pool
    /// says holds. Default as many as that program has.
    pub pool_bytes: u64,
    /// Other than 0: note when each rank begins and ends its part of a launch, for `pld_executable_time`. Costs a launch
    /// two looks at the clock a rank.
    pub timed: u32,
}

impl pld_compile_options_t {
    fn runtime(&self, p: &pld_program_t) -> Result<runtime::CompileOptions> {
        let pool = self.pool.get().map(|_| self.pool.str("pool")).transpose()?;
        Ok(runtime::CompileOptions {
            persistent: self.persistent != 0,
            unchecked: self.unchecked != 0,
            callbacks: p.functions.with(self.callbacks, self.ncallbacks)?,
            pool: pool.map(Into::into),
            timed: self.timed != 0,
            pool_bytes: (self.pool_bytes != 0).then_some(self.pool_bytes as usize),
        })
    }
}

/// Sets all options to their defaults. `size` is `sizeof(pld_compile_options_t)` in the caller's header. Local; callable
/// from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_compile_options_init(options: CompileOptionsOut, size: usize) -> pld_status_t {
    guard::status(|| options.init(size))
}

/// Verifies the finished program for this number of ranks, turns it into machine code, and reserves its windows,
/// zeroed, on every rank. Collective: all ranks compile the same program with the same options, which is compared. Blocks
/// until all have. `options` may be NULL. The program may be destroyed afterwards. The caller owns the executable and
/// destroys it with `pld_executable_destroy`.
///
/// Errors, the same on every rank: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_INVALID_ARGUMENT` if
/// an extern or host task has no function or a callback belongs to none of them, `PLD_ERR_VERIFY`,
/// `PLD_ERR_UNSUPPORTED`, `PLD_ERR_MISMATCH` (also of a window with the pool's), `PLD_ERR_NO_SPACE` (also in the pool),
/// `PLD_ERR_TIMEOUT`, or what ended the world.
#[unsafe(no_mangle)]
pub extern "C" fn pld_compile(
    p: Option<&pld_program_t>,
    w: World,
    options: CompileOptions,
    out_executable: Option<&mut MaybeUninit<*mut pld_executable_t>>,
) -> pld_status_t {
    guard::status(|| {
        let out = out_executable.ok_or_else(|| Error::invalid("out_executable is NULL"))?;
        let p = p.ok_or_else(|| Error::invalid("the program is NULL"))?;
        let program = p.finished()?;
        let w = w.get("the world")?;
        let options = options.read()?.runtime(p)?;
        reserve::ensure(MEMORY + program.ops.len() * MEMORY_OF_OP)?;
        let begin = Instant::now();
        let executable = runtime::Executable::compile(program, &w.world, &options)
            .inspect_err(|error| w.log.error("not compiled", error))?;
        let (name, log) = (program.name.clone(), w.log.clone());
        log.info(|| format!("program {name:?} compiled in {} us", begin.elapsed().as_micros()));
        out.write(Box::into_raw(Box::new(pld_executable_t { executable, name, log })));
        Ok(())
    })
}

/// Runs the program once and blocks until this process's ranks are done, after all runs that were submitted before. One
/// argument for each parameter of the host driver, in order; see `pld_arg_t`. Collective: every rank launches, submits
/// and resets in the same order. In a world of processes a rank's part runs on the calling thread.
///
/// Errors of this process, found before anything runs: `PLD_ERR_INVALID_ARGUMENT` (number, type, shape, contiguity,
/// alignment or aliasing of the arguments), `PLD_ERR_BUSY` (also for a resident that is being copied),
/// `PLD_ERR_FORKED`. Errors that end the launch on every rank, the same everywhere: `PLD_ERR_TIMEOUT`,
/// `PLD_ERR_OUT_OF_BOUNDS`, `PLD_ERR_ARITHMETIC`, `PLD_ERR_MISMATCH`, `PLD_ERR_CALLBACK`; and those that end the world
/// too: `PLD_ERR_PEER_LOST`, `PLD_ERR_ABORTED`. The contents of outputs are then undefined.
///
/// A rank that had done its part when another one failed gets the error from its next call, which does nothing else. The
/// call after a failure recovers first: in a world of processes all ranks meet, and must make the same call
/// (`PLD_ERR_MISMATCH` otherwise; `PLD_ERR_TIMEOUT` naming the ranks that do not come). Windows that the failed launch
/// used are zeroed, also persistent ones.
#[unsafe(no_mangle)]
pub extern "C" fn pld_launch(x: Executable, args: Args, nargs: usize) -> pld_status_t {
    guard::status(|| {
        let x = x.get("the executable")?;
        x.logged(Arguments::with(args, nargs, |args| x.executable.launch(args)))
    })
}

/// As `pld_launch`, but does not wait for the end: it runs after everything that was submitted to the world before. The
/// arguments' memory must stay valid until the run is done; the `pld_arg_t` and lists themselves need not, and residents
/// may be destroyed. Blocks only while the world's `max_runs` runs have not ended. The caller owns the run and ends it
/// with `pld_run_destroy`.
///
/// Each run has its own result. Behind a failed run the next one recovers and runs, in a world of threads; in a world of
/// processes all runs that are queued then end with the same error, for ranks may have submitted different numbers of
/// them, and those submitted later run.
#[unsafe(no_mangle)]
pub extern "C" fn pld_submit(
    x: Executable,
    args: Args,
    nargs: usize,
    out_run: Option<&mut MaybeUninit<*mut pld_run_t>>,
) -> pld_status_t {
    guard::status(|| {
        let out = out_run.ok_or_else(|| Error::invalid("out_run is NULL"))?;
        let x = x.get("the executable")?;
        reserve::ensure(0)?;
        let run = x.logged(Arguments::with(args, nargs, |args| x.executable.submit(args)))?;
        out.write(Box::into_raw(Box::new(pld_run_t { run })));
        Ok(())
    })
}

/// As `pld_launch`, but on the engine's stream: queues the launch behind what is on `native_stream` (an `aclrtStream` of
/// the rank's card; NULL for the default stream) and returns. What comes on the stream later comes after the launch, so the
/// engine orders it with other streams by its own events. The memory of the arguments is used until then. For a world
/// that `pld_world_join` made of cards (`PLD_TRANSPORT_HCCL`), and a persistent executable without host tasks.
///
/// What is found before anything runs is returned, as by `pld_launch`. A launch that fails later ends like any other, on
/// every rank; the next call on the world returns its error, as does `pld_launch`. Blocks only while the world's
/// `max_runs` launches have not ended.
///
/// Errors besides: `PLD_ERR_UNSUPPORTED` in any other world, `PLD_ERR_INVALID_STATE` if the executable is not persistent,
/// `PLD_ERR_DEVICE`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_launch_on(x: Executable, args: Args, nargs: usize, native_stream: NativeStream) -> pld_status_t {
    guard::status(|| {
        let x = x.get("the executable")?;
        // SAFETY: a stream of the rank's card, the header demands.
        let launch_on = |args: &[runtime::Arg<'_>], stream| unsafe { x.executable.launch_on(args, stream) };
        x.logged(Arguments::with(args, nargs, |args| native_stream.with(|stream| launch_on(args, stream))))
    })
}

/// Zeroes the windows of a persistent executable, or the whole pool that they lie in, as after `pld_compile`. Collective,
/// blocks; between launches.
/// Errors: `PLD_ERR_INVALID_STATE` if the executable is not persistent, `PLD_ERR_BUSY`, or what ended the world.
#[unsafe(no_mangle)]
pub extern "C" fn pld_executable_reset(x: Executable) -> pld_status_t {
    guard::status(|| {
        let x = x.get("the executable")?;
        x.logged(x.executable.reset())
    })
}

/// When a rank had its part of a launch, in nanoseconds of `CLOCK_MONOTONIC`, which all processes of a host share.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_launch_time_t {
    /// When it came to the launch.
    pub begin_ns: i64,
    /// When its part was over; without host tasks, which come after all ranks.
    pub end_ns: i64,
}

/// When `rank`, which is one that this process drives, had its part of the last launch; zeros before the first. The
/// executable is compiled with `timed`, and nothing is launched meanwhile. Local, does not block.
///
/// Errors: `PLD_ERR_INVALID_STATE` if it is not compiled so, `PLD_ERR_INVALID_ARGUMENT` if the rank is another process's.
#[unsafe(no_mangle)]
pub extern "C" fn pld_executable_time(
    x: Executable,
    rank: u32,
    out_time: Option<&mut MaybeUninit<pld_launch_time_t>>,
) -> pld_status_t {
    guard::status(|| {
        let x = x.get("the executable")?;
        let out = out_time.ok_or_else(|| Error::invalid("out_time is NULL"))?;
        let (begin, end) = x.executable.time(rank)?;
        out.write(pld_launch_time_t { begin_ns: begin as i64, end_ns: end as i64 });
        Ok(())
    })
}

/// Frees an executable; NULL is ignored. Local. Nobody else may use it any more; runs of it may still be waited for and
/// destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn pld_executable_destroy(x: Option<Box<pld_executable_t>>) {
    guard::value((), || {
        drop(x);
        Ok(())
    });
}

impl pld_executable_t {
    fn logged<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.log.error(&self.name, error))
    }
}
