//! What far ranks do to each other's memory, over OpenUCX.
//!
//! Everything travels as frames ([`frame`]) in active messages, and the receiver's processor executes them ([`inbox`]), in
//! the order in which the sender numbered them: so one kind of message has one order, whatever networks there are, and
//! nothing is written where there is no memory any more. Senders copy ([`parcel`]), so UCX never holds a source. A rank
//! that is lost spoils the worker, which UCX then cannot end: it is given up ([`worker`]).

mod carrier;
mod frame;
mod inbox;
mod kept;
mod memory;
mod outbox;
mod parcel;
mod rows;
mod traffic;
mod worker;

use std::fmt;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use self::carrier::Carrier;
use self::inbox::{Inbox, Part};
use self::kept::Kept;
use self::memory::NetworkMemory;
use self::traffic::{Round, Tally, Traffic};
use self::worker::Worker;
use super::super::Mapping;
use super::super::far::{Accumulator, FarMemory};
use crate::error::{Error, ErrorKind, Result};

/// So long only networks are looked for that tell of losses; without them, as over shared memory alone, processes hear of
/// losses from each other.
const FINDING: Duration = Duration::from_millis(300);

/// Options of [`Network::open`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// This process's rank.
    pub rank: u32,
    /// Number of ranks of the world.
    pub nranks: u32,
    /// What [`FarMemory::accumulate`] can add.
    pub accumulators: &'static [Accumulator],
}

/// The connections of one rank to its far ranks.
#[derive(Debug)]
pub struct Network {
    rank: u32,
    address: Vec<u8>,
    shared: Arc<Shared>,
}

/// What the carrier needs too.
struct Shared {
    traffic: Mutex<Traffic>,
    tally: Arc<Tally>,
    carrier: Carrier,
    events: RawFd,
    ears: Mutex<Ears>,
}

/// Who is told of what happens, and what nobody was there to be told.
#[derive(Default)]
struct Ears {
    listener: Option<Arc<Listener>>,
    unheard: Vec<(u32, String)>,
}

struct Listener {
    arrived: Box<dyn Fn() + Send + Sync>,
    broken: Box<dyn Fn(u32, String) + Send + Sync>,
}

/// Whether OpenUCX can be used here: an error says why not.
pub fn check_available() -> Result<()> {
    worker::library().map(|_| ())
}

impl Network {
    /// Makes this rank's end.
    pub fn open(options: &Options) -> Result<Arc<Self>> {
        let Options { rank, nranks, accumulators } = *options;
        let worker = Worker::new(Inbox::new(nranks, accumulators))?;
        let (address, events) = (worker.address()?, worker.events()?);
        let tally = Arc::new(Tally::default());
        let traffic = Mutex::new(Traffic::new(worker, rank, nranks, Arc::clone(&tally)));
        let shared = Shared { traffic, tally, carrier: Carrier::new()?, events, ears: Mutex::default() };
        Ok(Arc::new(Self { rank, address, shared: Arc::new(shared) }))
    }

