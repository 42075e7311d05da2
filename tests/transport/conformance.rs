//! What every transport does.

use std::ops::Range;

use pld::error::Result;
use pld::transport::join::Bootstrap;
use pld::transport::shm::ShmTransport;
use pld::transport::thread::ThreadTransport;
use pld::transport::{MAX_MESSAGE, Memory, Transport};

use crate::ranks::{DEADLINE, Job, Join, Scenario, options, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[("suite", |rank| suite(&rank.join()?).map(|()| "passed".into()))];

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

fn check(memory: &Memory, nranks: u32, bytes: usize) {
    for rank in 0..nranks {
        let wrong = (0..bytes).find(|&position| part(memory, rank, bytes)[position] != value(rank, position, bytes));
        assert_eq!(wrong, None, "rank {rank}, {bytes} bytes");
    }
}

fn memory(transport: &dyn Transport, bytes: usize) -> Result<()> {
    let memory = transport.allocate(bytes, soon())?;
    assert!(memory.stride() >= bytes && memory.stride() % 4096 == 0);
    for rank in 0..transport.nranks() {
        assert_eq!(memory.rank(rank) as usize, memory.rank(0) as usize + rank as usize * memory.stride());
        assert!(part(&memory, rank, bytes).iter().all(|byte| *byte == 0), "rank {rank}, {bytes} bytes");
    }
    transport.exchange(b"seen", soon())?;
    fill(&memory, transport.local(), bytes);
    transport.exchange(b"written", soon())?;
    check(&memory, transport.nranks(), bytes);
    transport.exchange(b"checked", soon())?;
    Ok(())
}

/// Memories are independent and may be dropped in any order (case C67).
fn two_memories(transport: &dyn Transport) -> Result<()> {
    let (nranks, local) = (transport.nranks(), transport.local());
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
    check(&kept, nranks, bytes);
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
