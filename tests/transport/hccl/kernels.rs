//! Memory, streams, events and kernels of a card.

use std::ffi::c_void;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use pld::error::{ErrorKind, Result};
use pld::transport::hccl::compiler::{Architecture, Source};
use pld::transport::hccl::{Binary, Card, HcclTransport};
use pld::transport::{Transport, hccl};

use super::{Processes, World, cann_function, cards, everywhere, join, meet};
use crate::ranks::{DEADLINE, Scenario, soon};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("memory", |rank| memory(&join(rank, soon())?)),
    ("launches", |rank| launches(&join(rank, soon())?)),
    ("events", |rank| events(&join(rank, soon())?)),
    ("kernels_of_peers", |rank| kernels_of_peers(&join(rank, soon())?)),
    ("failing_kernel", |rank| failing_kernel(&join(rank, soon())?)),
    ("streams_of_the_engine", |rank| streams_of_the_engine(&join(rank, soon())?)),
    ("unknown_kernels", |rank| unknown_kernels(&join(rank, soon())?)),
];

/// Kernels as the simulated CANN calls them: what a card would be given has the same names without `_sim`.
const KERNELS: &str = r#"
#include <atomic>
#include <cstdint>
#define KERNEL(name) extern "C" void name##_sim(const uint64_t *args, uint32_t block)
template <class T> static T *at(uint64_t address) { return reinterpret_cast<T *>(address); }

// fill(out, base, step): out[block] = base + block * step
KERNEL(fill) { at<int64_t>(args[0])[block] = int64_t(args[1]) + int64_t(args[2]) * block; }
// twice(out, in): out[block] = 2 * in[block]
KERNEL(twice) { at<int64_t>(args[0])[block] = 2 * at<int64_t>(args[1])[block]; }
// await(cell): returns when *cell is not 0
KERNEL(await) { while (std::atomic_ref<int32_t>(*at<int32_t>(args[0])).load() == 0) {} }
// fail(): touches what is not there
KERNEL(fail) { *at<int32_t>(8) = 1; }
"#;

fn load(transport: &HcclTransport, card: &Arc<Card>) -> Result<Arc<Binary>> {
    let source = Source { name: "kernels", text: KERNELS, headers: &[], architecture: Architecture::of(card.soc())? };
    card.load(&cards(transport).compiler().build(&source)?)
}

fn each(transport: &HcclTransport, run: impl Fn(u32, &Arc<Card>) -> Result<()>) -> Result<String> {
    transport.local().try_for_each(|rank| run(rank, cards(transport).card(rank)))?;
    meet(transport)?;
    Ok("passed".into())
}

fn numbers(memory: &hccl::DeviceMemory) -> Result<Vec<i64>> {
    let mut bytes = vec![0; memory.bytes()];
    memory.read(0, &mut bytes)?;
    Ok(bytes.chunks_exact(8).map(|bytes| i64::from_ne_bytes(bytes.try_into().unwrap())).collect())
}

fn memory(transport: &HcclTransport) -> Result<String> {
    each(transport, |rank, card| {
        for bytes in [0, 1, 4096, 100_001] {
            let memory = card.allocate(bytes)?;
            let mut seen = vec![0xee; bytes];
            memory.read(0, &mut seen)?;
            assert_eq!(seen, vec![0; bytes]);
            let written: Vec<_> = (0..bytes).map(|position| (position * 7 + rank as usize * 13 + 1) as u8).collect();
            memory.write(0, &written)?;
            memory.read(0, &mut seen)?;
            assert!(seen == written);
            let half = bytes / 2;
            memory.read(half, &mut seen[half..])?;
            assert!(seen == written);
            memory.zero()?;
            memory.read(0, &mut seen)?;
            assert_eq!(seen, vec![0; bytes]);
            let beyond = memory.write(1, &written).unwrap_err();
            assert_eq!(beyond.message, format!("{bytes} bytes at 1 of a memory of {bytes}"));
            assert_eq!(beyond.kind, ErrorKind::InvalidArgument);
            assert_eq!(memory.read(usize::MAX, &mut [0; 2]).unwrap_err().kind, ErrorKind::InvalidArgument);
            if bytes > 0 {
                assert_eq!(card.is_host_memory(memory.address()), Some(false));
            }
            assert_ne!(card.is_host_memory(seen.as_ptr() as u64), Some(false));
        }
        Ok(())
    })
}

