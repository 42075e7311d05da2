//! The secret of a job: who knows it may join. Both ends of a connection prove to each other that they know it, without
//! saying it, and derive keys from it with which each seals what it sends, so that nobody else can put in a word.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

use crate::environment::{SECRET, SECRET_FILE};
use crate::error::{Error, Result};
use crate::transport::launcher::Environment;

/// Shorter secrets can be guessed.
const SHORTEST: usize = 16;
const LONGEST: usize = 4096;

/// Bytes of a seal.
pub const SEAL: usize = 16;

/// Random bytes that make each connection another one.
pub type Nonce = [u8; 32];

/// Shows that its maker knows the secret.
pub type Proof = [u8; 32];

/// What only processes of one job know.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Rank 0.
    Hub,
    /// Another rank.
    Spoke,
}

impl Side {
    fn word(self) -> &'static [u8] {
        match self {
            Side::Hub => b"rank 0",
            Side::Spoke => b"another rank",
        }
    }

    fn other(self) -> Self {
        match self {
            Side::Hub => Side::Spoke,
            Side::Spoke => Side::Hub,
        }
    }
}

/// The nonces of both ends.
#[derive(Clone, Copy, Debug)]
pub struct Nonces {
    pub spoke: Nonce,
    pub hub: Nonce,
}

impl Secret {
    /// The secret that the environment names.
    pub fn read(env: Environment<'_>) -> Result<Self> {
        let (bytes, from) = match (env(SECRET.name), env(SECRET_FILE.name)) {
            (Some(value), _) => (value.into_encoded_bytes(), SECRET.name.to_owned()),
            (None, Some(path)) => (read_private(Path::new(&path))?, Path::new(&path).display().to_string()),
            (None, None) => {
                return Err(Error::invalid(
                    "ranks that meet over a network need a secret that all of them know: PLD_SECRET, or a file of mode \
                     0600 that PLD_SECRET_FILE names, made by `(umask 077; head -c 32 /dev/urandom | base64 > FILE)`",
                ));
            }
        };
        let length = bytes.trim_ascii().len();
        if length < SHORTEST {
            let message = format!("the secret in {from} has {length} bytes; it must have at least {SHORTEST}");
            return Err(Error::invalid(message));
        }
        Ok(Self(bytes.trim_ascii().to_vec()))
    }

    /// A secret that nobody has thought of.
    pub fn random() -> Result<Self> {
        nonce().map(|bytes| Self(bytes.to_vec()))
    }

    /// To be told to processes of the same job.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Shows to the other end that this one knows the secret.
    pub fn prove(&self, side: Side, nonces: &Nonces) -> Proof {
        self.mac(b"proof of ", side, nonces).finalize().into_bytes().into()
    }

    /// Whether the end at `side` knows the secret.
    pub fn check(&self, side: Side, nonces: &Nonces, proof: &Proof) -> bool {
        self.mac(b"proof of ", side, nonces).verify_slice(proof).is_ok()
    }

    /// Seals of what the end at `side` sends, and of what it receives.
    pub fn seals(&self, side: Side, nonces: &Nonces) -> [Seal; 2] {
        [side, side.other()]
            .map(|from| Seal { key: self.mac(b"words of ", from, nonces).finalize().into_bytes().into(), count: 0 })
    }

    fn mac(&self, purpose: &[u8], side: Side, nonces: &Nonces) -> Hmac<Sha256> {
        let mac = keyed(&self.0);
        mac.chain_update(purpose).chain_update(side.word()).chain_update(nonces.spoke).chain_update(nonces.hub)
    }
}

/// Seals what goes one way over one connection. Each seal is for one place in the order of all.
pub struct Seal {
    key: [u8; 32],
    count: u64,
}

impl Seal {
    /// The next seal, for bytes with this digest.
    pub fn next(&mut self, digest: &[u8; 32]) -> [u8; SEAL] {
        let seal = self.mac(digest).finalize().into_bytes();
        *seal.first_chunk().expect("a seal is part of a digest")
    }

