//! All that is sent and comes, under one lock: frames in the order of their numbers, changes held back until other ranks
//! have acknowledged what was sent before, acknowledgements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::frame::{HEADER, Header, Kind};
use super::inbox::{Get, Inbox, Part, strided};
use super::kept::Kept;
use super::outbox::{Held, Order, Outbox};
use super::parcel::Parcels;
use super::worker::{Sent, Worker};
use crate::error::Result;
use crate::transport::far::Pending;

/// What is known without the lock.
#[derive(Debug, Default)]
pub struct Tally {
    /// Ranks that have not acknowledged everything, and changes that are held.
    pub behind: AtomicUsize,
    /// Frames are to be sent when UCX can.
    pub busy: AtomicBool,
}

/// What a round has brought.
#[derive(Debug, Default)]
pub struct Round {
    /// Anything at all.
    pub stirred: bool,
    /// Memory of this rank has changed.
    pub changed: bool,
    /// Ranks that cannot be reached any more, and why.
    pub broken: Vec<(u32, String)>,
}

/// The traffic of one rank with all others.
pub struct Traffic {
    worker: Worker,
    rank: u32,
    parcels: Parcels,
    boxes: Vec<Outbox>,
    /// Ranks for which orders wait.
    queued: Vec<u32>,
    /// Ranks for which changes are held.
    holding: Vec<u32>,
    /// Held changes; ranks that are behind; ranks that have not acknowledged all writes; frames that UCX has.
    held: usize,
    behind: usize,
    writing: usize,
    underway: usize,
    gets: u64,
    /// A rank was lost, or broken: UCX cannot be ended any more.
    spoilt: bool,
    closed: Option<Closed>,
    tally: Arc<Tally>,
}

/// How the traffic has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    /// UCX can be ended.
    Sound,
    /// It is given up, or was ended.
    Spoilt,
}

// SAFETY: pointers to near memory are used as the callers of `FarMemory` have promised, by whatever thread.
unsafe impl Send for Traffic {}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traffic").field("boxes", &self.boxes).finish_non_exhaustive()
    }
}

impl Traffic {
    pub fn new(worker: Worker, rank: u32, nranks: u32, tally: Arc<Tally>) -> Self {
        Self {
            worker,
            rank,
            parcels: Parcels::default(),
            boxes: (0..nranks).map(|_| Outbox::default()).collect(),
            queued: Vec::new(),
            holding: Vec::new(),
            held: 0,
            behind: 0,
            writing: 0,
            underway: 0,
            gets: 0,
            spoilt: false,
            closed: None,
            tally,
        }
    }

    /// Number of ranks of the world.
    pub fn nranks(&self) -> usize {
        self.boxes.len()
    }

    /// Connects to a rank, see [`Worker::connect`]; false if it is not there yet.
    pub fn connect(&mut self, rank: u32, address: &[u8], mute: bool) -> Result<bool> {
        let connected = self.worker.connect(rank, address, mute)?;
        // It may have asked already.
        self.worker.inbox().stirred |= connected;
        self.worker.inbox().peers[rank as usize].far |= connected;
        Ok(connected)
    }

    /// A rank has acknowledged all for which it was asked.
    pub fn acknowledged(&self, rank: u32) -> bool {
        let out = &self.boxes[rank as usize];
        out.acknowledged >= out.asked
    }

    /// Nothing is sent to a rank any more.
    fn lost(&self, rank: u32) -> bool {
        self.boxes[rank as usize].lost
    }

    /// Nothing waits here.
    pub fn idle(&self) -> bool {
        self.queued.is_empty() && self.held == 0 && self.underway == 0
    }

    /// Memory that far ranks reach from now on.
    pub fn register(&mut self, id: u32, kept: Kept) {
        self.worker.inbox().memories.insert(id, kept);
    }

    /// This rank does not need a memory any more. It goes when no rank does.
    pub fn release(&mut self, id: u32) {
        for rank in 0..self.boxes.len() as u32 {
            let header = Header { memory: id, ..self.header(Kind::Release) };
            self.submit(rank, Order::bare(header), None);
        }
        if let Some(kept) = self.worker.inbox().memories.get_mut(&id) {
            kept.dropped = true;
        }
        self.worker.inbox().look(id);
        self.forget_released();
    }

