//! Worlds whose ranks run on several hosts: what processes announce to one another, and how they wait for each other.
//!
//! Failures are announced, and every process hears all announcements in one order, so that all come to the same first
//! failure. A rank that reports a time-out asks the far ranks what they do; a thread of each process answers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pld_sync::Bell;

use super::announcement::{Announcement, Answer, Question};
use super::control::Board;
use super::core::Core;
use super::report::{self, Stance};
use super::wait::SLICE;
use crate::codegen::cpu;
use crate::error::{Error, ErrorKind, Result};
use crate::transport::far::{Accumulator, FarRanks, Listener, News, progress_until};

/// How long a rank that reports a time-out waits for what the others say of themselves.
const ANSWERS: Duration = Duration::from_millis(500);

/// How often a rank that others want to leave behind looks whether it has done what they have.
const FOLLOWING: Duration = Duration::from_millis(1);

/// How many looks at what is waited for come between two at the network.
const LOOKS: u32 = 8;

/// How long a waiting rank with a core of its own spins before it yields.
const SPINNING: Duration = Duration::from_micros(50);

/// How elements are added at far ranks, by the numbers that generated code has for their types.
pub(super) fn accumulators() -> &'static [Accumulator] {
    static ALL: std::sync::OnceLock<Vec<Accumulator>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| cpu::accumulators().map(|(size, add)| Accumulator { size, add }).collect())
}

/// What a process has heard and not yet dealt with.
#[derive(Default)]
struct Heard {
    questions: VecDeque<Question>,
    /// To the question that this process has asked last.
    answers: Vec<Answer>,
    asked: u32,
    /// Ranks that want to leave, and how many launches they have done.
    leavers: Vec<(u32, u64)>,
    /// Ranks that this one may leave behind.
    following: Vec<u32>,
    ending: bool,
}

/// The ear of a process of a world with far ranks.
pub(super) struct Ear {
    board: Arc<Board>,
    rank: u32,
    /// How far each rank has come.
    marks: Box<[AtomicU64]>,
    heard: Mutex<Heard>,
    changed: Condvar,
}

impl Ear {
    pub(super) fn new(board: &Arc<Board>, rank: u32) -> Arc<Self> {
        let (board, marks) = (board.clone(), board.far().iter().map(|_| AtomicU64::new(0)).collect());
        Arc::new(Self { board, rank, marks, heard: Mutex::default(), changed: Condvar::new() })
    }

