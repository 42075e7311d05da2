//! What the programs that start ranks tell them: rank, size of the world, and which job it is.
//!
//! | launcher | rank | ranks | ranks on this host | the job |
//! | --- | --- | --- | --- | --- |
//! | any | `PLD_RANK` | `PLD_WORLD_SIZE` | | `PLD_JOB`, which also overrides the ones below |
//! | torchrun | `RANK` | `WORLD_SIZE` | `LOCAL_WORLD_SIZE` | `TORCHELASTIC_RUN_ID`, `TORCHELASTIC_RESTART_COUNT`, `MASTER_ADDR`, `MASTER_PORT` |
//! | Open MPI | `OMPI_COMM_WORLD_RANK` | `OMPI_COMM_WORLD_SIZE` | `OMPI_COMM_WORLD_LOCAL_SIZE` | `PMIX_NAMESPACE`, `OMPI_MCA_ess_base_jobid` |
//! | MPICH, PMI | `PMI_RANK` | `PMI_SIZE` | `MPI_LOCALNRANKS` | `PMI_JOBID` |
//! | Slurm | `SLURM_PROCID` | `SLURM_NTASKS` | one node: `SLURM_STEP_NUM_NODES`, `SLURM_NNODES` | `SLURM_JOB_ID`, `SLURM_STEP_ID` |
//!
//! The first launcher of the table whose variables are set counts. Where nothing names the job, it is the process that
//! started the ranks: the nearest ancestor whose environment has no rank. Ranks meet in the directory `PLD_DIR`, else
//! `XDG_RUNTIME_DIR`, else `/tmp/pld-UID`.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use rustix::process::geteuid;

use super::place::{PREFIX, SUFFIX, is_private_directory};
use crate::error::{Error, ErrorKind, Result};

/// The environment, or a made-up one. Empty variables count as not set.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// How one launcher names things.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    nranks: &'static str,
    /// Number of ranks on this host.
    local: Option<&'static str>,
    /// Number of hosts, the first that is set.
    nodes: &'static [&'static str],
    /// What tells jobs apart, together.
    job: &'static [&'static str],
}

