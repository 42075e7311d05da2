//! Collectives: exchanges that every rank of a domain takes part in.

use crate::ir::builder::BAD_ARGUMENT;
use crate::ir::collective::{AllToAllV, Collective, CollectiveKind};
use crate::ir::{Combine, Mode, Tensor};

use super::build::{Call, build};
use super::guard;
use super::options::{CollectiveOptions, CollectiveOptionsOut};
use super::program::pld_program_t;
use super::scalar::pld_scalar_t;
use super::status::pld_status_t;
use super::tensor::pld_tensor_t;

/// How the elements of ranks combine: a value of `enum pld_combine`.
pub type pld_combine_t = u32;

/// Values of `pld_combine_t`. `f16` and `bf16` combine in `f32` and are rounded once, at the end; integers wrap. Of
/// floats, the maximum and the minimum are NaN if an operand is.
#[repr(C)]
pub enum pld_combine {
    /// The sum.
    PLD_COMBINE_SUM = 1,
    /// The product.
    PLD_COMBINE_PROD = 2,
    /// The largest one.
    PLD_COMBINE_MAX = 3,
    /// The smallest one.
    PLD_COMBINE_MIN = 4,
}

/// The operation that a number stands for.
pub(super) fn combine(raw: pld_combine_t) -> Option<Combine> {
    match raw {
        1 => Some(Combine::Sum),
        2 => Some(Combine::Prod),
        3 => Some(Combine::Max),
        4 => Some(Combine::Min),
        _ => None,
    }
}

/// The algorithm of a collective: a value of `enum pld_collective_mode`.
pub type pld_collective_mode_t = u32;

/// Values of `pld_collective_mode_t`. The algorithm never changes what a collective means, only in which order floats
/// combine, and so round; `docs/collectives.md` says what each one costs.
#[repr(C)]
pub enum pld_collective_mode {
    /// The library chooses by size, ranks, cores and transport, from measurements.
    PLD_COLLECTIVE_AUTO = 0,
    /// Every rank stages what it gives, and takes from all: one synchronisation.
    PLD_COLLECTIVE_MESH = 1,
    /// Straight between the windows, without staging: two synchronisations. Not for `pld_allreduce`.
    PLD_COLLECTIVE_DIRECT = 2,
    /// Partial results travel from neighbour to neighbour. For `pld_allreduce`.
    PLD_COLLECTIVE_RING = 3,
    /// Each rank combines its share of the elements, and hands it to all. For `pld_allreduce`.
    PLD_COLLECTIVE_TWO_PHASE = 4,
    /// In two levels, inside hosts and between them: what goes to another host goes there once. Where ranks run on one
    /// host, or not equally many side by side on each, what `PLD_COLLECTIVE_AUTO` takes. Not for `pld_all_to_all` and
    /// `pld_all_to_all_v`.
    PLD_COLLECTIVE_HIERARCHICAL = 5,
}

fn mode(raw: pld_collective_mode_t) -> Option<Mode> {
    match raw {
        0 => Some(Mode::Auto),
        1 => Some(Mode::Mesh),
        2 => Some(Mode::Direct),
        3 => Some(Mode::Ring),
        4 => Some(Mode::TwoPhase),
        5 => Some(Mode::Hierarchical),
        _ => None,
    }
}

/// What a collective is told besides its operands. Made by `pld_collective_defaults`, then changed where it should be.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_collective_options_t {
    /// `sizeof(pld_collective_options_t)`.
    pub struct_size: u32,
    /// The algorithm; a barrier has no choice.
    pub mode: pld_collective_mode_t,
    /// How many blocks share the work, which run on as many cores as the rank has; 0 is 1. In the host driver only: in
    /// a task the work is the task's.
    pub cores: u32,
    /// A window that names the channel. Calls on one channel pair in their order; those on different channels are
    /// independent. Its cells stay as they are. Zero: the channel is that of the data.
    pub signal: pld_tensor_t,
}

