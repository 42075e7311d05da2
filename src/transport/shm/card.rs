//! Bootstrap through the engine's all-gather: one card a rank, all of one size, says who a rank is, on which host and
//! as which user it runs, and - rank 0's - where to meet. All ranks see all cards, so they come to the same verdict.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::geteuid;

use super::AllGather;
use super::launcher::{directory, socket_name};
use super::place::Place;
use crate::environment;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::wire::{Put, Reader, decode_error, encode_error};

/// Size of a card: that of a path of the kernel's limit would be too much for some engines' stores.
const SIZE: usize = 1024;

#[derive(Debug, PartialEq, Eq)]
struct Card {
    rank: u32,
    nranks: u32,
    user: u32,
    /// The running system: another one is another host.
    host: String,
    /// Where to meet; empty but for rank 0.
    place: Result<PathBuf>,
}

impl Card {
    fn encode(&self) -> Vec<u8> {
        let mut card = self.encode_unpadded();
        if card.len() > SIZE {
            let message = format!("the path of the meeting place exceeds {SIZE} bytes; PLD_DIR sets a shorter one");
            card = Self { place: Err(Error::invalid(message)), host: self.host.clone(), ..*self }.encode_unpadded();
        }
        card.resize(SIZE, 0);
        card
    }

    fn encode_unpadded(&self) -> Vec<u8> {
        let mut card = Vec::new();
        [self.rank, self.nranks, self.user].into_iter().for_each(|value| card.put_u32(value));
        card.put_bytes(self.host.as_bytes());
        card.put_u32(u32::from(self.place.is_err()));
        match &self.place {
            Ok(path) => card.put_bytes(path.as_os_str().as_bytes()),
            Err(error) => card.put_bytes(&encode_error(error)),
        }
        card
    }

    fn decode(card: &[u8]) -> Result<Self> {
        let mut reader = Reader(card);
        let (rank, nranks, user, host) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.string()?);
        let failed = reader.u32()? != 0;
        let rest = reader.bytes()?;
        let place = if failed { Err(decode_error(rest)) } else { Ok(OsString::from_vec(rest.to_vec()).into()) };
        Ok(Self { rank, nranks, user, host, place })
    }
}

/// Rank 0 makes up a place, and the all-gather tells it to the others.
pub fn agree_on_place(all_gather: &AllGather, rank: u32, nranks: u32) -> Result<Place> {
    let mine = if rank == 0 { host_place(nranks).map(Some) } else { Ok(None) };
    let path = mine.as_ref().map(|place| place.as_ref().map_or(PathBuf::new(), |place| place.path().to_owned()));
    let host = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    let card = Card { rank, nranks, user: geteuid().as_raw(), host, place: path.map_err(Error::clone) };
    let mut cards = vec![0; SIZE * nranks as usize];
    all_gather(&card.encode(), &mut cards)?;
    let cards = cards.chunks(SIZE).map(Card::decode).collect::<Result<Vec<_>>>()?;
    let path = verdict(cards)?;
    match mine? {
        Some(place) => Ok(place),
        None => Place::private(path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default()),
    }
}

/// A socket that nobody else has thought of, in our directory.
fn host_place(nranks: u32) -> Result<Place> {
    let unique = format!("process {} at {:?}", std::process::id(), SystemTime::now());
    let dir = directory(&environment::read);
    Place::private(&std::path::absolute(&dir).unwrap_or(dir), socket_name(&unique, nranks).as_ref())
}

fn verdict(cards: Vec<Card>) -> Result<PathBuf> {
    let nranks = cards.len() as u32;
    for (index, card) in (0..).zip(&cards) {
        let Card { rank, nranks: theirs, user, host, .. } = card;
        let first = &cards[0];
        if *theirs != nranks {
            let message = format!("rank {rank} says that the world has {theirs} ranks, the all-gather has {nranks}");
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        if *rank != index {
            let message = format!("the all-gather puts rank {rank} in place {index}");
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        if host != &first.host {
            let message = format!("ranks 0 and {rank} run on different hosts; shm is for one host");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if *user != first.user {
            let message = format!("rank {rank} runs as user {user}, rank 0 as user {}", first.user);
            return Err(Error::invalid(message));
        }
    }
    cards.into_iter().next().expect("a world has ranks").place
}
