//! Worlds whose ranks have cards, over the simulated CANN: one process a card, and one process that drives several.

mod bring_up;
mod compiler;
mod failing_calls;
mod kernels;
#[path = "../../support/toolkit.rs"]
mod toolkit;
mod windows;

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::time::Instant;

use pld::error::Result;
use pld::transport::Transport;
use pld::transport::hccl::{Cards, HcclOptions, HcclTransport};
use pld::transport::thread::ThreadTransport;

use crate::ranks::{Job, Join, Outcome, Rank, Scenario, soon};

pub const SCENARIOS: &[&[(&str, Scenario)]] =
    &[bring_up::SCENARIOS, compiler::SCENARIOS, failing_calls::SCENARIOS, kernels::SCENARIOS, windows::SCENARIOS];

/// Number of ranks of a process that drives all.
const RANKS: &str = "TEST_RANKS";

/// Variables of a process.
type Variables<'a> = &'a [(&'static str, &'a str)];

/// How the ranks of a world are spread over processes.
#[derive(Clone, Copy, Debug)]
enum Processes {
    One,
    OneARank,
}

/// The processes of a world on the simulated CANN.
struct World {
    job: Job,
}

impl World {
    /// Starts `scenario` on `nranks` ranks, with more variables for all.
    fn start(scenario: &str, nranks: u32, processes: Processes, more: Variables<'_>) -> Self {
        let mut world = Self { job: Job::new() };
        match processes {
            Processes::One => world.spawn(scenario, &[(RANKS, &nranks.to_string())], more),
            Processes::OneARank => (0..nranks).for_each(|rank| world.spawn_rank(scenario, rank, nranks, more)),
        }
        world
    }

    fn spawn_rank(&mut self, scenario: &str, rank: u32, nranks: u32, more: Variables<'_>) {
        let (rank, nranks) = (rank.to_string(), nranks.to_string());
        self.spawn(scenario, &[("PLD_RANK", &rank), ("PLD_WORLD_SIZE", &nranks)], more);
    }

    fn spawn(&mut self, scenario: &str, seat: Variables<'_>, more: Variables<'_>) {
        let toolkit = toolkit::toolkit();
        let report = self.job.home().join("report.%p");
        let cache = self.job.home().join("cache");
        let usual = [("ASCEND_HOME_PATH", &toolkit), ("CANN_SIM_REPORT", &report), ("PLD_KERNEL_CACHE", &cache)];
        let usual = usual.map(|(name, path)| (name, path.to_str().unwrap()));
        self.job.spawn(scenario, usual.iter().chain(seat).chain(more).copied());
    }

    /// How the processes end.
    fn outcomes(&mut self) -> Vec<Outcome> {
        self.job.outcomes()
    }

    /// Waits for success on all ranks; nothing may be left.
    fn succeed(mut self) {
        self.outcomes().iter().for_each(|outcome| assert_eq!(outcome.done(), "passed"));
        self.assert_nothing_is_left();
    }

    /// Waits for one error on all ranks; nothing may be left.
    fn fail(mut self, kind: &str) -> String {
        let outcomes = self.outcomes();
        let message = outcomes[0].failed(kind).to_owned();
        outcomes.iter().for_each(|outcome| assert_eq!(outcome.failed(kind), message));
        self.assert_nothing_is_left();
        message
    }

    /// No process has left an object of the simulated CANN.
    fn assert_nothing_is_left(&self) {
        for seat in 0..self.job.seats() {
            let Some(report) = self.report(seat) else { continue };
            let left: Vec<_> = left(&report).collect();
            assert!(left.is_empty(), "the process at seat {seat} has left {left:?}");
        }
    }

    /// What the simulated CANN has counted in a process that used it.
    fn report(&self, seat: usize) -> Option<serde_json::Value> {
        let file = self.job.home().join(format!("report.{}", self.job.process(seat)));
        let text = std::fs::read_to_string(file).ok()?;
        Some(serde_json::from_str(&text).expect("a report"))
    }
}

/// The kinds of objects, in a report, of which there are some, and how many.
fn left(report: &serde_json::Value) -> impl Iterator<Item = (&str, i64)> {
    let live = report["live"].as_object().expect("objects").iter();
    live.map(|(kind, count)| (kind.as_str(), count.as_i64().expect("a number"))).filter(|(_, count)| *count != 0)
}

/// A function of the calling process's CANN that the library does not know.
fn cann_function(name: &CStr) -> *mut c_void {
    let home = std::env::var_os("ASCEND_HOME_PATH").unwrap();
    let library = CString::new(Path::new(&home).join("lib64/libascendcl.so").to_str().unwrap()).unwrap();
    // SAFETY: the library is one that the process uses anyway.
    let function = unsafe { libc::dlsym(libc::dlopen(library.as_ptr(), libc::RTLD_NOW), name.as_ptr()) };
    assert!(!function.is_null(), "{name:?}");
    function
}

/// The host transport of the calling process's ranks.
fn host(rank: &Rank) -> Result<Box<dyn Transport>> {
    match std::env::var(RANKS) {
        Ok(nranks) => Ok(Box::new(ThreadTransport::new(nranks.parse().unwrap())?)),
        Err(_) => Ok(Box::new(rank.join()?)),
    }
}

/// The world of the calling process: rank r has device r.
fn join(rank: &Rank, deadline: Instant) -> Result<HcclTransport> {
    let host = host(rank)?;
    let options = HcclOptions { devices: host.local().map(|rank| rank as i32).collect(), comms: Vec::new(), deadline };
    bring_up(host, &options)
}

fn bring_up(host: Box<dyn Transport>, options: &HcclOptions) -> Result<HcclTransport> {
    // SAFETY: tests that give communicators keep them longer than the transport.
    unsafe { HcclTransport::new(host, options) }
}

/// Waits for all ranks.
fn meet(transport: &HcclTransport) -> Result<()> {
    transport.exchange(b"", soon()).map(drop)
}

fn cards(transport: &HcclTransport) -> &Cards {
    transport.cards().expect("cards")
}

/// A test with 2 and 4 ranks, in processes of their own and in one.
fn everywhere(scenario: &str, more: Variables<'_>) {
    for nranks in [2, 4] {
        for processes in [Processes::OneARank, Processes::One] {
            World::start(scenario, nranks, processes, more).succeed();
        }
    }
}