    /// All ranks have come so far.
    pub(super) fn all_at(&self, mark: u64) -> bool {
        self.marks.iter().all(|at| at.load(Ordering::Acquire) >= mark)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, heard: MutexGuard<'a, Heard>, timeout: Duration) -> MutexGuard<'a, Heard> {
        self.changed.wait_timeout(heard, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Ends the thread that answers.
    pub(super) fn close(&self) {
        self.heard().ending = true;
        self.changed.notify_all();
    }

    fn take_in(&self, announcement: Announcement) {
        match announcement {
            Announcement::Failure { rank, epoch, error } => {
                self.board.record().publish(rank, &error, epoch);
                self.board.wake_all();
            }
            // Others see for themselves.
            Announcement::Question(question) if self.board.is_far(question.asker) => {
                self.heard().questions.push_back(question);
            }
            Announcement::Answer { asker, number, answer } if asker == self.rank => {
                let mut heard = self.heard();
                if heard.asked == number {
                    heard.answers.push(answer);
                }
            }
            Announcement::Leaving { rank, launches } if rank != self.rank => {
                self.heard().leavers.push((rank, launches));
            }
            Announcement::Comes { rank, mark } => {
                if let Some(at) = self.marks.get(rank as usize) {
                    at.fetch_max(mark, Ordering::AcqRel);
                }
                self.board.wake_all();
            }
            Announcement::Follows { leaver, rank } if leaver == self.rank => self.heard().following.push(rank),
            Announcement::Question(_)
            | Announcement::Answer { .. }
            | Announcement::Leaving { .. }
            | Announcement::Follows { .. } => {}
        }
        self.changed.notify_all();
    }
}

impl Listener for Ear {
    fn arrived(&self) {
        Bell::ring_each([self.board.bell(self.rank), &self.board.control(self.rank).gate]);
    }

    fn heard(&self, news: News) {
        match news {
            // Whoever sends what nobody understands has another version, which joining has ruled out.
            News::Said { body, .. } => _ = Announcement::decode(&body).map(|announcement| self.take_in(announcement)),
            News::Left { rank } => {
                if self.board.is_far(rank) {
                    self.board.control(rank).leave();
                }
            }
            News::Lost { rank, why } => {
                if !self.board.control(rank).has_left() {
                    self.board.record().publish(rank, &Error::new(ErrorKind::PeerLost, why), 0);
                }
            }
        }
        self.board.wake_all();
    }
}

impl Core {
    /// The far ranks, if there are any.
    pub(super) fn far(&self) -> Option<&dyn FarRanks> {
        self.transport.far()
    }

    /// Tells all processes of a failure, and returns when this one has heard of it too, or of an earlier one.
    #[cold]
    pub(super) fn announce_failure(&self, far: &dyn FarRanks, rank: u32, error: &Error, epoch: u64) {
        let record = self.board.record();
        if record.holds(error.kind, epoch) {
            return;
        }
        let mut error = error.clone();
        error.message.truncate(error.message.floor_char_boundary(super::failure::MAX_MESSAGE));
        let announced = far.announce(&Announcement::Failure { rank, epoch, error: error.clone() }.encode());
        let deadline = Instant::now() + far.silence();
        while announced.is_ok() && !record.holds(error.kind, epoch) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(100));
        }
        // Who cannot tell the others has lost them.
        record.publish(rank, &error, epoch);
    }

    /// What every far rank says of itself about a launch, as far as it says anything in time.
    pub(super) fn ask_far(&self, image: u32, launch: u64) -> Vec<Answer> {
        let (Some(far), Some(ear)) = (self.far(), &self.ear) else { return Vec::new() };
        let number = {
            let mut heard = ear.heard();
            heard.asked += 1;
            heard.answers.clear();
            heard.asked
        };
        let question = Question { asker: self.local.start, number, image, launch };
        if far.announce(&Announcement::Question(question).encode()).is_err() {
            return Vec::new();
        }
        let asked = self.board.far().iter().filter(|far| **far).count();
        let deadline = Instant::now() + ANSWERS;
        let mut heard = ear.heard();
        while heard.answers.len() < asked && Instant::now() < deadline {
            heard = ear.wait(heard, deadline.saturating_duration_since(Instant::now()));
        }
        std::mem::take(&mut heard.answers)
    }

    /// Answers the questions of far ranks until the world is closed.
    pub(super) fn answer_far(&self) {
        let (Some(far), Some(ear)) = (self.far(), &self.ear) else { return };
        let rank = self.local.start;
        loop {
            let mut heard = ear.heard();
            let answer = loop {
                let done = self.launches.load(Ordering::Acquire);
                if let Some(question) = heard.questions.pop_front() {
                    drop(heard);
                    break self.answer(&question);
                }
                if let Some(place) = heard.leavers.iter().position(|(_, launches)| *launches <= done) {
                    let (leaver, _) = heard.leavers.swap_remove(place);
                    drop(heard);
                    break Announcement::Follows { leaver, rank };
                }
                if heard.ending {
                    return;
                }
                heard = match heard.leavers.is_empty() {
                    true => ear.changed.wait(heard).unwrap_or_else(PoisonError::into_inner),
                    false => ear.wait(heard, FOLLOWING),
                };
            };
            // Whoever asks does not wait for long.
            let _ = far.announce(&answer.encode());
        }
    }

    fn answer(&self, question: &Question) -> Announcement {
        let Question { asker, number, image, launch } = *question;
        let rank = self.local.start;
        let (stance, what) = match self.image(image) {
            Some(image) => report::describe(self, &image, launch, rank),
            None => (Stance::Late, "has no such executable any more".into()),
        };
        Announcement::Answer { asker, number, answer: Answer { rank, stance, what } }
    }

    /// Waits until all that this process has sent to far ranks has been executed there; an error if that takes too long or
    /// the world ends first.
    pub(super) fn reach_far(&self, deadline: Instant) -> Result<()> {
        let Some(far) = self.far() else { return Ok(()) };
        let reached = || {
            far.ask();
            far.reached() || self.end().is_some()
        };
        if progress_until(far, deadline, reached) {
            return self.end().map_or(Ok(()), Err);
        }
        Err(Error::new(ErrorKind::Timeout, "far ranks have not taken in what was sent to them"))
    }

    /// Tells that this rank has come to the next place where ranks meet by announcements, and returns its mark. Failures
    /// are announced too, so whoever has passed such a place and fails later fails later for all.
    pub(super) fn come_to(&self, far: &dyn FarRanks) -> Result<u64> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let meeting = self.meetings.fetch_add(1, Ordering::Relaxed) + 1;
        let mark = epoch << 32 | u64::from(meeting);
        far.announce(&Announcement::Comes { rank: self.local.start, mark }.encode())?;
        Ok(mark)
    }

