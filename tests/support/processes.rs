//! Ranks as processes: a test starts its own binary once a rank.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a process was started as.
pub struct ThisRank {
    pub rank: u32,
    pub nranks: u32,
    /// A path where the ranks of this world meet.
    pub meeting_point: String,
}

/// The rank that this process was started as, if it was.
pub fn this_rank() -> Option<ThisRank> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some(ThisRank {
        rank: number("PLD_TEST_RANK")?,
        nranks: number("PLD_TEST_NRANKS")?,
        meeting_point: std::env::var("PLD_TEST_MEETING_POINT").ok()?,
    })
}

/// Runs the test `name` of this binary in `nranks` processes; all must succeed before the deadline.
pub fn run_ranks(name: &str, nranks: u32, deadline: Duration) {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    let number = WORLDS.fetch_add(1, Ordering::Relaxed);
    let path: PathBuf = std::env::temp_dir().join(format!("pld-test-{}-{number}", std::process::id()));
    let mut ranks: Vec<Rank> = (0..nranks).map(|rank| Rank::start(name, rank, nranks, &path)).collect();
    let end = Instant::now() + deadline;
    for (number, rank) in ranks.iter_mut().enumerate() {
        rank.join(number, end);
    }
}

struct Rank(Child);

impl Rank {
    fn start(name: &str, rank: u32, nranks: u32, meeting_point: &PathBuf) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env("PLD_TEST_RANK", rank.to_string())
            .env("PLD_TEST_NRANKS", nranks.to_string())
            .env("PLD_TEST_MEETING_POINT", meeting_point)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn join(&mut self, number: usize, end: Instant) {
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                assert!(status.success(), "rank {number} ended with {status}");
                return;
            }
            assert!(Instant::now() < end, "rank {number} has not ended in time");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
