//! Public bug reports of neighbouring libraries, as small inputs with the right behaviour.
//!
//! Numbers are those of the project's list of cases. Cases about the C interface, the transports and dying processes are
//! tested beside those parts; these are the ones that a program shows.

mod collectives;

use std::sync::Arc;
use std::time::Duration;

use half::bf16;
use pld::check::{self, Fill, inputs};
use pld::error::{Error, ErrorKind};
use pld::ir::{self, DType};
use pld::runtime::{Arg, CompileOptions, Executable, TensorArg, World, WorldOptions};

fn world(nranks: u32) -> Arc<World> {
    World::create(nranks, &WorldOptions::default()).unwrap()
}

fn impatient(nranks: u32) -> Arc<World> {
    World::create(nranks, &WorldOptions { timeout: Duration::from_millis(500), ..WorldOptions::default() }).unwrap()
}

fn compile_as(text: &str, world: &Arc<World>, persistent: bool) -> Arc<Executable> {
    let program = ir::parse::parse(text, "case.pld").unwrap_or_else(|d| panic!("{}", d[0]));
    Executable::compile(&program, world, &CompileOptions { persistent, ..CompileOptions::default() }).unwrap()
}

fn compile(text: &str, world: &Arc<World>) -> Arc<Executable> {
    compile_as(text, world, false)
}

/// The checker has nothing against a program, with fewer rounds and shorter rows.
fn assert_sound(text: &str, nranks: u32, persistent: bool) {
    let shorter =
        [("1..1001", "1..4"), ("1..2001", "1..4"), ("1..301", "1..4"), ("262144", "16"), ("0..20000", "0..2")];
    let text = shorter.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short));
    let program = ir::parse::parse(&text, "case.pld").unwrap_or_else(|d| panic!("{}", d[0]));
    let launches = 2;
    let inputs = inputs(&program, nranks, launches, Fill::Iota, 0, &[]).unwrap();
    let options = check::Options {
        nranks,
        launches,
        persistent,
        schedules: 30,
        dims: &inputs.dims,
        args: &inputs.args,
        ..check::Options::default()
    };
    let findings = check::check(&program, &options, &mut || true).unwrap().findings;
    assert!(findings.is_empty(), "{}", findings[0].diagnostic);
}

fn tensor<'a, T>(data: &'a mut [T], dtype: DType, shape: &'a [i64]) -> Arg<'a> {
    assert_eq!(data.len() as i64, shape.iter().product::<i64>());
    Arg::Tensor(TensorArg { data: data.as_mut_ptr().cast(), dtype, shape, strides: None })
}

/// A barrier on credits: cell `[s, 0]` is raised by rank `s` and lowered by its owner, so it ends where it began.
const BARRIER: &str = "
      for peer in 0..world { if peer != me { notify signal[me, 0] @peer += 1 } }
      for src in 0..world { if src != me { wait signal[src, 0] >= 1 } }
      for src in 0..world { if src != me { notify signal[src, 0] @me += -1 } }";

#[test]
fn c01_a_barrier_can_be_used_again() {
    // Before each barrier one rank dawdles; after it every rank must see that all have entered.
    let text = format!(
        "program c01
entry e(bad: tensor[1] i32 out, entered: window[world, 1] i32, signal: window[world, 1] i32, me: i32) {{
  at rounds {{
    count = var i32 = 0
    idle = var i32 = 0
    for k in 1..1001 {{
      if k % world == me {{ for spin in 0..20000 {{ idle = idle + 1 }} }}
      entered[me, 0] = k
      for peer in 0..world {{ put entered[me, 0] @peer <- entered[me, 0] [1, 1] }}
      {BARRIER}
      for src in 0..world {{ if entered[src, 0] < k {{ count = count + 1 }} }}
      {BARRIER}
    }}
    for src in 0..world {{ if signal[src, 0] != 0 {{ count = count + 1 }} }}
    bad[0] = count
  }}
}}
host (bad: tensor[world, 1] i32 out) {{
  entered_buf = alloc_window [world, 1] i32
  signal_buf = alloc_window [world, 1] i32
  ranks r in 0..world {{
    entered = window entered_buf [world, 1] i32
    signal = window signal_buf [world, 1] i32
    dispatch e(bad[r], entered, signal, r) device r
  }}
}}
"
    );
    assert_sound(&text, 4, false);
    let mut bad = [-1; 4];
    let executable = compile(&text, &world(4));
    for _ in 0..2 {
        executable.launch(&[tensor(&mut bad, DType::I32, &[4, 1])]).unwrap();
        assert_eq!(bad, [0; 4]);
    }
}

