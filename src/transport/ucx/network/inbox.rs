//! What comes: frames are executed as UCX hands them over, those of a sender in the order of their numbers. One that comes
//! before its turn is kept. Nothing is written that does not lie in memory which is registered.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering, fence};

use super::frame::{Header, Kind, Region};
use super::kept::Kept;
use super::parcel::Parcel;
use super::rows::Strided;
use crate::transport::far::{Accumulator, Pending};

/// What UCX's callbacks change, and [`super::traffic::Traffic`] then looks at.
pub struct Inbox {
    /// What is known of every rank.
    pub peers: Vec<Peer>,
    /// The parts of this process's rank, by number.
    pub memories: HashMap<u32, Kept>,
    /// Gets that are not answered yet.
    pub gets: HashMap<u64, Get>,
    /// Gets of others, to be answered.
    pub answers: Vec<Header>,
    /// Memories that nobody has any more, by number.
    pub released: Vec<u32>,
    /// Parcels that UCX has sent.
    pub sent: Vec<Box<Parcel>>,
    /// Ranks that have acknowledged something.
    pub acknowledged: Vec<u32>,
    /// Ranks that have asked how far this one is.
    pub asked: Vec<u32>,
    /// Ranks that cannot be reached any more, and why.
    pub broken: Vec<(u32, String)>,
    /// Memory has been changed.
    pub changed: bool,
    /// Something has happened.
    pub stirred: bool,
    accumulators: &'static [Accumulator],
    aligned: Vec<u128>,
}

/// What is known of a rank.
#[derive(Debug, Default)]
pub struct Peer {
    /// The last of its frames that was executed here.
    pub executed: u64,
    /// The last of this rank's frames that it has executed, as far as is known.
    pub acknowledged: u64,
    /// It has been asked how far this rank is, and not been told yet.
    pub owed: bool,
    /// Its gets that are being answered: nothing of it is executed meanwhile.
    pub answering: u32,
    /// There is a connection to it.
    pub far: bool,
    /// It has left the world: it has dropped all memory.
    pub left: bool,
    /// It is lost: nothing of it is executed any more.
    pub lost: bool,
    /// Frames before their turn.
    waiting: BTreeMap<u64, Vec<u8>>,
}

/// Memory that far ranks may write.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Where it begins.
    pub own: *mut u8,
    /// How long it is.
    pub bytes: usize,
}

impl Part {
    /// An address lies in it.
    pub fn contains(&self, address: *const u8) -> bool {
        address.addr().wrapping_sub(self.own.addr()) < self.bytes
    }
}

/// A get.
#[derive(Debug)]
pub struct Get {
    /// The rank that is to answer.
    pub rank: u32,
    /// Where the answer goes.
    pub near: *mut u8,
    /// In which rows.
    pub rows: Strided,
    /// How much there is to come.
    pub total: usize,
    /// How much of it has not come.
    pub left: usize,
    /// Who waits.
    pub pending: Arc<Pending>,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("peers", &self.peers).field("gets", &self.gets).finish_non_exhaustive()
    }
}

impl Inbox {
    pub fn new(nranks: u32, accumulators: &'static [Accumulator]) -> Self {
        Self {
            peers: (0..nranks).map(|_| Peer::default()).collect(),
            memories: HashMap::new(),
            gets: HashMap::new(),
            answers: Vec::new(),
            released: Vec::new(),
            sent: Vec::new(),
            acknowledged: Vec::new(),
            asked: Vec::new(),
            broken: Vec::new(),
            changed: false,
            stirred: false,
            accumulators,
            aligned: Vec::new(),
        }
    }

    /// A frame has come.
    pub fn receive(&mut self, frame: &[u8]) {
        self.stirred = true;
        let Some((header, payload)) = Header::read(frame) else { return };
        let Some(peer) = self.peers.get_mut(header.from as usize).filter(|peer| !peer.lost) else { return };
        if header.executed > peer.acknowledged {
            peer.acknowledged = header.executed;
            self.acknowledged.push(header.from);
        }
        if header.number == 0 {
            self.answered(&header, payload);
        } else if header.number == peer.executed + 1 && peer.answering == 0 {
            self.execute(&header, payload);
            self.resume(header.from);
        } else if header.number > peer.executed {
            peer.waiting.insert(header.number, frame.to_vec());
        }
    }

