//! What one process knows of its world, and its connections: rank 0's to all others, the others' to rank 0.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fates::Fates;
use super::frame::{Call, Frame};
use super::hub::Hub;
use super::link::{Broken, Link, Sealable};
use crate::error::{Error, ErrorKind, Result};
use crate::transport::far::News;
use crate::transport::waiting::GRACE;

/// The thread looks around at least as often.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);
/// And so often while this process waits to leave.
const LEAVING: Duration = Duration::from_millis(1);

/// News that are kept while nobody listens, and ends of collectives that this process is behind.
const MOST_KEPT: usize = 4096;

/// Who hears the news.
pub type Hear = Arc<dyn Fn(News) + Send + Sync>;

pub enum Ends {
    /// Rank 0: connections to ranks 1, 2, ..., as long as there are.
    Hub(Hub, Vec<Option<Link>>),
    /// Another rank: the connection to rank 0, as long as there is.
    Spoke(Option<Link>),
}

impl Ends {
    /// Rank 0, with connections to ranks 1, 2, ..., which begin to give signs of life now.
    pub fn hub(mut links: Vec<Link>) -> Self {
        links.iter_mut().for_each(|link| link.heard = Instant::now());
        Ends::Hub(Hub::new(links.len() as u32 + 1), links.into_iter().map(Some).collect())
    }
}

pub struct State {
    rank: u32,
    silence: Duration,
    ends: Ends,
    pub fates: Fates,
    /// At rank 0: who misses a rank, and why, for how long. It may turn out that the rank has died.
    missed: Vec<(u32, String, Instant)>,
    /// Ends of collectives, by number.
    verdicts: BTreeMap<u32, Result<Vec<Vec<u8>>>>,
    /// Number of this process's last collective.
    pub sequence: u32,
    pub news: VecDeque<News>,
    pub listener: Option<Hear>,
    /// This process leaves when this is true, or at that time.
    pub leaving: Option<(Box<dyn Fn() -> bool + Send>, Instant)>,
    pub left: bool,
    /// The thread ends.
    pub closing: bool,
}

impl State {
    pub fn new(rank: u32, nranks: u32, silence: Duration, ends: Ends) -> Self {
        Self {
            rank,
            silence,
            ends,
            fates: Fates::new(nranks),
            missed: Vec::new(),
            verdicts: BTreeMap::new(),
            sequence: 0,
            news: VecDeque::new(),
            listener: None,
            leaving: None,
            left: false,
            closing: false,
        }
    }

    /// Sends a frame of this process to rank 0's, which may be itself.
    pub fn submit(&mut self, frame: Frame) {
        match &mut self.ends {
            Ends::Hub(..) => self.take(self.rank, frame),
            Ends::Spoke(Some(link)) => {
                if let Err(broken) = link.send(&Sealable::from(&frame)) {
                    self.lose_hub(broken);
                }
            }
            Ends::Spoke(None) => {}
        }
    }

    /// The end of a collective, if it has come.
    pub fn verdict(&mut self, call: Call) -> Option<Result<Vec<Vec<u8>>>> {
        let verdict = self.verdicts.remove(&call.sequence);
        // Whoever gave up before the end came does not look for it any more.
        self.verdicts.retain(|sequence, _| *sequence > call.sequence);
        verdict.or_else(|| match self.ends {
            Ends::Spoke(None) => Some(Err(self.gone())),
            _ => None,
        })
    }

    /// Why nothing can be done together any more.
    pub fn gone(&self) -> Error {
        self.fates.gone().unwrap_or_else(|| Error::new(ErrorKind::PeerLost, "this rank has left the world"))
    }

    /// Nobody needs this process any more.
    pub fn is_over(&self) -> bool {
        match self.ends {
            Ends::Hub(..) => self.fates.is_alone(self.rank),
            Ends::Spoke(Some(_)) => !self.fates.is_there(self.rank),
            Ends::Spoke(None) => true,
        }
    }

    /// Connections to wait for, each with the rank at its other end and whether something waits to be sent.
    pub fn connections(&self) -> Vec<(u32, Arc<OwnedFd>, bool)> {
        let entry = |(rank, link): (u32, &Link)| (rank, link.socket().clone(), link.is_full());
        match &self.ends {
            Ends::Hub(_, links) => {
                (1..).zip(links).filter_map(|(rank, link)| Some((rank, link.as_ref()?))).map(entry).collect()
            }
            Ends::Spoke(link) => link.iter().map(|link| (0, link)).map(entry).collect(),
        }
    }

    /// How long to wait for them at most.
    pub fn sleep(&self) -> Duration {
        let longest = match (&self.leaving, &self.missed[..]) {
            (Some(_), _) => LEAVING,
            (None, [_, ..]) => GRACE / 10,
            (None, []) => LONGEST_SLEEP,
        };
        longest.min(self.silence / 10)
    }

    /// Sends and reads what is there at the connection to `rank`.
    pub fn serve(&mut self, rank: u32) {
        let Some(link) = self.link(rank) else { return };
        let mut frames = Vec::new();
        let flushed = link.flush();
        let result = link.receive(&mut frames).and(flushed);
        for frame in frames {
            match &self.ends {
                Ends::Hub(..) => self.take(rank, frame),
                Ends::Spoke(_) => self.hear(frame),
            }
        }
        if let Err(broken) = result {
            self.lose(rank, broken);
        }
    }

