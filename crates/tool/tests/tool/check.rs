use serde_json::Value;

use crate::support::{Folder, examples, finish, golden, pld, tool};

#[test]
fn findings_have_their_lines() {
    let ran = pld("check --launches 2 --persistent race.pld");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    golden("check-race.txt", &ran.stdout);
    golden("check-broken.txt", &pld("check broken.pld").stdout);
    golden("check-unsound.txt", &pld("check --verify-only unsound.pld").stdout);
    golden("check-deadlock.txt", &pld("check -n 2,3 deadlock.pld").stdout);
}

#[test]
fn colours_are_for_terminals() {
    let args = "check unsound.pld";
    let plain = pld(args).stdout;
    assert!(!plain.contains('\x1b'), "{plain}");
    let always = pld(&format!("--color always {args}")).stdout;
    golden("check-colours.txt", &always.replace('\x1b', "ESC"));
    let forced = |variable: &str, more: &[&str]| {
        let mut command = tool(more.iter().copied().chain(args.split(' ')));
        command.env(variable, "1");
        finish(command, "").stdout
    };
    assert_eq!(forced("CLICOLOR_FORCE", &[]), always);
    assert_eq!(forced("CLICOLOR_FORCE", &["--color", "never"]), plain);
    assert_eq!(forced("NO_COLOR", &[]), plain);
}

#[test]
fn a_summary_for_every_file() {
    let path = |name: &str| examples().join(name).to_str().unwrap().to_string();
    let files = format!("{} {}", path("04_barrier.pld"), path("allreduce.pld"));
    let out = pld(&format!("check -n 2 -n 3 --schedules 50 --launches 2 {files}")).ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[0].contains("04_barrier.pld: ok (2 ranks: all of ") && lines[0].contains("; 3 ranks: "), "{out}");
    assert_eq!(lines[2], "2 files: ok");
}

#[test]
fn json_is_for_scripts() {
    let ran = pld("check --launches 2 --persistent -n 2,3 --json race.pld");
    assert_eq!(ran.code, Some(1));
    let all: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings = all["findings"].as_array().unwrap();
    assert_eq!((all["errors"].as_u64(), all["warnings"].as_u64()), (Some(findings.len() as u64), Some(0)));
    let stale = findings.iter().find(|finding| finding["code"] == "PLD-C012").unwrap();
    assert_eq!((&stale["file"], &stale["line"]), (&"race.pld".into(), &14.into()));
    assert_eq!((&stale["severity"], &stale["ranks"]), (&"error".into(), &2.into()));
    assert_eq!(stale["snippet"], "wait arrived[src] >= 1");
    assert_eq!((stale["notes"].as_array().map(Vec::len), stale["hint"].is_string()), (Some(3), true));
    let explored = all["explored"].as_array().unwrap();
    assert_eq!(explored.iter().map(|run| run["ranks"].as_u64()).collect::<Vec<_>>(), [Some(2), Some(3)]);
    assert!(explored[0]["complete"] == true && explored[0]["schedules"].as_u64() > Some(1));

    // The schedule that a finding names shows it again, and is the only one.
    let schedule = stale["schedule"].as_str().unwrap();
    let again = pld(&format!("check --launches 2 --persistent --json --replay {schedule} race.pld"));
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert!(again["findings"].as_array().unwrap().iter().any(|finding| finding["code"] == "PLD-C012"));
    assert_eq!(again["explored"][0]["schedules"], 1);
}

#[test]
fn inputs_steer_the_exchange() {
    let moe = examples().join("moe_dispatch_combine.pld");
    let moe = moe.to_str().unwrap();
    let outside = pld(&format!("check --schedules 5 {moe}"));
    assert!(outside.code == Some(1) && outside.stdout.contains("PLD-C007"), "{outside:?}");
    let inside = pld(&format!("check --schedules 5 --set indices=0 --set tokens=3 {moe}")).ok();
    assert!(inside.contains("5 schedules"), "{inside}");
}

#[test]
fn standard_input_is_a_file_too() {
    let text = std::fs::read_to_string(crate::support::programs().join("unsound.pld")).unwrap();
    let ran = finish(tool(["check", "-"]), &text);
    assert!(ran.code == Some(1) && ran.stdout.contains(" --> <stdin>:5:5\n"), "{ran:?}");
}

#[test]
fn what_is_no_text_is_refused() {
    let folder = Folder::new();
    let no_text = folder.write("no_text.pld", b"program x\n\xff\xfe");
    let binary = folder.write("binary.pld", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0");
    let missing = folder.text("missing.pld");
    for command in ["check", "fmt", "print", "graph", "run", "bench"] {
        let stderr = pld(&format!("{command} {no_text}")).failed(4);
        assert_eq!(stderr, format!("error: {no_text}: line 2 is not UTF-8, so this is no program text\n"), "{command}");
        let stderr = pld(&format!("{command} {missing}")).failed(4);
        assert_eq!(stderr, format!("error: {missing}: No such file or directory (os error 2)\n"), "{command}");
        let stderr = pld(&format!("{command} {}", folder.text(""))).failed(4);
        assert!(stderr.contains("Is a directory"), "{command}: {stderr}");
        // Control characters are UTF-8, but nothing of the language.
        let ran = pld(&format!("{command} {binary}"));
        assert!(ran.code == Some(1) && format!("{ran:?}").contains("PLD-P001"), "{command}: {ran:?}");
    }
    // One bad file of many does not keep the others from being checked.
    let ran = pld(&format!("check {missing} unsound.pld"));
    assert!(ran.code == Some(4) && ran.stdout.contains("PLD-V030"), "{ran:?}");
}

#[test]
fn options_out_of_range_are_the_command_lines_mistake() {
    for args in ["-n 0", "-n 257", "--launches 0", "--schedules 0", "--replay x:1", "--time x", "--memory card"] {
        let stderr = pld(&format!("check {args} race.pld")).failed(2);
        assert!(stderr.starts_with("error: invalid value"), "{args}: {stderr}");
    }
    assert!(pld("check --replay first --exhaustive race.pld").failed(2).contains("cannot be used with"));
    assert!(pld("check").failed(2).contains("<FILE>"));
    assert!(pld("check --set nothing=1 race.pld").failed(2).contains("the program has xs, ys to set"));
}