    /// Executes what a rank has sent and was kept, as far as it is its turn.
    pub fn resume(&mut self, from: u32) {
        loop {
            let peer = &mut self.peers[from as usize];
            let Some(first) = peer.waiting.first_entry() else { return };
            if peer.answering > 0 || *first.key() != peer.executed + 1 {
                return;
            }
            let frame = first.remove();
            if let Some((header, payload)) = Header::read(&frame) {
                self.execute(&header, payload);
            }
        }
    }

    /// Nothing of a rank counts any more, and nobody waits for it.
    pub fn lose(&mut self, rank: u32) {
        let peer = &mut self.peers[rank as usize];
        peer.lost = true;
        peer.waiting.clear();
        self.answers.retain(|get| get.from != rank);
        self.gets.retain(|_, get| {
            if get.rank == rank {
                get.pending.lose();
            }
            get.rank != rank
        });
        self.look_at_all();
    }

    fn execute(&mut self, header: &Header, payload: &[u8]) {
        let peer = &mut self.peers[header.from as usize];
        peer.executed = header.number;
        let done = match header.kind() {
            Some(Kind::Put) => self.put(header, payload),
            Some(Kind::Accumulate) => self.accumulate(header, payload),
            Some(Kind::Set) => self.change(header, |cell, value| cell.store(value, Ordering::Release)),
            Some(Kind::Add) => self.change(header, |cell, value| _ = cell.fetch_add(value, Ordering::AcqRel)),
            Some(Kind::Get) => {
                peer.answering += 1;
                self.answers.push(*header);
                return;
            }
            Some(Kind::Ask) => {
                if !std::mem::replace(&mut peer.owed, true) {
                    self.asked.push(header.from);
                }
                return;
            }
            Some(Kind::Skip) => return,
            Some(Kind::Release) => {
                if let Some(kept) = self.memories.get_mut(&header.memory) {
                    kept.released[header.from as usize] = true;
                    self.look(header.memory);
                }
                return;
            }
            _ => Err(Outside),
        };
        match done {
            Ok(changed) => self.changed |= changed,
            Err(Outside) => self.outside(header),
        }
    }

    fn put(&mut self, header: &Header, payload: &[u8]) -> Result<bool, Outside> {
        let Some(to) = self.target(header, payload.len())? else { return Ok(false) };
        // Whoever finds numbers here that say how far a rank is also finds what it has written before.
        fence(Ordering::Release);
        // SAFETY: the region lies in memory that is registered, and the payload in the region.
        unsafe { strided(&header.region).scatter(to, header.position as usize, payload) };
        Ok(true)
    }

    fn accumulate(&mut self, header: &Header, payload: &[u8]) -> Result<bool, Outside> {
        let Some(to) = self.target(header, payload.len())? else { return Ok(false) };
        let accumulator = self.accumulators.get(header.dtype as usize).ok_or(Outside)?;
        let (rows, position, size) = (strided(&header.region), header.position as usize, accumulator.size);
        let ragged =
            [to.addr(), rows.bytes, rows.stride * usize::from(header.region.count > 1), position, payload.len()];
        if ragged.iter().any(|bytes| !bytes.is_multiple_of(size)) {
            return Err(Outside);
        }
        let payload = self.align(payload);
        for part in rows.rectangles(position, payload.len()).filter(|part| part.bytes > 0) {
            let (to, from) = (to.wrapping_add(part.at), payload.as_ptr().wrapping_add(part.packed));
            // SAFETY: the region lies in memory that is registered, the payload in the region; both are aligned, and
            // hold whole elements.
            unsafe { (accumulator.add)(to, rows.stride, from, part.bytes, part.count, part.bytes / size) };
        }
        Ok(true)
    }

    fn change(&mut self, header: &Header, change: impl Fn(&AtomicI32, i32)) -> Result<bool, Outside> {
        let Some(cell) = self.target(header, size_of::<i32>())? else { return Ok(false) };
        if !cell.addr().is_multiple_of(size_of::<i32>()) {
            return Err(Outside);
        }
        // SAFETY: the cell is aligned and lies in memory that is registered, which everybody uses atomically.
        change(unsafe { AtomicI32::from_ptr(cell.cast()) }, header.token as u32 as i32);
        Ok(true)
    }

