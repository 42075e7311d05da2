//! Signals: cells of `i32` windows that order ranks.

use crate::ir::{NotifyOp, WaitCmp};

use super::build::build;
use super::pointer::Scalars;
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::tensor::pld_tensor_t;

/// How a notify changes its cell: a value of `enum pld_notify_op`.
pub type pld_notify_op_t = u32;

/// Values of `pld_notify_op_t`.
#[repr(C)]
pub enum pld_notify_op {
    /// Adds, atomically. The usual choice: order does not matter.
    PLD_NOTIFY_ADD = 1,
    /// Replaces the cell.
    PLD_NOTIFY_SET = 2,
}

/// How a wait compares: a value of `enum pld_wait_cmp`.
pub type pld_wait_cmp_t = u32;

/// Values of `pld_wait_cmp_t`. Comparison is signed.
#[repr(C)]
pub enum pld_wait_cmp {
    /// Until the cell equals the expected value.
    PLD_WAIT_EQ = 1,
    /// Until the cell is greater or equal. The usual choice, with counters that only grow.
    PLD_WAIT_GE = 2,
}

fn notify_op(raw: pld_notify_op_t) -> Option<NotifyOp> {
    match raw {
        1 => Some(NotifyOp::Add),
        2 => Some(NotifyOp::Set),
        _ => None,
    }
}

fn wait_cmp(raw: pld_wait_cmp_t) -> Option<WaitCmp> {
    match raw {
        1 => Some(WaitCmp::Eq),
        2 => Some(WaitCmp::Ge),
        _ => None,
    }
}

/// This rank's number in the window's domain, an `i32`, in entries only. For a window of the whole world: the rank.
#[unsafe(no_mangle)]
pub extern "C" fn pld_rank(p: Option<&mut pld_program_t>, window: pld_tensor_t) -> pld_scalar_t {
    build(p, |c| {
        let window = c.get(window, "the window")?;
        Some(c.builder.rank(window))
    })
}

/// The number of ranks of the window's domain, an `i32`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_nranks(p: Option<&mut pld_program_t>, window: pld_tensor_t) -> pld_scalar_t {
    build(p, |c| {
        let window = c.get(window, "the window")?;
        Some(c.builder.nranks(window))
    })
}

/// Changes the cell at `offsets` of rank `peer`'s `i32` window. Inside a task. Everything the task wrote before, to
/// its own memory or a peer's, is visible to that rank once its `pld_wait` on the cell succeeds; nothing else orders
/// ranks. Does not block. A peer or cell that is outside ends the launch with `PLD_ERR_OUT_OF_BOUNDS`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_notify(
    p: Option<&mut pld_program_t>,
    window: pld_tensor_t,
    peer: pld_scalar_t,
    offsets: Scalars,
    noffsets: usize,
    value: pld_scalar_t,
    op: pld_notify_op_t,
) {
    build(p, |c| {
        let (window, peer) = (c.get(window, "the window")?, c.get(peer, "peer")?);
        let (at, value) = (c.offsets(offsets, noffsets)?, c.get(value, "the value")?);
        let op = c.known(notify_op(op), "notify op", op)?;
        c.builder.notify(window, peer, &at, value, op);
        Some(())
    })
}

/// Blocks the task until this rank's cell at `offsets` of the `i32` window compares with `expected`; see `pld_notify`.
/// Inside a task. A wait that is not satisfied within the world's time-out ends the launch with `PLD_ERR_TIMEOUT` on
/// every rank.
#[unsafe(no_mangle)]
pub extern "C" fn pld_wait(
    p: Option<&mut pld_program_t>,
    window: pld_tensor_t,
    offsets: Scalars,
    noffsets: usize,
    expected: pld_scalar_t,
    cmp: pld_wait_cmp_t,
) {
    build(p, |c| {
        let window = c.get(window, "the window")?;
        let (at, expected) = (c.offsets(offsets, noffsets)?, c.get(expected, "expected")?);
        let cmp = c.known(wait_cmp(cmp), "wait comparison", cmp)?;
        c.builder.wait(window, &at, expected, cmp);
        Some(())
    })
}

/// Lets the task be over only when this rank's cell at `offsets` of the `i32` window is `expected` or more; see
/// `pld_notify`. Does not block: the task's code goes on and ends, the core is free, and the tasks that depend on this
/// one begin when all its conditions hold. What the notifiers published is visible to them.
///
/// Inside a task that does nothing else: begun by `pld_at_begin`, without predicate or `allow_early_resolve`; scalar
/// code, and at most 64 of these conditions, on window parameters themselves. Counters only grow, from 0 up.
#[unsafe(no_mangle)]
pub extern "C" fn pld_defer_wait(
    p: Option<&mut pld_program_t>,
    window: pld_tensor_t,
    offsets: Scalars,
    noffsets: usize,
    expected: pld_scalar_t,
) {
    build(p, |c| {
        let window = c.get(window, "the window")?;
        let (at, expected) = (c.offsets(offsets, noffsets)?, c.get(expected, "expected")?);
        c.builder.defer_wait(window, &at, expected);
        Some(())
    })
}
