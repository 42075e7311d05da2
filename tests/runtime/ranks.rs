//! Ranks as processes: the test binary runs itself again, one process a rank, with a scenario named in the environment.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pld::error::{Error, Result};
use pld::runtime::{World, WorldOptions};
use pld::transport::shm::{Bootstrap, ShmOptions};

/// Nothing here should take longer, whatever else the machine does.
pub const DEADLINE: Duration = Duration::from_secs(60);

const SCENARIO: &str = "PLD_TEST_SCENARIO";
const HOME: &str = "PLD_TEST_HOME";
const RANK: &str = "PLD_TEST_RANK";
const NRANKS: &str = "PLD_TEST_NRANKS";

/// What a rank's process does; what it returns is its outcome.
pub type Scenario = fn(&Rank) -> Result<String>;

/// How a rank's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(String),
    /// Kind and message of its error.
    Failed(String, String),
    Killed(i32),
    Exited(i32),
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

/// The processes of a world, with a directory of their own. They end with it.
pub struct Job {
    home: PathBuf,
    children: Vec<Child>,
}

impl Job {
    /// Starts `scenario` on every rank.
    pub fn start(scenario: &str, nranks: u32) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("pld-runtime-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = std::env::temp_dir().join(unique);
        fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        fs::DirBuilder::new().mode(0o700).create(home.join("meet")).unwrap();
        let children = (0..nranks).map(|rank| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "ranks::rank_process", "--nocapture"]).stdout(Stdio::null());
            command.env(SCENARIO, scenario).env(HOME, &home);
            command.env(RANK, rank.to_string()).env(NRANKS, nranks.to_string());
            command.spawn().unwrap()
        });
        Self { children: children.collect(), home }
    }

    pub fn kill(&mut self, rank: u32) {
        self.children[rank as usize].kill().unwrap();
    }

    /// Waits until every rank has said `word`.
    pub fn hear(&self, word: &str) {
        (0..self.children.len()).for_each(|rank| await_file(&self.home.join(format!("{word}.{rank}"))));
    }

    /// Says `word` to all ranks.
    pub fn say(&self, word: &str) {
        fs::write(self.home.join(word), "").unwrap();
    }

    /// Waits for the process of `rank` to end.
    pub fn outcome(&mut self, rank: u32) -> Outcome {
        let child = &mut self.children[rank as usize];
        let end = Instant::now() + DEADLINE;
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > end => panic!("rank {rank} does not end"),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        if let Some(signal) = status.signal() {
            return Outcome::Killed(signal);
        }
        let Ok(text) = fs::read_to_string(self.home.join(format!("outcome.{rank}"))) else {
            return Outcome::Exited(status.code().unwrap());
        };
        match text.split_once('\n') {
            Some(("Done", text)) => Outcome::Done(text.to_owned()),
            Some((kind, message)) => Outcome::Failed(kind.to_owned(), message.to_owned()),
            None => panic!("{text:?} is no outcome"),
        }
    }

    pub fn outcomes(&mut self) -> Vec<Outcome> {
        (0..self.children.len() as u32).map(|rank| self.outcome(rank)).collect()
    }

    /// Names in the meeting place.
    pub fn leftovers(&self) -> Vec<String> {
        list(&self.home.join("meet"))
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

/// The process of one rank.
pub struct Rank {
    home: PathBuf,
    pub rank: u32,
    pub nranks: u32,
}

impl Rank {
    pub fn say(&self, word: &str) {
        fs::write(self.home.join(format!("{word}.{}", self.rank)), "").unwrap();
    }

    pub fn hear(&self, word: &str) {
        await_file(&self.home.join(word));
    }

    /// Joins the world of its job.
    pub fn join(&self, options: &WorldOptions) -> Result<Arc<World>> {
        self.join_as("world", self.rank, self.nranks, options)
    }

    /// Joins the world of the job that is called `name`.
    pub fn join_as(&self, name: &str, rank: u32, nranks: u32, options: &WorldOptions) -> Result<Arc<World>> {
        let shm = ShmOptions {
            bootstrap: Bootstrap::File(self.home.join("meet").join(name)),
            rank: Some(rank),
            nranks: Some(nranks),
            deadline: Instant::now() + DEADLINE / 2,
            agreement: b"test".to_vec(),
        };
        World::join(&shm, options)
    }
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
    let number = |name| std::env::var(name).unwrap().parse().unwrap();
    let rank = Rank { home: std::env::var_os(HOME).unwrap().into(), rank: number(RANK), nranks: number(NRANKS) };
    let outcome = match crate::scenario(&name)(&rank) {
        Ok(text) => format!("Done\n{text}"),
        Err(Error { kind, message }) => format!("{kind:?}\n{message}"),
    };
    fs::write(rank.home.join(format!("outcome.{}", rank.rank)), outcome).unwrap();
}
