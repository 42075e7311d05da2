//! What ranks require of each other.

use std::time::Duration;

use pld::error::{Error, ErrorKind};
use pld::runtime::{Arg, CompileOptions, World, WorldOptions};

use crate::programs::compile_with;

/// Each rank of a domain tells the others what its `k`th call is, with its root, and hears what theirs is.
fn program(domain: &str, body: &str) -> String {
    let inside = domain.trim_matches(['[', ']']).split(", ").map(|rank| format!("r == {rank}")).collect::<Vec<_>>();
    format!(
        "program demands
entry go(cells: window[4, 4] i32, sig: window[1] i32, of_rank: i64, a: i64, b: i64) {{
  at step {{
    me = rank(cells)
    n = nranks(cells)
    mine = cast(select(me == of_rank, a, b), i32)
    for peer in 0..n {{
      notify cells[me, 1] @peer = mine
      notify sig[0] @peer += 1
    }}
    wait sig[0] >= n
    for peer in 0..n {{
      theirs = cells[peer, 1]
{body}
    }}
  }}
}}
host (of_rank: i64, a: i64, b: i64) {{
  group = domain {domain}
  cells_buf = alloc_window [4, 4] i32 in group
  sig_buf = alloc_window [1] i32 in group
  ranks r in 0..world {{
    if {} {{
      cells = window cells_buf [4, 4] i32
      sig = window sig_buf [1] i32
      dispatch go(cells, sig, of_rank, a, b) device r
    }}
  }}
}}
",
        inside.join(" or ")
    )
}

/// Both ways: what is required is not a check that can be left out.
fn launch(text: &str, args: [i64; 3]) -> Result<(), Error> {
    let options = WorldOptions { timeout: Duration::from_secs(20), ..WorldOptions::default() };
    let [checked, unchecked] = [false, true].map(|unchecked| {
        let world = World::create(4, &options).unwrap();
        let exe = compile_with(text, &world, &CompileOptions { unchecked, ..CompileOptions::default() }).unwrap();
        exe.launch(&args.map(Arg::Int))
    });
    assert_eq!(checked, unchecked);
    checked
}

#[track_caller]
fn assert_fails(text: &str, args: [i64; 3], kind: ErrorKind, right: &str) {
    let error = launch(text, args).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (kind, right));
}

#[test]
fn requirements() {
    for (cmp, holds, fails) in [
        ("==", [5, 5], [4, 5]),
        ("!=", [5, 6], [5, 5]),
        ("<", [-6, 5], [5, 5]),
        ("<=", [5, 5], [6, 5]),
        (">", [6, 5], [5, 5]),
        (">=", [5, 5], [-4, 5]),
    ] {
        let text = program("[0, 1, 2, 3]", &format!("      if me == 2 and peer == 1 {{ require a {cmp} b @peer }}"));
        launch(&text, [0, holds[0], holds[1]]).unwrap();
        let [a, b] = fails;
        let right = format!(
            "rank 2: a is {a}, but must be {cmp} b, which is {b}; this is about rank 1
    require a {cmp} b @peer
    at step (demands.pld:14), launch 1 of 'demands'"
        );
        assert_fails(&text, [0, a, b], ErrorKind::OutOfBounds, &right);
    }
}

#[test]
fn requirements_name_what_they_compare() {
    let of = |what: &str| program("[0, 1, 2, 3]", &format!("      if me == 0 {{ {what} }}"));
    let right = |first: &str, op: &str| {
        format!("rank 0: {first}\n    {op}\n    at step (demands.pld:14), launch 1 of 'demands'")
    };
    let op = "require a * 2 <= 6";
    assert_fails(&of(op), [0, 4, 0], ErrorKind::OutOfBounds, &right("a * 2 is 8, but must be <= 6", op));
    let op = "require 0 <= b";
    assert_fails(&of(op), [0, 0, -3], ErrorKind::OutOfBounds, &right("0 must be <= b, which is -3", op));
    let (op, first) =
        ("require a < 9223372036854775807", "a is 9223372036854775807, but must be < 9223372036854775807");
    assert_fails(&of(op), [0, i64::MAX, 0], ErrorKind::OutOfBounds, &right(first, op));
    launch(&of(op), [0, i64::MAX - 1, 0]).unwrap();
}

/// Ranks are named as the world numbers them, in every domain.
#[test]
fn requirements_of_a_domain() {
    let body = "      if me == 0 { require theirs <= 8 @peer }";
    for (domain, first, second) in [("[0, 1]", 0, 1), ("[3, 1, 2]", 3, 2), ("[1, 3]", 1, 3)] {
        let last = domain.split(", ").count() as i64 - 1;
        let text = program(domain, body);
        launch(&text, [last, 8, 3]).unwrap();
        let right = format!(
            "rank {first}: theirs is 9, but must be <= 8; this is about rank {second}
    require theirs <= 8 @peer
    at step (demands.pld:14), launch 1 of 'demands'"
        );
        assert_fails(&text, [last, 9, 3], ErrorKind::OutOfBounds, &right);
    }
}

const CALLS: &str = "      if me == 1 and peer == 0 {
        if b == 2 { agree allreduce_sum_256_f32 theirs == 2 @peer }
        if b != 2 { agree broadcast_f32 cells[peer, 1] == 3 + b / 65536 * 65536 @peer }
      }";

#[test]
fn calls_agree() {
    let text = program("[0, 1, 2, 3]", CALLS);
    let root = |root: i64| 3 + 65536 * root;
    for args in [[0, 2, 2], [0, root(0), root(0)], [0, root(3), root(3)]] {
        launch(&text, args).unwrap();
    }
    let end = "\n    launch 1 of 'demands'";
    let (reduce, cast) = ("allreduce_sum_256_f32", "broadcast_f32");
    let differ = format!("rank 1 calls {reduce} (demands.pld:15), but rank 0 calls {cast} (demands.pld:16){end}");
    assert_fails(&text, [0, root(0), 2], ErrorKind::Mismatch, &differ);
    assert_fails(&text, [0, root(7), 2], ErrorKind::Mismatch, &differ);
    let differ = format!("rank 1 calls {cast} (demands.pld:16), but rank 0 calls {reduce} (demands.pld:15){end}");
    assert_fails(&text, [0, 2, root(2)], ErrorKind::Mismatch, &differ);
    let roots = format!(
        "rank 1 calls {cast} with root 2 (demands.pld:16), but rank 0 calls {cast} with root 1 (demands.pld:16){end}"
    );
    assert_fails(&text, [0, root(1), root(2)], ErrorKind::Mismatch, &roots);
    let unknown = format!("rank 1 calls {reduce} (demands.pld:15), but rank 0 calls something else (77){end}");
    assert_fails(&text, [0, 77, 2], ErrorKind::Mismatch, &unknown);
}

#[test]
fn calls_of_a_domain() {
    let text = program("[2, 0]", CALLS);
    let right = "rank 0 calls allreduce_sum_256_f32 (demands.pld:15), but rank 2 calls broadcast_f32 (demands.pld:16)
    launch 1 of 'demands'";
    assert_fails(&text, [0, 3, 2], ErrorKind::Mismatch, right);
}
