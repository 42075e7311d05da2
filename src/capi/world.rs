//! Worlds: the ranks that launch together.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{self, EngineComm, WaitPolicy};
use crate::transport::join::{self, Bootstrap, JoinOptions, Reach};

use super::guard;
use super::log::{Log, UserData, pld_log_fn, pld_log_level, pld_log_level_t};
use super::options::{WorldOptions, WorldOptionsOut};
use super::pointer::{Devices, Text, World};
use super::reserve;
use super::status::pld_status_t;

/// Memory that a world takes at most, besides windows and threads.
const MEMORY: usize = 1 << 20;

/// A world. Any number of threads may use it at once, until one destroys it.
pub struct pld_world_t {
    pub(super) world: Arc<runtime::World>,
    pub(super) log: Arc<Log>,
}

/// How ranks reach each other's memory: a value of `enum pld_transport`.
pub type pld_transport_t = u32;

/// Values of `pld_transport_t`.
#[repr(C)]
pub enum pld_transport {
    /// `PLD_TRANSPORT_THREAD` for `pld_world_create`, `PLD_TRANSPORT_AUTO` for `pld_world_join`.
    PLD_TRANSPORT_DEFAULT = 0,
    /// Ranks are threads of this process.
    PLD_TRANSPORT_THREAD = 1,
    /// Ranks are processes of one host, one process a rank.
    PLD_TRANSPORT_SHM = 2,
    /// Ranks are Ascend NPUs of one host: one process a card with `pld_world_join`, or one process that drives several
    /// with `pld_world_create`. Tensors are memory of the cards.
    PLD_TRANSPORT_HCCL = 3,
    /// Ranks are processes that all reach each other over OpenUCX, also within a host: to try out on one machine what
    /// several hosts do.
    PLD_TRANSPORT_UCX = 4,
    /// Ranks are processes of any hosts: those of one host map each other's memory, and others reach each other over
    /// OpenUCX. Where all run on one host, as `PLD_TRANSPORT_SHM`.
    PLD_TRANSPORT_AUTO = 5,
}

/// How ranks wait for each other: a value of `enum pld_wait_policy`.
pub type pld_wait_policy_t = u32;

/// Values of `pld_wait_policy_t`.
#[repr(C)]
pub enum pld_wait_policy {
    /// Spins a little, yields, then sleeps; with more ranks than cores yields at once.
    PLD_WAIT_POLICY_AUTO = 0,
    /// Spins: the fastest, if every rank has a core of its own.
    PLD_WAIT_POLICY_SPIN = 1,
    /// Gives the core to others between looks.
    PLD_WAIT_POLICY_YIELD = 2,
    /// Sleeps at once: uses no CPU.
    PLD_WAIT_POLICY_SLEEP = 3,
}

fn wait_policy(raw: pld_wait_policy_t) -> Option<WaitPolicy> {
    match raw {
        0 => Some(WaitPolicy::Auto),
        1 => Some(WaitPolicy::Spin),
        2 => Some(WaitPolicy::Yield),
        3 => Some(WaitPolicy::Sleep),
        _ => None,
    }
}

/// The engine's own all-gather, called by every rank of `pld_world_join` the same number of times in the same order:
/// `all` receives every rank's `size` bytes, in rank order, `mine` being this rank's. Returns 0 for success. It must end
/// by itself.
pub type pld_exchange_fn =
    Option<extern "C" fn(mine: *const c_void, all: *mut c_void, size: usize, user_data: *mut c_void) -> i32>;

