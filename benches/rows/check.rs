//! The checker: what it takes to explore an exchange.

use std::time::Instant;

use pld::check::{Arg, Explore, Fill, Options, check, inputs};
use pld::ir::Program;
use pld::ir::parse::parse;

use crate::rank::Bench;
use crate::row::{Row, Target, Unit, VALUE};

/// The rows `check/...`.
pub fn rows() -> Vec<Row> {
    vec![
        Row::new("check/allreduce", Unit::Milliseconds, all_reduce).target(Target::Absolute(2000.0)),
        Row::new("check/moe", Unit::Milliseconds, moe).target(Target::Absolute(20_000.0)),
        Row::new("check/moe_memory", Unit::Megabytes, moe_memory).target(Target::Absolute(1024.0)),
    ]
}

/// Ranks of the programs that are explored.
const RANKS: u32 = 4;

fn program(text: &str) -> Result<Program, String> {
    parse(text, "bench.pld").map_err(|mistakes| mistakes[0].to_string())
}

/// How schedules are chosen: at random, so that there are as many as are asked for.
const EXPLORE: Explore = Explore::Random;

/// Milliseconds to run some schedules of a program that has no fault.
fn explore(program: &Program, options: &Options) -> Result<f64, String> {
    let begin = Instant::now();
    let report = check(program, options, &mut || true).map_err(|e| e.to_string())?;
    match report.findings.first() {
        None if report.schedules < options.schedules => Err(format!("only {} schedules", report.schedules)),
        None => Ok(begin.elapsed().as_secs_f64() * 1e3),
        Some(finding) => Err(finding.diagnostic.to_string()),
    }
}

/// A thousand schedules of the guide's all-reduce.
fn all_reduce(bench: &Bench) -> Result<(), String> {
    let program = program(include_str!("../../examples/pld/allreduce.pld"))?;
    let inputs = inputs(&program, RANKS, 1, Fill::Iota, 0, &[]).map_err(|e| e.to_string())?;
    let schedules = bench.times(1000).into();
    let options = Options { nranks: RANKS, schedules, explore: EXPLORE, args: &inputs.args, ..Options::default() };
    bench.sample(&mut [(VALUE, &mut || explore(&program, &options))])
}

/// Tokens of a rank, routes of a token, elements of a row, experts of a rank.
const T: usize = 8;
const TOPK: usize = 2;
const D: usize = 16;
const N_LOCAL: usize = 2;

fn exchange() -> Result<Program, String> {
    let sizes = [("T", T), ("TOPK", TOPK), ("D", D), ("N_LOCAL", N_LOCAL), ("MAX_PER_SRC", T)];
    let text = include_str!("../../examples/pld/moe_dispatch_combine.pld");
    let text = text.lines().map(|line| {
        let size = sizes.iter().find(|(name, _)| line.starts_with(&format!("const {name} = ")));
        size.map_or(line.to_owned(), |(name, value)| format!("const {name} = {value}"))
    });
    program(&text.collect::<Vec<_>>().join("\n"))
}

/// Two layers: in the second one, what the first one has left is overwritten.
const LAYERS: i32 = 2;

/// Arguments of all layers: every expert gets rows of every rank.
fn layers() -> Vec<Arg> {
    let ranked = |part: &dyn Fn(usize) -> Vec<u8>| Arg::Ranked((0..RANKS as usize).map(part).collect());
    let floats =
        |count: usize| ranked(&|rank| vec![1.0 + rank as f32; count].iter().flat_map(|v| v.to_ne_bytes()).collect());
    let layer = |epoch: i32| {
        let expert =
            |rank: usize, route: usize| ((route / TOPK * 3 + route % TOPK + rank) % (RANKS as usize * N_LOCAL)) as i32;
        [
            ranked(&|rank| (0..T * D).map(|i| (i + rank) as u8).collect()),
            floats(T),
            ranked(&|rank| (0..T * TOPK).flat_map(|route| expert(rank, route).to_ne_bytes()).collect()),
            floats(T * TOPK),
            ranked(&|_| (T as i32).to_ne_bytes().to_vec()),
            floats(T * D),
            Arg::Bits(epoch as u64),
        ]
    };
    (1..=LAYERS).flat_map(layer).collect()
}

/// Hands two hundred schedules of the exchange of a mixture of experts to `measure`.
fn with_moe(bench: &Bench, measure: impl FnOnce(&Program, &Options) -> Result<(), String>) -> Result<(), String> {
    let (program, args) = (exchange()?, layers());
    let options = Options {
        nranks: RANKS,
        launches: LAYERS as u32,
        persistent: true,
        schedules: bench.times(200).into(),
        explore: EXPLORE,
        args: &args,
        ..Options::default()
    };
    measure(&program, &options)
}

fn moe(bench: &Bench) -> Result<(), String> {
    with_moe(bench, |program, options| bench.sample(&mut [(VALUE, &mut || explore(program, options))]))
}

/// The most memory that this process has had at a time.
fn moe_memory(bench: &Bench) -> Result<(), String> {
    with_moe(bench, |program, options| {
        explore(program, options)?;
        bench.sample(&mut [(VALUE, &mut high_water)])
    })
}

fn high_water() -> Result<f64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| format!("/proc/self/status: {e}"))?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kilobytes: f64 = kilobytes.and_then(|kb| kb.parse().ok()).ok_or("the system does not tell")?;
    Ok(kilobytes / 1024.0)
}
