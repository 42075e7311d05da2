//! A program in a world: what `run` and `bench` have in common.

use std::env;
use std::ffi::{OsString, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;

use pld::ir::{OpKind, Program};
use pld::runtime::{Callback, CallbackContext, CompileOptions, Executable, MAX_CORES, MAX_RANKS, World, WorldOptions};
use pld::transport::join::{Bootstrap, JoinOptions};

use crate::exit::{Exit, Failure, Result};
use crate::ranks::{Job, Started};
use crate::seconds::seconds;
use crate::source::Source;
use crate::tensors::arguments::{Arguments, InputOptions};

/// Where and how a program runs.
#[derive(Args, Clone)]
pub struct LaunchOptions {
    /// The program; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Number of ranks [default: 2]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_RANKS as i64))]
    pub ranks: Option<u32>,
    /// The devices, one a rank. A CPU is as many devices as are wanted, so that 0,1 is -n 2
    #[arg(long, short = 'd', value_name = "LIST", value_delimiter = ',', conflicts_with = "ranks")]
    pub devices: Vec<u32>,
    /// Ranks are processes, not threads
    #[arg(long)]
    pub processes: bool,
    /// This process is one rank, as its environment says: under pld spawn, mpirun, torchrun, srun
    #[arg(long, conflicts_with_all = ["ranks", "devices", "processes"])]
    pub join: bool,
    /// Cores of each rank
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_CORES as i64))]
    pub cores: u32,
    #[command(flatten)]
    pub inputs: InputOptions,
    /// Windows keep their contents between launches
    #[arg(long)]
    pub persistent: bool,
    /// Hold ranks up at random places, with this seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub chaos: u64,
    /// How long a rank waits for another one until the launch fails
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30")]
    pub timeout: Duration,
    /// Functions of an engine, which a text does not have, do nothing
    #[arg(long)]
    pub stub_externs: bool,
    /// Where this process leaves its part of the results for the one that has started it
    #[arg(long, hide = true, requires = "join")]
    pub results: Option<PathBuf>,
}

/// A program that can be launched.
pub struct Prepared {
    /// As it was read.
    pub program: Program,
    /// Its world.
    pub world: Arc<World>,
    /// Compiled for it.
    pub executable: Arc<Executable>,
    /// What each launch is given.
    pub arguments: Arguments,
}

/// A job whose ranks have all done their part, in processes of their own.
pub struct Finished {
    /// What they have run.
    pub program: Program,
    /// How many they were.
    pub nranks: u32,
    /// Where their results are.
    pub folder: Folder,
}

impl LaunchOptions {
    /// Number of ranks that this process starts or drives.
    pub fn nranks(&self) -> Result<u32> {
        let mut devices = self.devices.clone();
        devices.sort_unstable();
        devices.dedup();
        match self.devices.len() {
            0 => Ok(self.ranks.unwrap_or(2)),
            count if count != devices.len() => Err(Failure::usage("-d names a device twice")),
            count if count > MAX_RANKS as usize => Err(Failure::usage(format!("-d names {count} devices"))),
            count => Ok(count as u32),
        }
    }

    /// Reads and compiles the program, and makes its arguments. Collective with --join.
    pub fn prepare(&self, timed: bool) -> Result<Prepared> {
        let source = Source::read(&self.file)?;
        // No rank waits for one that has no program.
        source.parsed()?;
        let world = match self.join {
            true => self.joined()?,
            false => World::create(self.nranks()?, &self.world_options())?,
        };
        let program = source.verified(Some(world.nranks()))?;
        let arguments = Arguments::new(&program, world.nranks(), world.rank(), &self.inputs)?;
        let options = CompileOptions {
            persistent: self.persistent,
            callbacks: self.callbacks(&program, &source.name)?,
            timed,
            ..CompileOptions::default()
        };
        let executable = Executable::compile(&program, &world, &options)?;
        Ok(Prepared { program, world, executable, arguments })
    }