/// Sets all options to their defaults. `size` is `sizeof(pld_collective_options_t)` in the caller's header. Local;
/// callable from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_collective_options_init(options: CollectiveOptionsOut, size: usize) -> pld_status_t {
    guard::status(|| options.init(size))
}

/// Nobody goes on before all ranks of the domain of `window` have come; a zero `window` stands for that of the signal,
/// or without one for all ranks of the world. What a rank wrote before, all see behind it. `options` may be NULL.
///
/// What follows holds for every collective. It stands in a task of an `at`, or in the host driver outside of loops over ranks,
/// where the library makes a task of it on every rank of the domain. When it runs, every rank of the domain makes the
/// same calls in the same order: of the same collective, on as many elements of the same type. Ranks that differ end
/// the launch with `PLD_ERR_MISMATCH` naming both calls, or in an unchecked executable with `PLD_ERR_TIMEOUT`.
///
/// A call is over on a rank when its part is done: then its inputs may be changed and its results read, however slow
/// the others are. It needs no signals, and leaves none behind: the next call may follow at once, also in a loop or an
/// `if` that all ranks take. Tensors are packed, of any number of dimensions and elements, also none, and lie apart.
/// Results are the same bits on every rank and in every run.
#[unsafe(no_mangle)]
pub extern "C" fn pld_barrier(p: Option<&mut pld_program_t>, window: pld_tensor_t, options: CollectiveOptions) {
    collective(p, options, |c| {
        let window = c.optional_tensor(window, "the window")?;
        Some(CollectiveKind::Barrier { window })
    })
}

/// The window `data` of every rank becomes the combination of those of all ranks, element by element: of type `f32`,
/// `f16`, `bf16`, `i64`, `i32` or `i8`. Otherwise as every collective: see `pld_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_allreduce(
    p: Option<&mut pld_program_t>,
    data: pld_tensor_t,
    op: pld_combine_t,
    options: CollectiveOptions,
) {
    collective(p, options, |c| {
        let (data, op) = (c.get(data, "data")?, c.combine(op)?);
        Some(CollectiveKind::Allreduce { data, op })
    })
}

/// Row `r` of the window `data` of each rank `r` becomes the combination of the rows `r` of all ranks; other rows stay
/// as they are. The first extent of `data` is the number of ranks. Types as with `pld_allreduce`; otherwise as every
/// collective: see `pld_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_reduce_scatter(
    p: Option<&mut pld_program_t>,
    data: pld_tensor_t,
    op: pld_combine_t,
    options: CollectiveOptions,
) {
    collective(p, options, |c| {
        let (data, op) = (c.get(data, "data")?, c.combine(op)?);
        Some(CollectiveKind::ReduceScatter { data, op })
    })
}

/// The window `data` of every rank becomes that of rank `root` of the domain, which is the same on all. Of any type;
/// otherwise as every collective: see `pld_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_broadcast(
    p: Option<&mut pld_program_t>,
    data: pld_tensor_t,
    root: pld_scalar_t,
    options: CollectiveOptions,
) {
    collective(p, options, |c| {
        let (data, root) = (c.get(data, "data")?, c.get(root, "root")?);
        Some(CollectiveKind::Broadcast { data, root })
    })
}

/// Row `r` of the window `dst` of every rank becomes `src` of rank `r`. The first extent of `dst` is the number of
/// ranks, and `src`, which need not be a window in a task, has the elements of one row. Of any type; otherwise as every
/// collective: see `pld_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_allgather(
    p: Option<&mut pld_program_t>,
    dst: pld_tensor_t,
    src: pld_tensor_t,
    options: CollectiveOptions,
) {
    collective(p, options, |c| {
        let (dst, src) = (c.get(dst, "dst")?, c.get(src, "src")?);
        Some(CollectiveKind::Allgather { dst, src })
    })
}

