//! Runs a compiled driver on plain threads, one a rank, without the runtime: windows and arguments are vectors with
//! guard bytes around them, and waits spin until a deadline.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pld::codegen::cpu::abi::{BELL_STRIDE, Exit, FarHooks, Fault, Frame, Hooks, Pace, Run, SUBMIT_FAILED, View};
use pld::codegen::cpu::{Binding, Code, compile};
use pld::ir::Program;
use pld::passes::plan_windows::plan_windows;

/// Bytes around everything that a program may write.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xA5;

/// Bytes, 64-byte aligned, with guards on both sides.
pub struct Memory {
    words: Vec<[u64; 8]>,
    len: usize,
}

impl Memory {
    pub fn new(bytes: &[u8]) -> Self {
        let mut memory = Self { words: vec![[0; 8]; (bytes.len() + 2 * GUARD).div_ceil(64) + 1], len: bytes.len() };
        let all = memory.all();
        all.fill(GUARD_BYTE);
        let start = Self::start(all);
        all[start..start + bytes.len()].copy_from_slice(bytes);
        memory
    }

    fn all(&mut self) -> &mut [u8] {
        let bytes = size_of_val(self.words.as_slice());
        // SAFETY: the words are plain numbers, borrowed for as long as the bytes.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), bytes) }
    }

    fn start(all: &[u8]) -> usize {
        GUARD + (64 - all.as_ptr() as usize % 64) % 64
    }

    pub fn address(&mut self) -> *mut u8 {
        let all = self.all();
        let start = Self::start(all);
        all[start..].as_mut_ptr()
    }

    /// The bytes between the guards, which must be whole.
    pub fn bytes(&mut self) -> Vec<u8> {
        let len = self.len;
        let all = self.all();
        let start = Self::start(all);
        assert!(all[..start].iter().all(|&b| b == GUARD_BYTE), "written in front of the memory");
        assert!(all[start + len..].iter().all(|&b| b == GUARD_BYTE), "written behind the memory");
        all[start..start + len].to_vec()
    }
}

/// What a launch passes for a host parameter.
#[derive(Clone)]
pub enum Arg {
    /// Each rank's own memory.
    Ranked(Vec<Vec<u8>>),
    /// A scalar's bits.
    Bits(u64),
}

const HOOKS: Hooks = Hooks { wait, ring, defer, submit, drain, callback, far: FarHooks::NONE, stop, record };

/// What the hooks need.
struct Shared {
    deadline: Instant,
    /// The code of the tasks, by code and number.
    runs: Vec<Vec<Run>>,
    rings: Mutex<Vec<u32>>,
    waits: Mutex<Vec<(u32, i32, u32)>>,
    /// By rank.
    stops: Vec<AtomicU64>,
}

/// How a launch ended.
pub struct Outcome {
    pub exits: Vec<i32>,
    pub faults: Vec<Fault>,
    /// Windows by rank, without padding between ranks.
    pub windows: Vec<Vec<u8>>,
    /// Arguments by host parameter and rank; empty for scalars.
    pub args: Vec<Vec<Vec<u8>>>,
    /// The site at which each rank has been last.
    pub places: Vec<u64>,
    /// The peers that were rung, sorted.
    pub rings: Vec<u32>,
    /// Waits that ended at the deadline: site, expected value, comparison.
    pub waits: Vec<(u32, i32, u32)>,
    /// How often each rank has called the hook that may hold it up.
    pub stops: Vec<u64>,
}

/// A program compiled for a world of threads.
pub struct Ranks {
    pub code: Vec<Code>,
    /// How long waits wait.
    pub patience: Duration,
    nranks: u32,
    stride: usize,
    window_bytes: usize,
}

/// How to compile.
#[derive(Clone, Copy)]
pub struct Options {
    /// Code of its own for every rank, instead of one for all.
    pub each: bool,
    pub checked: bool,
    /// With stops, which are counted here.
    pub shaken: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { each: false, checked: true, shaken: false }
    }
}

