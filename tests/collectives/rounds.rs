//! Thousands of calls in loops, one close behind the other, while ranks are held up at random places. The program looks at
//! every result, each round, and overwrites what it gave as soon as a call returns.

use std::fmt::Write;
use std::sync::Arc;

use pld::ir::DType;
use pld::runtime::{CompileOptions, Executable, World, WorldOptions};

use crate::case::{Case, Tensor};
use crate::numbers::{Number, encode};

/// A call in a round, and what the program does before and after it.
struct Step {
    /// What rank `me` gives in round `k`.
    fill: String,
    call: String,
    /// What is found, and what must be.
    check: String,
    windows: Vec<String>,
    /// The result is looked at after the next call.
    late: bool,
}

fn step(kind: &str, mode: &str, n: usize, number: usize) -> Step {
    let s = number;
    // What rank `of` gives as element `j` of what is for rank `to`.
    let of = |of: &str, to: &str, j: &str| format!("(({of}) + 1) * 1000 + ({to}) * 50 + k * 7 + {j} + {s}");
    let rows_of = |body: String| format!("for p in 0..world {{ for i in 0..{n} {{ {body} }} }}\n");
    let found = |at: &str, must: String| {
        format!("if {at} != {must} {{ bad[0] = {s} bad[1] = k bad[2] = i bad[3] = {at} }}").replace(" bad", "\n bad")
    };
    let all = format!("for i in 0..{n} {{ d{s}[i] = {} }}\n", of("me", "0", "i"));
    let each = |check: String| format!("for i in 0..{n} {{ {check} \n d{s}[i] = 0 - k }}\n");
    let sum = "500 * world * (world + 1)";
    let (flat, rows) = (format!("d{s}: window[{n}] i32"), format!("d{s}: window[world, {n}] i32"));
    let call = |words: &str| format!("{words} mode {mode}");
    let each_row = |what: &str| rows_of(found(&format!("d{s}[p, i]"), what.into()));
    match kind {
        "sum" => Step {
            fill: all,
            call: call(&format!("allreduce sum d{s}")),
            check: each(found(&format!("d{s}[i]"), format!("{sum} + world * (k * 7 + i + {s})"))),
            windows: vec![flat],
            late: false,
        },
        "max" => Step {
            fill: all,
            call: call(&format!("allreduce max d{s}")),
            check: each(found(&format!("d{s}[i]"), of("world - 1", "0", "i"))),
            windows: vec![flat],
            late: true,
        },
        "broadcast" => Step {
            fill: all,
            call: call(&format!("broadcast d{s} root (k % world)")),
            check: each(found(&format!("d{s}[i]"), of("k % world", "0", "i"))),
            windows: vec![flat],
            late: false,
        },
        "reduce_scatter" => Step {
            fill: rows_of(format!("d{s}[p, i] = {}", of("me", "p", "i"))),
            call: call(&format!("reduce_scatter sum d{s}")),
            check: format!(
                "for i in 0..{n} {{ {} }}\n",
                found(&format!("d{s}[me, i]"), format!("{sum} + world * (me * 50 + k * 7 + i + {s})"))
            ),
            windows: vec![rows],
            late: true,
        },
        "allgather" => Step {
            fill: format!("for i in 0..{n} {{ v{s}[i] = {} }}\n", of("me", "0", "i")),
            call: call(&format!("allgather d{s} <- v{s}")) + &format!("\n for i in 0..{n} {{ v{s}[i] = 0 - k }}"),
            check: each_row(&of("p", "0", "i")),
            windows: vec![rows, format!("v{s}: window[{n}] i32")],
            late: true,
        },
        "all_to_all" => Step {
            fill: rows_of(format!("v{s}[p, i] = {}", of("me", "p", "i"))),
            call: call(&format!("all_to_all d{s} <- v{s}")) + "\n" + &rows_of(format!("v{s}[p, i] = 0 - k")),
            check: each_row(&of("p", "me", "i")),
            windows: vec![rows, format!("v{s}: window[world, {n}] i32")],
            late: false,
        },
        "all_to_all_v" => Step {
            fill: format!(
                "for p in 0..world {{ c{s}[p] = (me + p + k) % {0}\n for i in 0..c{s}[p] {{ v{s}[p * {n} + i, 0] = {1} }} }}\n",
                n + 1,
                of("me", "p", "i")
            ),
            call: call(&format!("all_to_all_v d{s}, g{s} <- v{s}, c{s}"))
                + &format!(
                    "\n for p in 0..world {{ c{s}[p] = 0 - k\n for i in 0..{n} {{ v{s}[p * {n} + i, 0] = 0 - k }} }}"
                ),
            check: format!(
                "for p in 0..world {{ i = p\n {}\n for j in 0..g{s}[p] {{ if d{s}[p * {n} + j, 0] != {} {{ bad[0] = {s} }} }} }}\n",
                found(&format!("g{s}[p]"), format!("(me + p + k) % {}", n + 1)),
                of("p", "me", "j")
            ),
            windows: vec![
                format!("d{s}: window[{n} * world, 1] i32"),
                format!("v{s}: window[{n} * world, 1] i32"),
                format!("c{s}: window[world] i32"),
                format!("g{s}: window[world] i32"),
            ],
            late: false,
        },
        "barrier" => Step {
            // Everybody has entered round k when it is over; some may be in the next one.
            fill: format!(
                "d{s}[k % 2, me] = k\n for p in 0..world {{ put d{s}[k % 2, me] @p <- d{s}[k % 2, me] [1, 1] }}\n"
            ),
            call: format!("barrier of d{s}"),
            check: format!("for i in 0..world {{ {} }}\n", found(&format!("d{s}[k % 2, i]"), "k".into())),
            windows: vec![format!("d{s}: window[2, world] i32")],
            late: false,
        },
        other => panic!("no step is called {other}"),
    }
}

