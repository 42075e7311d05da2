//! Worlds of cards come into being on all ranks or on none, and leave nothing.

use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::ptr;
use std::time::{Duration, Instant};

use hccl_sys::{HCCL_ROOT_INFO_BYTES, HCCL_SUCCESS, HcclRootInfo};
use pld::error::{Error, ErrorKind, Result};
use pld::transport::hccl::compiler::Architecture;
use pld::transport::hccl::{HcclOptions, check_available};
use pld::transport::thread::ThreadTransport;
use pld::transport::{Memory, Transport, availability};

use super::{Processes, World, bring_up, cann_function, cards, everywhere, host, join, left, meet};
use crate::ranks::{Job, Outcome, Rank, Scenario, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("bring_up", |rank| {
        let transport = join(rank, soon())?;
        let (local, cards) = (transport.local(), cards(&transport));
        assert_eq!(transport.name(), "hccl");
        for rank in local {
            let card = cards.card(rank);
            assert_eq!((card.device(), card.soc()), (rank as i32, "Ascend910_9391"));
            assert_eq!(Architecture::of(card.soc()), Ok(Architecture::A2A3));
        }
        assert_eq!(transport.lost(), None);
        meet(&transport)?;
        Ok("passed".into())
    }),
    ("bring_up_twice", |rank| {
        for _ in 0..2 {
            meet(&join(rank, soon())?)?;
        }
        Ok("passed".into())
    }),
    ("bring_up_until_nothing_is_left", |rank| {
        let result = join(rank, soon()).map(|_| "passed".into());
        await_nothing_left();
        result
    }),
    ("killed_before_hccl", killed_before_hccl),
    ("alone_in_hccl", alone_in_hccl),
    ("bring_up_after_a_failure", |rank| {
        let failed = join(rank, soon()).map(drop);
        meet(&join(rank, soon())?)?;
        failed.map(|()| "passed".into())
    }),
    ("devices_from_the_environment", |rank| {
        let host = host(rank)?;
        let devices = std::env::var("TEST_DEVICES").unwrap();
        let devices = devices.split(',').map(|device| device.parse().unwrap()).collect();
        bring_up(host, &HcclOptions { devices, comms: Vec::new(), deadline: soon() }).map(|_| "passed".into())
    }),
    ("available", |_| {
        let last = availability().pop().unwrap();
        assert_eq!(last.0, "hccl");
        assert_eq!(last.1, check_available());
        last.1.map(|()| "passed".into())
    }),
    ("communicators_of_the_engine", communicators_of_the_engine),
    ("a_device_of_the_engine", a_device_of_the_engine),
    ("leaves_before", |rank| {
        let host = host(rank)?;
        if host.local().start == 1 {
            return Ok("left".into());
        }
        let options = HcclOptions { devices: vec![0], comms: Vec::new(), deadline: soon() };
        bring_up(host, &options).map(|_| "passed".into())
    }),
];

/// Waits until the process has nothing left in the simulated CANN: calls that were left have returned.
fn await_nothing_left() {
    type Report = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: this is the function's type.
    let report = unsafe { std::mem::transmute::<*mut c_void, Report>(cann_function(c"cannSimReport")) };
    let is_left = || {
        // SAFETY: the text lives until the thread asks again.
        let text = unsafe { CStr::from_ptr(report()) }.to_str().unwrap();
        left(&serde_json::from_str(text).unwrap()).next().is_some()
    };
    let end = soon();
    while is_left() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A transport that has only the first of its process's ranks, which calls this before HCCL: when ranks have exchanged
/// everything and allocate memory for HCCL's result.
struct BeforeHccl<F>(Box<dyn Transport>, F);

impl<F: Fn() + Send + Sync> Transport for BeforeHccl<F> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn nranks(&self) -> u32 {
        self.0.nranks()
    }

    fn local(&self) -> Range<u32> {
        let first = self.0.local().start;
        first..first + 1
    }

    fn exchange(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        self.0.exchange(mine, deadline)
    }

    fn allocate(&self, bytes: usize, deadline: Instant) -> Result<Memory> {
        let memory = self.0.allocate(bytes, deadline)?;
        self.1();
        Ok(memory)
    }

    fn lost(&self) -> Option<u32> {
        self.0.lost()
    }

    fn leave(&self) {
        self.0.leave();
    }
}

