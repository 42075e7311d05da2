//! What the programs that start ranks tell them: rank, size of the world, and which job it is. The first launcher of
//! this table whose variables for rank and size are set counts:
//!
//! | launcher | rank, size, ranks or nodes here | the job |
//! | --- | --- | --- |
//! | by hand, or any | `PLD_RANK`, `PLD_WORLD_SIZE` | `PLD_JOB` |
//! | torchrun | `RANK`, `WORLD_SIZE`, `LOCAL_WORLD_SIZE` | `TORCHELASTIC_RUN_ID`, |
//! | | | `TORCHELASTIC_RESTART_COUNT`, `MASTER_ADDR`, `MASTER_PORT` |
//! | Open MPI | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, | `PMIX_NAMESPACE`, |
//! | | `OMPI_COMM_WORLD_LOCAL_SIZE` | `OMPI_MCA_ess_base_jobid` |
//! | MPICH, other PMI | `PMI_RANK`, `PMI_SIZE`, `MPI_LOCALNRANKS` | `PMI_JOBID` |
//! | Slurm | `SLURM_PROCID`, `SLURM_NTASKS`, | `SLURM_JOB_ID`, `SLURM_STEP_ID` |
//! | | `SLURM_STEP_NUM_NODES`, `SLURM_NNODES` | |
//!
//! `PLD_JOB` comes before the launcher's own names. Where nothing names the job, it is what one process has started:
//! the nearest ancestor whose environment has no rank. Empty variables count as not set.

use std::ffi::OsString;
use std::fs;

use crate::environment::{JOB, RANK, WORLD_SIZE};
use crate::error::{Error, Result};

/// The environment without empty variables, or a made-up one.
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
    Launcher { name: RANK.name, rank: RANK.name, nranks: WORLD_SIZE.name, local: None, nodes: &[], job: &[] },
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

/// What the environment says.
#[derive(Debug, PartialEq, Eq)]
pub struct Assignment {
    pub rank: u32,
    pub nranks: u32,
    /// Tells this job from others.
    pub job: String,
    /// The job has no name of its own, only the process that started it.
    pub by_ancestor: bool,
    /// What says that ranks run on other hosts, if anything does.
    pub elsewhere: Option<String>,
}

