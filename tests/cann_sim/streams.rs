//! Streams and events.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use hccl_sys::*;
use pld_test_ranks::Rank;

use crate::acl::*;

pub const SCENARIOS: &[(&str, Scenario)] =
    &[("streams::order", order), ("streams::mistakes", mistakes), ("streams::copies", copies)];

type Steps = Mutex<Vec<u32>>;

/// What a stream calls: a step, once the gate lets it.
struct Step<'a> {
    steps: &'a Steps,
    number: u32,
    gate: Option<Receiver<()>>,
}

unsafe extern "C" fn step(data: *mut c_void) {
    // SAFETY: the step is leaked by who submits it, and submitted once.
    let step = unsafe { &*data.cast::<Step>() };
    if let Some(gate) = &step.gate {
        gate.recv().unwrap();
    }
    step.steps.lock().unwrap().push(step.number);
}

fn submit(stream: aclrtStream, steps: &'static Steps, number: u32, gate: Option<Receiver<()>>) {
    let data = Box::leak(Box::new(Step { steps, number, gate }));
    // SAFETY: the step lives as long as the process.
    unsafe { ok(cann().aclrtLaunchHostFunc.unwrap()(stream, Some(step), (&raw mut *data).cast())) };
}

fn event() -> aclrtEvent {
    // SAFETY: the result is a handle.
    made(null_mut(), |event| unsafe {
        (cann().aclrtCreateEventExWithFlag)(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE)
    })
}

#[test]
fn a_stream_keeps_its_order_and_events_that_of_several() {
    run_clean("streams::order", 1, &[]);
}

fn order(_: &Rank) {
    let acl = cann();
    let steps: &'static Steps = Box::leak(Box::default());
    begin(0);
    let (a, b) = (stream(), stream());
    let (event, late) = (event(), event());
    // SAFETY: all handles live.
    unsafe {
        // b waits for what a has before the event, which waits at the gate.
        let (open, gate) = channel();
        submit(a, steps, 1, None);
        submit(a, steps, 2, Some(gate));
        ok((acl.aclrtRecordEvent)(event, a));
        ok((acl.aclrtStreamWaitEvent)(b, event));
        submit(b, steps, 3, None);
        let status = || made(9, |status| (acl.aclrtQueryEventStatus)(event, status));
        assert_eq!(status(), ACL_EVENT_RECORDED_STATUS_NOT_READY);
        let code = (acl.aclrtSynchronizeEventWithTimeout)(event, 20);
        failed(code, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "20 ms");
        let code = (acl.aclrtSynchronizeStreamWithTimeout)(b, 20);
        failed(code, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "20 ms");
        assert_eq!(made(9, |status| (acl.aclrtStreamQuery)(b, status)), ACL_STREAM_STATUS_NOT_READY);
        assert_eq!(*steps.lock().unwrap(), [1]);
        // The wait is for the record that there was: a later one does not make it longer.
        let (open_second, second_gate) = channel();
        submit(a, steps, 4, Some(second_gate));
        ok((acl.aclrtRecordEvent)(event, a));
        open.send(()).unwrap();
        ok((acl.aclrtSynchronizeStream)(b));
        assert_eq!(*steps.lock().unwrap(), [1, 2, 3]);
        assert_eq!(status(), ACL_EVENT_RECORDED_STATUS_NOT_READY);
        open_second.send(()).unwrap();
        ok((acl.aclrtSynchronizeEvent)(event));
        assert_eq!(status(), ACL_EVENT_RECORDED_STATUS_COMPLETE);
        ok((acl.aclrtSynchronizeStreamWithTimeout)(a, 60_000));
        assert_eq!(made(9, |status| (acl.aclrtStreamQuery)(a, status)), ACL_STREAM_STATUS_COMPLETE);
        assert_eq!(*steps.lock().unwrap(), [1, 2, 3, 4]);
        ok((acl.aclrtRecordEvent)(late, a));
        ok((acl.aclrtSynchronizeEvent)(late));
        assert!(made(-1.0, |time| (acl.aclrtEventElapsedTime)(time, event, late)) >= 0.0);
        for event in [event, late] {
            ok((acl.aclrtDestroyEvent)(event));
        }
        // A stream that is destroyed ends what it has.
        submit(a, steps, 5, None);
        for stream in [a, b] {
            ok((acl.aclrtDestroyStream)(stream));
        }
        assert_eq!(*steps.lock().unwrap(), [1, 2, 3, 4, 5]);
    }
    end(0);
}

