//! Ranks of several hosts: how they meet, what they announce, and how they hear of each other's ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pld::error::Result;
use pld::transport::Transport;
use pld::transport::far::{Listener, News};
use pld_test_ranks::free_port;

use crate::ranks::{Job, Join, Outcome, Rank, SILENCE, Scenario, Spread, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("meet_hosts", |rank| roll_call(&*rank.join_hosts(SILENCE)?)),
    ("meet_hosts_briefly", |rank| roll_call(&*rank.join_hosts_within(Duration::from_secs(3), SILENCE)?)),
    ("sequence_of_hosts", sequence_of_hosts),
    ("announce", announce),
    ("lose", lose),
    ("lose_while_allocating", lose_while_allocating),
    ("leave_hosts", leave_hosts),
    ("fork_hosts", fork_hosts),
    ("allocate_differently", allocate_differently),
];

const BRIEF_SILENCE: Duration = Duration::from_secs(1);

/// Who is there, and over what: all ranks return the same text.
fn roll_call(transport: &dyn Transport) -> Result<String> {
    let word = format!("{}", transport.local().start);
    let words = transport.exchange(word.as_bytes(), soon())?;
    let hosts = transport.far().map(|far| format!(" on hosts {:?}", far.hosts())).unwrap_or_default();
    Ok(format!("{} {}{hosts}", transport.name(), String::from_utf8(words.concat()).unwrap()))
}

struct Ear(Mutex<Sender<News>>);

impl Listener for Ear {
    fn arrived(&self) {}

    fn heard(&self, news: News) {
        let _ = self.0.lock().unwrap().send(news);
    }
}

fn listen(transport: &dyn Transport) -> Receiver<News> {
    let (sender, receiver) = channel();
    transport.far().unwrap().listen(Arc::new(Ear(Mutex::new(sender))));
    receiver
}

fn all_say(job: &mut Job, text: &str) {
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), text));
}

fn all_fail(job: &mut Job, kind: &str, message: &str) {
    job.outcomes().iter().for_each(|outcome| assert_eq!(outcome.failed(kind), message));
}

#[test]
fn hosts_are_numbered_by_their_lowest_ranks() {
    for (spread, nranks, text) in [
        (Spread::Pairs, 5, "ucx 01234 on hosts [0, 0, 1, 1, 2]"),
        (Spread::Apart, 3, "ucx 012 on hosts [0, 1, 2]"),
        (Spread::Pairs, 2, "shm 01"),
        (Spread::Pairs, 1, "shm 0"),
    ] {
        let mut job = Job::over(spread);
        job.spawn_world("meet_hosts", nranks);
        all_say(&mut job, text);
        assert_eq!(job.leftovers(), [""; 0]);
    }
}

/// Ranks that meet on one host as ever, but pretend.
#[test]
fn hosts_pretended_by_ranks_of_one() {
    let mut job = Job::over(Spread::Together);
    for (rank, host) in ["b", "a", "b"].into_iter().enumerate() {
        job.spawn_rank_with("meet_hosts", rank as u32, 3, [("PLD_HOST", host)]);
    }
    all_say(&mut job, "ucx 012 on hosts [0, 1, 0]");
}

#[test]
fn shm_is_for_one_host() {
    let mut job = Job::over(Spread::Pairs).with("REACH", "shm");
    job.spawn_world("meet_hosts", 3);
    // Without hosts, the environment's address does not matter.
    all_say(&mut job, "shm 012");
}

#[test]
fn torchrun_on_two_hosts() {
    let port = free_port("127.0.0.1") - 1;
    let mut job = Job::over(Spread::Together).with("PLD_SECRET", "a secret of this job");
    for rank in 0..4 {
        let variables = [
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", "4".into()),
            ("LOCAL_WORLD_SIZE", "2".into()),
            ("MASTER_ADDR", "127.0.0.1".into()),
            ("MASTER_PORT", port.to_string()),
            ("PLD_HOST", format!("host {}", rank / 2)),
        ];
        job.spawn("meet_hosts", variables);
    }
    all_say(&mut job, "ucx 0123 on hosts [0, 0, 1, 1]");
}