impl Ranks {
    pub fn compile(program: &Program, nranks: u32, options: Options) -> Self {
        let layout = plan_windows(program, nranks).expect("the windows have a size");
        let stride = (layout.bytes + GUARD).next_multiple_of(4096);
        let ranks: Vec<Option<u32>> = if options.each { (0..nranks).map(Some).collect() } else { vec![None] };
        let code = ranks.into_iter().map(|rank| {
            let Options { each, checked, shaken } = options;
            // Both ways to signal are tested.
            let binding = Binding {
                nranks,
                rank,
                stride,
                layout: &layout,
                checked,
                shaken,
                traced: false,
                offloaded: false,
                far: &[],
                fenced: !each,
            };
            compile(program, &binding, &HOOKS).expect("the program compiles")
        });
        Self { code: code.collect(), patience: Duration::from_secs(20), nranks, stride, window_bytes: layout.bytes }
    }

    /// Launches once. `windows` are the contents before, by rank; zeros if empty. Ranks in `asleep` look as if they
    /// slept.
    pub fn launch(&self, args: &[Arg], dims: &[i64], windows: &[Vec<u8>], asleep: &[u32]) -> Outcome {
        let n = self.nranks as usize;
        let mut all_windows = vec![GUARD_BYTE; n * self.stride];
        for rank in 0..n {
            let copy = &mut all_windows[rank * self.stride..][..self.window_bytes];
            match windows.get(rank) {
                Some(bytes) => copy.copy_from_slice(bytes),
                None => copy.fill(0),
            }
        }
        let mut memory = Memory::new(&all_windows);
        let mut parts: Vec<Vec<Memory>> = args
            .iter()
            .map(|arg| match arg {
                Arg::Ranked(parts) => parts.iter().map(|bytes| Memory::new(bytes)).collect(),
                Arg::Bits(_) => Vec::new(),
            })
            .collect();
        let words: Vec<u64> = args
            .iter()
            .zip(&mut parts)
            .flat_map(|(arg, parts)| -> Vec<u64> {
                match arg {
                    Arg::Ranked(_) => parts.iter_mut().map(|part| part.address() as u64).collect(),
                    Arg::Bits(bits) => vec![*bits; n],
                }
            })
            .collect();
        assert_eq!(words.len(), args.len() * n);
        let mut bells = vec![0u32; n * BELL_STRIDE / 4];
        for &rank in asleep {
            bells[rank as usize * BELL_STRIDE / 4] = 1;
        }
        let runs = self.code.iter().map(|code| code.tasks.iter().filter_map(|task| task.run).collect()).collect();
        let deadline = Instant::now() + self.patience;
        let stops = (0..n).map(|_| AtomicU64::new(0)).collect();
        let shared = Shared { deadline, runs, rings: Mutex::default(), waits: Mutex::default(), stops };
        let places: Vec<AtomicU64> = (0..n).map(|_| AtomicU64::new(u64::MAX)).collect();
        let base = memory.address() as usize;
        let ends: Vec<(i32, Fault)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n)
                .map(|rank| {
                    let (words, bells, shared, places) = (&words, &bells, &shared, &places);
                    scope.spawn(move || {
                        let code = &self.code[if self.code.len() > 1 { rank } else { 0 }];
                        let paces: Vec<Pace> = (0..n).map(|_| Pace::default()).collect();
                        let mut scratch = Memory::new(&vec![0xEE; code.scratch_bytes]);
                        let mut frame = Frame {
                            windows: base as *mut u8,
                            dims: dims.as_ptr(),
                            args: words.as_ptr(),
                            scratch: scratch.address(),
                            place: &places[rank],
                            bells: bells.as_ptr().cast(),
                            paces: paces.as_ptr(),
                            far: std::ptr::null(),
                            outgoing: std::ptr::null(),
                            incoming: std::ptr::null(),
                            runtime: std::ptr::from_ref(shared).cast::<c_void>().cast_mut(),
                            live: 0,
                            written: 0,
                            read: 0,
                            rank: rank as u32,
                            fault: Fault {
                                site: u32::MAX,
                                kind: 0,
                                dim: u32::MAX,
                                operand: u32::MAX,
                                offsets: [0; 8],
                                extents: [0; 8],
                            },
                        };
                        // SAFETY: the frame's memory outlives the call; ranks touch the windows as the program orders.
                        let exit = unsafe { (code.driver)(&mut frame) };
                        scratch.bytes();
                        (exit, frame.fault)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("the rank's thread ends")).collect()
        });
        let all = memory.bytes();
        let windows = (0..n).map(|rank| {
            let (own, gap) = all[rank * self.stride..][..self.stride].split_at(self.window_bytes);
            assert!(gap.iter().all(|&b| b == GUARD_BYTE), "written behind the windows of rank {rank}");
            own.to_vec()
        });
        let mut rings = shared.rings.into_inner().unwrap();
        rings.sort();
        Outcome {
            windows: windows.collect(),
            exits: ends.iter().map(|end| end.0).collect(),
            faults: ends.iter().map(|end| end.1).collect(),
            args: parts.iter_mut().map(|parts| parts.iter_mut().map(Memory::bytes).collect()).collect(),
            places: places.iter().map(|place| place.load(Ordering::Relaxed)).collect(),
            rings,
            waits: shared.waits.into_inner().unwrap(),
            stops: shared.stops.into_iter().map(AtomicU64::into_inner).collect(),
        }
    }
}

