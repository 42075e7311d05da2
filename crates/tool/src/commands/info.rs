//! `pld info`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::Args;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use pld::runtime::Info as Library;

use crate::console;
use crate::exit::{Exit, Result};

const EXAMPLES: &str = "\
Examples:
  pld info
  PLD_CHAOS=7 pld info --json";

/// Tells what the library finds here: version, CPUs, memory, transports, environment variables
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Info {
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// What windows and ranks can have of this machine; none where nothing limits them, or nobody tells.
struct Limits {
    numa_nodes: usize,
    memory_bytes: Option<u64>,
    available_bytes: Option<u64>,
    control_group_bytes: Option<u64>,
    address_space_bytes: Option<u64>,
    processes: Option<u64>,
    open_files: Option<u64>,
}

impl Info {
    /// Tells it.
    pub fn run(self) -> Result<Exit> {
        let (library, limits) = (Library::gather(), Limits::gather());
        let text = if self.json {
            format!("{:#}\n", json(&library, &limits))
        } else {
            format!("{library}\n{}", limits.text())
        };
        console::print(text)?;
        Ok(Exit::Ok)
    }
}

fn json(library: &Library, limits: &Limits) -> Value {
    let Library { version, architecture, instructions, cpus, transports, variables } = library;
    let transport = |(name, usable): &(&str, pld::error::Result<()>)| json!({ "name": name, "available": usable.is_ok(), "reason": usable.as_ref().err().map(ToString::to_string) });
    let variable = |(variable, value): &(pld::environment::Variable, Option<std::ffi::OsString>)| {
        json!({
            "name": variable.name,
            "value": value.as_ref().map(|value| value.to_string_lossy()),
            "default": variable.default,
            "origin": if value.is_some() { "environment" } else { "default" },
            "meaning": variable.meaning,
        })
    };
    json!({
        "version": version,
        "architecture": architecture,
        "instructions": instructions,
        "cpus": cpus,
        "numa_nodes": limits.numa_nodes,
        "memory_bytes": limits.memory_bytes,
        "available_bytes": limits.available_bytes,
        "control_group_bytes": limits.control_group_bytes,
        "address_space_bytes": limits.address_space_bytes,
        "processes": limits.processes,
        "open_files": limits.open_files,
        "transports": transports.iter().map(transport).collect::<Vec<_>>(),
        "variables": variables.iter().map(variable).collect::<Vec<_>>(),
    })
}

impl Limits {
    fn gather() -> Self {
        let nodes = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
        let is_node = |name: &str| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok());
        Self {
            numa_nodes: nodes.filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count().max(1),
            memory_bytes: memory("MemTotal:"),
            available_bytes: memory("MemAvailable:"),
            control_group_bytes: control_group(),
            address_space_bytes: getrlimit(Resource::As).current,
            processes: getrlimit(Resource::Nproc).current,
            open_files: getrlimit(Resource::Nofile).current,
        }
    }

    fn text(&self) -> String {
        let mib = |bytes: Option<u64>| bytes.map_or("no limit".into(), |bytes| format!("{} MiB", bytes >> 20));
        let number = |limit: Option<u64>| limit.map_or("no limit".into(), |limit| limit.to_string());
        let mut out = String::from("machine\n");
        let mut row = |name: &str, value: String| _ = writeln!(out, "  {name}: {value}");
        row("NUMA nodes", self.numa_nodes.to_string());
        row("memory", format!("{}, {} available", mib(self.memory_bytes), mib(self.available_bytes)));
        row("memory of the control group", mib(self.control_group_bytes));
        row("address space of a process", mib(self.address_space_bytes));
        row("processes of the user", number(self.processes));
        row("open files of a process", number(self.open_files));
        out
    }
}

/// A row of `/proc/meminfo`, in bytes.
fn memory(row: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(row))?;
    value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// The least limit of the control groups that this process is in.
fn control_group() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let limit = |group: &Path| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok();
    root.join(path).ancestors().take_while(|group| group.starts_with(root)).filter_map(limit).min()
}