#[test]
fn a_launcher_without_an_address() {
    let mut job = Job::over(Spread::Together);
    for rank in ["0", "1"] {
        job.spawn("meet_hosts", [("SLURM_PROCID", rank), ("SLURM_NTASKS", "2"), ("SLURM_NNODES", "2")]);
    }
    let slurm = "Slurm has started ranks on other hosts (SLURM_NNODES is 2)";
    let message = format!("{slurm}, so PLD_ADDRESS=HOST:PORT must say where rank 0 listens");
    all_fail(&mut job, "InvalidArgument", &message);
    let mut job = Job::over(Spread::Together).with("REACH", "shm");
    for rank in ["0", "1"] {
        job.spawn("meet_hosts", [("SLURM_PROCID", rank), ("SLURM_NTASKS", "2"), ("SLURM_NNODES", "2")]);
    }
    all_fail(&mut job, "Unsupported", &format!("{slurm}; shm is for one host"));
}

/// The secret may be in a file that nobody else can read.
#[test]
fn secrets_in_files() {
    for (mode, fine) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
        let mut job = Job::over(Spread::Pairs);
        let path = job.home().join("secret");
        fs::write(&path, "a secret of this job\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        for rank in 0..3 {
            let variables = [("PLD_SECRET", String::new()), ("PLD_SECRET_FILE", path.display().to_string())];
            job.spawn_rank_with("meet_hosts", rank, 3, variables);
        }
        if fine {
            all_say(&mut job, "ucx 012 on hosts [0, 0, 1]");
        } else {
            let open = format!("is open to others (mode {mode:04o}); it must have 0600");
            all_fail(&mut job, "InvalidArgument", &format!("secret {} {open}", path.display()));
        }
    }
}

/// All ranks are told what one of them lacks.
#[test]
fn without_ucx() {
    let mut job = Job::over(Spread::Pairs);
    for rank in 0..4 {
        let ucx = if rank == 2 { "/is/not/there" } else { "" };
        job.spawn_rank_with("meet_hosts", rank, 4, [("PLD_UCX", ucx)]);
    }
    let outcomes = job.outcomes();
    for outcome in &outcomes {
        let told = outcome.failed("Unavailable");
        assert!(told.starts_with("rank 2: OpenUCX was not found") && told.contains("libucx0"), "{told}");
    }
    // Nobody needs it on one host.
    let mut job = Job::over(Spread::Pairs).with("PLD_UCX", "/is/not/there");
    job.spawn_world("meet_hosts", 2);
    all_say(&mut job, "shm 01");
}

/// Ranks that cannot meet on their host say where they have tried.
#[test]
fn ranks_of_a_host_that_do_not_meet() {
    let mut job = Job::over(Spread::Pairs);
    let elsewhere = job.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    for rank in 0..4 {
        let dir = if rank == 3 { elsewhere.clone() } else { job.meeting_place() };
        job.spawn_rank_with("meet_hosts_briefly", rank, 4, [("PLD_DIR", dir)]);
    }
    for outcome in job.outcomes() {
        let told = outcome.failed("Timeout");
        assert!(told.contains(": ranks [2, 3] of one host do not meet at /"), "{told}");
    }
}

fn sequence_of_hosts(rank: &Rank) -> Result<String> {
    for _ in 0..10 {
        roll_call(&*rank.join_hosts(SILENCE)?)?;
    }
    Ok("done".into())
}

/// One after the other at the same address, without a rest.
#[test]
fn worlds_at_one_address() {
    let mut job = Job::over(Spread::Pairs);
    job.spawn_world("sequence_of_hosts", 4);
    all_say(&mut job, "done");
    assert_eq!(job.leftovers(), [""; 0]);
}

fn announce(rank: &Rank) -> Result<String> {
    const EACH: u32 = 20;
    let transport = rank.join_hosts(SILENCE)?;
    let (far, news) = (transport.far().unwrap(), listen(&*transport));
    for number in 0..EACH {
        far.announce(format!("{}.{number} ", rank.rank()).as_bytes())?;
    }
    let mut text = String::new();
    for _ in 0..EACH * rank.nranks() {
        match news.recv_timeout(SILENCE * 10).unwrap() {
            News::Said { rank, body } => {
                let said = String::from_utf8(body).unwrap();
                assert!(said.starts_with(&format!("{rank}.")));
                text += &said;
            }
            other => panic!("{other:?}"),
        }
    }
    transport.exchange(b"heard", soon())?;
    Ok(text)
}

#[test]
fn all_hear_announcements_in_one_order() {
    let mut job = Job::over(Spread::Pairs);
    job.spawn_world("announce", 6);
    let outcomes = job.outcomes();
    let text = outcomes[0].done();
    for rank in 0..6 {
        let own: Vec<_> = text.split(' ').filter(|said| said.starts_with(&format!("{rank}."))).collect();
        assert_eq!(own, (0..20).map(|number| format!("{rank}.{number}")).collect::<Vec<_>>());
    }
    outcomes.iter().for_each(|outcome| assert_eq!(outcome.done(), text));
}