    /// An answer to a get, or that there will be none.
    fn answered(&mut self, header: &Header, payload: &[u8]) {
        if !matches!(header.kind(), Some(Kind::Answer | Kind::Refuse)) {
            return;
        }
        let Some(get) = self.gets.get_mut(&header.token).filter(|get| get.rank == header.from) else { return };
        let position = header.position as usize;
        if header.kind() == Some(Kind::Answer) {
            if position.checked_add(payload.len()).is_none_or(|end| end > get.total) {
                return self.outside(header);
            }
            // SAFETY: near memory has room for the rows until the get is counted down.
            unsafe { get.rows.scatter(get.near, position, payload) };
            get.left = get.left.saturating_sub(payload.len());
        }
        let refused = header.kind() == Some(Kind::Refuse);
        if get.left == 0 || refused {
            let get = self.gets.remove(&header.token).expect("just found");
            if refused { get.pending.lose() } else { get.pending.end() }
        }
    }

    /// Where a frame's region begins, if its memory is known; the region and `length` bytes from its position lie in it.
    pub fn target(&self, header: &Header, length: usize) -> Result<Option<*mut u8>, Outside> {
        let Some(Kept { part, .. }) = self.memories.get(&header.memory) else { return Ok(None) };
        let region = &header.region;
        let end = header.position.checked_add(length as u64).ok_or(Outside)?;
        if region.bytes == 0 || !region.inside(part.bytes) || region.total().is_none_or(|total| end > total) {
            return Err(Outside);
        }
        Ok(Some(part.own.wrapping_add(region.offset as usize)))
    }

    /// Memory is no more: nothing of it is written, and neither is what is to come there.
    pub fn forget(&mut self, part: Part) {
        self.gets.retain(|_, get| {
            let gone = part.contains(get.near);
            if gone {
                get.pending.end();
            }
            !gone
        });
    }

    /// Looks whether nobody has a memory any more.
    pub fn look(&mut self, id: u32) {
        let Some(kept) = self.memories.get(&id) else { return };
        let gone = |(peer, released): (&Peer, &bool)| !peer.far || peer.left || peer.lost || *released;
        if kept.dropped && self.peers.iter().zip(&kept.released).all(gone) && !self.released.contains(&id) {
            self.released.push(id);
            self.stirred = true;
        }
    }

    /// The same of all memories.
    pub fn look_at_all(&mut self) {
        let ids: Vec<u32> = self.memories.keys().copied().collect();
        ids.into_iter().for_each(|id| self.look(id));
    }

    /// Says that a frame asks for what is not there.
    pub fn outside(&mut self, header: &Header) {
        let Header { from, memory, region, .. } = header;
        let Region { offset, bytes, count, stride } = region;
        let bounds = match self.memories.get(memory) {
            Some(kept) => format!("{} bytes", kept.part.bytes),
            None => "unknown size".into(),
        };
        let text = format!(
            "rank {from} sent what cannot be executed here: kind {}, {count} rows of {bytes} bytes, {stride} apart, from \
             {offset} on, in memory {memory} of {bounds}",
            header.kind
        );
        self.broken.push((*from, text));
    }

    /// The payload, where elements may be read: it comes as it stands in a message.
    fn align<'a>(&'a mut self, payload: &'a [u8]) -> &'a [u8] {
        if payload.as_ptr().addr().is_multiple_of(align_of::<u128>()) {
            return payload;
        }
        self.aligned.resize(payload.len().div_ceil(size_of::<u128>()), 0);
        // SAFETY: the vector has room, and is not the payload.
        unsafe {
            let to = self.aligned.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(payload.as_ptr(), to, payload.len());
            std::slice::from_raw_parts(to, payload.len())
        }
    }
}

/// A frame that asks for what is not there.
#[derive(Debug)]
pub struct Outside;

/// The rows of a region, which lies in memory.
pub fn strided(region: &Region) -> Strided {
    Strided { bytes: region.bytes as usize, stride: region.stride as usize }
}
