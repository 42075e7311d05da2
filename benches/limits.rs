//! What the machine can do at all, without any library: the bounds that rows are compared with.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use rustix::thread::{futex, sched_getaffinity, sched_setaffinity};

use crate::board::{Board, DATA_BYTES, LINE, map_shared, unmap};
use crate::rank::{microseconds, pin};

/// Lines of a board, by what uses them.
const PING: usize = 0;
const PONG: usize = 1;
const START: [usize; 2] = [2, 3];
const COUNTER: usize = 4;
const FLAGS: [usize; 2] = [5, 6];

/// How a flag is raised and waited for. Which of them is faster is not for theory to tell.
#[derive(Clone, Copy)]
pub enum Signal {
    /// A plain store, and a loop without a pause.
    Store,
    /// An atomic addition, as signals of programs are, and a loop that pauses between two looks.
    Add,
}

#[repr(align(128))]
struct Line(AtomicU32);

const _: () = assert!(align_of::<Line>() == LINE);

fn reached(flag: &AtomicU32, value: u32) -> bool {
    flag.load(Ordering::Acquire).wrapping_sub(value) as i32 >= 0
}

impl Signal {
    /// Raises `flag` to `value`, which is one more than it was.
    fn raise(self, flag: &AtomicU32, value: u32) {
        match self {
            Signal::Store => flag.store(value, Ordering::Release),
            Signal::Add => _ = flag.fetch_add(1, Ordering::AcqRel),
        }
    }

    fn wait(self, flag: &AtomicU32, value: u32) {
        while !reached(flag, value) {
            if let Signal::Add = self {
                spin_loop();
            }
        }
    }
}

/// One side of `times` round trips. It raises `mine` and waits for `theirs`; both count on from what they hold.
fn ping_pong(mine: &AtomicU32, theirs: &AtomicU32, first: bool, times: u32, signal: Signal) {
    let begin = mine.load(Ordering::Relaxed);
    for i in 1..=times {
        let round = begin.wrapping_add(i);
        if first {
            signal.raise(mine, round);
            signal.wait(theirs, round);
        } else {
            signal.wait(theirs, round);
            signal.raise(mine, round);
        }
    }
}

/// Two-way hand-off between two threads on CPUs 0 and 1, in microseconds: the best of `attempts`.
pub fn hand_off(times: u32, attempts: u32, signal: Signal) -> f64 {
    let (ping, pong) = (Line(AtomicU32::new(0)), Line(AtomicU32::new(0)));
    let mut best = f64::INFINITY;
    let cpus = sched_getaffinity(None).expect("a thread may know its own CPUs");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            (0..=attempts).for_each(|_| ping_pong(&pong.0, &ping.0, false, times, signal));
        });
        pin(0);
        ping_pong(&ping.0, &pong.0, true, times, signal);
        for _ in 0..attempts {
            let begin = Instant::now();
            ping_pong(&ping.0, &pong.0, true, times, signal);
            best = best.min(begin.elapsed().as_secs_f64());
        }
    });
    sched_setaffinity(None, &cpus).expect("the CPUs of a moment ago");
    best * 1e6 / f64::from(times)
}

/// One-way trip of a cache line between CPUs 0 and 1, in microseconds: tells the state that the machine is in. The best
/// of three, since it is to see where the CPUs are and not who else uses them.
pub fn trip_between_cpus() -> f64 {
    const TRIPS: u32 = 1000;
    hand_off(TRIPS, 3, Signal::Store) / 2.0
}

/// Brings two ranks to the same point, closer together than [`Board::barrier`] can.
pub fn align(board: Board, rank: u32) {
    let (mine, theirs) = (board.line(START[rank as usize]), board.line(START[1 - rank as usize]));
    ping_pong(mine, theirs, rank == 0, 2, Signal::Store);
}

