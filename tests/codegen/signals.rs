//! Notify and wait, and what the runtime sees of them.

use std::time::Duration;

use pld::codegen::cpu::abi::Exit;

use crate::ranks::{Arg, Bytes, Options, Outcome, Ranks};
use crate::text::task;

fn launch(body: &str, nranks: u32, a: i64, b: i64, asleep: &[u32]) -> (Outcome, Ranks) {
    launch_with(Options::default(), body, nranks, a, b, asleep)
}

fn launch_with(options: Options, body: &str, nranks: u32, a: i64, b: i64, asleep: &[u32]) -> (Outcome, Ranks) {
    let mut ranks = Ranks::compile(&task(body), nranks, options);
    ranks.patience = Duration::from_millis(200);
    let tensor = Arg::Ranked(vec![vec![0; 128]; nranks as usize]);
    let args = [tensor.clone(), tensor, Arg::Bits(a as u64), Arg::Bits(b as u64)];
    let outcome = ranks.launch(&args, &[], &[], asleep);
    (outcome, ranks)
}

fn signals(outcome: &Outcome, rank: usize) -> Vec<i32> {
    let windows = &outcome.windows[rank];
    i32::values(&windows[256..272])
}

#[test]
fn adds_and_sets() {
    let body = "for peer in 0..world {
      notify sig[0, 0] @peer += a + me
      notify sig[1, 0] @peer += -3
      if me == 1 { notify sig[2, 0] @peer = b }
    }";
    for each in [false, true] {
        let (outcome, _) = launch_with(Options { each, ..Options::default() }, body, 3, 10, -(1 << 40) - 7, &[]);
        outcome.assert_done();
        for rank in 0..3 {
            assert_eq!(signals(&outcome, rank), [33, -9, -7, 0], "rank {rank}");
        }
    }
}

#[test]
fn waits_compare_signed() {
    let body = "notify sig[0, 0] @me += -5
    wait sig[0, 0] >= -5
    wait sig[0, 0] >= -6
    wait sig[0, 0] == -5
    wait sig[1, 0] >= a
    w[0, 0] = 1";
    let (outcome, _) = launch(body, 1, i64::from(i32::MIN), 0, &[]);
    outcome.assert_done();
    assert_eq!(i32::values(&outcome.windows[0][..4]), [1]);
}

/// Each rank passes a token on; the windows carry what the signal publishes.
#[test]
fn a_wait_sees_what_was_written_before_the_notify() {
    let body = "if me > 0 { wait sig[0, 0] >= 1 }
    w[0, 1] = w[0, 0] + me + 1
    next = (me + 1) % world
    put w[0, 0] @next <- w[0, 1] [1, 1]
    notify sig[0, 0] @next += 1
    if me == 0 { wait sig[0, 0] == 1 }";
    for nranks in [1, 2, 4] {
        let (outcome, _) = launch(body, nranks, 0, 0, &[]);
        outcome.assert_done();
        let total = (1..=nranks as i32).sum::<i32>();
        assert_eq!(i32::values(&outcome.windows[0][..4]), [total], "{nranks} ranks");
    }
}

#[test]
fn a_sleeping_peer_is_rung() {
    for (op, each) in ["+=", "="].into_iter().flat_map(|op| [(op, false), (op, true)]) {
        let options = Options { each, ..Options::default() };
        let body = format!("for peer in 0..world {{ notify sig[me, 0] @peer {op} 1 }}");
        let (outcome, _) = launch_with(options, &body, 4, 0, 0, &[]);
        assert_eq!(outcome.rings, []);
        let (outcome, _) = launch_with(options, &body, 4, 0, 0, &[1, 3]);
        outcome.assert_done();
        assert_eq!(outcome.rings, [1, 1, 1, 1, 3, 3, 3, 3], "each of the four ranks rings both sleepers");
    }
}

#[test]
fn a_wait_in_vain_ends_the_launch() {
    let (outcome, ranks) = launch("if me == 1 { wait sig[2, 0] >= 4 }\nw[0, 0] = 6", 2, 0, 0, &[]);
    assert_eq!(outcome.exits, [Exit::Done as i32, Exit::Failed as i32]);
    assert_eq!(i32::values(&outcome.windows[0][..4]), [6]);
    assert_eq!(i32::values(&outcome.windows[1][..4]), [0], "nothing runs after the wait");
    let (site, expected, cmp) = outcome.waits[0];
    assert_eq!(ranks.code[0].sites[site as usize].text, "wait sig[2, 0] >= 4");
    assert_eq!((expected, cmp), (4, 1));
}

#[test]
fn the_place_is_the_last_task() {
    let (outcome, ranks) = launch("w[0, 0] = 1", 2, 0, 0, &[]);
    for place in outcome.places {
        let site = &ranks.code[0].sites[place as usize];
        assert_eq!((site.text.as_str(), site.task.as_str()), ("at task", "task"));
    }
}

#[test]
fn sites_name_place_and_operands() {
    let (_, ranks) = launch("put w[a, 0] @me <- x[b, 0] [1, 8]", 1, 0, 0, &[]);
    let site = ranks.code[0].sites.iter().find(|site| site.text.starts_with("put")).unwrap();
    assert_eq!((site.place.as_str(), site.task.as_str()), ("test.pld:5", "task"));
    let operands: Vec<_> = site.operands.iter().map(|o| (o.name.as_str(), o.ty.as_str(), &o.shape[..])).collect();
    assert_eq!(operands, [("w", "window[4, 8] i32", &[4, 8][..]), ("x", "tensor[4, 8] i32", &[4, 8])]);
}

/// A region of a rank's own window may be copied to where it is.
#[test]
fn a_region_is_put_onto_itself() {
    let body = "for k in 0..4 { for i in 0..8 { w[k, i] = k * 8 + i + 100 * me } }
    put w @me <- w
    get w <- w @me
    put w[0, 0] @me <- w[0, 0] [a, 8]";
    let (outcome, _) = launch(body, 2, 4, 0, &[]);
    outcome.assert_done();
    for rank in 0..2 {
        let expected: Vec<i32> = (0..32).map(|i| i + 100 * rank as i32).collect();
        assert_eq!(i32::values(&outcome.windows[rank][..128]), expected);
    }
}
