//! Ranks as processes: a test binary runs itself again, once a rank, with a scenario named in the environment.
//!
//! A test program that uses this has a test `rank_process` at its root, which calls [`rank_process`]: the body of the
//! processes that its other tests start.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Nothing in a test should take longer, whatever else the machine does.
pub const DEADLINE: Duration = Duration::from_secs(60);

const SCENARIO: &str = "PLD_TEST_SCENARIO";
const HOME: &str = "PLD_TEST_HOME";
const SEAT: &str = "PLD_TEST_SEAT";

/// How a rank's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With this result of its scenario.
    Done(String),
    /// With an error: its kind and message.
    Failed(String, String),
    /// By a signal.
    Killed(i32),
    /// With this code, before the end of its scenario.
    Exited(i32),
}

impl Outcome {
    /// The result.
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

/// Processes that belong together, each at a seat, with a directory of their own. They end with it.
pub struct Job {
    home: PathBuf,
    children: Vec<Child>,
    patience: Duration,
}

impl Job {
    /// A job without processes.
    #[expect(clippy::new_without_default, reason = "it makes directories")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("pld-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = std::env::temp_dir().join(unique);
        fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        fs::DirBuilder::new().mode(0o700).create(home.join("meet")).unwrap();
        Self { home, children: Vec::new(), patience: DEADLINE }
    }

    /// A job that runs `scenario` on each of `nranks` ranks.
    pub fn start(scenario: &str, nranks: u32) -> Self {
        let mut job = Self::new();
        job.spawn_world(scenario, nranks);
        job
    }

    /// Where its processes leave files; removed with it.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Number of processes that were started.
    pub fn seats(&self) -> usize {
        self.children.len()
    }

    /// Lets its processes take longer.
    pub fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
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
        command.args(["--exact", "rank_process", "--nocapture"]).stdout(Stdio::null());
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

    /// The process of one rank.
    pub fn spawn_rank(&mut self, scenario: &str, rank: u32, nranks: u32) -> usize {
        self.spawn(scenario, [("PLD_RANK", rank.to_string()), ("PLD_WORLD_SIZE", nranks.to_string())])
    }

    /// Ends the process at `seat` with SIGKILL.
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

    /// Waits until every process has said `word`.
    pub fn hear_all(&self, word: &str) {
        (0..self.children.len()).for_each(|seat| self.hear(seat, word));
    }

    /// Says `word` to all processes.
    pub fn say(&self, word: &str) {
        fs::write(self.home.join(word), "").unwrap();
    }

    /// Waits for the process at `seat` to end.
    pub fn outcome(&mut self, seat: usize) -> Outcome {
        let child = &mut self.children[seat];
        let end = Instant::now() + self.patience;
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
        let Ok(text) = fs::read_to_string(self.home.join(format!("outcome.{seat}"))) else {
            return Outcome::Exited(status.code().unwrap());
        };
        match text.split_once('\n') {
            Some(("Done", text)) => Outcome::Done(text.to_owned()),
            Some((kind, message)) => Outcome::Failed(kind.to_owned(), message.to_owned()),
            None => panic!("{text:?} is no outcome"),
        }
    }

    /// Waits for all processes to end.
    pub fn outcomes(&mut self) -> Vec<Outcome> {
        (0..self.children.len()).map(|seat| self.outcome(seat)).collect()
    }

    /// Names in the meeting place.
    pub fn leftovers(&self) -> Vec<String> {
        list(&self.meeting_place())
    }
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

/// Names in a directory, sorted.
pub fn list(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A process of a job, seen from inside.
pub struct Rank {
    home: PathBuf,
    seat: String,
}

impl Rank {
    /// The job's directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where the ranks' sockets are.
    pub fn meeting_place(&self) -> PathBuf {
        self.home.join("meet")
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.number("PLD_RANK") as u32
    }

    /// Number of ranks.
    pub fn nranks(&self) -> u32 {
        self.number("PLD_WORLD_SIZE") as u32
    }

    /// A number from the environment.
    pub fn number(&self, name: &str) -> u64 {
        std::env::var(name).unwrap().parse().unwrap()
    }

    /// Says `word` to the test.
    pub fn say(&self, word: &str) {
        fs::write(self.home.join(format!("{word}.{}", self.seat)), "").unwrap();
    }

    /// Waits until the test says `word`.
    pub fn hear(&self, word: &str) {
        await_file(&self.home.join(word));
    }
}

fn await_file(path: &Path) {
    let end = Instant::now() + DEADLINE;
    while !path.exists() {
        assert!(Instant::now() < end, "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The body of a process that a test started, with `run` for its scenario: a result, or an error's kind and message. In
/// the test program itself it does nothing.
pub fn rank_process(run: impl FnOnce(&str, &Rank) -> Result<String, (String, String)>) {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let rank = Rank { home: std::env::var_os(HOME).unwrap().into(), seat: std::env::var(SEAT).unwrap() };
    let outcome = match run(&scenario, &rank) {
        Ok(text) => format!("Done\n{text}"),
        Err((kind, message)) => format!("{kind}\n{message}"),
    };
    fs::write(rank.home.join(format!("outcome.{}", rank.seat)), outcome).unwrap();
}
