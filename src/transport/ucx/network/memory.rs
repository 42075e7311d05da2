//! Memory of a world, as transfers to far ranks use it.

use std::sync::Arc;

use rustix::process::{Pid, getpid};

use super::Network;
use super::frame::{Header, Kind, Region};
use super::inbox::Get;
use super::kept::Kept;
use super::outbox::Order;
use super::rows::Strided;
use crate::transport::far::{Change, FarMemory, Pending, Rows};

/// One symmetric memory.
#[derive(Debug)]
pub struct NetworkMemory {
    network: Arc<Network>,
    id: u32,
    /// The process that has made it; a forked child does not speak for the rank.
    owner: Pid,
}

impl NetworkMemory {
    pub fn new(network: Arc<Network>, id: u32, kept: Kept) -> Self {
        network.with(|traffic| traffic.register(id, kept));
        Self { network, id, owner: getpid() }
    }

    /// A header for a transfer whose rows at the far rank are `rows`.
    fn header(&self, kind: Kind, offset: u64, rows: Rows) -> Header {
        // Rows that follow each other are one.
        let joined = rows.count == 1 || rows.far_stride == rows.bytes;
        let (bytes, count) = if joined { (rows.bytes * rows.count, 1) } else { (rows.bytes, rows.count) };
        let stride = if joined { bytes } else { rows.far_stride };
        let region = Region { offset, bytes: bytes as u64, count: count as u64, stride: stride as u64 };
        Header { kind: kind as u32, from: self.network.rank, memory: self.id, region, ..Header::default() }
    }

    fn send(&self, rank: u32, header: Header, near: *const u8, rows: Rows, pending: &Arc<Pending>) {
        let total = rows.bytes * rows.count;
        if total > 0 {
            let order = Order { header, near, rows: near_rows(rows), total, pending: None };
            self.network.with(|traffic| traffic.submit(rank, order, Some(pending)));
        }
    }
}

fn near_rows(rows: Rows) -> Strided {
    Strided { bytes: rows.bytes, stride: if rows.count == 1 { rows.bytes } else { rows.near_stride } }
}

impl FarMemory for NetworkMemory {
    unsafe fn put(&self, rank: u32, offset: u64, near: *const u8, rows: Rows, pending: &Arc<Pending>) {
        self.send(rank, self.header(Kind::Put, offset, rows), near, rows, pending);
    }

    unsafe fn get(&self, rank: u32, offset: u64, near: *mut u8, rows: Rows, pending: &Arc<Pending>) {
        let total = rows.bytes * rows.count;
        if total > 0 {
            let pending = Arc::clone(pending);
            let get = Get { rank, near, rows: near_rows(rows), total, left: total, pending };
            self.network.with(|traffic| traffic.get(self.header(Kind::Get, offset, rows), get));
        }
    }

    unsafe fn accumulate(
        &self,
        rank: u32,
        offset: u64,
        near: *const u8,
        rows: Rows,
        dtype: u32,
        pending: &Arc<Pending>,
    ) {
        let header = Header { dtype, ..self.header(Kind::Accumulate, offset, rows) };
        self.send(rank, header, near, rows, pending);
    }

    fn change(&self, rank: u32, offset: u64, change: Change) {
        let (kind, value) = match change {
            Change::Set(value) => (Kind::Set, value),
            Change::Add(value) => (Kind::Add, value),
        };
        let cell = Rows { bytes: size_of::<i32>(), count: 1, far_stride: size_of::<i32>(), near_stride: 0 };
        let header = Header { token: u64::from(value.cast_unsigned()), ..self.header(kind, offset, cell) };
        self.network.with(|traffic| traffic.change(rank, header));
    }
}

impl Drop for NetworkMemory {
    fn drop(&mut self) {
        if getpid() == self.owner {
            self.network.with(|traffic| traffic.release(self.id));
        }
    }
}