    /// A rank has left the world, having said so.
    pub fn part(&mut self, rank: u32) {
        self.worker.inbox().peers[rank as usize].left = true;
        self.worker.inbox().look_at_all();
        self.forget_released();
    }

    fn forget_released(&mut self) {
        while let Some(id) = self.worker.inbox().released.pop() {
            if let Some(kept) = self.worker.inbox().memories.remove(&id) {
                self.forget(kept.part);
            }
        }
    }

    /// Nothing touches the memory any more.
    fn forget(&mut self, part: Part) {
        self.worker.inbox().forget(part);
        for order in self.boxes.iter_mut().flat_map(|out| &mut out.queue).filter(|order| part.contains(order.near)) {
            order.near = std::ptr::null();
            if order.header.kind() == Some(Kind::Answer) {
                order.header = Header { kind: Kind::Refuse as u32, position: 0, ..order.header };
                order.total = 0;
            }
            if let Some(pending) = order.pending.take() {
                pending.end();
            }
        }
    }

    /// Sends now what UCX takes, and the rest later. `pending` is counted up for the rest only.
    pub fn submit(&mut self, rank: u32, mut order: Order, pending: Option<&Arc<Pending>>) {
        if self.lost(rank) || !self.worker.connected(rank) {
            return;
        }
        if !matches!(order.header.kind(), Some(Kind::Answer | Kind::Refuse)) {
            self.update(rank, |out| out.number(&mut order));
        }
        if self.boxes[rank as usize].queue.is_empty() && self.advance(rank, &mut order) {
            self.finish(rank, order);
        } else {
            if let Some(pending) = pending {
                pending.begin();
                order.pending = Some(Arc::clone(pending));
            }
            let queue = &mut self.boxes[rank as usize].queue;
            queue.push_back(order);
            if queue.len() == 1 {
                self.queued.push(rank);
            }
        }
        self.publish();
    }

    /// Sends a change, or holds it until other ranks have acknowledged what was written there.
    pub fn change(&mut self, rank: u32, header: Header) {
        let out = &self.boxes[rank as usize];
        if out.lost {
            return;
        }
        let elsewhere = self.writing - usize::from(out.writing());
        if elsewhere == 0 && out.held.is_empty() {
            return self.submit(rank, Order::bare(header), None);
        }
        let others = (0..).zip(&self.boxes).filter(|(other, out)| *other != rank && out.writing());
        let waits: Vec<(u32, u64)> = others.map(|(other, out)| (other, out.writes)).collect();
        for (other, number) in &waits {
            if self.boxes[*other as usize].asked < *number {
                self.ask_rank(*other);
            }
        }
        let held = &mut self.boxes[rank as usize].held;
        held.push_back(Held { header, waits, asked: false });
        if held.len() == 1 {
            self.holding.push(rank);
        }
        self.held += 1;
        self.publish();
    }

    /// Reads from a far rank.
    pub fn get(&mut self, header: Header, get: Get) {
        get.pending.begin();
        if self.lost(get.rank) || self.worker.inbox().peers[get.rank as usize].left {
            return get.pending.lose();
        }
        self.gets += 1;
        let (rank, token) = (get.rank, self.gets);
        self.worker.inbox().gets.insert(token, get);
        self.submit(rank, Order::bare(Header { token, ..header }), None);
    }

    /// Asks all ranks that are behind, if they have not been asked; about held changes when they have been sent.
    pub fn ask(&mut self) {
        for rank in 0..self.boxes.len() as u32 {
            let out = &self.boxes[rank as usize];
            if out.behind() && out.asked < out.counted {
                self.ask_rank(rank);
            }
            if let Some(last) = self.boxes[rank as usize].held.back_mut() {
                last.asked = true;
            }
        }
    }

    /// Asks a rank how far it is.
    pub fn ask_rank(&mut self, rank: u32) {
        self.submit(rank, Order::bare(self.header(Kind::Ask)), None);
    }

