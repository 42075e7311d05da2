//! What ranks wait for together, how they wait, and what they say when nothing has come.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::error::{Error, ErrorKind};

/// How long a rank that gives up waits for rank 0's verdict.
pub const GRACE: Duration = Duration::from_millis(500);

/// Pauses between two looks at something that is not ready.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// What all ranks do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    Join = 1,
    Exchange = 2,
    Allocate = 3,
}

impl Operation {
    pub fn decode(number: u8) -> Option<Self> {
        [Operation::Join, Operation::Exchange, Operation::Allocate].into_iter().find(|known| *known as u8 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Operation::Join => "join",
            Operation::Exchange => "exchange",
            Operation::Allocate => "allocate",
        }
    }
}

/// `missing` ranks have not come to a collective.
pub fn timeout(missing: &[u32], operation: Operation, waited: Duration) -> Error {
    let names = missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let have = if missing.len() == 1 { format!("rank {names} has") } else { format!("ranks {names} have") };
    // Two digits are enough, and hide what went by between setting the deadline and this call.
    let waited = format!("{:.2}", waited.as_secs_f64());
    let waited = waited.trim_end_matches('0').trim_end_matches('.');
    Error::new(ErrorKind::Timeout, format!("{have} not called {} within {waited} s", operation.name()))
}

/// `rank` ended while the world was being made.
pub fn ended(rank: u32) -> Error {
    Error::new(ErrorKind::PeerLost, format!("rank {rank} has ended before the world was complete"))
}

/// Growing pauses up to a deadline.
pub struct Pauses {
    next: Duration,
    deadline: Instant,
}

impl Pauses {
    pub fn until(deadline: Instant) -> Self {
        Self { next: FIRST_PAUSE, deadline }
    }

    /// False if the deadline has come.
    pub fn pause(&mut self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        std::thread::sleep(self.next.min(left));
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        !left.is_zero()
    }
}

/// Waits until one of `fds` is ready; false if `deadline` comes first. Signals do not end the wait.
pub fn wait(fds: &mut [PollFd<'_>], deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(fds, Some(&timeout)) {
            Ok(0) if left.is_zero() => return false,
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return true,
            // No room for the kernel's list of descriptors: the caller looks for itself, now and then.
            Err(_) if left.is_zero() => return false,
            Err(_) => {
                std::thread::sleep(left.min(Duration::from_millis(1)));
                return true;
            }
        }
    }
}
