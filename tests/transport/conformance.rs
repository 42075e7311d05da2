//! What every transport does.

use std::ops::Range;
use std::sync::Arc;

use pld::error::Result;
use pld::transport::far::{Pending, Rows, progress_until};
use pld::transport::join::Bootstrap;
use pld::transport::shm::ShmTransport;
use pld::transport::thread::ThreadTransport;
use pld::transport::{MAX_MESSAGE, Memory, Transport};

use crate::ranks::{DEADLINE, Job, Join, SILENCE, Scenario, Spread, options, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("suite", |rank| suite(&rank.join()?).map(|()| "passed".into())),
    ("suite_of_hosts", |rank| {
        let transport = rank.join_hosts(SILENCE)?;
        suite(&*transport)?;
        Ok(transport.name().into())
    }),
];

const SIZES: [usize; 7] = [0, 1, 4095, 4096, 4097, 100_000, (3 << 20) + 5];

/// Runs on every process of a world.
fn suite(transport: &dyn Transport) -> Result<()> {
    exchanges(transport)?;
    for bytes in SIZES {
        memory(transport, bytes)?;
    }
    two_memories(transport)?;
    assert_eq!(transport.lost(), None);
    Ok(())
}

/// A message whose length and bytes depend on rank and round.
fn message(rank: u32, round: u32) -> Vec<u8> {
    let length = match round {
        0 => 0,
        1 => MAX_MESSAGE - rank as usize,
        round => (rank * 37 + round * 11) as usize,
    };
    (0..length).map(|position| (position as u32 * 7 + rank * 31 + round * 101) as u8).collect()
}

fn exchanges(transport: &dyn Transport) -> Result<()> {
    let all = transport.local() == (0..transport.nranks());
    for round in 0..20 {
        let mine = transport.local().start;
        let got = transport.exchange(&message(mine, round), soon())?;
        let sender = |rank| if all { mine } else { rank };
        let expected: Vec<_> = (0..transport.nranks()).map(|rank| message(sender(rank), round)).collect();
        assert!(got == expected, "round {round}");
    }
    Ok(())
}

/// Depends on rank, position and size.
fn value(rank: u32, position: usize, bytes: usize) -> u8 {
    (position.wrapping_mul(2_654_435_761) >> 7) as u8 ^ (rank as u8).wrapping_mul(29) ^ bytes as u8 ^ 0x55
}

#[expect(clippy::mut_from_ref, reason = "memory is shared between processes; exchanges order the accesses")]
fn part(memory: &Memory, rank: u32, bytes: usize) -> &mut [u8] {
    // SAFETY: the part has that many bytes, and exchanges order the accesses of ranks.
    unsafe { std::slice::from_raw_parts_mut(memory.rank(rank), bytes) }
}

fn fill(memory: &Memory, ranks: Range<u32>, bytes: usize) {
    for rank in ranks {
        for (position, byte) in part(memory, rank, bytes).iter_mut().enumerate() {
            *byte = value(rank, position, bytes);
        }
    }
}

/// What is in a rank's part, wherever that is.
fn look(transport: &dyn Transport, memory: &Memory, rank: u32, bytes: usize) -> Vec<u8> {
    let Some(far) = transport.far().filter(|far| far.hosts()[rank as usize] != far.hosts()[own(transport)]) else {
        return part(memory, rank, bytes).to_vec();
    };
    let mut found = vec![0xaa; bytes];
    let pending = Arc::new(Pending::default());
    let rows = Rows { bytes, count: 1, far_stride: bytes, near_stride: bytes };
    if bytes > 0 {
        // SAFETY: there is room for the bytes, which nobody else uses; the far part has as many.
        unsafe { memory.far().unwrap().get(rank, 0, found.as_mut_ptr(), rows, &pending) };
    }
    assert!(progress_until(far, soon(), || pending.none()), "rank {rank} does not answer");
    found
}

fn own(transport: &dyn Transport) -> usize {
    transport.local().start as usize
}

fn check(transport: &dyn Transport, memory: &Memory, bytes: usize) {
    for rank in 0..transport.nranks() {
        let found = look(transport, memory, rank, bytes);
        let wrong = (0..bytes).find(|&position| found[position] != value(rank, position, bytes));
        assert_eq!(wrong, None, "rank {rank}, {bytes} bytes");
    }
}

fn memory(transport: &dyn Transport, bytes: usize) -> Result<()> {
    let memory = transport.allocate(bytes, soon())?;
    assert!(memory.stride() >= bytes && memory.stride() % 4096 == 0);
    for rank in 0..transport.nranks() {
        assert_eq!(memory.rank(rank) as usize, memory.rank(0) as usize + rank as usize * memory.stride());
        assert!(look(transport, &memory, rank, bytes).iter().all(|byte| *byte == 0), "rank {rank}, {bytes} bytes");
    }
    transport.exchange(b"seen", soon())?;
    fill(&memory, transport.local(), bytes);
    transport.exchange(b"written", soon())?;
    check(transport, &memory, bytes);
    transport.exchange(b"checked", soon())?;
    Ok(())
}

/// Memories are independent and may be dropped in any order (case C67).
fn two_memories(transport: &dyn Transport) -> Result<()> {
    let local = transport.local();
    let first = transport.allocate(5000, soon())?;
    let second = transport.allocate(6000, soon())?;
    fill(&first, local.clone(), 5000);
    fill(&second, local.clone(), 6000);
    transport.exchange(b"written", soon())?;
    let (kept, bytes) = match local.start % 2 {
        0 => (second, 6000),
        _ => (first, 5000),
    };
    transport.exchange(b"dropped", soon())?;
    check(transport, &kept, bytes);
    transport.exchange(b"checked", soon())?;
    Ok(())
}

#[test]
fn thread_transport() {
    for nranks in [1, 2, 3, 4, 8] {
        suite(&ThreadTransport::new(nranks).unwrap()).unwrap();
    }
}

#[test]
fn shm_between_processes() {
    for nranks in [1, 2, 3, 4, 8] {
        let mut job = Job::new();
        job.spawn_world("suite", nranks);
        job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "passed"));
        assert_eq!(job.leftovers(), [""; 0]);
    }
}

/// Every rank may as well be a thread of one process, with a transport of its own.
#[test]
fn shm_between_threads() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..3)
            .map(|rank| {
                let options = options(Bootstrap::File(path.clone()), Some((rank, 3)), DEADLINE);
                scope.spawn(move || suite(&ShmTransport::join(&options)?))
            })
            .collect();
        ranks.into_iter().for_each(|rank| rank.join().unwrap().unwrap());
    });
    assert_eq!(job.leftovers(), [""; 0]);
}

fn over_hosts(spread: Spread, reach: &'static str, expected: &str) {
    for nranks in [2, 3, 4, 8] {
        let mut job = Job::over(spread).with("REACH", reach);
        job.spawn_world("suite_of_hosts", nranks);
        let expected = if nranks == 2 && spread == Spread::Pairs { "shm" } else { expected };
        job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), expected));
        assert_eq!(job.leftovers(), [""; 0]);
    }
}

/// Two ranks a host; the first two are all of a world of two.
#[test]
fn hosts_of_two_ranks() {
    over_hosts(Spread::Pairs, "auto", "ucx");
}

#[test]
fn hosts_of_one_rank() {
    over_hosts(Spread::Apart, "auto", "ucx");
}

/// One host, whose ranks do not use that.
#[test]
fn ucx_within_a_host() {
    over_hosts(Spread::Together, "ucx", "ucx");
}
