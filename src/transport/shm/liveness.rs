//! Who is still there. Each rank hands out a descriptor that becomes readable when its process ends, and marks its
//! leaving in a page that all ranks map.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use smallvec::SmallVec;

use super::memory;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::Memory;

/// A descriptor that tells others of this process's end.
#[derive(Debug)]
pub struct Beacon {
    /// For the others: readable when this process has ended.
    pub light: OwnedFd,
    /// The other end of `light`, unless that is a pidfd.
    _kept: Option<OwnedFd>,
}

impl Beacon {
    /// A pidfd where the kernel allows it: it works across PID namespaces, and forked children do not keep it dark.
    pub fn new() -> Result<Self> {
        if let Ok(light) = pidfd_open(getpid(), PidfdFlags::empty()) {
            return Ok(Self { light, _kept: None });
        }
        Self::socket()
    }

    /// The end of a connection whose other end the kernel closes with this process.
    fn socket() -> Result<Self> {
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (light, kept) = pair.map_err(|e| Error::io("socketpair", e))?;
        Ok(Self { light, _kept: Some(kept) })
    }
}

/// The ranks of a world, as one of them sees them.
#[derive(Debug)]
pub struct Roster {
    rank: u32,
    /// By rank.
    lights: Vec<OwnedFd>,
    processes: Vec<u32>,
    /// What ranks are called by others, by rank: in a world that is a part of another one, by that one's ranks.
    names: Vec<u32>,
    /// One [`AtomicU32`] a rank: not 0 once it has left.
    left: Memory,
    _beacon: Beacon,
    /// The process that joined; a forked child is not it.
    owner: Pid,
}

/// Whoever ends its world properly leaves, also if the world has failed while it was made.
impl Drop for Roster {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The file of the page in which ranks mark their leaving.
pub fn left_file(nranks: u32) -> Result<OwnedFd> {
    memory::create(left_bytes(nranks))
}

fn left_bytes(nranks: u32) -> usize {
    nranks as usize * size_of::<AtomicU32>()
}

impl Roster {
    /// `lights` and `processes` are by rank; `left` is a [`left_file`] shared by all ranks.
    pub fn new(rank: u32, lights: Vec<OwnedFd>, processes: Vec<u32>, left: OwnedFd, beacon: Beacon) -> Result<Self> {
        let left = memory::map(&[left], left_bytes(lights.len() as u32))?;
        let names = (0..lights.len() as u32).collect();
        Ok(Self { rank, lights, processes, names, left, _beacon: beacon, owner: getpid() })
    }

    /// Gives ranks the names that others know them by.
    pub fn rename(&mut self, names: Vec<u32>) {
        self.names = names;
    }

    /// What others call `rank`.
    pub fn name(&self, rank: u32) -> u32 {
        self.names[rank as usize]
    }

    /// A rank whose process has ended without leaving.
    pub fn lost(&self) -> Option<u32> {
        self.ended().find(|rank| !self.has_left(*rank))
    }

    /// A rank that takes no further part; one that was lost comes first, since others leave because of it.
    pub fn gone(&self) -> Option<u32> {
        self.lost().or_else(|| self.others().find(|rank| self.has_left(*rank)))
    }

    /// Marks this rank as left. A forked child that drops its copy of the world does not speak for the rank.
    pub fn leave(&self) {
        if getpid() == self.owner {
            // Release: whoever sees the mark also sees what this rank wrote before.
            self.left_mark(self.rank).store(1, Ordering::Release);
        }
    }

    /// Descriptors that become readable when another rank's process ends.
    pub fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.others().map(|rank| PollFd::new(&self.lights[rank as usize], PollFlags::IN))
    }

    /// Why `rank`, which is gone, is gone.
    pub fn obituary(&self, rank: u32) -> Error {
        let (name, process) = (self.name(rank), self.processes[rank as usize]);
        let how = match self.has_left(rank) {
            true => format!("rank {name} has left the world"),
            false => format!("rank {name} (process {process}) has ended"),
        };
        Error::new(ErrorKind::PeerLost, how)
    }

    fn others(&self) -> impl Iterator<Item = u32> {
        (0..self.lights.len() as u32).filter(|rank| *rank != self.rank)
    }

    fn ended(&self) -> impl Iterator<Item = u32> {
        let mut fds = self.watched().collect::<SmallVec<[_; 16]>>();
        // An interrupted or refused call has seen nothing; there will be another one.
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let ended = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<SmallVec<[_; 16]>>();
        self.others().zip(ended).filter(|(_, ended)| *ended).map(|(rank, _)| rank)
    }

    fn has_left(&self, rank: u32) -> bool {
        self.left_mark(rank).load(Ordering::Acquire) != 0
    }

    fn left_mark(&self, rank: u32) -> &AtomicU32 {
        let marks = self.left.rank(0).cast::<AtomicU32>();
        debug_assert!((rank as usize) < self.lights.len());
        // SAFETY: the mapping is page-aligned, as long as one mark a rank, lives as long as `self`, and all processes
        // access it only through atomics.
        unsafe { &*marks.add(rank as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(fd: &OwnedFd) -> bool {
        poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn a_living_process_is_dark() {
        assert!(!lit(&Beacon::new().unwrap().light));
    }

    /// Without pidfds.
    #[test]
    fn the_end_of_a_connection_tells_as_well() {
        let Beacon { light, _kept: kept } = Beacon::socket().unwrap();
        assert!(!lit(&light));
        drop(kept);
        assert!(lit(&light));
    }

    /// Rank 1 of three ends without leaving, rank 2 leaves and ends.
    #[test]
    fn ranks_that_end_and_ranks_that_leave() {
        let beacons = [(); 3].map(|()| Beacon::socket().unwrap());
        let lights = || beacons.iter().map(|beacon| beacon.light.try_clone().unwrap()).collect::<Vec<_>>();
        let left = left_file(3).unwrap();
        let roster = |rank| {
            Roster::new(rank, lights(), vec![10, 11, 12], left.try_clone().unwrap(), Beacon::socket().unwrap()).unwrap()
        };
        let (mine, theirs) = (roster(0), roster(2));
        let [_first, second, third] = beacons;
        assert_eq!((mine.lost(), mine.gone()), (None, None));
        drop(theirs);
        assert_eq!((mine.lost(), mine.gone()), (None, Some(2)));
        drop(third);
        assert_eq!((mine.lost(), mine.gone()), (None, Some(2)));
        assert_eq!(mine.obituary(2).message, "rank 2 has left the world");
        drop(second);
        assert_eq!((mine.lost(), mine.gone()), (Some(1), Some(1)));
        assert_eq!(mine.obituary(1).message, "rank 1 (process 11) has ended");
    }
}
