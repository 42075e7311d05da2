//! What a task of a graph costs: many tasks of one store each, and the same stores in one task.

use crate::rank::{Bench, microseconds};
use crate::row::VALUE;
use crate::session::{Program, World, int, tensor};

/// Tasks of a launch.
const TASKS: usize = 1000;

/// A store that has nothing to do with the others.
const APART: &str = "y[i + 1] = cast(i + epoch, f32)";
/// A store that needs what the one before has made.
const CHAIN: &str = "y[i + 1] = y[i] + 1.0";

/// What stands around the tasks.
#[derive(Clone, Copy)]
enum Around {
    /// Nothing.
    Nothing,
    /// A task before them waits for one behind them: the rank has something pending all the time.
    Wait,
}

/// Tasks that are called, since nothing is pending.
pub fn apart(bench: &Bench) -> Result<(), String> {
    cost(bench, World::create(1)?, APART, Around::Nothing, "")
}

/// The same in a world with a trace: with two events each.
pub fn traced(bench: &Bench) -> Result<(), String> {
    cost(bench, World::traced(|| World::create(1))?, APART, Around::Nothing, "")
}

/// The same, each of which depends on the one before.
pub fn chain(bench: &Bench) -> Result<(), String> {
    cost(bench, World::create(1)?, CHAIN, Around::Nothing, "")
}

/// Tasks that are submitted, and can run at once.
pub fn submitted(bench: &Bench) -> Result<(), String> {
    cost(bench, World::create(1)?, APART, Around::Wait, "")
}

/// Tasks that are submitted, and all wait for one that blocks.
pub fn held(bench: &Bench) -> Result<(), String> {
    cost(bench, World::create(1)?, APART, Around::Wait, "deps [first]")
}

/// Nanoseconds that each of [`TASKS`] tasks with this store adds to what the stores take in one task.
fn cost(bench: &Bench, world: World, store: &str, around: Around, options: &str) -> Result<(), String> {
    let times = bench.times(200);
    let each = format!("for i in 0..N {{\nat tick {options} {{\n{store}\n}}\n}}");
    let together = format!("at tick {options} {{\nfor i in 0..N {{\n{store}\n}}\n}}");
    let mut y = vec![0.0_f32; TASKS + 1];
    let y = tensor(&mut y, &[TASKS as i64 + 1]);
    let compile = |tasks: &str| world.compile(&Program::parse(&text(tasks, around))?, true);
    let executables = [compile(&each)?, compile(&together)?];
    let mut epoch = 0;
    bench.sample(&mut [(VALUE, &mut || {
        let mut spent = [0.0; 2];
        for _ in 0..times {
            epoch += 1;
            for (spent, executable) in spent.iter_mut().zip(&executables) {
                *spent += microseconds(1, |_| executable.launch(&[y, int(epoch)]))?;
            }
        }
        let [each, together] = spent;
        Ok((each - together) * 1e3 / (TASKS as f64 * f64::from(times)))
    })])
}

fn text(tasks: &str, around: Around) -> String {
    let (before, after) = match around {
        Around::Nothing => ("", ""),
        Around::Wait => {
            ("first = at wait {\nwait gate[0] >= epoch\n}", "at open no_dep [gate] {\nnotify gate[0] @me += 1\n}")
        }
    };
    format!(
        "
program tasks
const N = {TASKS}

entry e(y: tensor[N + 1] f32 inout, gate: window[1] i32, me: i32, epoch: i32) {{
{before}
{tasks}
{after}
}}

host (y: tensor[N + 1] f32 inout, epoch: i32) {{
  gate_buf = alloc_window [1] i32
  ranks r in 0..world {{
    gate = window gate_buf [1] i32
    dispatch e(y, gate, r, epoch) device r
  }}
}}
"
    )
}
