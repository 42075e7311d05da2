//! Calls that meet: on one channel and on several, in domains, under conditions.

use pld::check::{Fill, Memory, Options, Outcome, Schedule, check, inputs, run};
use pld::ir::parse::parse;
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::verify::verify;

/// Explores a program, and gives what one launch after the other leaves.
fn explored(text: &str, nranks: u32, schedules: u64) -> Outcome {
    explored_on_hosts(text, nranks, nranks, schedules)
}

fn explored_on_hosts(text: &str, nranks: u32, ranks_per_host: u32, schedules: u64) -> Outcome {
    let program = parse(text, "test.pld").unwrap_or_else(|mistakes| panic!("{}\n{text}", mistakes[0]));
    let findings = verify(&program, Some(nranks));
    assert!(findings.is_empty(), "{}", findings[0]);
    let program = expand_collectives(&program, &Target::on_hosts(nranks, ranks_per_host)).expect("it expands");
    let launches = 3;
    let args = inputs(&program, nranks, launches, Fill::Iota, 0, &[]).expect("the driver takes inputs").args;
    for (memory, persistent) in [(Memory::Host, true), (Memory::Npu, true), (Memory::Host, false)] {
        let options = Options { nranks, launches, memory, persistent, args: &args, schedules, ..Options::default() };
        let report = check(&program, &options, &mut || true).expect("it can be run");
        assert!(report.findings.is_empty(), "{nranks} ranks, {memory:?}: {}", report.findings[0].diagnostic);
    }
    let options = Options { nranks, launches: 1, args: &args[..args.len() / launches as usize], ..Options::default() };
    let outcome = run(&program, &options, &Schedule::Choices(Vec::new())).expect("it runs");
    assert!(outcome.done);
    outcome
}

/// A program whose entry runs `body` in a task, with windows `a` and `b` of `[4] i32`, `rows` of `[world, 4] i32` and
/// `one` of `[1] i32`.
fn in_task(body: &str) -> String {
    let windows = [("a", "[4]"), ("b", "[4]"), ("rows", "[world, 4]"), ("one", "[1]")];
    let list = |param: &dyn Fn(&(&str, &str)) -> String| windows.iter().map(param).collect::<Vec<_>>().join(", ");
    let params = list(&|(name, shape)| format!("{name}: window{shape} i32"));
    let buffers: String = windows
        .iter()
        .map(|(name, shape)| {
            format!("  {name}_buf = alloc_window {shape} i32\n  {name} = window {name}_buf {shape} i32\n")
        })
        .collect();
    let names = list(&|(name, _)| (*name).into());
    format!(
        "program meetings
entry e(x: tensor[4] i32 in, y: tensor[4] i32 out, {params}, me: i32) {{
  at t {{
    for i in 0..4 {{
      a[i] = x[i]
      b[i] = x[i]
    }}
{body}
    for i in 0..4 {{ y[i] = a[i] + b[i] }}
    one[0] = 0
    rows[0, 0] = 0
  }}
}}
host (xs: tensor[world, 4] i32 in, ys: tensor[world, 4] i32 out) {{
{buffers}  ranks r in 0..world {{ dispatch e(xs[r], ys[r], {names}, r) device r }}
}}
"
    )
}

#[test]
fn calls_on_one_channel_follow_each_other() {
    let calls = [
        "allreduce sum a mode mesh",
        "allreduce max a mode ring",
        "barrier of a",
        "broadcast a root 1 mode direct",
        "broadcast a root world - 1 mode mesh",
        "allreduce min a mode two_phase",
        "reduce_scatter sum rows mode direct signal a",
        "allgather rows <- b mode mesh signal a",
    ];
    for first in calls {
        for second in calls {
            explored(&in_task(&format!("{first}\n{second}\n{second}\n{first}")), 3, 4);
        }
    }
}

#[test]
fn calls_in_one_and_in_two_levels_follow_each_other() {
    let calls = [
        "allreduce sum a mode hierarchical",
        "barrier of a",
        "broadcast a root 1 mode hierarchical",
        "reduce_scatter sum rows mode hierarchical signal a",
        "allreduce max a mode mesh",
        "allreduce max a mode ring",
        "allgather rows <- b mode direct signal a",
    ];
    for first in calls {
        for second in calls {
            let body = format!("{first}\n{second}\n{second}\n{first}");
            explored_on_hosts(&in_task(&body), 4, 2, 3);
        }
    }
}

