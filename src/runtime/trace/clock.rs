//! A clock that is read in a few nanoseconds: the CPU's counter, compared with `CLOCK_MONOTONIC` at both ends.

use crate::runtime::time::now;

/// The counter; another unit than nanoseconds on most CPUs.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction; it touches no memory.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: user code may read the virtual counter; it touches no memory.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        return ticks;
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return now();
}

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    ticks: u64,
    ns: u64,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        // The look with the least between its two sides counts.
        let look = || {
            let (before, ns, after) = (ticks(), now(), ticks());
            (after.saturating_sub(before), Moment { ticks: before + after.saturating_sub(before) / 2, ns })
        };
        let looks = [look(), look(), look(), look()];
        looks.into_iter().min_by_key(|(width, _)| *width).expect("four looks").1
    }

    /// The nanoseconds of `CLOCK_MONOTONIC` at `ticks`, by what has passed on both clocks until `later`.
    pub fn ns(&self, later: &Moment, ticks: u64) -> u64 {
        let passed = later.ticks.saturating_sub(self.ticks).max(1);
        let ns = i128::from(ticks as i64 - self.ticks as i64) * i128::from(later.ns - self.ns) / i128::from(passed);
        (i128::from(self.ns) + ns).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let (begin, end) = (Moment { ticks: 1000, ns: 50_000 }, Moment { ticks: 4000, ns: 51_000 });
        assert_eq!([1000, 1300, 4000, 7000].map(|t| begin.ns(&end, t)), [50_000, 50_100, 51_000, 52_000]);
        assert_eq!(begin.ns(&end, 700), 49_900, "another core's counter may be a little behind");
        assert_eq!(begin.ns(&begin, 1000), 50_000);
    }

    #[test]
    fn the_counter_goes_on() {
        let begin = Moment::now();
        let before = ticks();
        let clock = now();
        while now() < clock + 1000 {}
        assert!(ticks() > before);
        assert!(Moment::now().ns >= begin.ns + 1000);
    }
}
