//! How ranks find each other, and what they are told if they do not.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, SystemTime};

use pld::error::{Error, ErrorKind, Result};
use pld::transport::Transport;
use pld::transport::join::{Bootstrap, JoinOptions};
use pld::transport::shm::ShmTransport;

use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketType};

use crate::ranks::{DEADLINE, Job, Join, Rank, Scenario, options, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("roll_call", |rank| roll_call(&rank.join()?)),
    ("join_briefly", |_| roll_call(&ShmTransport::join(&options(Bootstrap::Env, None, Duration::from_secs(2)))?)),
    ("sequence_of_worlds", sequence_of_worlds),
    ("launcher", launcher),
    ("launcher_of_wrapped_ranks", launcher),
];

/// Who is there, with a word that depends on the rank: all ranks return the same text.
fn roll_call(transport: &ShmTransport) -> Result<String> {
    let word = format!("{}:{}", transport.local().start, std::env::var("WORD").unwrap_or_default());
    let words = transport.exchange(word.as_bytes(), soon())?;
    Ok(words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" "))
}

/// Ranks as threads, each with its own options.
fn join_all(options: Vec<JoinOptions>) -> Vec<Result<ShmTransport>> {
    std::thread::scope(|scope| {
        let ranks: Vec<_> = options.iter().map(|options| scope.spawn(move || ShmTransport::join(options))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn file(path: &Path, rank: u32, nranks: u32) -> JoinOptions {
    options(Bootstrap::File(path.into()), Some((rank, nranks)), DEADLINE / 2)
}

/// All ranks have this error.
fn all_fail(results: Vec<Result<ShmTransport>>, kind: ErrorKind, message: &str) {
    for result in results {
        assert_eq!(result.map(|_| ()).unwrap_err(), Error::new(kind, message));
    }
}

fn own_pid() -> u32 {
    std::process::id()
}

#[test]
fn ranks_that_disagree_about_the_size() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    let results = join_all(vec![file(&path, 0, 2), file(&path, 1, 3)]);
    all_fail(results, ErrorKind::Mismatch, "rank 1 says that the world has 3 ranks, rank 0 says 2");
    assert_eq!(job.leftovers(), [""; 0]);
}

#[test]
fn environments_that_disagree_about_the_size() {
    let mut job = Job::new();
    job.spawn_rank("join_briefly", 0, 2);
    job.spawn_rank("join_briefly", 1, 3);
    for outcome in job.outcomes() {
        assert_eq!(outcome.failed("Mismatch"), "rank 1 says that the world has 3 ranks, rank 0 says 2");
    }
    assert_eq!(job.leftovers(), [""; 0]);
}

#[test]
fn a_rank_that_is_there_twice() {
    for twice in [0, 1] {
        let job = Job::new();
        let path = job.meeting_place().join("socket");
        let results = join_all(vec![file(&path, 0, 3), file(&path, 1, 3), file(&path, twice, 3)]);
        let message = format!("rank {twice} is there twice: processes {0} and {0}", own_pid());
        all_fail(results, ErrorKind::Mismatch, &message);
        assert_eq!(job.leftovers(), [""; 0]);
    }
}

#[test]
fn a_rank_outside_the_world() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    let results = join_all(vec![file(&path, 0, 2), file(&path, 7, 2)]);
    let message = format!("process {} says that it is rank 7, but the world has 2 ranks", own_pid());
    all_fail(results, ErrorKind::Mismatch, &message);
    all_fail(join_all(vec![file(&path, 1, 1)]), ErrorKind::Mismatch, "rank 1 is outside a world of 1 rank");
}

#[test]
fn ranks_that_bring_different_agreements() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    let mut ranks = vec![file(&path, 0, 3), file(&path, 1, 3), file(&path, 2, 3)];
    ranks[2].agreement = b"libpld 9.9".to_vec();
    all_fail(join_all(ranks), ErrorKind::Mismatch, "rank 2 comes with libpld 9.9, rank 0 with test");
}

#[test]
fn sizes_of_no_world() {
    let path = Path::new("unused");
    all_fail(join_all(vec![file(path, 0, 0)]), ErrorKind::InvalidArgument, "a world of 0 ranks");
    let message = "a world of 4294967295 ranks; the most is 4096";
    all_fail(join_all(vec![file(path, 0, u32::MAX)]), ErrorKind::Unsupported, message);
}

#[test]
fn ranks_that_do_not_come_are_named() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    let briefly = |rank| options(Bootstrap::File(path.clone()), Some((rank, 4)), Duration::from_millis(300));
    let results = join_all(vec![briefly(0), briefly(2)]);
    for error in results.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(error.message.starts_with("ranks 1, 3 have not called join within "), "{error}");
        assert!(error.message.ends_with(&format!(" s, at {}", path.display())), "{error}");
    }
    for error in join_all(vec![briefly(1), briefly(2)]).into_iter().map(Result::unwrap_err) {
        assert_eq!(error.kind, ErrorKind::Timeout);
        assert!(error.message.starts_with("rank 0 has not called join within "), "{error}");
    }
    assert_eq!(job.leftovers(), [""; 0]);
}