    /// Leaves far ranks: they know how far this one is before they hear that it has left.
    pub(super) fn leave_far(&self) {
        let Some(far) = self.far() else { return };
        // Whoever does not take it in will not miss it.
        let deadline = Instant::now() + far.silence();
        if self.end().is_none() && self.reach_far(deadline).is_ok() {
            self.windows().iter().for_each(|windows| windows.tell(self.local.start));
            let _ = self.reach_far(deadline);
            self.wait_for_followers(far, deadline);
        }
        if let Some(ear) = &self.ear {
            ear.close();
        }
    }

    /// Waits until far ranks have done all launches that this one has done: they may still read what it has.
    fn wait_for_followers(&self, far: &dyn FarRanks, deadline: Instant) {
        let (Some(ear), rank) = (&self.ear, self.local.start) else { return };
        let launches = self.launches.load(Ordering::Acquire);
        if far.announce(&Announcement::Leaving { rank, launches }.encode()).is_err() {
            return;
        }
        let mut heard = ear.heard();
        let behind = |heard: &Heard| {
            let far = (0..self.nranks).filter(|&rank| self.board.is_far(rank));
            far.filter(|rank| !self.board.control(*rank).has_left()).any(|rank| !heard.following.contains(&rank))
        };
        while behind(&heard) && self.end().is_none() && Instant::now() < deadline {
            heard = ear.wait(heard, SLICE);
        }
    }

    /// The first part of waiting: says whether `over` holds.
    pub(super) fn spin(&self, over: impl Fn() -> bool) -> bool {
        let Some(far) = self.far() else { return self.patience.spin(over) };
        if self.crowded {
            far.progress();
            return over();
        }
        far.attend();
        let begin = Instant::now();
        let arrived = loop {
            if (0..LOOKS).any(|_| {
                over() || {
                    std::hint::spin_loop();
                    false
                }
            }) {
                break true;
            }
            if !far.progress() && begin.elapsed() >= SPINNING {
                break over();
            }
        };
        far.unattend();
        arrived
    }

    /// The second part, see [`super::wait::Patience::linger`].
    pub(super) fn linger(
        &self,
        bell: &Bell,
        slice: Duration,
        over: impl Fn() -> bool,
        give_up: impl FnMut(Duration) -> bool,
    ) -> bool {
        let Some(far) = self.far() else { return self.patience.linger(bell, Some(slice), over, give_up) };
        let attended = Attended::new(far);
        let ready = || over() || far.progress() && over();
        self.patience.linger_with(Some(slice), ready, give_up, || {
            attended.pause(|| bell.sleep(&over, Some(slice.min(SLICE))));
        })
    }
}

/// An attendance, until dropped.
struct Attended<'a>(&'a dyn FarRanks);

impl<'a> Attended<'a> {
    fn new(far: &'a dyn FarRanks) -> Self {
        far.attend();
        Self(far)
    }

    /// Somebody else has to look meanwhile.
    fn pause(&self, act: impl FnOnce()) {
        self.0.unattend();
        act();
        self.0.attend();
    }
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        self.0.unattend();
    }
}
