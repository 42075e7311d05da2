//! A launch: the driver, once a rank.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::args::{Arg, Table};
use super::cards;
use super::core::Core;
use super::executable::{Executable, Image};
use super::hooks::Context;
use super::recovery::Step;
use super::report;
use super::resident::InUse;
use super::trace::{Kind, TO_BEGIN};
use super::traffic::Traffic;
use super::wait::SLICE;
use crate::codegen::cpu::abi::{Driver, Exit, Frame, NO_FAULT};
use crate::error::{Error, ErrorKind, Result};

/// How often a reset looks for peers that are late: their last launch does not ring for it.
const RESET_SLICE: Duration = Duration::from_millis(1);

impl Executable {
    /// Runs the program. Collective; blocks until this process's ranks have done their part. Memory of the arguments is
    /// used until then, also when the launch fails.
    pub fn launch(&self, args: &[Arg]) -> Result<()> {
        let core = self.world.core();
        let _turn = core.take(Step::Launch(&self.image))?;
        let _in_use = InUse::new(args)?;
        // SAFETY: this thread has the world's turn.
        let table = unsafe { &mut *self.image.table.get() };
        self.image.signature.bind(args, table)?;
        launch(core, &self.image, table)
    }

    /// Zeroes persistent windows on all ranks, between launches. Collective.
    pub fn reset(&self) -> Result<()> {
        let (core, image) = (self.world.core(), &*self.image);
        core.check_open()?;
        if !image.windows.persistent() {
            let message = format!("'{}' is not persistent: every launch sees zeroed windows", image.name);
            return Err(Error::new(ErrorKind::InvalidState, message));
        }
        let _turn = core.take(Step::Reset(image))?;
        let (launches, resets) = (image.windows.launches(), image.windows.begin_reset());
        let pass = |ready: &dyn Fn() -> bool| {
            pass_gate(core, image, core.local.start, launches, "to reset the windows", RESET_SLICE, ready)
        };
        let zero = || core.local.clone().for_each(|rank| image.windows.zero(core, rank, resets));
        let passed = match core.far() {
            None => {
                pass(&|| image.windows.all_done(launches)) && {
                    zero();
                    pass(&|| image.windows.all_zeroed(resets))
                }
            }
            Some(far) => {
                let meet = || match core.come_to(far) {
                    Ok(mark) => pass(&|| core.ear.as_ref().is_none_or(|ear| ear.all_at(mark))),
                    Err(error) => {
                        core.fail(core.local.start, &error);
                        false
                    }
                };
                // What a rank has sent is there before it says that it has come here.
                let sent = core.reach_far(core.meeting_deadline()).inspect_err(|e| core.fail(core.local.start, e));
                sent.is_ok() && meet() && {
                    zero();
                    meet()
                }
            }
        };
        core.conclude(passed)
    }
}

/// Runs all ranks of this process; the holder of the world's turn calls it.
pub(super) fn launch(core: &Core, image: &Image, table: &Table) -> Result<()> {
    let launch = image.windows.launches();
    core.glance_at_peers(image, launch)?;
    image.windows.begin_launch();
    if core.local.len() == 1 {
        run_rank_caught(core, image, table, launch, core.local.start);
    } else {
        let job = core.handoff.post(words(image, table, launch));
        run_rank_caught(core, image, table, launch, 0);
        core.patience.wait(core.handoff.finish_bell(), || core.handoff.finished(job));
    }
    let ended = || core.local.clone().all(|rank| image.windows.progress(rank).done() > launch);
    let done = (!core.failed() || ended())
        && image.routine.host_tasks.is_none_or(|tasks| run_host_tasks(core, image, table, launch, tasks));
    if done && core.far().is_some() {
        core.launches.fetch_add(1, Ordering::Release);
    }
    core.conclude(done)
}

/// A launch as the words of a job.
fn words(image: &Image, table: &Table, launch: u64) -> [u64; 3] {
    [std::ptr::from_ref(image).expose_provenance() as u64, std::ptr::from_ref(table).expose_provenance() as u64, launch]
}

/// Runs `rank`'s part of the launch that `words` describe.
///
/// # Safety
/// The words are those of a posted job that `rank` has not finished.
pub(super) unsafe fn run_job(core: &Core, words: [u64; 3], rank: u32) {
    let image = std::ptr::with_exposed_provenance::<Image>(words[0] as usize);
    let table = std::ptr::with_exposed_provenance::<Table>(words[1] as usize);
    // SAFETY: whoever posted the job keeps both, and changes neither, until all workers have finished it.
    let (image, table) = unsafe { (&*image, &*table) };
    run_rank_caught(core, image, table, words[2], rank);
}

