//! What programs do around their calls: names, pools, tasks and loops.

use pld::error::ErrorKind;
use pld::ir::print::print;
use pld::ir::{Combine, DType};
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::runtime::{CompileOptions, World, WorldOptions};

use crate::calls::{Call, Form, Kind, case};
use crate::case::{Case, Tensor, program, world};
use crate::matrix;
use crate::numbers::{Number, encode};

/// What is written out is a program as users write them.
#[test]
fn expanded_programs_read_as_they_print() {
    for form in [Form::Task, Form::Host { cores: 1 }, Form::Host { cores: 2 }] {
        for call in matrix::calls(3, DType::F16, 7) {
            let expanded = program(&case(&[call], 3, form, true).text);
            let expanded = expand_collectives(&expanded, &Target::new(3)).unwrap();
            let text = print(&expanded);
            assert_eq!(print(&program(&text)), text);
            assert!(!text.contains(&format!("mode {}", call.mode)), "{text}");
        }
    }
}

fn ints(values: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|&value| encode(DType::I32, Number::Int(value), &mut bytes));
    bytes
}

/// A task, or several, with `x: tensor[4] i32` of which rank `r` gives `10 r + i`, windows `w: [world, 4]`,
/// `v: [4]` and `s: [2]`, and what it leaves in `x`.
fn tasks(nranks: u32, body: &str, consts: &str, after: fn(usize, i64) -> [i64; 4]) -> Case {
    let text = format!(
        "program around
{consts}
entry e(x: tensor[4] i32 inout, w: window[world, 4] i32, v: window[4] i32, s: window[2] i32, me: i32) {{
{body}
}}
host (x: tensor[world, 4] i32 inout) {{
  w_buf = alloc_window [world, 4] i32
  v_buf = alloc_window [4] i32
  s_buf = alloc_window [2] i32
  ranks r in 0..world {{
    w = window w_buf [world, 4] i32
    v = window v_buf [4] i32
    s = window s_buf [2] i32
    dispatch e(x[r], w, v, s, r) device r
  }}
}}
"
    );
    let before = (0..i64::from(nranks)).map(|r| ints(&[10 * r, 10 * r + 1, 10 * r + 2, 10 * r + 3])).collect();
    let after = (0..nranks as usize).map(|r| ints(&after(r, nranks.into()))).collect();
    let x = Tensor { name: "x".into(), dtype: DType::I32, shape: vec![4], before, after, tolerance: 0.0 };
    Case { text, nranks, tensors: vec![x] }
}

/// What `v` holds when all ranks' `x` are added up.
fn sums(_: usize, p: i64) -> [i64; 4] {
    [0, 1, 2, 3].map(|i| 5 * p * (p - 1) + p * i)
}

/// Each rank's data is another row of its window.
#[test]
fn slices_in_places_of_their_own() {
    for mode in ["auto", "mesh", "two_phase", "ring"] {
        let body = format!(
            "  at reduce {{
    row = slice w[world - 1 - me, 0] [1, 4]
    for i in 0..4 {{ row[0, i] = x[i] }}
    allreduce sum row mode {mode}
    for i in 0..4 {{ x[i] = row[0, i] }}
  }}"
        );
        let case = tasks(4, &body, "", sums);
        case.interpret(4);
        case.launch(&world(4));
    }
}

#[test]
fn names_of_the_user_stay_theirs() {
    let body = "  at reduce {
    turn = 1
    now = turn + me
    peer = now
    parity = peer
    v_flat = parity
    store (load x[0] [4]) -> v[0]
    allreduce sum v mode two_phase
    barrier of w signal s
    left = v_flat
    get x <- v @me
    x[0] = x[0] + left - me - 1
  }"
    .replace("store (load x[0] [4]) -> v[0]", "t = load x[0] [4]\n    store t -> v[0]");
    let case = tasks(3, &body, "const v_cells = 4\nconst v_stage_i32 = 5", sums);
    case.interpret(5);
    case.launch(&world(3));
}

