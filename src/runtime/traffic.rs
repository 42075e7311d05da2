//! Transfers with far ranks that a task has under way, and what generated code calls for them.

use std::ops::Range;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::aligned::Aligned;
use super::hooks::{Cmp, Context, Pending, context, guarded};
use crate::codegen::cpu::abi::{Combination, Frame, Transfer};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::far::{Change, FarMemory, Pending as Count, Rows};

/// Most regions of memory of this process that transfers of a task under way use.
const MOST: usize = 32;

/// Bytes that are fetched from a rank at a time to be combined.
const PIECE: usize = 256 << 10;

/// A kernel that combines elements: `(to, sources, count, elements)`.
type Combine = unsafe extern "C" fn(*mut u8, *const *const u8, usize, usize);

/// The transfers that run for one task at a time.
#[derive(Default)]
pub(super) struct Traffic {
    outgoing: Arc<Count>,
    incoming: Arc<Count>,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// What transfers under way use; true for what they write.
    regions: SmallVec<[(Range<usize>, bool); 4]>,
    /// Where parts of far ranks' regions are combined from.
    stage: Option<Aligned>,
}

impl Traffic {
    /// Number of transfers that read memory of this process.
    pub(super) fn outgoing(&self) -> *const AtomicI32 {
        self.outgoing.as_ptr()
    }

    /// Number of those that write it.
    pub(super) fn incoming(&self) -> *const AtomicI32 {
        self.incoming.as_ptr()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn none(&self) -> bool {
        self.outgoing.none() && self.incoming.none()
    }

    /// A transfer that uses `near`, and writes it or not, would meet others under way.
    fn conflicts(&self, near: &Range<usize>, writes: bool) -> bool {
        let mut inside = self.inside();
        if self.none() {
            inside.regions.clear();
        }
        let meets = |(region, written): &(Range<usize>, bool)| {
            (writes || *written) && region.start < near.end && near.start < region.end
        };
        inside.regions.len() >= MOST || inside.regions.iter().any(meets)
    }

    /// Waits until none is under way; false if the launch has failed.
    fn settle(&self, context: &Context, site: u32) -> bool {
        self.settle_one(context, &self.incoming, site) && self.settle_one(context, &self.outgoing, site)
    }

    fn settle_one(&self, context: &Context, count: &Count, site: u32) -> bool {
        let pending = Pending { cell: count.as_ptr(), expected: 0, cmp: Cmp::TRANSFERS, site };
        count.none() || context.wait_for(pending) && (!count.lost() || self.give_up(context))
    }

    /// A far rank has gone before this one had read what it has: the launch fails, for a better reason if there is one.
    fn give_up(&self, context: &Context) -> bool {
        let (core, rank) = (context.core, context.rank);
        let deadline = Instant::now() + core.far().map_or(Duration::ZERO, |far| far.silence());
        while !core.failed() && Instant::now() < deadline {
            if core.check_peers(context.image, context.launch) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let message = format!("a far rank left the world before rank {rank} had read what it has");
        core.fail(rank, &Error::new(ErrorKind::PeerLost, message));
        false
    }

    /// After a failure: waits until nothing uses memory of this process any more. What is for ranks that are lost ends by
    /// itself.
    pub(super) fn quiesce(&self, context: &Context) {
        let Some(far) = context.core.far() else { return };
        let deadline = Instant::now() + 2 * far.silence();
        crate::transport::far::progress_until(far, deadline, || self.outgoing.idle() && self.incoming.idle());
    }
}

/// The windows' memory at far ranks, and the transfers of the running task.
fn at_hand<'a>(context: &Context<'a>) -> (&'a dyn FarMemory, &'a Traffic) {
    let memory = context.image.windows.memory().far().expect("only worlds with far ranks have code for them");
    (&**memory, context.traffic.expect("tasks of such worlds have traffic"))
}

pub(super) unsafe extern "C" fn transfer(
    frame: *mut Frame,
    kind: u32,
    peer: u32,
    far: *mut u8,
    near: *mut u8,
    far_stride: usize,
    near_stride: usize,
    rows: usize,
    bytes: usize,
    site: u32,
) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    if rows == 0 || bytes == 0 {
        return 0;
    }
    if context.core.failed() {
        return 1;
    }
    let (memory, traffic) = at_hand(context);
    let windows = context.image.windows.memory();
    let offset = (far.addr() - windows.rank(peer).addr()) as u64;
    let rows = Rows { bytes, count: rows, far_stride, near_stride };
    let region = near.addr()..near.addr() + (rows.count - 1) * near_stride + bytes;
    let gets = kind == Transfer::Get as u32;
    if traffic.conflicts(&region, gets) && !guarded(context, false, || traffic.settle(context, site)) {
        return 1;
    }
    // SAFETY: the code has checked that the far region lies in the peer's windows, and does not touch the near one before
    // it has settled.
    unsafe {
        if kind == Transfer::Put as u32 {
            memory.put(peer, offset, near, rows, &traffic.outgoing);
        } else if gets {
            memory.get(peer, offset, near, rows, &traffic.incoming);
        } else {
            let number = kind - Transfer::Accumulate as u32;
            memory.accumulate(peer, offset, near, rows, number, &traffic.outgoing);
        }
    }
    if gets || !traffic.outgoing.none() {
        traffic.inside().regions.push((region, gets));
    }
    0
}

pub(super) unsafe extern "C" fn signal(
    frame: *mut Frame,
    peer: u32,
    cell: *const AtomicI32,
    value: i32,
    add: u32,
    site: u32,
) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    let (memory, traffic) = at_hand(context);
    if !guarded(context, false, || traffic.settle_one(context, &traffic.incoming, site)) {
        return 1;
    }
    let offset = (cell.addr() - context.image.windows.memory().rank(peer).addr()) as u64;
    memory.change(peer, offset, if add == 0 { Change::Set(value) } else { Change::Add(value) });
    0
}

