//! How ranks find each other: rank 0 listens at a [`Place`], the others connect and say who they are. What is wrong
//! with one is told to all.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Instant, SystemTime};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::channel::{Channel, Kind, Message, Received};
use super::liveness::{Beacon, Roster, left_file};
use super::place::{Connect, Listen, Place, check_user};
use super::star::{Part, Parts, Star};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::hello::Hello;
use crate::transport::waiting::{GRACE, Operation, Pauses, ended, timeout, wait};
use crate::transport::wire::decode_error;

const JOIN: Operation = Operation::Join;

/// Makes a world: connections, roster, and what the ranks have said of themselves. Collective. `place` is needed by worlds of more than one rank; `hint` says
/// what may be wrong if a rank does not come.
pub fn meet(place: Option<&Place>, me: &Hello, hint: &str, deadline: Instant) -> Result<(Star, Roster, Vec<Hello>)> {
    let beacon = Beacon::new()?;
    let joined = match place {
        Some(place) => join(place, me, &beacon, deadline),
        None => parts(me, &beacon, Vec::new()).map(|parts| (Star::hub(Vec::new()), parts)),
    };
    let (mut star, parts) = joined.map_err(|error| match (error.kind, place) {
        (ErrorKind::Timeout, Some(place)) => {
            Error::new(error.kind, format!("{}, at {}{hint}", error.message, place.path().display()))
        }
        _ => error,
    })?;
    // Whoever could not take the descriptors says so now, and nobody has a world.
    let met = roster(me.rank, parts, beacon);
    let mine = met.as_ref().map(|_| Part { body: &[], fd: None }).map_err(Error::clone);
    let roster = met.as_ref().map(|(roster, _)| roster).ok();
    star.gather(JOIN, mine, roster, deadline.max(Instant::now() + GRACE))?;
    let (roster, hellos) = met?;
    Ok((star, roster, hellos))
}

fn join(place: &Place, me: &Hello, beacon: &Beacon, deadline: Instant) -> Result<(Star, Parts)> {
    let begin = Instant::now();
    if me.rank == 0
        && let Some(listener) = listen(place, deadline)?
    {
        place.sweep();
        let members = (1..me.nranks).map(|_| None).collect();
        return Host { place, me, listener, begin, deadline, members, strangers: Vec::new() }.run(beacon);
    }
    // Rank 0 comes here if there is one already, which will tell both so.
    let mut star = Star::spoke(connect(place, begin, deadline)?);
    let mine = Part { body: &me.encode(), fd: Some(beacon.light.as_fd()) };
    let parts = star.gather(JOIN, Ok(mine), None, deadline).inspect_err(|error| {
        if error.kind == ErrorKind::PeerLost {
            clean_up(place);
        }
    })?;
    Ok((star, parts))
}

/// What rank 0 tells all: everyone's hello and light, by rank, and the page in which ranks mark their leaving.
fn parts(me: &Hello, beacon: &Beacon, others: Vec<(Hello, OwnedFd)>) -> Result<Parts> {
    let light = beacon.light.try_clone().map_err(|e| Error::io("copying a file descriptor", e))?;
    let (hellos, mut fds): (Vec<_>, Vec<_>) = std::iter::once((me.clone(), light)).chain(others).unzip();
    fds.push(left_file(me.nranks)?);
    Ok(Parts { bodies: hellos.iter().map(Hello::encode).collect(), fds: Ok(fds) })
}

fn roster(rank: u32, parts: Parts, beacon: Beacon) -> Result<(Roster, Vec<Hello>)> {
    let hellos = parts.bodies.iter().map(|body| Hello::decode(body)).collect::<Result<Vec<_>>>()?;
    let mut lights = parts.fds?;
    let left = lights.pop().filter(|_| lights.len() == hellos.len());
    let left = left.ok_or_else(|| Error::new(ErrorKind::Mismatch, "rank 0 has sent too few file descriptors"))?;
    let processes = hellos.iter().map(|hello| hello.process).collect();
    Ok((Roster::new(rank, lights, processes, left, beacon)?, hellos))
}

/// A listening socket; `None` if somebody has one at this place.
fn listen(place: &Place, deadline: Instant) -> Result<Option<OwnedFd>> {
    let mut pauses = Pauses::until(deadline);
    loop {
        match place.listen()? {
            Listen::Listening(socket) => return Ok(Some(socket)),
            Listen::Taken => return Ok(None),
            Listen::Busy => {}
        }
        if !pauses.pause() {
            let message = format!("other processes keep the directory of {} busy", place.path().display());
            return Err(Error::new(ErrorKind::Timeout, message));
        }
    }
}

fn connect(place: &Place, begin: Instant, deadline: Instant) -> Result<Channel> {
    let start = SystemTime::now();
    let last_tenth = deadline - (deadline - begin) / 10;
    let mut pauses = Pauses::until(deadline);
    loop {
        // Nobody came: perhaps rank 0 waits in a world of another size. It will tell all who disagrees.
        let elsewhere = if Instant::now() < last_tenth { None } else { place.other_size() };
        match elsewhere.as_ref().unwrap_or(place).connect()? {
            Connect::Connected(socket) => return Ok(Channel::new(socket)),
            Connect::NotYet => {}
            Connect::Dead => {
                // Left by a former run, unless it was made while this rank was waiting.
                if place.remove_dead()?.is_some_and(|made| made > start) {
                    return Err(ended(0));
                }
            }
        }
        if !pauses.pause() {
            return Err(timeout(&[0], JOIN, deadline - begin));
        }
    }
}

