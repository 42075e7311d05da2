//! Ranks as processes: the test binary runs itself again, one process a rank, with a scenario named in the environment.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pld::error::{Error, Result};
use pld::transport::shm::{Bootstrap, ShmOptions, ShmTransport};

/// Nothing here should take longer, whatever else the machine does.
pub const DEADLINE: Duration = Duration::from_secs(60);

const SCENARIO: &str = "PLD_TEST_SCENARIO";
const HOME: &str = "PLD_TEST_HOME";
const SEAT: &str = "PLD_TEST_SEAT";

/// What a rank's process does; what it returns is its outcome.
pub type Scenario = fn(&Rank) -> Result<String>;

/// How a rank's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(String),
    /// Kind and message of its error.
    Failed(String, String),
    Killed(i32),
}

impl Outcome {
    pub fn done(&self) -> &str {
        match self {
            Outcome::Done(text) => text,
            other => panic!("expected success, got {other:?}"),
        }
    }

    /// The message of an error of `kind`.
    pub fn failed(&self, kind: &str) -> &str {
        match self {
            Outcome::Failed(actual, message) if actual == kind => message,
            other => panic!("expected {kind}, got {other:?}"),
        }
    }
}

/// Processes that belong together, with a directory of their own. They end with it.
pub struct Job {
    home: PathBuf,
    children: Vec<Child>,
}

impl Job {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("pld-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = std::env::temp_dir().join(unique);
        fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        fs::DirBuilder::new().mode(0o700).create(home.join("meet")).unwrap();
        Self { home, children: Vec::new() }
    }

    /// Where the ranks' sockets are.
    pub fn meeting_place(&self) -> PathBuf {
        self.home.join("meet")
    }

    /// A process that runs `scenario` with more variables in its environment; returns its seat.
    pub fn spawn<V: AsRef<OsStr>>(
        &mut self,
        scenario: &str,
        variables: impl IntoIterator<Item = (&'static str, V)>,
    ) -> usize {
        let seat = self.children.len();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "ranks::rank_process", "--nocapture"]).stdout(Stdio::null());
        command.env("PLD_DIR", self.meeting_place()).env("PLD_JOB", self.home.file_name().unwrap());
        command.env(SCENARIO, scenario).env(HOME, &self.home).env(SEAT, seat.to_string());
        command.envs(variables);
        self.children.push(command.spawn().unwrap());
        seat
    }

    /// One process for each of `nranks` ranks.
    pub fn spawn_world(&mut self, scenario: &str, nranks: u32) {
        (0..nranks).for_each(|rank| _ = self.spawn_rank(scenario, rank, nranks));
    }

    pub fn spawn_rank(&mut self, scenario: &str, rank: u32, nranks: u32) -> usize {
        self.spawn(scenario, [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", nranks.to_string())])
    }

    pub fn kill(&mut self, seat: usize) {
        self.children[seat].kill().unwrap();
    }

    /// Id of the process at `seat`.
    pub fn process(&self, seat: usize) -> u32 {
        self.children[seat].id()
    }

    /// Waits until the process at `seat` has said `word`.
    pub fn hear(&self, seat: usize, word: &str) {
        await_file(&self.home.join(format!("{word}.{seat}")));
    }

    /// Says `word` to all processes.
    pub fn say(&self, word: &str) {
        fs::write(self.home.join(word), "").unwrap();
    }

    /// Waits for the process at `seat` to end.
    pub fn outcome(&mut self, seat: usize) -> Outcome {
        let child = &mut self.children[seat];
        let end = Instant::now() + DEADLINE;
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > end => panic!("the process at seat {seat} does not end"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        if let Some(signal) = status.signal() {
            return Outcome::Killed(signal);
        }
        let text = fs::read_to_string(self.home.join(format!("outcome.{seat}"))).expect("the process has an outcome");
        match text.split_once('\n') {
            Some(("Done", text)) => Outcome::Done(text.to_owned()),
            Some((kind, message)) => Outcome::Failed(kind.to_owned(), message.to_owned()),
            None => panic!("{text:?} is no outcome"),
        }
    }

    pub fn outcomes(&mut self) -> Vec<Outcome> {
        (0..self.children.len()).map(|seat| self.outcome(seat)).collect()
    }

    /// Names in the meeting place.
    pub fn leftovers(&self) -> Vec<String> {
        list(&self.meeting_place())
    }
}

pub fn list(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

impl Drop for Job {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// The process of one rank.
pub struct Rank {
    home: PathBuf,
    seat: String,
}

impl Rank {
    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn say(&self, word: &str) {
        fs::write(self.home.join(format!("{word}.{}", self.seat)), "").unwrap();
    }

    pub fn hear(&self, word: &str) {
        await_file(&self.home.join(word));
    }

    /// The world that the environment describes.
    pub fn join(&self) -> Result<ShmTransport> {
        ShmTransport::join(&options(Bootstrap::Env, None, DEADLINE / 2))
    }

    /// A number from the environment.
    pub fn number(&self, name: &str) -> u64 {
        std::env::var(name).unwrap().parse().unwrap()
    }
}

pub fn options(bootstrap: Bootstrap, seat: Option<(u32, u32)>, within: Duration) -> ShmOptions {
    let (rank, nranks) = seat.unzip();
    ShmOptions { bootstrap, rank, nranks, deadline: Instant::now() + within, agreement: b"test".to_vec() }
}

pub fn soon() -> Instant {
    Instant::now() + DEADLINE / 2
}

fn await_file(path: &Path) {
    let end = Instant::now() + DEADLINE;
    while !path.exists() {
        assert!(Instant::now() < end, "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test of its own: the body of the processes that tests start.
#[test]
fn rank_process() {
    let Ok(name) = std::env::var(SCENARIO) else { return };
    let scenario = crate::scenario(&name);
    let rank = Rank { home: std::env::var_os(HOME).unwrap().into(), seat: std::env::var(SEAT).unwrap() };
    let outcome = match scenario(&rank) {
        Ok(text) => format!("Done\n{text}"),
        Err(Error { kind, message }) => format!("{kind:?}\n{message}"),
    };
    fs::write(rank.home.join(format!("outcome.{}", rank.seat)), outcome).unwrap();
}
