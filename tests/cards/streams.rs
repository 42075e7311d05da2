//! Launches on the engine's stream.

use std::ffi::c_void;
use std::path::PathBuf;
use std::time::Duration;

use hccl_sys::Cann;
use pld::error::{ErrorKind, Result};
use pld::runtime::{Arg, CompileOptions, World, WorldOptions};
use pld_test_ranks::Rank;

use crate::join::Join;
use crate::programs::{Numbers, RING, compile, persistent, ring, told};
use crate::{Scenario, all_say, cards};

pub const SCENARIOS: &[(&str, Scenario)] =
    &[("in_order", in_order_rank), ("fails_later", fails_later_rank), ("refused", refused_rank), ("left", left_rank)];

/// A stream of the engine, on its own context's device.
struct EngineStream {
    cann: &'static Cann,
    raw: *mut c_void,
}

impl EngineStream {
    fn new(device: u32) -> Self {
        let home = std::env::var_os("ASCEND_HOME_PATH").map(PathBuf::from);
        let cann = Cann::get(home.as_deref()).unwrap();
        let mut raw = std::ptr::null_mut();
        // SAFETY: the device is there; the function writes the stream.
        unsafe {
            (cann.aclInit)(std::ptr::null());
            assert_eq!((cann.aclrtSetDevice)(device as i32), 0);
            assert_eq!((cann.aclrtCreateStream)(&mut raw), 0);
        }
        Self { cann, raw }
    }

    /// Waits for all that is on it; false if that takes too long.
    fn finish(&self, timeout: Duration) -> bool {
        // SAFETY: the stream is alive.
        unsafe { (self.cann.aclrtSynchronizeStreamWithTimeout)(self.raw, timeout.as_millis() as i32) == 0 }
    }
}

impl Drop for EngineStream {
    fn drop(&mut self) {
        // SAFETY: it was made for this struct.
        unsafe { (self.cann.aclrtDestroyStream)(self.raw) };
    }
}

const PATIENCE: Duration = Duration::from_secs(20);

/// What a stream carries runs in its order, more launches than are allowed at once, and mixed with those of the host.
#[test]
fn launches_keep_the_order_of_the_stream() {
    all_say("in_order", 2, "in order");
}

fn in_order_rank(me: &Rank) -> Result<String> {
    let stream = EngineStream::new(me.rank());
    let world = me.join(&WorldOptions { runs: 3, ..cards::on_cards() })?;
    let exe = compile(RING, &world, &persistent())?;
    let outs: Vec<Numbers> = (0..12).map(|_| Numbers::new(&world, &[-1])).collect();
    let mut sum = 0;
    for (launch, out) in (0..).zip(&outs) {
        sum += told(me.rank(), me.nranks(), launch);
        // SAFETY: the stream lives longer than the call.
        unsafe { exe.launch_on(&ring(out, launch, 1, sum, 1), stream.raw) }?;
    }
    assert!(stream.finish(PATIENCE), "the stream comes to its end");
    let mut sum = 0;
    for (launch, out) in (0..).zip(&outs) {
        sum += told(me.rank(), me.nranks(), launch);
        // A rank may be told of later launches before it looks.
        assert!(i64::from(out.get()[0]) >= sum, "launch {launch}");
    }
    let last = Numbers::new(&world, &[-1]);
    sum += told(me.rank(), me.nranks(), 50);
    // SAFETY: NULL is the default stream.
    unsafe { exe.launch_on(&ring(&last, 50, 1, sum, 1), std::ptr::null_mut()) }?;
    sum += told(me.rank(), me.nranks(), 60);
    exe.launch(&ring(&last, 60, 1, sum, 1))?;
    assert_eq!(i64::from(last.get()[0]), sum);
    Ok("in order".into())
}

/// A launch that fails behind the engine's back tells the next call, once, and everybody recovers.
#[test]
fn a_launch_that_fails_tells_the_next_call() {
    let outcomes = cards::job("fails_later", 2).outcomes();
    assert_eq!(outcomes[0], outcomes[1]);
    let report = outcomes[0].done();
    assert!(report.starts_with("rank 1: a region of [1] at [9] reaches outside told"), "{report}");
}

fn fails_later_rank(me: &Rank) -> Result<String> {
    let stream = EngineStream::new(me.rank());
    let world = me.join(&cards::on_cards())?;
    let exe = compile(RING, &world, &persistent())?;
    let out = Numbers::new(&world, &[-1]);
    let at = if me.rank() == 1 { 9 } else { 1 };
    // SAFETY: the stream lives longer than the call.
    let mut launched = unsafe { exe.launch_on(&ring(&out, 5, 1, 1_000_000, at), stream.raw) };
    assert!(stream.finish(PATIENCE), "kernels of a failed launch end");
    let error = loop {
        let Err(error) = launched else {
            std::thread::sleep(Duration::from_millis(10));
            // SAFETY: as above.
            launched = unsafe { exe.launch_on(&ring(&out, 6, 0, 0, 2), stream.raw) };
            continue;
        };
        break error;
    };
    let right = told(me.rank(), me.nranks(), 6);
    assert_eq!(error.kind, ErrorKind::OutOfBounds);
    exe.launch(&ring(&out, 6, 1, right, 3))?;
    assert_eq!(i64::from(out.get()[0]), right);
    Ok(error.message)
}

#[test]
fn what_cannot_be_launched_on_a_stream() {
    all_say("refused", 1, "refused");
    let world = World::create(1, &WorldOptions::default()).unwrap();
    let exe = compile("program nothing\nhost () {\n}\n", &world, &persistent()).unwrap();
    // SAFETY: NULL is the default stream.
    let error = unsafe { exe.launch_on(&[], std::ptr::null_mut()) }.unwrap_err();
    let right = "no launch on a stream: the ranks of this world are no cards, and have no streams";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Unsupported, right));
}

fn refused_rank(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let exe = compile(RING, &world, &CompileOptions::default())?;
    let out = Numbers::new(&world, &[-1]);
    // SAFETY: NULL is the default stream.
    let error = unsafe { exe.launch_on(&ring(&out, 1, 1, 1, 1), std::ptr::null_mut()) }.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidState);
    assert!(error.message.contains("compile it as persistent"), "{error}");
    // SAFETY: as above.
    let error = unsafe { exe.launch_on(&[Arg::Int(1)], std::ptr::null_mut()) }.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidState);
    Ok("refused".into())
}

/// A world that is left while launches are queued ends them.
#[test]
fn a_world_that_is_left() {
    all_say("left", 1, "left");
}

fn left_rank(me: &Rank) -> Result<String> {
    let stream = EngineStream::new(me.rank());
    let world = me.join(&cards::on_cards())?;
    let exe = compile(RING, &world, &persistent())?;
    let out = Numbers::new(&world, &[-1]);
    for _ in 0..3 {
        // SAFETY: the stream lives longer than the call.
        unsafe { exe.launch_on(&ring(&out, 5, 1, 1_000_000, 1), stream.raw) }?;
    }
    world.close()?;
    assert!(stream.finish(PATIENCE), "what waited in vain has ended");
    Ok("left".into())
}
