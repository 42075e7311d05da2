//! Where code that is made to be shaken may hold a rank up, and that other code never does.

use crate::ranks::{Arg, Bytes, Options, Outcome, Ranks};
use crate::text::task;

const NRANKS: u32 = 3;

fn launch(body: &str, shaken: bool) -> (Outcome, usize) {
    let ranks = Ranks::compile(&task(body), NRANKS, Options { shaken, ..Options::default() });
    let x: Vec<Vec<u8>> = (0..NRANKS as i32).map(|rank| i32::bytes(&[rank + 1; 32])).collect();
    let y = vec![vec![0; 128]; NRANKS as usize];
    let outcome = ranks.launch(&[Arg::Ranked(x), Arg::Ranked(y), Arg::Bits(2), Arg::Bits(0)], &[], &[], &[]);
    outcome.assert_done();
    (outcome, ranks.code[0].code_bytes)
}

/// At the beginning and the end of the task, before what others see and what sees others, and after a wait.
#[test]
fn every_place_where_the_order_of_ranks_matters() {
    for (body, stops) in [
        ("y[0, 0] = x[0, 0]", 2),
        ("put w[me, 0] @((me + 1) % world) <- x[0, 0] [1, 8]", 3),
        ("get y[0, 0] <- w[0, 0] @((me + 1) % world) [1, 8]", 3),
        ("t = load x[0, 0] [1, 8]\n store t -> y[0, 0]", 2),
        ("t = load x[0, 0] [1, 8]\n remote_store t -> w[me, 0] @((me + 1) % world)", 3),
        ("t = remote_load w[0, 0] @((me + 1) % world) [1, 8]\n store t -> y[0, 0]", 3),
        ("notify sig[0, 0] @me += 1", 3),
        ("for peer in 0..world { notify sig[0, 0] @peer += 1 }", 5),
        ("wait sig[0, 0] >= 0", 3),
        ("for k in 0..a { wait sig[0, 0] >= 0 }", 4),
        ("if a == 3 { notify sig[0, 0] @me += 1 }", 2),
    ] {
        let (shaken, shaken_bytes) = launch(body, true);
        assert_eq!(shaken.stops, [stops; NRANKS as usize], "{body}");
        let (undisturbed, bytes) = launch(body, false);
        assert_eq!(undisturbed.stops, [0; NRANKS as usize], "{body}");
        assert!(bytes < shaken_bytes, "{body}: {bytes} and {shaken_bytes} bytes of code");
    }
}

#[test]
fn a_stop_changes_nothing() {
    let body = "next = (me + 1) % world
    t = load x[0, 0] [4, 8]
    put w[me, 0] @next <- x[me, 0] [1, 8]
    t = mul t, 10
    notify sig[0, 0] @next += 1
    wait sig[0, 0] >= 1
    before = (me + world - 1) % world
    r = load w[before, 0] [1, 8]
    store t -> y[0, 0]
    store r -> y[3, 0]";
    let (shaken, _) = launch(body, true);
    let (undisturbed, _) = launch(body, false);
    assert_eq!(shaken.args, undisturbed.args);
    for rank in 0..NRANKS {
        let y = i32::values(&shaken.args[1][rank as usize]);
        let before = (rank + NRANKS - 1) % NRANKS;
        assert_eq!((y[0], y[24]), (10 * (rank as i32 + 1), before as i32 + 1), "rank {rank}");
    }
}