/// Removes the name that a dead rank 0 has left. The kernel closes the sockets of a process one after the other, so the
/// listening one may live a moment longer than the connection.
fn clean_up(place: &Place) {
    let mut pauses = Pauses::until(Instant::now() + GRACE);
    while let Ok(None) = place.remove_dead()
        && place.exists()
        && pauses.pause()
    {}
}

/// Rank 0, waiting for the others.
struct Host<'a> {
    place: &'a Place,
    me: &'a Hello,
    listener: OwnedFd,
    begin: Instant,
    deadline: Instant,
    /// Ranks 1, 2, ..., as they come.
    members: Vec<Option<Member>>,
    /// Connections that have not said who they are.
    strangers: Vec<Channel>,
}

struct Member {
    channel: Channel,
    hello: Hello,
    light: OwnedFd,
}

impl Host<'_> {
    fn run(mut self, beacon: &Beacon) -> Result<(Star, Parts)> {
        if let Err(error) = self.gather() {
            self.turn_away(&error);
            return Err(error);
        }
        // Nobody needs the name any more, and a dead process could not remove it.
        self.place.unlink();
        let _ = self.accept();
        let message = format!("the world of {} ranks is complete without this process", self.me.nranks);
        Star::hub(self.strangers).announce_failure(JOIN, &Error::new(ErrorKind::Mismatch, message));
        let members = self.members.into_iter().flatten();
        let (channels, others) = members.map(|member| (member.channel, (member.hello, member.light))).unzip();
        let mut star = Star::hub(channels);
        let parts = parts(self.me, beacon, others);
        match &parts {
            Ok(parts) => star.announce_parts(JOIN, parts, self.deadline),
            Err(error) => star.announce_failure(JOIN, error),
        }
        Ok((star, parts?))
    }

    /// Tells those who have come why there is no world, and for a moment also those who still come.
    fn turn_away(&mut self, error: &Error) {
        let end = (Instant::now() + GRACE).min(self.deadline);
        self.tell(error);
        while wait(&mut [PollFd::new(&self.listener, PollFlags::IN)], end) {
            self.tell(error);
        }
        self.place.unlink();
        self.tell(error);
    }

    fn tell(&mut self, error: &Error) {
        // Whoever may not come in is told too.
        let _ = self.accept();
        let members = self.members.iter_mut().filter_map(Option::take).map(|member| member.channel);
        let channels = members.chain(self.strangers.drain(..)).collect();
        Star::hub(channels).announce_failure(JOIN, error);
    }

    fn gather(&mut self) -> Result<()> {
        loop {
            self.accept()?;
            self.identify()?;
            self.listen_to_members()?;
            let missing = (1..).zip(&self.members).filter(|(_, member)| member.is_none()).map(|(rank, _)| rank);
            let missing = missing.collect::<Vec<_>>();
            if missing.is_empty() {
                return Ok(());
            }
            let members = self.members.iter().flatten().map(|member| &member.channel);
            let channels = members.chain(&self.strangers).map(|channel| PollFd::new(channel, PollFlags::IN));
            let mut fds = channels.chain([PollFd::new(&self.listener, PollFlags::IN)]).collect::<Vec<_>>();
            if !wait(&mut fds, self.deadline) {
                return Err(timeout(&missing, JOIN, self.deadline - self.begin));
            }
        }
    }

    /// Takes in those who have connected.
    fn accept(&mut self) -> Result<()> {
        loop {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    let user = check_user(&socket, "connects to", self.place.path());
                    self.strangers.push(Channel::new(socket));
                    user?;
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(e) => return Err(Error::io("accepting a rank", e)),
            }
        }
    }

    /// Turns strangers who say a proper hello into members.
    fn identify(&mut self) -> Result<()> {
        let mut result = Ok(());
        for mut channel in std::mem::take(&mut self.strangers) {
            match channel.receive() {
                Received::Message(message) => match self.check(message) {
                    Ok((hello, light)) => {
                        let index = hello.rank as usize - 1;
                        self.members[index] = Some(Member { channel, hello, light });
                    }
                    Err(error) => {
                        // It stays, to be told.
                        self.strangers.push(channel);
                        result = Err(error);
                    }
                },
                Received::Nothing => self.strangers.push(channel),
                // Somebody who looked whether this place is alive.
                Received::Closed => {}
            }
        }
        result
    }

    fn check(&self, message: Message) -> Result<(Hello, OwnedFd)> {
        if message.tag.kind == Kind::Refusal {
            return Err(decode_error(&message.body));
        }
        let hello = Hello::decode(&message.body)?;
        let earlier = |rank: u32| self.members[rank as usize - 1].as_ref().map(|member| &member.hello);
        hello.check(self.me, earlier)?;
        match message.fds.into_iter().next() {
            Some(light) => Ok((hello, light)),
            None => Err(Error::new(
                ErrorKind::Io,
                format!("rank 0 has no room for the file descriptor of rank {}", hello.rank),
            )),
        }
    }

    /// Members only speak when they give up.
    fn listen_to_members(&mut self) -> Result<()> {
        let missing = (1..).zip(&self.members).filter(|(_, member)| member.is_none()).map(|(rank, _)| rank);
        let missing = missing.collect::<Vec<_>>();
        for (rank, member) in (1..).zip(&mut self.members) {
            match member.as_mut().map(|member| member.channel.receive()) {
                Some(Received::Message(message)) => {
                    let error = decode_error(&message.body);
                    let late = error.kind == ErrorKind::Timeout && !missing.is_empty();
                    return Err(if late { timeout(&missing, JOIN, self.deadline - self.begin) } else { error });
                }
                Some(Received::Closed) => return Err(ended(rank)),
                Some(Received::Nothing) | None => {}
            }
        }
        Ok(())
    }
}
