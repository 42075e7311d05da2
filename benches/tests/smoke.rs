//! The whole program, quickly: every row runs and is written.

use std::process::Command;
use std::time::{Duration, Instant};

/// Far more than a quick run takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs the benchmark program and returns whether it succeeded, and what it printed.
fn run(arguments: &[&str]) -> (bool, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pld-bench"))
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let begin = Instant::now();
    while child.try_wait().expect("the program is a child").is_none() {
        if begin.elapsed() > DEADLINE {
            child.kill().expect("the program is a child");
            panic!("{arguments:?} not done after {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("the program has ended");
    (output.status.success(), String::from_utf8(output.stdout).expect("text"))
}

fn file(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.into_os_string().into_string().expect("a path in UTF-8")
}

#[test]
fn a_quick_run_writes_every_row() {
    let out = file("bench-quick.json");
    let (succeeded, table) = run(&["--quick", "--no-peers", "--out", &out]);
    assert!(succeeded, "{table}");
    let json = std::fs::read_to_string(&out).unwrap();
    let rows: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(&json).unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    for name in ROWS {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
        assert!(table.contains(&format!("| {name} ")), "{name} is missing in\n{table}");
    }
    for row in &rows {
        let fields: Vec<&str> = row.keys().map(String::as_str).collect();
        assert_eq!(fields, FIELDS, "{row:?}");
        // On a busy machine every sample of a row may be dropped; those that count have a range.
        if let Some(value) = row["value"].as_f64() {
            let (min, max) = (row["min"].as_f64().unwrap(), row["max"].as_f64().unwrap());
            assert!(min <= value && value <= max && row["runs"].as_u64() >= Some(1), "{row:?}");
        }
    }
}

const FIELDS: [&str; 11] =
    ["best_peer", "limit", "max", "met", "min", "name", "ratio", "runs", "target", "unit", "value"];

/// Rows that the documentation and the project's goals name.
const ROWS: [&str; 39] = [
    "limit/trip",
    "limit/memcpy_64m",
    "core/put_notify_8",
    "core/put_bw_64k",
    "core/put_bw_1m",
    "core/put_bw_64m",
    "core/launch_spmd",
    "core/launch_thread_2",
    "core/launch_notify_wait",
    "core/allreduce_256_f32",
    "core/compile_allreduce",
    "core/barrier_8",
    "core/wait_cpu",
    "tasks/moe_16",
    "tasks/moe_64",
    "tasks/moe_128",
    "tasks/step_launches",
    "tasks/routing",
    "tasks/overhead",
    "tasks/overhead_chain",
    "tasks/overhead_submitted",
    "tasks/overhead_held",
    "tasks/defer_64_cpu",
    "collectives/barrier/2",
    "collectives/allreduce/2/8",
    "collectives/allreduce/2/67108864",
    "collectives/allgather/2/67108864",
    "collectives/reduce_scatter/4/16384",
    "collectives/all_to_all/8/4194304",
    "collectives/all_to_all_v/2/64",
    "collectives/broadcast/2/16384",
    "collectives/barrier/8",
    "hosts/loopback/put_notify_8",
    "hosts/network/put_bw_1m",
    "hosts/network/allreduce_1024",
    "hosts/network/moe_16",
    "check/allreduce",
    "check/moe",
    "check/moe_memory",
];

#[test]
fn names_choose_rows() {
    let out = file("bench-names.json");
    let (succeeded, _) = run(&["--quick", "--no-peers", "--out", &out, "limit/wake_nobody"]);
    assert!(succeeded);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["name"], "limit/wake_nobody");
}

#[test]
fn mistakes_on_the_command_line_are_refused() {
    assert!(!run(&["--fast"]).0);
    assert!(!run(&["--quick", "--no-peers", "no/such/row"]).0);
    assert!(!run(&["--out"]).0);
}
