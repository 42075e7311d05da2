//! Limits: of memory, descriptors and patience with signals. What does not fit is an error on all ranks, and the world
//! goes on.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use pld::error::{ErrorKind, Result};
use pld::transport::thread::ThreadTransport;
use pld::transport::{MAX_MESSAGE, Transport};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ranks::{Job, Join, Outcome, Rank, Scenario, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("file_size", |rank| with_limit(rank, Resource::Fsize, || 100 << 10)),
    ("address_space", |rank| with_limit(rank, Resource::As, || (mapped_pages() << 12) + (4 << 20))),
    ("descriptors", |rank| with_limit(rank, Resource::Nofile, || open_descriptors() + 3)),
    ("absurd_sizes", absurd_sizes),
    ("different_sizes", different_sizes),
    ("long_message", long_message),
    ("signals", signals),
    ("file_size_before_joining", |rank| {
        let before = set(Resource::Fsize, Some(1));
        let joined = rank.join();
        set(Resource::Fsize, before);
        joined.map(|_| "joined".into())
    }),
];

/// Sets a limit and returns what it was.
fn set(resource: Resource, limit: Option<u64>) -> Option<u64> {
    let before = getrlimit(resource);
    setrlimit(resource, Rlimit { current: limit, maximum: before.maximum }).unwrap();
    before.current
}

fn mapped_pages() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse().unwrap()
}

fn open_descriptors() -> u64 {
    // The listing itself has one open.
    fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1
}

/// One rank has a low limit when all allocate. Afterwards the world works, and nobody has lost descriptors.
fn with_limit(rank: &Rank, resource: Resource, limit: fn() -> u64) -> Result<String> {
    let world = rank.join()?;
    world.exchange(b"", soon())?;
    let descriptors = open_descriptors();
    let limited = world.local().start == rank.number("LIMITED") as u32;
    let before = limited.then(|| set(resource, Some(limit())));
    let error = world.allocate(2 << 20, soon()).unwrap_err();
    if let Some(before) = before {
        set(resource, before);
    }
    assert_eq!(open_descriptors(), descriptors);
    let memory = world.allocate(2 << 20, soon())?;
    assert_eq!(open_descriptors(), descriptors);
    drop(memory);
    world.exchange(b"", soon())?;
    Err(error)
}

fn limited(scenario: &str, limited: u32) -> Vec<Outcome> {
    let mut job = Job::new();
    for rank in 0..4 {
        let variables = [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", "4".into())];
        job.spawn(scenario, variables.into_iter().chain([("LIMITED", limited.to_string())]));
    }
    job.outcomes()
}

/// Case C51.
#[test]
fn a_file_size_limit_on_one_rank() {
    for rank in [0, 2] {
        let message =
            format!("the part of rank {rank} needs 2097152 bytes, but only 102400 are available (RLIMIT_FSIZE)");
        limited("file_size", rank).iter().for_each(|outcome| assert_eq!(outcome.failed("NoSpace"), message));
    }
}

#[test]
fn an_address_space_limit_on_one_rank() {
    for rank in [0, 3] {
        let outcomes = limited("address_space", rank);
        let message = outcomes[0].failed("NoSpace");
        let begin = format!("the mapping of 4 parts of 2097152 bytes in rank {rank} needs 8388608 bytes, but only ");
        assert!(message.starts_with(&begin) && message.ends_with(" are available (RLIMIT_AS)"), "{message}");
        assert!(outcomes.iter().all(|outcome| outcome == &outcomes[0]));
    }
}

/// Case C86: enough descriptors for the own file, too few for all of them.
#[test]
fn a_descriptor_limit_on_one_rank() {
    for rank in [0, 1, 3] {
        let outcomes = limited("descriptors", rank);
        assert!(outcomes[0].failed("Io").contains("file descriptor"), "{:?}", outcomes[0]);
        assert!(outcomes.iter().all(|outcome| outcome == &outcomes[0]), "{outcomes:?}");
    }
}

/// Even the first file of a world does not end the process.
#[test]
fn a_file_size_limit_before_joining() {
    let mut job = Job::new();
    job.spawn_world("file_size_before_joining", 2);
    for outcome in job.outcomes() {
        let message = "a file of window memory needs 4096 bytes, but only 1 are available (RLIMIT_FSIZE)";
        assert_eq!(outcome.failed("NoSpace"), message);
    }
}

fn absurd_sizes(rank: &Rank) -> Result<String> {
    absurd(&rank.join()?).map(|()| "refused".into())
}

fn absurd(world: &dyn Transport) -> Result<()> {
    for bytes in [1 << 50, usize::MAX / 2, usize::MAX - 4095, usize::MAX] {
        let error = world.allocate(bytes, soon()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
        assert!(error.message.contains("bytes"), "{error}");
    }
    world.allocate(1 << 16, soon()).map(|_| ())
}

#[test]
fn sizes_beyond_any_memory() {
    for nranks in [1, 2, 8] {
        absurd(&ThreadTransport::new(nranks).unwrap()).unwrap();
    }
    let mut job = Job::new();
    job.spawn_world("absurd_sizes", 2);
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "refused"));
}

