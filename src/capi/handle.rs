//! Handles of a program's values.
//!
//! A handle's id holds the index of an entity and a tag of its program, so that a handle of another program is
//! noticed. 0 is never a handle (zeroed memory is not), and what a mistake returns is marked: using it is no mistake
//! of its own.

use std::sync::atomic::{AtomicU32, Ordering};

use cranelift_entity::EntityRef;

/// Bits of an id that hold the index.
const INDEX_BITS: u32 = 24;
/// Entities of one kind that a program can have handles of.
pub(super) const CAPACITY: usize = (1 << INDEX_BITS) - 1;
/// The id of what a mistake returns.
pub(super) const MISTAKEN: u32 = u32::MAX;

/// What tells the handles of one program from those of another; programs that live at the same time differ unless
/// there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u32);

/// Why an id names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It was returned by a call that made a mistake, which is known already.
    Mistaken,
    /// It is zero: nobody set it.
    Unset,
    /// It is of another program, or garbage.
    Foreign,
}

impl Tag {
    /// The next program's tag.
    pub(super) fn next() -> Tag {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let most = 1 << (u32::BITS - INDEX_BITS);
        Tag(NEXT.fetch_add(1, Ordering::Relaxed) % (most - 1) + 1)
    }

    /// The id of an entity; none if the program has too many.
    pub(super) fn id(self, entity: impl EntityRef) -> Option<u32> {
        (entity.index() < CAPACITY).then(|| self.0 << INDEX_BITS | entity.index() as u32)
    }

    /// The entity that an id names, of a kind of which there are `count`.
    pub(super) fn entity<E: EntityRef>(self, id: u32, count: usize) -> Result<E, Unusable> {
        let index = (id & CAPACITY as u32) as usize;
        match id {
            0 => Err(Unusable::Unset),
            MISTAKEN => Err(Unusable::Mistaken),
            _ if id >> INDEX_BITS == self.0 && index < count => Ok(E::new(index)),
            _ => Err(Unusable::Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Tile;

    #[test]
    fn ids_come_back_only_in_their_program() {
        let (mine, other) = (Tag::next(), Tag::next());
        let tile = Tile::new(7);
        let id = mine.id(tile).expect("a small index");
        assert_eq!(mine.entity(id, 8), Ok(tile));
        assert_eq!(mine.entity::<Tile>(id, 7), Err(Unusable::Foreign), "there are 7 tiles only");
        assert_eq!(other.entity::<Tile>(id, 8), Err(Unusable::Foreign));
        assert_eq!(mine.entity::<Tile>(0, 8), Err(Unusable::Unset));
        assert_eq!(mine.entity::<Tile>(MISTAKEN, 8), Err(Unusable::Mistaken));
        assert_eq!(mine.id(Tile::new(CAPACITY)), None);
    }
}
