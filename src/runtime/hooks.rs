//! What generated code calls when its fast path does not suffice.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

use super::control::Waiting;
use super::core::Core;
use super::executable::Image;
use super::report;
use super::wait::SLICE;
use crate::codegen::cpu::abi::{Frame, Hooks};

/// The hooks of every executable.
pub(super) const HOOKS: Hooks = Hooks { wait, ring };

/// What a [`Frame`] carries for the hooks.
pub(super) struct Context<'a> {
    pub(super) core: &'a Core,
    pub(super) image: &'a Image,
    /// From 0.
    pub(super) launch: u64,
    pub(super) rank: u32,
}

/// The context of a frame.
///
/// # Safety
/// `frame` is the argument of a running driver.
unsafe fn context<'a>(frame: *mut Frame) -> &'a Context<'a> {
    // SAFETY: the launch puts a context into each frame that outlives the driver's call.
    unsafe { &*(*frame).runtime.cast::<Context>() }
}

unsafe extern "C" fn ring(frame: *mut Frame, peer: u32) {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    context.core.board.bell(peer).wake();
}

unsafe extern "C" fn wait(frame: *mut Frame, cell: *const AtomicI32, expected: i32, cmp: u32, site: u32) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    // SAFETY: generated code passes a cell of this rank's windows, which are mapped while the launch runs.
    let cell = unsafe { &*cell };
    match catch_unwind(AssertUnwindSafe(|| context.wait(cell, expected, cmp, site))) {
        Ok(compares) => !compares as i32,
        Err(panic) => {
            context.core.fail_internal(context.rank, &*panic);
            1
        }
    }
}

impl Context<'_> {
    /// Blocks until the cell compares; false if the launch has failed.
    fn wait(&self, cell: &AtomicI32, expected: i32, cmp: u32, site: u32) -> bool {
        let (core, image) = (self.core, self.image);
        // Once is enough: a cell that compares may have changed again before anybody looks a second time.
        let compared = Cell::new(false);
        let over = || {
            let value = cell.load(Ordering::Acquire);
            compared.set(if cmp == 0 { value == expected } else { value >= expected });
            compared.get() || core.failed()
        };
        if !core.patience.spin(over) {
            let control = core.board.control(self.rank);
            let waiting = Waiting { cell: image.windows.offset(self.rank, cell), expected, cmp, site };
            control.begin_wait(waiting);
            core.patience.linger(core.board.bell(self.rank), Some(SLICE), over, |elapsed| {
                core.check_peers(image, self.launch)
                    || core.time_out(self.rank, elapsed, || report::wait(self, &waiting, elapsed))
            });
            control.end_wait();
        }
        if !compared.get() {
            // The failure may be of a later launch: then its rank has done what this one waits for.
            over();
        }
        compared.get()
    }
}
