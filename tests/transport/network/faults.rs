//! Ranks that die, frames that do not fit, memory that goes.

use std::sync::atomic::Ordering;

use pld::error::Result;
use pld::transport::far::Change;

use super::*;

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("network_killed", killed),
    ("network_given_up", given_up),
    ("network_outside", outside),
    ("network_forgotten", forgotten),
];

const SIZE: usize = 8 << 20;

/// Rank 1 is killed while it is written, read and waited for; the others go on.
fn killed(process: &Rank) -> Result<String> {
    let end = End::connect(process)?;
    process.say("connected");
    if end.rank == 1 {
        process.hear("never");
    }
    let mut bytes = vec![1u8; SIZE];
    process.hear("write");
    if end.rank == 0 {
        let row = rows(SIZE, 1, SIZE, SIZE);
        end.network.attend();
        while end.broken.lock().unwrap().is_empty() {
            // SAFETY: the row lies in both memories; the vector lives until it is not needed any more.
            unsafe {
                end.memory().put(1, 0, bytes.as_ptr(), row, &end.pending);
                end.memory().get(1, SIZE as u64, bytes.as_mut_ptr(), row, &end.pending);
            }
            end.memory().change(2, cell(0), Change::Add(1));
            process.say("writing");
            for _ in 0..100 {
                end.network.progress();
            }
        }
        end.network.unattend();
        assert_eq!(end.broken.lock().unwrap()[0].0, 1);
        // Nothing waits for it any more.
        end.progress_until(|| end.pending.idle());
        end.reach();
        end.memory().change(2, cell(1), Change::Set(5));
        end.reach();
    } else {
        end.until(|| end.cell(1).load(Ordering::Acquire) == 5);
        assert!(end.cell(0).load(Ordering::Acquire) > 0);
    }
    end.meet_ranks(&[0, 2]);
    end.network.close(soon());
    Ok(String::new())
}

/// The others say that rank 1 is lost before the network sees it: it is stopped.
fn given_up(process: &Rank) -> Result<String> {
    let end = End::connect(process)?;
    process.say("connected");
    if end.rank == 1 {
        process.hear("never");
    }
    process.hear("write");
    let bytes = vec![1u8; SIZE];
    // SAFETY: the row lies in both memories; the vector lives until it is not needed any more.
    unsafe { end.memory().put(1, 0, bytes.as_ptr(), rows(SIZE, 1, SIZE, SIZE), &end.pending) };
    end.memory().change(0, cell(0), Change::Set(1));
    assert!(!end.network.reached() && !end.pending.none());
    end.network.lose(1);
    assert!(end.network.reached() && end.pending.none());
    end.network.close(soon());
    Ok(String::new())
}

/// Rank 1's memory is shorter than rank 0 believes.
fn outside(process: &Rank) -> Result<String> {
    const SHORT: usize = 1 << 20;
    let end = End::with(process, if process.rank() == 1 { SHORT } else { BYTES })?;
    let bytes = [1u8; 100];
    if end.rank == 0 {
        // SAFETY: the rows lie in both memories as this rank knows them; the bytes live on.
        unsafe {
            end.memory().put(1, SHORT as u64 - 100, bytes.as_ptr(), rows(100, 1, 100, 100), &end.pending);
            end.memory().put(1, SHORT as u64 - 90, bytes.as_ptr(), rows(10, 10, 20, 10), &end.pending);
        }
        end.network.ask();
    } else {
        end.progress_until(|| !end.broken.lock().unwrap().is_empty());
        let (rank, why) = end.broken.lock().unwrap()[0].clone();
        assert_eq!(rank, 0);
        let expected = "rank 0 sent what cannot be executed here: kind 1, 10 rows of 10 bytes, 20 apart, from 1048486 on, \
                        in memory 7 of 1048576 bytes";
        assert_eq!(why, expected);
        assert!((SHORT - 100..SHORT).all(|at| end.byte(at) == 1));
        assert!((SHORT..SHORT + 200).all(|at| end.byte(at) == 0));
    }
    end.meet();
    end.network.close(soon());
    Ok(String::new())
}

/// Rank 1 drops memory which others still read and write. It goes when they have dropped it too.
fn forgotten(process: &Rank) -> Result<String> {
    let end = End::connect(process)?;
    let own = memory_of(SIZE);
    // SAFETY: nobody else uses it yet.
    (0..SIZE).for_each(|at| unsafe { own.rank(0).add(at).write(value(end.rank, at, 1)) });
    let mapping = Arc::downgrade(&own.mapping());
    // SAFETY: the part lies in the mapping.
    let memory = unsafe { end.network.memory(8, own.rank(0), SIZE, own.mapping()) };
    drop(own);
    end.meet();
    if end.rank == 1 {
        drop(memory);
        end.meet();
        assert!(mapping.upgrade().is_some());
    } else {
        end.meet();
        let mut seen = vec![3u8; SIZE];
        let row = rows(SIZE, 1, SIZE, SIZE);
        // SAFETY: the rows lie in both memories; the vector lives until it is not needed any more.
        unsafe { memory.get(1, 0, seen.as_mut_ptr(), row, &end.pending) };
        end.progress_until(|| end.pending.none());
        assert!((0..SIZE).all(|at| seen[at] == value(1, at, 1)));
        let bytes = [7u8; 16];
        // SAFETY: as above.
        unsafe { memory.put(1, 0, bytes.as_ptr(), rows(16, 1, 16, 16), &end.pending) };
        drop(memory);
    }
    end.meet();
    end.progress_until(|| mapping.upgrade().is_none());
    end.meet();
    end.close()
}

#[test]
fn a_rank_that_is_killed_is_told_of_and_not_waited_for() {
    for network in NETWORKS {
        let mut job = start("network_killed", 3, network);
        job.hear_all("connected");
        job.say("write");
        job.hear(0, "writing");
        job.kill(1);
        for seat in [0, 2] {
            assert_eq!(job.outcome(seat).done(), "", "{network}");
        }
    }
}

#[test]
fn a_rank_that_is_given_up_is_not_waited_for() {
    for network in NETWORKS {
        let mut job = start("network_given_up", 2, network);
        job.hear_all("connected");
        let stopped = rustix::process::Pid::from_raw(job.process(1) as i32).unwrap();
        rustix::process::kill_process(stopped, rustix::process::Signal::STOP).unwrap();
        job.say("write");
        assert_eq!(job.outcome(0).done(), "", "{network}");
    }
}

#[test]
fn what_lies_outside_is_not_written_and_told_of() {
    run("network_outside", 2);
}

#[test]
fn memory_that_is_dropped_stays_until_nobody_needs_it() {
    run("network_forgotten", 2);
}