/// Rank 1 does not get to HCCL, in which the others are meanwhile.
fn killed_before_hccl(rank: &Rank) -> Result<String> {
    let (me, home) = (rank.rank(), rank.home().to_owned());
    let wait = move || {
        std::fs::write(home.join(format!("before hccl.{me}")), "").unwrap();
        if me == 1 {
            // Until it is killed.
            std::thread::sleep(pld_test_ranks::DEADLINE);
        }
    };
    let options = HcclOptions { devices: vec![me as i32], comms: Vec::new(), deadline: soon() };
    let result = bring_up(Box::new(BeforeHccl(host(rank)?, wait)), &options).map(|_| "passed".into());
    await_nothing_left();
    result
}

/// Rank 1 says what rank 0 says, but does not call HCCL.
fn alone_in_hccl(_: &Rank) -> Result<String> {
    let deadline = Instant::now() + Duration::from_millis(200);
    let options = HcclOptions { devices: vec![0], comms: Vec::new(), deadline };
    let host = BeforeHccl(Box::new(ThreadTransport::new(2)?), || ());
    let result = bring_up(Box::new(host), &options).map(|_| "passed".into());
    await_nothing_left();
    result
}

/// The engine's own communicators are used, and not destroyed.
fn communicators_of_the_engine(rank: &Rank) -> Result<String> {
    // Opens the device for the process as an engine would, and keeps it open.
    let engine = join(rank, soon())?;
    let (me, nranks) = (engine.local().start, engine.nranks());
    let cann = cards(&engine).card(me).cann();
    let mut root = HcclRootInfo { internal: [0; HCCL_ROOT_INFO_BYTES as usize] };
    let mut comm: *mut c_void = ptr::null_mut();
    // SAFETY: the functions write what they are asked for; the thread has a device from here on.
    unsafe {
        assert_eq!((cann.aclrtSetDevice)(me as i32), 0);
        if me == 0 {
            assert_eq!((cann.HcclGetRootInfo)(&mut root), HCCL_SUCCESS);
        }
        let bytes = root.internal.map(|byte| byte as u8);
        let all = engine.exchange(&bytes, soon())?;
        root.internal.iter_mut().zip(&all[0]).for_each(|(to, from)| *to = *from as _);
        assert_eq!((cann.HcclCommInitRootInfo)(nranks, &root, me, &mut comm), HCCL_SUCCESS);
    }
    let options = |comms| HcclOptions { devices: vec![me as i32], comms, deadline: soon() };
    let transport = bring_up(Box::new(engine), &options(vec![comm]))?;
    cards(&transport).allocate_windows(100, soon())?;
    // A world that counts its ranks otherwise, and ranks that do not agree.
    let alone = ThreadTransport::new(1)?;
    let other = bring_up(Box::new(alone), &options(vec![comm])).map(drop);
    let said = format!("rank 0: the engine's communicator has this as rank {me} of {nranks}, the world as rank 0 of 1");
    assert_eq!(other, Err(Error::new(ErrorKind::Mismatch, said)));
    let comms = if me == 0 { vec![comm] } else { vec![] };
    let mixed = bring_up(Box::new(transport), &options(comms)).map(drop);
    let said = "rank 0 gives a communicator while rank 1 gives no communicator";
    assert_eq!(mixed, Err(Error::new(ErrorKind::Mismatch, said)));
    // SAFETY: it is still the engine's.
    unsafe {
        let mut size = 0;
        assert_eq!(((cann.HcclGetRankSize)(comm, &mut size), size), (HCCL_SUCCESS, nranks));
        assert_eq!((cann.HcclCommDestroy)(comm), HCCL_SUCCESS);
        assert_eq!((cann.aclrtResetDevice)(me as i32), 0);
    }
    Ok("passed".into())
}