/// Tasks on one channel come in the order of the text, on however many cores; those on others may come between.
#[test]
fn tasks_on_one_channel() {
    let body = "  at first {
    t = load x[0] [4]
    store t -> v[0]
    allreduce sum v signal s
  }
  at between { for k in 0..20 { barrier of w } }
  at second {
    allgather w <- v signal s
    for i in 0..4 { if w[me, i] == w[(me + 1) % world, i] { x[i] = w[0, i] } }
  }
  at third { allreduce max v mode ring signal s }";
    for nranks in [2, 3, 4] {
        let case = tasks(nranks, body, "", sums);
        if nranks < 4 {
            case.interpret(10);
        }
        for (cores_per_rank, chaos_seed) in [(1, 0), (2, 0), (2, 3), (1, 4)] {
            let options = WorldOptions { cores_per_rank, chaos_seed, ..WorldOptions::default() };
            case.launch(&World::create(nranks, &options).unwrap());
        }
    }
}

/// Several cores for a call, and several cores a rank.
#[test]
fn cores_of_ranks() {
    for (cores_per_rank, chaos_seed) in [(2, 0), (3, 5)] {
        let options = WorldOptions { cores_per_rank, chaos_seed, ..WorldOptions::default() };
        let world = World::create(3, &options).unwrap();
        for cores in [2, 3, 5] {
            case(&matrix::calls(3, DType::I32, 700), 3, Form::Host { cores }, cores == 3).launch(&world);
        }
    }
}

/// More synchronisations, in two launches, than there are numbers for them.
#[test]
fn numbers_of_synchronisations_begin_again() {
    let body = "  at many {
    for k in 0..17001 { barrier of v signal s }
    t = load x[0] [4]
    store t -> v[0]
    allreduce sum v mode two_phase signal s
    get x <- v @me
  }";
    let case = tasks(2, body, "", sums);
    for unchecked in [false, true] {
        let options = CompileOptions { unchecked, persistent: true, ..CompileOptions::default() };
        let executable = case.compile(&world(2), &options);
        for _ in 0..2 {
            case.compare(&case.launched(&executable).unwrap(), "compiled");
        }
    }
}

/// Programs of a pool share channels by name, whatever each stages.
#[test]
fn programs_in_one_pool() {
    let world = world(3);
    let options =
        |bytes| CompileOptions { pool: Some("both".into()), pool_bytes: Some(bytes), ..CompileOptions::default() };
    let body =
        |calls: &str| format!("  at reduce {{\n t = load x[0] [4]\n store t -> v[0]\n {calls}\n get x <- v @me\n  }}");
    let one = tasks(3, &body("allreduce sum v mode mesh signal s"), "", sums);
    let other = tasks(
        3,
        &body("barrier of w signal s\n allreduce sum v mode ring signal s\n allgather w <- x mode mesh signal s"),
        "",
        sums,
    );
    let executables =
        [(&one, one.compile(&world, &options(1 << 20))), (&other, other.compile(&world, &options(1 << 20)))];
    for launch in 0..20 {
        let (case, executable) = &executables[launch * 5 % 3 % 2];
        case.compare(&case.launched(executable).unwrap(), &format!("launch {launch}"));
    }
}

/// A root that is known only when it runs must be a rank.
#[test]
fn roots_outside() {
    for mode in ["mesh", "direct"] {
        for root in ["x[3] - x[2] + 1", "x[2] - x[3]"] {
            let case = tasks(2, &format!("  at send {{ broadcast v root ({root}) mode {mode} }}"), "", |r, _| {
                [0, 1, 2, 3].map(|i| 10 * r as i64 + i)
            });
            let error = case.launched(&case.compile(&world(2), &CompileOptions::default())).unwrap_err();
            assert_eq!(error.kind, ErrorKind::OutOfBounds, "{error}");
            assert!(error.message.contains("case.pld:4"), "{error}");
        }
    }
}

/// More elements than are staged at once.
#[test]
fn long_rows() {
    for (nranks, count) in [(3, 65537), (4, 65537), (5, 20001), (8, 9001)] {
        let kinds = [Kind::Allreduce(Combine::Sum), Kind::ReduceScatter(Combine::Sum), Kind::Broadcast { root: 1 }];
        let kinds = kinds.into_iter().chain([Kind::Allgather, Kind::AllToAll]);
        let modes = |kind: Kind| kind.modes().iter().map(move |&mode| (kind, mode));
        for (n, (kind, mode)) in kinds.flat_map(modes).enumerate() {
            let (dtype, form) =
                if n % 2 == 0 { (DType::I8, Form::Task) } else { (DType::BF16, Form::Host { cores: 2 }) };
            case(&[Call { kind, mode, dtype, count }], nranks, form, false).launch(&world(nranks));
        }
    }
}
