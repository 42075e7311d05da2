//! What the processes of a world on several hosts tell one another.

use super::report::Stance;
use crate::error::{Error, Result};
use crate::transport::wire::{Put, Reader, decode_error, encode_error};

/// What processes announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Announcement {
    /// A launch has failed, or the world.
    Failure { rank: u32, epoch: u64, error: Error },
    /// What do you do about a launch of an executable?
    Question(Question),
    /// This.
    Answer { asker: u32, number: u32, answer: Answer },
    /// A rank that has done so many launches wants to leave: has everybody else done as many, and read what it has?
    Leaving { rank: u32, launches: u64 },
    /// Yes.
    Follows { leaver: u32, rank: u32 },
    /// A rank has come so far, see [`super::core::Core::come_to`].
    Comes { rank: u32, mark: u64 },
}

/// What a rank wants to know of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) asker: u32,
    pub(super) number: u32,
    pub(super) image: u32,
    pub(super) launch: u64,
}

/// What a far rank does, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) rank: u32,
    pub(super) stance: Stance,
    pub(super) what: String,
}

impl Announcement {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Self::Failure { rank, epoch, error } => {
                body.put_u32(0);
                body.put_u32(*rank);
                body.put_u64(*epoch);
                body.put_bytes(&encode_error(error));
            }
            Self::Question(Question { asker, number, image, launch }) => {
                [1, *asker, *number, *image].into_iter().for_each(|value| body.put_u32(value));
                body.put_u64(*launch);
            }
            Self::Leaving { rank, launches } => {
                [3, *rank].into_iter().for_each(|value| body.put_u32(value));
                body.put_u64(*launches);
            }
            Self::Comes { rank, mark } => {
                [5, *rank].into_iter().for_each(|value| body.put_u32(value));
                body.put_u64(*mark);
            }
            Self::Follows { leaver, rank } => [4, *leaver, *rank].into_iter().for_each(|value| body.put_u32(value)),
            Self::Answer { asker, number, answer } => {
                let Answer { rank, stance, what } = answer;
                [2, *asker, *number, *rank, *stance as u32].into_iter().for_each(|value| body.put_u32(value));
                body.put_bytes(what.as_bytes());
            }
        }
        body
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self> {
        let mut reader = Reader(body);
        let kind = reader.u32()?;
        let mut number = || reader.u32();
        Ok(match kind {
            0 => {
                let rank = number()?;
                Self::Failure { rank, epoch: reader.u64()?, error: decode_error(reader.bytes()?) }
            }
            1 => {
                let (asker, number, image) = (number()?, number()?, number()?);
                Self::Question(Question { asker, number, image, launch: reader.u64()? })
            }
            3 => {
                let rank = number()?;
                Self::Leaving { rank, launches: reader.u64()? }
            }
            4 => Self::Follows { leaver: number()?, rank: number()? },
            5 => {
                let rank = number()?;
                Self::Comes { rank, mark: reader.u64()? }
            }
            _ => {
                let (asker, number, rank, stance) = (number()?, number()?, number()?, number()?);
                let stance = [Stance::Waits, Stance::Late, Stance::Ended].into_iter().find(|s| *s as u32 == stance);
                let answer = Answer { rank, stance: stance.unwrap_or(Stance::Late), what: reader.string()? };
                Self::Answer { asker, number, answer }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn announcements_survive_their_way() {
        let error = Error::new(ErrorKind::OutOfBounds, "rank 3: far out");
        let answer = Answer { rank: 7, stance: Stance::Ended, what: "has ended launch 2".into() };
        for announcement in [
            Announcement::Failure { rank: 3, epoch: 1 << 33, error },
            Announcement::Question(Question { asker: 1, number: 2, image: 3, launch: 1 << 40 }),
            Announcement::Answer { asker: 4, number: 5, answer },
            Announcement::Leaving { rank: 6, launches: 1 << 35 },
            Announcement::Follows { leaver: 6, rank: 2 },
            Announcement::Comes { rank: 1, mark: 3 << 32 | 4 },
        ] {
            assert_eq!(Announcement::decode(&announcement.encode()), Ok(announcement));
        }
    }
}