fn launches(transport: &HcclTransport) -> Result<String> {
    each(transport, |rank, card| {
        let (binary, stream) = (load(transport, card)?, card.stream()?);
        let (fill, twice) = (binary.function("fill")?, binary.function("twice")?);
        drop(binary);
        let (first, second) = (card.allocate(40 * 8)?, card.allocate(40 * 8)?);
        let base = 1000 * (i64::from(rank) + 1);
        // SAFETY: these are the kernels' parameters, and the memories have room for 40 numbers.
        unsafe {
            card.launch(&fill, 40, &[first.address(), base as u64, -3i64 as u64], &stream)?;
            card.launch(&twice, 39, &[second.address(), first.address()], &stream)?;
            card.launch(&fill, 0, &[0, 0, 0], &stream)?;
        }
        assert!(stream.synchronize(DEADLINE)?);
        let expected: Vec<_> = (0..40).map(|block| base - 3 * block).collect();
        assert_eq!(numbers(&first)?, expected);
        let expected: Vec<_> = expected[..39].iter().map(|n| 2 * n).chain([0]).collect();
        assert_eq!(numbers(&second)?, expected);
        // SAFETY: the memory is as long.
        unsafe { stream.zero(first.address(), 24) }?;
        // SAFETY: as above.
        unsafe { card.launch(&twice, 40, &[second.address(), first.address()], &stream) }?;
        assert!(stream.synchronize(DEADLINE)?);
        assert_eq!(numbers(&second)?[..4], [0, 0, 0, 2 * (base - 9)]);
        Ok(())
    })
}

/// One stream waits for a point of another, which waits for the host.
fn events(transport: &HcclTransport) -> Result<String> {
    each(transport, |rank, card| {
        let (binary, first, second) = (load(transport, card)?, card.stream()?, card.stream()?);
        let [fill, twice, wait] = ["fill", "twice", "await"].map(|name| binary.function(name));
        let (fill, twice, wait) = (fill?, twice?, wait?);
        let (cell, numbers_of_first, numbers_of_second) = (card.allocate(4)?, card.allocate(64)?, card.allocate(64)?);
        let event = card.event()?;
        for round in 1..3 {
            cell.zero()?;
            let base = round * 100 + u64::from(rank);
            // SAFETY: these are the kernels' parameters, and the memories have room for 8 numbers.
            unsafe {
                card.launch(&wait, 1, &[cell.address()], &first)?;
                card.launch(&fill, 8, &[numbers_of_first.address(), base, 1], &first)?;
                event.record(&first)?;
                second.wait(&event)?;
                let arguments = [numbers_of_second.address(), numbers_of_first.address()];
                card.launch(&twice, 8, &arguments, &second)?;
            }
            assert!(!event.query()?);
            assert!(!event.synchronize(Duration::from_millis(5))?);
            assert!(!second.synchronize(Duration::ZERO)?);
            // The host can write while kernels run.
            cell.write(0, &1i32.to_ne_bytes())?;
            assert!(event.synchronize(DEADLINE)? && event.query()?);
            assert!(second.synchronize(DEADLINE)?);
            let expected: Vec<_> = (0..8).map(|block| 2 * (base as i64 + block)).collect();
            assert_eq!(numbers(&numbers_of_second)?, expected);
        }
        Ok(())
    })
}

/// Kernels write to the windows of other cards.
fn kernels_of_peers(transport: &HcclTransport) -> Result<String> {
    let (cards, all) = (cards(transport), 0..transport.nranks());
    let windows = cards.allocate_windows(1000, soon())?;
    each(transport, |rank, card| {
        let (fill, stream) = (load(transport, card)?.function("fill")?, card.stream()?);
        for peer in all.clone() {
            let to = windows.base(peer) + u64::from(rank) * 80;
            // SAFETY: each rank has room for 10 numbers in everyone's windows, which have 12 times as much.
            unsafe { card.launch(&fill, 10, &[to, u64::from(100 * rank + 7 * peer), 1], &stream) }?;
        }
        assert!(stream.synchronize(DEADLINE)?);
        Ok(())
    })?;
    each(transport, |rank, card| {
        let mut bytes = vec![0; 80 * all.len()];
        // SAFETY: the windows are as long, and the kernels are done.
        unsafe { card.read(windows.base(rank), &mut bytes) }?;
        for (at, bytes) in bytes.chunks_exact(8).enumerate() {
            let (writer, block) = (at as i64 / 10, at as i64 % 10);
            let expected = 100 * writer + 7 * i64::from(rank) + block;
            assert_eq!(i64::from_ne_bytes(bytes.try_into().unwrap()), expected);
        }
        Ok(())
    })
}

