//! HCCL's communicator: it opens the links between the ranks' cards.

use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use hccl_sys::*;

use super::agreement::{agree, at_rank};
use super::call::hccl;
use super::card::Card;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::Transport;

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
        let _entered = card.enter()?;
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
        let _entered = card.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the function reads the root's information and writes the communicator.
        unsafe { hccl!(card.cann(), HcclCommInitRootInfo(nranks, root, rank, &mut raw)) }?;
        Ok(Self { card: card.clone(), raw, is_own: true })
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        if self.is_own
            && let Ok(_entered) = self.card.enter()
        {
            // SAFETY: the communicator was made for this struct. There is nobody to tell of a failure.
            unsafe { (self.card.cann().HcclCommDestroy)(self.raw) };
        }
    }
}

/// By what the ranks find rank 0, on whose card this is called.
pub(super) fn root_info(card: &Card) -> Result<Vec<u8>> {
    let _entered = card.enter()?;
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
    let (local, nranks) = (host.local(), host.nranks());
    let begin = Instant::now();
    let failures = host.allocate(size_of::<AtomicU32>(), deadline)?;
    // SAFETY: each rank has that much memory, zeroed and shared, for as long as `failures` is alive.
    let failed = |rank| unsafe { &*failures.rank(rank).cast::<AtomicU32>() };
    let calls = || {
        let length = Error::new(ErrorKind::Mismatch, format!("the root information has {} bytes", root.len()));
        let mut info = HcclRootInfo { internal: [0; HCCL_ROOT_INFO_BYTES as usize] };
        if root.len() != info.internal.len() {
            return Err(length);
        }
        info.internal.iter_mut().zip(root).for_each(|(to, from)| *to = *from as _);
        let (sender, receiver) = channel();
        for (rank, card) in local.clone().zip(cards) {
            let (card, sender) = (card.clone(), sender.clone());
            let call = move || _ = sender.send((rank, Comm::init(&card, &info, rank, nranks)));
            let thread = std::thread::Builder::new().name(format!("pld-hccl-{rank}"));
            thread.spawn(call).map_err(|e| Error::io("starting a thread", e))?;
        }
        Ok(receiver)
    };
    let collect = || {
        let receiver = calls()?;
        let mut comms = cards.iter().map(|_| None).collect::<Vec<_>>();
        while comms.iter().any(Option::is_none) {
            match receiver.recv_timeout(PAUSE) {
                Ok((rank, comm)) => {
                    comms[(rank - local.start) as usize] = Some(comm.map_err(|error| at_rank(rank, error))?);
                }
                Err(RecvTimeoutError::Timeout) => {
                    // The others say why.
                    let is_hopeless =
                        host.lost().is_some() || (0..nranks).any(|r| failed(r).load(Ordering::Acquire) > 0);
                    if is_hopeless {
                        break;
                    }
                    if Instant::now() >= deadline {
                        let waited = (deadline - begin).as_secs_f64();
                        let message = format!("HcclCommInitRootInfo has not returned within {waited:.1} s");
                        return Err(at_rank(local.start, Error::new(ErrorKind::Timeout, message)));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(ErrorKind::Internal, "a thread of HcclCommInitRootInfo has ended"));
                }
            }
        }
        Ok(comms)
    };
    let comms = collect();
    if comms.is_err() {
        failed(local.start).store(1, Ordering::Release);
    }
    agree(host, comms.as_ref().map(|_| vec![Vec::new(); cards.len()]).map_err(Error::clone), deadline)?;
    let comms = comms?.into_iter().collect::<Option<Vec<_>>>();
    comms.ok_or_else(|| Error::new(ErrorKind::Internal, "some ranks have communicators and some have none"))
}
