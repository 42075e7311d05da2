//! Collectives: every rank sends its part to rank 0, which sends all parts to everybody, or an error to everybody.
//!
//! Collectives are numbered. A rank that gives up (time-out, lost peer, no memory) tells rank 0 and waits a little for
//! its verdict, so that all ranks have the same error. A rank that comes late finds the verdict waiting, and what is
//! left over of a failed collective is recognised by its number: the next collective works.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Resource, getrlimit};

use super::channel::{Channel, Kind, Message, Received, Tag, Unsent};
use super::liveness::Roster;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::waiting::{GRACE, Operation, ended, timeout, wait};
use crate::transport::wire::{Put, Reader, decode_error, encode_error};

/// What a rank brings.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub body: &'a [u8],
    pub fd: Option<BorrowedFd<'a>>,
}

/// What all ranks brought.
#[derive(Debug)]
pub struct Parts {
    /// By rank.
    pub bodies: Vec<Vec<u8>>,
    /// By rank; an error if this process had no room for them.
    pub fds: Result<Vec<OwnedFd>>,
}

/// One rank's connections.
#[derive(Debug)]
pub struct Star {
    links: Links,
    /// Number of the last collective.
    sequence: u32,
}

#[derive(Debug)]
enum Links {
    /// Rank 0: to ranks 1, 2, ...
    Hub(Vec<Channel>),
    /// Another rank: to rank 0.
    Spoke(Channel),
}

impl Star {
    pub fn hub(channels: Vec<Channel>) -> Self {
        Self { links: Links::Hub(channels), sequence: 0 }
    }

    pub fn spoke(channel: Channel) -> Self {
        Self { links: Links::Spoke(channel), sequence: 0 }
    }

    /// One collective. A rank that brings an error makes it fail on all ranks. `roster` is there once the world is.
    pub fn gather(
        &mut self,
        operation: Operation,
        mine: Result<Part<'_>>,
        roster: Option<&Roster>,
        deadline: Instant,
    ) -> Result<Parts> {
        let call = Call { operation, sequence: self.sequence + 1, begin: Instant::now(), deadline, roster };
        match &mut self.links {
            Links::Hub(channels) => {
                let result = collect(channels, &call, mine);
                match &result {
                    Ok(parts) => self.announce_parts(operation, parts, deadline),
                    Err(error) => self.announce_failure(operation, error),
                }
                result
            }
            Links::Spoke(channel) => {
                self.sequence += 1;
                contribute(channel, &call, mine)
            }
        }
    }

    /// Rank 0 ends a collective with success.
    pub fn announce_parts(&mut self, operation: Operation, parts: &Parts, deadline: Instant) {
        let mut body = Vec::new();
        parts.bodies.iter().for_each(|part| body.put_bytes(part));
        let fds = parts.fds.iter().flatten().map(AsFd::as_fd).collect::<Vec<_>>();
        self.announce(Kind::Parts, operation, &body, &fds, deadline.max(Instant::now() + GRACE));
    }

    /// Rank 0 ends a collective with an error. It does not wait for ranks that are far behind.
    pub fn announce_failure(&mut self, operation: Operation, error: &Error) {
        self.announce(Kind::Failure, operation, &encode_error(error), &[], Instant::now());
    }

    fn announce(&mut self, kind: Kind, operation: Operation, body: &[u8], fds: &[BorrowedFd<'_>], deadline: Instant) {
        self.sequence += 1;
        let tag = Tag { kind, operation, sequence: self.sequence };
        let Links::Hub(channels) = &self.links else { unreachable!("only rank 0 announces") };
        for channel in channels {
            // A rank that has just ended is seen by the next collective.
            let _ = channel.send(tag, body, fds, deadline);
        }
    }
}

/// One collective, on one rank.
struct Call<'a> {
    operation: Operation,
    sequence: u32,
    begin: Instant,
    deadline: Instant,
    roster: Option<&'a Roster>,
}

impl Call<'_> {
    fn tag(&self, kind: Kind) -> Tag {
        Tag { kind, operation: self.operation, sequence: self.sequence }
    }

    fn timeout(&self, missing: &[u32]) -> Error {
        let name = |rank: &u32| self.roster.map_or(*rank, |roster| roster.name(*rank));
        let missing = missing.iter().map(name).collect::<Vec<_>>();
        timeout(&missing, self.operation, self.deadline - self.begin)
    }

    /// Why the collective fails now that `rank` is gone: if it left, perhaps because another one was lost.
    fn gone(&self, rank: u32) -> Error {
        self.roster.map_or_else(|| ended(rank), |roster| roster.obituary(roster.lost().unwrap_or(rank)))
    }
}