/// A run that was killed has left its socket.
#[test]
fn a_stale_socket_is_replaced() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    for first in [0, 1] {
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        std::thread::scope(|scope| {
            let start = |rank| {
                scope.spawn({
                    let options = file(&path, rank, 2);
                    move || roll_call(&ShmTransport::join(&options)?)
                })
            };
            let early = start(first);
            std::thread::sleep(Duration::from_millis(20));
            let late = start(1 - first);
            assert_eq!(early.join().unwrap().unwrap(), "0: 1:");
            assert_eq!(late.join().unwrap().unwrap(), "0: 1:");
        });
        assert!(!path.exists());
    }
}

#[test]
fn a_file_that_is_no_socket_stays() {
    let job = Job::new();
    let path = job.meeting_place().join("precious");
    fs::write(&path, "data").unwrap();
    let message = format!("{} exists and is not a socket", path.display());
    all_fail(join_all(vec![file(&path, 0, 2), file(&path, 1, 2)]), ErrorKind::InvalidArgument, &message);
    assert_eq!(fs::read(&path).unwrap(), b"data");
}

#[test]
fn paths_longer_than_an_address() {
    let job = Job::new();
    let dir = job.meeting_place().join("d".repeat(120));
    fs::create_dir(&dir).unwrap();
    let path = dir.join("socket");
    let results = join_all(vec![file(&path, 0, 2), file(&path, 1, 2)]);
    results.into_iter().for_each(|result| _ = result.unwrap());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

/// Case C60: jobs of one user with one directory.
#[test]
fn jobs_side_by_side() {
    let mut job = Job::new();
    for number in 0..4 {
        for rank in 0..3 {
            let variables = [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", "3".into())];
            let identity = [("PLD_JOB", format!("job {number}")), ("WORD", format!("job{number}"))];
            job.spawn("roll_call", variables.into_iter().chain(identity));
        }
    }
    for (seat, outcome) in job.outcomes().iter().enumerate() {
        let word = format!("job{}", seat / 3);
        assert_eq!(outcome.done(), format!("0:{word} 1:{word} 2:{word}"));
    }
    assert_eq!(job.leftovers(), [""; 0]);
}

/// Case C74: the process at seat 1 is rank 1 of 2, then rank 3 of 4, then alone. Others come to the second world early.
#[test]
fn worlds_of_other_sizes_follow() {
    let mut job = Job::new();
    for seats in [["0 2", "0 4", "0 1"], ["1 2", "3 4", "0 1"], ["", "1 4", ""], ["", "2 4", "0 1"]] {
        job.spawn("sequence_of_worlds", [("WORLDS", seats.join(","))]);
    }
    let [pair, four, one] = ["0: 1:", "0: 1: 2: 3:", "0:"];
    let expected = [vec![pair, four, one], vec![pair, four, one], vec![four], vec![four, one]];
    for (outcome, expected) in job.outcomes().iter().zip(expected) {
        assert_eq!(outcome.done(), expected.join(", "));
    }
}

fn sequence_of_worlds(_: &Rank) -> Result<String> {
    let seats = std::env::var("WORLDS").unwrap();
    let seats = seats.split(',').filter_map(|seat| seat.split_once(' '));
    let worlds = seats.map(|(rank, nranks)| {
        let seat = (rank.parse().unwrap(), nranks.parse().unwrap());
        roll_call(&ShmTransport::join(&options(Bootstrap::Env, Some(seat), DEADLINE / 2))?)
    });
    Ok(worlds.collect::<Result<Vec<_>>>()?.join(", "))
}

#[test]
fn the_same_world_again_and_again() {
    let mut job = Job::new();
    for rank in 0..3 {
        job.spawn("sequence_of_worlds", [("WORLDS", vec![format!("{rank} 3"); 30].join(","))]);
    }
    for outcome in job.outcomes() {
        assert_eq!(outcome.done(), vec!["0: 1: 2:"; 30].join(", "));
    }
}

/// Two worlds of one process do not disturb each other, whichever is dropped first.
#[test]
fn worlds_side_by_side() {
    let mut job = Job::new();
    job.spawn_world("roll_call", 2);
    let path = job.meeting_place().join("socket");
    let worlds = join_all(vec![file(&path, 0, 2), file(&path, 1, 2)]);
    let others = join_all(vec![file(&path, 0, 2), file(&path, 1, 2)]);
    drop(worlds);
    std::thread::scope(|scope| {
        for other in others {
            scope.spawn(move || assert_eq!(roll_call(&other.unwrap()).unwrap(), "0: 1:"));
        }
    });
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "0: 1:"));
}

