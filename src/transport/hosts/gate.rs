//! Rank 0 while the world is made: it lets in who knows the secret and belongs to this world. What is wrong with one who
//! knows the secret is told to all; others disturb nobody.

use std::io::ErrorKind as Io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::frame::{Frame, JOIN, Welcome};
use super::handshake::{PATIENCE, Progress, Stranger};
use super::link::{Broken, Link, Sealable};
use super::secret::{Secret, nonce};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::MAX_MESSAGE;
use crate::transport::hello::Hello;
use crate::transport::waiting::{GRACE, Operation, ended, timeout, wait};

/// So many more than ranks may be in the middle of saying who they are; the oldest one has to go.
const STRANGERS: usize = 64;
/// Longest frame of a rank: a message and what is around it.
const LONGEST: usize = MAX_MESSAGE + 4096;

pub struct Gate<'a> {
    listener: TcpListener,
    secret: &'a Secret,
    me: &'a Hello,
    begin: Instant,
    deadline: Instant,
    /// Ranks 1, 2, ..., as they come.
    members: Vec<Option<(Hello, Link)>>,
    /// Who has not proved that it knows the secret.
    strangers: Vec<Stranger>,
    /// Who has, but has not said which rank it is.
    nameless: Vec<Link>,
    /// One who came with another secret.
    other: Option<SocketAddr>,
}

impl<'a> Gate<'a> {
    pub fn new(listener: TcpListener, secret: &'a Secret, me: &'a Hello, deadline: Instant) -> Result<Self> {
        listener.set_nonblocking(true).map_err(|e| Error::io("a listening socket", e))?;
        let members = (1..me.nranks).map(|_| None).collect();
        let begin = Instant::now();
        let (strangers, nameless) = (Vec::new(), Vec::new());
        Ok(Self { listener, secret, me, begin, deadline, members, strangers, nameless, other: None })
    }

    /// The connections to ranks 1, 2, ..., and what all have been told. `hint` is for ranks that do not come.
    pub fn run(mut self, silence: Duration, hint: &str) -> Result<(Vec<Link>, Welcome)> {
        if let Err(error) = self.gather() {
            let error = self.explained(error, hint);
            self.turn_away(&error);
            return Err(error);
        }
        let _ = self.accept();
        let Self { listener, members, strangers, nameless, me, .. } = self;
        // Whoever comes now is for another world. Nobody comes for that before this one is complete.
        drop(listener);
        strangers.into_iter().for_each(|stranger| stranger.dismiss(me.nranks));
        let late = format!("the world of {} ranks is complete without this process", me.nranks);
        tell(nameless, &Frame::Failure(JOIN, Error::new(ErrorKind::Mismatch, late)));

        let (others, mut links): (Vec<_>, Vec<_>) = members.into_iter().flatten().unzip();
        let hellos = std::iter::once(me.clone()).chain(others).collect();
        let welcome = Welcome { hellos, session: nonce()?[..16].to_vec(), silence };
        let message = Sealable::from(&Frame::Welcome(welcome.clone()));
        for link in &mut links {
            // One that has just ended is found out by whoever serves the connections.
            let _ = link.send(&message);
        }
        Ok((links, welcome))
    }

    fn gather(&mut self) -> Result<()> {
        loop {
            self.accept()?;
            self.advance()?;
            self.identify()?;
            self.listen_to_members()?;
            let missing = self.missing();
            if missing.is_empty() {
                return Ok(());
            }
            if Instant::now() >= self.deadline {
                return Err(timeout(&missing, Operation::Join, self.deadline.saturating_duration_since(self.begin)));
            }
            self.wait(self.deadline.min(Instant::now() + PATIENCE / 5));
        }
    }

    fn missing(&self) -> Vec<u32> {
        (1..).zip(&self.members).filter(|(_, member)| member.is_none()).map(|(rank, _)| rank).collect()
    }

    fn wait(&self, deadline: Instant) {
        let links = self.members.iter().flatten().map(|(_, link)| link).chain(&self.nameless);
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(links.map(|link| PollFd::new(link.socket(), PollFlags::IN)));
        fds.extend(self.strangers.iter().map(|stranger| PollFd::new(stranger.stream(), PollFlags::IN)));
        wait(&mut fds, deadline);
    }