    /// Whether `seal` is the next one.
    pub fn check(&mut self, bytes: &[u8], seal: &[u8]) -> bool {
        self.mac(&digest(bytes)).verify_truncated_left(seal).is_ok()
    }

    fn mac(&mut self, digest: &[u8; 32]) -> Hmac<Sha256> {
        self.count += 1;
        keyed(&self.key).chain_update(self.count.to_le_bytes()).chain_update(digest)
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("keys of any length do")
}

/// What is sealed of a message: the same for all who get it.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Random bytes.
pub fn nonce() -> Result<Nonce> {
    let mut nonce = [0; 32];
    // As few bytes come whole, and no signal interrupts them.
    getrandom(&mut nonce, GetRandomFlags::empty()).map_err(|e| Error::io("getrandom", e))?;
    Ok(nonce)
}

/// A file that only this user may read.
fn read_private(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let failed = |e| Error::io(format!("secret {shown}"), e);
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    let user = geteuid().as_raw();
    if meta.uid() != user {
        return Err(Error::invalid(format!("secret {shown} belongs to user {}, not to user {user}", meta.uid())));
    }
    if meta.mode() & 0o077 != 0 {
        let mode = meta.mode() & 0o7777;
        return Err(Error::invalid(format!("secret {shown} is open to others (mode {mode:04o}); it must have 0600")));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > LONGEST {
        return Err(Error::invalid(format!("secret {shown} has more than {LONGEST} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(bytes: &[u8]) -> Secret {
        Secret::from_bytes(bytes)
    }

    const NONCES: Nonces = Nonces { spoke: [1; 32], hub: [2; 32] };

    #[test]
    fn proofs_are_of_one_side_one_secret_and_one_connection() {
        let proof = secret(b"a").prove(Side::Spoke, &NONCES);
        assert!(secret(b"a").check(Side::Spoke, &NONCES, &proof));
        assert!(!secret(b"b").check(Side::Spoke, &NONCES, &proof));
        assert!(!secret(b"a").check(Side::Hub, &NONCES, &proof));
        assert!(!secret(b"a").check(Side::Spoke, &Nonces { hub: [3; 32], ..NONCES }, &proof));
    }

    /// What is left out, put in, repeated, changed or sent back has no seal.
    #[test]
    fn seals_hold_the_order() {
        let [mut mine, mut from_spoke] = secret(b"a").seals(Side::Hub, &NONCES);
        let [mut of_spoke, mut from_hub] = secret(b"a").seals(Side::Spoke, &NONCES);
        let [first, second] = [&b"first"[..], b"second"].map(|bytes| mine.next(&digest(bytes)));
        assert!(from_hub.check(b"first", &first));
        assert!(!from_hub.check(b"second", &first));
        let [_, mut again] = secret(b"a").seals(Side::Spoke, &NONCES);
        assert!(!again.check(b"second", &second));
        assert!(again.check(b"second", &second));
        let sent = of_spoke.next(&digest(b"first"));
        assert_ne!(sent, first);
        assert!(from_spoke.check(b"first", &sent));
    }

    #[test]
    fn secrets_in_the_environment() {
        let read = |variables: &'static [(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            Secret::read(&find).map(|secret| secret.0).map_err(|error| error.message)
        };
        assert_eq!(read(&[("PLD_SECRET", "0123456789abcdef\n")]), Ok(b"0123456789abcdef".to_vec()));
        let short = "the secret in PLD_SECRET has 15 bytes; it must have at least 16";
        assert_eq!(read(&[("PLD_SECRET", "0123456789abcde ")]), Err(short.into()));
        assert!(read(&[]).unwrap_err().starts_with("ranks that meet over a network need a secret"));
        assert!(read(&[("PLD_SECRET_FILE", "/is/not/there")]).unwrap_err().starts_with("secret /is/not/there: "));
    }
}
