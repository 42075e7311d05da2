//! The libraries that a user would pick instead, as `peers/install.sh` installs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::limits;
use crate::rank::CPUS;
use crate::team::{self, Named, path_with};

/// How a peer's programs are started, up to `-n`; gets the folder of all peers.
type Launcher = fn(&Path) -> Command;

/// A library that is installed.
pub struct Peer {
    /// As it is called in the table.
    pub name: &'static str,
    launcher: Launcher,
    folder: PathBuf,
    program: PathBuf,
}

/// Every peer: its name, its program, its launcher.
const PEERS: [(&str, &str, Launcher); 4] = [
    ("Open MPI 4", "openmpi4", |_| {
        let mut command = Command::new("mpirun.openmpi");
        command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
        command
    }),
    ("Open MPI 5", "openmpi5", |peers| {
        let bin = peers.join("openmpi5/bin");
        let mut command = Command::new(bin.join("mpirun"));
        command.env("PATH", path_with(bin.as_os_str(), "PATH"));
        command.args(["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]);
        command
    }),
    ("MPICH", "mpich", |peers| {
        let mut command = Command::new(peers.join("mpich/bin/mpiexec"));
        command.args(["-bind-to", "none", "-launcher", "fork"]);
        command
    }),
    ("Intel MPI", "intel", |peers| {
        let root = peers.join("intel");
        let fabric = root.join("opt/mpi/libfabric/lib");
        let mut libraries = root.join("lib").into_os_string();
        libraries.push(":");
        libraries.push(&fabric);
        let mut command = Command::new(root.join("bin/mpiexec.hydra"));
        command
            .env("PATH", path_with(root.join("bin").as_os_str(), "PATH"))
            .env("LD_LIBRARY_PATH", libraries)
            .env("FI_PROVIDER_PATH", fabric.join("prov"))
            .env("I_MPI_ROOT", &root)
            .env("I_MPI_PIN", "0")
            .env("I_MPI_FABRICS", "shm")
            .env("I_MPI_HYDRA_BOOTSTRAP", "fork");
        command
    }),
];

/// It keeps its CPU while it waits. With more ranks than CPUs a call takes many milliseconds, and all of them minutes: one
/// shows it.
const GREEDY: (&str, &str) = ("MPICH", "barrier");

/// Names of all peers, installed or not.
pub fn names() -> impl Iterator<Item = &'static str> {
    PEERS.iter().map(|(name, ..)| *name)
}

/// The peers that are installed under `target`.
pub fn installed(target: &Path) -> Vec<Peer> {
    let folder = target.join("peers");
    let peer = |&(name, program, launcher): &(&'static str, &str, _)| {
        let program = folder.join("bin").join(program);
        program.exists().then(|| Peer { name, launcher, folder: folder.clone(), program })
    };
    PEERS.iter().filter_map(peer).collect()
}

impl Peer {
    /// Measures `series` with `ranks` ranks, each about `seconds` long.
    pub fn measure(&self, series: &[&str], ranks: u32, seconds: f64) -> Result<Vec<Named>, String> {
        let mut series = series.to_vec();
        if ranks > CPUS && self.name == GREEDY.0 {
            series.retain(|&series| series == GREEDY.1);
        }
        if series.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = (self.launcher)(&self.folder);
        command.args(["-n", &ranks.to_string()]).arg(&self.program).arg(series.join(",")).arg(seconds.to_string());
        team::run(command, limits::trip_between_cpus)
    }
}
