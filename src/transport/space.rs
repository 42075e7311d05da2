//! How much memory there is. Reserving more than a limit allows would not return an error but end the process (the
//! kernel's out-of-memory killer, SIGXFSZ) or fail halfway, so limits are compared with the need before anything is touched.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::error::{Error, ErrorKind, Result};

/// What a limit is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The part of one rank.
    Part,
    /// The parts of all ranks, mapped into one process.
    Mapping,
    /// The parts of all ranks that draw from this pool of memory: the host, or a cgroup.
    Pool(u64),
}

/// A limit on memory, as one process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub scope: Scope,
    pub available: u64,
    /// What to look at, or change.
    pub name: String,
}

/// The pool of all memory of this host.
const HOST: u64 = 0;

/// The limits of this process. What cannot be read does not limit.
pub fn limits() -> Vec<Limit> {
    let mut limits = pools(Path::new("/"));
    if let Some(available) = getrlimit(Resource::Fsize).current {
        limits.push(Limit { scope: Scope::Part, available, name: "RLIMIT_FSIZE".into() });
    }
    if let Some(limit) = getrlimit(Resource::As).current {
        let pages = fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').next()?.parse().ok());
        let used = pages.unwrap_or(0u64) * rustix::param::page_size() as u64;
        limits.push(Limit { scope: Scope::Mapping, available: limit.saturating_sub(used), name: "RLIMIT_AS".into() });
    }
    limits
}

/// `NoSpace` if this process may not make a file of `size`: trying would end it.
pub fn check_file(size: u64) -> Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if size > limit => {
            Err(no_space("a file of window memory needs", size.into(), limit, "RLIMIT_FSIZE"))
        }
        _ => Ok(()),
    }
}

/// `NoSpace` if one process cannot hold `nranks` parts of `bytes`.
pub fn check_process(bytes: usize, nranks: u32) -> Result<()> {
    let limits = limits().into_iter().filter(|limit| limit.scope != Scope::Part).collect::<Vec<_>>();
    let total = bytes as u128 * u128::from(nranks);
    match limits.into_iter().filter(|limit| total > u128::from(limit.available)).min_by_key(|limit| limit.available) {
        None => Ok(()),
        Some(Limit { available, name, .. }) => {
            Err(no_space(&format!("{nranks} ranks times {bytes} bytes need"), total, available, &name))
        }
    }
}

/// `NoSpace` if a part of `bytes` does not fit for every rank; `limits` are those of the ranks' processes, by rank.
pub fn check_ranks(bytes: u64, limits: &[Vec<Limit>]) -> Result<()> {
    let nranks = limits.len();
    let sharers = |pool| limits.iter().flatten().filter(|limit| limit.scope == pool).count();
    let needed = |limit: &Limit| {
        let parts = match limit.scope {
            Scope::Part => 1,
            Scope::Mapping => nranks,
            pool @ Scope::Pool(_) => sharers(pool),
        };
        u128::from(bytes) * parts as u128
    };
    let by_rank = limits.iter().enumerate().flat_map(|(rank, limits)| limits.iter().map(move |limit| (rank, limit)));
    let exceeded = by_rank.filter(|(_, limit)| needed(limit) > u128::from(limit.available));
    match exceeded.min_by_key(|(_, limit)| limit.available) {
        None => Ok(()),
        Some((rank, limit @ Limit { scope, available, name })) => {
            let who = match scope {
                Scope::Part => format!("the part of rank {rank} needs"),
                Scope::Mapping => format!("the mapping of {nranks} parts of {bytes} bytes in rank {rank} needs"),
                Scope::Pool(_) => format!("{} ranks times {bytes} bytes need", sharers(*scope)),
            };
            Err(no_space(&who, needed(limit), *available, name))
        }
    }
}

fn no_space(who_needs: &str, needed: u128, available: u64, name: &str) -> Error {
    let message = format!("{who_needs} {needed} bytes, but only {available} are available ({name})");
    Error::new(ErrorKind::NoSpace, message)
}

/// The pools that this process draws from: the host and its memory cgroups. `root` is `/` but in tests.
fn pools(root: &Path) -> Vec<Limit> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let mut pools = Vec::new();
    if let Some(kib) = field(&read("proc/meminfo"), "MemAvailable:") {
        pools.push(Limit { scope: Scope::Pool(HOST), available: kib << 10, name: "MemAvailable of this host".into() });
    }
    for line in read("proc/self/cgroup").lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        if controllers.is_empty() {
            for mount in ["sys/fs/cgroup", "sys/fs/cgroup/unified"] {
                pools.extend(cgroups(&root.join(mount), path, &VERSION_2));
            }
        } else if controllers.split(',').any(|controller| controller == "memory") {
            pools.extend(cgroups(&root.join("sys/fs/cgroup/memory"), path, &VERSION_1));
        }
    }
    pools
}

/// Files of a memory cgroup.
struct CgroupFiles {
    limit: &'static str,
    usage: &'static str,
    /// Counters in `memory.stat` of pages that the kernel gives back when memory is short.
    cache: [&'static str; 2],
}

const VERSION_2: CgroupFiles =
    CgroupFiles { limit: "memory.max", usage: "memory.current", cache: ["inactive_file ", "active_file "] };
const VERSION_1: CgroupFiles = CgroupFiles {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: ["total_inactive_file ", "total_active_file "],
};

/// The limits of the cgroup `path` and those above it. In a container a path may be the host's, of which only the end of
/// the way up, the mount itself, is seen.
fn cgroups(mount: &Path, path: &str, files: &CgroupFiles) -> Vec<Limit> {
    let leaf = mount.join(path.trim_start_matches('/'));
    let groups = leaf.ancestors().take_while(|group| group.starts_with(mount));
    groups
        .filter_map(|group| {
            let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
            let (limit, usage) = (number(files.limit)?, number(files.usage)?);
            let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
            let cache = files.cache.iter().filter_map(|name| field(&stat, name)).sum::<u64>();
            // The inode tells cgroups apart also where every container calls its own `/`.
            let pool = fs::metadata(group).ok()?.ino();
            let available = limit.saturating_sub(usage.saturating_sub(cache));
            Some(Limit { scope: Scope::Pool(pool), available, name: format!("{} of {}", files.limit, group.display()) })
        })
        .collect()
}

/// The number after `name` at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}
