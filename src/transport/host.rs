//! Which host a process runs on.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::process::geteuid;

use crate::environment::HOST;

/// The host that the environment names; empty if it names none.
pub fn named() -> String {
    HOST.read().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The host of this process: processes of one can map each other's memory.
pub fn own() -> String {
    match named() {
        name if name.is_empty() => format!("{} of user {}", network(), geteuid().as_raw()),
        name => format!("host {name}"),
    }
}

/// The network of this process: processes of one reach each other at addresses that no other host has.
pub fn network() -> String {
    let namespace = fs::metadata("/proc/self/ns/net").map_or(0, |meta| meta.ino());
    format!("network {namespace} of system {}", system())
}

/// The running system: another one is another machine.
pub fn system() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
