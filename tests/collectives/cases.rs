//! Public bug reports of neighbouring libraries that are about collectives; numbers are those of the project's list of
//! cases. Some more stand beside the tests of what they are about.

use pld::ir::{Combine, DType};
use pld::runtime::CompileOptions;

use crate::calls::{Call, Form, Kind, case};
use crate::case::{Case, Tensor, world};
use crate::numbers::{DTYPES, Number, encode, given};

fn allreduce(mode: &'static str, dtype: DType, count: usize) -> Call {
    Call { kind: Kind::Allreduce(Combine::Sum), mode, dtype, count }
}

/// A program whose one output must stay zero.
fn found_nothing(text: String, nranks: u32) -> Case {
    let zeros = vec![vec![0; 4]; nranks as usize];
    let (before, after) = (zeros.clone(), zeros);
    let bad = Tensor { name: "bad".into(), dtype: DType::I32, shape: vec![1], before, after, tolerance: 0.0 };
    Case { text, nranks, tensors: vec![bad] }
}

/// A thousand barriers, an odd number of them, launched again and again: what others wrote before is there.
pub fn barriers(nranks: u32, count: usize) -> Case {
    let text = format!(
        "program barriers
entry e(bad: tensor[1] i32 inout, entered: window[2, world] i32, signal: window[world] i32, me: i32) {{
  at rounds {{
    idle = var i32 = 0
    for k in 1..{count} + 1 {{
      if k % world == me {{ for spin in 0..2000 {{ idle = idle + 1 }} }}
      entered[k % 2, me] = k
      for peer in 0..world {{ put entered[k % 2, me] @peer <- entered[k % 2, me] [1, 1] }}
      barrier of entered signal signal
      for src in 0..world {{ if entered[k % 2, src] != k {{ bad[0] = bad[0] + 1 }} }}
    }}
    for src in 0..world {{ if signal[src] != 0 {{ bad[0] = bad[0] + 1 }} }}
  }}
}}
host (bad: tensor[world, 1] i32 inout) {{
  entered_buf = alloc_window [2, world] i32
  signal_buf = alloc_window [world] i32
  ranks r in 0..world {{
    entered = window entered_buf [2, world] i32
    signal = window signal_buf [world] i32
    dispatch e(bad[r], entered, signal, r) device r
  }}
}}
"
    );
    found_nothing(text, nranks)
}

#[test]
fn c01_a_barrier_can_be_used_again() {
    barriers(3, 4).interpret(20);
    barriers(4, 1000).launch(&world(4));
}

#[test]
fn c36_an_odd_number_of_barriers_and_again() {
    for nranks in [1, 2, 3, 5] {
        let (case, world) = (barriers(nranks, 3), world(nranks));
        let executable = case.compile(&world, &CompileOptions::default());
        for _ in 0..7 {
            case.compare(&case.launched(&executable).unwrap(), "compiled");
        }
    }
    // On windows that stay, cells of the barrier are as they were: nothing of one launch is left for the next one.
    let (case, world) = (barriers(4, 3), world(4));
    let executable = case.compile(&world, &CompileOptions { persistent: true, ..CompileOptions::default() });
    for launch in 0..7 {
        let left = case.launched(&executable).unwrap();
        case.compare(&left, &format!("launch {launch}"));
    }
}

/// Counts cycle on one channel, in windows of their own, and all-gathers come between.
#[test]
fn c14_counts_that_cycle_on_one_channel() {
    let mut calls = Vec::new();
    for mode in ["auto", "mesh", "two_phase", "ring"] {
        for count in [1, 4096, 17, 65536, 3] {
            calls.push(allreduce(mode, DType::I32, count));
            calls.push(Call { kind: Kind::Allgather, mode: "auto", dtype: DType::I32, count: count % 100 + 1 });
        }
    }
    for nranks in [4, 8] {
        let (case, world) = (case(&calls, nranks, Form::Task, true), world(nranks));
        for persistent in [false, true] {
            let executable = case.compile(&world, &CompileOptions { persistent, ..CompileOptions::default() });
            for launch in 0..10 {
                case.compare(&case.launched(&executable).unwrap(), &format!("launch {launch}"));
            }
        }
    }
}

