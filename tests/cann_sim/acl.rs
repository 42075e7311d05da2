//! CANN's functions as scenarios use them.

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;

use hccl_sys::*;
use pld_test_ranks::{DEADLINE, Job, Rank};
use serde_json::Value;

use crate::toolkit::toolkit;

/// What a process does; it panics where something is wrong.
pub type Scenario = fn(&Rank);

/// Runs a scenario in a process for each rank, with more variables in its environment; their reports.
pub fn run(scenario: &str, nranks: u32, variables: &[(&'static str, &str)]) -> Vec<Value> {
    toolkit();
    let mut job = Job::new();
    for rank in 0..nranks {
        let (rank, nranks) = (rank.to_string(), nranks.to_string());
        let world = [("PLD_RANK", rank.as_str()), ("PLD_WORLD_SIZE", nranks.as_str())];
        job.spawn(scenario, world.into_iter().chain(variables.iter().copied()));
    }
    job.outcomes().iter().map(|outcome| serde_json::from_str(outcome.done()).unwrap()).collect()
}

/// Runs a scenario that leaves nothing behind.
pub fn run_clean(scenario: &str, nranks: u32, variables: &[(&'static str, &str)]) {
    for report in run(scenario, nranks, variables) {
        for (kind, count) in report["live"].as_object().unwrap() {
            assert_eq!(count, 0, "{kind}: {report}");
        }
    }
}

/// The functions.
pub fn cann() -> &'static Cann {
    static CANN: OnceLock<&'static Cann> = OnceLock::new();
    CANN.get_or_init(|| Cann::get(Some(&toolkit())).unwrap())
}

/// Calls and live objects of this process.
pub fn report() -> Value {
    // SAFETY: the library is loaded, or loads; the function has this type, and its text lives until this thread's next call.
    unsafe {
        let library = libloading::Library::new(toolkit().join("lib64/libascendcl.so")).unwrap();
        let report = library.get::<unsafe extern "C" fn() -> *const std::ffi::c_char>(b"cannSimReport\0").unwrap();
        let text = CStr::from_ptr(report()).to_str().unwrap().to_owned();
        std::mem::forget(library);
        serde_json::from_str(&text).unwrap()
    }
}

/// The text of the thread's last error.
pub fn message() -> String {
    // SAFETY: the text lives until the thread's next call.
    unsafe {
        let text = (cann().aclGetRecentErrMsg)();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_str().unwrap().to_owned() }
    }
}

/// Panics with the text of an error.
#[track_caller]
pub fn ok(code: aclError) {
    assert_eq!(code, 0, "{}", message());
}

/// Panics unless a call failed with this code and a text that has this part.
#[track_caller]
pub fn failed(code: aclError, expected: aclError, part: &str) {
    let text = message();
    assert_eq!(code, expected, "{text}");
    assert!(text.contains(part), "{text:?} has no {part:?}");
}

/// The value that a call writes.
#[track_caller]
pub fn made<T>(empty: T, call: impl FnOnce(*mut T) -> aclError) -> T {
    let mut value = empty;
    ok(call(&mut value));
    value
}

/// Starts to use a device.
pub fn begin(device: i32) {
    let acl = cann();
    // SAFETY: a null path means no configuration.
    unsafe {
        let code = (acl.aclInit)(std::ptr::null());
        assert!(code == 0 || code == ACL_ERROR_REPEAT_INITIALIZE);
        ok((acl.aclrtSetDevice)(device));
    }
}

/// The end of that.
pub fn end(device: i32) {
    // SAFETY: only a number is passed.
    unsafe { ok((cann().aclrtResetDevice)(device)) };
}

pub fn stream() -> aclrtStream {
    // SAFETY: the result is a handle.
    made(null_mut(), |stream| unsafe { (cann().aclrtCreateStream)(stream) })
}

/// Device memory of so many bytes.
pub fn allocate(bytes: usize) -> *mut c_void {
    // SAFETY: the result is an address.
    made(null_mut(), |memory| unsafe { (cann().aclrtMalloc)(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) })
}

pub fn write<T: Copy>(to: *mut c_void, values: &[T]) {
    let bytes = size_of_val(values);
    // SAFETY: the values are as many bytes.
    unsafe { ok((cann().aclrtMemcpy)(to, bytes, values.as_ptr().cast(), bytes, ACL_MEMCPY_HOST_TO_DEVICE)) };
}

pub fn read<T: Copy + Default>(from: *const c_void, count: usize) -> Vec<T> {
    let mut values = vec![T::default(); count];
    let bytes = size_of_val(values.as_slice());
    // SAFETY: the values are as many bytes.
    unsafe { ok((cann().aclrtMemcpy)(values.as_mut_ptr().cast(), bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST)) };
    values
}

/// Gives all ranks of the job bytes under a name.
pub fn publish(rank: &Rank, name: &str, bytes: &[u8]) {
    let file = rank.home().join(format!("{name}.{}", rank.rank()));
    let unfinished = rank.home().join(format!("{name}.{}.unfinished", rank.rank()));
    std::fs::write(&unfinished, bytes).unwrap();
    std::fs::rename(unfinished, file).unwrap();
}

/// What a rank gives under a name.
pub fn fetch(rank: &Rank, peer: u32, name: &str) -> Vec<u8> {
    let file = rank.home().join(format!("{name}.{peer}"));
    let end = std::time::Instant::now() + DEADLINE;
    while !Path::exists(&file) {
        assert!(std::time::Instant::now() < end, "{} does not come", file.display());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    std::fs::read(file).unwrap()
}

/// Returns when all ranks have called this with the name.
pub fn meet(rank: &Rank, name: &str) {
    publish(rank, name, &[]);
    (0..rank.nranks()).for_each(|peer| _ = fetch(rank, peer, name));
}
