//! Hands jobs from one thread to persistent workers, and waits for them.
//!
//! The caller posts a job; every worker sees its number change, does its part and says so. The next job is posted only
//! when all have finished, so the words of a job stay as they are while anybody reads them. Number and words share a
//! cache line: a worker has the whole job after one miss.

use crate::Bell;
use crate::atomic::{AtomicU64, Ordering};

/// Words of a job.
pub const WORDS: usize = 3;

#[derive(Debug)]
#[repr(align(128))]
struct Post {
    number: AtomicU64,
    words: [AtomicU64; WORDS],
}

#[derive(Debug)]
#[repr(align(128))]
struct Done(AtomicU64);

/// The hand-off between a caller and its workers.
#[derive(Debug)]
pub struct Handoff {
    post: Post,
    start: Bell,
    finish: Bell,
    workers: Box<[Done]>,
}

/// A job: its number, from 1, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of the job.
    pub number: u64,
    /// For caller and worker to agree on.
    pub words: [u64; WORDS],
}

impl Handoff {
    /// A hand-off to `workers` workers.
    pub fn new(workers: usize) -> Self {
        Self {
            post: Post { number: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) },
            start: Bell::new(),
            finish: Bell::new(),
            workers: (0..workers).map(|_| Done(AtomicU64::new(0))).collect(),
        }
    }

    /// Posts a job and returns its number. Only one thread posts, when the job before has finished.
    #[inline]
    pub fn post(&self, words: [u64; WORDS]) -> u64 {
        for (slot, word) in self.post.words.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        // A read-modify-write reaches the workers sooner than a store, which first waits in the store buffer.
        let number = self.post.number.fetch_add(1, Ordering::SeqCst) + 1;
        self.start.ring_after_rmw();
        number
    }

    /// The job after job number `last`, if it is posted.
    #[inline]
    pub fn next(&self, last: u64) -> Option<Job> {
        let number = self.post.number.load(Ordering::Acquire);
        (number != last)
            .then(|| Job { number, words: std::array::from_fn(|i| self.post.words[i].load(Ordering::Relaxed)) })
    }

    /// Rings when a job is posted.
    pub fn start_bell(&self) -> &Bell {
        &self.start
    }

    /// Worker `worker` has finished job `number`.
    #[inline]
    pub fn finish(&self, worker: usize, number: u64) {
        self.workers[worker].0.swap(number, Ordering::SeqCst);
        self.finish.ring_after_rmw();
    }

    /// All workers have finished job `number`.
    #[inline]
    pub fn finished(&self, number: u64) -> bool {
        self.workers.iter().all(|w| w.0.load(Ordering::Acquire) >= number)
    }

    /// Rings when a worker finishes.
    pub fn finish_bell(&self) -> &Bell {
        &self.finish
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_worker_does_every_job_once() {
        const JOBS: u64 = 2000;
        let (handoff, sums) = (Handoff::new(3), [const { AtomicU64::new(0) }; 3]);
        std::thread::scope(|s| {
            for (worker, sum) in sums.iter().enumerate() {
                let handoff = &handoff;
                s.spawn(move || {
                    let mut last = 0;
                    while last < JOBS {
                        let Some(job) = handoff.next(last) else {
                            handoff.start_bell().sleep(|| handoff.next(last).is_some(), None);
                            continue;
                        };
                        assert_eq!(job.words, [job.number, job.number * 3, 7]);
                        sum.fetch_add(job.words[1] + worker as u64, Ordering::Relaxed);
                        last = job.number;
                        handoff.finish(worker, job.number);
                    }
                });
            }
            for n in 1..=JOBS {
                assert_eq!(handoff.post([n, n * 3, 7]), n);
                while !handoff.finished(n) {
                    handoff.finish_bell().sleep(|| handoff.finished(n), None);
                }
            }
        });
        for (worker, sum) in sums.iter().enumerate() {
            assert_eq!(sum.load(Ordering::Relaxed), 3 * JOBS * (JOBS + 1) / 2 + JOBS * worker as u64);
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Shared {
        handoff: Handoff,
        argument: UnsafeCell<u64>,
        result: UnsafeCell<u64>,
    }

    // SAFETY: the hand-off orders the accesses to both cells, which is what the model proves.
    unsafe impl Sync for Shared {}

    /// What the caller wrote before posting is the worker's, and what the worker wrote is the caller's afterwards;
    /// nobody sleeps through it.
    #[test]
    fn jobs_arrive_in_order_with_their_data() {
        crate::model(|| {
            let shared =
                Arc::new(Shared { handoff: Handoff::new(1), argument: UnsafeCell::new(0), result: UnsafeCell::new(0) });
            let worker = {
                let shared = shared.clone();
                thread::spawn(move || {
                    for last in 0..2 {
                        let job = loop {
                            match shared.handoff.next(last) {
                                Some(job) => break job,
                                None => shared.handoff.start.sleep(|| shared.handoff.next(last).is_some(), None),
                            }
                        };
                        assert_eq!(job, Job { number: last + 1, words: [last + 10, 0, 0] });
                        // SAFETY: the caller leaves both cells alone until the job has finished.
                        shared.argument.with(|a| shared.result.with_mut(|r| unsafe { *r = *a * 2 }));
                        shared.handoff.finish(0, job.number);
                    }
                })
            };
            for n in 0..2 {
                // SAFETY: no job is posted, so the worker leaves the cell alone.
                shared.argument.with_mut(|a| unsafe { *a = n + 5 });
                let number = shared.handoff.post([n + 10, 0, 0]);
                while !shared.handoff.finished(number) {
                    shared.handoff.finish.sleep(|| shared.handoff.finished(number), None);
                }
                // SAFETY: the job has finished.
                shared.result.with(|r| assert_eq!(unsafe { *r }, (n + 5) * 2));
            }
            worker.join().unwrap();
        });
    }
}
