//! Messages with file descriptors over a connected Unix socket of packets.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::transport::waiting::{Operation, wait};

/// Most bytes of a message in one packet: far below the default size of a socket's buffer.
const PACKET_BODY: usize = 64 << 10;
/// Most descriptors in one packet; the kernel takes 253.
const PACKET_FDS: usize = 250;
/// kind, operation, more packets follow, number of descriptors, sequence number.
const HEADER: usize = 8;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A rank's part of a collective, to rank 0.
    Part = 1,
    /// Instead of a part, or after it: the rank cannot go on; the body is an error.
    Refusal = 2,
    /// All parts, from rank 0.
    Parts = 3,
    /// The collective has failed on all ranks; the body is an error.
    Failure = 4,
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    pub kind: Kind,
    pub operation: Operation,
    /// Number of the collective, counted alike on all ranks.
    pub sequence: u32,
}

impl Tag {
    fn encode(self, more: bool, fds: usize) -> [u8; HEADER] {
        let [a, b, c, d] = self.sequence.to_ne_bytes();
        [self.kind as u8, self.operation as u8, u8::from(more), fds as u8, a, b, c, d]
    }

    fn decode([kind, operation, more, fds, a, b, c, d]: [u8; HEADER]) -> Option<(Self, bool, usize)> {
        let kind = [Kind::Part, Kind::Refusal, Kind::Parts, Kind::Failure].into_iter().find(|k| *k as u8 == kind)?;
        let operation = Operation::decode(operation)?;
        Some((Self { kind, operation, sequence: u32::from_ne_bytes([a, b, c, d]) }, more != 0, fds.into()))
    }
}

/// A whole message.
#[derive(Debug)]
pub struct Message {
    pub tag: Tag,
    pub body: Vec<u8>,
    pub fds: Vec<OwnedFd>,
    /// Descriptors were sent that this process had no room for.
    pub fds_lost: bool,
}

/// What [`Channel::receive`] finds.
#[derive(Debug)]
pub enum Received {
    Message(Message),
    /// Nothing yet.
    Nothing,
    /// The other end is closed, or speaks another language.
    Closed,
}

/// Why a message was not sent.
#[derive(Debug)]
pub enum Unsent {
    Closed,
    Timeout,
}

/// One end of a connection. The socket does not block; a forked child may close its copy without a trace.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    /// What has come of a message whose last packet has not.
    partial: Option<Message>,
}

