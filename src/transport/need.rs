//! What ranks tell each other before memory is allocated, so that nobody touches any before all know that the sizes agree
//! and that there is enough for all.

use super::space::{self, Limit, Scope};
use super::wire::{Put, Reader};
use super::{Error, ErrorKind, Result};

/// What this process needs: `bytes` a rank, and its limits.
pub fn encode(bytes: usize) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u64(bytes as u64);
    for Limit { scope, available, name } in space::limits() {
        let (tag, pool) = match scope {
            Scope::Part => (0, 0),
            Scope::Mapping => (1, 0),
            Scope::Pool { number, .. } => (2, number),
        };
        body.put_u32(tag);
        body.put_u64(pool);
        body.put_u64(available);
        body.put_bytes(name.as_bytes());
    }
    body
}

/// The same verdict on every rank, from the same messages. `host` says where each rank runs.
pub fn check(needs: &[Vec<u8>], host: impl Fn(usize) -> u32) -> Result<()> {
    let needs = needs.iter().enumerate().map(|(rank, body)| decode(body, host(rank)));
    let needs = needs.collect::<Result<Vec<_>>>()?;
    let sizes = needs.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>();
    if let Some(rank) = sizes.iter().position(|size| *size != sizes[0]) {
        let (first, other) = (sizes[0], sizes[rank]);
        let message = format!("rank 0 allocates {first} bytes while rank {rank} allocates {other}");
        return Err(Error::new(ErrorKind::Mismatch, message));
    }
    let size = space::file_size(sizes[0] as usize)?;
    space::check_ranks(size, &needs.into_iter().map(|(_, limits)| limits).collect::<Vec<_>>())
}

fn decode(body: &[u8], host: u32) -> Result<(u64, Vec<Limit>)> {
    let mut reader = Reader(body);
    let bytes = reader.u64()?;
    let mut limits = Vec::new();
    while !reader.is_empty() {
        let (tag, number) = (reader.u32()?, reader.u64()?);
        let scope = match tag {
            0 => Scope::Part,
            1 => Scope::Mapping,
            _ => Scope::Pool { host, number },
        };
        limits.push(Limit { scope, available: reader.u64()?, name: reader.string()? });
    }
    Ok((bytes, limits))
}
