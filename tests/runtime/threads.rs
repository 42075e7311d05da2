//! Worlds whose ranks are threads of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pld::error::ErrorKind;
use pld::runtime::{Arg, World, WorldOptions};

use crate::programs::*;

fn world(nranks: u32) -> Arc<World> {
    World::create(nranks, &WorldOptions::default()).unwrap()
}

/// Arguments of [`MOE`] that make nobody wait for more than rank 0's notifies.
fn moe(sums: &mut [i64], count: i64, work: i64, expected: i64) -> [Arg<'static>; 5] {
    const SHAPES: [[i64; 2]; 9] = [[0, 1], [1, 1], [2, 1], [3, 1], [4, 1], [5, 1], [6, 1], [7, 1], [8, 1]];
    let sums = tensor(sums, &SHAPES[sums.len()]);
    [sums, Arg::Int(count), Arg::Int(work), Arg::Int(expected), Arg::Bool(false)]
}

#[test]
fn thousands_of_launches() {
    for nranks in [1, 2, 3, 4, 8] {
        let world = world(nranks);
        let exe = compile(ALLREDUCE, &world, false).unwrap();
        for round in 0..if nranks <= 2 { 3000 } else { 500 } {
            allreduce_all(&exe, nranks, round).unwrap();
        }
    }
}

#[test]
fn windows_are_fresh_or_persistent() {
    let world = world(3);
    let (fresh, kept) = (compile(COUNT, &world, false).unwrap(), compile(COUNT, &world, true).unwrap());
    let mut found = [-1; 3];
    for launch in 0..20 {
        fresh.launch(&[tensor(&mut found, &[3, 1])]).unwrap();
        assert_eq!(found, [0; 3], "launch {launch} sees a used window");
        kept.launch(&[tensor(&mut found, &[3, 1])]).unwrap();
        assert_eq!(found, [launch % 7; 3]);
        if launch % 7 == 6 {
            kept.reset().unwrap();
        }
    }
    let error = fresh.reset().unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidState);
    assert_eq!(error.message, "'count' is not persistent: every launch sees zeroed windows");
}

/// C01, C36, C68: many barriers on the same cells, many ranks on few cores.
#[test]
fn a_thousand_barriers_of_eight_ranks() {
    let world = world(8);
    let exe = compile(BARRIERS, &world, false).unwrap();
    for count in [1000, 3, 3, 3, 3, 3, 3, 3] {
        let mut bad = [-1; 8];
        exe.launch(&[tensor(&mut bad, &[8, 1]), Arg::Int(count)]).unwrap();
        assert_eq!(bad, [0; 8], "{count} barriers");
    }
}

/// C74, and a world after a failed one.
#[test]
fn worlds_follow_one_another() {
    for nranks in [2, 4, 1, 8] {
        let world = world(nranks);
        assert_eq!((world.nranks(), world.rank()), (nranks, None));
        let exe = compile(ALLREDUCE, &world, false).unwrap();
        allreduce_all(&exe, nranks, nranks).unwrap();
        world.abort(7).unwrap();
        let error = allreduce_all(&exe, nranks, 0).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Aborted, "the world was aborted with code 7"));
        assert_eq!(world.failure(), Some(error), "the failure stays");
        assert_eq!(exe.reset().unwrap_err().kind, ErrorKind::Aborted);
        assert_eq!(compile(COUNT, &world, false).err().unwrap().kind, ErrorKind::Aborted);
        // In any order: the executable keeps what it needs.
        drop(world);
        drop(exe);
    }
}

#[test]
fn sizes_of_worlds() {
    for nranks in [0, 257, u32::MAX] {
        let error = World::create(nranks, &WorldOptions::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArgument);
        assert_eq!(error.message, format!("a world of {nranks} ranks; 1 to 256 are possible"));
    }
}

/// C76: one world a thread, at the same time.
#[test]
fn two_worlds_side_by_side() {
    std::thread::scope(|s| {
        for nranks in [2, 3] {
            s.spawn(move || {
                let world = world(nranks);
                let exe = compile(ALLREDUCE, &world, false).unwrap();
                for round in 0..1000 {
                    allreduce_all(&exe, nranks, round).unwrap();
                }
            });
        }
    });
}