/// Reads the environment; `rank` and `nranks` come before what it says.
pub fn assignment(env: Environment<'_>, rank: Option<u32>, nranks: Option<u32>) -> Result<Assignment> {
    let launcher = LAUNCHERS.iter().find(|launcher| {
        let present = [launcher.rank, launcher.nranks].map(|name| env(name).is_some());
        // `RANK` alone may be anybody's; our own variables are a mistake if one is missing.
        if launcher.rank == RANK.name { present.contains(&true) } else { present == [true, true] }
    });
    let (rank, nranks, elsewhere) = match (rank, nranks, launcher) {
        (Some(rank), Some(nranks), _) => (rank, nranks, None),
        (_, _, Some(launcher)) => {
            let [rank_name, nranks_name] = [launcher.rank, launcher.nranks];
            let rank = rank.map_or_else(|| required(env, rank_name, nranks_name), Ok);
            let nranks = nranks.map_or_else(|| required(env, nranks_name, rank_name), Ok);
            (rank?, nranks?, elsewhere(env, launcher)?)
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
    let own = named(&[JOB.name]);
    let jobs = [own, launcher.map_or(String::new(), |launcher| named(launcher.job))];
    let named = jobs.into_iter().find(|job| !job.is_empty());
    let by_ancestor = named.is_none();
    let job = named.unwrap_or_else(|| starter(launcher.map(|launcher| launcher.rank)));
    Ok(Assignment { rank, nranks, job, by_ancestor, elsewhere })
}

/// What says that the launcher has placed ranks on other hosts.
fn elsewhere(env: Environment<'_>, launcher: &Launcher) -> Result<Option<String>> {
    let says = |what: String| format!("{} has started ranks on other hosts ({what})", launcher.name);
    if let Some(name) = launcher.local
        && let Some(local) = number(env, name)?
        && let Some(nranks) = number(env, launcher.nranks)?
        && local != nranks
    {
        return Ok(Some(says(format!("{name} is {local}, {} is {nranks}", launcher.nranks))));
    }
    let nodes = launcher.nodes.iter().find(|name| env(name).is_some());
    let Some(name) = nodes else { return Ok(None) };
    let nodes = number(env, name)?;
    Ok(nodes.filter(|nodes| *nodes != 1).map(|nodes| says(format!("{name} is {nodes}"))))
}

fn number(env: Environment<'_>, name: &str) -> Result<Option<u32>> {
    let Some(value) = env(name) else { return Ok(None) };
    let number = value.to_str().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| Error::invalid(format!("{name} is {value:?}, not a number of ranks")))
}

fn required(env: Environment<'_>, name: &str, companion: &str) -> Result<u32> {
    number(env, name)?.ok_or_else(|| Error::invalid(format!("{companion} is set but {name} is not")))
}

/// The process that started the ranks, told apart from later ones with the same id by its start time. Wrappers such as
/// a shell, `timeout` or a debugger around one rank have its variables too and are passed over.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn assign(variables: &[(&str, &str)], rank: Option<u32>, nranks: Option<u32>) -> Result<Assignment> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        assignment(&find, rank, nranks)
    }

    fn named(rank: u32, nranks: u32, job: &str) -> Result<Assignment> {
        Ok(Assignment { rank, nranks, job: job.into(), by_ancestor: false, elsewhere: None })
    }

    fn error(variables: &[(&str, &str)]) -> String {
        assign(variables, None, None).unwrap_err().message
    }

    const TORCHRUN: [(&str, &str); 7] = [
        ("RANK", "3"),
        ("WORLD_SIZE", "8"),
        ("LOCAL_WORLD_SIZE", "8"),
        ("TORCHELASTIC_RUN_ID", "none"),
        ("TORCHELASTIC_RESTART_COUNT", "1"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "29500"),
    ];
    const TORCHRUN_JOB: &str =
        "TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500";

    #[test]
    fn every_launcher() {
        assert_eq!(assign(&TORCHRUN, None, None), named(3, 8, TORCHRUN_JOB));
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
            ("PMIX_NAMESPACE", "prterun-host-77@1"),
        ];
        assert_eq!(assign(&open_mpi, None, None), named(1, 4, "PMIX_NAMESPACE=prterun-host-77@1"));
        let older = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_MCA_ess_base_jobid", "42")];
        assert_eq!(assign(&older, None, None), named(1, 4, "OMPI_MCA_ess_base_jobid=42"));
        let pmi = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2"), ("PMI_JOBID", "9.0")];
        assert_eq!(assign(&pmi, None, None), named(0, 2, "PMI_JOBID=9.0"));
        let slurm = [
            ("SLURM_PROCID", "5"),
            ("SLURM_NTASKS", "6"),
            ("SLURM_NNODES", "4"),
            ("SLURM_STEP_NUM_NODES", "1"),
            ("SLURM_JOB_ID", "100"),
            ("SLURM_STEP_ID", "2"),
        ];
        assert_eq!(assign(&slurm, None, None), named(5, 6, "SLURM_JOB_ID=100 SLURM_STEP_ID=2"));
        let own = [("PLD_RANK", "1"), ("PLD_WORLD_SIZE", "2"), ("PLD_JOB", "mine")];
        assert_eq!(assign(&own, None, None), named(1, 2, "PLD_JOB=mine"));
    }

    #[test]
    fn own_variables_and_options_come_first() {
        let mut variables = vec![("PLD_RANK", "1"), ("PLD_WORLD_SIZE", "2"), ("PLD_JOB", "mine")];
        variables.extend(TORCHRUN);
        assert_eq!(assign(&variables, None, None), named(1, 2, "PLD_JOB=mine"));
        assert_eq!(assign(&variables, Some(0), None), named(0, 2, "PLD_JOB=mine"));
        assert_eq!(assign(&variables[2..], Some(5), Some(6)), named(5, 6, "PLD_JOB=mine"));
        assert_eq!(assign(&TORCHRUN, Some(5), Some(6)), named(5, 6, TORCHRUN_JOB));
    }

    #[test]
    fn a_job_without_a_name_is_what_one_process_started() {
        let found = assign(&[("PLD_RANK", "1"), ("PLD_WORLD_SIZE", "2")], None, None).unwrap();
        assert!(found.by_ancestor);
        assert!(found.job.starts_with(&format!("started by process {} at ", std::os::unix::process::parent_id())));
        assert_eq!(assign(&[], Some(1), Some(2)).unwrap().job, found.job);
    }

    #[test]
    fn mistakes_name_the_variable() {
        assert_eq!(error(&[("PLD_RANK", "1")]), "PLD_RANK is set but PLD_WORLD_SIZE is not");
        assert_eq!(error(&[("PLD_WORLD_SIZE", "1")]), "PLD_WORLD_SIZE is set but PLD_RANK is not");
        for bad in ["", "-1", "two", "1.0", "4294967296"] {
            let variables = [("PLD_RANK", bad), ("PLD_WORLD_SIZE", "2")];
            assert_eq!(error(&variables), format!("PLD_RANK is {bad:?}, not a number of ranks"));
        }
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_NNODES", "x")];
        assert_eq!(error(&slurm), "SLURM_NNODES is \"x\", not a number of ranks");
        // `RANK` alone says nothing.
        assert!(error(&[("RANK", "1")]).starts_with("the environment names no rank and size of the world"));
    }

    #[test]
    fn ranks_on_other_hosts() {
        let launchers: [&[(&str, &str)]; 4] = [
            &[("RANK", "0"), ("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", "2")],
            &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")],
            &[("PMI_RANK", "0"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "2")],
            &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_NNODES", "2")],
        ];
        for variables in launchers {
            let elsewhere = assign(variables, None, None).unwrap().elsewhere.unwrap();
            assert!(
                elsewhere.contains("has started ranks on other hosts (") && elsewhere.contains(" is 2"),
                "{elsewhere}"
            );
            assert_eq!(assign(variables, Some(0), Some(2)).unwrap().elsewhere, None);
        }
    }
}