#[test]
fn c03_recycled_window_memory_is_zero() {
    let fill = "program dirty
entry e(w: window[64, 64] i32) { at fill { t = full i32 [64, 64] 2139062143
 store t -> w[0, 0] } }
host () {
  b = alloc_window [64, 64] i32
  ranks r in 0..world {
    w = window b [64, 64] i32
    dispatch e(w) device r
  }
}
";
    let wait = "program lonely
entry e(w: window[64, 64] i32, me: i32) {
  at wait_for_nobody {
    if me == 99 { notify w[0, 0] @0 += 1 }
    wait w[0, 0] >= 1
  }
}
host () {
  b = alloc_window [64, 64] i32
  ranks r in 0..world {
    w = window b [64, 64] i32
    dispatch e(w, r) device r
  }
}
";
    let world = impatient(1);
    compile_as(fill, &world, true).launch(&[]).unwrap();
    let error = compile(wait, &world).launch(&[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert!(error.message.contains("w[0, 0] >= 1 (is 0)"), "{error}");
}

#[test]
fn c05_data_is_there_when_the_wait_returns() {
    // One MiB, every element the round's number; put, remote_store, and get with "I have read it".
    let push = |transfer: &str| {
        format!(
            "program c05
const N = 262144
entry e(bad: tensor[1] i32 out, src: window[1, N] i32, dst: window[1, N] i32, full_sig: window[1, 1] i32, free_sig: window[1, 1] i32, me: i32) {{
  at rounds {{
    count = var i32 = 0
    for i in 1..301 {{
      if me == 0 {{
        t = full i32 [1, N] i
        store t -> src[0, 0]
        {transfer}
        notify full_sig[0, 0] @1 = i
        wait free_sig[0, 0] == i
      }} else {{
        wait full_sig[0, 0] == i
        t = load dst[0, 0] [1, N]
        high = row_max t
        low = sub t, i
        low = mul low, -1
        lowest = row_max low
        store high -> src[0, 0]
        store lowest -> src[0, 1]
        if src[0, 0] != i or src[0, 1] != 0 {{ count = count + 1 }}
        notify free_sig[0, 0] @0 = i
      }}
    }}
    bad[0] = count
  }}
}}
host (bad: tensor[world, 1] i32 out) {{
  src_buf = alloc_window [1, N] i32
  dst_buf = alloc_window [1, N] i32
  full_buf = alloc_window [1, 1] i32
  free_buf = alloc_window [1, 1] i32
  ranks r in 0..world {{
    src = window src_buf [1, N] i32
    dst = window dst_buf [1, N] i32
    full_sig = window full_buf [1, 1] i32
    free_sig = window free_buf [1, 1] i32
    dispatch e(bad[r], src, dst, full_sig, free_sig, r) device r
  }}
}}
"
        )
    };
    let world = world(2);
    for transfer in ["put dst @1 <- src", "remote_store t -> dst[0, 0] @1"] {
        let mut bad = [-1; 2];
        assert_sound(&push(transfer), 2, false);
        compile(&push(transfer), &world).launch(&[tensor(&mut bad, DType::I32, &[2, 1])]).unwrap();
        assert_eq!(bad, [0; 2], "{transfer}");
    }
    let pull =
        push("t = copy t").replace("t = load dst[0, 0] [1, N]", "get dst <- src @0\n        t = load dst[0, 0] [1, N]");
    let mut bad = [-1; 2];
    assert_sound(&pull, 2, false);
    compile(&pull, &world).launch(&[tensor(&mut bad, DType::I32, &[2, 1])]).unwrap();
    assert_eq!(bad, [0; 2], "get");
}

#[test]
fn c08_a_cell_a_chunk_tells_which_chunk_came() {
    let text = "program c08
entry e(bad: tensor[1] i32 out, chunk: window[16, 64] i32, arrived: window[16, 1] i32, me: i32) {
  at stream {
    count = var i32 = 0
    if me == 0 {
      for back in 0..16 {
        c = 15 - back
        t = full i32 [1, 64] c + 1
        remote_store t -> chunk[c, 0] @1
        notify arrived[c, 0] @1 += 1
      }
    } else {
      for c in 0..16 {
        wait arrived[c, 0] >= 1
        for i in 0..64 { if chunk[c, i] != c + 1 { count = count + 1 } }
      }
    }
    bad[0] = count
  }
}
host (bad: tensor[world, 1] i32 out) {
  chunk_buf = alloc_window [16, 64] i32
  arrived_buf = alloc_window [16, 1] i32
  ranks r in 0..world {
    chunk = window chunk_buf [16, 64] i32
    arrived = window arrived_buf [16, 1] i32
    dispatch e(bad[r], chunk, arrived, r) device r
  }
}
";
    assert_sound(text, 2, false);
    let executable = compile(text, &world(2));
    for _ in 0..200 {
        let mut bad = [-1; 2];
        executable.launch(&[tensor(&mut bad, DType::I32, &[2, 1])]).unwrap();
        assert_eq!(bad, [0; 2]);
    }
}

#[test]
fn c11_neighbouring_cells_do_not_disturb_each_other() {
    let text = format!(
        "program c11
entry e(bad: tensor[1] i32 out, slot: window[16] i32, signal: window[world, 1] i32, me: i32) {{
  at rounds {{
    count = var i32 = 0
    for k in 1..2001 {{
      notify slot[me] @0 = 1000 * k + me
      notify slot[me + 8] @0 += 1
      {BARRIER}
      if me == 0 {{
        for s in 0..8 {{
          if slot[s] != 1000 * k + s {{ count = count + 1 }}
          if slot[s + 8] != k {{ count = count + 1 }}
        }}
      }}
      {BARRIER}
    }}
    bad[0] = count
  }}
}}
host (bad: tensor[world, 1] i32 out) {{
  slot_buf = alloc_window [16] i32
  signal_buf = alloc_window [world, 1] i32
  ranks r in 0..world {{
    slot = window slot_buf [16] i32
    signal = window signal_buf [world, 1] i32
    dispatch e(bad[r], slot, signal, r) device r
  }}
}}
"
    );
    let mut bad = [-1; 8];
    assert_sound(&text, 8, false);
    compile(&text, &world(8)).launch(&[tensor(&mut bad, DType::I32, &[8, 1])]).unwrap();
    assert_eq!(bad, [0; 8]);
}

#[test]
fn c12_windows_of_odd_sizes_do_not_share_lines() {
    const SIZES: [i64; 6] = [16388, 112, 1, 3, 65, 4095];
    let mut text = String::from("program c12\nentry e(bad: tensor[1] i32 out");
    for (k, bytes) in SIZES.iter().enumerate() {
        text += &format!(", w{k}: window[1, {bytes}] u8");
    }
    text += ", signal: window[world, 1] i32, me: i32) {\n  at fill {\n    count = var i32 = 0\n";
    for (k, bytes) in SIZES.iter().enumerate() {
        text += &format!("    t{k} = full u8 [1, {bytes}] {}\n", k + 1);
        text += &format!("    remote_store t{k} -> w{k}[0, 0] @((me + 1) % world)\n");
    }
    text += BARRIER;
    for (k, bytes) in SIZES.iter().enumerate() {
        text += &format!("\n    for i in 0..{bytes} {{ if w{k}[0, i] != {} {{ count = count + 1 }} }}", k + 1);
    }
    text += "\n    bad[0] = count\n  }\n}\nhost (bad: tensor[world, 1] i32 out) {\n";
    for (k, bytes) in SIZES.iter().enumerate() {
        text += &format!("  b{k} = alloc_window bytes {bytes}\n");
    }
    text += "  signal_buf = alloc_window [world, 1] i32\n  ranks r in 0..world {\n";
    let mut args = String::new();
    for (k, bytes) in SIZES.iter().enumerate() {
        text += &format!("    w{k} = window b{k} [1, {bytes}] u8\n");
        args += &format!("w{k}, ");
    }
    text += &format!(
        "    signal = window signal_buf [world, 1] i32\n    dispatch e(bad[r], {args}signal, r) device r\n  }}\n}}\n"
    );
    let program = ir::parse::parse(&text, "c12.pld").unwrap_or_else(|d| panic!("{}", d[0]));
    let layout = pld::passes::plan_windows::plan_windows(&program, 3).unwrap();
    for (place, bytes) in layout.buffers.values().zip(SIZES) {
        assert_eq!((place.offset % 64, place.bytes as i64), (0, bytes));
    }
    let mut bad = [-1; 3];
    compile(&text, &world(3)).launch(&[tensor(&mut bad, DType::I32, &[3, 1])]).unwrap();
    assert_eq!(bad, [0; 3]);
}

#[test]
fn c20_a_swapped_shard_does_not_pass() {
    // The usual test data: value(r, i) = (r + 1) * 100003 + i. Two shards swapped must differ everywhere.
    let value = |r: i64, i: i64| (r + 1) * 100_003 + i;
    assert!((0..4096).all(|i| value(0, i) != value(1, i) && value(1, i) != value(0, i + 1)));
}

/// Ranks of a group are counted in its own order; what they are in the world does not matter.
#[test]
fn c40_group_order_is_not_ascending() {
    let text = "program c40
entry e(x: tensor[4] i32 in, y: tensor[4] i32 out, w: window[4] i32, sig: window[1] i32) {
  at exchange {
    if rank(w) == 0 {
      put w @1 <- x
      notify sig[0] @1 += 1
    } else {
      wait sig[0] >= 1
      t = load w[0] [4]
      store t -> y[0]
    }
  }
}
host (xs: tensor[world, 4] i32 in, ys: tensor[world, 4] i32 out) {
  group   = domain [5, 2]
  w_buf   = alloc_window [4] i32 in group
  sig_buf = alloc_window [1] i32 in group
  ranks r in 0..world {
    w   = window w_buf [4] i32
    sig = window sig_buf [1] i32
    if r == 2 or r == 5 { dispatch e(xs[r], ys[r], w, sig) device r }
  }
}
";
    assert_sound(text, 6, false);
    let executable = compile(text, &world(6));
    let mut xs: Vec<i32> = (0..24).map(|i| 100 * (i / 4) + i % 4).collect();
    let mut ys = vec![-1; 24];
    executable.launch(&[tensor(&mut xs, DType::I32, &[6, 4]), tensor(&mut ys, DType::I32, &[6, 4])]).unwrap();
    let mut right = vec![-1; 24];
    right[8..12].copy_from_slice(&xs[20..24]);
    assert_eq!(ys, right, "number 0 is rank 5, number 1 is rank 2");
}

#[test]
fn c31_transfers_of_nothing() {
    let text = "program c31
dim n
entry e(x: tensor[n, 64] f32 in, w: window[8, 64] f32, signal: window[1, 1] i32, me: i32) {
  at nothing {
    next = (me + 1) % world
    put w[0, 0] @next <- x[0, 0] [n, 64]
    get w[0, 0] <- w[8, 0] @next [0, 64]
    notify signal[0, 0] @next += 1
    wait signal[0, 0] >= 1
  }
}
host (xs: tensor[world, n, 64] f32 in) {
  w_buf = alloc_window [8, 64] f32
  signal_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    w = window w_buf [8, 64] f32
    signal = window signal_buf [1, 1] i32
    dispatch e(xs[r], w, signal, r) device r
  }
}
";
    let executable = compile(text, &world(2));
    let null = |n: i64, shape: &'static [i64; 3]| {
        assert_eq!(shape[1], n);
        Arg::Tensor(TensorArg { data: std::ptr::null_mut(), dtype: DType::F32, shape, strides: None })
    };
    executable.launch(&[null(0, &[2, 0, 64])]).unwrap();
    let error = executable.launch(&[null(8, &[2, 8, 64])]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArgument, "{error}");
    let mut eight = vec![1.0f32; 2 * 8 * 64];
    executable.launch(&[tensor(&mut eight, DType::F32, &[2, 8, 64])]).unwrap();
}

