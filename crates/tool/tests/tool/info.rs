use serde_json::Value;

use crate::support::{finish, pld, tool};

#[test]
fn variables_with_their_origin() {
    let mut command = tool(["info", "--json"]);
    command.env("PLD_CHAOS", "7").env("PLD_JOB", "");
    let all: Value = serde_json::from_str(&finish(command, "").ok()).unwrap();
    let variable = |name: &str| {
        let variables = all["variables"].as_array().unwrap();
        variables.iter().find(|variable| variable["name"] == name).unwrap_or_else(|| panic!("{name} is missing"))
    };
    assert_eq!(
        (&variable("PLD_CHAOS")["value"], &variable("PLD_CHAOS")["origin"]),
        (&"7".into(), &"environment".into())
    );
    assert_eq!((&variable("PLD_JOB")["value"], &variable("PLD_JOB")["origin"]), (&Value::Null, &"default".into()));
    for name in ["PLD_RANK", "PLD_WORLD_SIZE", "PLD_DIR"] {
        assert!(variable(name)["meaning"].as_str().unwrap().len() > 10, "{name}");
    }
    assert_eq!(all["version"], env!("CARGO_PKG_VERSION"));
    assert!(all["cpus"].as_u64() > Some(0) && all["memory_bytes"].as_u64() > all["available_bytes"].as_u64());
    let transports: Vec<_> = all["transports"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(transports, ["thread", "shm", "ucx", "hccl"]);
}

#[test]
fn the_same_for_people() {
    let out = pld("info").ok();
    for part in
        [&format!("libpld {}", env!("CARGO_PKG_VERSION")), "thread: available", "PLD_RANK is not set", "NUMA nodes"]
    {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
}
