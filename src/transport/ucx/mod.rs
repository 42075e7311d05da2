//! Ranks are processes of several hosts. Those of one host map each other's memory, others reach it by OpenUCX; messages,
//! news and signs of life go over the connections by which all have met.

pub mod network;

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid};

use self::network::{Network, Options};
use super::far::{FarRanks, Listener, News};
use super::hosts::Star;
use super::join::{JoinOptions, Reach};
use super::shm::ShmTransport;
use super::waiting::Operation;
use super::{MAX_MESSAGE, Memory, Transport, need};
use crate::error::{Error, ErrorKind, Result};

pub use self::network::check_available;

/// The transport of a world whose ranks are not all on one host.
#[derive(Debug)]
pub struct UcxTransport {
    rank: u32,
    /// Of every rank.
    hosts: Vec<u32>,
    /// The ranks that map each other's memory, this one included.
    near: Vec<u32>,
    network: ManuallyDrop<Arc<Network>>,
    shm: ShmTransport,
    star: Star,
    /// Number of memories that were asked for, the same on all ranks.
    memories: AtomicU32,
    /// The process that joined; a forked child is not it.
    owner: Pid,
}

/// Makes of the connections the transport that the options ask for. Collective.
pub fn connect(star: Star, options: &JoinOptions) -> Result<Box<dyn Transport>> {
    let nranks = star.hellos().len() as u32;
    let hosts = match options.reach {
        Reach::Ucx => (0..nranks).collect(),
        _ => number(&star),
    };
    let other = (0u32..).zip(&hosts).find(|(_, host)| **host != 0);
    match (other, options.reach) {
        (None, _) => {
            let all = (0..nranks).collect::<Vec<_>>();
            Ok(Box::new(ShmTransport::of_host(&session(&star), &all, star.rank(), options.deadline)?))
        }
        (Some((rank, _)), Reach::Shm) => {
            let message = format!("ranks 0 and {rank} run on different hosts; shm is for one host");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        _ => Ok(Box::new(UcxTransport::new(star, hosts, options)?)),
    }
}

/// Numbers hosts by their lowest ranks.
fn number(star: &Star) -> Vec<u32> {
    let mut names = Vec::new();
    let mut number = |name: &String| {
        let known = names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            names.push(name.clone());
            names.len() - 1
        }) as u32
    };
    star.hellos().iter().map(|hello| number(&hello.host)).collect()
}