/// What a kernel did wrong is an error of its stream and of no other.
fn failing_kernel(transport: &HcclTransport) -> Result<String> {
    each(transport, |_, card| {
        let (binary, bad, good) = (load(transport, card)?, card.stream()?, card.stream()?);
        let memory = card.allocate(8)?;
        // SAFETY: the kernel ends with an error, and the other one has room.
        unsafe {
            card.launch(&binary.function("fail")?, 1, &[], &bad)?;
            card.launch(&binary.function("fill")?, 1, &[memory.address(), 5, 0], &good)?;
        }
        let error = bad.synchronize(DEADLINE).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Device);
        for part in ["ACL_ERROR_RT_VECTOR_CORE_EXCEPTION (507035)", "kernel fail, block 0", "a kernel ended abnormally"]
        {
            assert!(error.message.contains(part), "{error}");
        }
        assert!(good.synchronize(DEADLINE)?);
        assert_eq!(numbers(&memory)?, [5]);
        Ok(())
    })
}

/// A stream in a context that the engine has made itself.
fn streams_of_the_engine(transport: &HcclTransport) -> Result<String> {
    type CreateContext = unsafe extern "C" fn(*mut *mut c_void, i32) -> i32;
    type DestroyContext = unsafe extern "C" fn(*mut c_void) -> i32;
    // SAFETY: these are the functions' types.
    let (create, destroy) = unsafe {
        (
            std::mem::transmute::<*mut c_void, CreateContext>(cann_function(c"aclrtCreateContext")),
            std::mem::transmute::<*mut c_void, DestroyContext>(cann_function(c"aclrtDestroyContext")),
        )
    };
    each(transport, |rank, card| {
        let cann = card.cann();
        let (fill, event, own) = (load(transport, card)?.function("fill")?, card.event()?, card.stream()?);
        let memory = card.allocate(64)?;
        let (mut context, mut raw, mut current) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the functions write handles; the stream lives until it is destroyed below.
        unsafe {
            assert_eq!(create(&mut context, card.device()), 0);
            assert_eq!((cann.aclrtCreateStream)(&mut raw), 0);
            let stream = card.engine_stream(raw);
            assert_eq!(stream.raw(), raw);
            card.launch(&fill, 8, &[memory.address(), u64::from(rank), 2], &stream)?;
            event.record(&stream)?;
            own.wait(&event)?;
            own.zero(memory.address(), 8)?;
            assert!(own.synchronize(DEADLINE)? && stream.synchronize(DEADLINE)?);
            drop(stream);
            assert_eq!(((cann.aclrtGetCurrentContext)(&mut current), current), (0, context));
            assert_eq!((cann.aclrtDestroyStream)(raw), 0);
            assert_eq!(destroy(context), 0);
        }
        let expected: Vec<_> = (0..8).map(|block| if block == 0 { 0 } else { i64::from(rank) + 2 * block }).collect();
        assert_eq!(numbers(&memory)?, expected);
        Ok(())
    })
}

fn unknown_kernels(transport: &HcclTransport) -> Result<String> {
    each(transport, |_, card| {
        let error = load(transport, card)?.function("no_such").unwrap_err();
        assert!(error.message.starts_with("finding kernel no_such: aclrtBinaryGetFunction: "), "{error}");
        let error = card.load(Path::new("/is/not/there.elf")).unwrap_err();
        assert_eq!((error.kind, &error.message[..27]), (ErrorKind::Io, "reading /is/not/there.elf: "));
        let error = card.load(&std::env::current_exe().unwrap()).unwrap_err();
        assert!(error.message.contains("aclrtBinaryLoadFromData: "), "{error}");
        Ok(())
    })
}

#[test]
fn memory_of_cards() {
    everywhere("memory", &[]);
}

#[test]
fn kernels_run_in_order() {
    everywhere("launches", &[]);
}

#[test]
fn streams_wait_for_events() {
    everywhere("events", &[]);
}

#[test]
fn kernels_reach_the_windows_of_peers() {
    everywhere("kernels_of_peers", &[]);
}

#[test]
fn a_failing_kernel_fails_its_stream() {
    World::start("failing_kernel", 2, Processes::OneARank, &[]).succeed();
}

#[test]
fn streams_of_an_engine() {
    World::start("streams_of_the_engine", 2, Processes::One, &[]).succeed();
    World::start("streams_of_the_engine", 2, Processes::OneARank, &[]).succeed();
}

#[test]
fn what_is_no_kernel() {
    World::start("unknown_kernels", 1, Processes::One, &[]).succeed();
}
