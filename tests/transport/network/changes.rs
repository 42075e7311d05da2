//! Changes of cells come behind what was sent before, to whatever rank.

use std::sync::atomic::Ordering;

use pld::error::Result;
use pld::transport::far::Change;

use super::*;

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("network_announced", announced),
    ("network_held", held),
    ("network_counts", counts),
    ("network_computing", computing),
];

/// Rounds with puts of many sizes, each announced by a change: whoever sees the change sees the bytes.
fn announced(process: &Rank) -> Result<String> {
    const ROUNDS: i32 = 300;
    let end = End::connect(process)?;
    let (next, previous) = ((end.rank + 1) % end.nranks, (end.rank + end.nranks - 1) % end.nranks);
    for round in 1..=ROUNDS {
        let size = 1 + (round as usize * 7919) % 60_000;
        let bytes = vec![(round as u32 + end.rank) as u8; size];
        // SAFETY: the row lies in both memories; the vector lives until it is not needed any more.
        unsafe { end.memory().put(next, round as u64 % 64, bytes.as_ptr(), rows(size, 1, size, size), &end.pending) };
        end.memory().change(next, cell(0), Change::Set(round));
        end.progress_until(|| end.cell(0).load(Ordering::Acquire) >= round && end.pending.none());
        let wrong = (0..size).find(|at| end.byte(round as usize % 64 + at) != (round as u32 + previous) as u8);
        assert_eq!(wrong, None, "rank {} round {round}", end.rank);
        // The other one goes on when this one has looked.
        end.memory().change(previous, cell(1), Change::Set(round));
        end.progress_until(|| end.cell(1).load(Ordering::Acquire) >= round);
    }
    end.close()
}

/// Rank 0 writes to rank 1 and tells rank 2, which finds at rank 1 what it was told of.
fn held(process: &Rank) -> Result<String> {
    const SIZE: usize = 1 << 20;
    let end = End::connect(process)?;
    for round in 1..=20 {
        if end.rank == 0 {
            let bytes = vec![round as u8; SIZE];
            // SAFETY: the row lies in both memories; the vector lives until it is not needed any more.
            unsafe { end.memory().put(1, 0, bytes.as_ptr(), rows(SIZE, 1, SIZE, SIZE), &end.pending) };
            end.memory().change(2, cell(0), Change::Add(1));
            assert!(!end.network.reached());
            end.network.ask();
            end.progress_until(|| end.pending.none() && end.network.reached());
        }
        if end.rank == 2 {
            end.progress_until(|| end.cell(0).load(Ordering::Acquire) >= round);
            let mut seen = vec![0u8; SIZE];
            // SAFETY: the row lies in both memories; the vector lives on.
            unsafe { end.memory().get(1, 0, seen.as_mut_ptr(), rows(SIZE, 1, SIZE, SIZE), &end.pending) };
            end.progress_until(|| end.pending.none());
            assert!(seen.iter().all(|byte| *byte == round as u8), "round {round}");
        }
        end.meet();
    }
    end.close()
}

/// All ranks add to one cell and set others, in between writing to yet others; nothing is lost, and the last value stays.
fn counts(process: &Rank) -> Result<String> {
    const TIMES: i32 = 2000;
    let end = End::connect(process)?;
    let others: Vec<u32> = (0..end.nranks).filter(|rank| *rank != end.rank).collect();
    let byte = [end.rank as u8];
    for time in 1..=TIMES {
        for other in &others {
            // SAFETY: the byte lies in both memories, and lives on.
            unsafe { end.memory().put(*other, u64::from(end.rank), byte.as_ptr(), rows(1, 1, 1, 1), &end.pending) };
            end.memory().change(*other, cell(0), Change::Add(time));
            end.memory().change(*other, cell(1 + end.rank as usize), Change::Set(time));
        }
        end.network.progress();
    }
    end.progress_until(|| end.pending.none());
    end.reach();
    end.meet();
    let sum = TIMES * (TIMES + 1) / 2 * others.len() as i32;
    assert_eq!(end.cell(0).load(Ordering::Acquire), sum);
    for other in others {
        assert_eq!(end.cell(1 + other as usize).load(Ordering::Acquire), TIMES);
        assert_eq!(end.byte(other as usize), other as u8);
    }
    end.close()
}

/// A rank that computes, and never makes progress itself, is written and read all the same.
fn computing(process: &Rank) -> Result<String> {
    const SIZE: usize = 4 << 20;
    let end = End::connect(process)?;
    end.fill(0);
    end.meet();
    if end.rank == 0 {
        let mut seen = vec![0u8; SIZE];
        // SAFETY: the rows lie in both memories; the vector lives on.
        unsafe {
            end.memory().get(1, 0, seen.as_mut_ptr(), rows(SIZE, 1, SIZE, SIZE), &end.pending);
            end.memory().put(1, SIZE as u64, end.at(0), rows(SIZE, 1, SIZE, SIZE), &end.pending);
        }
        end.memory().change(1, cell(0), Change::Set(1));
        end.network.ask();
        end.until(|| end.pending.none() && end.network.reached());
        assert!((0..SIZE).all(|at| seen[at] == value(1, at, 0)));
    } else {
        end.until(|| end.cell(0).load(Ordering::Acquire) == 1);
        assert!((0..SIZE).all(|at| end.byte(SIZE + at) == value(0, at, 0)));
    }
    end.close()
}

#[test]
fn who_sees_a_change_sees_the_bytes() {
    run("network_announced", 2);
    run("network_announced", 3);
}

#[test]
fn changes_wait_for_what_was_sent_to_others() {
    run("network_held", 3);
}

#[test]
fn no_change_is_lost() {
    run("network_counts", 4);
}

#[test]
fn ranks_that_compute_are_reached() {
    run("network_computing", 2);
}