/// What is available is named.
#[test]
fn numbers_of_what_is_missing() {
    let world = ThreadTransport::new(4).unwrap();
    let error = world.allocate(1 << 50, soon()).unwrap_err();
    assert!(error.message.starts_with("4 ranks times 1125899906842624 bytes need 4503599627370496 bytes, but only "));
    assert!(error.message.contains(" are available ("), "{error}");
}

fn different_sizes(rank: &Rank) -> Result<String> {
    let world = rank.join()?;
    let bytes = if world.local().start == 2 { 8192 } else { 4096 };
    let error = world.allocate(bytes, soon()).map(|_| ());
    world.exchange(b"", soon())?;
    error.map(|()| "allocated".into())
}

#[test]
fn ranks_that_allocate_different_sizes() {
    let mut job = Job::new();
    job.spawn_world("different_sizes", 4);
    for outcome in job.outcomes() {
        assert_eq!(outcome.failed("Mismatch"), "rank 0 allocates 4096 bytes while rank 2 allocates 8192");
    }
}

fn long_message(rank: &Rank) -> Result<String> {
    let world = rank.join()?;
    let mine = vec![1; if world.local().start == 1 { MAX_MESSAGE + 1 } else { 1 }];
    let error = world.exchange(&mine, soon()).map(|_| ());
    world.exchange(b"", soon())?;
    error.map(|()| "sent".into())
}

#[test]
fn a_message_that_is_too_long() {
    let mut job = Job::new();
    job.spawn_world("long_message", 3);
    for outcome in job.outcomes() {
        let message = "rank 1 sends a message of 65537 bytes; the most is 65536";
        assert_eq!(outcome.failed("InvalidArgument"), message);
    }
}

static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Cases C64 and C80: a signal every millisecond that interrupts system calls, and handlers that stay what they were.
fn signals(rank: &Rank) -> Result<String> {
    // SAFETY: the handler only adds to an atomic; the timer sends its signal to this process.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()), 0);
        let every = libc::timeval { tv_sec: 0, tv_usec: 1000 };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()), 0);
    }
    let handlers = signal_state();
    {
        let world = rank.join()?;
        let memory = world.allocate(192 << 20, soon())?;
        for round in 0..200u32 {
            let all = world.exchange(&[round.to_ne_bytes(), world.local().start.to_ne_bytes()].concat(), soon())?;
            assert!((0u32..).zip(all).all(|(rank, word)| word == [round.to_ne_bytes(), rank.to_ne_bytes()].concat()));
        }
        for rank in 0..world.nranks() {
            // SAFETY: inside the part, to which nobody writes.
            assert_eq!(unsafe { memory.rank(rank).add((192 << 20) - 1).read() }, 0);
        }
        world.allocate(usize::MAX, soon()).unwrap_err();
        world.exchange(b"end", soon())?;
    }
    assert_eq!(signal_state(), handlers);
    assert!(SIGNALS.load(Ordering::Relaxed) > 10);
    Ok("undisturbed".into())
}

/// Which signals this thread blocks, and which the process ignores and catches.
fn signal_state() -> Vec<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let wanted = ["SigBlk:", "SigIgn:", "SigCgt:"];
    status.lines().filter(|line| wanted.iter().any(|name| line.starts_with(name))).map(str::to_owned).collect()
}

#[test]
fn a_signal_every_millisecond() {
    let mut job = Job::new();
    job.spawn_world("signals", 2);
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "undisturbed"));
}

/// Windows of a process that drives all ranks may be larger than what is ever touched.
#[test]
fn large_and_sparse() {
    let world = ThreadTransport::new(2).unwrap();
    let bytes = 1 << 30;
    let memory = world.allocate(bytes, soon()).unwrap();
    for (rank, value) in [(0, 17u8), (1, 23)] {
        // SAFETY: inside the part; no other thread knows of it.
        unsafe {
            let last = memory.rank(rank).add(bytes - 1);
            assert_eq!(last.read(), 0);
            last.write(value);
            assert_eq!(last.read(), value);
        }
    }
    let resident: u64 = fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    assert!(resident << 12 < bytes as u64, "{resident} pages");
}
