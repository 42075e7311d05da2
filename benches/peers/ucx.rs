//! UCX's own benchmark, `ucx_perftest`: what its puts cost over a link. It has a server, whose memory is put to, and a
//! client, which prints.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pld_test_ranks::Hosts;

use crate::limits;
use crate::link::Link;
use crate::method::Sample;
use crate::team::{Named, Team};

/// Begins the names of its series: `ucp_put_lat/BYTES`, in microseconds, and `ucp_put_bw/BYTES`, in GB/s.
pub const SERIES: &str = "ucp_";

const PROGRAM: &str = "ucx_perftest";
/// How long the server may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);
const REPEATS: usize = 3;

/// It is there.
pub fn installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).exists())
}

/// Measures `series` between two ranks, each about `seconds` long.
pub fn measure(series: &[&str], link: Link, seconds: f64) -> Result<Vec<Named>, String> {
    let hosts = link.hosts(2)?;
    let tests = Tests::new(series, seconds)?;
    let before = limits::trip_between_cpus();
    let mut server = command(&hosts, link, 1, &tests);
    server.stdout(Stdio::null());
    let mut team = Team::default();
    team.add(server)?;
    await_server(&hosts)?;
    let mut client = command(&hosts, link, 0, &tests);
    client.arg(hosts.address(1)).args(["-v", "-f"]).stdout(Stdio::piped());
    team.lead(client)?;
    let output = team.finish()?;
    let after = limits::trip_between_cpus();
    let named = |(series, value)| Named { series, sample: Sample { value, before, after } };
    Ok(output.lines().filter_map(parse).map(named).collect())
}

fn command(hosts: &Hosts, link: Link, rank: u32, tests: &Tests) -> Command {
    let mut command = Command::new(PROGRAM);
    hosts.place(rank, &mut command);
    link.choose(&mut command);
    command.args(["-p", &hosts.port().to_string(), "-c", &rank.to_string(), "-b"]).arg(&tests.0).stderr(Stdio::null());
    command
}

/// Waits until the server listens: a client that comes too early gives up, and a connection to try would be taken for one.
fn await_server(hosts: &Hosts) -> Result<(), String> {
    const LISTENS: &str = "00000000:0000 0A";
    let place = format!("00000000:{:04X} {LISTENS}", hosts.port());
    let deadline = Instant::now() + PATIENCE;
    while !hosts
        .inside(1, || std::fs::read_to_string("/proc/thread-self/net/tcp"))
        .is_ok_and(|all| all.contains(&place))
    {
        if Instant::now() > deadline {
            return Err(format!("{PROGRAM} does not listen after {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A file with a line for each test. It is removed when dropped.
struct Tests(PathBuf);

impl Tests {
    fn new(series: &[&str], seconds: f64) -> Result<Self, String> {
        let mut lines = String::new();
        for series in std::iter::repeat_n(series, REPEATS).flatten() {
            let (test, bytes) = size_of(series).ok_or_else(|| format!("{series} is no test of {PROGRAM}"))?;
            // What a put takes over TCP on a common machine, in seconds.
            let estimate = 2e-5 + bytes as f64 / 1e9;
            let times = ((seconds / estimate) as usize).clamp(2, 20_000);
            writeln!(lines, "{series} -t {test} -s {bytes} -n {times} -w {}", times / 10 + 1)
                .expect("a string takes all");
        }
        let path = std::env::temp_dir().join(format!("pld-bench-{}.tests", std::process::id()));
        std::fs::write(&path, lines).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Tests {
    fn drop(&mut self) {
        // A file more in the folder for such disturbs nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn size_of(series: &str) -> Option<(&str, usize)> {
    let (test, bytes) = series.split_once('/')?;
    Some((test, bytes.parse().ok()?))
}

/// `SERIES,iterations,median,average,overall,...`: microseconds of a put, over all iterations.
fn parse(line: &str) -> Option<(String, f64)> {
    const OVERALL: usize = 4;
    let fields: Vec<&str> = line.split(',').collect();
    let (test, bytes) = size_of(fields[0])?;
    let overall: f64 = fields.get(OVERALL)?.parse().ok()?;
    Some((fields[0].to_owned(), if test.ends_with("_bw") { bytes as f64 / overall / 1e3 } else { overall }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_results() {
        let latency = "ucp_put_lat/8,2000,14.418,143.925,11.5,0.05,0.05,6948,6948";
        assert_eq!(parse(latency), Some(("ucp_put_lat/8".into(), 11.5)));
        let bandwidth = "ucp_put_bw/65536,1000,15.665,289.312,256,216.03,216.03,3456,3456";
        assert_eq!(parse(bandwidth), Some(("ucp_put_bw/65536".into(), 0.256)));
        assert_eq!(parse("batch,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw"), None);
        assert_eq!(parse("ucp_put_lat/8"), None);
    }
}
