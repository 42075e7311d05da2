//! The cards of this process's ranks: brought up together with all others, or not at all.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::agreement::{agree, all_succeed, at_rank};
use super::call::acl;
use super::card::{Card, process_device};
use super::comm::{self, Comm};
use super::compiler::Compiler;
use super::context::MAX_CARDS;
use super::windows::{self, DeviceWindows};
use super::{HcclOptions, cann};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::Transport;
use crate::transport::wire::{Put, Reader};

/// How long links to other cards may take to come up.
const LINK_TIME: Duration = Duration::from_secs(3);
/// Pauses between two looks at a link.
const LINK_PAUSE: Duration = Duration::from_millis(1);

/// The cards of this process's ranks.
pub struct Cards {
    // Dropped in this order.
    _comms: Vec<Comm>,
    local: Vec<Arc<Card>>,
    compiler: Compiler,
    /// The driver's number of each rank's device.
    devices: Vec<u32>,
    /// Some rank's card exports nothing to the fabric.
    pub(super) no_fabric: AtomicBool,
    /// Why a card of this process has no link to that of a rank; by rank, once links were made.
    unconnected: OnceLock<Vec<Option<String>>>,
    host: Box<dyn Transport>,
}

impl fmt::Debug for Cards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cards").field("local", &self.local).field("devices", &self.devices).finish_non_exhaustive()
    }
}

impl Cards {
    /// Opens the cards and brings HCCL up. Collective.
    ///
    /// # Safety
    /// The communicators of `options` are those of the devices beside them, and live as long as the result.
    pub(super) unsafe fn bring_up(host: Box<dyn Transport>, options: &HcclOptions) -> Result<Self> {
        let deadline = options.deadline;
        let opened = open(&*host, options);
        let hello =
            |(cards, _): &(Vec<Arc<Card>>, _)| cards.iter().map(|card| Hello::of(card, options).encode()).collect();
        let hellos = agree(&*host, opened.as_ref().map(hello).map_err(Error::clone), deadline)?;
        let (local, compiler) = opened?;
        let hellos = hellos.iter().map(|hello| Hello::decode(hello)).collect::<Result<Vec<_>>>()?;
        check(&hellos)?;
        let devices = hellos.iter().map(|hello| hello.device).collect();
        // SAFETY: as the caller says.
        let comms = unsafe { comms(&*host, &local, &options.comms, deadline) }?;
        let (no_fabric, unconnected) = Default::default();
        Ok(Self { _comms: comms, local, compiler, devices, no_fabric, unconnected, host })
    }

    /// The card of `rank`, which this process drives.
    pub fn card(&self, rank: u32) -> &Arc<Card> {
        &self.local[(rank - self.host.local().start) as usize]
    }

    /// What builds kernels for them.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Window memory of `bytes` a rank. Collective.
    pub fn allocate_windows(&self, bytes: usize, deadline: Instant) -> Result<DeviceWindows> {
        windows::allocate(self, bytes, deadline)
    }

    pub(super) fn host(&self) -> &dyn Transport {
        &*self.host
    }

    /// The cards of this process, in the order of its ranks.
    pub(super) fn local(&self) -> &[Arc<Card>] {
        &self.local
    }

    /// Does something for each rank of this process; an error says for which one it failed.
    pub(super) fn each<T>(&self, run: impl Fn(u32, &Arc<Card>) -> Result<T>) -> Result<Vec<T>> {
        each(&*self.host, &self.local, run)
    }

    /// Lets the cards of this process reach those of all ranks, where the fabric does not do it. A link that cannot be
    /// made is no error yet: memory may be reached in other ways, and mapping it tells.
    pub(super) fn connect(&self, deadline: Instant) {
        self.unconnected.get_or_init(|| {
            let end = deadline.min(Instant::now() + LINK_TIME);
            let peers = self.devices.iter().map(|device| {
                let links = self.local.iter().filter(|card| card.driver_device() != *device);
                links.filter_map(|card| link(card, *device, end).err()).map(|e| e.message).next()
            });
            peers.collect()
        });
    }

    /// Why there is no link to the card of `rank`, if one was tried.
    pub(super) fn unconnected(&self, rank: u32) -> Option<&str> {
        self.unconnected.get()?[rank as usize].as_deref()
    }
}