/// Nothing unwinds past the part of a rank: others may still use what it stands on.
fn run_rank_caught(core: &Core, image: &Image, table: &Table, launch: u64, rank: u32) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run_rank(core, image, table, launch, rank))) {
        core.fail_internal(rank, &*panic);
    }
}

/// Calls the engine's functions that come after the ranks' work; on this thread, with nothing of the launch under way.
/// Says whether all went well.
fn run_host_tasks(core: &Core, image: &Image, table: &Table, launch: u64, host_tasks: Driver) -> bool {
    let context = Context::new(core, image, launch, core.local.start);
    let mut frame = frame(&context, table, 0);
    // SAFETY: it was compiled for this table; the frame outlives the call.
    let exit = unsafe { host_tasks(&mut frame) };
    if exit == Exit::Fault as i32 {
        core.fail(context.rank, &report::fault(&context, &frame.fault));
    }
    exit == Exit::Done as i32
}

/// What the code of a rank gets. Built in place: it is too large to be copied in every launch.
#[inline(always)]
fn frame(context: &Context, table: &Table, live: u64) -> Frame {
    let Context { core, image, launch, rank, .. } = *context;
    Frame {
        windows: image.windows.base(launch, rank),
        dims: table.dims.as_ptr(),
        args: table.values.as_ptr(),
        scratch: image.scratch[(rank - core.local.start) as usize].as_ptr(),
        place: &raw const core.board.control(rank).place,
        far: core.board.far().as_ptr().cast(),
        outgoing: context.traffic.map_or(std::ptr::null(), Traffic::outgoing),
        incoming: context.traffic.map_or(std::ptr::null(), Traffic::incoming),
        bells: core.board.bells(),
        paces: core.paces(rank).as_ptr(),
        runtime: std::ptr::from_ref(context).cast_mut().cast(),
        live,
        written: 0,
        read: 0,
        rank,
        fault: NO_FAULT,
    }
}

fn run_rank(core: &Core, image: &Image, table: &Table, launch: u64, rank: u32) {
    let windows = &image.windows;
    let time = image.times.get((rank - core.local.start) as usize);
    if let Some(time) = time {
        time.begin();
    }
    let control = core.board.control(rank);
    control.begin(image.id, launch);
    let tasks = core.tasks(rank);
    if let Some(chaos) = tasks.chaos() {
        chaos.begin(image.id, launch);
    }
    let context = Context::new(core, image, launch, rank);
    if let Some(trace) = &core.trace {
        trace.record(&context, Kind::LaunchBegun, 0, 0, 0, 0);
    }
    let mut done_well = false;
    let may_begin = || windows.may_begin(core, rank, launch);
    if may_begin() || wait_to_begin(&context, may_begin) {
        if let Some(chaos) = tasks.chaos() {
            chaos.stop();
        }
        let done = match core.queue(rank) {
            None => drive(&context, table, tasks.at_rest()),
            Some(queue) => cards::run(queue, &context, || drive(&context, table, 1)),
        };
        // Far ranks zero what they are told is done with.
        done_well = done && (!windows.is_due(rank, launch) || context.reach_far(TO_BEGIN));
        if done_well {
            windows.end(core, rank, launch);
        }
        tasks.end(&context);
    }
    if !done_well && let Some(traffic) = context.traffic {
        traffic.quiesce(&context);
    }
    control.end();
    if let Some(trace) = &core.trace {
        trace.record(&context, Kind::LaunchEnded, 0, 0, 0, 0);
    }
    if let Some(time) = time {
        time.end();
    }
}

/// Calls the driver of a rank, for which something is pending if `live` says so; false if that fails the launch.
#[inline(always)]
pub(super) fn drive(context: &Context, table: &Table, live: u64) -> bool {
    let Context { core, image, rank, .. } = *context;
    let mut frame = frame(context, table, live);
    core.tasks(rank).begin(context, &frame);
    // SAFETY: the driver was compiled for these windows and this table, whose addresses were checked; the frame
    // outlives the call.
    let exit = unsafe { (image.routine.driver)(&mut frame) };
    if exit == Exit::Fault as i32 {
        core.fail(rank, &report::fault(context, &frame.fault));
    } else if exit != Exit::Done as i32 && !core.failed() {
        let message = format!("the driver of '{}' ended with {exit} on rank {rank}", image.name);
        core.fail(rank, &Error::new(ErrorKind::Internal, message));
    }
    exit == Exit::Done as i32
}

/// Waits until a launch may begin on its rank; false if it fails first.
fn wait_to_begin(context: &Context, may_begin: impl Fn() -> bool) -> bool {
    let Context { core, image, launch, rank, .. } = *context;
    let begun = context.wait_begins();
    let passed = pass_gate(core, image, rank, launch, "to begin", SLICE, may_begin);
    context.wait_ends(begun, TO_BEGIN, 0);
    passed
}