/// Options of a world. `pld_world_options_init` sets the size; 0 is the default everywhere else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_world_options_t {
    /// `sizeof(pld_world_options_t)`.
    pub struct_size: u32,
    /// The transport; default by the function that is called: one for CPUs.
    pub transport: pld_transport_t,
    /// Number of ranks. `pld_world_create` needs it; 0 in `pld_world_join` takes it and the rank from the environment.
    pub nranks: u32,
    /// This process's rank, if `nranks` is not 0. Join only.
    pub rank: u32,
    /// How ranks wait.
    pub wait: pld_wait_policy_t,
    /// Messages up to this level are given to `log`.
    pub log_level: pld_log_level_t,
    /// How long joining, compiling, a wait or a launch may take before it ends with `PLD_ERR_TIMEOUT`, in
    /// microseconds; default 30 seconds. Cards have at least 2 minutes to come up.
    pub timeout_us: u64,
    /// How ranks of `pld_world_join` find each other: `env:` (default) by the variables of the launcher; `file:PATH`, a
    /// path that is the same on all ranks and new for each job, for ranks of one host; or `tcp:HOST:PORT`, where rank 0
    /// listens, with a secret that all ranks know: `PLD_SECRET`, or a file that `PLD_SECRET_FILE` names. `HOST` is a name
    /// or an address of rank 0's host; IPv6 stands in brackets.
    pub bootstrap: Text,
    /// Or by this exchange, instead of `bootstrap`; then `nranks` and `rank` must be set, as for `tcp:`.
    pub exchange: pld_exchange_fn,
    /// Passed to `exchange`.
    pub exchange_user_data: *mut c_void,
    /// Gets messages; default none.
    pub log: pld_log_fn,
    /// Passed to `log`.
    pub log_user_data: *mut c_void,
    /// Cores of each rank that this process drives, 1 to 64; default 1. The first is the launching thread; others are
    /// threads that share the rank's tasks.
    pub cores_per_rank: u32,
    /// Most submitted runs that have not ended; `pld_submit` waits while there are as many. Default 64.
    pub max_runs: u32,
    /// Other than 0 shakes the timing: ranks are held up at random places, drawn with this seed. 0 for the seed that the
    /// environment's `PLD_CHAOS` names, else for none.
    pub chaos_seed: u64,
    /// A file that gets a trace of what the ranks do, when a launch has failed and when the world is destroyed:
    /// `docs/tracing.md`. NULL for the file that the environment's `PLD_TRACE` names, else for no trace. The same for all
    /// ranks; worlds that live side by side need files of their own.
    pub trace: Text,
    /// `PLD_TRANSPORT_HCCL`: the ACL device of each rank that this process drives. NULL for devices with the numbers of the
    /// ranks.
    pub devices: Devices,
    /// Number of `devices`.
    pub ndevices: u32,
    /// `PLD_TRANSPORT_HCCL`, join only: an `HcclComm` of the engine with the same ranks, which it destroys after the world.
    /// NULL to make one.
    pub comm: *mut c_void,
    /// How long, in microseconds, a process that is not of this host may be silent until its rank counts as lost
    /// (`PLD_ERR_PEER_LOST`); default 5 seconds. Join only.
    pub peer_timeout_us: u64,
}

impl pld_world_options_t {
    fn timeout(&self) -> Duration {
        if self.timeout_us == 0 { Duration::from_secs(30) } else { Duration::from_micros(self.timeout_us) }
    }

    fn runtime(&self) -> Result<runtime::WorldOptions> {
        let unknown = || Error::invalid(format!("wait policy {} is unknown", self.wait));
        let default = runtime::WorldOptions::default();
        Ok(runtime::WorldOptions {
            timeout: self.timeout(),
            wait: wait_policy(self.wait).ok_or_else(unknown)?,
            cores_per_rank: self.cores_per_rank.max(1),
            runs: if self.max_runs == 0 { default.runs } else { self.max_runs as usize },
            chaos_seed: self.chaos_seed,
            trace: self.trace.get().map(|_| self.trace.str("trace")).transpose()?.map(PathBuf::from),
            cards: self.cards()?,
        })
    }

    fn log(&self) -> Result<Arc<Log>> {
        if self.log_level > pld_log_level::PLD_LOG_INFO as pld_log_level_t {
            return Err(Error::invalid(format!("log level {} is unknown", self.log_level)));
        }
        Ok(Arc::new(Log::new(self.log, self.log_level, self.log_user_data)))
    }

    fn cards(&self) -> Result<Option<runtime::CardOptions>> {
        let count = self.ndevices as usize;
        let devices = self
            .devices
            .get(count)
            .ok_or_else(|| Error::invalid(format!("devices is NULL, but ndevices is {count}")))?;
        if self.transport != pld_transport::PLD_TRANSPORT_HCCL as pld_transport_t {
            return match devices.is_empty() && self.comm.is_null() {
                true => Ok(None),
                false => Err(Error::invalid("devices and comm are for PLD_TRANSPORT_HCCL")),
            };
        }
        // SAFETY: a communicator of the rank's device with the world's ranks, the header demands.
        let comms = (!self.comm.is_null()).then(|| unsafe { EngineComm::new(self.comm) });
        Ok(Some(runtime::CardOptions { devices: devices.to_vec(), comms: comms.into_iter().collect() }))
    }

