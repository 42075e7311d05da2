//! Which ranks are there, have left, or are lost.

use crate::error::{Error, ErrorKind};
use crate::transport::far::News;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    There,
    Left,
    Lost(String),
}

pub struct Fates(Vec<Fate>);

impl Fates {
    pub fn new(nranks: u32) -> Self {
        Self(vec![Fate::There; nranks as usize])
    }

    /// Notes a rank's end; false if that is known, or no end.
    pub fn note(&mut self, news: &News) -> bool {
        let (rank, fate) = match news {
            News::Said { .. } => return false,
            News::Left { rank } => (*rank, Fate::Left),
            News::Lost { rank, why } => (*rank, Fate::Lost(why.clone())),
        };
        match self.0.get_mut(rank as usize) {
            Some(there @ Fate::There) => {
                *there = fate;
                true
            }
            _ => false,
        }
    }

    pub fn is_there(&self, rank: u32) -> bool {
        self.0[rank as usize] == Fate::There
    }

    /// All but `rank` are gone.
    pub fn is_alone(&self, rank: u32) -> bool {
        (0..).zip(&self.0).all(|(other, fate)| other == rank || *fate != Fate::There)
    }

    pub fn lost(&self) -> Option<u32> {
        (0..).zip(&self.0).find(|(_, fate)| matches!(fate, Fate::Lost(_))).map(|(rank, _)| rank)
    }

    /// Why the world is not whole any more. A rank that was lost comes first, since others leave because of it.
    pub fn gone(&self) -> Option<Error> {
        let lost = self.0.iter().find_map(|fate| match fate {
            Fate::Lost(why) => Some(why.clone()),
            _ => None,
        });
        let left = || {
            let rank = self.0.iter().position(|fate| *fate == Fate::Left)?;
            Some(format!("rank {rank} has left the world"))
        };
        lost.or_else(left).map(|why| Error::new(ErrorKind::PeerLost, why))
    }
}