    fn world_options(&self) -> WorldOptions {
        WorldOptions {
            timeout: self.timeout,
            cores_per_rank: self.cores,
            chaos_seed: self.chaos,
            ..WorldOptions::default()
        }
    }

    fn joined(&self) -> Result<Arc<World>> {
        let options = JoinOptions {
            agreement: format!("pld {}", env!("CARGO_PKG_VERSION")).into_bytes(),
            ..JoinOptions::new(Bootstrap::Env, Instant::now() + self.timeout)
        };
        Ok(World::join(options, &self.world_options())?)
    }

    /// Functions that do nothing, if that is wanted where functions are needed.
    fn callbacks(&self, program: &Program, name: &str) -> Result<Vec<(String, Callback)>> {
        let mut functions: Vec<String> = program.ops.values().filter_map(|op| function(program, &op.kind)).collect();
        functions.sort_unstable();
        functions.dedup();
        if !functions.is_empty() && !self.stub_externs {
            let message = format!(
                "{name} calls functions of an engine, which are not in its text: {}; with --stub-externs they do nothing",
                functions.join(", ")
            );
            return Err(Failure { exit: Exit::Launch, message });
        }
        let stub = Callback { function: do_nothing, user_data: std::ptr::null_mut() };
        Ok(functions.into_iter().map(|function| (function, stub)).collect())
    }

    /// Runs `command` of this tool once a rank, with these options and `more`. Each process has left its results in the
    /// folder if all went well.
    pub fn run_processes(&self, command: &str, more: &[OsString]) -> Result<Finished> {
        let nranks = self.nranks()?;
        let source = Source::read(&self.file)?;
        // What is wrong with the program is said once, not by every rank.
        let program = source.verified(Some(nranks))?;
        self.callbacks(&program, &source.name)?;
        let folder = Folder::new()?;
        let file = match source.path {
            Some(path) => path,
            None => {
                let path = folder.path.join("stdin.pld");
                fs::write(&path, source.text).map_err(|e| Failure::file(&path, e))?;
                path
            }
        };
        let exe = env::current_exe().map_err(|e| Failure::file(Path::new("pld"), e))?;
        let mut args: Vec<OsString> = vec![exe.into(), command.into(), file.into(), "--join".into()];
        let mut option = |name: &str, value: OsString| args.extend([name.into(), value]);
        option("--results", folder.path.clone().into());
        option("--cores", self.cores.to_string().into());
        option("--inputs", self.inputs.inputs.clone().into());
        option("--seed", self.inputs.seed.to_string().into());
        self.inputs.set.iter().for_each(|setting| option("--set", setting.into()));
        option("--chaos", self.chaos.to_string().into());
        option("--timeout", self.timeout.as_secs_f64().to_string().into());
        let flags = [("--persistent", self.persistent), ("--stub-externs", self.stub_externs)];
        args.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.into()));
        args.extend_from_slice(more);
        let job = Job { nranks, prefix: true, timeout: None, grace: Duration::from_secs(5) };
        let name = unique_name();
        match job.run(&|_| Started::here(&args, &name))?.report()? {
            Exit::Ok => Ok(Finished { program, nranks, folder }),
            exit => Err(Failure { exit, message: String::new() }),
        }
    }
}

/// The function that an op calls.
fn function(program: &Program, op: &OpKind) -> Option<String> {
    match op {
        OpKind::Extern { task, .. } => Some(program.tasks[*task].name.clone()),
        OpKind::HostTask { name, .. } => Some(name.clone()),
        _ => None,
    }
}

extern "C" fn do_nothing(_context: *const CallbackContext, _user_data: *mut c_void) -> i32 {
    0
}

/// A name that nothing else on this host has.
pub fn unique_name() -> OsString {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("pld-{}-{}", std::process::id(), now.as_nanos()).into()
}

/// A folder for a while.
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
}

impl Folder {
    fn new() -> Result<Self> {
        let path = env::temp_dir().join(unique_name());
        fs::create_dir(&path).map_err(|e| Failure::file(&path, e))?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody needs it any more, whatever is left of it.
        let _ = fs::remove_dir_all(&self.path);
    }
}
