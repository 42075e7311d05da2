use std::fs;
use std::io::{Write, stderr};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::spawn::is_alive;
use crate::support::{Folder, Ran, await_that, examples, finish, finish_child, pld, tool};

/// Stands in for ssh: notes what it is told, and runs it here.
const LAUNCHER: &str = "#!/bin/sh\nprintf '%s\\n' \"$*\" >> \"${0%/*}/told\"\nshift\nexec sh -c \"$*\"\n";

/// A folder with a launcher and a file of hosts.
fn folder(hosts: &str) -> Folder {
    let folder = Folder::new();
    folder.write("hosts", hosts);
    let launcher = folder.write("launcher", LAUNCHER);
    fs::set_permissions(launcher, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn command(folder: &Folder, options: &[&str], command: &[&str]) -> Command {
    let (hosts, launcher) = (folder.text("hosts"), folder.text("launcher"));
    let mut all = vec!["spawn", "--hosts", &hosts, "--launcher", &launcher];
    all.extend(options);
    all.push("--");
    all.extend(command);
    tool(all)
}

fn ranks(folder: &Folder, options: &[&str], script: &str) -> Ran {
    finish(command(folder, options, &["sh", "-c", script]), "")
}

#[test]
fn ranks_fill_the_hosts() {
    let folder = folder("# two hosts\nuser@one 2\n\ntwo   # of one rank\n");
    let script = "echo $PLD_RANK of $PLD_WORLD_SIZE at $PLD_ADDRESS, secret ${#PLD_SECRET}, host ${PLD_HOST-none} in $PWD; \
                  echo $PLD_SECRET >> $0; cat";
    let secrets = folder.text("secrets");
    let ran = finish(command(&folder, &[], &["sh", "-c", script, &secrets]), "");
    let out = ran.ok();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort();
    let address = lines[0].split(' ').nth(5).unwrap();
    let here = crate::support::programs();
    let wanted: Vec<String> =
        (0..3).map(|r| format!("[{r}] {r} of 3 at {address} secret 64, host none in {}", here.display())).collect();
    assert!(lines == wanted && address.starts_with("one:"), "{lines:?}");
    let secrets = fs::read_to_string(secrets).unwrap();
    let secrets: Vec<&str> = secrets.lines().collect();
    assert!(secrets.len() == 3 && secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
    // It is new for each job, and no command line has it.
    let told = fs::read_to_string(folder.path("told")).unwrap();
    let hosts: Vec<&str> = told.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(hosts.iter().filter(|host| **host == "user@one").count(), 2);
    assert!(hosts.contains(&"two") && !told.contains(secrets[0]), "{told}");
    ranks(&folder, &["-n", "1"], &format!("echo $PLD_SECRET > {}", folder.text("other"))).ok();
    assert_ne!(fs::read_to_string(folder.path("other")).unwrap().trim(), secrets[0]);
}

#[test]
fn hosts_have_names_and_addresses_if_wanted() {
    let folder = folder("localhost 1\nb 2");
    let script = "echo $PLD_HOST $PLD_ADDRESS $UCX_TLS \"$0\"";
    let mut command =
        command(&folder, &["--name-hosts", "--address", "[::1]:7", "-n", "2"], &["sh", "-c", script, "it's $1"]);
    command.env("UCX_TLS", "tcp, self");
    let out = finish(command, "").ok();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort();
    assert_eq!(lines, ["[0] localhost/1 [::1]:7 tcp, self it's $1", "[1] b/2 [::1]:7 tcp, self it's $1"]);
}

#[test]
fn the_first_failure_ends_all_hosts() {
    let folder = folder("a\nb 2");
    let pid = format!("echo $$ > {}.$PLD_RANK", folder.text("pid"));
    let meet = format!("for r in 0 1 2; do until [ -s {}.$r ]; do sleep 0.01; done; done", folder.text("pid"));
    let script = format!(
        "trap 'echo ended; exit 0' TERM; {pid}; {meet}; if [ $PLD_RANK = 1 ]; then exit 7; fi; \
                          while :; do sleep 0.05; done"
    );
    let ran = ranks(&folder, &[], &script);
    assert!(ran.code == Some(7) && ran.stderr.ends_with("error: rank 1 ended with exit code 7\n"), "{ran:?}");
    assert!(ran.stdout.contains("[0] ended\n") && ran.stdout.contains("[2] ended\n"), "{}", ran.stdout);
    // Who does not want to is killed there.
    let script = format!("{meet}; if [ $PLD_RANK = 0 ]; then kill -9 $$; fi; trap '' TERM; {pid}; sleep 1000");
    let ran = ranks(&folder, &["--grace", "0.2"], &script);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(137), "error: rank 0 ended with exit code 137\n"));
    let pid = |rank: u32| fs::read_to_string(folder.path(&format!("pid.{rank}"))).unwrap().trim().parse().unwrap();
    await_that("ranks are killed", || !is_alive(pid(1)) && !is_alive(pid(2)));
    assert_eq!(ranks(&folder, &[], "exit 0").code, Some(0));
    assert!(ranks(&folder, &["-n", "1"], "exec no-such-command").failed(127).contains("rank 0"));
}

#[test]
fn ranks_of_hosts_end_with_the_tool() {
    let folder = folder("a\nb");
    let script =
        format!("echo $$ > {0}.new.$PLD_RANK; mv {0}.new.$PLD_RANK {0}.$PLD_RANK; exec sleep 1000", folder.text("pid"));
    let mut child =
        command(&folder, &[], &["sh", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = |rank: u32| fs::read_to_string(folder.path(&format!("pid.{rank}"))).ok()?.trim().parse().ok();
    let mut pids: Option<Vec<i32>> = None;
    await_that("all ranks begin", || {
        pids = (0..2).map(pid).collect();
        pids.is_some()
    });
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    drop(finish_child(child));
    await_that("ranks of a killed job end", || pids.iter().flatten().all(|&pid| !is_alive(pid)));
}

#[test]
fn files_and_numbers_that_do_not_fit() {
    let folder = folder("a 2");
    assert!(ranks(&folder, &["-n", "3"], "").failed(2).contains("3 ranks, but the hosts take 2"));
    for (hosts, why) in [("", "no host"), ("a x", "line 1"), ("a\n-x", "line 2"), ("localhost\nb", "--address")] {
        folder.write("hosts", hosts);
        let error = ranks(&folder, &[], "").failed(2);
        assert!(error.contains(why), "{hosts}: {error}");
    }
    assert!(pld("spawn --hosts no-such-file -- true").failed(4).contains("no-such-file"));
    assert!(pld("spawn -n 2 --address a:1 -- true").failed(2).contains("--hosts"));
}

/// Two hosts of this machine, of two ranks each.
#[test]
fn ranks_of_hosts_join_a_world() {
    if !pld("info").ok().contains("ucx: available") {
        writeln!(stderr(), "skipped: there is no OpenUCX here").unwrap();
        return;
    }
    let folder = folder("localhost 2\nlocalhost 2\n");
    let sum = examples().join("allreduce.pld");
    let run = [env!("CARGO_BIN_EXE_pld"), "run", "--join", sum.to_str().unwrap()];
    let out = finish(command(&folder, &["--name-hosts"], &run), "").ok();
    let alone = finish(tool(["run", "-n", "4", sum.to_str().unwrap()]), "").ok();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort();
    let wanted: Vec<String> = alone.lines().enumerate().map(|(rank, line)| format!("[{rank}] {line}")).collect();
    assert_eq!(lines, wanted);
}
