//! The thread that makes progress while nobody else does: what comes is executed although ranks compute. It sleeps until
//! UCX has events. While others attend to the network it only looks now and then whether they still do, so that it is not
//! woken for everything that comes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::Shared;
use crate::error::{Error, Result};

/// How often it is looked whether others attend.
const GLANCE: Duration = Duration::from_millis(1);

/// The longest sleep: UCX has timers of its own.
const SLEEP: Duration = Duration::from_millis(100);

/// The thread, and what it is told.
#[derive(Debug)]
pub struct Carrier {
    wake: OwnedFd,
    attendants: AtomicU32,
    asleep: AtomicBool,
    ended: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Carrier {
    pub fn new() -> Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|e| Error::io("eventfd", e))?;
        Ok(Self {
            wake,
            attendants: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            thread: Mutex::new(None),
        })
    }

    /// Begins to carry.
    pub fn start(shared: &Arc<Shared>) -> Result<()> {
        let carried = Arc::clone(shared);
        let thread =
            std::thread::Builder::new().name("pld-carrier".into()).spawn(move || carried.carrier.run(&carried));
        let thread = thread.map_err(|e| Error::io("starting a thread", e))?;
        *shared.carrier.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Ends the thread.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.signal();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // What is told of losses may end the network.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }

    /// Another one attends.
    pub fn attend(&self) {
        self.attendants.fetch_add(1, Ordering::SeqCst);
    }

    /// One less attends.
    pub fn unattend(&self) {
        self.attendants.fetch_sub(1, Ordering::SeqCst);
    }

    /// Somebody attends.
    pub fn attended(&self) -> bool {
        self.attendants.load(Ordering::SeqCst) > 0
    }

    /// There is something to do, of which there may be no event.
    pub fn rouse(&self) {
        if !self.attended() && self.asleep.load(Ordering::SeqCst) {
            self.signal();
        }
    }

    fn signal(&self) {
        // It fails if the counter is full: then the thread wakes anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn run(&self, shared: &Shared) {
        while !self.ended.load(Ordering::SeqCst) {
            if self.attended() {
                self.sleep(None, GLANCE);
            } else if !shared.round() {
                self.watch(shared);
            }
        }
    }

    /// Sleeps until there are events.
    fn watch(&self, shared: &Shared) {
        self.asleep.store(true, Ordering::SeqCst);
        match shared.arm() {
            // SAFETY: it belongs to the worker, which outlives this thread.
            Some(events) => self.sleep(Some(unsafe { BorrowedFd::borrow_raw(events) }), SLEEP),
            // UCX has something to do, but cannot do it yet.
            None => self.sleep(None, GLANCE),
        }
        self.asleep.store(false, Ordering::SeqCst);
    }

    fn sleep(&self, events: Option<BorrowedFd<'_>>, most: Duration) {
        let wake = self.wake.as_fd();
        let mut watched =
            [PollFd::new(&wake, PollFlags::IN), PollFd::new(events.as_ref().unwrap_or(&wake), PollFlags::IN)];
        let most = Timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
        // An interrupted sleep is a short one.
        let _ = poll(&mut watched, Some(&most));
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }
}