    /// The transport is one that `function` makes.
    fn check_transport(&self, made: &[pld_transport_t], function: &str, other: &str) -> Result<()> {
        match self.transport {
            0 => Ok(()),
            raw if made.contains(&raw) => Ok(()),
            1..=5 => Err(Error::invalid(format!("{function} does not make worlds of this transport; {other} does"))),
            raw => Err(Error::invalid(format!("transport {raw} is unknown"))),
        }
    }

    /// Which ranks map each other's memory.
    fn reach(&self) -> Reach {
        match self.transport {
            2 | 3 => Reach::Shm,
            4 => Reach::Ucx,
            _ => Reach::Auto,
        }
    }

    fn silence(&self) -> Duration {
        if self.peer_timeout_us == 0 { join::SILENCE } else { Duration::from_micros(self.peer_timeout_us) }
    }

    /// What ranks compare when they meet.
    fn agreement(&self) -> String {
        let on = if self.transport == pld_transport::PLD_TRANSPORT_HCCL as pld_transport_t { " on cards" } else { "" };
        format!("libpld {}{on}", env!("CARGO_PKG_VERSION"))
    }

    fn bootstrap(&self) -> Result<Bootstrap> {
        let text = match self.bootstrap.get() {
            Some(_) if self.exchange.is_some() => {
                return Err(Error::invalid("bootstrap and exchange are both set: one of them says how ranks meet"));
            }
            Some(_) => self.bootstrap.str("bootstrap")?,
            None => "env:",
        };
        if let Some(exchange) = self.exchange {
            if self.nranks == 0 {
                return Err(Error::invalid("exchange is set, but nranks is 0"));
            }
            return Ok(exchange_bootstrap(exchange, UserData(self.exchange_user_data)));
        }
        match text.split_once(':') {
            Some(("env", "")) => Ok(Bootstrap::Env),
            Some(("file", path)) if !path.is_empty() => Ok(Bootstrap::File(PathBuf::from(path))),
            Some(("tcp", address)) => self.at(text, address),
            _ => Err(Error::invalid(format!("bootstrap {text:?} is neither env:, file:PATH nor tcp:HOST:PORT"))),
        }
    }

    /// At an address: for worlds that may have ranks on several hosts.
    fn at(&self, text: &str, address: &str) -> Result<Bootstrap> {
        if self.reach() == Reach::Shm {
            let message = format!("bootstrap {text:?} is for PLD_TRANSPORT_AUTO and PLD_TRANSPORT_UCX");
            return Err(Error::invalid(message));
        }
        if self.nranks == 0 {
            return Err(Error::invalid(format!("bootstrap {text:?} needs nranks and rank")));
        }
        let (host, port) = join::host_and_port(address)
            .ok_or_else(|| Error::invalid(format!("bootstrap {text:?} is not tcp:HOST:PORT")))?;
        Ok(Bootstrap::Tcp { host, port })
    }
}

fn exchange_bootstrap(
    exchange: extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void) -> i32,
    user_data: UserData,
) -> Bootstrap {
    Bootstrap::Exchange(Box::new(move |mine, all| {
        match exchange(mine.as_ptr().cast(), all.as_mut_ptr().cast(), mine.len(), user_data.get()) {
            0 => Ok(()),
            code => Err(Error::new(ErrorKind::Io, format!("the exchange of {} bytes returned {code}", mine.len()))),
        }
    }))
}

/// Sets all options to their defaults. `size` is `sizeof(pld_world_options_t)` in the caller's header. Local; callable
/// from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_options_init(options: WorldOptionsOut, size: usize) -> pld_status_t {
    guard::status(|| options.init(size))
}

/// Makes a world whose ranks are threads of this process, `options->nranks` of them: one launch runs all ranks, and
/// takes tensors with the leading rank axis. The environment is read here and never again. The caller owns the world and
/// destroys it with `pld_world_destroy`. Local; callable from any thread.
///
/// Errors: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`, `PLD_ERR_NO_SPACE`, `PLD_ERR_IO`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_create(
    options: WorldOptions,
    out_world: Option<&mut MaybeUninit<*mut pld_world_t>>,
) -> pld_status_t {
    guard::status(|| {
        let out = out_world.ok_or_else(|| Error::invalid("out_world is NULL"))?;
        let options = options.read()?;
        options.check_transport(&[1, 3], "pld_world_create", "pld_world_join")?;
        let log = options.log()?;
        reserve::ensure(MEMORY)?;
        let world = runtime::World::create(options.nranks, &options.runtime()?);
        out.write(made(world, log)?);
        Ok(())
    })
}