#[test]
fn what_launchers_set() {
    let launchers: [&[(&str, &str)]; 4] = [
        &[("RANK", "%"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "29500")],
        &[("OMPI_COMM_WORLD_RANK", "%"), ("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_NAMESPACE", "prterun-1@1")],
        &[("PMI_RANK", "%"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")],
        &[("SLURM_PROCID", "%"), ("SLURM_NTASKS", "2"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0")],
    ];
    for variables in launchers {
        let mut job = Job::new();
        for rank in ["0", "1"] {
            let variables = variables.iter().map(|(name, value)| (*name, value.replace('%', rank)));
            job.spawn("roll_call", variables.chain([("PLD_JOB", String::new())]));
        }
        job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "0: 1:"));
    }
}

/// Without a name, a job is what one process has started; a wrapper around a rank does not count as that process.
#[test]
fn jobs_without_a_name() {
    let mut job = Job::new();
    for word in ["first", "second"] {
        job.spawn("launcher", [("WORD", word), ("PLD_JOB", "")]);
    }
    job.spawn("launcher_of_wrapped_ranks", [("WORD", "third"), ("PLD_JOB", "")]);
    for (outcome, word) in job.outcomes().iter().zip(["first", "second", "third"]) {
        let world = format!("0:{word} 1:{word}");
        assert_eq!(outcome.done(), format!("{world}, {world}"));
    }
}

/// Starts two ranks and returns what they say.
fn launcher(rank: &Rank) -> Result<String> {
    let wrapped = std::env::var("PLD_TEST_SCENARIO").unwrap().ends_with("wrapped_ranks");
    let exe = std::env::current_exe().unwrap();
    let seat = |index: u32| format!("{}{index}", rank.number("PLD_TEST_SEAT") + 10);
    let ranks: Vec<_> = (0..2)
        .map(|index| {
            let mut command = if wrapped && index == 1 {
                let mut shell = Command::new("sh");
                shell.args(["-c", "\"$@\"; exit $?", "sh"]).arg(&exe);
                shell
            } else {
                Command::new(&exe)
            };
            command.args(["--exact", "rank_process", "--nocapture"]).stdout(std::process::Stdio::null());
            command.env("PLD_TEST_SCENARIO", "roll_call").env("PLD_TEST_SEAT", seat(index));
            command.env("PLD_RANK", index.to_string()).env("PLD_WORLD_SIZE", "2").spawn().unwrap()
        })
        .collect();
    ranks.into_iter().for_each(|mut rank| assert!(rank.wait().unwrap().success()));
    let said = |index| fs::read_to_string(rank.home().join(format!("outcome.{}", seat(index)))).unwrap();
    Ok([0, 1].map(|index| said(index).trim_start_matches("Done\n").to_owned()).join(", "))
}

/// Case C59: what many killed runs have left delays nobody, and goes little by little.
#[test]
fn ten_thousand_dead_names() {
    let mut job = Job::new();
    let place = job.meeting_place();
    let hour = Duration::from_secs(3600);
    for number in 0..10_000 {
        let path = place.join(format!("pld-{number:016x}-2.sock"));
        drop(UnixListener::bind(&path).unwrap());
        if number < 100 {
            touch(&path, SystemTime::now() - hour);
        }
    }
    let alive = place.join("pld-ffffffffffffffff-2.sock");
    let listener = UnixListener::bind(&alive).unwrap();
    touch(&alive, SystemTime::now() - hour);
    let stranger = place.join("somebody's.sock");
    drop(UnixListener::bind(&stranger).unwrap());
    touch(&stranger, SystemTime::now() - hour);
    job.spawn_world("roll_call", 2);
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "0: 1:"));
    // 64 sockets are looked at; one of them may be the one that is alive.
    let gone = 10_002 - job.leftovers().len();
    assert!(gone == 63 || gone == 64, "{gone}");
    assert!(alive.exists() && stranger.exists());
    drop(listener);
}

