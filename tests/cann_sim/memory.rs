//! Device memory: of one process, and of several.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use hccl_sys::*;
use pld_test_ranks::Rank;

use crate::acl::*;

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("memory::shared", shared),
    ("memory::mistakes", mistakes),
    ("memory::mapping_mistakes", mapping_mistakes),
    ("memory::stale_handle", stale_handle),
    ("memory::driver_numbers", driver_numbers),
];

/// Memory that other processes can get at, mapped here.
pub struct Window {
    pub address: *mut c_void,
    handle: aclrtDrvMemHandle,
}

pub const WINDOW: usize = 2 << 20;

fn properties(device: u32) -> aclrtPhysicalMemProp {
    aclrtPhysicalMemProp {
        handleType: ACL_MEM_HANDLE_TYPE_NONE,
        allocationType: ACL_MEM_ALLOCATION_TYPE_PINNED,
        memAttr: ACL_HBM_MEM_HUGE,
        location: aclrtMemLocation { id: device, type_: ACL_MEM_LOCATION_TYPE_DEVICE },
        reserve: 0,
    }
}

impl Window {
    /// Memory of the thread's device, whose number here and for the driver is this.
    pub fn new(device: u32) -> Self {
        // SAFETY: the pointers are to values that live during the call.
        let handle =
            made(null_mut(), |handle| unsafe { (cann().aclrtMallocPhysical)(handle, WINDOW, &properties(device), 0) });
        Self::map(handle, device)
    }

    fn map(handle: aclrtDrvMemHandle, device: u32) -> Self {
        let acl = cann();
        // SAFETY: as above.
        unsafe {
            let address = made(null_mut(), |address| (acl.aclrtReserveMemAddress)(address, WINDOW, 0, null_mut(), 1));
            ok((acl.aclrtMapMem)(address, WINDOW, 0, handle, 0));
            ok((acl.aclrtMemSetAccess)(address, WINDOW, &mut access(device), 1));
            Self { address, handle }
        }
    }

    /// The handle for others: for cards with a fabric, or for those without.
    pub fn export(&self) -> Vec<u8> {
        let acl = cann();
        let mut fabric = aclrtMemFabricHandle { data: [0; 128] };
        // SAFETY: as above.
        unsafe {
            let export = acl.aclrtMemExportToShareableHandleV2.unwrap();
            match export(self.handle, 1, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, (&raw mut fabric).cast()) {
                ACL_ERROR_RT_FEATURE_NOT_SUPPORT => {
                    let number = made(0, |number| {
                        (acl.aclrtMemExportToShareableHandle)(self.handle, ACL_MEM_HANDLE_TYPE_NONE, 1, number)
                    });
                    number.to_ne_bytes().to_vec()
                }
                code => {
                    ok(code);
                    fabric.data.to_vec()
                }
            }
        }
    }

    /// The memory that another process gave this handle of.
    pub fn import(exported: &[u8], device: u32) -> Self {
        let handle = import(exported, device as i32);
        Self::map(handle.unwrap_or_else(|code| panic!("{code}: {}", message())), device)
    }

    /// Windows for all ranks, each on the device of its number.
    pub fn all(rank: &Rank) -> Vec<Window> {
        let me = rank.rank();
        let mut own = Some(Window::new(me));
        // SAFETY: the memory has as many bytes.
        unsafe { ok((cann().aclrtMemset)(own.as_ref().unwrap().address, WINDOW, 0, WINDOW)) };
        publish(rank, "window", &own.as_ref().unwrap().export());
        let import = |peer| Window::import(&fetch(rank, peer, "window"), me);
        (0..rank.nranks()).map(|peer| if peer == me { own.take().unwrap() } else { import(peer) }).collect()
    }

    pub fn release(self) {
        let acl = cann();
        // SAFETY: the address and the handle are the window's, which ends.
        unsafe {
            ok((acl.aclrtUnmapMem)(self.address));
            ok((acl.aclrtReleaseMemAddress)(self.address));
            ok((acl.aclrtFreePhysical)(self.handle));
        }
    }
}

fn access(driver: u32) -> aclrtMemAccessDesc {
    aclrtMemAccessDesc {
        flags: ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
        location: aclrtMemLocation { id: driver, type_: ACL_MEM_LOCATION_TYPE_DEVICE },
        rsv: [0; 12],
    }
}