    /// A header of this rank's.
    pub fn header(&self, kind: Kind) -> Header {
        Header { kind: kind as u32, from: self.rank, ..Header::default() }
    }

    /// What was for a rank is dropped, and counted down.
    pub fn lose(&mut self, rank: u32) {
        let out = &mut self.boxes[rank as usize];
        if std::mem::replace(&mut out.lost, true) {
            return;
        }
        self.spoilt = true;
        self.underway -= std::mem::take(&mut out.underway);
        self.held -= out.held.len();
        out.held.clear();
        let orders = std::mem::take(&mut out.queue);
        orders.into_iter().filter_map(|order| order.pending).for_each(|pending| pending.end());
        self.queued.retain(|queued| *queued != rank);
        self.holding.retain(|holding| *holding != rank);
        self.update(rank, |out| out.acknowledged = u64::MAX);
        self.worker.inbox().lose(rank);
        self.send_held();
        self.forget_released();
        self.publish();
    }

    /// Lets UCX make progress, and does what follows from it.
    pub fn progress(&mut self) -> Round {
        let mut round = Round::default();
        if self.closed.is_some() {
            return round;
        }
        self.worker.progress();
        while std::mem::take(&mut self.worker.inbox().stirred) {
            round.stirred = true;
            self.settle(&mut round);
        }
        if round.stirred {
            self.publish();
        }
        round
    }

    /// The next event of UCX will be seen; false if there is one now.
    pub fn arm(&mut self) -> bool {
        self.closed.is_some() || self.worker.arm()
    }

    /// Takes no part any more, having waited until everything has left.
    pub fn close(&mut self, deadline: Instant) {
        if self.closed.is_some() {
            return;
        }
        let sound = !self.spoilt && self.worker.flush(deadline);
        (0..self.boxes.len() as u32).for_each(|rank| self.lose(rank));
        self.closed = Some(if sound { Closed::Sound } else { Closed::Spoilt });
    }

    /// Ends UCX, if it can be ended.
    pub fn end(&mut self) {
        if self.closed.replace(Closed::Spoilt) == Some(Closed::Sound) {
            self.worker.destroy();
        }
    }

    /// Does what follows from what has come.
    fn settle(&mut self, round: &mut Round) {
        let inbox = self.worker.inbox();
        round.changed |= std::mem::take(&mut inbox.changed);
        while let Some(parcel) = self.worker.inbox().sent.pop() {
            if !self.lost(parcel.rank) {
                self.boxes[parcel.rank as usize].underway -= 1;
                self.underway -= 1;
            }
            self.parcels.give(parcel);
        }
        for (rank, why) in std::mem::take(&mut self.worker.inbox().broken) {
            if !self.lost(rank) {
                self.lose(rank);
                round.broken.push((rank, why));
            }
        }
        while let Some(rank) = self.worker.inbox().acknowledged.pop() {
            let acknowledged = self.worker.inbox().peers[rank as usize].acknowledged;
            self.update(rank, |out| out.acknowledged = out.acknowledged.max(acknowledged));
        }
        while let Some(get) = self.worker.inbox().answers.pop() {
            self.answer(&get);
        }
        self.pump();
        self.send_held();
        self.acknowledge();
        self.forget_released();
    }

    fn answer(&mut self, get: &Header) {
        let header = Header { memory: get.memory, token: get.token, ..self.header(Kind::Answer) };
        let total = get.region.total().unwrap_or(u64::MAX) as usize;
        let order = match self.worker.inbox().target(get, total) {
            Ok(Some(near)) => Order { header, near, rows: strided(&get.region), total, pending: None },
            refused => {
                if refused.is_err() {
                    self.worker.inbox().outside(get);
                }
                Order::bare(Header { kind: Kind::Refuse as u32, ..header })
            }
        };
        self.submit(get.from, order, None);
    }

    /// Gives UCX what waits, as far as it takes it.
    fn pump(&mut self) {
        for rank in std::mem::take(&mut self.queued) {
            while let Some(mut order) = self.boxes[rank as usize].queue.pop_front() {
                if !self.advance(rank, &mut order) {
                    self.boxes[rank as usize].queue.push_front(order);
                    self.queued.push(rank);
                    break;
                }
                self.finish(rank, order);
            }
        }
    }

