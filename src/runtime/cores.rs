//! The CPUs that the ranks of a world may run on.

use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::Result;
use crate::transport::Transport;

/// A set of CPUs, one bit each.
type Mask = [u8; CpuSet::MAX_CPU / 8];

/// Number of CPUs that at least one rank may use. Collective: a launcher may have pinned each rank to a CPU of its own,
/// so no rank knows by itself.
pub(super) fn shared_cores(transport: &dyn Transport, deadline: Instant) -> Result<usize> {
    let masks = transport.exchange(&own_mask(), deadline)?;
    let mut all: Mask = [0; _];
    for mask in &masks {
        all.iter_mut().zip(mask).for_each(|(all, cpus)| *all |= cpus);
    }
    match all.iter().map(|cpus| cpus.count_ones() as usize).sum() {
        // The masks of this machine are larger than ours.
        0 => Ok(std::thread::available_parallelism().map_or(1, |cores| cores.get())),
        cores => Ok(cores),
    }
}

/// Number of CPUs that this process may use.
pub(super) fn own_cores() -> usize {
    own_mask().iter().map(|cpus| cpus.count_ones() as usize).sum()
}

fn own_mask() -> Mask {
    let mut mask: Mask = [0; _];
    if let Ok(set) = sched_getaffinity(None) {
        for cpu in (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)) {
            mask[cpu / 8] |= 1 << (cpu % 8);
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::transport::thread::ThreadTransport;

    #[test]
    fn the_cores_of_one_process_are_its_own() {
        let transport = ThreadTransport::new(3).unwrap();
        let cores = shared_cores(&transport, Instant::now() + Duration::from_secs(10)).unwrap();
        assert_eq!(cores, sched_getaffinity(None).unwrap().count() as usize);
    }
}