/// Row `r` of the window `dst` of every rank `q` becomes row `q` of `src` of rank `r`. Both have as many rows as there
/// are ranks, and rows of as many elements; `src` need not be a window in a task. Of any type; otherwise as every
/// collective: see `pld_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_all_to_all(
    p: Option<&mut pld_program_t>,
    dst: pld_tensor_t,
    src: pld_tensor_t,
    options: CollectiveOptions,
) {
    collective(p, options, |c| {
        let (dst, src) = (c.get(dst, "dst")?, c.get(src, "src")?);
        Some(CollectiveKind::AllToAll { dst, src })
    })
}

/// One side of a `pld_all_to_all_v`: rows, and for each rank how many there are for it and where they begin. Made by
/// `pld_rows` or `pld_rows_at`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_rows_t {
    /// The rows: the parts of a tensor along its first dimension.
    pub rows: pld_tensor_t,
    /// An `i32` or `i64` for each rank: the number of its rows.
    pub counts: pld_tensor_t,
    /// An `i32` or `i64` for each rank: the first of its rows. Zero: the rows are divided evenly among the ranks.
    pub offsets: pld_tensor_t,
}

/// Each rank `r` sends `send.counts[q]` rows of `send.rows` to each rank `q`, which finds them in its window
/// `recv.rows`, and their number in `recv.counts[r]`. Only these rows move, and others stay as they are. Rows are of
/// any type, and as long on both sides. Either both sides say where the rows of each rank begin, or none: then each has
/// an even share.
///
/// A count that is negative, or more than what the receiver has room for, ends the launch on every rank with
/// `PLD_ERR_OUT_OF_BOUNDS` naming both numbers. Otherwise as every collective: see `pld_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_all_to_all_v(
    p: Option<&mut pld_program_t>,
    recv: pld_rows_t,
    send: pld_rows_t,
    options: CollectiveOptions,
) {
    collective(p, options, |c| {
        let (dst, recv_counts) = (c.get(recv.rows, "recv.rows")?, c.get(recv.counts, "recv.counts")?);
        let recv_offsets = c.optional_tensor(recv.offsets, "recv.offsets")?;
        let (src, send_counts) = (c.get(send.rows, "send.rows")?, c.get(send.counts, "send.counts")?);
        let send_offsets = c.optional_tensor(send.offsets, "send.offsets")?;
        if recv_offsets.is_some() != send_offsets.is_some() {
            let hint = "give both, or neither: then the rows are divided evenly among the ranks";
            c.builder.mistake(BAD_ARGUMENT, "only one side of this all_to_all_v has offsets", hint);
            return None;
        }
        let offsets = recv_offsets.zip(send_offsets);
        Some(CollectiveKind::AllToAllV(AllToAllV { dst, recv_counts, src, send_counts, offsets }))
    })
}

/// A call of a collective with these options.
fn collective(
    p: Option<&mut pld_program_t>,
    options: CollectiveOptions,
    kind: impl FnOnce(&mut Call) -> Option<CollectiveKind>,
) {
    build(p, |c| {
        let kind = kind(c)?;
        let options = match options.read() {
            Ok(options) => options,
            Err(error) => {
                c.builder.mistake(BAD_ARGUMENT, error.message, "pld_collective_defaults makes options");
                return None;
            }
        };
        let mode = c.known(mode(options.mode), "collective mode", options.mode)?;
        let signal = c.optional_tensor(options.signal, "the signal")?;
        c.builder.collective(Collective { kind, mode, cores: options.cores.max(1).into(), signal });
        Some(())
    })
}

impl Call<'_> {
    /// How elements combine.
    pub(super) fn combine(&mut self, raw: pld_combine_t) -> Option<Combine> {
        self.known(combine(raw), "combination", raw)
    }

    /// A tensor, or none where the handle is zero.
    fn optional_tensor(&mut self, tensor: pld_tensor_t, what: &str) -> Option<Option<Tensor>> {
        if tensor.id == 0 { Some(None) } else { self.get(tensor, what).map(Some) }
    }
}
