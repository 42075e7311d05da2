use serde_json::Value;

use crate::support::{examples, finish, pld, tool};

fn allreduce() -> String {
    examples().join("allreduce.pld").to_str().unwrap().into()
}

/// No time is expected, only how they are related.
#[test]
fn figures_of_every_rank() {
    for more in ["", " --processes"] {
        let out = pld(&format!("bench {} -n 3 --rounds 20 --warmup 2 --json{more}", allreduce())).ok();
        let all: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&all["ranks"], &all["rounds"], &all["warmup"]), (&3.into(), &20.into(), &2.into()));
        let figures = |value: &Value| ["min", "median", "max"].map(|name| value[name].as_u64().unwrap());
        let slowest = figures(&all["slowest_ns"]);
        let ranks = all["per_rank"].as_array().unwrap();
        assert_eq!(ranks.iter().map(|rank| rank["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
        for rank in ranks {
            let rank = figures(&rank["ns"]);
            assert!(rank.is_sorted() && (0..3).all(|i| rank[i] <= slowest[i]), "{out}");
        }
        assert!(figures(&all["start_skew_ns"]).is_sorted(), "{out}");
    }
}

#[test]
fn the_headline_is_the_slowest_rank() {
    let out = pld(&format!("bench {} --rounds 3", allreduce())).ok();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "l3_allreduce, 2 ranks, 3 rounds, in microseconds");
    let begins = ["", "slowest rank ", "rank 0 ", "rank 1 ", "start skew "];
    assert!(lines[1..].iter().zip(begins).all(|(line, begin)| line.starts_with(begin)) && lines.len() == 6, "{out}");
}

#[test]
fn a_rank_of_a_job_measures_itself() {
    let command =
        ["spawn", "-n", "2", "--", env!("CARGO_BIN_EXE_pld"), "bench", "--join", "--rounds", "5", &allreduce()];
    let out = finish(tool(command), "").ok();
    assert!(out.contains("[0] rank 0 ") && out.contains("[1] rank 1 ") && !out.contains("[0] rank 1 "), "{out}");
}