const LAUNCHERS: [Launcher; 5] = [
    Launcher { name: "PLD_RANK", rank: "PLD_RANK", nranks: "PLD_WORLD_SIZE", local: None, nodes: &[], job: &[] },
    Launcher {
        name: "torchrun",
        rank: "RANK",
        nranks: "WORLD_SIZE",
        local: Some("LOCAL_WORLD_SIZE"),
        nodes: &[],
        job: &["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"],
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        nranks: "OMPI_COMM_WORLD_SIZE",
        local: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
        nodes: &[],
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    },
    Launcher {
        name: "PMI",
        rank: "PMI_RANK",
        nranks: "PMI_SIZE",
        local: Some("MPI_LOCALNRANKS"),
        nodes: &[],
        job: &["PMI_JOBID"],
    },
    Launcher {
        name: "Slurm",
        rank: "SLURM_PROCID",
        nranks: "SLURM_NTASKS",
        local: None,
        nodes: &["SLURM_STEP_NUM_NODES", "SLURM_NNODES"],
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
];

/// Names the job, whoever started it.
const JOB: &str = "PLD_JOB";

/// What the environment says.
#[derive(Debug, PartialEq, Eq)]
pub struct Assignment {
    pub rank: u32,
    pub nranks: u32,
    /// Tells this job from others.
    pub job: String,
    /// The job has no name of its own, only the process that started it.
    pub by_ancestor: bool,
}

/// Reads the environment; `rank` and `nranks` come before what it says.
pub fn assignment(env: Environment<'_>, rank: Option<u32>, nranks: Option<u32>) -> Result<Assignment> {
    let launcher = LAUNCHERS.iter().find(|launcher| {
        let present = [launcher.rank, launcher.nranks].map(|name| env(name).is_some());
        // `RANK` alone may be anybody's; our own variables are a mistake if one is missing.
        if launcher.rank == "PLD_RANK" { present.contains(&true) } else { present == [true, true] }
    });
    let (rank, nranks) = match (rank, nranks, launcher) {
        (Some(rank), Some(nranks), _) => (rank, nranks),
        (_, _, Some(launcher)) => {
            require_one_host(env, launcher)?;
            let number_or = |given: Option<u32>, name| given.map_or_else(|| required(env, name), Ok);
            (number_or(rank, launcher.rank)?, number_or(nranks, launcher.nranks)?)
        }
        (_, _, None) => {
            let names = LAUNCHERS.iter().map(|launcher| format!("{}/{}", launcher.rank, launcher.nranks));
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(Error::invalid(format!(
                "the environment names no rank and size of the world (looked for {names})"
            )));
        }
    };
    let named = |names: &[&str]| {
        let values = names.iter().filter_map(|name| Some(format!("{name}={}", env(name)?.to_string_lossy())));
        values.collect::<Vec<_>>().join(" ")
    };
    let own = named(&[JOB]);
    let jobs = [own, launcher.map_or(String::new(), |launcher| named(launcher.job))];
    let named = jobs.into_iter().find(|job| !job.is_empty());
    let by_ancestor = named.is_none();
    let job = named.unwrap_or_else(|| starter(launcher.map(|launcher| launcher.rank)));
    Ok(Assignment { rank, nranks, job, by_ancestor })
}

/// `Unsupported` if the launcher has placed ranks on other hosts.
fn require_one_host(env: Environment<'_>, launcher: &Launcher) -> Result<()> {
    let elsewhere = |what: String| {
        let message = format!("{} has started ranks on other hosts ({what}); shm is for one host", launcher.name);
        Err(Error::new(ErrorKind::Unsupported, message))
    };
    if let Some(name) = launcher.local
        && let Some(local) = number(env, name)?
        && let Some(nranks) = number(env, launcher.nranks)?
        && local != nranks
    {
        return elsewhere(format!("{name} is {local}, {} is {nranks}", launcher.nranks));
    }
    if let Some(name) = launcher.nodes.iter().find(|name| env(name).is_some())
        && let Some(nodes) = number(env, name)?
        && nodes != 1
    {
        return elsewhere(format!("{name} is {nodes}"));
    }
    Ok(())
}

fn number(env: Environment<'_>, name: &str) -> Result<Option<u32>> {
    let Some(value) = env(name) else { return Ok(None) };
    let number = value.to_str().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| Error::invalid(format!("{name} is {value:?}, not a number of ranks")))
}

fn required(env: Environment<'_>, name: &str) -> Result<u32> {
    number(env, name)?.ok_or_else(|| Error::invalid(format!("{name} is not set, but its companion is")))
}

/// The process that started the ranks, told apart from later ones with the same id by its start time. Wrappers such as a
/// shell, `timeout` or a debugger around one rank have its variables too and are passed over.
fn starter(rank_variable: Option<&str>) -> String {
    let marker = rank_variable.map(|name| format!("{name}="));
    let is_rank = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |marker: &String| environment.split(|byte| *byte == 0).any(|v| v.starts_with(marker.as_bytes()));
        marker.as_ref().is_some_and(has)
    };
    let mut pid = std::os::unix::process::parent_id();
    while pid > 1 && is_rank(pid) {
        let Some((parent, _)) = parent_and_start(pid) else { break };
        pid = parent;
    }
    let start = parent_and_start(pid).map_or(0, |(_, start)| start);
    format!("started by process {pid} at {start}")
}

/// Parent and start time of a process.
fn parent_and_start(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name comes second, in parentheses, and may hold anything.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().collect::<Vec<_>>();
    Some((fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

/// The directory in which ranks meet.
pub fn directory(env: Environment<'_>) -> PathBuf {
    let set = |name| env(name).map(PathBuf::from);
    // `su` and containers leave other users' directories, or none, behind this variable.
    let session = || set("XDG_RUNTIME_DIR").filter(|dir| is_private_directory(dir));
    set("PLD_DIR").or_else(session).unwrap_or_else(|| format!("/tmp/pld-{}", geteuid().as_raw()).into())
}

/// Name of the socket of a job's world. Worlds of different sizes have different names, so that a rank of the next one may
/// come while the last one is still being made.
pub fn socket_name(job: &str, nranks: u32) -> String {
    format!("{PREFIX}{:016x}-{nranks}{SUFFIX}", hash(job.as_bytes()))
}

/// FNV-1a: the same in every build of this library.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
