//! How a world goes on after a failed launch, and how ranks meet.
//!
//! Each rank's first call that meets a failure returns it. The call after that begins with a recovery: all ranks meet
//! and compare what they are about to do; each zeroes its copies of the windows that were in use; all meet again, and
//! are in the next epoch. Ranks need not have begun the same launches: afterwards all count from the furthest one.
//! In a process that drives all ranks the meetings are over at once.

use std::fmt;
use std::sync::atomic::Ordering;

use super::core::Core;
use super::executable::Image;
use super::windows::Repair;
use crate::error::{Error, ErrorKind, Result};

/// Why ranks meet: the first byte of their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Topic {
    /// A step of compiling is done.
    Compiled = 0,
    /// It is not, and this is why.
    NotCompiled = 1,
    /// A launch has failed, and this is the next call.
    Recovery = 2,
    /// Windows are as they will be.
    Repaired = 3,
}

/// A call that all ranks make together.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Compile(&'a str),
    Launch(&'a Image),
    Reset(&'a Image),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Compile(name) => write!(f, "compiles '{name}'"),
            Step::Launch(image) => write!(f, "launches '{}' (executable {})", image.name, image.id + 1),
            Step::Reset(image) => write!(f, "resets '{}' (executable {})", image.name, image.id + 1),
        }
    }
}

/// What a rank says when ranks meet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new(topic: Topic, text: &str) -> Self {
        const LONGEST: usize = 1024;
        let mut bytes = vec![topic as u8];
        bytes.extend(text.bytes().take(LONGEST));
        Self(bytes)
    }

    pub(super) fn is(&self, topic: Topic) -> bool {
        self.0.first() == Some(&(topic as u8))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.0.get(1..).unwrap_or_default()).into_owned()
    }
}

impl Core {
    /// Exchanges messages; all ranks come with the same call, and about the same topic, or all get an error.
    pub(super) fn meet(&self, mine: Message) -> Result<Vec<Message>> {
        let all = self.transport.exchange(&mine.0, self.meeting_deadline()).map_err(|e| self.lost(e))?;
        let all: Vec<Message> = all.into_iter().map(Message).collect();
        let recovers = |message: &Message| message.is(Topic::Recovery) || message.is(Topic::Repaired);
        match all.iter().position(|message| recovers(message) != recovers(&all[0])) {
            None => Ok(all),
            Some(rank) => {
                let (other, recovering) = if recovers(&all[0]) { (rank, 0) } else { (0, rank) };
                let message = format!("rank {recovering} recovers from a failed launch, rank {other} does not");
                Err(Error::new(ErrorKind::Mismatch, message))
            }
        }
    }

    /// A rank that is lost while all work together ends the world.
    pub(super) fn lost(&self, error: Error) -> Error {
        if error.kind == ErrorKind::PeerLost {
            self.fail(self.local.start, &error);
        }
        self.end().unwrap_or(error)
    }

    /// Recovers from a failure that this process has returned; `step` comes after that.
    #[cold]
    pub(super) fn recover(&self, step: Step) -> Result<()> {
        self.flights.wait_idle();
        let windows = self.windows();
        windows.iter().for_each(|windows| windows.come_to_recovery(self.local.clone()));
        // Nothing of the failed launch arrives later than all ranks meet.
        self.reach_far(self.meeting_deadline())?;
        // What ends the world reads the same wherever it is met.
        let within = |e: Error| match self.end() {
            Some(end) => end,
            None => Error::new(e.kind, format!("recovering from a failed launch: {}", e.message)),
        };
        let meet = |topic, text: &str| self.meet(Message::new(topic, text)).map_err(within);
        let all = meet(Topic::Recovery, &step.to_string())?;
        if let Some(rank) = all.iter().position(|message| *message != all[0]) {
            let (first, other) = (all[0].text(), all[rank].text());
            let message = format!("after a failed launch rank 0 {first}, rank {rank} {other}");
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        for (queue, rank) in self.queues.iter().zip(self.local.clone()) {
            if let Err(error) = queue.recover() {
                let message = format!("rank {rank}: recovering its card: {}", error.message);
                self.fail(rank, &Error::new(ErrorKind::Internal, message));
            }
        }
        let repairs: Vec<Repair> = windows.iter().map(|windows| windows.repair(self)).collect();
        meet(Topic::Repaired, "")?;
        for (windows, repair) in windows.iter().zip(repairs) {
            windows.recovered(self, repair);
        }
        self.launches.store(0, Ordering::Relaxed);
        self.meetings.store(0, Ordering::Relaxed);
        self.epoch.store(self.epoch.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(())
    }
}
