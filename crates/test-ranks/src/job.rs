//! Processes that a test starts.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::DEADLINE;
use crate::hosts::Hosts;
use crate::outcome::Outcome;
use crate::rank::{HOME, SCENARIO, SEAT, await_file};
use crate::spread::{SPREAD, Spread};

/// Processes that belong together, each at a seat, with a directory of their own. They end with it.
pub struct Job {
    home: PathBuf,
    children: Vec<Child>,
    patience: Duration,
    spread: Spread,
    hosts: Option<Hosts>,
    variables: Vec<(&'static str, String)>,
}

impl Job {
    /// A job without processes, which will be spread as the environment says.
    #[expect(clippy::new_without_default, reason = "it makes directories")]
    pub fn new() -> Self {
        Self::over(Spread::from_environment())
    }

    /// A job without processes, which will be spread over hosts.
    pub fn over(spread: Spread) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("pld-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let home = std::env::temp_dir().join(unique);
        fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        fs::DirBuilder::new().mode(0o700).create(home.join("meet")).unwrap();
        Self { home, children: Vec::new(), patience: DEADLINE, spread, hosts: None, variables: Vec::new() }
    }

    /// A job that runs `scenario` on each of `nranks` ranks.
    pub fn start(scenario: &str, nranks: u32) -> Self {
        let mut job = Self::new();
        job.spawn_world(scenario, nranks);
        job
    }

    /// Lets the environment of its processes have this variable too.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
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
        let command = self.command(scenario);
        self.seat(command, variables)
    }

    fn command(&self, scenario: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "rank_process", "--nocapture"]).stdout(Stdio::null());
        command.env("PLD_DIR", self.meeting_place()).env("PLD_JOB", self.home.file_name().unwrap());
        command.env(SCENARIO, scenario).env(HOME, &self.home).env(SPREAD, self.spread.name());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn seat<V: AsRef<OsStr>>(
        &mut self,
        mut command: Command,
        variables: impl IntoIterator<Item = (&'static str, V)>,
    ) -> usize {
        let seat = self.children.len();
        command.env(SEAT, seat.to_string()).envs(variables);
        self.children.push(command.spawn().unwrap());
        seat
    }

    /// One process for each of `nranks` ranks.
    pub fn spawn_world(&mut self, scenario: &str, nranks: u32) {
        (0..nranks).for_each(|rank| _ = self.spawn_rank(scenario, rank, nranks));
    }

    /// The process of one rank.
    pub fn spawn_rank(&mut self, scenario: &str, rank: u32, nranks: u32) -> usize {
        self.spawn_rank_with(scenario, rank, nranks, None::<(&str, &str)>)
    }

    /// The process of one rank, with more variables in its environment.
    pub fn spawn_rank_with<V: AsRef<OsStr>>(
        &mut self,
        scenario: &str,
        rank: u32,
        nranks: u32,
        variables: impl IntoIterator<Item = (&'static str, V)>,
    ) -> usize {
        let mut command = self.command(scenario);
        command.env("PLD_RANK", rank.to_string()).env("PLD_WORLD_SIZE", nranks.to_string());
        self.hosts(nranks).place(rank, &mut command);
        self.seat(command, variables)
    }

    /// The hosts of a world of `nranks`; those of the first one that is asked for.
    pub fn hosts(&mut self, nranks: u32) -> &Hosts {
        let make = || Hosts::new(self.spread, nranks).unwrap_or_else(|why_not| panic!("{why_not}"));
        self.hosts.get_or_insert_with(make)
    }

    /// Ends the process at `seat` with SIGKILL.
    pub fn kill(&mut self, seat: usize) {
        self.children[seat].kill().unwrap();
    }

    /// Lets the process at `seat` stand still, until [`Job::resume`].
    pub fn pause(&self, seat: usize) {
        kill_process(Pid::from_child(&self.children[seat]), Signal::STOP).unwrap();
    }

    /// Lets it go on.
    pub fn resume(&self, seat: usize) {
        kill_process(Pid::from_child(&self.children[seat]), Signal::CONT).unwrap();
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