    fn accept(&mut self) -> Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_ok() {
                        self.strangers.push(Stranger::new(stream));
                    }
                    if self.strangers.len() > STRANGERS + self.members.len() {
                        self.strangers.remove(0);
                    }
                }
                Err(e) if e.kind() == Io::WouldBlock => return Ok(()),
                Err(e) if matches!(e.kind(), Io::Interrupted | Io::ConnectionAborted) => {}
                Err(e) => return Err(Error::io("accepting a rank", e)),
            }
        }
    }

    /// Listens to strangers, but not for long.
    fn advance(&mut self) -> Result<()> {
        let now = Instant::now();
        for stranger in std::mem::take(&mut self.strangers) {
            match stranger.advance(self.secret, LONGEST)? {
                Progress::Waiting(stranger) if now.saturating_duration_since(stranger.since) < PATIENCE => {
                    self.strangers.push(stranger);
                }
                Progress::Waiting(_) | Progress::Nobody => {}
                Progress::Known(link) => self.nameless.push(link),
                Progress::OtherSecret(stream) => self.other = stream.peer_addr().ok().or(self.other),
            }
        }
        Ok(())
    }

    /// Turns those who say a proper hello into members.
    fn identify(&mut self) -> Result<()> {
        let mut result = Ok(());
        for mut link in std::mem::take(&mut self.nameless) {
            match first_frame(&mut link) {
                Ok(None) => self.nameless.push(link),
                Ok(Some(frame)) => match self.check(frame) {
                    Ok(hello) => {
                        let index = hello.rank as usize - 1;
                        self.members[index] = Some((hello, link));
                    }
                    Err(error) => {
                        // It stays, to be told.
                        self.nameless.push(link);
                        result = Err(error);
                    }
                },
                // Its version may not even have the same frames.
                Err(Broken::Because(why)) => {
                    self.nameless.push(link);
                    result = Err(Error::new(ErrorKind::Mismatch, why));
                }
                Err(Broken::Ended) => {}
            }
        }
        result
    }

    fn check(&self, frame: Frame) -> Result<Hello> {
        match frame {
            Frame::Hello(hello) => {
                let earlier = |rank: u32| self.members[rank as usize - 1].as_ref().map(|(hello, _)| hello);
                hello.check(self.me, earlier)?;
                Ok(hello)
            }
            Frame::Refusal(_, error) => Err(error),
            _ => Err(Error::new(ErrorKind::Mismatch, "a process does not say which rank it is")),
        }
    }

    /// Members only speak when they give up.
    fn listen_to_members(&mut self) -> Result<()> {
        let missing = self.missing();
        for (rank, member) in (1..).zip(&mut self.members) {
            let Some((_, link)) = member else { continue };
            match first_frame(link) {
                Ok(None) => {}
                Ok(Some(Frame::Late(_, waited))) if !missing.is_empty() => {
                    return Err(timeout(&missing, Operation::Join, waited));
                }
                Ok(Some(Frame::Refusal(_, error))) => return Err(error),
                Ok(Some(_)) | Err(_) => return Err(ended(rank)),
            }
        }
        Ok(())
    }

    /// What there is to say about ranks that have not come.
    fn explained(&self, error: Error, hint: &str) -> Error {
        if error.kind != ErrorKind::Timeout {
            return error;
        }
        let other = self.other.map(|from| format!("; a process at {} came with a different secret", from.ip()));
        Error::new(error.kind, format!("{}{hint}{}", error.message, other.unwrap_or_default()))
    }

    /// Tells those who have come why there is no world, and for a moment also those who still come.
    fn turn_away(mut self, error: &Error) {
        let end = Instant::now() + GRACE;
        let failure = Frame::Failure(JOIN, error.clone());
        let members = std::mem::take(&mut self.members).into_iter().flatten().map(|(_, link)| link);
        let mut told = tell(members, &failure);
        loop {
            let nameless = std::mem::take(&mut self.nameless);
            told.extend(tell(nameless, &failure));
            // Whoever has been told ends its connection.
            told.retain_mut(|link| link.receive(&mut Vec::new()).is_ok());
            if Instant::now() >= end {
                return;
            }
            self.wait_for(&told, end.min(Instant::now() + GRACE / 10));
            if self.accept().is_err() || self.advance().is_err() {
                return;
            }
        }
    }

    fn wait_for(&self, told: &[Link], deadline: Instant) {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.strangers.iter().map(|stranger| PollFd::new(stranger.stream(), PollFlags::IN)));
        fds.extend(told.iter().map(|link| PollFd::new(link.socket(), PollFlags::IN)));
        wait(&mut fds, deadline);
    }
}

fn tell(links: impl IntoIterator<Item = Link>, frame: &Frame) -> Vec<Link> {
    let message = Sealable::from(frame);
    let mut told = links.into_iter().collect::<Vec<_>>();
    told.retain_mut(|link| link.send(&message).is_ok());
    told
}

/// The first of what has come; more is not expected.
fn first_frame(link: &mut Link) -> Result<Option<Frame>, Broken> {
    let mut frames = Vec::new();
    let result = link.receive(&mut frames);
    match frames.into_iter().next() {
        Some(frame) => Ok(Some(frame)),
        None => result.map(|()| None),
    }
}
