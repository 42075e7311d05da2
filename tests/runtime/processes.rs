//! Worlds whose ranks are processes.

use std::time::Duration;

use pld::error::{ErrorKind, Result};
use pld::ir::parse::parse;
use pld::runtime::{Arg, CompileOptions, Executable, WorldOptions};

use crate::programs::*;
use crate::ranks::{Job, Join, Outcome, Rank, Scenario};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("launch", launch_rank),
    ("rotate", rotate_rank),
    ("reset", reset_rank),
    ("disagree", disagree_rank),
    ("worlds", worlds_rank),
    ("barriers", barriers_rank),
    ("interrupted", interrupted_rank),
    ("abort", abort_rank),
    ("fork", fork_rank),
];

fn all_fine(scenario: &str, nranks: u32) {
    assert_eq!(Job::start(scenario, nranks).outcomes(), vec![Outcome::Done("fine".into()); nranks as usize]);
}

fn fine() -> Result<String> {
    Ok("fine".into())
}

#[test]
fn thousands_of_launches() {
    for nranks in [1, 2, 4] {
        all_fine("launch", nranks);
    }
}

fn launch_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    assert_eq!((world.nranks(), world.rank()), (me.nranks(), Some(me.rank())));
    let exe = compile(ALLREDUCE, &world, false)?;
    for round in 0..2000 {
        allreduce_as(&exe, me.rank(), me.nranks(), round)?;
    }
    // Submitted launches run on a thread of their own, between the same ranks.
    let mut tensors: Vec<_> = (0..20).map(|round| (input(me.rank(), round), vec![-1.0; 256])).collect();
    let runs: Result<Vec<_>> =
        tensors.iter_mut().map(|(x, y)| exe.submit(&[tensor(x, &[1, 256]), tensor(y, &[1, 256])])).collect();
    runs?.iter().try_for_each(|run| run.wait(None))?;
    for (round, (_, y)) in tensors.iter().enumerate() {
        assert_eq!(*y, reduced(me.nranks(), round as u32));
    }
    fine()
}

/// Fresh windows hold nothing of another launch, however far ranks are apart: three sets, and one set with barriers.
#[test]
fn fresh_windows_under_random_delays() {
    all_fine("rotate", 3);
}

fn rotate_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    for (cells, launches) in [(16, 400), (200_000, 60)] {
        let exe = compile(&ROTATE.replace("{N}", &cells.to_string()), &world, false)?;
        let mut seed = 77 + u64::from(me.rank());
        for launch in 1..=launches {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if seed >> 62 == 0 {
                std::thread::sleep(Duration::from_micros((seed >> 32) % 2000));
            }
            let mut found = [-1; 3];
            exe.launch(&[tensor(&mut found, &[3]), Arg::Int(launch)])?;
            for (src, &value) in found.iter().enumerate() {
                let right = value == 0 || i64::from(value) == launch;
                assert!(right, "launch {launch} finds {value} from rank {src} in a window of {cells} cells");
            }
        }
    }
    fine()
}

#[test]
fn persistent_windows_are_reset_together() {
    all_fine("reset", 3);
}

fn reset_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(COUNT, &world, true)?;
    for round in 0..30 {
        for launch in 0..round % 4 {
            let mut found = [-1];
            exe.launch(&[tensor(&mut found, &[1])])?;
            assert_eq!(found, [launch], "round {round}");
        }
        if round % 3 == me.rank() as i32 {
            std::thread::sleep(Duration::from_millis(2));
        }
        exe.reset()?;
    }
    fine()
}

/// Ranks that compile different things are told, all of them, and can go on.
#[test]
fn ranks_that_disagree_are_told() {
    let outcomes = Job::start("disagree", 3).outcomes();
    assert!(outcomes.iter().all(|o| o == &outcomes[0]), "{outcomes:?}");
    let told: Vec<&str> = outcomes[0].done().split('\n').collect();
    let hash = |text: &str| text.split("hash ").nth(1).unwrap()[..16].to_owned();
    let (a, b) = told[0].split_once(", rank 2 ").unwrap();
    let head = "Mismatch: ranks compile different programs: rank 0 ";
    assert!(a.starts_with(&format!("{head}'allreduce' (")), "{a}");
    assert!(a.ends_with(&format!("hash {}, 1088 bytes of fresh windows, checked)", hash(a))), "{a}");
    assert!(b.starts_with("'count' (") && hash(a) != hash(b), "{b}");
    assert!(told[1].contains("of persistent windows, checked), rank 1 "), "{}", told[1]);
    let refused = "Mismatch: rank 1 did not compile 'count': ";
    assert!(told[2].starts_with(refused), "{}", told[2]);
}

fn disagree_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let mut told = Vec::new();
    let text = if me.rank() == 2 { COUNT } else { ALLREDUCE };
    told.push(compile(text, &world, false).err().unwrap());
    told.push(compile(COUNT, &world, me.rank() == 0).err().unwrap());
    // A view that is larger than its buffer: the verifier refuses it on rank 1.
    let wrong =
        COUNT.replace("w = window buf [1] i32", "w = window buf [2] i32").replace("w: window[1]", "w: window[2]");
    let program = parse(if me.rank() == 1 { &wrong } else { COUNT }, "count.pld").unwrap();
    let error = Executable::compile(&program, &world, &CompileOptions::default()).err().unwrap();
    if me.rank() == 1 {
        assert_eq!(error.kind, ErrorKind::Verify);
        told.push(pld::error::Error::new(
            ErrorKind::Mismatch,
            format!("rank 1 did not compile 'count': {}", error.message.lines().next().unwrap()),
        ));
    } else {
        told.push(error);
    }
    let exe = compile(COUNT, &world, false)?;
    exe.launch(&[tensor(&mut [-1i32], &[1])])?;
    Ok(told.iter().map(|e| format!("{:?}: {}", e.kind, e.message)).collect::<Vec<_>>().join("\n"))
}

