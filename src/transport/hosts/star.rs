//! The connections of all processes of a world to rank 0's, by which they exchange messages and hear of each other. One
//! thread a process serves them.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Pid, getpid};

use super::frame::{Call, Frame, Welcome};
use super::state::{Ends, Hear, State};
use crate::error::{Error, Result};
use crate::transport::background;
use crate::transport::hello::Hello;
use crate::transport::waiting::{GRACE, Operation, timeout};
use crate::transport::{MAX_MESSAGE, far::News};

/// One process's part of it. Dropping it waits, for no longer than a silence, until nobody needs it.
pub struct Star {
    shared: Arc<Shared>,
    welcome: Welcome,
    /// Collectives take turns.
    turn: Mutex<()>,
    thread: Option<JoinHandle<()>>,
    /// The process that joined; a forked child is not it.
    owner: Pid,
}

struct Shared {
    state: Mutex<State>,
    /// Something was heard.
    changed: Condvar,
    /// Wakes the thread.
    bell: OwnedFd,
    rank: u32,
    silence: Duration,
}

/// Says to all that a rank is lost.
pub struct Voice(Arc<Shared>);

impl Voice {
    /// This process has lost `rank`.
    pub fn miss(&self, rank: u32, why: String) {
        self.0.lock().submit(Frame::Missing { rank, why });
        self.0.ring();
    }
}

impl Star {
    /// `frames` have come right behind the welcome.
    pub fn new(rank: u32, ends: Ends, welcome: Welcome, frames: Vec<Frame>) -> Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = eventfd(0, flags).map_err(|e| Error::io("eventfd", e))?;
        let silence = welcome.silence;
        let mut state = State::new(rank, welcome.hellos.len() as u32, silence, ends);
        frames.into_iter().for_each(|frame| state.hear(frame));
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), bell, rank, silence });
        let served = shared.clone();
        let thread = Some(background::spawn(format!("pld-star-{rank}"), move || served.serve())?);
        Ok(Self { shared, welcome, turn: Mutex::new(()), thread, owner: getpid() })
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.shared.rank
    }

    /// What all ranks have said of themselves, by rank.
    pub fn hellos(&self) -> &[Hello] {
        &self.welcome.hellos
    }

    /// Tells this world from all others.
    pub fn session(&self) -> &[u8] {
        &self.welcome.session
    }

    /// How long a process may be silent before it is lost.
    pub fn silence(&self) -> Duration {
        self.shared.silence
    }

    /// One collective. A rank that brings an error makes it fail on all ranks.
    pub fn gather(&self, operation: Operation, mine: Result<&[u8]>, deadline: Instant) -> Result<Vec<Vec<u8>>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = deadline.saturating_duration_since(Instant::now());
        let mut state = self.shared.lock();
        state.sequence += 1;
        let call = Call { operation, sequence: state.sequence };
        let mut patience = deadline;
        let mut refusal = None;
        match mine {
            Ok(body) => state.submit(Frame::Part(call, body.to_vec())),
            Err(error) => {
                state.submit(Frame::Refusal(call, error.clone()));
                (refusal, patience) = (Some(error), Instant::now() + GRACE);
            }
        }
        self.shared.ring();
        loop {
            if let Some(verdict) = state.verdict(call) {
                return verdict;
            }
            let left = patience.saturating_duration_since(Instant::now());
            if left.is_zero() {
                if let Some(error) = refusal {
                    return Err(error);
                }
                state.submit(Frame::Late(call, waited));
                self.shared.ring();
                (refusal, patience) = (Some(timeout(&[0], operation, waited)), Instant::now() + GRACE);
                continue;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Says who hears the news, also those that have come before.
    pub fn listen(&self, listener: Hear) {
        self.shared.lock().listener = Some(listener);
        self.shared.ring();
    }

    /// Tells all processes.
    pub fn announce(&self, body: &[u8]) -> Result<()> {
        if body.len() > MAX_MESSAGE {
            return Err(Error::invalid(format!("an announcement of {} bytes; the most is {MAX_MESSAGE}", body.len())));
        }
        let mut state = self.shared.lock();
        if state.left || state.is_over() {
            return Err(state.gone());
        }
        state.submit(Frame::Say(body.to_vec()));
        self.shared.ring();
        Ok(())
    }

    /// Says what this process has lost.
    pub fn voice(&self) -> Voice {
        Voice(Arc::clone(&self.shared))
    }

    /// A rank that was lost.
    pub fn lost(&self) -> Option<u32> {
        self.shared.lock().fates.lost()
    }

    /// Takes no further part, once `ready` is true or the time has come. Does not wait. A forked child does not speak
    /// for the rank.
    pub fn leave(&self, ready: impl Fn() -> bool + Send + 'static, deadline: Instant) {
        if getpid() != self.owner {
            return;
        }
        let mut state = self.shared.lock();
        if state.left || state.leaving.is_some() {
            return;
        }
        if ready() {
            state.leave();
        } else {
            state.leaving = Some((Box::new(ready), deadline));
        }
        self.shared.ring();
    }

    /// Has left, and waits until nobody needs this process. False if that takes longer.
    pub fn part(&self, deadline: Instant) -> bool {
        let mut state = self.shared.lock();
        loop {
            if state.is_over() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if getpid() != self.owner {
            // The thread is the parent's, and may have held the lock when this child was made.
            std::mem::forget(thread);
            return;
        }
        self.shared.lock().leave();
        self.part(Instant::now() + self.shared.silence);
        self.shared.lock().closing = true;
        self.shared.ring();
        // A listener may be the last who knows of the star.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
        // It may know somebody who knows the star's voice.
        let listener = self.shared.lock().listener.take();
        drop(listener);
    }
}

impl std::fmt::Debug for Star {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Star").field("welcome", &self.welcome).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever was changed is seen by the thread and by those who wait.
    fn ring(&self) {
        // A full counter wakes as well.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        self.changed.notify_all();
    }

    /// The thread.
    fn serve(&self) {
        loop {
            let (connections, sleep) = {
                let state = self.lock();
                if state.closing {
                    return;
                }
                (state.connections(), state.sleep())
            };
            let ready = self.wait(&connections, sleep);
            let (news, listener) = {
                let mut state = self.lock();
                ready.into_iter().for_each(|rank| state.serve(rank));
                state.look_around(Instant::now());
                match state.listener.clone() {
                    Some(listener) => (std::mem::take(&mut state.news), Some(listener)),
                    None => Default::default(),
                }
            };
            self.changed.notify_all();
            if let Some(listener) = listener {
                news.into_iter().for_each(|news: News| listener(news));
            }
        }
    }

    /// The ranks at whose connections there is something to do.
    fn wait(&self, connections: &[(u32, Arc<OwnedFd>, bool)], sleep: Duration) -> Vec<u32> {
        let mut fds = vec![PollFd::new(&self.bell, PollFlags::IN)];
        fds.extend(connections.iter().map(|(_, socket, full)| {
            PollFd::new(socket, if *full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN })
        }));
        let sleep = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: sleep.subsec_nanos().into() };
        if poll(&mut fds, Some(&sleep)).is_err() {
            // Interrupted, or no memory for a moment.
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
        let ready = connections.iter().zip(&fds[1..]).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|((rank, ..), _)| *rank).collect()
    }
}
