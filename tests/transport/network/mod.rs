//! The network of far ranks, without the transport that it is a part of: processes of one machine, which tell each other
//! their addresses by files. Each scenario runs over what OpenUCX chooses, and over TCP.

mod changes;
mod faults;
mod transfers;

use std::fs;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pld::error::Result;
use pld::transport::far::{Accumulator, FarMemory, Pending, Rows};
use pld::transport::thread::ThreadTransport;
use pld::transport::ucx::network::{Network, Options};
use pld::transport::{Memory, Transport};

use crate::ranks::{DEADLINE, Job, Outcome, Rank, Scenario, soon};

pub const SCENARIOS: &[&[(&str, Scenario)]] = &[transfers::SCENARIOS, changes::SCENARIOS, faults::SCENARIOS];

/// Bytes of each rank's memory.
const BYTES: usize = 20 << 20;
/// Where cells are that are changed: behind everything else.
const CELLS: usize = BYTES - 4096;
/// The number of the memory.
const MEMORY: u32 = 7;

/// What OpenUCX may use: everything, or one transport.
const NETWORKS: [&str; 2] = ["all", "tcp"];

static ACCUMULATORS: [Accumulator; 1] = [Accumulator { size: 4, add: add_f32 }];

/// Adds numbers, each atomically.
unsafe extern "C" fn add_f32(
    to: *mut u8,
    to_stride: usize,
    from: *const u8,
    from_stride: usize,
    rows: usize,
    n: usize,
) {
    for (row, column) in (0..rows).flat_map(|row| (0..n).map(move |column| (row, column))) {
        // SAFETY: the caller's elements; aligned, or this traps in a test.
        unsafe {
            let cell = AtomicU32::from_ptr(to.add(row * to_stride + column * 4).cast());
            let value = from.add(row * from_stride + column * 4).cast::<f32>().read();
            let sum = |bits: u32| Some((f32::from_bits(bits) + value).to_bits());
            cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).unwrap();
        }
    }
}

/// Zeroed memory of one rank.
fn memory_of(bytes: usize) -> Memory {
    ThreadTransport::new(1).and_then(|transport| transport.allocate(bytes, soon())).unwrap()
}

/// One rank's end of the network, with memory.
struct End<'a> {
    process: &'a Rank,
    rank: u32,
    nranks: u32,
    network: Arc<Network>,
    memory: Option<Arc<dyn FarMemory>>,
    own: Memory,
    broken: Arc<Mutex<Vec<(u32, String)>>>,
    pending: Arc<Pending>,
    meetings: AtomicU32,
}

impl<'a> End<'a> {
    fn connect(process: &'a Rank) -> Result<Self> {
        Self::with(process, BYTES)
    }