fn import(exported: &[u8], device: i32) -> Result<aclrtDrvMemHandle, aclError> {
    let acl = cann();
    let mut handle = null_mut();
    // SAFETY: a handle has 128 bytes, or it is a number.
    let code = unsafe {
        match exported.try_into() {
            Ok(number) => (acl.aclrtMemImportFromShareableHandle)(u64::from_ne_bytes(number), device, &mut handle),
            Err(_) => {
                let mut fabric = aclrtMemFabricHandle { data: exported.try_into().unwrap() };
                let import = acl.aclrtMemImportFromShareableHandleV2.unwrap();
                import((&raw mut fabric).cast(), ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, 0, &mut handle)
            }
        }
    };
    if code == 0 { Ok(handle) } else { Err(code) }
}

#[test]
fn memory_is_shared_by_fabric_handles() {
    run_clean("memory::shared", 4, &[]);
}

#[test]
fn memory_is_shared_by_numbers_where_there_is_no_fabric() {
    run_clean("memory::shared", 4, &[("CANN_SIM_FABRIC", "0")]);
}

/// Each rank writes to its own memory and to everybody's, and reads both.
fn shared(rank: &Rank) {
    const WORDS: usize = 1000;
    let (me, nranks) = (rank.rank(), rank.nranks());
    let value = |from: u32, to: u32, i: usize| u64::from(from) << 40 | u64::from(to) << 32 | i as u64;
    let slot = |window: &Window, from: u32| window.address.wrapping_byte_add(from as usize * WORDS * 8);
    begin(me as i32);
    let windows = Window::all(rank);
    for (peer, window) in windows.iter().enumerate() {
        write(slot(window, me), &(0..WORDS).map(|i| value(me, peer as u32, i)).collect::<Vec<_>>());
    }
    meet(rank, "written");
    for (peer, window) in windows.iter().enumerate() {
        for from in 0..nranks {
            let expected: Vec<_> = (0..WORDS).map(|i| value(from, peer as u32, i)).collect();
            assert_eq!(read::<u64>(slot(window, from), WORDS), expected, "from {from} to {peer}");
        }
    }
    meet(rank, "read");
    windows.into_iter().for_each(Window::release);
    end(me as i32);
}

#[test]
fn copies_of_what_is_not_there_are_errors() {
    run_clean("memory::mistakes", 1, &[]);
}