/// C76: two threads in one world; and an abort ends a wait.
#[test]
fn busy_until_aborted() {
    let world = world(2);
    let (moe_exe, count) = (compile(MOE, &world, false).unwrap(), compile(COUNT, &world, false).unwrap());
    std::thread::scope(|s| {
        // Either thread may find the other one there.
        let waiting = s.spawn(|| {
            loop {
                match moe_exe.launch(&moe(&mut [0; 2], 1, 0, 5)) {
                    Err(error) if error.kind == ErrorKind::Busy => std::thread::yield_now(),
                    other => break other,
                }
            }
        });
        let mut found = [-1; 2];
        let error = loop {
            match count.launch(&[tensor(&mut found, &[2, 1])]) {
                Ok(()) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Busy, "another thread uses this world"));
        assert_eq!(compile(COUNT, &world, false).err().unwrap().kind, ErrorKind::Busy);
        world.abort(-3).unwrap();
        let error = waiting.join().unwrap().unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Aborted, "the world was aborted with code -3"));
    });
}

#[test]
fn runs_come_in_order() {
    let world = world(2);
    let exe = compile(COUNT, &world, true).unwrap();
    let mut found = vec![[-1; 2]; 50];
    let mut runs: Vec<_> = found.iter_mut().map(|f| exe.submit(&[tensor(f, &[2, 1])]).unwrap()).collect();
    let mut last = [-1; 2];
    exe.launch(&[tensor(&mut last, &[2, 1])]).unwrap();
    assert_eq!(last, [50; 2], "a launch comes after what was submitted before");
    for run in &runs {
        run.wait(None).unwrap();
        assert!(run.done());
    }
    runs.clear();
    for (i, f) in found.iter().enumerate() {
        assert_eq!(*f, [i as i32; 2]);
    }
}

/// With two runs in flight a third is not submitted until one has ended.
#[test]
fn runs_in_flight_are_limited() {
    let world = World::create(2, &WorldOptions { runs: 2, ..WorldOptions::default() }).unwrap();
    let exe = compile(MOE, &world, false).unwrap();
    let submitted = AtomicBool::new(false);
    let mut sums = [[0; 2]; 3];
    let [first, second, third] = &mut sums;
    let endless = [exe.submit(&moe(first, 1, 0, 5)).unwrap(), exe.submit(&moe(second, 1, 0, 5)).unwrap()];
    std::thread::scope(|s| {
        let other = s.spawn(|| {
            let run = exe.submit(&moe(third, 1, 0, 1));
            submitted.store(true, Ordering::Relaxed);
            run
        });
        std::thread::sleep(Duration::from_millis(100));
        assert!(!submitted.load(Ordering::Relaxed) && !endless[0].done());
        world.abort(6).unwrap();
        // It comes in time to be a run that ends, or is told at once.
        let ended = other.join().unwrap().and_then(|run| run.wait(None));
        assert_eq!(ended.unwrap_err().kind, ErrorKind::Aborted);
    });
    endless.iter().for_each(|run| assert_eq!(run.wait(None).unwrap_err().kind, ErrorKind::Aborted));
    let none = World::create(2, &WorldOptions { runs: 0, ..WorldOptions::default() }).unwrap_err();
    assert_eq!(none.message, "a world of 0 runs at a time; at least 1 is needed");
}

#[test]
fn a_run_that_waits_times_out_for_the_caller_and_ends_with_the_world() {
    let world = world(2);
    let exe = compile(MOE, &world, false).unwrap();
    let (mut first, mut second) = ([0; 2], [0; 2]);
    let run = exe.submit(&moe(&mut first, 1, 0, 5)).unwrap();
    let next = exe.submit(&moe(&mut second, 1, 0, 1)).unwrap();
    let error = run.wait(Some(Duration::from_millis(30))).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Timeout, "the run has not ended after 0.030 s"));
    assert!(!run.done() && !next.done());
    world.close().unwrap();
    let error = run.wait(None).unwrap_err();
    let closed = "the engine closed the world during a launch";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Aborted, closed));
    assert!(next.wait(None).is_err());
    assert_eq!(exe.launch(&moe(&mut first, 1, 0, 1)).unwrap_err().kind, ErrorKind::InvalidState);
    assert_eq!(exe.submit(&moe(&mut first, 1, 0, 1)).err().unwrap().kind, ErrorKind::InvalidState);
    world.close().unwrap();
}

