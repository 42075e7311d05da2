//! Kernels that run: built with the simulation of PTO instructions, on plain threads, one a rank, over plain memory.

use std::ffi::{CString, c_void};
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use pld::codegen::cpu::abi::{Exit, FarHooks, Fault, Frame, Hooks, Pace, SUBMIT_FAILED, View};
use pld::codegen::cpu::{Binding, Code, compile};
use pld::codegen::pto::{KernelParam, Module, Options, Target};
use pld::ir::Program;
use pld::passes::plan_windows::Layout;
use pld::verify::domains::Domains;

use crate::ranks::{Arg, Memory};

/// A launch that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Bytes between the windows of neighbouring ranks, besides what lies in them.
const GAP: usize = 256;

/// What a simulated device calls of a kernel, once a block.
type Simulated = unsafe extern "C" fn(args: *const u64, block: u32);

/// What a kernel reports, as `pld_kernel.hpp` has it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub struct Report {
    pub state: i32,
    pub site: u32,
    pub kind: u32,
    pub dim: u32,
    pub operand: u32,
    pub cmp: i32,
    pub expected: i32,
    pub actual: i32,
    pub cell: u64,
    pub offsets: [i64; 8],
    pub extents: [i64; 8],
}

/// A `CommContext`, as `pld_kernel.hpp` has it.
#[repr(C)]
struct Context {
    workspace: [u64; 2],
    rank: u32,
    nranks: u32,
    bytes: u64,
    windows: [u64; 64],
    unused: [u64; 64],
}

/// A program whose tasks are kernels, and whose driver is code of this machine.
pub struct Kernels<'p> {
    program: &'p Program,
    layout: &'p Layout,
    nranks: u32,
    code: Code,
    pub module: Module,
    /// By kernel.
    functions: Vec<Simulated>,
}

/// How a launch ended.
pub struct Outcome {
    pub exits: Vec<i32>,
    /// The reports that are not empty.
    pub reports: Vec<Report>,
    pub windows: Vec<Vec<u8>>,
    /// By host parameter and rank; empty for scalars.
    pub args: Vec<Vec<Vec<u8>>>,
}

/// What a rank has of a launch.
struct Rank<'k> {
    kernels: &'k Kernels<'k>,
    contexts: Vec<Context>,
    dims: &'k [i64],
    stop: &'k AtomicI32,
    reports: Mutex<Vec<Report>>,
}

const HOOKS: Hooks = Hooks { wait, ring, defer, submit, drain, callback, far: FarHooks::NONE, stop, record };

impl<'p> Kernels<'p> {
    /// Builds the kernels of a program without collectives under a name of their own.
    ///
    /// Errors: as [`emit`].
    pub fn build(name: &str, program: &'p Program, layout: &'p Layout, module: Module, options: &Options) -> Self {
        let binding = Binding {
            nranks: options.nranks,
            rank: None,
            stride: layout.bytes + GAP,
            layout,
            checked: options.checked,
            shaken: false,
            traced: false,
            offloaded: true,
            far: &[],
            fenced: true,
        };
        let code = compile(program, &binding, &HOOKS).expect("the driver compiles");
        let library = build(name, &module, options);
        let functions = module.kernels.iter().map(|kernel| function(library, &kernel.name)).collect();
        Self { program, layout, nranks: options.nranks, code, module, functions }
    }

