//! Communicators: between processes, and between threads of one.

use std::ptr::null_mut;

use hccl_sys::*;
use pld_test_ranks::Rank;

use crate::acl::*;

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("comm::processes", processes),
    ("comm::threads", threads),
    ("comm::same_card", same_card),
    ("comm::missing", missing),
    ("comm::disagree", disagree),
];

fn text(code: HcclResult) -> String {
    // SAFETY: the text is constant.
    let name = unsafe { std::ffi::CStr::from_ptr((cann().HcclGetErrorString)(code)) };
    format!("{}: {}", name.to_str().unwrap(), message())
}

#[track_caller]
fn fine(code: HcclResult) {
    assert_eq!(code, HCCL_SUCCESS, "{}", text(code));
}

fn root_info() -> HcclRootInfo {
    let mut info = HcclRootInfo { internal: [0; HCCL_ROOT_INFO_BYTES as usize] };
    // SAFETY: the info has as many bytes.
    unsafe { fine((cann().HcclGetRootInfo)(&mut info)) };
    info
}

/// The root info that rank 0 has made.
fn shared_root_info(rank: &Rank) -> HcclRootInfo {
    if rank.rank() == 0 {
        publish(rank, "root", &root_info().internal.map(|byte| byte as u8));
    }
    let bytes: [u8; HCCL_ROOT_INFO_BYTES as usize] = fetch(rank, 0, "root").try_into().unwrap();
    HcclRootInfo { internal: bytes.map(|byte| byte as _) }
}

fn join(info: &HcclRootInfo, nranks: u32, rank: u32) -> Result<HcclComm, HcclResult> {
    let mut comm = null_mut();
    // SAFETY: the pointers are to values that live during the call.
    match unsafe { (cann().HcclCommInitRootInfo)(nranks, info, rank, &mut comm) } {
        HCCL_SUCCESS => Ok(comm),
        code => Err(code),
    }
}

/// Barriers of all ranks, between which each tells how far it is.
fn check(comm: HcclComm, rank: u32, nranks: u32, arrive: impl Fn(u32), arrived: impl Fn(u32) -> bool) {
    let acl = cann();
    let stream = stream();
    // SAFETY: the handles live.
    unsafe {
        let (mut size, mut number) = (0, 0);
        fine((acl.HcclGetRankSize)(comm, &mut size));
        fine((acl.HcclGetRankId)(comm, &mut number));
        assert_eq!((size, number), (nranks, rank));
        let context = made(null_mut(), |context| (acl.aclrtGetCurrentContext)(context));
        for round in 0..20 {
            arrive(round);
            fine((acl.HcclBarrier)(comm, stream));
            let code = (acl.aclrtSynchronizeStream)(stream);
            failed(code, ACL_ERROR_RT_STREAM_CONTEXT, "another context");
            ok((acl.aclrtSetCurrentContext)(context));
            ok((acl.aclrtSynchronizeStream)(stream));
            assert!(arrived(round), "round {round}");
        }
        ok((acl.aclrtDestroyStream)(stream));
        fine((acl.HcclCommDestroy)(comm));
        assert_eq!((acl.HcclCommDestroy)(comm), HCCL_E_PARA);
    }
}

#[test]
fn processes_meet() {
    run_clean("comm::processes", 4, &[]);
}

fn processes(rank: &Rank) {
    let (me, nranks) = (rank.rank(), rank.nranks());
    begin(me as i32);
    let comm = join(&shared_root_info(rank), nranks, me).unwrap_or_else(|code| panic!("{}", text(code)));
    let arrived = |round| (0..nranks).all(|peer| rank.home().join(format!("round{round}.{peer}")).exists());
    check(comm, me, nranks, |round| publish(rank, &format!("round{round}"), &[]), arrived);
    end(me as i32);
}

#[test]
fn threads_of_a_process_meet() {
    run_clean("comm::threads", 1, &[]);
}

fn threads(_: &Rank) {
    const RANKS: u32 = 3;
    begin(0);
    let info = root_info();
    let rounds: Vec<_> = (0..RANKS).map(|_| std::sync::atomic::AtomicU32::new(0)).collect();
    std::thread::scope(|scope| {
        for rank in 0..RANKS {
            let (info, rounds) = (&info, &rounds);
            scope.spawn(move || {
                use std::sync::atomic::Ordering::SeqCst;
                begin(rank as i32);
                let comm = join(info, RANKS, rank).unwrap_or_else(|code| panic!("{}", text(code)));
                let arrived = |round| rounds.iter().all(|other| other.load(SeqCst) > round);
                check(comm, rank, RANKS, |round| rounds[rank as usize].store(round + 1, SeqCst), arrived);
                end(rank as i32);
            });
        }
    });
    end(0);
}

#[test]
fn two_ranks_on_one_card_are_refused() {
    run_clean("comm::same_card", 2, &[]);
}

fn same_card(rank: &Rank) {
    begin(5);
    let code = join(&shared_root_info(rank), 2, rank.rank()).unwrap_err();
    // Who comes second finds out, and who waits hears of it.
    match code {
        HCCL_E_PARA => assert!(text(code).contains("have the same card, 5"), "{}", text(code)),
        code => assert!(code == HCCL_E_REMOTE && text(code).contains("another rank"), "{}", text(code)),
    }
    meet(rank, "refused");
    end(5);
}

#[test]
fn a_rank_that_does_not_come_is_missed() {
    run_clean("comm::missing", 2, &[("HCCL_CONNECT_TIMEOUT", "1")]);
}

fn missing(rank: &Rank) {
    let me = rank.rank();
    begin(me as i32);
    let info = shared_root_info(rank);
    let code = join(&info, 3, me).unwrap_err();
    assert!(code == HCCL_E_TIMEOUT || code == HCCL_E_REMOTE, "{}", text(code));
    let mut none = info;
    none.internal[0] ^= 1;
    let code = join(&none, 2, me).unwrap_err();
    let message = text(code);
    assert!(
        code == HCCL_E_PARA
            && message.contains("parameter error")
            && message.contains("none that HcclGetRootInfo gave")
    );
    meet(rank, "missed");
    end(me as i32);
}

#[test]
fn ranks_that_disagree_are_refused() {
    run_clean("comm::disagree", 2, &[]);
}

fn disagree(rank: &Rank) {
    let me = rank.rank();
    begin(me as i32);
    let code = join(&shared_root_info(rank), 2 + me, me).unwrap_err();
    let message = text(code);
    assert!(message.contains("says that there are") || message.contains("another rank could not join"), "{message}");
    meet(rank, "refused");
    end(me as i32);
}
