//! The hosts of a job: which ranks run where, and how one is started on another host.
//!
//! A launcher, ssh or what stands in for it, is called with a host and a text for the shell there. The secret of the job
//! goes to the standard input of that shell, never into a command line, which others can see. It stays open: when it
//! comes to its end, because the job ends or this host is gone, what was started there ends.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use crate::exit::{Exit, Failure, Result};
use crate::ranks::Started;

/// What starts ranks on other hosts if nobody says otherwise: it asks for no password.
pub const LAUNCHER: &str = "ssh -T -o BatchMode=yes";

/// This host, where no launcher is needed.
const HERE: &str = "localhost";

/// Ports that are given to jobs that name none: no system gives them away by itself.
const PORTS: std::ops::Range<u32> = 20_000..32_000;

/// The variables that say the same on all hosts as here.
const PASSED_ON: [&str; 2] = ["PLD_", "UCX_"];

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    name: String,
    slots: u32,
}

/// How a job is spread.
pub struct Hosts {
    hosts: Vec<Host>,
    launcher: Vec<String>,
    /// Lines are hosts of their own, whatever machine they name.
    named: bool,
    grace: Duration,
    address: String,
    secret: String,
}

/// What the user says about it.
pub struct Wishes<'a> {
    /// The file of hosts.
    pub file: &'a Path,
    /// Where rank 0 listens.
    pub address: Option<&'a str>,
    /// What starts ranks on other hosts.
    pub launcher: &'a str,
    /// Lines are hosts of their own.
    pub named: bool,
    /// How long ranks have to end.
    pub grace: Duration,
}

impl Hosts {
    /// Reads the file.
    pub fn read(wishes: &Wishes) -> Result<Self> {
        let text = fs::read_to_string(wishes.file).map_err(|cause| Failure::file(wishes.file, cause))?;
        let hosts = parse(&text).map_err(|why| Failure::usage(format!("{}: {why}", wishes.file.display())))?;
        let launcher: Vec<String> = wishes.launcher.split_whitespace().map(str::to_owned).collect();
        if launcher.is_empty() {
            return Err(Failure::usage("--launcher names no command"));
        }
        let address = match wishes.address {
            Some(address) => address.to_owned(),
            None => address(&hosts)?,
        };
        let (named, grace) = (wishes.named, wishes.grace);
        Ok(Self { hosts, launcher, named, grace, address, secret: secret()? })
    }

    /// How many ranks have a place.
    pub fn slots(&self) -> u32 {
        self.hosts.iter().map(|host| host.slots).sum()
    }

    /// The process of a rank: of this host, or one that starts it on another one.
    pub fn start(&self, rank: u32, nranks: u32, command: &[OsString], job: &OsStr) -> Started {
        let (line, host) = self.place(rank);
        let mut all: Vec<(OsString, OsString)> = vec![
            ("PLD_RANK".into(), rank.to_string().into()),
            ("PLD_WORLD_SIZE".into(), nranks.to_string().into()),
            ("PLD_JOB".into(), job.to_owned()),
            ("PLD_ADDRESS".into(), self.address.clone().into()),
        ];
        if self.named {
            all.push(("PLD_HOST".into(), format!("{}/{}", host.name, line + 1).into()));
        }
        if host.name == HERE {
            all.push(("PLD_SECRET".into(), self.secret.clone().into()));
            return Started { command: command.to_vec(), variables: all, input: None };
        }
        let mut passed_on: Vec<(OsString, OsString)> = env::vars_os().filter(|(name, _)| is_passed_on(name)).collect();
        passed_on.retain(|(name, _)| all.iter().all(|(given, _)| given != name));
        passed_on.extend(all);
        let mut launch: Vec<OsString> = self.launcher.iter().map(OsString::from).collect();
        launch.extend([host.name.clone().into(), script(command, &passed_on, self.grace)]);
        Started { command: launch, variables: Vec::new(), input: Some(format!("{}\n", self.secret)) }
    }

    /// Ranks fill the hosts in the order of the file.
    fn place(&self, rank: u32) -> (usize, &Host) {
        let mut first = 0;
        let is_here = |host: &Host| {
            first += host.slots;
            rank < first
        };
        let line = self.hosts.iter().position(is_here).expect("there are no more ranks than places");
        (line, &self.hosts[line])
    }
}

