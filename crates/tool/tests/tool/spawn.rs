use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::support::{Folder, Ran, await_that, examples, finish, finish_child, tool};

/// A script that only signals end.
const FOREVER: &str = "while :; do sleep 0.05; done";

/// Runs a script as `n` ranks.
fn ranks(n: u32, options: &[&str], script: &str) -> Ran {
    finish(command(n, options, script), "")
}

fn command(n: u32, options: &[&str], script: &str) -> std::process::Command {
    let n = n.to_string();
    let before = ["spawn", "-n", &n].into_iter().chain(options.iter().copied());
    tool(before.chain(["--", "sh", "-c", script]))
}

pub fn is_alive(pid: i32) -> bool {
    // A process that nobody waits for is one that has ended.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    state.is_some_and(|state| state != b'Z') && test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

/// Starts ranks that all have their `trap` before the script begins; the ids of their processes.
fn started(n: u32, options: &[&str], folder: &Folder, trap: &str, script: &str) -> (Child, Vec<i32>) {
    let home = folder.text("");
    let ranks: Vec<String> = (0..n).map(|rank| rank.to_string()).collect();
    let meet = format!("for r in {}; do until [ -e {home}/pid.$r ]; do sleep 0.01; done; done", ranks.join(" "));
    let script = format!(
        "{trap}; echo $$ > {home}/new.$PLD_RANK; mv {home}/new.$PLD_RANK {home}/pid.$PLD_RANK; {meet}; {script}"
    );
    let child = command(n, options, &script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = |rank: u32| fs::read_to_string(folder.path(&format!("pid.{rank}"))).ok()?.trim().parse().ok();
    let mut pids: Option<Vec<i32>> = None;
    await_that("all ranks begin", || {
        pids = (0..n).map(pid).collect();
        pids.is_some()
    });
    (child, pids.unwrap())
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn ranks_have_an_environment_and_a_prefix() {
    let script = "echo out $PLD_RANK of $PLD_WORLD_SIZE $PLD_JOB; echo err $PLD_RANK >&2; printf 'no end'; cat";
    let out = ranks(3, &[], script);
    assert_eq!(out.code, Some(0));
    let mut lines: Vec<&str> = out.stdout.lines().collect();
    lines.sort();
    let job = lines[1].rsplit(' ').next().unwrap();
    let wanted: Vec<String> =
        (0..3).flat_map(|r| [format!("[{r}] no end"), format!("[{r}] out {r} of 3 {job}")]).collect();
    assert!(lines == wanted && job.starts_with("pld-"), "{lines:?}");
    let mut errors: Vec<&str> = out.stderr.lines().collect();
    errors.sort();
    assert_eq!(errors, ["[0] err 0", "[1] err 1", "[2] err 2"]);
    let plain = ranks(2, &["--no-prefix"], "echo same");
    assert_eq!((plain.code, plain.stdout.as_str()), (Some(0), "same\nsame\n"));
    let wide = ranks(11, &[], "echo x").stdout;
    assert!(wide.contains("[ 0] x\n") && wide.contains("[10] x\n"), "{wide}");
    let coloured = ranks(1, &["--color", "always"], "echo x").stdout;
    assert_eq!(coloured, "\x1b[36m[0]\x1b[0m x\n");
}

#[test]
fn the_first_failure_ends_all() {
    let folder = Folder::new();
    let (child, pids) = started(3, &[], &folder, ":", "if [ $PLD_RANK = 1 ]; then exit 7; fi; sleep 1000");
    let ran = finish_child(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(7), "error: rank 1 ended with exit code 7\n"));
    assert!(!pids.into_iter().any(is_alive));
    let killed = ranks(2, &[], "if [ $PLD_RANK = 1 ]; then kill -9 $$; fi; sleep 1000");
    assert_eq!((killed.code, killed.stderr.as_str()), (Some(137), "error: rank 1 was ended by signal 9 (SIGKILL)\n"));
    assert_eq!(ranks(2, &[], "exit 0").code, Some(0));
}

#[test]
fn who_ignores_sigterm_is_killed() {
    let folder = Folder::new();
    let script = "if [ $PLD_RANK = 0 ]; then exit 3; fi; while :; do sleep 0.05; done";
    let (child, pids) = started(2, &["--grace", "0.2"], &folder, "trap '' TERM", script);
    assert_eq!(finish_child(child).code, Some(3));
    assert!(!is_alive(pids[1]));
}

#[test]
fn signals_are_passed_on() {
    for (number, signal_sent, name) in [(2, Signal::INT, "INT"), (15, Signal::TERM, "TERM"), (1, Signal::HUP, "HUP")] {
        let folder = Folder::new();
        let trap = format!("trap 'echo got {name}; exit 0' {name}");
        let (child, pids) = started(2, &[], &folder, &trap, FOREVER);
        signal(&child, signal_sent);
        let ran = finish_child(child);
        assert!(
            ran.code == Some(128 + number) && ran.stderr.ends_with(&format!("error: ended by SIG{name}\n")),
            "{ran:?}"
        );
        assert!(ran.stdout.contains("[0] got") && ran.stdout.contains("[1] got"), "{}", ran.stdout);
        assert!(!pids.into_iter().any(is_alive));
    }
}

#[test]
fn the_second_signal_kills() {
    let folder = Folder::new();
    let (mut child, pids) = started(2, &["--grace", "1000"], &folder, "trap 'echo first' INT", FOREVER);
    signal(&child, Signal::INT);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.ends_with("] first\n"), "{line}");
    signal(&child, Signal::INT);
    assert_eq!(finish_child(child).code, Some(130));
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn time_is_limited() {
    let ran = ranks(2, &["--timeout", "0.2"], "sleep 1000");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(124), "error: time is over\n"));
}

