//! Any other rank while the world is made: it looks for rank 0 and says who it is.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::address::Address;
use super::frame::{Frame, JOIN, Welcome};
use super::handshake::{Greeting, PATIENCE, greet};
use super::link::{Broken, Link, Sealable};
use super::secret::Secret;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::MAX_MESSAGE;
use crate::transport::hello::Hello;
use crate::transport::waiting::{GRACE, Operation, Pauses, ended, timeout, wait};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(2);

/// Finds rank 0 and joins. The connection may bring more than the welcome.
pub fn join(address: &Address, secret: &Secret, me: &Hello, deadline: Instant) -> Result<(Link, Welcome, Vec<Frame>)> {
    let begin = Instant::now();
    let mut link = find(address, secret, me, begin, deadline)?;
    let broken = |broken: Broken| match broken {
        Broken::Ended => ended(0),
        Broken::Because(why) => Error::new(ErrorKind::Mismatch, format!("rank 0: {why}")),
    };
    link.send(&Sealable::from(&Frame::Hello(me.clone()))).map_err(broken)?;
    let waited = deadline.saturating_duration_since(begin);
    let mut patience = deadline;
    let mut frames = Vec::new();
    loop {
        let result = link.receive(&mut frames);
        if !frames.is_empty() {
            return match frames.remove(0) {
                Frame::Welcome(welcome) => Ok((link, welcome, frames)),
                Frame::Failure(_, error) => Err(error),
                _ => Err(Error::new(ErrorKind::Mismatch, "rank 0 does not say whether the world is complete")),
            };
        }
        result.map_err(broken)?;
        if wait(&mut [PollFd::new(link.socket(), PollFlags::IN)], patience) {
            continue;
        }
        if patience > deadline {
            return Err(timeout(&[0], Operation::Join, waited));
        }
        let _ = link.send(&Sealable::from(&Frame::Late(JOIN, waited)));
        patience = Instant::now().max(deadline) + GRACE;
    }
}

fn find(address: &Address, secret: &Secret, me: &Hello, begin: Instant, deadline: Instant) -> Result<Link> {
    // Everyone's messages, and what is around them.
    let longest = (MAX_MESSAGE + 4096) * me.nranks as usize;
    let mut pauses = Pauses::until(deadline);
    loop {
        let seen = match look(address, secret, longest, deadline)? {
            Greeting::Known(link) => return Ok(link),
            Greeting::OtherSecret => {
                let message = format!("rank 0 at {address} has a different secret than this process");
                return Err(Error::new(ErrorKind::Mismatch, message));
            }
            Greeting::Complete(nranks) => {
                let message = format!("the world of {nranks} ranks is complete without this process");
                return Err(Error::new(ErrorKind::Mismatch, message));
            }
            Greeting::Nobody(seen) => seen,
        };
        if !pauses.pause() {
            let error = timeout(&[0], Operation::Join, deadline.saturating_duration_since(begin));
            return Err(Error::new(error.kind, format!("{}, at {address} ({seen})", error.message)));
        }
    }
}

/// One look at whoever listens.
pub fn look(address: &Address, secret: &Secret, longest: usize, deadline: Instant) -> Result<Greeting> {
    let mut seen = format!("{} has no address", address.host);
    for target in address.resolve()? {
        match connect(&target, deadline) {
            Ok(stream) => return greet(stream, secret, longest, deadline.min(Instant::now() + PATIENCE)),
            Err(e) => seen = e.to_string(),
        }
    }
    Ok(Greeting::Nobody(seen))
}

fn connect(target: &SocketAddr, deadline: Instant) -> std::io::Result<TcpStream> {
    let left = deadline.saturating_duration_since(Instant::now());
    let stream = TcpStream::connect_timeout(target, left.clamp(Duration::from_millis(1), CONNECT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
