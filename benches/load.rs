//! How much of the CPUs others use: what they take, the benchmarks do not measure.

use std::time::Instant;

use rustix::param::clock_ticks_per_second;

/// Watches the CPUs from its making on.
pub struct Load {
    begin: Instant,
    busy: f64,
    own: f64,
}

impl Load {
    /// Begins to watch; `None` where the system does not tell.
    pub fn begin() -> Option<Self> {
        Some(Self { begin: Instant::now(), busy: busy()?, own: own()? })
    }

    /// Percent of both CPUs that processes other than this one and its ended children have used.
    pub fn others(&self) -> Option<f64> {
        let others = (busy()? - self.busy) - (own()? - self.own);
        Some((100.0 * others / (2.0 * self.begin.elapsed().as_secs_f64())).max(0.0))
    }
}

/// Seconds that the CPUs have worked: all but idle and waiting for disks.
fn busy() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let mut fields = stat.lines().next()?.split_whitespace().skip(1);
    let fields: Vec<f64> = fields.by_ref().take(8).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let &[user, nice, system, _idle, _disk, interrupt, soft_interrupt, stolen] = &fields[..] else { return None };
    Some((user + nice + system + interrupt + soft_interrupt + stolen) / clock_ticks_per_second() as f64)
}

/// Seconds that this process and its ended children have worked.
fn own() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold anything; the state is the first field after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..15)?.iter().map(|field| field.parse::<f64>().ok()).sum::<Option<f64>>()?;
    Some(ticks / clock_ticks_per_second() as f64)
}