pub(super) unsafe extern "C" fn settle(frame: *mut Frame, site: u32) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    let (_, traffic) = at_hand(context);
    i32::from(!guarded(context, false, || traffic.settle(context, site)))
}

pub(super) unsafe extern "C" fn order(frame: *mut Frame, site: u32) -> i32 {
    // SAFETY: generated code passes its frame on.
    let context = unsafe { context(frame) };
    let settled = || context.traffic.is_none_or(|traffic| traffic.settle_one(context, &traffic.incoming, site));
    i32::from(!guarded(context, false, || settled() && context.reach_far(site)))
}

pub(super) unsafe extern "C" fn combine(frame: *mut Frame, job: *const Combination, site: u32) -> i32 {
    // SAFETY: generated code passes its frame and a description that lies on its stack.
    let (context, job) = unsafe { (context(frame), &*job) };
    i32::from(!guarded(context, false, || match combine_rows(context, job, site) {
        Ok(done) => done,
        Err(error) => {
            context.core.fail(context.rank, &error);
            false
        }
    }))
}

/// Combines piece by piece: several rows, or a part of one. False if the launch has failed.
fn combine_rows(context: &Context, job: &Combination, site: u32) -> Result<bool> {
    let row = job.elements * job.from_size;
    if job.rows == 0 || row == 0 || job.nranks == 0 {
        return Ok(true);
    }
    // SAFETY: generated code has stored as many ranks.
    let ranks = unsafe { std::slice::from_raw_parts(job.ranks, job.nranks) };
    let rows_at_once = (PIECE / row).clamp(1, job.rows);
    let elements_at_once = (PIECE / job.from_size).min(job.elements);
    let bytes = (rows_at_once * elements_at_once * job.from_size).next_multiple_of(64);
    let (_, traffic) = at_hand(context);
    let mut stage = traffic.inside().stage.take();
    if stage.as_ref().is_none_or(|stage| stage.bytes() < bytes * ranks.len()) {
        stage = Some(Aligned::new(bytes * ranks.len(), "what is fetched from far ranks")?);
    }
    let memory = stage.as_ref().map_or(std::ptr::null_mut(), Aligned::as_ptr);
    let mut done = true;
    for first_row in (0..job.rows).step_by(rows_at_once) {
        for first in (0..job.elements).step_by(elements_at_once) {
            let piece = Piece {
                first_row,
                rows: rows_at_once.min(job.rows - first_row),
                first,
                elements: elements_at_once.min(job.elements - first),
            };
            done = done && combine_piece(context, job, ranks, &piece, (memory, bytes), site);
        }
    }
    traffic.inside().stage = stage;
    Ok(done)
}

/// A part of what is combined.
struct Piece {
    first_row: usize,
    rows: usize,
    first: usize,
    elements: usize,
}

fn combine_piece(
    context: &Context,
    job: &Combination,
    ranks: &[u32],
    piece: &Piece,
    (stage, stage_bytes): (*mut u8, usize),
    site: u32,
) -> bool {
    let (memory, traffic) = at_hand(context);
    let windows = context.image.windows.memory();
    let from = job.from.wrapping_add(piece.first_row * job.from_stride + piece.first * job.from_size);
    let offset = from.addr() - windows.rank(0).addr();
    let row = piece.elements * job.from_size;
    let rows = Rows { bytes: row, count: piece.rows, far_stride: job.from_stride, near_stride: row };
    // Where each rank's first row is, and how far its next one.
    let mut sources: SmallVec<[(*const u8, usize); 16]> = SmallVec::new();
    for (place, &rank) in ranks.iter().enumerate() {
        if !context.core.board.is_far(rank) {
            sources.push((windows.rank(rank).wrapping_add(offset), job.from_stride));
            continue;
        }
        let near = stage.wrapping_add(place * stage_bytes);
        // SAFETY: the stage has room for as many rows of every rank, and nobody else uses it; the code has checked that the
        // region lies in the windows.
        unsafe { memory.get(rank, offset as u64, near, rows, &traffic.incoming) };
        sources.push((near, row));
    }
    if !traffic.settle_one(context, &traffic.incoming, site) {
        return false;
    }
    // SAFETY: generated code names a kernel of this signature.
    let kernel = unsafe { std::mem::transmute::<*const u8, Combine>(job.kernel) };
    for index in 0..piece.rows {
        let to = job.to.wrapping_add((piece.first_row + index) * job.to_stride + piece.first * job.to_size);
        let row = sources.iter().map(|&(first, stride)| first.wrapping_add(index * stride));
        let row = row.collect::<SmallVec<[*const u8; 16]>>();
        // SAFETY: all sources have as many elements, and the code has checked that the result has room for them.
        unsafe { kernel(to, row.as_ptr(), row.len(), piece.elements) };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_meet_where_one_of_them_writes() {
        let traffic = Traffic::default();
        traffic.outgoing.begin();
        traffic.inside().regions.push((100..200, false));
        traffic.inside().regions.push((300..400, true));
        let meets = |region: Range<usize>, writes| traffic.conflicts(&region, writes);
        assert!(!meets(150..160, false) && meets(150..160, true) && meets(399..500, false));
        assert!(!meets(200..300, true) && !meets(0..100, true) && !meets(400..401, true));
        traffic.outgoing.end();
        assert!(!meets(150..160, true), "nothing is under way any more");
    }
}
