//! One rank of a team: what a row's measuring function works with.

use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::board::{self, Board};
use crate::limits;
use crate::row::Row;

/// Variables that tell a process that it is a rank of a team, and what to measure.
pub const ROW: &str = "PLD_BENCH_ROW";
pub const BOARD: &str = "PLD_BENCH_BOARD";
pub const QUICK: &str = "PLD_BENCH_QUICK";
/// Those by which the library lets ranks meet.
pub const RANK: &str = "PLD_RANK";
pub const RANKS: &str = "PLD_WORLD_SIZE";
pub const JOB: &str = "PLD_JOB";

/// CPUs that ranks are placed on.
pub const CPUS: u32 = 2;

/// Samples of each series that a team takes.
const SAMPLES: u32 = 3;

/// A series and what measures it once.
pub type Series<'a> = (&'a str, &'a mut dyn FnMut() -> Result<f64, String>);

/// What a measuring function works with: who it is, how much to do, and where samples go.
pub struct Bench {
    rank: u32,
    ranks: u32,
    quick: bool,
    board: Board,
    file: OwnedFd,
}

/// Keeps this thread on the CPU of `rank`; all that is compared is placed so.
pub fn pin(rank: u32) {
    let mut cpus = CpuSet::new();
    cpus.set((rank % CPUS) as usize);
    sched_setaffinity(None, &cpus).expect("the benchmarks need CPUs 0 and 1");
}

/// Lets this thread, and those that it starts, run on both CPUs.
pub fn unpin() {
    let mut cpus = CpuSet::new();
    cpus.set(0);
    cpus.set(1);
    sched_setaffinity(None, &cpus).expect("the benchmarks need CPUs 0 and 1");
}

/// If this process is a rank of a team: measures its row and returns what went wrong, if anything.
pub fn main<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Option<Result<(), String>> {
    let name = std::env::var(ROW).ok()?;
    let row = rows.into_iter().find(|row| row.name == name)?;
    Some(Bench::from_environment().and_then(|bench| (row.measure)(&bench)))
}

fn number(name: &str) -> Result<u32, String> {
    let text = std::env::var(name).map_err(|e| format!("{name}: {e}"))?;
    text.parse().map_err(|_| format!("{name} is {text:?}, not a number"))
}

impl Bench {
    fn from_environment() -> Result<Self, String> {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("prctl: {e}"))?;
        let (rank, ranks) = (number(RANK)?, number(RANKS)?);
        pin(rank);
        // SAFETY: the process that started this one made the file, left it open here, and nothing else here owns it.
        let file = unsafe { OwnedFd::from_raw_fd(number(BOARD)? as i32) };
        let board = Board::open(&file).map_err(|e| format!("board: {e}"))?;
        Ok(Self { rank, ranks, quick: number(QUICK)? != 0, board, file })
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The memory that the ranks share.
    pub fn board(&self) -> Board {
        self.board
    }

    /// So much more of it, for as long as the process lives. All ranks ask for the same, and once.
    pub fn shared_memory(&self, bytes: usize) -> Result<*mut u8, String> {
        board::extend(&self.file, bytes).map_err(|e| format!("{bytes} shared bytes: {e}"))
    }

    /// How often to do what should be done `full` times; less if nobody looks at the numbers.
    pub fn times(&self, full: u32) -> u32 {
        if self.quick { (full / 200).max(2) } else { full }
    }

    /// Measures several series in turns, all ranks at once; rank 0's values become the samples. Each is measured once
    /// before, to warm up.
    pub fn sample(&self, series: &mut [Series]) -> Result<(), String> {
        for (_, measure) in &mut *series {
            self.board.barrier(self.ranks);
            measure()?;
        }
        let mut before = self.raw_trip();
        for _ in 0..if self.quick { 1 } else { SAMPLES } {
            for (name, measure) in &mut *series {
                self.board.barrier(self.ranks);
                let value = measure()?;
                self.board.barrier(self.ranks);
                let after = self.raw_trip();
                if self.rank == 0 {
                    let line = format!("sample {name} {value:.6} {before:.4} {after:.4}\n");
                    std::io::stdout().write_all(line.as_bytes()).map_err(|e| format!("standard output: {e}"))?;
                }
                before = after;
            }
        }
        Ok(())
    }

    /// The raw trip of a cache line between the CPUs, measured by rank 0 while the others sleep, and threads of a world
    /// that look for more to do have given up.
    fn raw_trip(&self) -> f64 {
        let mut trip = 0.0;
        if self.rank == 0 {
            std::thread::sleep(Duration::from_millis(3));
            trip = limits::trip_between_cpus();
        }
        self.board.barrier(self.ranks);
        trip
    }
}

/// Microseconds that each of `times` calls takes.
pub fn microseconds<E>(times: u32, mut call: impl FnMut(u32) -> Result<(), E>) -> Result<f64, E> {
    let begin = Instant::now();
    for i in 0..times {
        call(i)?;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(times))
}

/// CPU time that all threads of this process have used.
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("a clock that began at 0")
}