    /// Launches once, on windows of zeros.
    pub fn launch(&self, args: &[Arg], dims: &[i64]) -> Outcome {
        let n = self.nranks as usize;
        let mut windows: Vec<Memory> = (0..n).map(|_| Memory::new(&vec![0; self.layout.bytes])).collect();
        let bases: Vec<u64> = windows.iter_mut().map(|memory| memory.address() as u64).collect();
        let mut parts: Vec<Vec<Memory>> = args.iter().map(parts).collect();
        let words: Vec<u64> = args.iter().zip(&mut parts).flat_map(|(arg, parts)| words(arg, parts, n)).collect();
        let stops: Vec<AtomicI32> = (0..n).map(|_| AtomicI32::new(0)).collect();
        let ranks: Vec<Rank> = stops
            .iter()
            .enumerate()
            .map(|(rank, stop)| Rank {
                kernels: self,
                contexts: self.contexts(rank as u32, &bases),
                dims,
                stop,
                reports: Mutex::new(vec![Report::default(); 64]),
            })
            .collect();
        let exits = std::thread::scope(|scope| {
            let words = &words;
            let threads: Vec<_> =
                ranks.iter().enumerate().map(|(rank, state)| scope.spawn(move || state.drive(rank, words))).collect();
            let begin = Instant::now();
            while threads.iter().any(|thread| !thread.is_finished()) {
                let failed = stops.iter().any(|stop| stop.load(Ordering::Relaxed) != 0);
                if failed || begin.elapsed() > DEADLINE {
                    stops.iter().for_each(|stop| stop.store(1, Ordering::Relaxed));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(begin.elapsed() <= DEADLINE, "{}: the kernels hang", self.module.file);
            threads.into_iter().map(|thread| thread.join().expect("the rank's thread ends")).collect()
        });
        let reports = ranks.iter().flat_map(|rank| rank.reports.lock().unwrap().clone());
        Outcome {
            exits,
            reports: reports.filter(|report| report.state != 0).collect(),
            windows: windows.iter_mut().map(Memory::bytes).collect(),
            args: parts.iter_mut().map(|parts| parts.iter_mut().map(Memory::bytes).collect()).collect(),
        }
    }

    /// The contexts of a rank, by domain.
    fn contexts(&self, rank: u32, bases: &[u64]) -> Vec<Context> {
        let domains = Domains::new(self.program, Some(self.nranks));
        let context = |ranks: &Vec<u32>| {
            let mut windows = [0; 64];
            for (window, &rank) in windows.iter_mut().zip(ranks) {
                *window = bases[rank as usize];
            }
            let number = ranks.iter().position(|&other| other == rank).unwrap_or(0) as u32;
            let bytes = self.layout.bytes as u64;
            Context { workspace: [0; 2], rank: number, nranks: ranks.len() as u32, bytes, windows, unused: [0; 64] }
        };
        domains.ranks.values().map(context).collect()
    }
}

impl Rank<'_> {
    /// Runs the driver.
    fn drive(&self, rank: usize, words: &[u64]) -> i32 {
        let code = &self.kernels.code;
        let mut scratch = Memory::new(&vec![0; code.scratch_bytes]);
        let paces: Vec<Pace> = (0..self.kernels.nranks).map(|_| Pace::default()).collect();
        let place = std::sync::atomic::AtomicU64::new(0);
        let mut frame = Frame {
            windows: ptr::null_mut(),
            dims: self.dims.as_ptr(),
            args: words.as_ptr(),
            scratch: scratch.address(),
            place: &place,
            bells: ptr::null(),
            paces: paces.as_ptr(),
            far: std::ptr::null(),
            outgoing: std::ptr::null(),
            incoming: std::ptr::null(),
            runtime: ptr::from_ref(self).cast::<c_void>().cast_mut(),
            live: 0,
            written: 0,
            read: 0,
            rank: rank as u32,
            fault: Fault { site: 0, kind: 0, dim: 0, operand: 0, offsets: [0; 8], extents: [0; 8] },
        };
        // SAFETY: what the frame points to outlives the call.
        unsafe { (code.driver)(&mut frame) }
    }

    /// Runs a kernel, all its blocks one after the other: all that these programs wait for comes from other ranks.
    fn run(&self, rank: u32, task: u32, captures: *const u64, blocks: i64) -> bool {
        let origin = self.kernels.code.tasks[task as usize].origin;
        let kernels = &self.kernels.module.kernels;
        let number = kernels.iter().position(|kernel| (kernel.version, kernel.op) == origin).expect("a kernel a task");
        let mut reports = self.reports.lock().unwrap();
        let mut next = captures;
        let args: Vec<u64> = kernels[number]
            .params
            .iter()
            .map(|param| match *param {
                KernelParam::Stop => self.stop.as_ptr() as u64,
                KernelParam::Reports => reports.as_mut_ptr() as u64,
                KernelParam::Rank => rank.into(),
                KernelParam::Dim(dim) => self.dims[dim.as_u32() as usize] as u64,
                KernelParam::Context(domain) => ptr::from_ref(&self.contexts[domain.as_u32() as usize]) as u64,
                // SAFETY: the code passes a word for each capture.
                KernelParam::Capture(_) => unsafe {
                    next = next.add(1);
                    *next.sub(1)
                },
            })
            .collect();
        for block in 0..blocks {
            // SAFETY: the arguments are those of the kernel, and live as long as the launch.
            unsafe { self.kernels.functions[number](args.as_ptr(), block as u32) };
            if self.stop.load(Ordering::Relaxed) != 0 {
                return false;
            }
        }
        true
    }
}

/// The memory of an argument, by rank.
fn parts(arg: &Arg) -> Vec<Memory> {
    match arg {
        Arg::Ranked(parts) => parts.iter().map(|bytes| Memory::new(bytes)).collect(),
        Arg::Bits(_) => Vec::new(),
    }
}

/// What the driver gets for an argument, by rank.
fn words(arg: &Arg, parts: &mut [Memory], nranks: usize) -> Vec<u64> {
    match arg {
        Arg::Bits(bits) => vec![*bits; nranks],
        _ => parts.iter_mut().map(|part| part.address() as u64).collect(),
    }
}

/// Builds a module as the simulated compiler does: a handle of the library.
fn build(name: &str, module: &Module, options: &Options) -> *mut c_void {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pto").join(name);
    std::fs::create_dir_all(&dir).expect("a directory for the kernels");
    let (source, library) = (dir.join(&module.file), dir.join("kernels.so"));
    std::fs::write(&source, &module.source).expect("the source can be written");
    for (name, text) in module.headers {
        std::fs::write(dir.join(name), text).expect("the header can be written");
    }
    let generation = if options.target == Target::A5 { 5 } else { 2 };
    let output = Command::new("g++")
        .args(["-std=c++20", "-O1", "-shared", "-fPIC", "-fno-gnu-unique", "-D__CPU_SIM"])
        .arg(format!("-DPTO_SIM_UB_BYTES={}", options.target.ub_bytes()))
        .arg(format!("-DPTO_SIM_GENERATION={generation}"))
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pto_sim"))
        .arg("-o")
        .args([&library, &source])
        .output()
        .expect("g++ is there");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let path = CString::new(library.to_str().expect("a path of text")).expect("no zeros in a path");
    // SAFETY: the path is text that ends with a zero; the library does nothing when it is loaded.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "{name}: the kernels cannot be loaded");
    handle
}

fn function(library: *mut c_void, name: &str) -> Simulated {
    let symbol = CString::new(format!("{name}_sim")).expect("no zeros in a name");
    // SAFETY: the library stays loaded.
    let address = unsafe { libc::dlsym(library, symbol.as_ptr()) };
    assert!(!address.is_null(), "{name} is not in the library");
    // SAFETY: the writer declares these functions so.
    unsafe { std::mem::transmute::<*mut c_void, Simulated>(address) }
}

unsafe extern "C" fn submit(
    frame: *mut Frame,
    task: u32,
    args: *const u64,
    blocks: i64,
    _: *const i64,
    _: *const u64,
) -> u64 {
    // SAFETY: the frame is that of `drive`.
    let (rank, number) = unsafe { (&*(*frame).runtime.cast::<Rank>(), (*frame).rank) };
    if rank.run(number, task, args, blocks) { 0 } else { SUBMIT_FAILED }
}

unsafe extern "C" fn drain(_: *mut Frame) -> i32 {
    Exit::Done as i32
}

unsafe extern "C" fn wait(_: *mut Frame, _: *const AtomicI32, _: i32, _: u32, _: u32) -> i32 {
    unreachable!("kernels wait")
}

unsafe extern "C" fn ring(_: *mut Frame, _: u32) {
    unreachable!("kernels notify")
}

unsafe extern "C" fn defer(_: *mut Frame, _: *const AtomicI32, _: i32, _: u32) -> i32 {
    unreachable!("kernels wait")
}

unsafe extern "C" fn callback(_: *mut Frame, _: u32, _: *const View, _: *const i64, _: i64, _: i64) -> i32 {
    unreachable!("these programs call no function")
}

unsafe extern "C" fn stop(_: *mut Frame) {
    unreachable!("the code is not shaken")
}

unsafe extern "C" fn record(_: *mut Frame, _: u32, _: u32, _: u32, _: u64) {
    unreachable!("the code is not traced")
}
