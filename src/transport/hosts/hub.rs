//! What rank 0 decides: the order of what all processes hear, and how collectives end. Everything that it says goes to
//! all processes, its own included.

use crate::error::{Error, ErrorKind};
use crate::transport::far::News;
use crate::transport::waiting::timeout;

use super::fates::Fates;
use super::frame::{Call, Frame};

pub struct Hub {
    fates: Fates,
    /// Of the collective that is under way, by rank.
    parts: Vec<Option<(Call, Vec<u8>)>>,
    /// Number of the last collective that has ended.
    decided: u32,
}

impl Hub {
    pub fn new(nranks: u32) -> Self {
        Self { fates: Fates::new(nranks), parts: vec![None; nranks as usize], decided: 0 }
    }

    /// What all are told because `rank` has sent `frame`.
    pub fn take(&mut self, rank: u32, frame: Frame) -> Vec<Frame> {
        match frame {
            Frame::Part(call, body) if call.sequence > self.decided => {
                self.parts[rank as usize] = Some((call, body));
                self.judge()
            }
            Frame::Refusal(call, error) if call.sequence > self.decided => vec![self.end(call, Err(error))],
            Frame::Late(call, waited) if call.sequence > self.decided => {
                let missing = (0..).zip(&self.parts).filter(|(_, part)| part.is_none()).map(|(rank, _)| rank);
                let error = timeout(&missing.collect::<Vec<_>>(), call.operation, waited);
                vec![self.end(call, Err(error))]
            }
            Frame::Say(body) if self.fates.is_there(rank) => vec![Frame::News(News::Said { rank, body })],
            Frame::Leave => self.tell(News::Left { rank }),
            Frame::Missing { rank: missing, why } => self.lose(missing, why),
            // Signs of life, and what comes too late.
            _ => Vec::new(),
        }
    }

    /// What all are told now that `rank` is lost. Nothing if it has left, or if all know already.
    pub fn lose(&mut self, rank: u32, why: String) -> Vec<Frame> {
        self.tell(News::Lost { rank, why })
    }

    fn tell(&mut self, news: News) -> Vec<Frame> {
        if !self.fates.note(&news) {
            return Vec::new();
        }
        let mut frames = vec![Frame::News(news)];
        frames.extend(self.judge());
        frames
    }

    /// Ends the collective if all have come, or if somebody waits in vain.
    fn judge(&mut self) -> Vec<Frame> {
        let mut calls = (0u32..).zip(&self.parts).filter_map(|(rank, part)| Some((rank, part.as_ref()?.0)));
        let Some((first, call)) = calls.next() else { return Vec::new() };
        let result = if let Some((rank, other)) = calls.find(|(_, other)| *other != call) {
            let (mine, theirs) = (call.operation.name(), other.operation.name());
            let message = format!("rank {first} calls {mine} while rank {rank} calls {theirs}");
            Err(Error::new(ErrorKind::Mismatch, message))
        } else if self.parts.iter().all(Option::is_some) {
            Ok(self.parts.iter_mut().map(|part| part.take().expect("all have come").1).collect())
        } else if let Some(error) = self.fates.gone() {
            Err(error)
        } else {
            return Vec::new();
        };
        vec![self.end(call, result)]
    }

