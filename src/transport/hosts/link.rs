//! One end of a connection over which both ends have proved that they know the secret. What is sent waits in a queue
//! until the kernel takes it, so that nobody waits for a slow peer.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::frame::Frame;
use super::secret::{SEAL, Seal, digest};

/// Length and seal.
const HEAD: usize = 4 + SEAL;
/// Bytes that are read at a time.
const READ: usize = 64 << 10;
/// A peer for which more than this waits does not read any more.
const LONGEST_QUEUE: usize = 64 << 20;

/// The bytes of a frame, made once for all who get it.
#[derive(Clone)]
pub struct Sealable {
    bytes: Arc<Vec<u8>>,
    digest: [u8; 32],
}

impl From<&Frame> for Sealable {
    fn from(frame: &Frame) -> Self {
        Self::from(frame.encode())
    }
}

impl From<Vec<u8>> for Sealable {
    fn from(bytes: Vec<u8>) -> Self {
        Self { digest: digest(&bytes), bytes: Arc::new(bytes) }
    }
}

/// Why a connection is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The other end is closed.
    Ended,
    /// Something else, in words.
    Because(String),
}

pub struct Link {
    socket: Arc<OwnedFd>,
    seal: Seal,
    theirs: Seal,
    /// Longest frame that the other end may send.
    longest: usize,
    incoming: Vec<u8>,
    outgoing: VecDeque<Arc<Vec<u8>>>,
    /// Bytes of the first one that are on their way.
    sent: usize,
    waiting: usize,
    /// When something has come, and when something was sent.
    pub heard: Instant,
    pub spoken: Instant,
}

impl Link {
    /// Over a connected socket that does not block, with the seals of this end and of the other one.
    pub fn new(socket: OwnedFd, [seal, theirs]: [Seal; 2], longest: usize) -> Self {
        let now = Instant::now();
        Self {
            socket: Arc::new(socket),
            seal,
            theirs,
            longest,
            incoming: Vec::new(),
            outgoing: VecDeque::new(),
            sent: 0,
            waiting: 0,
            heard: now,
            spoken: now,
        }
    }

    pub fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    /// Something waits to be sent.
    pub fn is_full(&self) -> bool {
        self.waiting > 0
    }

    /// Sends, or puts in the queue.
    pub fn send(&mut self, message: &Sealable) -> Result<(), Broken> {
        let Sealable { bytes, digest } = message;
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        head.extend_from_slice(&self.seal.next(digest));
        self.waiting += head.len() + bytes.len();
        self.outgoing.push_back(Arc::new(head));
        self.outgoing.push_back(bytes.clone());
        self.flush()?;
        if self.waiting > LONGEST_QUEUE {
            return Err(Broken::Because(format!("it does not read: {} bytes wait for it", self.waiting)));
        }
        Ok(())
    }

    /// Sends what waits, as far as the kernel takes it.
    pub fn flush(&mut self) -> Result<(), Broken> {
        while let Some(bytes) = self.outgoing.front() {
            match send(&*self.socket, &bytes[self.sent..], SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.sent += sent;
                    self.waiting -= sent;
                    self.spoken = Instant::now();
                    if self.sent == bytes.len() {
                        self.outgoing.pop_front();
                        self.sent = 0;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(()),
                Err(e) => return Err(broken(e)),
            }
        }
        Ok(())
    }

    /// Reads what is there: whole frames. Also when the connection is broken, there may have been some before.
    pub fn receive(&mut self, frames: &mut Vec<Frame>) -> Result<(), Broken> {
        loop {
            let begin = self.incoming.len();
            self.incoming.resize(begin + READ, 0);
            let result = recv(&*self.socket, &mut self.incoming[begin..], RecvFlags::empty());
            self.incoming.truncate(begin + result.map_or(0, |(read, _)| read));
            match result {
                Ok((0, _)) => return Err(Broken::Ended),
                Ok((read, _)) => {
                    self.heard = Instant::now();
                    self.take_frames(frames)?;
                    // Others have something to say too.
                    if read < READ {
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(e) => return Err(broken(e)),
            }
        }
    }

    fn take_frames(&mut self, frames: &mut Vec<Frame>) -> Result<(), Broken> {
        let mut rest = &self.incoming[..];
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            if length > self.longest {
                return Err(Broken::Because(format!("it announces a frame of {length} bytes")));
            }
            let Some((frame, next)) = after.split_at_checked(SEAL + length) else { break };
            let (seal, bytes) = frame.split_at(SEAL);
            if !self.theirs.check(bytes, seal) {
                return Err(Broken::Because("somebody has changed what it sends".into()));
            }
            frames.push(Frame::decode(bytes).map_err(|error| Broken::Because(error.message))?);
            rest = next;
        }
        let used = self.incoming.len() - rest.len();
        self.incoming.drain(..used);
        Ok(())
    }
}

fn broken(cause: Errno) -> Broken {
    match cause {
        Errno::CONNRESET | Errno::PIPE => Broken::Ended,
        cause => Broken::Because(format!("its connection broke: {}", std::io::Error::from(cause))),
    }
}
