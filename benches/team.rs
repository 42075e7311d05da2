//! Runs programs that print samples: teams of ranks of this benchmark, and the peers' programs.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::method::Sample;
use crate::row::Row;
use crate::{board, rank};

/// How long one program may take. The full measurement of a row takes a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long a program that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(2);

/// A sample, and the series that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    pub series: String,
    pub sample: Sample,
}

/// Lets a team of processes measure a row.
pub fn measure(row: &Row, quick: bool) -> Result<Vec<Named>, String> {
    let board = board::create().map_err(|e| format!("board: {e}"))?;
    let program = std::env::current_exe().map_err(|e| format!("own program: {e}"))?;
    static TEAMS: AtomicU32 = AtomicU32::new(0);
    let job = format!("pld-bench-{}-{}", std::process::id(), TEAMS.fetch_add(1, Ordering::Relaxed));
    let hosts = row.link.hosts(row.ranks)?;
    let mut team = Team::default();
    for rank in 0..row.ranks {
        let mut command = Command::new(&program);
        hosts.place(rank, &mut command);
        row.link.choose(&mut command);
        command
            .env(rank::ROW, &row.name)
            .env(rank::RANK, rank.to_string())
            .env(rank::RANKS, row.ranks.to_string())
            .env(rank::BOARD, board.as_raw_fd().to_string())
            .env(rank::QUICK, u8::from(quick).to_string())
            .env(rank::JOB, &job)
            .stdout(if rank == 0 { Stdio::piped() } else { Stdio::null() });
        team.add(command)?;
    }
    let output = team.finish()?;
    Ok(output.lines().filter_map(|line| parse(line, None)).collect())
}

/// Runs a peer's program; `trip` measures the raw trip for samples that come without.
pub fn run(mut command: Command, trip: fn() -> f64) -> Result<Vec<Named>, String> {
    let before = trip();
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut team = Team::default();
    team.add(command)?;
    let output = team.finish()?;
    let around = (before, trip());
    Ok(output.lines().filter_map(|line| parse(line, Some(around))).collect())
}

/// `sample SERIES VALUE [BEFORE AFTER]`.
fn parse(line: &str, around: Option<(f64, f64)>) -> Option<Named> {
    let mut words = line.strip_prefix("sample ")?.split_whitespace();
    let series = words.next()?.to_owned();
    let numbers: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    let (value, (before, after)) = match (&numbers[..], around) {
        (&[value, before, after], _) => (value, (before, after)),
        (&[value], Some(around)) => (value, around),
        _ => return None,
    };
    Some(Named { series, sample: Sample { value, before, after } })
}

/// Processes that end together. They are ended when dropped.
#[derive(Default)]
pub struct Team {
    members: Vec<Child>,
}

impl Team {
    /// Starts one more.
    pub fn add(&mut self, command: Command) -> Result<(), String> {
        self.members.push(spawn(command)?);
        Ok(())
    }

    /// Starts one more, which becomes the first.
    pub fn lead(&mut self, command: Command) -> Result<(), String> {
        self.members.insert(0, spawn(command)?);
        Ok(())
    }

    /// Waits for all, and returns what the first one printed: less than a pipe holds.
    pub fn finish(mut self) -> Result<String, String> {
        let deadline = Instant::now() + TIME_LIMIT;
        let mut running = self.members.len();
        while running > 0 {
            running = 0;
            for (rank, member) in self.members.iter_mut().enumerate() {
                match member.try_wait().map_err(|e| format!("process {rank}: {e}"))? {
                    None => running += 1,
                    Some(status) if !status.success() => return Err(format!("process {rank} ended with {status}")),
                    Some(_) => {}
                }
            }
            if Instant::now() > deadline {
                return Err(format!("not done after {} s", TIME_LIMIT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let output = self.members[0].stdout.take().expect("standard output of the first member is a pipe");
        std::io::read_to_string(output).map_err(|e| format!("standard output: {e}"))
    }
}

fn spawn(mut command: Command) -> Result<Child, String> {
    let name = command.get_program().display().to_string();
    command.stdin(Stdio::null()).spawn().map_err(|e| format!("{name}: {e}"))
}

impl Drop for Team {
    fn drop(&mut self) {
        for member in &mut self.members {
            end(member);
        }
    }
}

/// Asks a process to end, since a launcher then ends what it has started, and kills it if it does not.
fn end(process: &mut Child) {
    let pid = Pid::from_child(process);
    if !matches!(process.try_wait(), Ok(None)) {
        return;
    }
    // Its number is its own until it is waited for, so nobody else is hit; an error means that it has just ended.
    let _ = kill_process(pid, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while matches!(process.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = process.kill();
            let _ = process.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A path with `more` in front of what `variable` holds.
pub fn path_with(more: &OsStr, variable: &str) -> std::ffi::OsString {
    let mut path = more.to_owned();
    if let Some(rest) = std::env::var_os(variable) {
        path.push(":");
        path.push(rest);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_samples() {
        let named = |value, before, after| Named { series: "a_8".into(), sample: Sample { value, before, after } };
        assert_eq!(parse("sample a_8 1.5 0.05 0.06", None), Some(named(1.5, 0.05, 0.06)));
        assert_eq!(parse("sample a_8 1.5", Some((0.1, 0.2))), Some(named(1.5, 0.1, 0.2)));
        assert_eq!(parse("sample a_8 1.5", None), None);
        assert_eq!(parse("sample a_8 x 0.05 0.06", None), None);
        assert_eq!(parse("warning: a_8 1.5", None), None);
    }

    #[test]
    fn a_failing_process_is_an_error() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo sample a 1; exit 3"]);
        let error = run(command, || 0.1).unwrap_err();
        assert!(error.contains("exit status: 3"), "{error}");
    }

    #[test]
    fn samples_of_a_program_without_trips_get_those_around_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo hello; echo sample a 1; echo sample b 2 3 4"]);
        let samples = run(command, || 0.1).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].sample, Sample { value: 1.0, before: 0.1, after: 0.1 });
        assert_eq!(samples[1].sample, Sample { value: 2.0, before: 3.0, after: 4.0 });
    }
}
