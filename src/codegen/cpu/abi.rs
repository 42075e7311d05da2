//! What generated code and its runtime agree on.
//!
//! A launch calls the *driver* of the program once a rank with a [`Frame`]. Windows are symmetric: rank `r`'s copy lies
//! `r * stride` bytes after rank 0's, and a buffer has the same offset in every copy, so an address is the frame's
//! window base plus constants.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, AtomicU64};

pub use crate::ir::FaultKind;
use crate::ir::builder::MAX_RANK;
pub use crate::kernels::Pace;

/// Distance in bytes between the doorbells of neighbouring ranks in [`Frame::bells`].
pub const BELL_STRIDE: usize = 128;

/// The driver of a compiled program.
pub type Driver = unsafe extern "C" fn(*mut Frame) -> i32;

/// How a driver ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Exit {
    /// To its end.
    Done = 0,
    /// A run-time check found a mistake: [`Frame::fault`] has it. Nothing was written outside.
    Fault = 1,
    /// The launch has failed; the runtime knows why.
    Failed = 2,
}

/// What one rank's driver gets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Rank 0's copy of the windows that this launch uses, in this address space.
    pub windows: *mut u8,
    /// Values of the dynamic dimensions, indexed by [`crate::ir::Dim`].
    pub dims: *const i64,
    /// The launch's arguments, row-major `[host parameter][rank]`: for a tensor the address of the part that the rank
    /// works on (the same for every rank if the tensor is not sliced by rank; null for ranks of other processes), for a
    /// scalar its bits, zero-extended.
    pub args: *const u64,
    /// Memory for tiles, 64-byte aligned, [`super::Code::scratch_bytes`] long.
    pub scratch: *mut u8,
    /// Where the rank is, for reports: generated code stores the number of each task's [`crate::codegen::sites::Site`] when it begins,
    /// relaxed.
    pub place: *const AtomicU64,
    /// Doorbells: at `bells + peer * BELL_STRIDE` lies a `u32` that is not 0 while `peer` sleeps. A notify that finds it
    /// so calls [`Hooks::ring`].
    pub bells: *const u8,
    /// What is known of the way to each peer, by rank.
    pub paces: *const Pace,
    /// By rank, other than 0 for ranks whose windows are not mapped here.
    pub far: *const u8,
    /// Number of transfers under way that read memory of this process.
    pub outgoing: *const AtomicI32,
    /// Number of those that write it.
    pub incoming: *const AtomicI32,
    /// The runtime's own.
    pub runtime: *mut c_void,
    /// Other than 0 while tasks have to be submitted: some have not ended, or other cores run them too. The runtime
    /// keeps it.
    pub live: u64,
    /// Bytes that the running task has written at ranks and read from them; counted by code that is [`super::Binding::traced`].
    pub written: u64,
    /// As above.
    pub read: u64,
    /// This rank.
    pub rank: u32,
    /// What a run-time check found, if the driver returned [`Exit::Fault`].
    pub fault: Fault,
}

/// What a run-time check found.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The op: index of a [`crate::codegen::sites::Site`].
    pub site: u32,
    /// A [`FaultKind`].
    pub kind: u32,
    /// The dimension, of those of the operand.
    pub dim: u32,
    /// The tensor operand: index into [`crate::codegen::sites::Site::operands`].
    pub operand: u32,
    /// The offsets of the region, or the one offending value first.
    pub offsets: [i64; MAX_RANK],
    /// The extents of the region.
    pub extents: [i64; MAX_RANK],
}

/// Nothing was found.
pub const NO_FAULT: Fault =
    Fault { site: 0, kind: 0, dim: 0, operand: 0, offsets: [0; MAX_RANK], extents: [0; MAX_RANK] };

/// A tensor as the engine's functions see it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its first element.
    pub data: *mut c_void,
    /// A [`crate::ir::DType`].
    pub dtype: u32,
    /// Number of dimensions.
    pub ndims: u32,
    /// Extents, outermost first.
    pub shape: *const i64,
    /// Elements between neighbours in each dimension.
    pub strides: *const i64,
}