    /// What far ranks need to connect.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// Connects to far ranks, whose addresses are given by rank; all of them do so. Succeeds when each has answered.
    pub fn connect(&self, addresses: &[Option<Vec<u8>>], deadline: Instant) -> Result<()> {
        let far = (0..).zip(addresses).filter_map(|(rank, address)| Some((rank, address.as_deref()?)));
        let far: Vec<(u32, &[u8])> = far.collect();
        let begin = Instant::now();
        for (rank, address) in &far {
            // A worker that has just been made may not be found yet.
            while !self.with(|traffic| traffic.connect(*rank, address, begin.elapsed() > FINDING))? {
                if Instant::now() >= deadline {
                    return Err(Error::new(ErrorKind::Timeout, format!("OpenUCX finds no way to rank {rank}")));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Carrier::start(&self.shared)?;
        self.with(|traffic| far.iter().for_each(|(rank, _)| traffic.ask_rank(*rank)));
        let silent = |traffic: &mut Traffic| {
            let silent = far.iter().map(|(rank, _)| *rank).filter(|rank| !traffic.acknowledged(*rank));
            silent.collect::<Vec<u32>>()
        };
        let met = self.until(deadline, |traffic| silent(traffic).is_empty());
        let broken = self.shared.ears().unheard.first().map(|(rank, why)| format!("connecting to rank {rank}: {why}"));
        match (broken, met) {
            (Some(why), _) => Err(Error::new(ErrorKind::PeerLost, why)),
            (None, true) => Ok(()),
            (None, false) => {
                let silent = self.with(silent);
                Err(Error::new(ErrorKind::Timeout, format!("ranks {silent:?} do not answer over OpenUCX")))
            }
        }
    }

    /// Says who is told that far ranks have changed memory, and that one cannot be reached any more. Once.
    pub fn listen(&self, arrived: Box<dyn Fn() + Send + Sync>, broken: Box<dyn Fn(u32, String) + Send + Sync>) {
        let listener = Arc::new(Listener { arrived, broken });
        let unheard = {
            let mut ears = self.shared.ears();
            ears.listener = Some(Arc::clone(&listener));
            std::mem::take(&mut ears.unheard)
        };
        unheard.into_iter().for_each(|(rank, why)| (listener.broken)(rank, why));
    }

    /// Symmetric memory, by a number that all ranks know it by; `own` is this rank's part. The mapping is kept until all
    /// ranks have dropped what this returns, or have gone.
    ///
    /// # Safety
    /// The part lies in the mapping, and is used by several threads as symmetric memory is.
    pub unsafe fn memory(
        self: &Arc<Self>,
        id: u32,
        own: *mut u8,
        bytes: usize,
        mapping: Arc<Mapping>,
    ) -> Arc<dyn FarMemory> {
        let nranks = self.with(|traffic| traffic.nranks());
        let kept = Kept::new(Part { own, bytes }, mapping, nranks);
        Arc::new(NetworkMemory::new(Arc::clone(self), id, kept))
    }

    /// A rank has left the world, having said so: it needs no memory any more.
    pub fn part(&self, rank: u32) {
        self.with(|traffic| traffic.part(rank));
    }

    /// As [`super::super::far::FarRanks::progress`].
    pub fn progress(&self) -> bool {
        match self.shared.traffic.try_lock() {
            Ok(traffic) => self.shared.tell(traffic),
            Err(TryLockError::Poisoned(traffic)) => self.shared.tell(traffic.into_inner()),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// As [`super::super::far::FarRanks::attend`].
    pub fn attend(&self) {
        self.shared.carrier.attend();
    }

    /// Ends an [`Network::attend`].
    pub fn unattend(&self) {
        self.shared.carrier.unattend();
        self.rouse();
    }

    /// As [`super::super::far::FarRanks::reached`].
    pub fn reached(&self) -> bool {
        self.shared.tally.behind.load(Ordering::Acquire) == 0
    }

    /// As [`super::super::far::FarRanks::ask`].
    pub fn ask(&self) {
        if !self.reached() {
            self.with(Traffic::ask);
        }
    }

    /// A rank is lost: what is for it is dropped, and counted down.
    pub fn lose(&self, rank: u32) {
        self.with(|traffic| traffic.lose(rank));
    }

    /// Sends what waits, then takes no part any more. If UCX cannot send all of it by the deadline, or a rank was lost, it
    /// is given up as it is.
    pub fn close(&self, deadline: Instant) {
        self.until(deadline, |traffic| traffic.idle());
        self.shared.carrier.end();
        self.with(|traffic| traffic.close(deadline));
    }

    /// Makes progress until `done` or the deadline. False if it came first.
    fn until(&self, deadline: Instant, mut done: impl FnMut(&mut Traffic) -> bool) -> bool {
        self.attend();
        let result = loop {
            if self.with(&mut done) {
                break true;
            }
            if !self.progress() {
                if Instant::now() >= deadline {
                    break false;
                }
                std::thread::yield_now();
            }
        };
        self.unattend();
        result
    }

    fn with<T>(&self, work: impl FnOnce(&mut Traffic) -> T) -> T {
        let result = work(&mut self.shared.lock());
        self.rouse();
        result
    }

    /// What UCX does not do at once, the carrier has to see to if nobody else does.
    fn rouse(&self) {
        if self.shared.tally.busy.load(Ordering::Relaxed) {
            self.shared.carrier.rouse();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.shared.carrier.end();
        self.shared.lock().end();
    }
}

impl Shared {
    /// Executes what has come; true if there was anything.
    fn round(&self) -> bool {
        self.tell(self.lock())
    }

    /// Where the next event will be seen; none if there is one now.
    fn arm(&self) -> Option<RawFd> {
        self.lock().arm().then_some(self.events)
    }

    /// Makes progress, and tells the listener what it has brought, without the lock.
    fn tell(&self, mut traffic: MutexGuard<'_, Traffic>) -> bool {
        let Round { stirred, changed, broken } = traffic.progress();
        drop(traffic);
        if changed || !broken.is_empty() {
            let listener = self.ears().listener.clone();
            match &listener {
                Some(listener) if changed => (listener.arrived)(),
                _ => {}
            }
            match listener {
                Some(listener) => broken.into_iter().for_each(|(rank, why)| (listener.broken)(rank, why)),
                None => self.ears().unheard.extend(broken),
            }
        }
        stirred
    }

    fn lock(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ears(&self) -> MutexGuard<'_, Ears> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("carrier", &self.carrier).finish_non_exhaustive()
    }
}