    fn end(&mut self, call: Call, result: Result<Vec<Vec<u8>>, Error>) -> Frame {
        self.decided = call.sequence;
        self.parts.fill(None);
        match result {
            Ok(bodies) => Frame::Parts(call, bodies),
            Err(error) => Frame::Failure(call, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::transport::waiting::Operation;

    fn call(sequence: u32) -> Call {
        Call { operation: Operation::Exchange, sequence }
    }

    fn part(sequence: u32, byte: u8) -> Frame {
        Frame::Part(call(sequence), vec![byte])
    }

    fn failure(frames: &[Frame]) -> &str {
        match frames {
            [.., Frame::Failure(_, error)] => &error.message,
            frames => panic!("{frames:?}"),
        }
    }

    #[test]
    fn collectives_end_when_all_have_come() {
        let mut hub = Hub::new(3);
        for sequence in 1..4 {
            assert_eq!(hub.take(2, part(sequence, 2)), []);
            assert_eq!(hub.take(0, part(sequence, 0)), []);
            assert_eq!(hub.take(1, part(sequence, 1)), [Frame::Parts(call(sequence), vec![vec![0], vec![1], vec![2]])]);
        }
    }

    #[test]
    fn who_is_late_finds_the_verdict() {
        let mut hub = Hub::new(3);
        assert_eq!(hub.take(2, part(1, 2)), []);
        let told = hub.take(2, Frame::Late(call(1), Duration::from_millis(1500)));
        assert_eq!(failure(&told), "ranks 0, 1 have not called exchange within 1.5 s");
        assert_eq!(hub.take(0, part(1, 0)), []);
        assert_eq!(hub.take(0, Frame::Refusal(call(1), Error::invalid("too late"))), []);
        // The next one works.
        assert_eq!(hub.take(0, part(2, 0)), []);
        assert_eq!(hub.take(1, part(2, 1)), []);
        assert_eq!(hub.take(2, part(2, 2)), [Frame::Parts(call(2), vec![vec![0], vec![1], vec![2]])]);
    }

    #[test]
    fn refusals_and_different_calls() {
        let mut hub = Hub::new(2);
        assert_eq!(failure(&hub.take(1, Frame::Refusal(call(1), Error::invalid("no")))), "no");
        assert_eq!(hub.take(1, part(2, 0)), []);
        let allocate = Call { operation: Operation::Allocate, sequence: 2 };
        let told = hub.take(0, Frame::Part(allocate, Vec::new()));
        assert_eq!(failure(&told), "rank 0 calls allocate while rank 1 calls exchange");
    }

    #[test]
    fn nobody_waits_for_who_is_gone() {
        let mut hub = Hub::new(4);
        assert_eq!(hub.take(0, part(1, 0)), []);
        let told = hub.take(3, Frame::Leave);
        assert_eq!(told[0], Frame::News(News::Left { rank: 3 }));
        assert_eq!(failure(&told), "rank 3 has left the world");
        // That its connection ends then is no news.
        assert_eq!(hub.lose(3, "rank 3 died".into()), []);
        assert_eq!(failure(&hub.take(1, part(2, 1))), "rank 3 has left the world");
        let lost = News::Lost { rank: 2, why: "rank 2 died".into() };
        assert_eq!(hub.take(1, Frame::Missing { rank: 2, why: "rank 2 died".into() }), [Frame::News(lost)]);
        assert_eq!(hub.lose(2, "rank 2 is silent".into()), []);
        assert_eq!(failure(&hub.take(1, part(3, 1))), "rank 2 died");
    }

    /// All have come before one of them went.
    #[test]
    fn what_was_brought_before_the_end_counts() {
        let mut hub = Hub::new(2);
        assert_eq!(hub.take(1, part(1, 1)), []);
        assert_eq!(hub.take(0, part(1, 0)).len(), 1);
        assert_eq!(hub.take(1, part(2, 1)), []);
        assert_eq!(hub.lose(1, "rank 1 died".into()).len(), 2);
        assert_eq!(hub.take(0, part(2, 0)), []);
    }

    #[test]
    fn announcements_are_told_to_all_until_the_end() {
        let mut hub = Hub::new(2);
        let said = |rank, byte| Frame::News(News::Said { rank, body: vec![byte] });
        assert_eq!(hub.take(1, Frame::Say(vec![5])), [said(1, 5)]);
        assert_eq!(hub.take(0, Frame::Say(vec![6])), [said(0, 6)]);
        hub.lose(1, "rank 1 died".into());
        assert_eq!(hub.take(1, Frame::Say(vec![7])), []);
        assert_eq!(hub.take(1, Frame::Beat), []);
    }
}