/// Functions of the runtime that generated code calls off its fast path.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Blocks until `*cell` compares with `expected` (`cmp` 0: equal, 1: greater or equal; signed); 0 when it does, with
    /// acquire ordering, else the launch has failed. Called when the cell does not compare at first sight.
    pub wait:
        unsafe extern "C" fn(frame: *mut Frame, cell: *const AtomicI32, expected: i32, cmp: u32, site: u32) -> i32,
    /// Wakes a sleeping peer.
    pub ring: unsafe extern "C" fn(frame: *mut Frame, peer: u32),
    /// Ends the present task only when `*cell` is `expected` or more. Called if it is not at first sight; 0 if noted.
    pub defer: unsafe extern "C" fn(frame: *mut Frame, cell: *const AtomicI32, expected: i32, site: u32) -> i32,
    /// Runs task number `task` of [`super::Code::tasks`] when what it waits for has ended, now or later. `args`, `regions`
    /// and `deps` are read before it returns. The handle of the instance: 0 if it has ended, [`SUBMIT_FAILED`] if the
    /// launch has.
    pub submit: unsafe extern "C" fn(
        frame: *mut Frame,
        task: u32,
        args: *const u64,
        blocks: i64,
        regions: *const i64,
        deps: *const u64,
    ) -> u64,
    /// Returns when every submitted task has ended: 0, or other than 0 if the launch has failed.
    pub drain: unsafe extern "C" fn(frame: *mut Frame) -> i32,
    /// Calls function number `function` of [`super::Code::functions`]: an [`Exit`].
    pub callback: unsafe extern "C" fn(
        frame: *mut Frame,
        function: u32,
        views: *const View,
        scalars: *const i64,
        block: i64,
        blocks: i64,
    ) -> i32,
    /// What it calls for peers whose windows are not mapped.
    pub far: FarHooks,
    /// Holds the rank up for a while, or not. Only code that is [`super::Binding::shaken`] calls it.
    pub stop: unsafe extern "C" fn(frame: *mut Frame),
    /// Records a [`Report`] of the op with this [`crate::codegen::sites::Site`]. Only code that is [`super::Binding::traced`] calls it.
    pub record: unsafe extern "C" fn(frame: *mut Frame, report: u32, site: u32, peer: u32, value: u64),
}

/// Functions of the runtime for far peers. Each returns 0, or other than 0 if the launch has failed.
#[derive(Clone, Copy, Debug)]
pub struct FarHooks {
    /// Begins a transfer of `rows` of `bytes` with a far peer: a [`Transfer`], [`Transfer::Accumulate`] plus the number of
    /// the [`crate::ir::DType`]. `far` is where the peer's windows would be.
    pub transfer: unsafe extern "C" fn(
        frame: *mut Frame,
        kind: u32,
        peer: u32,
        far: *mut u8,
        near: *mut u8,
        far_stride: usize,
        near_stride: usize,
        rows: usize,
        bytes: usize,
        site: u32,
    ) -> i32,
    /// Changes a cell of a far peer, `add` other than 0 to add to it, behind all that this rank has written.
    pub signal: unsafe extern "C" fn(
        frame: *mut Frame,
        peer: u32,
        cell: *const AtomicI32,
        value: i32,
        add: u32,
        site: u32,
    ) -> i32,
    /// Returns when no transfer of the task is under way.
    pub settle: unsafe extern "C" fn(frame: *mut Frame, site: u32) -> i32,
    /// Returns when all that this rank has written to far peers is there.
    pub order: unsafe extern "C" fn(frame: *mut Frame, site: u32) -> i32,
    /// Combines regions of which some lie at far peers.
    pub combine: unsafe extern "C" fn(frame: *mut Frame, job: *const Combination, site: u32) -> i32,
}

impl FarHooks {
    /// Where no peer is far.
    pub const NONE: FarHooks = {
        unsafe extern "C" fn transfer(
            _: *mut Frame,
            _: u32,
            _: u32,
            _: *mut u8,
            _: *mut u8,
            _: usize,
            _: usize,
            _: usize,
            _: usize,
            _: u32,
        ) -> i32 {
            1
        }
        unsafe extern "C" fn signal(_: *mut Frame, _: u32, _: *const AtomicI32, _: i32, _: u32, _: u32) -> i32 {
            1
        }
        unsafe extern "C" fn site(_: *mut Frame, _: u32) -> i32 {
            1
        }
        unsafe extern "C" fn combine(_: *mut Frame, _: *const Combination, _: u32) -> i32 {
            1
        }
        FarHooks { transfer, signal, settle: site, order: site, combine }
    };
}

/// What happens between a far peer and memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Transfer {
    /// Memory of this process is copied to the peer.
    Put = 0,
    /// The other way.
    Get = 1,
    /// Elements are added to the peer's.
    Accumulate = 2,
}

/// Rows of regions of several ranks that are combined, element by element.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Combination {
    /// A kernel of [`crate::kernels::Kernels::combine`].
    pub kernel: *const u8,
    /// Where the first row goes.
    pub to: *mut u8,
    /// Where the first row would be in the windows of rank 0.
    pub from: *const u8,
    /// Bytes from row to row.
    pub to_stride: usize,
    /// Likewise.
    pub from_stride: usize,
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub elements: usize,
    /// Bytes of an element of the result.
    pub to_size: usize,
    /// Bytes of an element of the regions.
    pub from_size: usize,
    /// The ranks, in order.
    pub ranks: *const u32,
    /// How many they are.
    pub nranks: usize,
}

/// What code reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Report {
    /// A block of a task begins; the value is its index.
    TaskBegun = 0,
    /// It ends; the frame has counted its bytes.
    TaskEnded = 1,
    /// The op notifies a cell of a peer; the value is the cell's address.
    Notified = 2,
}

/// What [`Hooks::submit`] returns when the launch has failed.
pub const SUBMIT_FAILED: u64 = u64::MAX;

/// The code of a task: the values that it uses from outside, and the index of the block. It ends with an [`Exit`].
pub type Run = unsafe extern "C" fn(frame: *mut Frame, args: *const u64, block: i64) -> i32;