/// Waits for the progress of peers; false if the launch fails first.
fn pass_gate(
    core: &Core,
    image: &Image,
    rank: u32,
    launch: u64,
    purpose: &str,
    slice: Duration,
    ready: impl Fn() -> bool,
) -> bool {
    let over = || ready() || core.failed();
    if !core.spin(over) {
        core.linger(&core.board.control(rank).gate, slice, over, |elapsed| {
            let context = Context::new(core, image, launch, rank);
            core.check_peers(image, launch) || core.time_out(rank, elapsed, || report::gate(&context, purpose, elapsed))
        });
    }
    ready()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::codegen::cpu::abi::Driver;
    use crate::ir::Builder;
    use crate::runtime::executable::Routine;
    use crate::runtime::{CompileOptions, World, WorldOptions};

    /// An executable of a program without parameters, with this driver.
    fn executable(world: &Arc<World>, driver: Driver) -> Arc<Executable> {
        let mut builder = Builder::new("driver");
        builder.host();
        let program = builder.finish().unwrap();
        let routine = Routine {
            driver,
            host_tasks: None,
            scratch_bytes: 100,
            sites: Vec::new(),
            tasks: Vec::new(),
            functions: Vec::new(),
            calls: Vec::new(),
            _code: None,
        };
        Executable::build(&program, world, &CompileOptions::default(), |_| Ok(()), |_, _| Ok(routine)).unwrap()
    }

    #[test]
    fn every_rank_runs_once_a_launch_with_a_frame_of_its_own() {
        static CALLS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
        unsafe extern "C" fn driver(frame: *mut Frame) -> i32 {
            // SAFETY: the launch passes a frame that is this call's.
            let frame = unsafe { &*frame };
            assert!(frame.scratch.addr().is_multiple_of(64));
            // SAFETY: scratch memory of 100 bytes is this rank's alone.
            unsafe { frame.scratch.write_bytes(frame.rank as u8, 100) };
            CALLS[frame.rank as usize].fetch_add(1, Ordering::Relaxed);
            Exit::Done as i32
        }
        let world = World::create(3, &WorldOptions::default()).unwrap();
        let exe = executable(&world, driver);
        for launch in 1..=200 {
            exe.launch(&[]).unwrap();
            assert_eq!(CALLS.each_ref().map(|c| c.load(Ordering::Relaxed)), [launch; 3]);
        }
        for (rank, scratch) in exe.image.scratch.iter().enumerate() {
            // SAFETY: no launch runs, and the memory was allocated zeroed.
            let bytes = unsafe { std::slice::from_raw_parts(scratch.as_ptr(), 100) };
            assert!(bytes.iter().all(|&b| b == rank as u8));
        }
    }

    #[test]
    fn a_driver_that_ends_oddly_is_a_bug() {
        unsafe extern "C" fn driver(_frame: *mut Frame) -> i32 {
            77
        }
        let world = World::create(1, &WorldOptions::default()).unwrap();
        let error = executable(&world, driver).launch(&[]).unwrap_err();
        assert_eq!(error, Error::new(ErrorKind::Internal, "the driver of 'driver' ended with 77 on rank 0"));
    }

    /// Closing does not wait for ever for a rank that computes, and takes no memory away from it.
    #[test]
    fn a_rank_that_does_not_end_is_left_alone() {
        static GO_ON: AtomicBool = AtomicBool::new(true);
        static BEGUN: AtomicBool = AtomicBool::new(false);
        unsafe extern "C" fn driver(frame: *mut Frame) -> i32 {
            // SAFETY: the launch passes a frame that is this call's.
            let frame = unsafe { &*frame };
            BEGUN.fetch_or(frame.rank == 1, Ordering::Relaxed);
            while frame.rank == 1 && GO_ON.load(Ordering::Relaxed) {
                std::thread::yield_now();
                // SAFETY: scratch memory is this rank's until the driver ends.
                unsafe { frame.scratch.write(1) };
            }
            Exit::Done as i32
        }
        let world = World::create(2, &WorldOptions::default()).unwrap();
        let run = executable(&world, driver).submit(&[]).unwrap();
        let begin = Instant::now();
        while !BEGUN.load(Ordering::Relaxed) {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
        world.close().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(20));
        drop(world);
        assert!(!run.done());
        GO_ON.store(false, Ordering::Relaxed);
        assert_eq!(run.wait(Some(Duration::from_secs(20))).unwrap_err().kind, ErrorKind::Aborted);
    }
}
