//! The first words over a connection, by which both ends find out that the other one knows the secret. Rank 0 proves it
//! last, so that who does not know it learns nothing. This part of the protocol never changes.
//!
//! | from | to | bytes |
//! | --- | --- | --- |
//! | rank | rank 0 | magic, nonce |
//! | rank 0 | rank | magic, [`CHALLENGE`], nonce |
//! | rank | rank 0 | proof |
//! | rank 0 | rank | magic, [`PROOF`], proof |
//!
//! Instead of its words rank 0 may say that it knows another secret, or that it expects nobody any more.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::link::Link;
use super::secret::{Nonces, Secret, Side, nonce};
use crate::error::Result;

const MAGIC: [u8; 8] = *b"pld-star";

/// What a reply of rank 0 says.
const CHALLENGE: u8 = 1;
const PROOF: u8 = 2;
const OTHER_SECRET: u8 = 3;
/// Followed by the number of ranks.
const COMPLETE: u8 = 4;

/// How long either end waits for the other's words.
pub const PATIENCE: Duration = Duration::from_secs(5);

const GREETING: usize = MAGIC.len() + 32;
const REPLY: usize = MAGIC.len() + 1 + 32;

/// Somebody who has connected to rank 0.
pub struct Stranger {
    stream: TcpStream,
    pub since: Instant,
    words: Vec<u8>,
    nonces: Option<Nonces>,
}

/// What has become of a stranger.
pub enum Progress {
    /// More words are expected.
    Waiting(Stranger),
    /// It knows the secret.
    Known(Link),
    /// It does not.
    OtherSecret(TcpStream),
    /// It is gone, or speaks another language.
    Nobody,
}

impl Stranger {
    /// Who is at the other end of a stream that does not block.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, since: Instant::now(), words: Vec::new(), nonces: None }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads what it has said, and replies. `longest` is for the frames that it sends later.
    pub fn advance(mut self, secret: &Secret, longest: usize) -> Result<Progress> {
        loop {
            let expected = if self.nonces.is_none() { GREETING } else { 32 };
            let mut bytes = [0; GREETING];
            match self.stream.read(&mut bytes[..expected - self.words.len()]) {
                Ok(0) => return Ok(Progress::Nobody),
                Ok(read) => self.words.extend_from_slice(&bytes[..read]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waiting(self)),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Ok(Progress::Nobody),
            }
            // Garbage is not waited for.
            if self.nonces.is_none() && self.words.iter().zip(MAGIC).any(|(word, magic)| *word != magic) {
                return Ok(Progress::Nobody);
            }
            if self.words.len() < expected {
                continue;
            }
            let words = std::mem::take(&mut self.words);
            let last = *words.last_chunk::<32>().expect("all words are there");
            match &self.nonces {
                None => {
                    let nonces = Nonces { spoke: last, hub: nonce()? };
                    self.reply(CHALLENGE, nonces.hub);
                    self.nonces = Some(nonces);
                }
                Some(nonces) if secret.check(Side::Spoke, nonces, &last) => {
                    self.reply(PROOF, secret.prove(Side::Hub, nonces));
                    let seals = secret.seals(Side::Hub, nonces);
                    return Ok(Progress::Known(Link::new(self.stream.into(), seals, longest)));
                }
                Some(_) => {
                    self.reply(OTHER_SECRET, [0; 32]);
                    return Ok(Progress::OtherSecret(self.stream));
                }
            }
        }
    }

    /// Nobody is expected any more.
    pub fn dismiss(self, nranks: u32) {
        let mut detail = [0; 32];
        detail[..4].copy_from_slice(&nranks.to_le_bytes());
        self.reply(COMPLETE, detail);
    }

    /// So few bytes always have room; whoever is gone is found out later.
    fn reply(&self, code: u8, detail: [u8; 32]) {
        let _ = (&self.stream).write_all(&[&MAGIC[..], &[code], &detail].concat());
    }
}

/// What came of [`greet`].
pub enum Greeting {
    /// Rank 0, which knows the secret.
    Known(Link),
    /// Rank 0 of a world with another secret.
    OtherSecret,
    /// Rank 0 of a world of so many ranks that expects nobody any more.
    Complete(u32),
    /// Somebody else, or nobody any more: why.
    Nobody(String),
}

/// Speaks to whoever listens.
pub fn greet(mut stream: TcpStream, secret: &Secret, longest: usize, deadline: Instant) -> Result<Greeting> {
    let nobody = |what: &str| Ok(Greeting::Nobody(what.into()));
    let own = nonce()?;
    // Whether it was sent shows in what comes.
    let _ = stream.write_all(&[&MAGIC[..], &own].concat());
    let mut nonces = None;
    loop {
        let Some((code, detail)) = reply(&mut stream, deadline) else {
            return nobody("somebody else listens there, or rank 0 has given up");
        };
        match (code, nonces) {
            (CHALLENGE, None) => {
                let both = Nonces { spoke: own, hub: detail };
                let _ = stream.write_all(&secret.prove(Side::Spoke, &both));
                nonces = Some(both);
            }
            (PROOF, Some(nonces)) if secret.check(Side::Hub, &nonces, &detail) => {
                if stream.set_nonblocking(true).is_err() {
                    return nobody("its connection cannot be used");
                }
                return Ok(Greeting::Known(Link::new(stream.into(), secret.seals(Side::Spoke, &nonces), longest)));
            }
            (OTHER_SECRET, _) => return Ok(Greeting::OtherSecret),
            (COMPLETE, _) => {
                let nranks = detail.first_chunk().copied().map_or(0, u32::from_le_bytes);
                return Ok(Greeting::Complete(nranks));
            }
            _ => return nobody("who listens there does not know the secret"),
        }
    }
}

fn reply(stream: &mut TcpStream, deadline: Instant) -> Option<(u8, [u8; 32])> {
    let mut bytes = [0; REPLY];
    let mut filled = 0;
    while filled < REPLY {
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return None,
            Ok(read) => filled += read,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let rest = bytes.strip_prefix(&MAGIC)?;
    Some((rest[0], *rest.last_chunk()?))
}