impl Channel {
    /// A channel over a connected, non-blocking socket.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, partial: None }
    }

    /// Sends a message, waiting for room until `deadline`.
    pub fn send(&self, tag: Tag, body: &[u8], fds: &[BorrowedFd<'_>], deadline: Instant) -> Result<(), Unsent> {
        let packets = body.len().div_ceil(PACKET_BODY).max(fds.len().div_ceil(PACKET_FDS)).max(1);
        let mut bodies = body.chunks(PACKET_BODY);
        let mut batches = fds.chunks(PACKET_FDS);
        for packet in 1..=packets {
            let fds = batches.next().unwrap_or(&[]);
            let header = tag.encode(packet < packets, fds.len());
            self.send_packet(&header, bodies.next().unwrap_or(&[]), fds, deadline)?;
        }
        Ok(())
    }

    fn send_packet(&self, header: &[u8], body: &[u8], fds: &[BorrowedFd<'_>], deadline: Instant) -> Result<(), Unsent> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_FDS))];
        loop {
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !fds.is_empty() {
                assert!(control.push(SendAncillaryMessage::ScmRights(fds)), "the buffer holds a whole batch");
            }
            match sendmsg(&self.socket, &[IoSlice::new(header), IoSlice::new(body)], &mut control, SendFlags::NOSIGNAL)
            {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let writable = PollFd::new(&self.socket, PollFlags::OUT);
                    if !wait(&mut [writable], deadline) {
                        return Err(Unsent::Timeout);
                    }
                }
                // Too many descriptors are under way, or memory is short for a moment: receivers make room.
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => return Err(Unsent::Timeout),
                Err(_) => return Err(Unsent::Closed),
            }
        }
    }

    /// The next message, if all of it is there. Never waits.
    pub fn receive(&mut self) -> Received {
        let mut reset = false;
        loop {
            let mut header = [0; HEADER];
            let mut body = vec![0; PACKET_BODY];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_FDS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(&mut body)];
            let received = match recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) => received,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Received::Nothing,
                // The peer closed before it had read everything. What it sent before is still there, behind this error.
                Err(Errno::CONNRESET) if !reset => {
                    reset = true;
                    continue;
                }
                Err(_) => return Received::Closed,
            };
            if received.bytes < HEADER || received.flags.contains(ReturnFlags::TRUNC) {
                return Received::Closed;
            }
            let Some((tag, more, sent)) = Tag::decode(header) else { return Received::Closed };
            body.truncate(received.bytes - HEADER);
            let mut fds = Vec::with_capacity(sent);
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            let fds_lost = fds.len() < sent;
            // A sender that ran out of time leaves a message without its end; the next one has another tag.
            let message = match self.partial.take().filter(|partial| partial.tag == tag) {
                None => Message { tag, body, fds, fds_lost },
                Some(mut message) => {
                    message.body.append(&mut body);
                    message.fds.append(&mut fds);
                    message.fds_lost |= fds_lost;
                    message
                }
            };
            if !more {
                return Received::Message(message);
            }
            self.partial = Some(message);
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (Channel, Channel) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        (Channel::new(one), Channel::new(other))
    }

    fn tag(sequence: u32) -> Tag {
        Tag { kind: Kind::Part, operation: Operation::Allocate, sequence }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn receive(channel: &mut Channel) -> Message {
        loop {
            match channel.receive() {
                Received::Message(message) => return message,
                Received::Nothing => assert!(wait(&mut [PollFd::new(channel, PollFlags::IN)], soon())),
                Received::Closed => panic!("closed"),
            }
        }
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|position| (position * 7 + (position >> 8)) as u8).collect()
    }

    #[test]
    fn messages_of_any_size() {
        let (one, mut other) = pair();
        let sizes = [0, 1, PACKET_BODY - 1, PACKET_BODY, PACKET_BODY + 1, 40 * PACKET_BODY + 3];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (sequence, size) in (1..).zip(sizes) {
                    one.send(tag(sequence), &bytes(size), &[], soon()).unwrap();
                }
            });
            for (sequence, size) in (1..).zip(sizes) {
                let message = receive(&mut other);
                assert_eq!(message.tag, tag(sequence));
                assert!(message.body == bytes(size), "{size} bytes");
                assert!(message.fds.is_empty() && !message.fds_lost);
            }
        });
    }

    #[test]
    fn more_descriptors_than_a_packet_takes() {
        let (one, mut other) = pair();
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let inode = rustix::fs::fstat(&file).unwrap().st_ino;
        let fds = vec![file.as_fd(); 2 * PACKET_FDS + 1];
        one.send(tag(1), b"body", &fds, soon()).unwrap();
        let message = receive(&mut other);
        assert_eq!((message.fds.len(), message.fds_lost, &*message.body), (fds.len(), false, &b"body"[..]));
        for fd in &message.fds {
            assert_eq!(rustix::fs::fstat(fd).unwrap().st_ino, inode);
            assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        }
    }

    /// A sender that runs out of time leaves half a message; the next one is whole.
    #[test]
    fn half_a_message_is_dropped() {
        let (one, mut other) = pair();
        assert!(matches!(one.send(tag(1), &bytes(100 * PACKET_BODY), &[], Instant::now()), Err(Unsent::Timeout)));
        while !matches!(other.receive(), Received::Nothing) {}
        one.send(tag(2), b"whole", &[], soon()).unwrap();
        assert_eq!(&*receive(&mut other).body, b"whole");
    }

    #[test]
    fn what_was_sent_before_the_end_arrives() {
        let (one, mut other) = pair();
        one.send(tag(1), b"last", &[], soon()).unwrap();
        // Unread by the closing side: the kernel reports that before the data.
        other.send(tag(1), b"unread", &[], soon()).unwrap();
        drop(one);
        assert_eq!(&*receive(&mut other).body, b"last");
        assert!(matches!(other.receive(), Received::Closed));
        assert!(matches!(other.send(tag(2), b"", &[], soon()), Err(Unsent::Closed)));
    }

    #[test]
    fn garbage_is_no_message() {
        for garbage in [&b"short"[..], &[99, 1, 0, 0, 1, 0, 0, 0], &[1, 99, 0, 0, 1, 0, 0, 0]] {
            let (one, mut other) = pair();
            rustix::net::send(&one, garbage, SendFlags::empty()).unwrap();
            assert!(matches!(other.receive(), Received::Closed));
        }
    }
}