#[test]
fn streams_of_others_and_of_nobody_are_errors() {
    run_clean("streams::mistakes", 1, &[]);
}

fn mistakes(_: &Rank) {
    let acl = cann();
    begin(1);
    let foreign = stream();
    begin(0);
    let (own, event) = (stream(), event());
    // SAFETY: the library finds out what is wrong before it does anything.
    unsafe {
        failed((acl.aclrtSynchronizeStream)(foreign), ACL_ERROR_RT_STREAM_CONTEXT, "of device 1");
        failed((acl.aclrtRecordEvent)(event, foreign), ACL_ERROR_RT_STREAM_CONTEXT, "of device 1");
        failed((acl.aclrtStreamWaitEvent)(own, event), ACL_ERROR_RT_PARAM_INVALID, "never recorded");
        failed((acl.aclrtSynchronizeEvent)(event), ACL_ERROR_RT_PARAM_INVALID, "never recorded");
        let status = made(9, |status| (acl.aclrtQueryEventStatus)(event, status));
        assert_eq!(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
        failed((acl.aclrtSynchronizeStream)(event), ACL_ERROR_RT_INVALID_HANDLE, "no stream");
        failed((acl.aclrtDestroyEvent)(own), ACL_ERROR_RT_INVALID_HANDLE, "no event");
        let number = own as usize;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let own = number as aclrtStream;
                failed((acl.aclrtSynchronizeStream)(own), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice");
                begin(0);
                ok((acl.aclrtSynchronizeStream)(own));
                end(0);
            });
        });
        let context = made(null_mut(), |context| (acl.aclrtGetCurrentContext)(context));
        begin(1);
        ok((acl.aclrtSynchronizeStream)(foreign));
        ok((acl.aclrtDestroyStream)(foreign));
        end(1);
        ok((acl.aclrtSetCurrentContext)(context));
        ok((acl.aclrtDestroyStream)(own));
        failed((acl.aclrtDestroyStream)(own), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
        failed((acl.aclrtSynchronizeStream)(own), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
        ok((acl.aclrtDestroyEvent)(event));
        end(1);
        end(0);
        failed((acl.aclrtSetCurrentContext)(context), ACL_ERROR_RT_INVALID_HANDLE, "no context");
    }
}

#[test]
fn copies_are_part_of_a_stream() {
    run_clean("streams::copies", 1, &[]);
}

fn copies(_: &Rank) {
    const WORDS: usize = 500;
    let acl = cann();
    begin(0);
    let stream = stream();
    let bytes = WORDS * 4;
    let (a, b) = (allocate(bytes), allocate(bytes));
    let from: Vec<u32> = (0..WORDS as u32).map(|i| 3 * i + 1).collect();
    let mut to = vec![0u32; WORDS];
    // SAFETY: host memory lives until the stream is through with it.
    unsafe {
        let copy = |to, from, kind| ok((acl.aclrtMemcpyAsync)(to, bytes, from, bytes, kind, stream));
        ok((acl.aclrtMemsetAsync)(a, bytes, 0, bytes, stream));
        copy(a, from.as_ptr().cast(), ACL_MEMCPY_HOST_TO_DEVICE);
        copy(b, a, ACL_MEMCPY_DEVICE_TO_DEVICE);
        copy(to.as_mut_ptr().cast(), b, ACL_MEMCPY_DEVICE_TO_HOST);
        ok((acl.aclrtSynchronizeStream)(stream));
        assert_eq!(to, from);
        let host = to.as_mut_ptr().cast();
        let code = (acl.aclrtMemcpyAsync)(host, 4, from.as_ptr().cast(), 4, ACL_MEMCPY_HOST_TO_DEVICE, stream);
        failed(code, 107016, "no device memory");
        ok((acl.aclrtFree)(a));
        ok((acl.aclrtFree)(b));
        ok((acl.aclrtDestroyStream)(stream));
    }
    end(0);
}
