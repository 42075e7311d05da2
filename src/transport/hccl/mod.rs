//! Ranks have cards: Ascend NPUs, through CANN's ACL and HCCL. What ranks tell each other goes through the host, by
//! another transport; window memory and kernels are on the cards. CANN is loaded when it is first wanted.

mod agreement;
mod call;
mod card;
mod cards;
mod comm;
pub mod compiler;
mod context;
mod kernel;
mod memory;
mod stream;
mod windows;

use std::ffi::c_void;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use hccl_sys::Cann;

pub use self::card::Card;
pub use self::cards::Cards;
pub use self::context::{CONTEXT_BYTES, MAX_CARDS, comm_context};
pub use self::kernel::{Binary, Function};
pub use self::memory::DeviceMemory;
pub use self::stream::{Event, Stream};
pub use self::windows::DeviceWindows;
use super::{Memory, Transport};
use crate::environment;
use crate::error::{Error, ErrorKind, Result};

/// Options of [`HcclTransport::new`].
#[derive(Clone, Debug)]
pub struct HcclOptions {
    /// The device of each rank of this process, as the process counts them.
    pub devices: Vec<i32>,
    /// The engine's own `HcclComm` of each rank of this process; none if the world makes its own.
    pub comms: Vec<*mut c_void>,
    /// When to give up.
    pub deadline: Instant,
}

/// The transport of a world whose ranks have cards.
#[derive(Debug)]
pub struct HcclTransport {
    cards: Cards,
}

impl HcclTransport {
    /// Brings up the cards of the ranks that `host` connects. Collective: all ranks succeed, or all have the error.
    ///
    /// # Safety
    /// The communicators of the options are those of the devices beside them, and live as long as the result.
    pub unsafe fn new(host: Box<dyn Transport>, options: &HcclOptions) -> Result<Self> {
        // SAFETY: as the caller says.
        unsafe { Cards::bring_up(host, options) }.map(|cards| Self { cards })
    }
}

impl Transport for HcclTransport {
    fn name(&self) -> &'static str {
        "hccl"
    }

    fn nranks(&self) -> u32 {
        self.cards.host().nranks()
    }

    fn local(&self) -> Range<u32> {
        self.cards.host().local()
    }

    fn exchange(&self, mine: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        self.cards.host().exchange(mine, deadline)
    }

    /// Memory of the host.
    fn allocate(&self, bytes: usize, deadline: Instant) -> Result<Memory> {
        self.cards.host().allocate(bytes, deadline)
    }

    fn lost(&self) -> Option<u32> {
        self.cards.host().lost()
    }

    fn leave(&self) {
        self.cards.host().leave();
    }

    fn cards(&self) -> Option<&Cards> {
        Some(&self.cards)
    }
}

/// An error if no world of cards can be made here: CANN, or its compiler, is missing.
pub fn check_available() -> Result<()> {
    cann()?;
    compiler::Compiler::find().map(drop)
}

/// The functions of the machine's CANN.
fn cann() -> Result<&'static Cann> {
    Cann::get(toolkit().as_deref()).map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))
}

/// The toolkit's directory, as its set-up script names it.
fn toolkit() -> Option<PathBuf> {
    environment::read("ASCEND_HOME_PATH").map(PathBuf::from)
}