fn mistakes(_: &Rank) {
    const H2D: aclrtMemcpyKind = ACL_MEMCPY_HOST_TO_DEVICE;
    const D2H: aclrtMemcpyKind = ACL_MEMCPY_DEVICE_TO_HOST;
    const WRONG: aclError = ACL_ERROR_RT_PARAM_INVALID;
    const NO_DEVICE_MEMORY: aclError = 107016;
    let acl = cann();
    // SAFETY: the library finds out which addresses are wrong before it touches them.
    unsafe {
        failed((acl.aclrtSetDevice)(0), ACL_ERROR_UNINITIALIZE, "aclInit");
        ok((acl.aclInit)(null()));
        failed((acl.aclInit)(null()), ACL_ERROR_REPEAT_INITIALIZE, "initialized");
        let mut memory = null_mut();
        failed((acl.aclrtMalloc)(&mut memory, 64, 0), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice");
        failed((acl.aclrtSetDevice)(8), ACL_ERROR_RT_INVALID_DEVICEID, "no device 8; this process sees 8");
        begin(1);
        let foreign = allocate(64);
        begin(0);
        failed((acl.aclrtMalloc)(&mut memory, 0, 0), ACL_ERROR_INVALID_PARAM, "0 bytes");
        failed((acl.aclrtMalloc)(&mut memory, 9 << 30, 0), ACL_ERROR_RT_MEMORY_ALLOCATION, "are asked for");
        let memory = allocate(100);
        assert_eq!(read::<u8>(memory, 100), [0xa5; 100], "fresh memory holds garbage");
        let mut host = [1u8; 200];
        let (here, there) = (host.as_mut_ptr().cast::<c_void>(), memory.cast_const());
        let copy = |to, room, from, bytes, kind| (acl.aclrtMemcpy)(to, room, from, bytes, kind);
        failed(copy(memory, 100, here, 0, H2D), WRONG, "0 bytes");
        failed(copy(memory, 10, here, 11, H2D), WRONG, "11 bytes to where 10 have room");
        failed(copy(memory, 200, here, 101, H2D), NO_DEVICE_MEMORY, "end beyond the 100 of aclrtMalloc");
        failed(copy(here, 10, here, 10, H2D), NO_DEVICE_MEMORY, "is no device memory");
        failed(copy(memory, 10, there, 10, H2D), NO_DEVICE_MEMORY, "is device memory");
        failed(copy(memory, 10, here, 10, D2H), NO_DEVICE_MEMORY, "is device memory");
        failed(copy(here, 10, foreign, 10, D2H), NO_DEVICE_MEMORY, "memory of device 1, not of device 0");
        failed(copy(null_mut(), 10, here, 10, H2D), WRONG, "null pointer");
        failed((acl.aclrtMemset)(here, 10, 0, 10), NO_DEVICE_MEMORY, "is no device memory");
        failed((acl.aclrtMemset)(memory, 10, 0, 11), WRONG, "11 bytes to set");
        failed((acl.aclrtFree)(memory.wrapping_byte_add(1)), WRONG, "not what aclrtMalloc gave");
        failed((acl.aclrtFree)(foreign), WRONG, "memory of device 1");

        let attributes = acl.aclrtPointerGetAttributes.unwrap();
        let mut about: aclrtPtrAttributes = std::mem::zeroed();
        let pinned = made(null_mut(), |pinned| (acl.aclrtMallocHost)(pinned, 50));
        for (pointer, expected) in [
            (there.wrapping_byte_add(99), ACL_MEM_LOCATION_TYPE_DEVICE),
            (there.wrapping_byte_add(100), ACL_MEM_LOCATION_TYPE_UNREGISTERED),
            (here.cast_const(), ACL_MEM_LOCATION_TYPE_UNREGISTERED),
            (pinned.cast_const(), ACL_MEM_LOCATION_TYPE_HOST),
        ] {
            ok(attributes(pointer, &mut about));
            assert_eq!(about.location.type_, expected);
        }
        ok((acl.aclrtFreeHost)(pinned));
        failed((acl.aclrtFreeHost)(pinned), WRONG, "freed before");
        ok((acl.aclrtFree)(memory));
        failed((acl.aclrtFree)(memory), WRONG, "freed before");
        failed(copy(memory, 10, here, 10, H2D), NO_DEVICE_MEMORY, "is no device memory");
        begin(1);
        ok((acl.aclrtFree)(foreign));
        for device in [0, 1, 1] {
            end(device);
        }
        failed((acl.aclrtResetDevice)(0), ACL_ERROR_RT_CONTEXT_NULL, "not in use");
    }
}

#[test]
fn mapping_in_the_wrong_order_is_an_error() {
    run_clean("memory::mapping_mistakes", 1, &[]);
}

fn mapping_mistakes(_: &Rank) {
    const WRONG: aclError = ACL_ERROR_RT_PARAM_INVALID;
    let acl = cann();
    begin(0);
    // SAFETY: the library finds out what is wrong before it does anything.
    unsafe {
        let mut handle = null_mut();
        let mut physical = |size, prop: aclrtPhysicalMemProp| (acl.aclrtMallocPhysical)(&mut handle, size, &prop, 0);
        failed(physical(WINDOW + 4096, properties(0)), WRONG, "no multiple of the granularity, 2097152");
        failed(physical(WINDOW, properties(1)), WRONG, "device 1; this thread works on device 0");
        let granularity = made(0, |size| (acl.aclrtMemGetAllocationGranularity)(&mut properties(0), 0, size));
        assert_eq!(granularity, WINDOW);
        ok(physical(WINDOW, properties(0)));

        let mut small = null_mut();
        failed((acl.aclrtReserveMemAddress)(&mut small, 4096, 0, null_mut(), 1), WRONG, "no multiple of a page");
        let normal = made(null_mut(), |address| (acl.aclrtReserveMemAddress)(address, WINDOW, 0, null_mut(), 0));
        failed((acl.aclrtMapMem)(normal, WINDOW, 0, handle, 0), WRONG, "huge pages, for addresses with normal");
        ok((acl.aclrtReleaseMemAddress)(normal));
        let address = made(null_mut(), |address| (acl.aclrtReserveMemAddress)(address, WINDOW, 0, null_mut(), 1));
        failed((acl.aclrtMapMem)(address, WINDOW, 4096, handle, 0), WRONG, "offset 4096");
        failed((acl.aclrtMapMem)(address, 4096, 0, handle, 0), WRONG, "4096 bytes to map");
        failed((acl.aclrtMapMem)(address, WINDOW, 0, address, 0), ACL_ERROR_RT_INVALID_HANDLE, "no physical memory");
        failed((acl.aclrtMemSetAccess)(address, WINDOW, &mut access(0), 1), WRONG, "nothing is mapped");
        ok((acl.aclrtMapMem)(address, WINDOW, 0, handle, 0));
        failed((acl.aclrtMapMem)(address, WINDOW, 0, handle, 0), WRONG, "mapped at");
        let code = (acl.aclrtMemset)(address, WINDOW, 0, WINDOW);
        failed(code, 107016, "is no device memory");
        let code = (acl.aclrtMemSetAccess)(address, WINDOW, &mut access(9), 1);
        failed(code, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "id 9");
        ok((acl.aclrtMemSetAccess)(address, WINDOW, &mut access(0), 1));
        assert_eq!(read::<u8>(address, 8), [0xa5; 8]);

        let window = Window { address, handle };
        let exported = window.export();
        failed((acl.aclrtMemExportToShareableHandle)(handle, 0, 1, &mut 0), WRONG, "exported before");
        failed(import(&exported, 0).unwrap_err(), WRONG, "this process's own");
        failed(import(&[0; 128], 0).unwrap_err(), ACL_ERROR_RT_DRV_INTERNAL_ERROR, "no such memory");
        failed((acl.aclrtFreePhysical)(handle), WRONG, "mapped at 1 places");
        failed((acl.aclrtReleaseMemAddress)(address), WRONG, "unmap it first");
        window.release();
        failed((acl.aclrtFreePhysical)(handle), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
        failed((acl.aclrtUnmapMem)(address), WRONG, "not what aclrtReserveMemAddress gave");
    }
    end(0);
}

#[test]
fn a_handle_ends_with_its_memory() {
    run_clean("memory::stale_handle", 2, &[]);
}

/// Rank 1 imports a handle twice, and one whose memory is gone.
fn stale_handle(rank: &Rank) {
    let me = rank.rank();
    begin(me as i32);
    if me == 0 {
        let (first, second) = (Window::new(0), Window::new(0));
        publish(rank, "first", &first.export());
        publish(rank, "second", &second.export());
        second.release();
        publish(rank, "released", &[]);
        fetch(rank, 1, "imported");
        first.release();
    } else {
        fetch(rank, 0, "released");
        let exported = fetch(rank, 0, "first");
        let window = Window::import(&exported, 1);
        failed(import(&exported, 1).unwrap_err(), ACL_ERROR_RT_PARAM_INVALID, "imported the memory");
        let stale = import(&fetch(rank, 0, "second"), 1).unwrap_err();
        failed(stale, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "no such memory");
        window.release();
        publish(rank, "imported", &[]);
    }
    end(me as i32);
}

#[test]
fn access_wants_the_drivers_number() {
    run_clean("memory::driver_numbers", 1, &[("ASCEND_RT_VISIBLE_DEVICES", "5,3")]);
}

fn driver_numbers(_: &Rank) {
    let acl = cann();
    // SAFETY: the pointers are to values that live during the calls.
    unsafe {
        assert_eq!(made(0, |count| (acl.aclrtGetDeviceCount)(count)), 2);
        assert_eq!(made(0, |driver| acl.aclrtGetLogicDevIdByUserDevId.unwrap()(1, driver)), 3);
        assert_eq!(made(0, |device| acl.aclrtGetUserDevIdByLogicDevId.unwrap()(5, device)), 0);
        begin(1);
        let handle = made(null_mut(), |handle| (acl.aclrtMallocPhysical)(handle, WINDOW, &properties(1), 0));
        let address = made(null_mut(), |address| (acl.aclrtReserveMemAddress)(address, WINDOW, 0, null_mut(), 1));
        ok((acl.aclrtMapMem)(address, WINDOW, 0, handle, 0));
        let code = (acl.aclrtMemSetAccess)(address, WINDOW, &mut access(1), 1);
        failed(code, ACL_ERROR_RT_DRV_INTERNAL_ERROR, "id 1");
        // Both cards may use it, and the second one does.
        ok((acl.aclrtMemSetAccess)(address, WINDOW, [access(3), access(5)].as_mut_ptr(), 2));
        begin(0);
        ok((acl.aclrtMemset)(address, WINDOW, 7, WINDOW));
        assert_eq!(read::<u8>(address, 4), [7; 4]);
        Window { address, handle }.release();
    }
    end(0);
    end(1);
}
