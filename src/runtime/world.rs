//! Worlds: all ranks of a launch.

use std::ffi::c_void;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::chaos;
use super::control::{Board, Home};
use super::core::{Core, deadline};
use super::cores::is_crowded;
use super::far;
use super::threads::{self, QUIT, spawn_core, spawn_rank};
use super::trace::{self, Trace};
use super::wait::WaitPolicy;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::Transport;
use crate::transport::hccl::{HcclOptions, HcclTransport};
use crate::transport::join::{JoinOptions, join};
use crate::transport::thread::ThreadTransport;

/// Largest world: the ranks of one host.
pub const MAX_RANKS: u32 = 256;

/// Most cores of a rank.
pub const MAX_CORES: u32 = 64;

/// Cards are given this long to come up, however short the waits in programs may be.
const BRING_UP: Duration = Duration::from_secs(120);

/// How long closing waits for threads that are still in a program. One that takes longer is left alone, and so is all
/// memory that it may touch.
const GRACE: Duration = Duration::from_secs(2);

/// The ranks of a world as cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardOptions {
    /// The device of each rank of this process; empty for devices with the numbers of the ranks.
    pub devices: Vec<i32>,
    /// The engine's communicator of each of them; empty to make communicators.
    pub comms: Vec<EngineComm>,
}

/// An `HcclComm` of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineComm(*mut c_void);

// SAFETY: communicators belong to no thread.
unsafe impl Send for EngineComm {}
// SAFETY: as above; only CANN looks into it.
unsafe impl Sync for EngineComm {}

impl EngineComm {
    /// A communicator.
    ///
    /// # Safety
    /// It is one of the device beside it in [`CardOptions`], has the ranks of the world, and lives as long as the world.
    pub unsafe fn new(comm: *mut c_void) -> Self {
        Self(comm)
    }
}

/// How a world behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldOptions {
    /// How long a rank waits for another in a launch before the launch fails. To compile, and to recover from a failed
    /// launch, ranks wait at least 10 s.
    pub timeout: Duration,
    /// How ranks wait.
    pub wait: WaitPolicy,
    /// Cores of each rank of this process, 1 to [`MAX_CORES`]. The first one is the launching thread.
    pub cores_per_rank: u32,
    /// Most submitted runs that have not ended; another one waits for the oldest. At least 1.
    pub runs: usize,
    /// Seed for holding ranks up at random places, to shake their timing. 0 for what the environment's `PLD_CHAOS`
    /// says, else for none.
    pub chaos_seed: u64,
    /// File that gets a trace of what the ranks do; none for what the environment's `PLD_TRACE` says, else for no trace.
    pub trace: Option<PathBuf>,
    /// Ranks are NPUs; none for ranks that run on CPUs.
    pub cards: Option<CardOptions>,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            wait: WaitPolicy::Auto,
            cores_per_rank: 1,
            runs: 64,
            chaos_seed: 0,
            trace: None,
            cards: None,
        }
    }
}

/// All ranks, as this process sees them.
pub struct World {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("transport", &self.core.transport.name())
            .field("nranks", &self.core.nranks)
            .field("local", &self.core.local)
            .finish_non_exhaustive()
    }
}

impl World {
    /// A world of `nranks` ranks, 1 to [`MAX_RANKS`], that this process drives: threads, of which rank 0 is the one that
    /// launches, or cards with such a thread each.
    pub fn create(nranks: u32, options: &WorldOptions) -> Result<Arc<World>> {
        check_size(nranks)?;
        let options = with_environment(options)?;
        Self::start(Box::new(ThreadTransport::new(nranks)?), None, &options, deadline(options.timeout))
    }

    /// A world in which this process is one rank. Collective.
    pub fn join(mut meet: JoinOptions, options: &WorldOptions) -> Result<Arc<World>> {
        let options = with_environment(options)?;
        meet.accumulators = far::accumulators();
        let transport = join(&meet)?;
        check_size(transport.nranks())?;
        let rank = transport.local().start;
        Self::start(transport, Some(rank), &options, meet.deadline)
    }

    fn start(
        transport: Box<dyn Transport>,
        rank: Option<u32>,
        options: &WorldOptions,
        deadline: Instant,
    ) -> Result<Arc<World>> {
        let (transport, deadline) = on_cards(transport, options, deadline)?;
        let (nranks, cores) = (transport.nranks(), options.cores_per_rank);
        if !(1..=MAX_CORES).contains(&cores) {
            return Err(Error::invalid(format!("ranks of {cores} cores; 1 to {MAX_CORES} are possible")));
        }
        if options.runs == 0 {
            return Err(Error::invalid("a world of 0 runs at a time; at least 1 is needed"));
        }
        // Before the next step that ranks take together, so that none writes to a file that the first rank of its host
        // has not begun.
        let home = home(&*transport);
        let first = transport.local().contains(&home.bells);
        let trace =
            options.trace.clone().map(|path| Trace::begin(path, first, transport.local(), cores)).transpose()?;
        let board = Board::new(transport.allocate(Board::bytes(nranks), deadline)?, nranks, home);
        let crowded = is_crowded(&*transport, cores, deadline)?;
        let fenced = !leave_fences_to_sleepers(&*transport, deadline)?;
        let core = Arc::new(Core::new(transport, board, rank, options, crowded, fenced, trace)?);
        let world = Arc::new(World { core, threads: Mutex::default() });
        if let (Some(far), Some(ear)) = (world.core.far(), &world.core.ear) {
            far.listen(ear.clone());
            let core = world.core.clone();
            world.spawn("pld-answers", move || core.answer_far())?;
        }
        // If one cannot be started, dropping the world ends the others.
        for rank in world.core.local.clone().skip(1) {
            world.keep(spawn_rank(&world.core, rank)?);
        }
        for rank in world.core.local.clone() {
            for number in 1..cores {
                world.keep(spawn_core(&world.core, rank, number)?);
            }
        }
        Ok(world)
    }

