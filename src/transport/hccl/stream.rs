//! Streams and events: work of a card in order, and points in it.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use hccl_sys::*;

use super::call::{acl, acl_result};
use super::card::{Card, Context};
use crate::error::Result;

/// Work of a card that is done one after another.
pub struct Stream {
    card: Arc<Card>,
    raw: aclrtStream,
    context: Context,
    is_own: bool,
}

/// A point in a stream that others can wait for once it is recorded. It may be recorded again.
pub struct Event {
    card: Arc<Card>,
    raw: aclrtEvent,
}

// SAFETY: streams may be used from any thread that has their context current, which each function sees to.
unsafe impl Send for Stream {}
// SAFETY: as above; CANN's functions on streams lock where they must.
unsafe impl Sync for Stream {}
// SAFETY: events may be used from any thread with a context of their device.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.card.device()).field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("device", &self.card.device()).finish_non_exhaustive()
    }
}

impl Card {
    /// A new stream.
    pub fn stream(self: &Arc<Self>) -> Result<Stream> {
        let _entered = self.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the function writes the new stream.
        unsafe { acl!(self.cann(), aclrtCreateStream(&mut raw)) }?;
        Ok(Stream { card: self.clone(), raw, context: self.context(), is_own: true })
    }

    /// The engine's stream `raw`, of the context that the calling thread works with; NULL for that context's default
    /// stream. It stays the engine's.
    ///
    /// # Safety
    /// `raw` is a stream of this card that lives as long as the result.
    pub unsafe fn engine_stream(self: &Arc<Self>, raw: *mut c_void) -> Stream {
        Stream { card: self.clone(), raw, context: self.engine_context(), is_own: false }
    }

    /// A new event.
    pub fn event(self: &Arc<Self>) -> Result<Event> {
        let _entered = self.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the function writes the new event.
        unsafe { acl!(self.cann(), aclrtCreateEventExWithFlag(&mut raw, ACL_EVENT_SYNC)) }?;
        Ok(Event { card: self.clone(), raw })
    }
}

impl Stream {
    /// The card that it belongs to.
    pub fn card(&self) -> &Arc<Card> {
        &self.card
    }

    /// As CANN knows it.
    pub fn raw(&self) -> *mut c_void {
        self.raw
    }

    pub(super) fn context(&self) -> Context {
        self.context
    }

    /// What is queued from now on begins when `event`, as it was last recorded, is reached.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let cann = self.card.cann();
        let _entered = self.context.enter(cann)?;
        // SAFETY: both are alive.
        unsafe { acl!(cann, aclrtStreamWaitEvent(self.raw, event.raw)) }
    }

    /// Queues that `bytes` at `address` become zero.
    ///
    /// # Safety
    /// As for [`Card::write`], until it is done.
    pub unsafe fn zero(&self, address: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let cann = self.card.cann();
        let _entered = self.context.enter(cann)?;
        // SAFETY: as the caller says.
        unsafe { acl!(cann, aclrtMemsetAsync(address as *mut c_void, bytes, 0, bytes, self.raw)) }
    }

    /// Waits until everything queued is done; false if that takes longer than `timeout`. An error if something failed.
    pub fn synchronize(&self, timeout: Duration) -> Result<bool> {
        let cann = self.card.cann();
        let _entered = self.context.enter(cann)?;
        // SAFETY: the stream is alive.
        let code = unsafe { (cann.aclrtSynchronizeStreamWithTimeout)(self.raw, milliseconds(timeout)) };
        in_time(cann, "aclrtSynchronizeStreamWithTimeout", code)
    }
}

impl Event {
    /// Puts it behind what is queued on `stream`.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let cann = self.card.cann();
        let _entered = stream.context.enter(cann)?;
        // SAFETY: both are alive.
        unsafe { acl!(cann, aclrtRecordEvent(self.raw, stream.raw)) }
    }

    /// Whether it is reached.
    pub fn query(&self) -> Result<bool> {
        let cann = self.card.cann();
        let _entered = self.card.enter()?;
        let mut status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
        // SAFETY: the event is alive, and the function writes a number.
        unsafe { acl!(cann, aclrtQueryEventStatus(self.raw, &mut status)) }?;
        Ok(status == ACL_EVENT_RECORDED_STATUS_COMPLETE)
    }

    /// Waits until it is reached; false if that takes longer than `timeout`. An error if something before it failed.
    pub fn synchronize(&self, timeout: Duration) -> Result<bool> {
        let cann = self.card.cann();
        let _entered = self.card.enter()?;
        // SAFETY: the event is alive.
        let code = unsafe { (cann.aclrtSynchronizeEventWithTimeout)(self.raw, milliseconds(timeout)) };
        in_time(cann, "aclrtSynchronizeEventWithTimeout", code)
    }
}

/// A time that CANN takes: 0 and less mean something else.
fn milliseconds(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).max(1)
}

fn in_time(cann: &Cann, function: &str, code: aclError) -> Result<bool> {
    match code {
        ACL_ERROR_RT_STREAM_SYNC_TIMEOUT | ACL_ERROR_RT_EVENT_SYNC_TIMEOUT => Ok(false),
        code => acl_result(cann, function, code).map(|()| true),
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_own
            && let Ok(_entered) = self.context.enter(self.card.cann())
        {
            // SAFETY: the stream was made for this struct. There is nobody to tell of a failure.
            unsafe { (self.card.cann().aclrtDestroyStream)(self.raw) };
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_entered) = self.card.enter() {
            // SAFETY: the event was made for this struct. There is nobody to tell of a failure.
            unsafe { (self.card.cann().aclrtDestroyEvent)(self.raw) };
        }
    }
}
