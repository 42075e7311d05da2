//! How much memory there is. Reserving more than a limit allows would not return an error but end the process (the
//! kernel's out-of-memory killer, SIGXFSZ) or fail halfway, so limits are compared with the need before anything is
//! touched.

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
    /// The parts of all ranks that draw from this pool of memory: a host, or a cgroup there.
    Pool { host: u32, number: u64 },
}

/// A limit on memory, as one process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub scope: Scope,
    pub available: u64,
    /// What to look at, or change.
    pub name: String,
}

/// The number of the pool of all memory of a host.
const ALL: u64 = 0;
/// Ranks number their hosts when they compare limits.
const HERE: u32 = 0;

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

/// Bytes of a file for a part of `bytes`: whole pages.
pub fn file_size(bytes: usize) -> Result<u64> {
    let size = bytes.max(1).checked_next_multiple_of(rustix::param::page_size());
    let size = size.filter(|size| isize::try_from(*size).is_ok());
    size.map(|size| size as u64)
        .ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("{bytes} bytes exceed any memory")))
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
            pool @ Scope::Pool { .. } => sharers(pool),
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
                Scope::Pool { .. } => format!("{} ranks times {bytes} bytes need", sharers(*scope)),
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
        pools.push(Limit {
            scope: Scope::Pool { host: HERE, number: ALL },
            available: kib << 10,
            name: "MemAvailable of this host".into(),
        });
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

/// The limits of the cgroup `path` and those above it. In a container a path may be the host's, of which only the end
/// of the way up, the mount itself, is seen.
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
            let scope = Scope::Pool { host: HERE, number: pool };
            Some(Limit { scope, available, name: format!("{} of {}", files.limit, group.display()) })
        })
        .collect()
}

/// The number after `name` at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up `/`, removed in the end.
    struct Root(std::path::PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("pld-space-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }

        /// What is available, by the end of the limit's name.
        fn available(&self) -> Vec<(u64, String)> {
            let name = |limit: &Limit| limit.name.replace(&format!("{}/", self.0.display()), "");
            pools(&self.0).iter().map(|limit| (limit.available, name(limit))).collect()
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    5000 kB\n");

    #[test]
    fn cgroups_of_version_2() {
        let root = Root::new(
            "v2",
            &[
                MEMINFO,
                ("proc/self/cgroup", "0::/job/step\n"),
                ("sys/fs/cgroup/job/memory.max", "1000000\n"),
                ("sys/fs/cgroup/job/memory.current", "700000\n"),
                ("sys/fs/cgroup/job/memory.stat", "anon 1\nfile 400000\nactive_file 100000\ninactive_file 250000\n"),
                ("sys/fs/cgroup/job/step/memory.max", "max\n"),
                ("sys/fs/cgroup/job/step/memory.current", "600000\n"),
            ],
        );
        let expected = [(5_120_000, "MemAvailable of this host"), (650_000, "memory.max of sys/fs/cgroup/job")];
        assert_eq!(root.available(), expected.map(|(available, name)| (available, name.to_owned())));
    }

    #[test]
    fn cgroups_of_version_1_in_a_container() {
        let root = Root::new(
            "v1",
            &[
                MEMINFO,
                ("proc/self/cgroup", "5:devices:/\n4:memory:/docker/0123\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "80000\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "90000\n"),
                (
                    "sys/fs/cgroup/memory/memory.stat",
                    "inactive_file 1\ntotal_inactive_file 30000\ntotal_active_file 500\n",
                ),
            ],
        );
        let limit = (20_500, "memory.limit_in_bytes of sys/fs/cgroup/memory".to_owned());
        assert_eq!(root.available()[1..], [limit]);
    }

    #[test]
    fn what_cannot_be_read_does_not_limit() {
        assert_eq!(pools(Path::new("/is/not/there")), []);
    }

    fn limit(scope: Scope, available: u64, name: &str) -> Limit {
        Limit { scope, available, name: name.into() }
    }

    #[test]
    fn ranks_that_share_a_pool_count_together() {
        let pool = |number| Scope::Pool { host: 0, number };
        let host = limit(pool(ALL), 1000, "host");
        // Ranks 0 and 1 are in one cgroup, rank 2 in another.
        let rank = |cgroup| vec![host.clone(), limit(pool(cgroup), 300 * cgroup, "cgroup")];
        let ranks = [rank(1), rank(1), rank(2)];
        assert_eq!(check_ranks(150, &ranks), Ok(()));
        let error = check_ranks(151, &ranks).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoSpace);
        assert_eq!(error.message, "2 ranks times 151 bytes need 302 bytes, but only 300 are available (cgroup)");
        let ranks = [rank(10), rank(10), rank(20)];
        let error = check_ranks(400, &ranks).unwrap_err();
        assert_eq!(error.message, "3 ranks times 400 bytes need 1200 bytes, but only 1000 are available (host)");
    }

    #[test]
    fn pools_of_different_hosts_are_different() {
        let rank = |host| vec![limit(Scope::Pool { host, number: ALL }, 1000, "host")];
        assert_eq!(check_ranks(500, &[rank(0), rank(1), rank(1)]), Ok(()));
        let error = check_ranks(501, &[rank(0), rank(1), rank(1)]).unwrap_err();
        assert_eq!(error.message, "2 ranks times 501 bytes need 1002 bytes, but only 1000 are available (host)");
    }

    #[test]
    fn limits_of_one_rank() {
        let ranks = [vec![], vec![limit(Scope::Part, 99, "RLIMIT_FSIZE"), limit(Scope::Mapping, 250, "RLIMIT_AS")]];
        assert_eq!(check_ranks(99, &ranks), Ok(()));
        let error = check_ranks(100, &ranks).unwrap_err();
        assert_eq!(error.message, "the part of rank 1 needs 100 bytes, but only 99 are available (RLIMIT_FSIZE)");
        let ranks = [vec![], vec![limit(Scope::Mapping, 199, "RLIMIT_AS")]];
        let error = check_ranks(100, &ranks).unwrap_err();
        let mapping = "the mapping of 2 parts of 100 bytes in rank 1 needs 200 bytes";
        assert_eq!(error.message, format!("{mapping}, but only 199 are available (RLIMIT_AS)"));
    }

    #[test]
    fn sums_do_not_overflow() {
        let ranks = vec![vec![limit(Scope::Pool { host: 0, number: ALL }, u64::MAX - 1, "host")]; 3];
        let error = check_ranks(u64::MAX, &ranks).unwrap_err();
        assert!(error.message.contains("need 55340232221128654845 bytes"), "{error}");
    }
}
