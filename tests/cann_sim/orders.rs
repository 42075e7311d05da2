//! Failures that are ordered, and the report.

use hccl_sys::*;
use pld_test_ranks::{Job, Rank};
use serde_json::Value;

use crate::acl::*;

pub const SCENARIOS: &[(&str, Scenario)] = &[("orders::failures", failures), ("orders::leaks", leaks)];

#[test]
fn a_call_fails_when_it_is_ordered_to() {
    run_clean(
        "orders::failures",
        1,
        &[("CANN_SIM_FAIL", "aclrtMalloc:2=207001,HcclGetRootInfo:*=19,aclrtMemset:1=507899")],
    );
}

fn failures(_: &Rank) {
    let acl = cann();
    begin(0);
    let memory = allocate(8);
    // SAFETY: the pointers are to values that live during the calls.
    unsafe {
        let mut other = std::ptr::null_mut();
        failed((acl.aclrtMalloc)(&mut other, 8, 0), ACL_ERROR_RT_MEMORY_ALLOCATION, "call 2 was ordered to fail");
        assert!(other.is_null());
        assert!(message().is_empty(), "the text is given once");
        ok((acl.aclrtMalloc)(&mut other, 8, 0));
        failed((acl.aclrtMemset)(memory, 8, 0, 8), ACL_ERROR_RT_DRV_INTERNAL_ERROR, "aclrtMemset: call 1");
        assert_eq!(read::<u8>(memory, 8), [0xa5; 8], "a call that fails does nothing");
        let mut info = HcclRootInfo { internal: [0; HCCL_ROOT_INFO_BYTES as usize] };
        for _ in 0..3 {
            assert_eq!((acl.HcclGetRootInfo)(&mut info), HCCL_E_NETWORK);
        }
        ok((acl.aclrtFree)(memory));
        ok((acl.aclrtFree)(other));
    }
    end(0);
    let report = report();
    assert_eq!((&report["calls"]["aclrtMalloc"], &report["calls"]["HcclGetRootInfo"]), (&3.into(), &3.into()));
}

#[test]
fn what_is_left_is_reported_when_the_process_ends() {
    crate::toolkit::toolkit();
    let file = std::env::temp_dir().join(format!("cann-sim-report-{}-%p", std::process::id()));
    let mut job = Job::new();
    let world = [("PLD_RANK", "0"), ("PLD_WORLD_SIZE", "1"), ("CANN_SIM_REPORT", file.to_str().unwrap())];
    let seat = job.spawn("orders::leaks", world);
    job.outcome(seat).done();
    let file = file.to_str().unwrap().replace("%p", &job.process(seat).to_string());
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    std::fs::remove_file(file).unwrap();
    assert_eq!(report["live"], serde_json::json!({"context": 1, "memory": 2, "stream": 1}));
    assert_eq!(report["calls"]["aclrtMalloc"], 2);
}

fn leaks(_: &Rank) {
    begin(0);
    allocate(8);
    allocate(8);
    stream();
}