/// One-way trip between two processes, in microseconds.
pub fn trip(board: Board, rank: u32, times: u32, signal: Signal) -> f64 {
    let (ping, pong) = (board.line(PING), board.line(PONG));
    align(board, rank);
    let begin = Instant::now();
    if rank == 0 {
        ping_pong(ping, pong, true, times, signal);
    } else {
        ping_pong(pong, ping, false, times, signal);
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(times) / 2.0
}

/// One-way wake-up of a sleeping process on another CPU, in microseconds.
pub fn wake_up(board: Board, rank: u32, times: u32) -> f64 {
    let lines = [board.line(PING), board.line(PONG)];
    let (mine, theirs) = (lines[rank as usize], lines[1 - rank as usize]);
    let first = mine.load(Ordering::Relaxed);
    align(board, rank);
    let begin = Instant::now();
    for i in 1..=times {
        let round = first.wrapping_add(i);
        let sleep = || {
            while !reached(theirs, round) {
                // Returns at once if the flag is raised between the look and the call.
                let _ = futex::wait(theirs, futex::Flags::empty(), round.wrapping_sub(1), None);
            }
        };
        if rank == 1 {
            sleep();
        }
        mine.store(round, Ordering::Release);
        let _ = futex::wake(mine, futex::Flags::empty(), 1);
        if rank == 0 {
            sleep();
        }
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(times) / 2.0
}

/// A wake-up call that finds nobody asleep, in nanoseconds.
pub fn wake_nobody(times: u32) -> Result<f64, String> {
    let word = AtomicU32::new(0);
    let time = microseconds(times, |_| futex::wake(&word, futex::Flags::empty(), 1).map(drop));
    Ok(time.map_err(|e| format!("futex: {e}"))? * 1e3)
}

/// A barrier of all ranks on one counter, in microseconds. With more than two ranks, a rank gives its CPU away whenever
/// it has to wait.
pub fn barrier(board: Board, ranks: u32, times: u32) -> f64 {
    let counter = board.line(COUNTER);
    let enter = |count: u32| {
        counter.fetch_add(1, Ordering::AcqRel);
        while !reached(counter, count) {
            if ranks > 2 {
                std::thread::yield_now();
            }
        }
    };
    // Every measurement is a whole number of barriers, and nobody enters the next before all have left this one.
    let mut count = counter.load(Ordering::Acquire) / ranks * ranks;
    let begin = Instant::now();
    for _ in 0..times {
        count = count.wrapping_add(ranks);
        enter(count);
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(times)
}

/// All-reduce of 256 f32 between two ranks through plain shared memory, in microseconds. Two copies in turns make a
/// second flag unnecessary: who is one round further has seen that the other one has read.
pub fn all_reduce(board: Board, rank: u32, times: u32) -> f64 {
    type Vector = [f32; 256];
    const _: () = assert!(2 * size_of::<Vector>() <= DATA_BYTES);
    let input: Vector = std::array::from_fn(|i| (rank as usize + i) as f32);
    let mut output = input;
    let (mine, theirs) = (board.line(FLAGS[rank as usize]), board.line(FLAGS[1 - rank as usize]));
    let (own, other) = (board.data(rank).cast::<Vector>(), board.data(1 - rank).cast::<Vector>());
    let first = mine.load(Ordering::Relaxed);
    align(board, rank);
    let begin = Instant::now();
    for i in 1..=times {
        let round = first.wrapping_add(i);
        let copy = (round % 2) as usize;
        // SAFETY: inside this rank's data; the other rank reads the copy only after the flag of this round, and has read
        // the one of two rounds ago before it raised the flag that was waited for in the last round.
        unsafe { own.add(copy).write(black_box(input)) };
        Signal::Add.raise(mine, round);
        Signal::Add.wait(theirs, round);
        // SAFETY: inside the other rank's data, which it does not change before this rank's next flag.
        let received = unsafe { &*other.add(copy) };
        for (out, (a, b)) in output.iter_mut().zip(input.iter().zip(received)) {
            *out = a + b;
        }
        black_box(&mut output);
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(times)
}

/// How bytes are copied.
#[derive(Clone, Copy)]
pub enum Copying {
    /// As the C library does.
    Memcpy,
    /// By stores that go past the caches.
    NonTemporal,
}

/// Speed of copying private memory to memory that could be shared, as a put does, in GB/s.
pub struct CopySpeed<'a> {
    source: &'a [CacheLine],
    target: *mut u8,
}

/// A line of memory, aligned as one: where a source lies in its lines makes a difference of several percent.
#[repr(C, align(64))]
pub struct CacheLine(pub [f32; 16]);

/// A source of `bytes`, a multiple of 64, to copy from.
pub fn source(bytes: usize) -> Vec<CacheLine> {
    assert!(bytes.is_multiple_of(64));
    (0..bytes / 64).map(|line| CacheLine(std::array::from_fn(|i| (16 * line + i) as f32))).collect()
}

impl<'a> CopySpeed<'a> {
    /// For copies of `source`.
    pub fn new(source: &'a [CacheLine]) -> Result<Self, String> {
        let bytes = size_of_val(source);
        let target = map_shared(bytes).map_err(|e| format!("{bytes} shared bytes: {e}"))?;
        Ok(Self { source, target })
    }

    /// The speed of `times` copies.
    pub fn measure(&mut self, how: Copying, times: u32) -> f64 {
        let bytes = size_of_val(self.source);
        let begin = Instant::now();
        for _ in 0..times {
            let source = black_box(self.source.as_ptr().cast::<u8>());
            // SAFETY: both are `bytes` long, apart from each other, and used by nobody else meanwhile.
            unsafe {
                match how {
                    Copying::Memcpy => std::ptr::copy_nonoverlapping(source, self.target, bytes),
                    Copying::NonTemporal => copy_non_temporal(source, self.target, bytes),
                }
            }
        }
        bytes as f64 * f64::from(times) / begin.elapsed().as_secs_f64() / 1e9
    }
}

impl Drop for CopySpeed<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `map_shared` with this length, and not used any more.
        let unmapped = unsafe { unmap(self.target, size_of_val(self.source)) };
        debug_assert!(unmapped.is_ok());
    }
}

/// # Safety
/// `bytes`, a multiple of 64, may be read at `source` and written at `target`, which is aligned to 64.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_non_temporal(source: *const u8, target: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    #[target_feature(enable = "avx512f")]
    unsafe fn wide(source: *const u8, target: *mut u8, bytes: usize) {
        use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_stream_si512};
        for at in (0..bytes).step_by(64) {
            // SAFETY: the caller's promise, and `at` is a multiple of 64 below `bytes`.
            unsafe { _mm512_stream_si512(target.add(at).cast(), _mm512_loadu_si512(source.add(at).cast::<__m512i>())) };
        }
    }

    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU can do it; the rest is the caller's promise.
        unsafe { wide(source, target, bytes) };
    } else {
        for at in (0..bytes).step_by(16) {
            // SAFETY: the caller's promise, and `at` is a multiple of 16 below `bytes`.
            unsafe { _mm_stream_si128(target.add(at).cast(), _mm_loadu_si128(source.add(at).cast::<__m128i>())) };
        }
    }
    // SAFETY: every 64-bit x86 CPU has it.
    unsafe { _mm_sfence() };
}

/// # Safety
/// `bytes` may be read at `source` and written at `target`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_non_temporal(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. Other CPUs decide by themselves when a long copy goes past their caches.
    unsafe { std::ptr::copy_nonoverlapping(source, target, bytes) };
}
