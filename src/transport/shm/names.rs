//! Where the ranks of a job meet if nobody says so: in the directory `PLD_DIR`, else `XDG_RUNTIME_DIR`, else
//! `/tmp/pld-UID`, at a socket that is named after the job.

use std::path::PathBuf;

use rustix::process::geteuid;

use super::place::{PREFIX, SUFFIX, is_private_directory};
use crate::environment::DIR;
use crate::transport::launcher::Environment;

/// The directory in which ranks meet.
pub fn directory(env: Environment<'_>) -> PathBuf {
    let set = |name| env(name).map(PathBuf::from);
    // `su` and containers leave other users' directories, or none, behind this variable.
    let session = || set("XDG_RUNTIME_DIR").filter(|dir| is_private_directory(dir));
    set(DIR.name).or_else(session).unwrap_or_else(|| format!("/tmp/pld-{}", geteuid().as_raw()).into())
}

/// Name of the socket of a job's world. Worlds of different sizes have different names, so that a rank of the next one
/// may come while the last one is still being made.
pub fn socket_name(job: &str, nranks: u32) -> String {
    format!("{PREFIX}{:016x}-{nranks}{SUFFIX}", hash(job.as_bytes()))
}

/// FNV-1a: the same in every build of this library.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_ranks_meet() {
        let dir = |variables: &'static [(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            directory(&find)
        };
        let default = PathBuf::from(format!("/tmp/pld-{}", geteuid().as_raw()));
        assert_eq!(dir(&[("PLD_DIR", "/somewhere"), ("XDG_RUNTIME_DIR", "/proc")]), PathBuf::from("/somewhere"));
        assert_eq!(dir(&[("XDG_RUNTIME_DIR", "/is/not/there")]), default);
        assert_eq!(dir(&[("XDG_RUNTIME_DIR", "/proc")]), default);
        assert_eq!(dir(&[]), default);
    }

    #[test]
    fn names_tell_jobs_and_sizes_apart() {
        let names = [("a", 2), ("b", 2), ("a", 3), ("", 2)].map(|(job, nranks)| socket_name(job, nranks));
        assert_eq!(names[0], "pld-af63dc4c8601ec8c-2.sock");
        assert!((0..4).all(|i| (0..i).all(|j| names[i] != names[j])));
    }
}
