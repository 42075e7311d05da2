//! A process of a job, seen from inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::DEADLINE;
use crate::spread::{Spread, free_port};

pub(crate) const SCENARIO: &str = "PLD_TEST_SCENARIO";
pub(crate) const HOME: &str = "PLD_TEST_HOME";
pub(crate) const SEAT: &str = "PLD_TEST_SEAT";
pub(crate) const HOST_ADDRESS: &str = "PLD_TEST_HOST_ADDRESS";

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

    /// How the job is spread over hosts.
    pub fn spread(&self) -> Spread {
        Spread::from_environment()
    }

    /// The address at which the ranks of a further world meet, called `name`: its rank 0 chooses one on its host.
    pub fn address(&self, name: &str, first: bool) -> (String, u16) {
        let path = self.home.join(format!("address.{name}"));
        if first {
            let host = std::env::var(HOST_ADDRESS).unwrap();
            let new = self.home.join(format!("new-address.{name}"));
            fs::write(&new, format!("{host} {}", free_port(&host))).unwrap();
            fs::rename(&new, &path).unwrap();
        }
        await_file(&path);
        let address = fs::read_to_string(&path).unwrap();
        let (host, port) = address.split_once(' ').unwrap();
        (host.to_owned(), port.parse().unwrap())
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

pub(crate) fn await_file(path: &Path) {
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