    /// An end whose memory says to be `bytes` long.
    fn with(process: &'a Rank, bytes: usize) -> Result<Self> {
        let (rank, nranks) = (process.rank(), process.nranks());
        let network = Network::open(&Options { rank, nranks, accumulators: &ACCUMULATORS })?;
        let file = |rank: u32| process.home().join(format!("address.{rank}"));
        let unfinished = process.home().join(format!("unfinished.{rank}"));
        fs::write(&unfinished, network.address()).unwrap();
        fs::rename(unfinished, file(rank)).unwrap();
        let addresses: Vec<_> = (0..nranks).map(|other| (other != rank).then(|| read(&file(other)))).collect();
        network.connect(&addresses, soon())?;
        let broken = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&broken);
        network.listen(Box::new(|| {}), Box::new(move |rank, why| told.lock().unwrap().push((rank, why))));
        let own = memory_of(BYTES);
        // SAFETY: the part lies in the mapping.
        let memory = Some(unsafe { network.memory(MEMORY, own.rank(0), bytes, own.mapping()) });
        let pending = Arc::default();
        let end = Self { process, rank, nranks, network, memory, own, broken, pending, meetings: AtomicU32::new(0) };
        end.meet();
        Ok(end)
    }

    /// Waits until all ranks are here. The network makes progress by itself meanwhile.
    fn meet(&self) {
        self.meet_ranks(&(0..self.nranks).collect::<Vec<_>>());
    }

    fn meet_ranks(&self, ranks: &[u32]) {
        let meeting = self.meetings.fetch_add(1, Ordering::Relaxed);
        let file = |rank: u32| self.process.home().join(format!("meeting{meeting}.{rank}"));
        fs::write(file(self.rank), "").unwrap();
        ranks.iter().for_each(|rank| self.until(|| file(*rank).exists()));
    }

    fn memory(&self) -> &dyn FarMemory {
        self.memory.as_deref().expect("not dropped")
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.own.rank(0).wrapping_add(offset)
    }

    fn cell(&self, index: usize) -> &AtomicI32 {
        // SAFETY: it is aligned and in memory.
        unsafe { AtomicI32::from_ptr(self.at(cell(index) as usize).cast()) }
    }

    /// Fills memory with what this rank has there at first.
    fn fill(&self, salt: u32) {
        // SAFETY: all bytes are in memory, which nobody else uses at this time.
        (0..CELLS).for_each(|at| unsafe { self.at(at).write(value(self.rank, at, salt)) });
    }

    fn byte(&self, offset: usize) -> u8 {
        // SAFETY: it is in memory.
        unsafe { self.at(offset).read_volatile() }
    }

    /// Waits, making no progress.
    fn until(&self, done: impl Fn() -> bool) {
        let end = Instant::now() + DEADLINE / 2;
        while !done() {
            assert!(
                Instant::now() < end,
                "rank {} waits too long; broken: {:?}",
                self.rank,
                self.broken.lock().unwrap()
            );
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits, making progress.
    fn progress_until(&self, done: impl Fn() -> bool) {
        self.network.attend();
        let end = Instant::now() + DEADLINE / 2;
        while !done() {
            if !self.network.progress() {
                assert!(
                    Instant::now() < end,
                    "rank {} waits too long; broken: {:?}",
                    self.rank,
                    self.broken.lock().unwrap()
                );
                std::thread::yield_now();
            }
        }
        self.network.unattend();
    }

    /// Waits until what was sent is known to have been executed.
    fn reach(&self) {
        self.network.ask();
        self.progress_until(|| self.network.reached());
    }

    /// Ends, in the order in which a world does.
    fn close(mut self) -> Result<String> {
        self.meet();
        self.memory = None;
        self.network.close(soon());
        self.meet();
        let broken = std::mem::take(&mut *self.broken.lock().unwrap());
        assert!(broken.is_empty(), "{broken:?}");
        Ok(String::new())
    }
}

/// Where a cell is.
fn cell(index: usize) -> u64 {
    (CELLS + 4 * index) as u64
}

/// What is at a place of a rank's memory.
fn value(rank: u32, at: usize, salt: u32) -> u8 {
    (at as u32).wrapping_mul(2_654_435_761).rotate_left(9).wrapping_add(rank * 77 + salt * 13) as u8
}

fn rows(bytes: usize, count: usize, far_stride: usize, near_stride: usize) -> Rows {
    Rows { bytes, count, far_stride, near_stride }
}

fn read(path: &std::path::Path) -> Vec<u8> {
    let end = Instant::now() + DEADLINE / 2;
    loop {
        if let Ok(bytes) = fs::read(path) {
            return bytes;
        }
        assert!(Instant::now() < end, "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a scenario on `nranks` processes, over each network.
fn run(scenario: &str, nranks: u32) {
    for network in NETWORKS {
        for outcome in start(scenario, nranks, network).outcomes() {
            assert!(matches!(outcome, Outcome::Done(_)), "{network}: {outcome:?}");
        }
    }
}

fn start(scenario: &str, nranks: u32, network: &str) -> Job {
    let mut job = Job::new();
    for rank in 0..nranks {
        let variables =
            [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", nranks.to_string()), ("UCX_TLS", network.into())];
        job.spawn(scenario, variables);
    }
    job
}