#[test]
fn nothing_is_left_behind() {
    // What a rank has started ends with the rank, and ranks end with the tool, however it ends.
    let folder = Folder::new();
    let script = format!("sleep 1000 & echo $! > {}/child.$PLD_RANK; exit 0", folder.text(""));
    assert_eq!(ranks(2, &[], &script).code, Some(0));
    for rank in 0..2 {
        let child = fs::read_to_string(folder.path(&format!("child.{rank}"))).unwrap().trim().parse().unwrap();
        await_that("the rank's own child ends", || !is_alive(child));
    }
    let folder = Folder::new();
    let (mut child, pids) = started(2, &[], &folder, ":", "exec sleep 1000");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    await_that("ranks of a killed job end", || !pids.iter().any(|&pid| is_alive(pid)));
}

#[test]
fn commands_that_cannot_be_run() {
    let ran = finish(tool(["spawn", "-n", "1", "--", "no-such-command"]), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(127), ""));
    assert!(ran.stderr.starts_with("[0] error: no-such-command: No such file"), "{}", ran.stderr);
    assert_eq!(finish(tool(["spawn", "-n", "1", "--", "/"]), "").code, Some(126));
    assert_eq!(finish(tool(["spawn", "-n", "1"]), "").code, Some(2));
    assert_eq!(finish(tool(["spawn", "--", "true"]), "").code, Some(2));
}

#[test]
fn a_reader_that_goes_ends_all() {
    let folder = Folder::new();
    let (mut child, pids) = started(2, &[], &folder, ":", "while :; do echo line; sleep 0.01; done");
    drop(child.stdout.take());
    assert_eq!(finish_child(child).code, Some(141));
    assert!(!pids.into_iter().any(is_alive));
    // The same for what prints more than a pipe holds.
    let mut child = tool(["print", "--after", "expand_collectives", "-n", "8", "-"]);
    let many: String =
        (0..400).map(|i| format!("entry e{i}(x: tensor[4] f32 in) {{\n  at t {{ s = x[0] }}\n}}\n")).collect();
    let text = format!("program many\n{many}host () {{}}\n");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let ran = finish_child(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(141), ""));
}

#[test]
fn ranks_join_a_world() {
    let sum = examples().join("allreduce.pld");
    let run = [env!("CARGO_BIN_EXE_pld"), "run", "--join", sum.to_str().unwrap()];
    let out = finish(tool(["spawn", "-n", "4", "--"].into_iter().chain(run)), "").ok();
    let alone = finish(tool(["run", "-n", "4", sum.to_str().unwrap()]), "").ok();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort();
    let wanted: Vec<String> = alone.lines().enumerate().map(|(rank, line)| format!("[{rank}] {line}")).collect();
    assert_eq!(lines, wanted);
    // One that is lost ends the launch of the others, and the job tells which one it was.
    let script = format!("if [ $PLD_RANK = 2 ]; then exit 9; fi; exec {}", run.join(" "));
    let ran = ranks(3, &[], &script);
    assert!(ran.code == Some(9) && ran.stderr.contains("rank 2 ended with exit code 9"), "{ran:?}");
}
