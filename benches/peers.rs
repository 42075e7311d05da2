//! The libraries that a user would pick instead, as `peers/install.sh` installs them.

mod ucx;

use std::path::{Path, PathBuf};
use std::process::Command;

use pld_test_ranks::Hosts;

use crate::campaign::Setting;
use crate::limits;
use crate::link::Link;
use crate::rank::CPUS;
use crate::team::{self, Named, path_with};

/// How a peer's programs are started, up to `-n`; gets the folder of all peers.
type Launcher = fn(&Path) -> Command;

/// A library that is installed.
pub struct Peer {
    /// As it is called in the table.
    pub name: &'static str,
    program: Program,
}

enum Program {
    Mpi { launcher: Launcher, folder: PathBuf, program: PathBuf },
    Ucx,
}

/// Every MPI: its name, its program, its launcher.
const MPIS: [(&str, &str, Launcher); 4] = [
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

/// Also runs over links, where it is asked to use TCP between hosts.
const OVER_LINKS: &str = "Open MPI 4";

const UCX: &str = "UCX";

/// Names of all peers, installed or not.
pub fn names() -> impl Iterator<Item = &'static str> {
    MPIS.iter().map(|(name, ..)| *name).chain([UCX])
}

/// The peers that are installed, MPIs under `target`.
pub fn installed(target: &Path) -> Vec<Peer> {
    let folder = target.join("peers");
    let mpi = |&(name, program, launcher): &(&'static str, &str, _)| {
        let program = folder.join("bin").join(program);
        let exists = program.exists();
        exists.then(|| Peer { name, program: Program::Mpi { launcher, folder: folder.clone(), program } })
    };
    let ucx = ucx::installed().then_some(Peer { name: UCX, program: Program::Ucx });
    MPIS.iter().filter_map(mpi).chain(ucx).collect()
}

impl Peer {
    /// Measures those of `series` that it has, each about `seconds` long.
    pub fn measure(&self, series: &[&str], setting: Setting, seconds: f64) -> Result<Vec<Named>, String> {
        let is_mpi = matches!(self.program, Program::Mpi { .. });
        let has = |series: &&str| series.starts_with(ucx::SERIES) != is_mpi && self.bears(series, setting);
        let series: Vec<&str> = series.iter().copied().filter(has).collect();
        if series.is_empty() {
            return Ok(Vec::new());
        }
        let (ranks, link) = setting;
        match &self.program {
            Program::Ucx => ucx::measure(&series, link, seconds),
            Program::Mpi { launcher, folder, program } => {
                let hosts = link.hosts(ranks)?;
                let mut command = match link {
                    Link::Network { ranks: each } => over(&hosts, ranks / each, each, &launcher(folder)),
                    _ => launcher(folder),
                };
                command.args(["-n", &ranks.to_string()]).arg(program).arg(series.join(",")).arg(seconds.to_string());
                team::run(command, limits::trip_between_cpus)
            }
        }
    }

    fn bears(&self, series: &str, (ranks, link): Setting) -> bool {
        match link {
            Link::Windows => ranks <= CPUS || self.name != GREEDY.0 || series == GREEDY.1,
            Link::Network { .. } => self.name == OVER_LINKS || self.name == UCX,
            Link::Loopback => self.name == UCX,
        }
    }
}

/// Open MPI on the first of so many hosts, which starts `each` ranks on every one.
fn over(hosts: &Hosts, count: u32, each: u32, launcher: &Command) -> Command {
    const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/host.sh");
    let names: Vec<String> = (0..count).map(|host| hosts.address(host)).collect();
    let files = names.iter().zip(hosts.network().files()).map(|(name, file)| format!("{name}={file}"));
    let slots: Vec<String> = names.iter().map(|name| format!("{name}:{each}")).collect();
    let mut command = Command::new(AGENT);
    command.env("PLD_BENCH_HOSTS", files.collect::<Vec<_>>().join(" "));
    command.arg(&names[0]).arg(launcher.get_program()).args(launcher.get_args());
    command.args(["--mca", "plm_rsh_agent", AGENT, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self,vader"]);
    command.args(["--host", &slots.join(",")]);
    command
}