fn touch(path: &Path, time: SystemTime) {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let time = rustix::fs::Timespec { tv_sec: since.as_secs() as i64, tv_nsec: 0 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::empty()).unwrap();
}

/// A directory for sockets that others could enter or have made is refused.
#[test]
fn directories_that_do_not_do() {
    let job = Job::new();
    let open = job.meeting_place().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    let link = job.meeting_place().join("link");
    symlink(job.meeting_place(), &link).unwrap();
    let mut cases = vec![
        (open.clone(), format!("directory {} is open to others (mode 0755); it must have 0700", open.display())),
        (link.clone(), format!("{} is not a directory, or a symbolic link to one", link.display())),
    ];
    if fs::metadata(&open).unwrap().uid() == 0 {
        let theirs = job.meeting_place().join("theirs");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
        cases.push((theirs.clone(), format!("directory {} belongs to user 65534, not to user 0", theirs.display())));
    }
    for (dir, message) in cases {
        let mut job = Job::new();
        let variables = [("PLD_RANK", "0".into()), ("PLD_WORLD_SIZE", "2".into()), ("PLD_DIR", dir.into_os_string())];
        job.spawn("roll_call", variables);
        assert_eq!(job.outcome(0).failed("InvalidArgument"), message);
    }
}

#[test]
fn a_directory_is_made_for_this_user_only() {
    let mut job = Job::new();
    let dir = job.meeting_place().join("new");
    for rank in ["0", "1"] {
        let variables = [("PLD_RANK", rank.into()), ("PLD_WORLD_SIZE", "2".into())];
        job.spawn("roll_call", variables.into_iter().chain([("PLD_DIR", dir.clone().into_os_string())]));
    }
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "0: 1:"));
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o700);
}

/// Needs root, which alone can be two users.
#[test]
fn ranks_of_different_users() {
    if rustix::process::geteuid().as_raw() != 0 {
        return;
    }
    let job = Job::new();
    fs::set_permissions(job.meeting_place(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(job.meeting_place().parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = job.meeting_place().join("socket");
    for nobody in [0, 1] {
        let messages = std::thread::scope(|scope| {
            let join = |rank: u32| {
                let options = options(Bootstrap::File(path.clone()), Some((rank, 2)), Duration::from_secs(2));
                move || {
                    if rank == nobody {
                        // SAFETY: the system call changes the user of this thread only.
                        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 65_534, -1) }, 0);
                    }
                    ShmTransport::join(&options).unwrap_err().message
                }
            };
            [0, 1].map(|rank| scope.spawn(join(rank))).map(|rank| rank.join().unwrap())
        });
        let (path, pid) = (path.display(), own_pid());
        let expected = match nobody {
            0 => {
                let rank_0 = format!("process {pid} of user 0 connects to {path}, but this process runs as user 65534");
                let rank_1 = format!("process {pid} of user 65534 listens at {path}, but this process runs as user 0");
                [rank_0, rank_1]
            }
            _ => {
                let rank_1 = format!("{path} belongs to user 0, but this process runs as user 65534");
                ["rank 1 has not called join within ".to_owned(), rank_1]
            }
        };
        for (message, expected) in messages.iter().zip(expected) {
            assert!(message.starts_with(&expected), "{message}");
        }
    }
}