/// An engine that works with another device finds it current after every call, and keeps its devices.
fn a_device_of_the_engine(rank: &Rank) -> Result<String> {
    let transport = join(rank, soon())?;
    let cann = cards(&transport).card(0).cann();
    let current = || {
        let mut device = -1;
        // SAFETY: the function writes a number.
        assert_eq!(unsafe { (cann.aclrtGetDevice)(&mut device) }, 0);
        device
    };
    // SAFETY: the device is there.
    assert_eq!(unsafe { (cann.aclrtSetDevice)(5) }, 0);
    let second = bring_up(host(rank)?, &HcclOptions { devices: vec![1, 2], comms: Vec::new(), deadline: soon() })?;
    assert_eq!(current(), 5);
    let windows = cards(&second).allocate_windows(100, soon())?;
    assert_eq!(current(), 5);
    let card = cards(&second).card(1);
    let memory = card.allocate(100)?;
    memory.write(3, b"of rank 1")?;
    let (stream, event) = (card.stream()?, card.event()?);
    event.record(&stream)?;
    assert_eq!((event.synchronize(Duration::from_secs(10))?, event.query()?, current()), (true, true, 5));
    let mut text = [0; 9];
    memory.read(3, &mut text)?;
    assert_eq!((&text, current()), (b"of rank 1", 5));
    drop((windows, memory, stream, event));
    assert_eq!(current(), 5);
    drop((second, transport));
    assert_eq!(current(), 5);
    // SAFETY: as above.
    assert_eq!(unsafe { (cann.aclrtResetDevice)(5) }, 0);
    Ok("passed".into())
}

#[test]
fn worlds_of_cards() {
    everywhere("bring_up", &[]);
    World::start("bring_up", 1, Processes::OneARank, &[]).succeed();
}

#[test]
fn worlds_follow_one_another() {
    everywhere("bring_up_twice", &[]);
}

/// A failing call on one rank is an error on all. Who waits for it in HCCL does not wait until HCCL's own time is up:
/// then it would say so.
#[test]
fn a_failing_call_fails_on_all_ranks() {
    let steps = ["aclInit", "aclrtGetDeviceCount", "aclrtSetDevice", "aclrtGetLogicDevIdByUserDevId"];
    let of_hccl = [("HcclGetRootInfo", 0), ("HcclCommInitRootInfo", 2)];
    for (step, rank) in steps.map(|step| (step, 1)).into_iter().chain(of_hccl) {
        let mut world = World { job: Job::new() };
        let (code, name) = match step.starts_with("Hccl") {
            true => (4, "HCCL_E_INTERNAL (4)"),
            false => (507_899, "ACL_ERROR_RT_DRV_INTERNAL_ERROR (507899)"),
        };
        let order = format!("{step}:1={code}");
        for other in 0..3 {
            let fail: &[_] = if rank == other { &[("CANN_SIM_FAIL", &*order)] } else { &[] };
            let more = [fail, &[("HCCL_CONNECT_TIMEOUT", "2")]].concat();
            world.spawn_rank("bring_up_until_nothing_is_left", other, 3, &more);
        }
        let message = world.fail("Device");
        assert!(message.starts_with(&format!("rank {rank}: {step}: {name}: ")), "{message}");
        assert!(message.contains("call 1 was ordered to fail"), "{message}");
    }
}

/// Who is in HCCL's call comes back from it when a rank is lost.
#[test]
fn a_rank_that_dies_before_hccl() {
    let mut world = World::start("killed_before_hccl", 3, Processes::OneARank, &[("HCCL_CONNECT_TIMEOUT", "2")]);
    world.job.hear_all("before hccl");
    world.job.kill(1);
    let outcomes = world.outcomes();
    assert_eq!(outcomes[1], Outcome::Killed(9));
    for seat in [0, 2] {
        let message = outcomes[seat].failed("PeerLost");
        assert!(message.starts_with("rank 1 "), "{message}");
    }
    world.assert_nothing_is_left();
}

/// Who is in HCCL's call comes back from it when time is up.
#[test]
fn a_rank_that_does_not_call_hccl() {
    let world = World::start("alone_in_hccl", 1, Processes::One, &[("HCCL_CONNECT_TIMEOUT", "1")]);
    let message = world.fail("Timeout");
    assert!(message.starts_with("rank 0: HcclCommInitRootInfo has not returned within 0."), "{message}");
}