fn each<T>(host: &dyn Transport, local: &[Arc<Card>], run: impl Fn(u32, &Arc<Card>) -> Result<T>) -> Result<Vec<T>> {
    let results = host.local().zip(local).map(|(rank, card)| run(rank, card).map_err(|error| at_rank(rank, error)));
    results.collect()
}

/// This process's cards, and the compiler for them.
fn open(host: &dyn Transport, options: &HcclOptions) -> Result<(Vec<Arc<Card>>, Compiler)> {
    let (local, nranks) = (host.local(), host.nranks());
    let HcclOptions { devices, comms, .. } = options;
    let here = |message: String| Err(at_rank(local.start, Error::invalid(message)));
    if nranks as usize > MAX_CARDS {
        let message = format!("a world of {nranks} cards; the most is {MAX_CARDS}");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if devices.len() != local.len() || ![0, local.len()].contains(&comms.len()) {
        let (given, comms, ranks) = (devices.len(), comms.len(), local.len());
        return here(format!("{given} devices and {comms} communicators for {ranks} ranks of this process"));
    }
    if let Some(twice) = (1..devices.len()).find(|&at| devices[..at].contains(&devices[at])) {
        return here(format!("device {} for two ranks; each rank needs a card of its own", devices[twice]));
    }
    let found = cann().and_then(|cann| Ok((cann, Compiler::find()?)));
    let (cann, compiler) = found.map_err(|error| at_rank(local.start, error))?;
    let cards = local.zip(devices).map(|(rank, device)| Card::open(cann, *device).map_err(|e| at_rank(rank, e)));
    Ok((cards.collect::<Result<_>>()?, compiler))
}

/// What a rank says of its card.
struct Hello {
    device: u32,
    has_comm: bool,
}

impl Hello {
    fn of(card: &Card, options: &HcclOptions) -> Self {
        Self { device: card.driver_device(), has_comm: !options.comms.is_empty() }
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        [self.device, u32::from(self.has_comm)].into_iter().for_each(|value| body.put_u32(value));
        body
    }

    fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader(body);
        Ok(Self { device: reader.u32()?, has_comm: reader.u32()? != 0 })
    }
}

/// The same verdict on every rank.
fn check(hellos: &[Hello]) -> Result<()> {
    let said = |hello: &Hello| if hello.has_comm { "gives a communicator" } else { "gives no communicator" };
    match hellos.iter().position(|hello| hello.has_comm != hellos[0].has_comm) {
        Some(rank) => {
            let message = format!("rank 0 {} while rank {rank} {}", said(&hellos[0]), said(&hellos[rank]));
            Err(Error::new(ErrorKind::Mismatch, message))
        }
        None => Ok(()),
    }
}

/// Communicators: those of the engine, or new ones.
///
/// # Safety
/// As for [`Cards::bring_up`].
unsafe fn comms(
    host: &dyn Transport,
    local: &[Arc<Card>],
    engine: &[*mut c_void],
    deadline: Instant,
) -> Result<Vec<Comm>> {
    if !engine.is_empty() {
        let comms = each(host, local, |rank, card| {
            let raw = engine[(rank - host.local().start) as usize];
            // SAFETY: as the caller says.
            unsafe { Comm::of_engine(card, raw, rank, host.nranks()) }
        });
        return all_succeed(host, comms, deadline);
    }
    let roots = each(host, local, |rank, card| if rank == 0 { comm::root_info(card) } else { Ok(Vec::new()) });
    let roots = agree(host, roots, deadline)?;
    comm::init_all(host, local, &roots[0], deadline)
}

/// Lets `card` reach the card that the driver calls `device`.
fn link(card: &Card, device: u32, end: Instant) -> Result<()> {
    let cann = card.cann();
    let _entered = card.enter()?;
    let peer = process_device(cann, device)?;
    // SAFETY: any number is allowed; a wrong one is an error.
    unsafe { acl!(cann, aclrtDeviceEnablePeerAccess(peer, 0)) }?;
    loop {
        let mut status = 0;
        // SAFETY: the function writes a number.
        unsafe { acl!(cann, aclrtDevicePeerAccessStatus(card.device(), peer, &mut status)) }?;
        if status == 1 {
            return Ok(());
        }
        if Instant::now() > end {
            let message = format!("device {} has no link to device {peer}: see npu-smi info -t topo", card.device());
            return Err(Error::new(ErrorKind::Device, message));
        }
        std::thread::sleep(LINK_PAUSE);
    }
}