/// Code is made once for both: that of one level.
#[test]
fn an_entry_of_domains_that_differ_has_one_level() {
    let text = "program domains
entry fill(x: tensor[4] i32 in, data: window[4] i32) {
  at fill {
    for i in 0..4 { data[i] = x[i] }
    allreduce sum data mode hierarchical
  }
}
entry more(y: tensor[4] i32 out, data: window[4] i32) {
  at more {
    allreduce max data mode hierarchical
    for i in 0..4 { y[i] = data[i] }
  }
}
host (xs: tensor[world, 4] i32 in, ys: tensor[world, 4] i32 out) {
  near = domain [0, 1]
  far  = domain [2, 4, 3, 5]
  near_buf = alloc_window [4] i32 in near
  far_buf  = alloc_window [4] i32 in far
  a = window near_buf [4] i32
  b = window far_buf [4] i32
  ranks r in 0..world {
    if r < 2 { dispatch fill(xs[r], a) device r } else { dispatch fill(xs[r], b) device r }
    if r >= 2 { dispatch more(ys[r], b) device r }
  }
}
";
    let outcome = explored_on_hosts(text, 6, 3, 20);
    let pld::check::Arg::Ranked(ys) = &outcome.args[1] else { panic!("a tensor of all ranks") };
    let sum = |i: i32| (2..6).map(|rank| (rank + 1) * 100_003 + i).sum::<i32>();
    let expected: Vec<u8> = (0..4).flat_map(|i| sum(i).to_ne_bytes()).collect();
    assert!(ys[2..].iter().all(|y| *y == expected));
}

#[test]
fn calls_on_different_channels_do_not_disturb_each_other() {
    for nranks in [2, 3] {
        explored(
            &in_task(
                "barrier\nfor k in 0..3 {\nallreduce sum a mode two_phase\nallreduce sum b signal one\nbarrier of rows\n\
                 if k != 1 { broadcast b root 0 mode direct }\nbarrier\nallgather rows <- b signal one\n}",
            ),
            nranks,
            40,
        );
    }
}

#[test]
fn ranks_number_each_other_as_their_domain_says() {
    let text = "program domains
entry fill(x: tensor[1, 4] i32 in, data: window[2, 4] i32, pair: window[2] i32) {
  at fill {
    for i in 0..4 { data[rank(data), i] = x[0, i] }
    pair[rank(pair)] = x[0, 0]
  }
}
entry take(y: tensor[2, 4] i32 out, data: window[2, 4] i32) {
  at take { get y <- data @rank(data) }
}
host (xs: tensor[world, 1, 4] i32 in, ys: tensor[world, 2, 4] i32 out) {
  odd = domain [3, 1]
  data_buf = alloc_window [2, 4] i32 in odd
  all_buf  = alloc_window [world, 4] i32
  pair_buf = alloc_window [2] i32 in odd
  data = window data_buf [2, 4] i32
  all  = window all_buf [world, 4] i32
  pair = window pair_buf [2] i32
  for k in 0..2 {
    ranks r in 0..world {
      if r % 2 == 1 { dispatch fill(xs[r], data, pair) device r }
    }
    allreduce sum data cores 2 signal pair
    allreduce max pair
    reduce_scatter sum all
    barrier
    ranks r in 0..world {
      if r % 2 == 1 { dispatch take(ys[r], data) device r }
    }
    barrier of data
    ranks r in 0..world {
      if r % 2 == 1 { dispatch clear(data) device r }
    }
  }
}
entry clear(data: window[2, 4] i32) {
  at clear { for i in 0..8 { data[i / 4, i % 4] = 0 } }
}
";
    let clear = text.find("entry clear").expect("it is there");
    let (rest, clear) = text.split_at(clear);
    let text = rest.replace("host (", &format!("{clear}host ("));
    let outcome = explored(&text, 4, 40);
    let pld::check::Arg::Ranked(ys) = &outcome.args[1] else { panic!("a tensor of all ranks") };
    // Row 0 is of rank 3, row 1 of rank 1.
    let expected: Vec<u8> =
        [3i32, 1].iter().flat_map(|rank| (0..4).flat_map(move |i| ((rank + 1) * 100_003 + i).to_ne_bytes())).collect();
    assert_eq!((&ys[1], &ys[3]), (&expected, &expected));
}

#[test]
fn a_launch_may_leave_calls_out() {
    let text = "program conditions
entry fill(x: tensor[4] i32 in, data: window[4] i32) {
  at fill { for i in 0..4 { data[i] = x[i] } }
}
entry take(y: tensor[4] i32 out, data: window[4] i32) {
  at take { for i in 0..4 { y[i] = data[i] } }
}
host (xs: tensor[world, 4] i32 in, ys: tensor[world, 4] i32 out, n: i32) {
  data_buf = alloc_window [4] i32
  data = window data_buf [4] i32
  ranks r in 0..world { dispatch fill(xs[r], data) device r }
  if n % 2 == 1 { allreduce sum data mode ring cores 2 }
  for i in 0..n { broadcast data root i % world }
  ranks r in 0..world { dispatch take(ys[r], data) device r }
}
";
    for nranks in [2, 3] {
        explored(text, nranks, 40);
    }
}