impl Outcome {
    /// Every rank came to its end.
    pub fn assert_done(&self) {
        assert!(self.exits.iter().all(|&exit| exit == Exit::Done as i32), "{:?} {:?}", self.exits, self.faults);
    }
}

unsafe extern "C" fn wait(frame: *mut Frame, cell: *const AtomicI32, expected: i32, cmp: u32, site: u32) -> i32 {
    // SAFETY: the frame and what it points to live as long as the launch.
    let (cell, shared) = unsafe { (&*cell, &*(*frame).runtime.cast::<Shared>()) };
    loop {
        let value = cell.load(Ordering::SeqCst);
        if if cmp == 0 { value == expected } else { value >= expected } {
            return 0;
        }
        if Instant::now() > shared.deadline {
            shared.waits.lock().unwrap().push((site, expected, cmp));
            return 1;
        }
        std::thread::yield_now();
    }
}

/// Runs the task at once: all that these programs wait for comes from other ranks, in the order of the text.
unsafe extern "C" fn submit(
    frame: *mut Frame,
    task: u32,
    args: *const u64,
    blocks: i64,
    _: *const i64,
    _: *const u64,
) -> u64 {
    // SAFETY: as in `wait`; generated code passes what the task takes.
    unsafe {
        let shared = &*(*frame).runtime.cast::<Shared>();
        let code = (*frame).rank as usize % shared.runs.len();
        let run = shared.runs[code][task as usize];
        let ended = (0..blocks).all(|block| run(frame, args, block) == Exit::Done as i32);
        if ended { 0 } else { SUBMIT_FAILED }
    }
}

unsafe extern "C" fn defer(frame: *mut Frame, cell: *const AtomicI32, expected: i32, site: u32) -> i32 {
    // SAFETY: passed on.
    unsafe { wait(frame, cell, expected, 1, site) }
}

unsafe extern "C" fn drain(_: *mut Frame) -> i32 {
    unreachable!("nothing is ever pending")
}

unsafe extern "C" fn callback(_: *mut Frame, _: u32, _: *const View, _: *const i64, _: i64, _: i64) -> i32 {
    unreachable!("these programs call no function")
}

unsafe extern "C" fn stop(frame: *mut Frame) {
    // SAFETY: as in `wait`.
    let (shared, rank) = unsafe { (&*(*frame).runtime.cast::<Shared>(), (*frame).rank) };
    shared.stops[rank as usize].fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn record(_: *mut Frame, _: u32, _: u32, _: u32, _: u64) {
    unreachable!("the code is not traced")
}

unsafe extern "C" fn ring(frame: *mut Frame, peer: u32) {
    // SAFETY: as in `wait`.
    unsafe { &*(*frame).runtime.cast::<Shared>() }.rings.lock().unwrap().push(peer);
}

/// Numbers as bytes.
pub trait Bytes: Sized + Copy {
    fn bytes(values: &[Self]) -> Vec<u8>;
    fn values(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! bytes {
    ($($ty:ty)*) => {$(
        impl Bytes for $ty {
            fn bytes(values: &[Self]) -> Vec<u8> {
                values.iter().flat_map(|v| v.to_ne_bytes()).collect()
            }
            fn values(bytes: &[u8]) -> Vec<Self> {
                bytes.chunks_exact(size_of::<Self>()).map(|b| Self::from_ne_bytes(b.try_into().unwrap())).collect()
            }
        }
    )*};
}

bytes!(f32 i8 u8 i16 u16 i32 u32 i64 u64);