    /// Gives signs of life, and looks for those of others.
    pub fn look_around(&mut self, now: Instant) {
        let beat = Sealable::from(&Frame::Beat);
        for (rank, ..) in self.connections() {
            let silence = self.silence;
            let Some(link) = self.link(rank) else { continue };
            if now.saturating_duration_since(link.heard) >= silence {
                self.lose_silent(rank);
            } else if now.saturating_duration_since(link.spoken) >= silence / 5
                && !link.is_full()
                && let Err(broken) = link.send(&beat)
            {
                self.lose(rank, broken);
            }
        }
        self.give_up(now);
        if self.leaving.as_ref().is_some_and(|(ready, deadline)| now >= *deadline || ready()) {
            self.leave();
        }
    }

    /// Ranks that were missed for a while are lost. Those that died are by now.
    fn give_up(&mut self, now: Instant) {
        let patience = GRACE.min(self.silence / 2);
        let due = self.missed.extract_if(.., |(.., since)| now.saturating_duration_since(*since) >= patience);
        for (rank, why, _) in due.collect::<Vec<_>>() {
            if let Ends::Hub(hub, _) = &mut self.ends {
                let told = hub.lose(rank, why);
                self.tell(told);
            }
        }
    }

    /// This process takes no further part.
    pub fn leave(&mut self) {
        self.leaving = None;
        if !std::mem::replace(&mut self.left, true) {
            self.submit(Frame::Leave);
        }
    }

    fn link(&mut self, rank: u32) -> Option<&mut Link> {
        match &mut self.ends {
            Ends::Hub(_, links) => links[rank as usize - 1].as_mut(),
            Ends::Spoke(link) => link.as_mut(),
        }
    }

    /// `rank` has said this to rank 0.
    fn take(&mut self, rank: u32, frame: Frame) {
        let Ends::Hub(hub, _) = &mut self.ends else { return };
        match frame {
            Frame::Missing { rank: missing, why } if missing != 0 => {
                if self.missed.iter().all(|(known, ..)| *known != missing) {
                    self.missed.push((missing, why, Instant::now()));
                }
            }
            frame => {
                let told = hub.take(rank, frame);
                self.tell(told);
            }
        }
    }

    /// Rank 0 tells all.
    fn tell(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            let mut broken = Vec::new();
            if let Ends::Hub(_, links) = &mut self.ends {
                let message = Sealable::from(&frame);
                for (rank, link) in (1..).zip(links) {
                    let sent = link.as_mut().map_or(Ok(()), |link| link.send(&message));
                    broken.extend(sent.err().map(|why| (rank, why)));
                }
            }
            self.hear(frame);
            broken.into_iter().for_each(|(rank, why)| self.lose(rank, why));
        }
    }

    /// Rank 0 has said this.
    pub fn hear(&mut self, frame: Frame) {
        match frame {
            Frame::Parts(call, bodies) => self.end(call, Ok(bodies)),
            Frame::Failure(call, error) => self.end(call, Err(error)),
            Frame::News(news) => {
                self.fates.note(&news);
                if self.listener.is_some() || self.news.len() < MOST_KEPT {
                    self.news.push_back(news);
                }
            }
            // Signs of life.
            _ => {}
        }
    }

    fn end(&mut self, call: Call, result: Result<Vec<Vec<u8>>>) {
        if call.sequence >= self.sequence && self.verdicts.len() < MOST_KEPT {
            self.verdicts.insert(call.sequence, result);
        }
    }

    /// The connection to `rank` is of no use any more.
    fn lose(&mut self, rank: u32, broken: Broken) {
        match &mut self.ends {
            Ends::Hub(hub, links) => {
                // What it sent before may be there still.
                let mut frames = Vec::new();
                let last = links[rank as usize - 1].take().map(|mut link| link.receive(&mut frames));
                let broken = last.and_then(Result::err).unwrap_or(broken);
                let mut told = Vec::new();
                frames.into_iter().for_each(|frame| told.extend(hub.take(rank, frame)));
                told.extend(hub.lose(rank, obituary(rank, broken)));
                self.tell(told);
            }
            Ends::Spoke(_) => self.lose_hub(broken),
        }
    }

    fn lose_hub(&mut self, broken: Broken) {
        let Ends::Spoke(link) = &mut self.ends else { return };
        let mut frames = Vec::new();
        let _ = link.take().map(|mut link| link.receive(&mut frames));
        frames.into_iter().for_each(|frame| self.hear(frame));
        self.part_from_hub(obituary(0, broken));
    }

    fn lose_silent(&mut self, rank: u32) {
        let why = format!("rank {rank} has been silent for {:.1} s", self.silence.as_secs_f64());
        match &mut self.ends {
            Ends::Hub(hub, links) => {
                // It hears of it, should it ever go on.
                let told = hub.lose(rank, why);
                let link = links[rank as usize - 1].take();
                if let (Some(mut link), Some(first)) = (link, told.first()) {
                    let _ = link.send(&Sealable::from(first));
                }
                self.tell(told);
            }
            Ends::Spoke(link) => {
                if let Some(mut link) = link.take() {
                    let _ = link.send(&Sealable::from(&Frame::Missing { rank: 0, why: why.clone() }));
                }
                self.part_from_hub(why);
            }
        }
    }

    /// Without rank 0 each process is on its own. If that has left, or this one is lost itself, that is no loss.
    fn part_from_hub(&mut self, why: String) {
        if self.fates.is_there(0) && self.fates.is_there(self.rank) {
            self.hear(Frame::News(News::Lost { rank: 0, why }));
        }
    }
}

fn obituary(rank: u32, broken: Broken) -> String {
    match broken {
        Broken::Ended => format!("rank {rank} died: its process ended without leaving the world"),
        Broken::Because(why) => format!("rank {rank} is lost: {why}"),
    }
}
