//! Ranks are threads of this process: memory is its own, and there is nobody to talk to.

use std::ops::Range;
use std::time::Instant;

use rustix::mm::ProtFlags;

use super::{MAX_MESSAGE, MAX_RANKS, Memory, Transport, space};
use crate::error::{Error, ErrorKind, Result};

/// The transport of a world whose ranks are all driven by this process.
#[derive(Debug)]
pub struct ThreadTransport {
    nranks: u32,
}

impl ThreadTransport {
    /// A transport for `nranks` ranks.
    pub fn new(nranks: u32) -> Result<Self> {
        match nranks {
            0 => Err(Error::invalid("a world of 0 ranks")),
            1..=MAX_RANKS => Ok(Self { nranks }),
            _ => Err(Error::new(ErrorKind::Unsupported, format!("a world of {nranks} ranks; the most is {MAX_RANKS}"))),
        }
    }
}

impl Transport for ThreadTransport {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn nranks(&self) -> u32 {
        self.nranks
    }

    fn local(&self) -> Range<u32> {
        0..self.nranks
    }

    fn exchange(&self, mine: &[u8], _deadline: Instant) -> Result<Vec<Vec<u8>>> {
        if mine.len() > MAX_MESSAGE {
            return Err(Error::invalid(format!("a message of {} bytes; the most is {MAX_MESSAGE}", mine.len())));
        }
        Ok(vec![mine.to_vec(); self.nranks as usize])
    }

    /// Pages come into being when they are first touched, so windows may be large and sparse.
    fn allocate(&self, bytes: usize, _deadline: Instant) -> Result<Memory> {
        space::check_process(bytes, self.nranks)?;
        let stride = Memory::stride_of(bytes)?;
        let memory = Memory::reserve(self.nranks, stride, ProtFlags::READ | ProtFlags::WRITE)?;
        memory.advise();
        Ok(memory)
    }

    fn lost(&self) -> Option<u32> {
        None
    }

    fn leave(&self) {}
}