/// The same ten thousand times in a row, on the smaller counts.
#[test]
fn c14_ten_thousand_calls() {
    let text = "program cycling
const CALLS = 1000
entry e(bad: tensor[1] i32 inout, a: window[1] i32, b: window[17] i32, c: window[3] i32, d: window[4096] i32,
        all: window[world, 3] i32, signal: window[1] i32, me: i32) {
  at rounds {
    for k in 0..CALLS {
      base = 500 * world * (world + 1) + world * k
      a[0] = (me + 1) * 1000 + k
      allreduce sum a signal signal
      if a[0] != base { bad[0] = k + 1 }
      d[k % 4096] = (me + 1) * 1000 + k
      allreduce sum d signal signal
      if d[k % 4096] != base { bad[0] = k + 1 }
      t = full i32 [4096] 0
      store t -> d[0]
      for i in 0..17 { b[i] = (me + 1) * 1000 + k + i }
      allreduce sum b signal signal
      for i in 0..17 { if b[i] != base + world * i { bad[0] = k + 1 } }
      for i in 0..3 { c[i] = (me + 1) * 1000 + k + i }
      allgather all <- c signal signal
      for p in 0..world { for i in 0..3 { if all[p, i] != (p + 1) * 1000 + k + i { bad[0] = k + 1 } } }
      allreduce sum c signal signal
      for i in 0..3 { if c[i] != base + world * i { bad[0] = k + 1 } }
    }
  }
}
host (bad: tensor[world, 1] i32 inout) {
  a_buf = alloc_window [1] i32
  b_buf = alloc_window [17] i32
  c_buf = alloc_window [3] i32
  d_buf = alloc_window [4096] i32
  all_buf = alloc_window [world, 3] i32
  signal_buf = alloc_window [1] i32
  ranks r in 0..world {
    a = window a_buf [1] i32
    b = window b_buf [17] i32
    c = window c_buf [3] i32
    d = window d_buf [4096] i32
    all = window all_buf [world, 3] i32
    signal = window signal_buf [1] i32
    dispatch e(bad[r], a, b, c, d, all, signal, r) device r
  }
}
";
    found_nothing(text.replace("CALLS = 1000", "CALLS = 3"), 2).interpret(3);
    found_nothing(text.into(), 4).launch(&world(4));
}

/// An all-reduce of one int, `rounds` times: by as many tasks as there are channels, which ranks begin in different orders.
fn tasks_of_one_int(channels: usize, rounds: usize) -> String {
    let list = |one: &dyn Fn(usize) -> String, between: &str| (0..channels).map(one).collect::<Vec<_>>().join(between);
    let task = |c: usize| {
        format!(
            "  at reduce_{c} {{
    for k in 0..{rounds} {{
      w{c}[0] = (me + 1) * (k + {c})
      allreduce sum w{c} signal s{c}
      if w{c}[0] != world * (world + 1) / 2 * (k + {c}) {{ bad[{c}] = k + 1 }}
    }}
  }}
"
        )
    };
    let backwards: Vec<String> = (0..channels).rev().map(task).collect();
    format!(
        "program one_int
entry forwards(bad: tensor[{channels}] i32 inout, {0}, me: i32) {{
{1}}}
entry backwards(bad: tensor[{channels}] i32 inout, {0}, me: i32) {{
{2}}}
host (bad: tensor[world, {channels}] i32 inout) {{
{3}{4}  ranks r in 0..world {{
    if r % 2 == 0 {{ dispatch forwards(bad[r], {5}, r) device r }} else {{ dispatch backwards(bad[r], {5}, r) device r }}
  }}
}}
",
        list(&|c| format!("w{c}: window[1] i32, s{c}: window[2] i32"), ", "),
        list(&task, ""),
        backwards.join(""),
        list(&|c| format!("  w{c}_buf = alloc_window [1] i32\n  s{c}_buf = alloc_window [2] i32\n"), ""),
        list(&|c| format!("  w{c} = window w{c}_buf [1] i32\n  s{c} = window s{c}_buf [2] i32\n"), ""),
        list(&|c| format!("w{c}, s{c}"), ", "),
    )
}

pub fn one_int(nranks: u32, channels: usize, rounds: usize) -> Case {
    let zeros = vec![vec![0; 4 * channels]; nranks as usize];
    let (before, after, shape) = (zeros.clone(), zeros, vec![channels as i64]);
    let bad = Tensor { name: "bad".into(), dtype: DType::I32, shape, before, after, tolerance: 0.0 };
    Case { text: tasks_of_one_int(channels, rounds), nranks, tensors: vec![bad] }
}

/// C17: worlds beside each other, each in a thread of its own.
#[test]
fn c17_one_int_in_several_worlds() {
    std::thread::scope(|scope| {
        for nranks in [2, 2, 2, 3] {
            scope.spawn(move || one_int(nranks, 1, 3000).launch(&world(nranks)));
        }
    });
}

/// C76: two channels of one world, which ranks use in different orders.
#[test]
fn c76_channels_in_different_orders() {
    one_int(2, 2, 2).interpret(50);
    for nranks in [2, 3, 4] {
        one_int(nranks, 2, 500).launch(&world(nranks));
        one_int(nranks, 4, 100).launch(&world(nranks));
    }
}

/// C18 and C21: counts that fit neither ranks nor vectors.
#[test]
fn c18_c21_counts_that_fit_nothing() {
    for nranks in [3, 5] {
        let world = world(nranks);
        let calls = |count: usize| {
            let modes = ["mesh", "ring", "two_phase"].map(|mode| allreduce(mode, DType::I32, count));
            let scatter = |mode| Call { kind: Kind::ReduceScatter(Combine::Sum), mode, dtype: DType::F32, count };
            modes.into_iter().chain(["mesh", "direct"].map(scatter))
        };
        let all: Vec<Call> = [1, 2, 7, 1028].into_iter().flat_map(calls).collect();
        case(&all, nranks, Form::Task, false).launch(&world);
    }
    let world = world(3);
    for (first, dtype) in [(1, DType::I8), (2, DType::F16), (3, DType::BF16), (4, DType::F32)] {
        let modes = ["mesh", "ring", "two_phase"];
        let calls: Vec<Call> = (first..258).step_by(5).map(|count| allreduce(modes[count % 3], dtype, count)).collect();
        case(&calls, 3, Form::Task, true).launch(&world);
    }
}