/// Rank 0's side, up to the verdict.
fn collect(channels: &mut [Channel], call: &Call<'_>, mine: Result<Part<'_>>) -> Result<Parts> {
    let mine = mine?;
    let mut messages = channels.iter().map(|_| None).collect::<Vec<_>>();
    let mut gone = None;
    loop {
        let mut closed = None;
        let mut refusal = None;
        for (rank, (channel, message)) in (1..).zip(channels.iter_mut().zip(&mut messages)) {
            match drain(channel, rank, call, message) {
                Ok(is_closed) => closed = closed.or(is_closed.then_some(rank)),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        let missing = (1..).zip(&messages).filter(|(_, message)| message.is_none()).map(|(rank, _)| rank);
        let missing = missing.collect::<Vec<_>>();
        match refusal {
            // Only rank 0 knows for whom the others have waited.
            Some(Error { kind: ErrorKind::Timeout, .. }) if !missing.is_empty() => return Err(call.timeout(&missing)),
            Some(error) => return Err(error),
            None if missing.is_empty() => break,
            None => {}
        }
        // Messages that were sent before the end have been read by now.
        if let Some(rank) = closed.or(gone) {
            return Err(call.gone(rank));
        }
        gone = call.roster.and_then(Roster::gone);
        let links = channels.iter().map(|channel| PollFd::new(channel, PollFlags::IN));
        let mut fds = links.chain(call.roster.into_iter().flat_map(Roster::watched)).collect::<Vec<_>>();
        if gone.is_none() && !wait(&mut fds, call.deadline) {
            return Err(call.timeout(&missing));
        }
    }
    let mut bodies = vec![mine.body.to_vec()];
    let mut fds = Vec::from_iter(mine.fd.map(|fd| fd.try_clone_to_owned()).transpose().map_err(|_| no_fds())?);
    for message in messages.into_iter().flatten() {
        if message.fds_lost {
            return Err(no_fds());
        }
        bodies.push(message.body);
        fds.extend(message.fds);
    }
    Ok(Parts { bodies, fds: Ok(fds) })
}

/// Reads what `rank` has sent; true if it is gone. Its refusal is the error.
fn drain(channel: &mut Channel, rank: u32, call: &Call<'_>, part: &mut Option<Message>) -> Result<bool> {
    loop {
        match channel.receive() {
            Received::Message(Message { tag, .. }) if tag.sequence < call.sequence => {}
            Received::Message(message) if message.tag == call.tag(Kind::Part) => *part = Some(message),
            Received::Message(Message { tag: Tag { kind: Kind::Refusal, .. }, body, .. }) => {
                return Err(decode_error(&body));
            }
            Received::Message(message) => {
                let (mine, theirs) = (call.operation.name(), message.tag.operation.name());
                let message = format!("rank 0 calls {mine} while rank {rank} calls {theirs}");
                return Err(Error::new(ErrorKind::Mismatch, message));
            }
            Received::Nothing => return Ok(false),
            Received::Closed => return Ok(true),
        }
    }
}

/// Another rank's side.
fn contribute(channel: &mut Channel, call: &Call<'_>, mine: Result<Part<'_>>) -> Result<Parts> {
    let mut refusal = None;
    let mut patience = call.deadline;
    let refuse = |channel: &Channel, error: Error| {
        let _ = channel.send(call.tag(Kind::Refusal), &encode_error(&error), &[], Instant::now());
        Some(error)
    };
    match mine {
        Err(error) => refusal = refuse(channel, error),
        Ok(Part { body, fd }) => {
            if let Err(Unsent::Timeout) = channel.send(call.tag(Kind::Part), body, fd.as_slice(), call.deadline) {
                refusal = refuse(channel, call.timeout(&[0]));
                patience = Instant::now() + GRACE;
            }
        }
    }
    loop {
        match channel.receive() {
            Received::Message(message) if message.tag == call.tag(Kind::Parts) => return parts(message),
            Received::Message(message) if message.tag.sequence == call.sequence => {
                return Err(decode_error(&message.body));
            }
            Received::Message(_) => continue,
            // Whatever this rank has refused for, it may have been a consequence of this.
            Received::Closed => return Err(call.gone(0)),
            Received::Nothing => {}
        }
        let mut fds = vec![PollFd::new(channel, PollFlags::IN)];
        if refusal.is_none() {
            if let Some(rank) = call.roster.and_then(Roster::gone) {
                refusal = refuse(channel, call.gone(rank));
                patience = Instant::now() + GRACE;
                continue;
            }
            fds.extend(call.roster.into_iter().flat_map(Roster::watched));
        }
        if !wait(&mut fds, patience) {
            if let Some(error) = refusal {
                return Err(error);
            }
            refusal = refuse(channel, call.timeout(&[0]));
            patience = Instant::now() + GRACE;
        }
    }
}

fn parts(message: Message) -> Result<Parts> {
    let mut reader = Reader(&message.body);
    let mut bodies = Vec::new();
    while !reader.is_empty() {
        bodies.push(reader.bytes()?.to_vec());
    }
    let fds = if message.fds_lost { Err(no_fds()) } else { Ok(message.fds) };
    Ok(Parts { bodies, fds })
}

fn no_fds() -> Error {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    Error::new(ErrorKind::Io, format!("no room for the file descriptors of all ranks (RLIMIT_NOFILE is {limit})"))
}