    /// Number of ranks.
    pub fn nranks(&self) -> u32 {
        self.core.nranks
    }

    /// How its ranks reach each other: `thread`, `shm` or `hccl`.
    pub fn transport(&self) -> &'static str {
        self.core.transport.name()
    }

    /// The rank that this process is; none if it drives all.
    pub fn rank(&self) -> Option<u32> {
        self.core.rank
    }

    /// Fails the world: every launch and wait on every rank ends with `Aborted`. From any thread, at any time.
    pub fn abort(&self, code: i32) -> Result<()> {
        self.core.fork.check()?;
        let who = self.rank().map(|r| format!(" by rank {r}")).unwrap_or_default();
        let message = format!("the world was aborted{who} with code {code}");
        self.core.fail(self.core.local.start, &Error::new(ErrorKind::Aborted, message));
        Ok(())
    }

    /// The error that ended the world, if one has: `PeerLost`, `Aborted` or `Internal`. Others end a launch only.
    pub fn failure(&self) -> Option<Error> {
        self.core.end()
    }

    /// Leaves the world: nothing can be launched in it by this process any more. Whatever it still runs is ended, as a
    /// failure of the world. Peers are not disturbed by a rank that leaves when it has done its part. Never hangs;
    /// calling it again does nothing. In a forked child it does nothing at all. The error is that of writing the trace.
    pub fn close(&self) -> Result<()> {
        let core = &self.core;
        if core.fork.is_child() || core.closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        if !core.is_idle() {
            let who = self.rank().map(|r| format!("rank {r}")).unwrap_or_else(|| "the engine".into());
            let message = format!("{who} closed the world during a launch");
            core.fail(core.local.start, &Error::new(ErrorKind::Aborted, message));
        }
        let deadline = Instant::now() + GRACE;
        core.runs.stop();
        core.flights.stop();
        if core.close(deadline) {
            core.handoff.post(QUIT);
        }
        core.local.clone().for_each(|rank| core.tasks(rank).stop());
        core.leave_far();
        core.local.clone().for_each(|rank| core.board.control(rank).leave());
        core.transport.leave();
        core.board.wake_all();

        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // The last handle of a world may be dropped by one of its own threads.
            let own = thread.thread().id() == std::thread::current().id();
            while !own && !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(100));
            }
            if thread.is_finished() {
                // What a thread may have panicked with is in the failure record.
                let _ = thread.join();
            }
        }
        core.trace.as_ref().map_or(Ok(()), Trace::write)
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Ends `thread` with the world.
    pub(super) fn keep(&self, thread: JoinHandle<()>) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Starts a thread that ends when the world does.
    pub(super) fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        threads::spawn(name.into(), body).map(|thread| self.keep(thread))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.core.fork.is_child() {
            // The threads are the parent's.
            let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(threads));
        } else {
            // Who wants to know has closed it.
            let _ = self.close();
        }
    }
}

/// The options, with what the environment says where they say nothing.
fn with_environment(options: &WorldOptions) -> Result<WorldOptions> {
    let (chaos_seed, trace) = (chaos::seed(options.chaos_seed)?, trace::path(options.trace.clone()));
    Ok(WorldOptions { chaos_seed, trace, ..options.clone() })
}

/// The same ranks as cards, if the options say so, and when to give up then.
fn on_cards(
    host: Box<dyn Transport>,
    options: &WorldOptions,
    before: Instant,
) -> Result<(Box<dyn Transport>, Instant)> {
    let Some(cards) = &options.cards else { return Ok((host, before)) };
    if host.far().is_some() {
        return Err(Error::new(ErrorKind::Unsupported, "cards of several hosts in one world"));
    }
    let deadline = before.max(deadline(BRING_UP));
    let devices = match &cards.devices[..] {
        [] => host.local().map(|rank| rank as i32).collect(),
        devices => devices.to_vec(),
    };
    let comms = cards.comms.iter().map(|comm| comm.0).collect();
    // SAFETY: whoever made the communicators has promised it.
    let transport = unsafe { HcclTransport::new(host, &HcclOptions { devices, comms, deadline }) };
    Ok((Box::new(transport?), deadline))
}

/// Where this process finds what lies at one rank only.
fn home(transport: &dyn Transport) -> Home {
    let Some(far) = transport.far() else { return Home::default() };
    let (rank, hosts) = (transport.local().start, far.hosts());
    let own = hosts[rank as usize];
    let bells = hosts.iter().position(|&host| host == own).map_or(rank, |first| first as u32);
    Home { record: rank, bells, far: hosts.iter().map(|&host| host != own).collect() }
}

/// Whether whoever goes to sleep makes the fences of those that may wake it. Collective: only if all can.
fn leave_fences_to_sleepers(transport: &dyn Transport, deadline: Instant) -> Result<bool> {
    let answers = transport.exchange(&[u8::from(pld_sync::distant::register())], deadline)?;
    Ok(answers.iter().all(|answer| answer == &[1]))
}

fn check_size(nranks: u32) -> Result<()> {
    if !(1..=MAX_RANKS).contains(&nranks) {
        return Err(Error::invalid(format!("a world of {nranks} ranks; 1 to {MAX_RANKS} are possible")));
    }
    Ok(())
}
