//! What a rank says of itself when it comes to a world, and whether rank 0 takes it.

use super::wire::{Put, Reader};
use crate::error::{Error, ErrorKind, Result};

/// Of the messages between ranks. The first two numbers of [`Hello`] never change, nor does what comes before it.
const PROTOCOL: u32 = 2;
const MAGIC: u32 = 0x0070_6c64;

/// What a rank says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub rank: u32,
    pub nranks: u32,
    pub process: u32,
    /// The host on which it runs, or pretends to; empty if all that can meet here run on one.
    pub host: String,
    pub agreement: Vec<u8>,
}

impl Hello {
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        [MAGIC, PROTOCOL, self.rank, self.nranks, self.process].into_iter().for_each(|value| body.put_u32(value));
        body.put_bytes(self.host.as_bytes());
        body.put_bytes(&self.agreement);
        body
    }

    pub fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader(body);
        let (magic, protocol) = (reader.u32()?, reader.u32()?);
        if (magic, protocol) != (MAGIC, PROTOCOL) {
            let message =
                format!("a rank speaks protocol {protocol} while rank 0 speaks {PROTOCOL}: their libraries differ");
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        let (rank, nranks, process) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Ok(Self { rank, nranks, process, host: reader.string()?, agreement: reader.bytes()?.to_vec() })
    }

    /// Rank 0's verdict on another rank; `earlier` finds who has come as a rank before.
    pub fn check<'a>(&'a self, first: &'a Self, earlier: impl Fn(u32) -> Option<&'a Self>) -> Result<()> {
        let mismatch = |what: String| Err(Error::new(ErrorKind::Mismatch, what));
        let (rank, nranks) = (self.rank, first.nranks);
        if self.nranks != nranks {
            let theirs = self.nranks;
            return mismatch(format!("rank {rank} says that the world has {theirs} ranks, rank 0 says {nranks}"));
        }
        if rank >= nranks {
            let process = self.process;
            return mismatch(format!(
                "process {process} says that it is rank {rank}, but the world has {nranks} ranks"
            ));
        }
        if let Some(Self { process, .. }) = if rank == 0 { Some(first) } else { earlier(rank) } {
            let other = self.process;
            return mismatch(format!("rank {rank} is there twice: processes {process} and {other}"));
        }
        if self.agreement != first.agreement {
            let [theirs, ours] = [&self.agreement, &first.agreement].map(|bytes| shown(bytes));
            return mismatch(format!("rank {rank} comes with {theirs}, rank 0 with {ours}"));
        }
        Ok(())
    }
}

/// Agreements are texts as a rule.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}