    /// Sends changes that need not wait any more.
    fn send_held(&mut self) {
        if self.holding.is_empty() {
            return;
        }
        for rank in std::mem::take(&mut self.holding) {
            while let Some(mut held) = self.boxes[rank as usize].held.pop_front() {
                held.waits.retain(|(other, number)| self.boxes[*other as usize].acknowledged < *number);
                if !held.waits.is_empty() {
                    self.boxes[rank as usize].held.push_front(held);
                    self.holding.push(rank);
                    break;
                }
                self.held -= 1;
                self.submit(rank, Order::bare(held.header), None);
                if held.asked {
                    self.ask_rank(rank);
                }
            }
        }
    }

    /// Tells those that have asked how far this rank is.
    fn acknowledge(&mut self) {
        for rank in std::mem::take(&mut self.worker.inbox().asked) {
            if self.lost(rank) || !self.worker.inbox().peers[rank as usize].owed {
                continue;
            }
            if self.worker.connected(rank) && self.boxes[rank as usize].free() {
                let mut order = Order::bare(self.header(Kind::Acknowledge));
                self.advance(rank, &mut order);
            } else {
                self.worker.inbox().asked.push(rank);
            }
        }
    }

    /// Sends frames of an order as long as UCX may be given any; true if that was all.
    fn advance(&mut self, rank: u32, order: &mut Order) -> bool {
        loop {
            if !self.boxes[rank as usize].free() {
                return false;
            }
            let piece = order.piece();
            self.post(rank, order, piece);
            order.header.position += piece as u64;
            order.header.number += u64::from(order.header.number > 0);
            if order.header.position as usize == order.total {
                return true;
            }
        }
    }

    fn post(&mut self, rank: u32, order: &Order, piece: usize) {
        let desk = self.worker.desk();
        let peer = &mut self.worker.inbox().peers[rank as usize];
        let mut header = Header { executed: peer.executed, ..order.header };
        peer.owed = false;
        let mut parcel = self.parcels.take(rank, desk);
        let frame = parcel.frame.as_mut_ptr().cast::<u8>();
        let gone = piece > 0 && order.near.is_null();
        if gone {
            header.kind = Kind::Skip as u32;
        }
        let length = if gone { HEADER } else { HEADER + piece };
        // SAFETY: the parcel has room for both; the source is there until it is counted down, or belongs to memory that
        // is registered, and is not a parcel.
        unsafe {
            header.write(frame);
            if length > HEADER {
                order.rows.gather(order.near, order.header.position as usize, frame.add(HEADER), piece);
            }
        }
        match self.worker.send(parcel, length) {
            Sent::Done(parcel) => self.parcels.give(parcel),
            Sent::Underway => {
                self.boxes[rank as usize].underway += 1;
                self.underway += 1;
            }
            Sent::Broken(why) => {
                let inbox: &mut Inbox = self.worker.inbox();
                inbox.broken.push((rank, why));
                inbox.stirred = true;
            }
        }
    }

    /// An order is sent: its source is not needed any more.
    fn finish(&mut self, rank: u32, order: Order) {
        if let Some(pending) = order.pending {
            pending.end();
        }
        if matches!(order.header.kind(), Some(Kind::Answer | Kind::Refuse)) {
            let inbox = self.worker.inbox();
            inbox.peers[rank as usize].answering -= 1;
            inbox.resume(rank);
            inbox.stirred = true;
        }
    }

    /// Changes an outbox, and what is counted of it.
    fn update(&mut self, rank: u32, change: impl FnOnce(&mut Outbox)) {
        let out = &mut self.boxes[rank as usize];
        self.behind -= usize::from(out.behind());
        self.writing -= usize::from(out.writing());
        change(out);
        self.behind += usize::from(out.behind());
        self.writing += usize::from(out.writing());
    }

    fn publish(&self) {
        self.tally.behind.store(self.behind + self.held, Ordering::Release);
        self.tally.busy.store(self.underway > 0 || !self.queued.is_empty(), Ordering::Relaxed);
    }
}