/// A task that makes these calls in each of `rounds` rounds. The signal of each is that of its number, modulo `signals`;
/// without signals each has its own channel.
fn task(name: &str, steps: &[Step], rounds: usize, signals: &[&str]) -> String {
    let mut text = format!("  at {name} {{\n    for k in from[0]..from[0] + {rounds} {{\n");
    let mut pending = String::new();
    for (number, step) in steps.iter().enumerate() {
        text += &step.fill;
        let signal = signals.get(number % signals.len().max(1));
        let signal = signal.map(|signal| format!(" signal {signal}")).unwrap_or_default();
        let (call, rest) = step.call.split_once('\n').unwrap_or((&step.call, ""));
        writeln!(text, "{call}{signal}\n{rest}").expect("text can be written");
        text += &std::mem::take(&mut pending);
        if step.late { pending.clone_from(&step.check) } else { text += &step.check }
    }
    text + &pending + "    }\n  }\n"
}

/// The program around some tasks.
fn program(windows: &[String], tasks: &str) -> String {
    let windows: Vec<&str> = windows.iter().map(String::as_str).collect();
    let params = windows.join(", ");
    let (mut buffers, mut views, mut args) = (String::new(), String::new(), Vec::new());
    for window in windows {
        let (name, ty) = window.split_once(": window").expect("a window");
        writeln!(buffers, "  {name}_buf = alloc_window {ty}").expect("text can be written");
        writeln!(views, "    {name} = window {name}_buf {ty}").expect("text can be written");
        args.push(name);
    }
    format!(
        "program rounds
entry e(from: tensor[1] i32 in, bad: tensor[4] i32 inout, {params}, me: i32) {{
{tasks}}}
host (froms: tensor[world, 1] i32 in, bads: tensor[world, 4] i32 inout) {{
{buffers}  ranks r in 0..world {{
{views}    dispatch e(froms[r], bads[r], {}, r) device r
  }}
}}
",
        args.join(", ")
    )
}