fn parse(text: &str) -> std::result::Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(name) = words.next() else { continue };
        let slots = words.next().map_or(Ok(1), str::parse::<u32>);
        let (Ok(slots @ 1..=256), None) = (slots, words.next()) else {
            return Err(format!("line {number} is {line:?}, not a host and how many ranks it takes, 1 to 256"));
        };
        if name.starts_with('-') {
            return Err(format!("line {number}: no host is called {name:?}"));
        }
        hosts.push(Host { name: name.to_owned(), slots });
    }
    if hosts.is_empty() { Err("it names no host".into()) } else { Ok(hosts) }
}

/// Rank 0's host, and a port that no other job of this moment is likely to have.
fn address(hosts: &[Host]) -> Result<String> {
    let first = &hosts[0].name;
    if first == HERE && hosts.iter().any(|host| host.name != HERE) {
        let message = "rank 0 runs on localhost, which is another one for every host: --address says where it listens";
        return Err(Failure::usage(message));
    }
    let port = PORTS.start + std::process::id() % (PORTS.end - PORTS.start);
    // The name of ssh may begin with a user.
    let name = first.rsplit_once('@').map_or(first.as_str(), |(_, name)| name);
    Ok(if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") })
}

fn secret() -> Result<String> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|cause| Failure { exit: Exit::Launch, message: format!("no secret can be made: {cause}") })?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_passed_on(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    PASSED_ON.iter().any(|begin| name.starts_with(begin)) && !name.starts_with("PLD_SECRET")
}

/// What the shell of another host does: it runs the command, in a group of its own, in the folder that this process is
/// in, and another process, that nothing here ends, ends the group when the standard input ends.
fn script(command: &[OsString], variables: &[(OsString, OsString)], grace: Duration) -> OsString {
    let mut inner = OsString::from("IFS= read -r PLD_SECRET || exit 255; export PLD_SECRET; ");
    if let Ok(folder) = env::current_dir() {
        inner.push("cd ");
        inner.push(quoted(folder.as_os_str()));
        inner.push(" || exit 126; ");
    }
    for (name, value) in variables {
        inner.push("export ");
        inner.push(name);
        inner.push("=");
        inner.push(quoted(value));
        inner.push("; ");
    }
    inner.push("exec 3<&0 </dev/null; setsid");
    for word in command {
        inner.push(" ");
        inner.push(quoted(word));
    }
    let grace = grace.as_secs_f64();
    inner.push(format!(
        " 3<&- & rank=$!; setsid sh -c 'cat <&3; kill -TERM -$0; sleep {grace}; kill -KILL -$0' $rank >/dev/null 2>&1 & \
         watch=$!; {{ wait $rank; code=$?; kill -KILL -$watch $watch; kill -KILL -$rank; }} 2>/dev/null; exit $code"
    ));
    let mut script = OsString::from("exec sh -c ");
    script.push(quoted(&inner));
    script
}

/// A word of a shell, whatever is in it.
fn quoted(word: &OsStr) -> OsString {
    let mut bytes = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => bytes.extend(b"'\\''"),
            byte => bytes.push(byte),
        }
    }
    bytes.push(b'\'');
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_host_and_its_slots() {
        let host = |name: &str, slots| Host { name: name.into(), slots };
        assert_eq!(parse("a 2\n\n# none\nuser@b # one\n"), Ok(vec![host("a", 2), host("user@b", 1)]));
        for wrong in ["", "a b", "a 0", "a 257", "a 1 2", "-oProxyCommand=x 1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rank_0_listens_on_the_first_host() {
        let of = |text: &str| address(&parse(text).unwrap());
        assert!(of("user@a 2\nb").unwrap().starts_with("a:2") || of("a 2").unwrap().starts_with("a:3"));
        assert!(of("fe80::1").unwrap().starts_with("[fe80::1]:"));
        assert!(of("localhost\nlocalhost").unwrap().starts_with("localhost:"));
        assert!(of("localhost\nb").is_err());
    }

    #[test]
    fn any_word_can_be_quoted() {
        assert_eq!(quoted(OsStr::new("it's $HOME")), OsString::from("'it'\\''s $HOME'"));
    }
}
