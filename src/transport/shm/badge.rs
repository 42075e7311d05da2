//! Bootstrap through the engine's all-gather: one badge a rank, all of one size, says who a rank is, on which host and
//! as which user it runs, and - rank 0's - where to meet. All ranks see all badges, so they come to the same verdict.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::geteuid;

use super::names::{directory, socket_name};
use super::place::Place;
use crate::environment;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::host;
use crate::transport::join::AllGather;
use crate::transport::wire::{Put, Reader, decode_error, encode_error};

/// Size of a badge: that of a path of the kernel's limit would be too much for some engines' stores.
const SIZE: usize = 1024;

#[derive(Debug, PartialEq, Eq)]
struct Badge {
    rank: u32,
    nranks: u32,
    user: u32,
    /// The running system: another one is another host.
    host: String,
    /// Where to meet; empty but for rank 0.
    place: Result<PathBuf>,
}

impl Badge {
    fn encode(&self) -> Vec<u8> {
        let mut badge = self.encode_unpadded();
        if badge.len() > SIZE {
            let message = format!("the path of the meeting place exceeds {SIZE} bytes; PLD_DIR sets a shorter one");
            badge = Self { place: Err(Error::invalid(message)), host: self.host.clone(), ..*self }.encode_unpadded();
        }
        badge.resize(SIZE, 0);
        badge
    }

    fn encode_unpadded(&self) -> Vec<u8> {
        let mut badge = Vec::new();
        [self.rank, self.nranks, self.user].into_iter().for_each(|value| badge.put_u32(value));
        badge.put_bytes(self.host.as_bytes());
        badge.put_u32(u32::from(self.place.is_err()));
        match &self.place {
            Ok(path) => badge.put_bytes(path.as_os_str().as_bytes()),
            Err(error) => badge.put_bytes(&encode_error(error)),
        }
        badge
    }

    fn decode(badge: &[u8]) -> Result<Self> {
        let mut reader = Reader(badge);
        let (rank, nranks, user, host) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.string()?);
        let failed = reader.u32()? != 0;
        let rest = reader.bytes()?;
        let place = if failed { Err(decode_error(rest)) } else { Ok(OsString::from_vec(rest.to_vec()).into()) };
        Ok(Self { rank, nranks, user, host, place })
    }
}

/// Rank 0 makes up a place, and the all-gather tells it to the others.
pub fn agree_on_place(all_gather: &AllGather<'_>, rank: u32, nranks: u32) -> Result<Place> {
    let mine = if rank == 0 { host_place(nranks).map(Some) } else { Ok(None) };
    let path = mine.as_ref().map(|place| place.as_ref().map_or(PathBuf::new(), |place| place.path().to_owned()));
    let (user, host) = (geteuid().as_raw(), host::system());
    let badge = Badge { rank, nranks, user, host, place: path.map_err(Error::clone) };
    let mut badges = vec![0; SIZE * nranks as usize];
    all_gather(&badge.encode(), &mut badges)?;
    let badges = badges.chunks(SIZE).map(Badge::decode).collect::<Result<Vec<_>>>()?;
    let path = verdict(badges)?;
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

fn verdict(badges: Vec<Badge>) -> Result<PathBuf> {
    let nranks = badges.len() as u32;
    for (index, badge) in (0..).zip(&badges) {
        let Badge { rank, nranks: theirs, user, host, .. } = badge;
        let first = &badges[0];
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
    badges.into_iter().next().expect("a world has ranks").place
}