/// Makes this process one rank of a world of processes. Collective: all ranks call it, and it blocks until they have
/// met. The environment is read here and never again. A launch takes this rank's own slice of each tensor. The caller
/// owns the world and destroys it with `pld_world_destroy`. Callable from any thread.
///
/// Errors, the same on every rank that can still be reached: `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`,
/// `PLD_ERR_UNAVAILABLE` if ranks would need OpenUCX and a host has none, `PLD_ERR_TIMEOUT` if ranks are missing, `PLD_ERR_MISMATCH`, `PLD_ERR_PEER_LOST`, `PLD_ERR_NO_SPACE`, `PLD_ERR_IO`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_join(
    options: WorldOptions,
    out_world: Option<&mut MaybeUninit<*mut pld_world_t>>,
) -> pld_status_t {
    guard::status(|| {
        let out = out_world.ok_or_else(|| Error::invalid("out_world is NULL"))?;
        let options = options.read()?;
        options.check_transport(&[2, 3, 4, 5], "pld_world_join", "pld_world_create")?;
        let log = options.log()?;
        reserve::ensure(MEMORY)?;
        let given = options.nranks > 0;
        if given && options.rank >= options.nranks {
            return Err(Error::invalid(format!("rank {} is not one of {} ranks", options.rank, options.nranks)));
        }
        let join = JoinOptions {
            rank: given.then_some(options.rank),
            nranks: given.then_some(options.nranks),
            agreement: options.agreement().into_bytes(),
            reach: options.reach(),
            silence: options.silence(),
            ..JoinOptions::new(options.bootstrap()?, Instant::now() + options.timeout())
        };
        let world = runtime::World::join(join, &options.runtime()?);
        out.write(made(world, log)?);
        Ok(())
    })
}

fn made(world: Result<Arc<runtime::World>>, log: Arc<Log>) -> Result<*mut pld_world_t> {
    let world = world.inspect_err(|error| log.error("no world", error))?;
    log.info(|| match world.rank() {
        Some(rank) => format!("world of {} processes joined as rank {rank}", world.nranks()),
        None => format!("world of {} threads created", world.nranks()),
    });
    Ok(Box::into_raw(Box::new(pld_world_t { world, log })))
}

/// Leaves the world and frees it; NULL is ignored. Local: a rank that leaves after its part of every launch disturbs
/// nobody; others that still need it get `PLD_ERR_PEER_LOST`. Never blocks for long. Executables and runs that are
/// still there may only be destroyed afterwards. Nobody else may use the world any more.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_destroy(w: Option<Box<pld_world_t>>) {
    guard::value((), || {
        if let Some(w) = w {
            match w.world.close() {
                Ok(()) => w.log.info(|| "world left".into()),
                Err(error) => w.log.error("world left", &error),
            }
        }
        Ok(())
    });
}

/// Ends what all ranks are doing, and all they will do: every call on the world returns `PLD_ERR_ABORTED` with `code` in
/// its message, on every rank. Local, does not block; callable from any thread at any time.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_abort(w: World, code: i32) -> pld_status_t {
    guard::status(|| w.get("the world")?.world.abort(code))
}

/// The number of ranks; 0 for NULL. Local; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_nranks(w: Option<&pld_world_t>) -> u32 {
    guard::value(0, || Ok(w.map_or(0, |w| w.world.nranks())))
}

/// This process's rank; -1 if it drives all ranks, or for NULL. Local; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_rank(w: Option<&pld_world_t>) -> i32 {
    guard::value(-1, || Ok(w.and_then(|w| w.world.rank()).map_or(-1, |rank| rank as i32)))
}

/// `PLD_OK`, or the error that ended the world, with its report as this thread's last error: `PLD_ERR_PEER_LOST`,
/// `PLD_ERR_ABORTED` or `PLD_ERR_INTERNAL`. A world that has ended stays so: destroy it and make another. Other errors
/// end a launch only. Local, does not block; callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_world_status(w: Option<&pld_world_t>) -> pld_status_t {
    guard::status(|| {
        let w = w.ok_or_else(|| Error::invalid("the world is NULL"))?;
        w.world.failure().map_or(Ok(()), Err)
    })
}
