//! Ranks go on together or not at all: each brings a part or an error, and one rank's error is everybody's.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::transport::Transport;
use crate::transport::wire::{Put, Reader, decode_error, encode_error};

/// How long ranks that have used up their time still wait for each other, to end with the same error.
const GRACE: Duration = Duration::from_secs(1);

const PARTS: u32 = 0;
const REFUSAL: u32 = 1;

/// Exchanges the parts of this process's ranks, or what is wrong here, with all others. Everyone's parts, by rank; or,
/// on every rank, the error of the first that brought one.
pub fn agree(host: &dyn Transport, mine: Result<Vec<Vec<u8>>>, deadline: Instant) -> Result<Vec<Vec<u8>>> {
    let local = host.local();
    let mut message = Vec::new();
    match &mine {
        Ok(parts) => {
            message.put_u32(PARTS);
            parts.iter().for_each(|part| message.put_bytes(part));
        }
        Err(error) => {
            message.put_u32(REFUSAL);
            message.put_bytes(&encode_error(error));
        }
    }
    let messages = host.exchange(&message, deadline.max(Instant::now() + GRACE))?;
    let parts = (0..).zip(&messages).map(|(rank, message)| {
        // A process that drives several ranks has one message for all of them.
        let index = if local.len() == 1 { 0 } else { rank };
        part(message, index)
    });
    parts.collect()
}

/// `mine`, if all ranks have succeeded.
pub fn all_succeed<T>(host: &dyn Transport, mine: Result<T>, deadline: Instant) -> Result<T> {
    let nothing = vec![Vec::new(); host.local().len()];
    agree(host, mine.as_ref().map(|_| nothing).map_err(Error::clone), deadline)?;
    mine
}

/// The part at `index` of a message.
fn part(message: &[u8], index: usize) -> Result<Vec<u8>> {
    let mut reader = Reader(message);
    if reader.u32()? == REFUSAL {
        return Err(decode_error(reader.bytes()?));
    }
    for _ in 0..index {
        reader.bytes()?;
    }
    Ok(reader.bytes()?.to_vec())
}

/// `error`, with the rank that it is about.
pub fn at_rank(rank: u32, error: Error) -> Error {
    Error::new(error.kind, format!("rank {rank}: {}", error.message))
}
