//! A launch: the driver, once a rank.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::args::{Arg, Table};
use super::core::Core;
use super::executable::{Executable, Image};
use super::hooks::Context;
use super::report;
use super::wait::SLICE;
use crate::codegen::cpu::abi::{Exit, Fault, Frame};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::builder::MAX_RANK;

const NO_FAULT: Fault = Fault { site: 0, kind: 0, dim: 0, operand: 0, offsets: [0; MAX_RANK], extents: [0; MAX_RANK] };

/// How often a reset looks for peers that are late: their last launch does not ring for it.
const RESET_SLICE: Duration = Duration::from_millis(1);

impl Executable {
    /// Runs the program. Collective; blocks until this process's ranks have done their part. Memory of the arguments is
    /// used until then, also when the launch fails.
    pub fn launch(&self, args: &[Arg]) -> Result<()> {
        let core = self.world.core();
        let _turn = core.take()?;
        // SAFETY: this thread has the world's turn.
        let state = unsafe { &mut *self.image.state.get() };
        self.image.signature.bind(args, &mut state.table)?;
        launch(core, &self.image, &state.table, &mut state.launches)
    }

    /// Zeroes persistent windows on all ranks, between launches. Collective.
    pub fn reset(&self) -> Result<()> {
        let (core, image) = (self.world.core(), &*self.image);
        let _turn = core.take()?;
        if !image.windows.persistent() {
            let message = format!("'{}' is not persistent: every launch sees zeroed windows", image.name);
            return Err(Error::new(ErrorKind::InvalidState, message));
        }
        // SAFETY: this thread has the world's turn.
        let state = unsafe { &mut *image.state.get() };
        state.resets += 1;
        let (launches, resets) = (state.launches, state.resets);
        let pass = |ready: &dyn Fn() -> bool| {
            pass_gate(core, image, core.local.start, launches, "to reset the windows", RESET_SLICE, ready)
        };
        if pass(&|| image.windows.all_done(launches)) {
            core.local.clone().for_each(|rank| image.windows.zero(&core.board, rank, resets));
            pass(&|| image.windows.all_zeroed(resets));
        }
        core.outcome()
    }
}

/// Runs all ranks of this process; the holder of the world's turn calls it.
pub(super) fn launch(core: &Core, image: &Image, table: &Table, launches: &mut u64) -> Result<()> {
    let launch = *launches;
    core.glance_at_peers(image, launch)?;
    *launches += 1;
    if core.local.len() == 1 {
        run_rank_caught(core, image, table, launch, core.local.start);
    } else {
        let job = core.handoff.post(words(image, table, launch));
        run_rank_caught(core, image, table, launch, 0);
        core.patience.wait(core.handoff.finish_bell(), || core.handoff.finished(job));
    }
    core.outcome()
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

fn run_rank(core: &Core, image: &Image, table: &Table, launch: u64, rank: u32) {
    let (board, windows) = (&*core.board, &image.windows);
    let control = board.control(rank);
    control.begin(image.id, launch);
    let may_begin = || windows.may_begin(board, rank, launch);
    if may_begin() || pass_gate(core, image, rank, launch, "to begin", SLICE, may_begin) {
        let context = Context { core, image, launch, rank };
        let mut frame = Frame {
            windows: windows.base(launch),
            dims: table.dims.as_ptr(),
            args: table.values.as_ptr(),
            scratch: image.scratch[(rank - core.local.start) as usize].as_ptr(),
            place: &raw const control.place,
            bells: board.bells(),
            runtime: (&raw const context).cast_mut().cast(),
            rank,
            fault: NO_FAULT,
        };
        // SAFETY: the driver was compiled for these windows and this table, whose addresses were checked; the frame
        // outlives the call.
        let exit = unsafe { (image.routine.driver)(&mut frame) };
        if exit == Exit::Done as i32 {
            windows.end(board, rank, launch);
        } else if exit == Exit::Fault as i32 {
            core.fail(rank, &report::fault(&context, &frame.fault));
        } else if !core.failed() {
            let message = format!("the driver of '{}' ended with {exit} on rank {rank}", image.name);
            core.fail(rank, &Error::new(ErrorKind::Internal, message));
        }
    }
    control.end();
}

/// Waits for the progress of peers; false if the world fails first.
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
    if !core.patience.spin(&over) {
        core.patience.linger(&core.board.control(rank).gate, Some(slice), &over, |elapsed| {
            let context = Context { core, image, launch, rank };
            core.check_peers(image, launch) || core.time_out(rank, elapsed, || report::gate(&context, purpose, elapsed))
        });
    }
    !core.failed()
}