#[test]
#[expect(clippy::print_stdout, reason = "a case that is skipped must say so")]
fn c33_offsets_past_4_gib() {
    let text = "program c33
entry e(x: tensor[1, 64] u8 in, out: tensor[4, 64] u8 out, cells: tensor[4] i32 out, w: window[1, 5368709120] u8, s: window[1342177280] i32, signal: window[1, 1] i32, me: i32) {
  at far {
    next = (me + 1) % world
    at_byte = array i64 [4] = 0
    at_byte[0] = 2147483616
    at_byte[1] = 2147483648
    at_byte[2] = 4294967264
    at_byte[3] = 4294967304
    for k in 0..4 {
      put w[0, at_byte[k] + 64 * k] @next <- x[0, 0] [1, 64]
      notify s[(at_byte[k] + 1048576) / 4] @next += me + 1
    }
    notify signal[0, 0] @next += 1
    wait signal[0, 0] >= 1
    for k in 0..4 {
      t = load w[0, at_byte[k] + 64 * k] [1, 64]
      store t -> out[k, 0]
      cells[k] = s[(at_byte[k] + 1048576) / 4]
    }
  }
}
host (x: tensor[world, 1, 64] u8 in, out: tensor[world, 4, 64] u8 out, cells: tensor[world, 4] i32 out) {
  buf = alloc_window bytes 5368709120
  signal_buf = alloc_window [1, 1] i32
  ranks r in 0..world {
    w = window buf [1, 5368709120] u8
    s = window buf [1342177280] i32
    signal = window signal_buf [1, 1] i32
    dispatch e(x[r], out[r], cells[r], w, s, signal, r) device r
  }
}
";
    let program = ir::parse::parse(text, "c33.pld").unwrap_or_else(|d| panic!("{}", d[0]));
    let options = CompileOptions { persistent: true, ..CompileOptions::default() };
    let executable = match Executable::compile(&program, &world(2), &options) {
        Ok(executable) => executable,
        Err(Error { kind: ErrorKind::NoSpace, message }) => {
            println!("SKIPPED c33: this machine has no room for it: {message}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut x: Vec<u8> = (0..128).map(|i| 100 + i).collect();
    let (mut out, mut cells) = (vec![0u8; 2 * 4 * 64], vec![0i32; 8]);
    let args = [
        tensor(&mut x, DType::U8, &[2, 1, 64]),
        tensor(&mut out, DType::U8, &[2, 4, 64]),
        tensor(&mut cells, DType::I32, &[2, 4]),
    ];
    executable.launch(&args).unwrap();
    for r in 0..2 {
        for k in 0..4 {
            assert_eq!(out[(r * 4 + k) * 64..][..64], x[(1 - r) * 64..][..64], "rank {r}, place {k}");
            assert_eq!(cells[r * 4 + k], 2 - r as i32, "rank {r}, place {k}");
        }
    }
}

#[test]
fn c36_an_odd_number_of_barriers_then_the_next_launch() {
    let text = format!(
        "program c36
entry e(signal: window[world, 1] i32, me: i32) {{
  at three {{ {BARRIER}{BARRIER}{BARRIER}
  }}
}}
host () {{
  signal_buf = alloc_window [world, 1] i32
  ranks r in 0..world {{
    signal = window signal_buf [world, 1] i32
    dispatch e(signal, r) device r
  }}
}}
"
    );
    let world = world(3);
    for persistent in [true, false] {
        assert_sound(&text, 3, persistent);
        let executable = compile_as(&text, &world, persistent);
        for _ in 0..7 {
            executable.launch(&[]).unwrap();
        }
    }
}

#[test]
fn c38_point_adds_in_bf16_round_each_time() {
    // Documented: an atomic add rounds to the element type per add, so a thousand ones stop at 256.
    let text = "program c38
entry e(one: tensor[1, 1] bf16 in, out: tensor[1, 1] bf16 out, sum: window[1, 1] bf16) {
  at add_up {
    for k in 0..1000 { put sum @0 <- one add }
    t = load sum[0, 0] [1, 1]
    store t -> out[0, 0]
  }
}
host (one: tensor[world, 1, 1] bf16 in, out: tensor[world, 1, 1] bf16 out) {
  buf = alloc_window [1, 1] bf16
  ranks r in 0..world {
    sum = window buf [1, 1] bf16
    dispatch e(one[r], out[r], sum) device r
  }
}
";
    let (mut one, mut out) = ([bf16::ONE], [bf16::ZERO]);
    let args = [tensor(&mut one, DType::BF16, &[1, 1, 1]), tensor(&mut out, DType::BF16, &[1, 1, 1])];
    compile(text, &world(1)).launch(&args).unwrap();
    assert_eq!(out[0].to_f32(), 256.0);
}

#[test]
fn c46_a_wait_that_nobody_satisfies_explains_itself() {
    let text = "program c46
entry e(credit: window[4] i32, me: i32) {
  at collect {
    if me == 0 { for k in 0..5 { notify credit[3] @1 += 1 } }
    if me == 1 { wait credit[3] >= 7 }
  }
}
host () {
  buf = alloc_window [4] i32
  ranks r in 0..world {
    credit = window buf [4] i32
    dispatch e(credit, r) device r
  }
}
";
    let error = compile(text, &impatient(2)).launch(&[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    for fact in ["rank 1", "credit[3] >= 7 (is 5)", "case.pld:5", "collect", "c46"] {
        assert!(error.message.contains(fact), "{fact} is missing in: {error}");
    }
}

#[test]
fn c54_the_late_rank_is_named() {
    // Rank 3 computes for a long time; the others wait for it.
    let text = "program c54
entry e(signal: window[world, 1] i32, me: i32) {
  at gather {
    idle = var i64 = 0
    if me == 3 { for a in 0..8000 { for b in 0..100000 { idle = idle * 3 + b } } }
    for peer in 0..world { if peer != me { notify signal[me, 0] @peer += 1 + idle * 0 } }
    for src in 0..world { if src != me { wait signal[src, 0] >= 1 } }
  }
}
host () {
  buf = alloc_window [world, 1] i32
  ranks r in 0..world {
    signal = window buf [world, 1] i32
    dispatch e(signal, r) device r
  }
}
";
    let error = compile(text, &impatient(4)).launch(&[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    let verdict = error.message.lines().last().unwrap();
    assert!(verdict.contains("=> rank 3"), "{error}");
    for waiting in ["rank 0", "rank 1", "rank 2"] {
        assert!(!verdict.contains(waiting), "{waiting} waits, it is not late: {error}");
    }
}

#[test]
fn a_size_without_a_value_only_fails_where_it_is_reached() {
    let text = "program reached
entry e(y: tensor[1] i64 out, reach: bool) {
  at divide {
    y[0] = 7
    if reach { y[0] = 0 / 0 }
  }
}
host (ys: tensor[world, 1] i64 out, reach: bool) {
  ranks r in 0..world { dispatch e(ys[r], reach) device r }
}
";
    let (executable, mut y) = (compile(text, &world(2)), [0i64; 2]);
    executable.launch(&[tensor(&mut y, DType::I64, &[2, 1]), Arg::Bool(false)]).unwrap();
    assert_eq!(y, [7, 7]);
    let error = executable.launch(&[tensor(&mut y, DType::I64, &[2, 1]), Arg::Bool(true)]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Arithmetic, "{error}");
    assert!(error.message.contains("case.pld:5"), "{error}");
}