/// The last handle of the world is dropped by its own thread.
#[test]
fn handles_may_go_before_their_runs() {
    let mut found = Box::new([-1; 2]);
    let run = {
        let world = world(2);
        let exe = compile(COUNT, &world, true).unwrap();
        exe.submit(&[tensor(&mut *found, &[2, 1])]).unwrap()
    };
    run.wait(None).unwrap();
    assert_eq!(*found, [0; 2]);
}

#[test]
fn faults_are_explained() {
    let cases = [
        (
            4,
            1,
            ErrorKind::OutOfBounds,
            "a region of [1] at [4] reaches outside x (tensor[4] i32) in dimension 0\n    v = x[i]",
        ),
        (
            -1,
            1,
            ErrorKind::OutOfBounds,
            "a region of [1] at [-1] reaches outside x (tensor[4] i32) in dimension 0\n    v = x[i]",
        ),
        (0, 0, ErrorKind::Arithmetic, "division by zero\n    v / by"),
    ];
    for (at, by, kind, what) in cases {
        let world = world(1);
        let exe = compile(FAULTS, &world, false).unwrap();
        let (mut x, mut out) = ([5, 6, 7, 8], [-1]);
        exe.launch(&[tensor(&mut x, &[1, 4]), tensor(&mut out, &[1, 1]), Arg::Int(3), Arg::Int(2)]).unwrap();
        assert_eq!(out, [4]);
        let error =
            exe.launch(&[tensor(&mut x, &[1, 4]), tensor(&mut out, &[1, 1]), Arg::Int(at), Arg::Int(by)]).unwrap_err();
        let line = if kind == ErrorKind::Arithmetic { 5 } else { 4 };
        let right = format!("rank 0: {what}\n    at pick_step (faults.pld:{line}), launch 2 of 'faults'");
        assert_eq!((error.kind, error.message), (kind, right));
        assert_eq!(out, [4], "nothing is written");
        assert_eq!(world.failure(), None);
        exe.launch(&[tensor(&mut x, &[1, 4]), tensor(&mut out, &[1, 1]), Arg::Int(1), Arg::Int(3)]).unwrap();
        assert_eq!(out, [2]);
    }
}

/// C79: a forked child can do nothing with its parent's world, and nothing to it.
#[test]
fn a_forked_child_is_told_and_harms_nobody() {
    let world = world(2);
    let exe = compile(ALLREDUCE, &world, false).unwrap();
    let counter = compile(COUNT, &world, true).unwrap();
    let mut found = [-1; 2];
    let run = counter.submit(&[tensor(&mut found, &[2, 1])]).unwrap();
    run.wait(None).unwrap();
    // SAFETY: the child ends with _exit, and uses no lock that another thread may have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let forked = |kind: Option<ErrorKind>| kind == Some(ErrorKind::Forked);
        let told = [
            forked(allreduce_all(&exe, 2, 0).err().map(|e| e.kind)),
            forked(exe.reset().err().map(|e| e.kind)),
            forked(counter.submit(&[tensor(&mut found, &[2, 1])]).err().map(|e| e.kind)),
            forked(run.wait(None).err().map(|e| e.kind)),
            forked(world.abort(1).err().map(|e| e.kind)),
            !run.done(),
        ];
        world.close().unwrap();
        drop((run, exe, counter, world));
        let code = told.iter().position(|told| !told).map_or(0, |which| which as i32 + 1);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    // SAFETY: `child` is this process's child and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child was told by every call");
    for round in 0..100 {
        allreduce_all(&exe, 2, round).unwrap();
    }
}

/// C86: a thread that cannot be started is an error.
#[test]
fn no_memory_for_threads_is_an_error() {
    // SAFETY: the child ends with _exit, and takes no lock that another thread may have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // Room for the world and some of its threads, but not for all.
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
        let limit = pages * 4096 + (40 << 20);
        let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
        // SAFETY: `limit` is readable; the limit holds for the child only.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
        let kind = World::create(64, &WorldOptions::default()).err().map(|e| e.kind);
        let right = kind == Some(ErrorKind::Io) && World::create(2, &WorldOptions::default()).is_ok();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(!right as i32) }
    }
    let mut status = 0;
    // SAFETY: `child` is this process's child and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}