/// The engine's all-gather, between threads.
struct Engine {
    nranks: u32,
    parts: Mutex<Vec<Vec<u8>>>,
    barrier: Barrier,
}

impl Engine {
    fn bootstrap(self: &Arc<Self>, rank: u32) -> Bootstrap {
        let engine = self.clone();
        Bootstrap::Exchange(Box::new(move |mine, all| {
            assert_eq!(all.len(), mine.len() * engine.nranks as usize);
            engine.parts.lock().unwrap()[rank as usize] = mine.to_vec();
            engine.barrier.wait();
            all.copy_from_slice(&engine.parts.lock().unwrap().concat());
            engine.barrier.wait();
            Ok(())
        }))
    }
}

fn through_engine(seats: &[(u32, u32)]) -> Vec<Result<ShmTransport>> {
    let nranks = seats.len() as u32;
    let parts = Mutex::new(vec![Vec::new(); seats.len()]);
    let engine = Arc::new(Engine { nranks, parts, barrier: Barrier::new(seats.len()) });
    let ranks = (0..).zip(seats).map(|(place, seat)| options(engine.bootstrap(place), Some(*seat), DEADLINE / 2));
    join_all(ranks.collect())
}

#[test]
fn through_the_engines_all_gather() {
    let worlds = through_engine(&[(0, 3), (1, 3), (2, 3)]);
    std::thread::scope(|scope| {
        for world in worlds {
            scope.spawn(move || assert_eq!(roll_call(&world.unwrap()).unwrap(), "0: 1: 2:"));
        }
    });
    let message = "the all-gather puts rank 2 in place 1";
    all_fail(through_engine(&[(0, 3), (2, 3), (1, 3)]), ErrorKind::Mismatch, message);
}

#[test]
fn an_all_gather_that_fails() {
    let failing = || Bootstrap::Exchange(Box::new(|_, _| Err(Error::new(ErrorKind::Aborted, "the store is down"))));
    let results =
        join_all(vec![options(failing(), Some((0, 2)), DEADLINE), options(failing(), Some((1, 2)), DEADLINE)]);
    all_fail(results, ErrorKind::Aborted, "the store is down");
}

#[test]
fn a_rank_must_be_given_where_nothing_else_says_it() {
    let message = "this bootstrap needs the rank and the number of ranks in the options";
    let result = ShmTransport::join(&options(Bootstrap::File(PathBuf::from("unused")), None, DEADLINE));
    all_fail(vec![result], ErrorKind::InvalidArgument, message);
}

/// A process too many, which has not even said who it is.
#[test]
fn a_world_that_is_complete_without_a_process() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    std::thread::scope(|scope| {
        let start = |rank| {
            let options = file(&path, rank, 2);
            scope.spawn(move || ShmTransport::join(&options).map(|_| ()))
        };
        let first = start(0);
        while !path.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let third = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        while rustix::net::connect(&third, &address).is_err() {}
        start(1).join().unwrap().unwrap();
        first.join().unwrap().unwrap();
        let mut told = [0; 200];
        let (length, _) = rustix::net::recv(&third, &mut told, RecvFlags::empty()).unwrap();
        assert!(
            String::from_utf8_lossy(&told[..length]).ends_with("the world of 2 ranks is complete without this process")
        );
    });
}

/// A rank that joins late finds nobody, but rank 0 may try again.
#[test]
fn a_world_after_a_failed_one() {
    let job = Job::new();
    let path = job.meeting_place().join("socket");
    let briefly = options(Bootstrap::File(path.clone()), Some((0, 2)), Duration::from_millis(50));
    assert_eq!(ShmTransport::join(&briefly).unwrap_err().kind, ErrorKind::Timeout);
    let results = join_all(vec![file(&path, 1, 2), file(&path, 0, 2)]);
    results.into_iter().for_each(|result| _ = result.unwrap());
}
