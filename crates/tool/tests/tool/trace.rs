use std::fs;

use serde_json::Value;

use crate::support::{Folder, examples, finish, golden, pld, tool};

/// A trace of the library's own: of the guide's all-reduce.
fn traced(folder: &Folder, more: &str) -> String {
    let file = folder.text("run.json");
    let program = examples().join("allreduce.pld");
    let mut command = tool(format!("run {} -n 3 --launches 9{more}", program.display()).split(' '));
    finish(
        {
            command.env("PLD_TRACE", &file);
            command
        },
        "",
    )
    .ok();
    file
}

#[test]
fn the_critical_path_and_the_waits() {
    golden("trace.txt", &pld("trace trace.json").ok());
    golden("trace.json", &pld("trace trace.json --json").ok());
}

#[test]
fn swim_lanes() {
    let folder = Folder::new();
    let file = folder.text("lanes.svg");
    pld(&format!("trace trace.json --svg {file}")).ok();
    golden("trace.svg", &fs::read_to_string(file).unwrap());
}

#[test]
fn what_the_library_writes_can_be_read() {
    let folder = Folder::new();
    for more in ["", " --processes"] {
        let file = traced(&folder, more);
        let text = pld(&format!("trace {file} --launch 9")).ok();
        assert!(text.starts_with("l3_allreduce, launch 9 (9 in the trace), 3 ranks: "), "{text}");
        assert!(text.contains("reduce_step\n"), "{text}");
        let json: Value = serde_json::from_str(&pld(&format!("trace {file} --json")).ok()).unwrap();
        assert_eq!((&json["ranks"], &json["launches"]), (&3.into(), &9.into()));
        let path = json["critical_path"].as_array().unwrap();
        assert!(path.iter().any(|step| step["details"]["task"] == "reduce_step"), "{json:#}");
        let end = path.last().map(|step| step["begin_ns"].as_u64().unwrap() + step["ns"].as_u64().unwrap());
        assert_eq!(end, json["ns"].as_u64(), "the path ends where the launch does");
        for wait in json["waits"].as_array().unwrap().iter().filter(|wait| wait["op"] != "to begin") {
            assert_ne!(wait["by"], wait["rank"], "{wait}");
            assert!(wait["total_ns"].as_u64() >= wait["longest_ns"].as_u64());
        }
        let lanes = folder.text("lanes.svg");
        pld(&format!("trace {file} --svg {lanes}")).ok();
        let picture = fs::read_to_string(lanes).unwrap();
        assert!((0..3).all(|rank| picture.contains(&format!(">rank {rank}</text>"))), "{picture}");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = Folder::new();
    let missing = folder.text("missing.json");
    assert!(pld(&format!("trace {missing}")).failed(4).contains("missing.json"));
    let wrong = [
        ("not a list", "this is no trace"),
        ("[\nnothing,\n", "line 2: "),
        ("[\n", "no launch"),
        ("[\n{\"ph\":\"X\",\"cat\":\"launch\",\"name\":\"p\"},\n", "pid is missing"),
    ];
    for (text, message) in wrong {
        let file = folder.write("wrong.json", text);
        let stderr = pld(&format!("trace {file}")).failed(4);
        assert!(stderr.contains("wrong.json: ") && stderr.contains(message), "{stderr}");
    }
    assert!(pld("trace trace.json --launch 2").failed(4).contains("launch 2 is not in this trace"));
    assert!(pld("trace trace.json --program other").failed(4).contains("no launch"));
    assert!(pld("trace trace.json --svg /proc/nothing/x.svg").failed(4).contains("x.svg"));
}