/// Waits until a rank is lost, and returns why.
fn lose(rank: &Rank) -> Result<String> {
    let transport = rank.join_hosts(BRIEF_SILENCE)?;
    let news = listen(&*transport);
    rank.say("joined");
    let told = news.recv_timeout(SILENCE * 10).unwrap();
    let News::Lost { rank: lost, why } = told else { panic!("{told:?}") };
    assert_eq!(transport.lost(), Some(lost));
    let error = transport.exchange(b"", soon()).unwrap_err();
    assert_eq!(error.message, why);
    Err(error)
}

fn lose_while_allocating(rank: &Rank) -> Result<String> {
    let transport = rank.join_hosts(BRIEF_SILENCE)?;
    rank.say("joined");
    if rank.number("VICTIM") as u32 == rank.rank() {
        rank.hear("never");
    }
    transport.allocate(1 << 20, soon()).map(|_| "allocated".into())
}

fn four(scenario: &str, victim: usize) -> Job {
    let mut job = Job::over(Spread::Pairs).with("VICTIM", victim.to_string());
    job.spawn_world(scenario, 4);
    job.hear_all("joined");
    job
}

#[test]
fn killed() {
    for scenario in ["lose", "lose_while_allocating"] {
        for victim in [0, 1, 3] {
            let mut job = four(scenario, victim);
            job.kill(victim);
            for rank in (0..4).filter(|rank| *rank != victim) {
                let message = format!("rank {victim} died: its process ended without leaving the world");
                assert_eq!(job.outcome(rank).failed("PeerLost"), message);
            }
            assert_eq!(job.outcome(victim), Outcome::Killed(9));
            assert_eq!(job.leftovers(), [""; 0]);
        }
    }
}

/// Who stands still is lost, and hears of it when it goes on.
#[test]
fn paused() {
    for victim in [0, 2] {
        let mut job = four("lose", victim);
        job.pause(victim);
        let message = format!("rank {victim} has been silent for 1.0 s");
        for rank in (0..4).filter(|rank| *rank != victim) {
            assert_eq!(job.outcome(rank).failed("PeerLost"), message);
        }
        job.resume(victim);
        let outcome = job.outcome(victim);
        let told = outcome.failed("PeerLost");
        assert!(victim == 0 || told == message, "{told}");
    }
}

/// Rank 1 leaves, which is no loss.
fn leave_hosts(rank: &Rank) -> Result<String> {
    let transport = rank.join_hosts(SILENCE)?;
    if rank.rank() == 1 {
        return Ok("left".into());
    }
    let news = listen(&*transport);
    assert_eq!(news.recv_timeout(SILENCE * 10).unwrap(), News::Left { rank: 1 });
    assert_eq!(transport.lost(), None);
    transport.exchange(b"", soon()).map(|_| "exchanged".into())
}

#[test]
fn leaving_is_no_loss() {
    let mut job = Job::over(Spread::Pairs);
    job.spawn_world("leave_hosts", 4);
    assert_eq!(job.outcome(1).done(), "left");
    for rank in [0, 2, 3] {
        assert_eq!(job.outcome(rank).failed("PeerLost"), "rank 1 has left the world");
    }
}

/// A forked child drops its copy of the world, and ends; the world goes on.
fn fork_hosts(rank: &Rank) -> Result<String> {
    let transport = rank.join_hosts(SILENCE)?;
    // SAFETY: the child only drops the transport, which takes no locks in a child, and ends.
    match unsafe { libc::fork() } {
        0 => {
            drop(transport);
            // SAFETY: ends the child without running the harness's own exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just made.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    roll_call(&*transport)?;
    transport.allocate(5000, soon())?;
    Ok("went on".into())
}

#[test]
fn forked_children_disturb_nobody() {
    let mut job = Job::over(Spread::Pairs);
    job.spawn_world("fork_hosts", 4);
    all_say(&mut job, "went on");
}

fn allocate_differently(rank: &Rank) -> Result<String> {
    let transport = rank.join_hosts(SILENCE)?;
    let error = transport.allocate(if rank.rank() == 2 { 8192 } else { 4096 }, soon()).unwrap_err();
    assert!(transport.allocate(1 << 50, soon()).unwrap_err().message.contains("but only"));
    transport.allocate(4096, soon())?;
    Err(error)
}

#[test]
fn sizes_are_compared() {
    let mut job = Job::over(Spread::Pairs);
    job.spawn_world("allocate_differently", 4);
    all_fail(&mut job, "Mismatch", "rank 0 allocates 4096 bytes while rank 2 allocates 8192");
}