/// C37: all collectives on numbers of ranks that are no powers of two.
#[test]
fn c37_any_number_of_ranks() {
    let kinds = [
        Kind::Allreduce(Combine::Sum),
        Kind::ReduceScatter(Combine::Max),
        Kind::Broadcast { root: 0 },
        Kind::Allgather,
        Kind::AllToAll,
    ];
    for nranks in [1, 2, 3, 5, 6, 7, 9, 12, 15] {
        let world = world(nranks);
        for form in [Form::Task, Form::Host { cores: 1 }] {
            let calls: Vec<Call> = kinds
                .iter()
                .flat_map(|&kind| kind.modes().iter().map(move |&mode| (kind, mode)))
                .map(|(kind, mode)| Call { kind, mode, dtype: DTYPES[nranks as usize % 6], count: 13 })
                .collect();
            case(&calls, nranks, form, true).launch(&world);
        }
    }
}

/// C38: in bf16 itself, 256 + 1 is 256 however often 1 is added.
#[test]
fn c38_bf16_is_added_up_in_f32() {
    for mode in ["mesh", "two_phase", "ring"] {
        let nranks = 64;
        let call = allreduce(mode, DType::BF16, 5);
        let mut case = case(&[call], nranks, Form::Task, false);
        let value = |number: f32| {
            let mut bytes = Vec::new();
            (0..5).for_each(|_| encode(DType::BF16, Number::Float(number), &mut bytes));
            bytes
        };
        // Behind the guard.
        let data = 10..20;
        let tensor = &mut case.tensors[0];
        for (rank, (before, after)) in tensor.before.iter_mut().zip(&mut tensor.after).enumerate() {
            before[data.clone()].copy_from_slice(&value(if rank == 0 { 256.0 } else { 1.0 }));
            after[data.clone()].copy_from_slice(&value(320.0));
        }
        tensor.tolerance = 0.0;
        case.launch(&world(nranks));
    }
}

/// C21 with as many elements as in the report.
#[test]
fn c21_ten_million_elements() {
    for (mode, dtype) in [("two_phase", DType::I8), ("mesh", DType::I8), ("ring", DType::F16)] {
        huge(2, mode, dtype);
    }
}

/// And once with as many ranks.
#[test]
fn c21_ten_million_elements_of_eight_ranks() {
    huge(8, "auto", DType::F32);
}

/// Without guards, and with sums that are known without adding up.
fn huge(nranks: u32, mode: &str, dtype: DType) {
    const COUNT: usize = 10_556_587;
    let text = format!(
        "program huge
entry e(x: tensor[{COUNT}] {dtype} inout, w: window[{COUNT}] {dtype}, me: i32) {{
  at call {{
    put w @me <- x
    allreduce max w mode {mode}
    get x <- w @me
  }}
}}
host (x: tensor[world, {COUNT}] {dtype} inout) {{
  w_buf = alloc_window [{COUNT}] {dtype}
  ranks r in 0..world {{
    w = window w_buf [{COUNT}] {dtype}
    dispatch e(x[r], w, r) device r
  }}
}}
"
    );
    // All ranks give small numbers, and each the largest one in places of its own.
    let size = dtype.size() as usize;
    let p = nranks as usize;
    let pattern = given(dtype, 3, 0, 0..9973);
    let low = |at: usize| {
        let at = at % 9973 * size;
        &pattern[at..at + size]
    };
    let mut top = Vec::new();
    let most = if matches!(dtype, DType::F32 | DType::F16) { Number::Float(99.0) } else { Number::Int(127) };
    encode(dtype, most, &mut top);
    let is_top = |rank: usize, at: usize| at % 11 == rank;
    let part = |rank: usize, all: bool| {
        let mut bytes = Vec::with_capacity(COUNT * size);
        for at in 0..COUNT {
            let top_here = if all { (0..p).any(|rank| is_top(rank, at)) } else { is_top(rank, at) };
            bytes.extend_from_slice(if top_here { &top } else { low(at) });
        }
        bytes
    };
    let before = (0..p).map(|rank| part(rank, false)).collect();
    let after = vec![part(0, true); p];
    let x = Tensor { name: "x".into(), dtype, shape: vec![COUNT as i64], before, after, tolerance: 0.0 };
    let case = Case { text, nranks, tensors: vec![x] };
    let executable = case.compile(&world(nranks), &CompileOptions::default());
    case.compare(&case.launched(&executable).unwrap(), "compiled");
}
