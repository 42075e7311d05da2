//! The memory of frames on their way. A frame is copied here: nobody need wait for UCX to use the source again, and UCX
//! never reads memory that may go. The copy is made in the processor's caches, where the system finds it.

use std::mem::MaybeUninit;

use super::frame::{HEADER, PIECE};
use super::worker::Desk;

/// Room for one frame.
#[repr(align(64))]
pub struct Parcel {
    /// The frame.
    pub frame: MaybeUninit<[u8; HEADER + PIECE]>,
    /// The rank that it is sent to.
    pub rank: u32,
    /// By which it is given back when UCX has sent it.
    pub desk: *mut Desk,
}

/// Most parcels that are kept for later.
const SPARE: usize = 256;

/// Parcels that are not on their way.
#[derive(Default)]
pub struct Parcels(Vec<Box<Parcel>>);

impl Parcels {
    /// A parcel.
    pub fn take(&mut self, rank: u32, desk: *mut Desk) -> Box<Parcel> {
        let mut parcel = self.0.pop().unwrap_or_else(|| {
            let mut parcel = Box::<Parcel>::new_uninit();
            // SAFETY: the pointers are those of fields; the frame may be uninitialised.
            unsafe {
                (&raw mut (*parcel.as_mut_ptr()).rank).write(rank);
                (&raw mut (*parcel.as_mut_ptr()).desk).write(desk);
                parcel.assume_init()
            }
        });
        parcel.rank = rank;
        parcel
    }

    /// It is not needed any more.
    pub fn give(&mut self, parcel: Box<Parcel>) {
        if self.0.len() < SPARE {
            self.0.push(parcel);
        }
    }
}