#[test]
fn a_world_can_be_tried_again() {
    let order = [("CANN_SIM_FAIL", "HcclGetRootInfo:1=4")];
    for processes in [Processes::OneARank, Processes::One] {
        let message = World::start("bring_up_after_a_failure", 2, processes, &order).fail("Device");
        assert!(message.starts_with("rank 0: HcclGetRootInfo: HCCL_E_INTERNAL (4): internal error; "), "{message}");
    }
}

#[test]
fn devices_that_are_not_there() {
    let devices = |devices, nranks, processes| {
        let more = [("TEST_DEVICES", devices), ("CANN_SIM_DEVICES", "4")];
        World::start("devices_from_the_environment", nranks, processes, &more).fail("InvalidArgument")
    };
    let message = devices("1,4", 2, Processes::One);
    assert_eq!(message, "rank 1: device 4; this process has devices 0 to 3");
    let message = devices("3,0,3", 3, Processes::One);
    assert_eq!(message, "rank 0: device 3 for two ranks; each rank needs a card of its own");
    let message = devices("0", 2, Processes::One);
    assert_eq!(message, "rank 0: 1 devices and 0 communicators for 2 ranks of this process");
    let more = [("TEST_DEVICES", "2"), ("ASCEND_RT_VISIBLE_DEVICES", "6,7")];
    let message = World::start("devices_from_the_environment", 2, Processes::OneARank, &more).fail("InvalidArgument");
    assert_eq!(message, "rank 0: device 2; this process has devices 0 to 1 (ASCEND_RT_VISIBLE_DEVICES is 6,7)");
}

/// HCCL refuses two ranks on one card.
#[test]
fn one_card_for_two_ranks() {
    let more = [("TEST_DEVICES", "3")];
    let mut world = World::start("devices_from_the_environment", 2, Processes::OneARank, &more);
    let outcomes = world.outcomes();
    let message = outcomes[0].failed("Device");
    assert_eq!(outcomes[1].failed("Device"), message);
    assert!(message.contains("HcclCommInitRootInfo: HCCL_E_PARA (1): parameter error; "), "{message}");
    assert!(message.ends_with("; each rank needs a card of its own"), "{message}");
    world.assert_nothing_is_left();
}

/// One rank has no CANN: all are told so.
#[test]
fn no_cann() {
    for rank in [0, 1] {
        let mut world = World { job: Job::new() };
        for other in 0..2 {
            let more: &[_] = if rank == other { &[("ASCEND_HOME_PATH", "/is/not/there")] } else { &[] };
            world.spawn_rank("bring_up", other, 2, more);
        }
        let message = world.fail("Unavailable");
        let expected = format!("rank {rank}: CANN was not found: /is/not/there/lib64/libascendcl.so ");
        assert!(message.starts_with(&expected) && message.contains("ASCEND_HOME_PATH"), "{message}");
    }
}

#[test]
fn what_is_available() {
    let one = |more| World::start("available", 1, Processes::One, more);
    one(&[]).succeed();
    let message = one(&[("ASCEND_HOME_PATH", "/is/not/there")]).fail("Unavailable");
    assert!(message.starts_with("CANN was not found"), "{message}");
    let message = one(&[("PLD_CCEC", "/is/not/there")]).fail("Unavailable");
    let expected = "/is/not/there is missing: ASCEND_HOME_PATH names the toolkit, or PLD_CCEC the compiler";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn an_engine_that_runs_already() {
    World::start("communicators_of_the_engine", 2, Processes::OneARank, &[]).succeed();
    World::start("a_device_of_the_engine", 2, Processes::One, &[]).succeed();
}

#[test]
fn a_rank_that_leaves_before() {
    let mut world = World::start("leaves_before", 2, Processes::OneARank, &[]);
    let outcomes = world.outcomes();
    assert_eq!(outcomes[1], Outcome::Done("left".into()));
    assert_eq!(outcomes[0].failed("PeerLost"), "rank 1 has left the world");
    world.assert_nothing_is_left();
}
