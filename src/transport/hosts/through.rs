//! Ranks that reach each other already tell each other in that way what they need for connections of their own: where
//! rank 0 listens, and a secret.

use std::time::{Duration, Instant};

use super::address::Address;
use super::secret::{Secret, digest};
use super::star::Star;
use super::{Meeting, listen};
use crate::environment;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::hello::Hello;
use crate::transport::host;
use crate::transport::join::AllGather;
use crate::transport::wire::{Put, Reader, decode_error, encode_error};

/// Bytes that rank 0 tells.
const SIZE: usize = 1024;

/// Where ranks are.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// All run on one host.
    pub one_host: bool,
    /// All are in one network namespace of one running system.
    one_network: bool,
}

/// Finds out where ranks are. Collective.
pub fn look(gather: &AllGather<'_>, me: &Hello) -> Result<Sight> {
    let mut mine = Vec::new();
    mine.put_u32(me.rank);
    mine.put_u32(me.nranks);
    mine.extend_from_slice(&digest(me.host.as_bytes()));
    mine.extend_from_slice(&digest(host::network().as_bytes()));
    let mut all = vec![0; mine.len() * me.nranks as usize];
    gather(&mine, &mut all)?;
    let all = all.chunks(mine.len()).collect::<Vec<_>>();
    let mismatch = |what: String| Err(Error::new(ErrorKind::Mismatch, what));
    for (place, card) in (0..).zip(&all) {
        let mut reader = Reader(card);
        let (rank, nranks) = (reader.u32()?, reader.u32()?);
        if nranks != me.nranks {
            let ours = me.nranks;
            return mismatch(format!("rank {rank} says that the world has {nranks} ranks, the all-gather has {ours}"));
        }
        if rank != place {
            return mismatch(format!("the all-gather puts rank {rank} in place {place}"));
        }
    }
    let (host, network) = (8..40, 40..72);
    Ok(Sight {
        one_host: all.iter().all(|card| card[host.clone()] == all[0][host.clone()]),
        one_network: all.iter().all(|card| card[network.clone()] == all[0][network.clone()]),
    })
}

/// Makes the connections. Collective.
pub fn meet(gather: &AllGather<'_>, sight: Sight, me: &Hello, silence: Duration, deadline: Instant) -> Result<Star> {
    let opened = if me.rank == 0 { open(sight).map(Some) } else { Ok(None) };
    let mine = match &opened {
        Ok(None) => Vec::new(),
        Ok(Some((_, address, secret))) => encode(address, secret)?,
        Err(error) => encode_failure(error),
    };
    let mut all = vec![0; SIZE * me.nranks as usize];
    gather(&padded(mine), &mut all)?;
    let (address, secret) = decode(&all[..SIZE])?;
    let meeting = Meeting { secret: &secret, me, silence, deadline };
    match opened? {
        Some((listener, ..)) => meeting.host(listener, &address),
        None => meeting.come(&address),
    }
}

/// Rank 0 listens: where nobody else comes if that will do, else where the user says.
fn open(sight: Sight) -> Result<(std::net::TcpListener, Address, Secret)> {
    let here = || Some(Address { host: "127.0.0.1".into(), port: 0 });
    let address = if sight.one_network { here() } else { Address::of_rank_0(&environment::read)? };
    let Some(mut address) = address else {
        let message = "ranks run on several hosts: PLD_ADDRESS=HOST:PORT must say, in rank 0's environment, at which \
                       address of its host it may listen (port 0 for any)";
        return Err(Error::invalid(message));
    };
    let failed = |e| Error::io(format!("listening at {address}"), e);
    let listener = listen(&address).map_err(failed)?;
    address.port = listener.local_addr().map_err(failed)?.port();
    Ok((listener, address, Secret::random()?))
}

fn encode(address: &Address, secret: &Secret) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    body.put_u32(0);
    body.put_u32(address.port.into());
    body.put_bytes(secret.bytes());
    body.put_bytes(address.host.as_bytes());
    if body.len() > SIZE {
        return Err(Error::invalid(format!("the name of the host of {address} is too long")));
    }
    Ok(body)
}

fn encode_failure(error: &Error) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u32(1);
    body.put_bytes(&encode_error(error));
    body
}

fn padded(mut body: Vec<u8>) -> Vec<u8> {
    body.resize(SIZE, 0);
    body
}

fn decode(body: &[u8]) -> Result<(Address, Secret)> {
    let mut reader = Reader(body);
    if reader.u32()? != 0 {
        return Err(decode_error(reader.bytes()?));
    }
    let port = reader.u32()? as u16;
    let secret = Secret::from_bytes(reader.bytes()?);
    Ok((Address { host: reader.string()?, port }, secret))
}
