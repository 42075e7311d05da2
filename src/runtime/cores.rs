//! The CPUs that the ranks of a world may run on.

use std::collections::HashMap;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::Result;
use crate::transport::Transport;

/// A set of CPUs, one bit each.
type Mask = [u8; CpuSet::MAX_CPU / 8];

/// Ranks of so many cores have more than there are CPUs, on one machine at least. Collective: a launcher may have pinned
/// each rank to a CPU of its own, so no rank knows by itself.
pub(super) fn is_crowded(transport: &dyn Transport, cores: u32, deadline: Instant) -> Result<bool> {
    let mut mine = own_mask().to_vec();
    mine.extend(machine().as_bytes());
    let all = transport.exchange(&mine, deadline)?;
    let mut machines: HashMap<&[u8], (Mask, usize)> = HashMap::new();
    for message in &all {
        let (mask, machine) = message.split_at(size_of::<Mask>().min(message.len()));
        let (cpus, wanted) = machines.entry(machine).or_insert(([0; _], 0));
        cpus.iter_mut().zip(mask).for_each(|(all, cpus)| *all |= cpus);
        *wanted += cores as usize;
    }
    Ok(machines.values().any(|(mask, wanted)| *wanted > cpus_of(mask)))
}

fn cpus_of(mask: &Mask) -> usize {
    match mask.iter().map(|cpus| cpus.count_ones() as usize).sum() {
        // The masks of this machine are larger than ours.
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        cpus => cpus,
    }
}

/// Tells running systems apart.
fn machine() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
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
    fn one_rank_more_than_cpus_is_a_crowd() {
        let deadline = || Instant::now() + Duration::from_secs(10);
        let cpus = sched_getaffinity(None).unwrap().count();
        let crowded = |nranks, cores| is_crowded(&ThreadTransport::new(nranks).unwrap(), cores, deadline()).unwrap();
        assert!(!crowded(cpus, 1) && crowded(cpus + 1, 1) && crowded(cpus, 2));
    }
}
