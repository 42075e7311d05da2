//! HCCL's communicator: it opens the links between the ranks' cards.

use std::ffi::c_char;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hccl_sys::*;

use super::agreement::{all_succeed, at_rank};
use super::call::hccl;
use super::card::Card;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::{Memory, Transport};

/// Pauses between two looks at how others are getting on.
const PAUSE: Duration = Duration::from_millis(5);

/// A rank's communicator, destroyed when dropped if it was made here.
pub(super) struct Comm {
    card: Arc<Card>,
    raw: HcclComm,
    is_own: bool,
}

// SAFETY: a communicator may be used from any thread that has its card's context current.
unsafe impl Send for Comm {}
// SAFETY: it is only a name here, and used when it is made and when it is dropped.
unsafe impl Sync for Comm {}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Comm").field("card", &self.card).field("is_own", &self.is_own).finish_non_exhaustive()
    }
}

impl Comm {
    /// The engine's own communicator. It must count the ranks as the world does.
    ///
    /// # Safety
    /// `raw` is a communicator of this card that lives as long as the result.
    pub(super) unsafe fn of_engine(card: &Arc<Card>, raw: HcclComm, rank: u32, nranks: u32) -> Result<Self> {
        let _entered = card.context().enter_for_hccl(card.cann())?;
        let (mut its_rank, mut its_nranks) = (0, 0);
        // SAFETY: as the caller says; both functions write a number.
        unsafe {
            hccl!(card.cann(), HcclGetRankId(raw, &mut its_rank))?;
            hccl!(card.cann(), HcclGetRankSize(raw, &mut its_nranks))?;
        }
        if (its_rank, its_nranks) != (rank, nranks) {
            let message = format!(
                "the engine's communicator has this as rank {its_rank} of {its_nranks}, the world as rank {rank} of {nranks}"
            );
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        Ok(Self { card: card.clone(), raw, is_own: false })
    }

    /// A new one. Returns when all ranks have called it, or when HCCL gives up.
    fn init(card: &Arc<Card>, root: &HcclRootInfo, rank: u32, nranks: u32) -> Result<Self> {
        let _entered = card.context().enter_for_hccl(card.cann())?;
        let mut raw = ptr::null_mut();
        // SAFETY: the function reads the root's information and writes the communicator.
        unsafe { hccl!(card.cann(), HcclCommInitRootInfo(nranks, root, rank, &mut raw)) }?;
        Ok(Self { card: card.clone(), raw, is_own: true })
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if self.is_own
            && let Ok(_entered) = self.card.context().enter_for_hccl(self.card.cann())
        {
            // SAFETY: the communicator was made for this struct. There is nobody to tell of a failure.
            unsafe { (self.card.cann().HcclCommDestroy)(self.raw) };
        }
    }
}

/// By what the ranks find rank 0, on whose card this is called.
pub(super) fn root_info(card: &Card) -> Result<Vec<u8>> {
    let _entered = card.context().enter_for_hccl(card.cann())?;
    let mut root = HcclRootInfo { internal: [0; HCCL_ROOT_INFO_BYTES as usize] };
    // SAFETY: the function writes the information.
    unsafe { hccl!(card.cann(), HcclGetRootInfo(&mut root)) }?;
    // SAFETY: characters are bytes, and the array is as long.
    let bytes = unsafe { std::slice::from_raw_parts(root.internal.as_ptr().cast::<u8>(), root.internal.len()) };
    Ok(bytes.to_vec())
}

/// A communicator for each of this process's ranks. Collective.
///
/// HCCL makes it in a call that all ranks must be in and that none can leave, so it is called on threads of its own. If
/// it fails on one rank, if a rank is lost, or if time is up, they are left to HCCL's own time-out; whatever they still
/// make they destroy.
pub(super) fn init_all(host: &dyn Transport, cards: &[Arc<Card>], root: &[u8], deadline: Instant) -> Result<Vec<Comm>> {
    let failure = FirstFailure(Arc::new(host.allocate(size_of::<AtomicU32>(), deadline)?));
    let calls = start(host, cards, root, &failure);
    if calls.is_err() {
        failure.claim(host.local().start);
    }
    let comms = calls.and_then(|calls| collect(host, calls, &failure, deadline));
    all_succeed(host, comms, deadline)?
        .ok_or_else(|| Error::new(ErrorKind::Internal, "HCCL has failed on a rank that does not say so"))
}

/// A call of HCCL on a thread of its own.
type Call = JoinHandle<Result<Comm>>;

/// Calls HCCL for each of this process's ranks.
fn start(host: &dyn Transport, cards: &[Arc<Card>], root: &[u8], failure: &FirstFailure) -> Result<Vec<Call>> {
    let mut info = HcclRootInfo { internal: [0; HCCL_ROOT_INFO_BYTES as usize] };
    if root.len() != info.internal.len() {
        let message = format!("rank 0's root information has {} bytes", root.len());
        return Err(Error::new(ErrorKind::Mismatch, message));
    }
    info.internal.iter_mut().zip(root).for_each(|(to, from)| *to = *from as c_char);
    let nranks = host.nranks();
    let calls = host.local().zip(cards).map(|(rank, card)| {
        let (card, failure) = (card.clone(), failure.clone());
        let call = move || {
            let comm = Comm::init(&card, &info, rank, nranks);
            if comm.is_err() {
                failure.claim(rank);
            }
            comm.map_err(|error| at_rank(rank, error))
        };
        let thread = std::thread::Builder::new().name(format!("pld-hccl-{rank}")).spawn(call);
        thread.map_err(|e| at_rank(rank, Error::io("starting a thread", e)))
    });
    calls.collect()
}

/// What the calls return; nothing if another process says why it will be nothing.
fn collect(
    host: &dyn Transport,
    mut calls: Vec<Call>,
    failure: &FirstFailure,
    deadline: Instant,
) -> Result<Option<Vec<Comm>>> {
    let (begin, local) = (Instant::now(), host.local());
    loop {
        let all_done = calls.iter().all(JoinHandle::is_finished);
        match failure.rank() {
            // Its call is about to return.
            Some(rank) if local.contains(&rank) => {
                return ended(calls.swap_remove((rank - local.start) as usize)).map(|_| None);
            }
            Some(_) => return Ok(None),
            None if all_done => return calls.into_iter().map(ended).collect::<Result<Vec<_>>>().map(Some),
            None if host.lost().is_some() => return Ok(None),
            None if Instant::now() >= deadline && failure.claim(local.start) => {
                let waited = (deadline - begin).as_secs_f64();
                let message = format!("HcclCommInitRootInfo has not returned within {waited:.1} s");
                return Err(at_rank(local.start, Error::new(ErrorKind::Timeout, message)));
            }
            None => std::thread::sleep(PAUSE),
        }
    }
}

fn ended(call: Call) -> Result<Comm> {
    let panicked = |_| Err(Error::new(ErrorKind::Internal, "a thread of HcclCommInitRootInfo has panicked"));
    call.join().unwrap_or_else(panicked)
}

/// Which rank has failed first, in memory that all ranks share: what others have to say follows from it.
#[derive(Clone)]
struct FirstFailure(Arc<Memory>);

impl FirstFailure {
    fn cell(&self) -> &AtomicU32 {
        // SAFETY: rank 0 has that much memory, zeroed and shared, and it lives as long as this.
        unsafe { &*self.0.rank(0).cast::<AtomicU32>() }
    }

    /// The rank that has failed first, if one has.
    fn rank(&self) -> Option<u32> {
        self.cell().load(Ordering::Acquire).checked_sub(1)
    }

    /// Says that `rank` has failed; true if none has before.
    fn claim(&self, rank: u32) -> bool {
        self.cell().compare_exchange(0, rank + 1, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