/// Rounds of calls of all kinds on the channels of `signals`.
fn mixed(nranks: u32, rounds: usize, signals: &[&str]) -> Rounds {
    let kinds = [
        ("sum", "mesh", 3),
        ("allgather", "mesh", 5),
        ("sum", "two_phase", 130),
        ("broadcast", "mesh", 9),
        ("all_to_all", "direct", 4),
        ("reduce_scatter", "mesh", 6),
        ("all_to_all_v", "mesh", 3),
        ("max", "ring", 67),
        ("barrier", "auto", 1),
        ("allgather", "direct", 1),
        ("reduce_scatter", "direct", 70),
        ("sum", "mesh", 1),
        ("all_to_all_v", "direct", 2),
        ("broadcast", "direct", 17),
        ("all_to_all", "mesh", 2),
    ];
    let steps: Vec<Step> =
        kinds.iter().enumerate().map(|(number, &(kind, mode, n))| step(kind, mode, n, number + 1)).collect();
    let mut windows: Vec<String> = steps.iter().flat_map(|step| step.windows.clone()).collect();
    windows.extend(signals.iter().map(|signal| format!("{signal}: window[1] i32")));
    Rounds { rounds, case: case(program(&windows, &task("rounds", &steps, rounds, signals)), nranks) }
}

fn case(text: String, nranks: u32) -> Case {
    let tensor = |name: &str, values: &[i64]| {
        let mut bytes = Vec::new();
        values.iter().for_each(|&value| encode(DType::I32, Number::Int(value), &mut bytes));
        let all = vec![bytes; nranks as usize];
        let shape = vec![values.len() as i64];
        Tensor { name: name.into(), dtype: DType::I32, shape, before: all.clone(), after: all, tolerance: 0.0 }
    };
    Case { text, nranks, tensors: vec![tensor("from", &[1]), tensor("bad", &[0; 4])] }
}

struct Rounds {
    rounds: usize,
    case: Case,
}

impl Rounds {
    /// Launches several times, with rounds that go on from launch to launch.
    fn launch(&mut self, executable: &Executable, launches: usize) {
        for launch in 0..launches {
            let mut first = Vec::new();
            encode(DType::I32, Number::Int((launch * self.rounds + 1) as i64), &mut first);
            let from = &mut self.case.tensors[0];
            from.before.fill(first.clone());
            from.after.fill(first);
            let left = self.case.launched(executable).unwrap_or_else(|e| panic!("{e}\n{}", self.case.text));
            self.case.compare(&left, &format!("launch {launch}"));
        }
    }

    fn shaken(mut self, seed: u64, launches: usize) {
        let world = shaken_world(self.case.nranks, 1, seed);
        for persistent in [false, true] {
            let options = CompileOptions { persistent, ..CompileOptions::default() };
            let executable = self.case.compile(&world, &options);
            self.launch(&executable, launches);
        }
    }
}

fn shaken_world(nranks: u32, cores_per_rank: u32, chaos_seed: u64) -> Arc<World> {
    World::create(nranks, &WorldOptions { cores_per_rank, chaos_seed, ..WorldOptions::default() }).unwrap()
}

#[test]
fn rounds_are_sound() {
    for (nranks, signals) in [(2, &["a"][..]), (3, &["a", "b"]), (2, &[])] {
        mixed(nranks, 3, signals).case.interpret(20);
    }
}

/// On one channel.
#[test]
fn shaken_rounds_of_2() {
    (1..=10).for_each(|seed| mixed(2, 30, &["a"]).shaken(seed, 5));
}

#[test]
fn shaken_rounds_of_3() {
    (1..=10).for_each(|seed| mixed(3, 30, &["a"]).shaken(seed, 5));
}

/// On two channels, so that each sees its calls apart from those between them.
#[test]
fn shaken_rounds_of_4_on_two_channels() {
    (1..=10).for_each(|seed| mixed(4, 20, &["a", "b"]).shaken(seed, 5));
}

#[test]
fn shaken_rounds_of_8() {
    (1..=2).for_each(|seed| mixed(8, 20, &["a"]).shaken(seed, 5));
}

/// Undisturbed: as fast as it goes.
#[test]
fn swift_rounds() {
    mixed(2, 500, &["a"]).shaken(0, 4);
    mixed(4, 200, &["a", "b"]).shaken(0, 2);
    mixed(3, 200, &[]).shaken(0, 2);
}