fn session(star: &Star) -> String {
    star.session().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl UcxTransport {
    fn new(star: Star, hosts: Vec<u32>, options: &JoinOptions) -> Result<Self> {
        let (rank, deadline) = (star.rank(), options.deadline);
        let ranks = || (0u32..).zip(&hosts);
        let near = ranks().filter(|(_, host)| **host == hosts[rank as usize]).map(|(rank, _)| rank).collect::<Vec<_>>();
        let at_rank = |error: Error| Error::new(error.kind, format!("rank {rank}: {}", error.message));

        // Each brings what it has, so that what one lacks ends the call on all: before these have waited long enough.
        let early = deadline - deadline.saturating_duration_since(Instant::now()) / 4;
        let network = Network::open(&Options { rank, nranks: hosts.len() as u32, accumulators: options.accumulators });
        let shm = ShmTransport::of_host(&session(&star), &near, rank, early);
        let parts = network.and_then(|network| Ok((network, shm?))).map_err(at_rank);
        let mine = parts.as_ref().map(|(network, _)| network.address()).map_err(Error::clone);
        let addresses = star.gather(Operation::Join, mine, deadline)?;
        let (network, shm) = parts?;
        let far = ranks().zip(addresses).map(|((_, host), address)| (*host != hosts[rank as usize]).then_some(address));
        let connected = network.connect(&far.collect::<Vec<_>>(), early).map_err(at_rank);
        let mine = connected.as_ref().map(|()| &[][..]).map_err(Error::clone);
        star.gather(Operation::Join, mine, deadline)?;
        connected?;
        let (memories, owner) = (AtomicU32::new(0), getpid());
        Ok(Self { rank, hosts, near, network: ManuallyDrop::new(network), shm, star, memories, owner })
    }

    fn is_far(&self, rank: u32) -> bool {
        !self.near.contains(&rank)
    }
}

impl Transport for UcxTransport {
    fn name(&self) -> &'static str {
        "ucx"
    }

    fn nranks(&self) -> u32 {
        self.hosts.len() as u32
    }

    fn local(&self) -> Range<u32> {
        self.rank..self.rank + 1
    }

    fn exchange(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        let mine = match mine.len() {
            0..=MAX_MESSAGE => Ok(mine),
            size => Err(Error::invalid(format!(
                "rank {} sends a message of {size} bytes; the most is {MAX_MESSAGE}",
                self.rank
            ))),
        };
        self.star.gather(Operation::Exchange, mine, deadline)
    }

    fn allocate(&self, bytes: usize, deadline: Instant) -> Result<Memory> {
        let id = self.memories.fetch_add(1, Ordering::Relaxed);
        let needs = self.star.gather(Operation::Allocate, Ok(&need::encode(bytes)), deadline)?;
        need::check(&needs, |rank| self.hosts[rank])?;
        let memory = self.shm.share(&self.near, self.nranks(), bytes, deadline).map(|memory| {
            // SAFETY: the part lies in the memory's mapping.
            let far = unsafe { self.network.memory(id, memory.rank(self.rank), bytes, memory.mapping()) };
            memory.with_far(far)
        });
        // Nobody sends anything before all are ready to take it in.
        let mine = memory.as_ref().map(|_| &[][..]).map_err(Error::clone);
        self.star.gather(Operation::Allocate, mine, deadline)?;
        memory
    }

    fn lost(&self) -> Option<u32> {
        self.star.lost().or_else(|| self.shm.lost().map(|index| self.near[index as usize]))
    }

    fn leave(&self) {
        if getpid() == self.owner {
            let network = Arc::clone(&self.network);
            network.ask();
            self.star.leave(move || network.reached(), Instant::now() + self.star.silence());
            self.shm.leave();
        }
    }

    fn far(&self) -> Option<&dyn FarRanks> {
        Some(self)
    }
}

impl FarRanks for UcxTransport {
    fn hosts(&self) -> &[u32] {
        &self.hosts
    }

    fn silence(&self) -> Duration {
        self.star.silence()
    }

    fn listen(&self, listener: Arc<dyn Listener>) {
        let (arrived, voice) = (Arc::clone(&listener), self.star.voice());
        self.network.listen(
            Box::new(move || arrived.arrived()),
            Box::new(move |rank, why| voice.miss(rank, format!("rank {rank} cannot be reached any more: {why}"))),
        );
        let network = Arc::clone(&self.network);
        let far = (0..self.nranks()).map(|rank| self.is_far(rank)).collect::<Vec<_>>();
        self.star.listen(Arc::new(move |news| {
            match &news {
                News::Lost { rank, .. } if far[*rank as usize] => network.lose(*rank),
                News::Left { rank } if far[*rank as usize] => network.part(*rank),
                _ => {}
            }
            listener.heard(news);
        }));
    }

    fn progress(&self) -> bool {
        self.network.progress()
    }

    fn attend(&self) {
        self.network.attend();
    }

    fn unattend(&self) {
        self.network.unattend();
    }

    fn reached(&self) -> bool {
        self.network.reached()
    }

    fn ask(&self) {
        self.network.ask();
    }

    fn announce(&self, body: &[u8]) -> Result<()> {
        self.star.announce(body)
    }
}

/// What was sent arrives, then all hear that this rank leaves, and only then its end of the network is closed: that is no
/// loss to anybody then. Rank 0 stays until all others have left, or a silence longer.
impl Drop for UcxTransport {
    fn drop(&mut self) {
        if getpid() != self.owner {
            // A forked child has none of the threads, and the network is its parent's.
            return;
        }
        self.leave();
        self.star.part(Instant::now() + self.star.silence());
        self.network.close(Instant::now() + self.star.silence());
        // SAFETY: it is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.network) };
    }
}
