//! Processes of several hosts find each other: rank 0 listens at an address, the others connect, and all prove that they
//! know a secret. The connections stay, for exchanges, announcements, and signs of life; no window memory goes over them.

mod address;
mod fates;
mod frame;
mod gate;
mod handshake;
mod hub;
mod knock;
mod link;
mod secret;
mod star;
mod state;
#[cfg(test)]
mod tests;
pub mod through;

use std::io::ErrorKind as Io;
use std::net::TcpListener;
use std::time::{Duration, Instant};

pub use self::address::Address;
use self::gate::Gate;
use self::handshake::Greeting;
pub use self::secret::Secret;
pub use self::star::Star;
use self::state::Ends;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::hello::Hello;

/// Largest world.
pub const MAX_RANKS: u32 = 256;

/// Who finds a port in use looks for so long who uses it.
const LOOK: Duration = Duration::from_secs(1);

/// How this process meets others.
pub struct Meeting<'a> {
    pub secret: &'a Secret,
    pub me: &'a Hello,
    /// How long a process may be silent; rank 0's counts.
    pub silence: Duration,
    pub deadline: Instant,
}

impl Meeting<'_> {
    /// Meets the others at `address`. Collective.
    pub fn at(&self, address: &Address) -> Result<Star> {
        if self.me.rank != 0 {
            return self.come(address);
        }
        match listen(address) {
            Ok(listener) => self.host(listener, address),
            Err(e) if e.kind() == Io::AddrInUse => Err(self.who_is_there(address)),
            Err(e) => Err(Error::io(format!("listening at {address}"), e)),
        }
    }

    /// Rank 0: waits for the others at a socket that listens. Collective.
    pub fn host(&self, listener: TcpListener, address: &Address) -> Result<Star> {
        let at = listener.local_addr().map_err(|e| Error::io("a listening socket", e))?;
        let unreachable = at.ip().is_loopback() && !address.is_loopback();
        let hint = match unreachable {
            true => format!(", at {address}, which is {} here: an address that other hosts do not reach", at.ip()),
            false => format!(", at {}", Address { host: address.host.clone(), port: at.port() }),
        };
        let gate = Gate::new(listener, self.secret, self.me, self.deadline)?;
        let (links, welcome) = gate.run(self.silence, &hint)?;
        let ends = Ends::hub(links);
        Star::new(0, ends, welcome, Vec::new())
    }

    /// Another rank: looks for rank 0 at `address`. Collective.
    pub fn come(&self, address: &Address) -> Result<Star> {
        let (link, welcome, frames) = knock::join(address, self.secret, self.me, self.deadline)?;
        Star::new(self.me.rank, Ends::Spoke(Some(link)), welcome, frames)
    }

    /// Who listens at the address of this rank 0. Another rank 0 of this world tells all.
    fn who_is_there(&self, address: &Address) -> Error {
        let deadline = self.deadline.min(Instant::now() + LOOK);
        let found = match knock::look(address, self.secret, 0, deadline) {
            Ok(Greeting::Known(_)) => {
                let me = Meeting { deadline: self.deadline, ..*self };
                return me.come(address).err().unwrap_or_else(|| Error::new(ErrorKind::Internal, "two ranks 0"));
            }
            Ok(Greeting::OtherSecret) => "a world with a different secret",
            _ => "another program",
        };
        Error::new(ErrorKind::Io, format!("{address} is in use: {found} listens there already"))
    }
}

/// Listens at the first address of the name that is this host's.
pub fn listen(address: &Address) -> std::io::Result<TcpListener> {
    TcpListener::bind((address.host.as_str(), address.port))
}