/// C74, C76: worlds of other sizes and ranks, one after another and two at once, in the same processes.
#[test]
fn worlds_of_all_kinds() {
    all_fine("worlds", 3);
}

fn worlds_rank(me: &Rank) -> Result<String> {
    let options = WorldOptions::default();
    for (i, nranks) in [2, 3, 1].into_iter().enumerate() {
        // The other way round each time.
        let rank = if i == 1 { me.nranks() - 1 - me.rank() } else { me.rank() };
        if rank < nranks {
            let name = format!("world-{i}-{}", if nranks == 1 { me.rank() } else { 0 });
            let world = me.join_as(&name, rank, nranks, &options)?;
            assert_eq!((world.nranks(), world.rank()), (nranks, Some(rank)));
            let exe = compile(ALLREDUCE, &world, false)?;
            (0..50).try_for_each(|round| allreduce_as(&exe, rank, nranks, round))?;
        }
    }
    let (a, b) = (me.join_as("a", me.rank(), 3, &options)?, me.join_as("b", 2 - me.rank(), 3, &options)?);
    std::thread::scope(|s| {
        let first = s.spawn(|| {
            let exe = compile(ALLREDUCE, &a, false)?;
            (0..300).try_for_each(|round| allreduce_as(&exe, me.rank(), 3, round))
        });
        let exe = compile(ALLREDUCE, &b, true)?;
        drop(exe);
        let exe = compile(ALLREDUCE, &b, false)?;
        (0..300).try_for_each(|round| allreduce_as(&exe, 2 - me.rank(), 3, round))?;
        first.join().unwrap()
    })?;
    fine()
}

/// C68: more processes than cores.
#[test]
fn a_thousand_barriers_of_eight_processes() {
    all_fine("barriers", 8);
}

fn barriers_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(BARRIERS, &world, false)?;
    for count in [1000, 3, 3, 3, 3, 3, 3, 3] {
        let mut bad = [-1];
        exe.launch(&[tensor(&mut bad, &[1]), Arg::Int(count)])?;
        assert_eq!(bad, [0], "{count} barriers");
    }
    fine()
}

/// C64: a signal every millisecond disturbs neither meeting, nor launches, nor a wait and its deadline.
#[test]
fn a_storm_of_signals() {
    let outcomes = Job::start("interrupted", 2).outcomes();
    assert_eq!(outcomes[0], outcomes[1]);
    let message = outcomes[0].failed("Timeout");
    assert!(message.contains(" s for arrived[0, 0] >= 1 (is 0)"), "{message}");
}

fn interrupted_rank(me: &Rank) -> Result<String> {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let every = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the handler does nothing, and system calls are not restarted after it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        for signal in [libc::SIGALRM, libc::SIGPROF] {
            assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        }
        assert_eq!(libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()), 0);
    }
    let world = me.join(&WorldOptions { timeout: Duration::from_secs(2), ..WorldOptions::default() })?;
    let exe = compile(ALLREDUCE, &world, false)?;
    for round in 0..1000 {
        allreduce_as(&exe, me.rank(), me.nranks(), round)?;
    }
    let exe = compile(MOE, &world, false)?;
    exe.launch(&[tensor(&mut [0i64], &[1]), Arg::Int(0), Arg::Int(0), Arg::Int(1), Arg::Bool(true)])?;
    Ok("no error".into())
}

#[test]
fn an_abort_reaches_every_rank() {
    for (rank, outcome) in Job::start("abort", 3).outcomes().iter().enumerate() {
        assert_eq!(outcome.failed("Aborted"), "the world was aborted by rank 1 with code 42", "rank {rank}");
    }
}

fn abort_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(MOE, &world, false)?;
    std::thread::scope(|s| {
        if me.rank() == 1 {
            s.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                world.abort(42).unwrap();
            });
        }
        exe.launch(&[tensor(&mut [0i64], &[1]), Arg::Int(0), Arg::Int(0), Arg::Int(1), Arg::Bool(true)])
    })?;
    Ok("no error".into())
}

/// C79: the end of a forked child is no loss to anybody.
#[test]
fn a_forked_child_is_no_rank() {
    all_fine("fork", 2);
}

fn fork_rank(me: &Rank) -> Result<String> {
    let world = me.join(&WorldOptions::default())?;
    let exe = compile(ALLREDUCE, &world, false)?;
    allreduce_as(&exe, me.rank(), me.nranks(), 0)?;
    // SAFETY: the child ends with _exit, and uses no lock that another thread may have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let told = allreduce_as(&exe, me.rank(), me.nranks(), 1).is_err_and(|e| e.kind == ErrorKind::Forked);
        world.close().unwrap();
        drop((exe, world));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(!told as i32) }
    }
    let mut status = 0;
    // SAFETY: `child` is this process's child and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child was told");
    for round in 1..100 {
        allreduce_as(&exe, me.rank(), me.nranks(), round)?;
    }
    fine()
}
