//! The conformance suite: test vectors as programs, run over every transport with 2, 3, 4 and 8 ranks, and checked.
//!
//! A vector is a program in `tests/conformance/` or `examples/pld/`, its inputs, and the right outputs, as formulas of
//! rank and position. A later transport joins by one more function at the end of this file.

#[allow(dead_code, reason = "each test uses some of it")]
#[path = "support/cards.rs"]
mod cards;
#[path = "conformance/collectives.rs"]
mod collectives;
#[path = "conformance/domains.rs"]
mod domains;
#[path = "support/join.rs"]
mod join;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use half::{bf16, f16};
use pld::check::{self, Memory, Schedule};
use pld::ir::{self, DType, Program};
use pld::runtime::{Arg, CompileOptions, Executable, Resident, TensorArg, World, WorldOptions};
use pld_test_ranks::{Job, Spread, namespaces_available};

use cards::on_cards;
use join::Join;

/// Value of element `i` (row-major) on rank `r` of `p`.
type Formula = fn(p: i64, r: i64, i: i64) -> f64;

/// As a formula; none where any value is right.
type Expected = fn(p: i64, r: i64, i: i64) -> Option<f64>;

/// A host parameter, without its rank axis.
enum Param {
    In(DType, fn(p: i64) -> Vec<i64>, Formula),
    Out(DType, fn(p: i64) -> Vec<i64>, Expected),
}

use Param::{In, Out};

struct Vector {
    /// Its number in the list of vectors, and what it shows.
    name: &'static str,
    program: Cow<'static, str>,
    params: Vec<Param>,
    persistent: bool,
    /// The sizes of worlds that it is for; all if empty.
    worlds: &'static [i64],
}

macro_rules! program {
    ($name:literal) => {
        include_str!(concat!("conformance/", $name, ".pld"))
    };
}

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../examples/pld/", $name, ".pld"))
    };
}

fn vector(name: &'static str, program: &'static str, params: Vec<Param>) -> Vector {
    Vector { name, program: program.into(), params, persistent: false, worlds: &[] }
}

fn previous(p: i64, r: i64) -> i64 {
    (r + p - 1) % p
}

fn next(p: i64, r: i64) -> i64 {
    (r + 1) % p
}

/// `100 r + i`: the usual input.
fn ramp(_p: i64, r: i64, i: i64) -> f64 {
    (100 * r + i) as f64
}

/// The ramp summed over all ranks.
fn ramp_sum(p: i64, i: i64) -> f64 {
    (0..p).map(|r| ramp(p, r, i)).sum()
}

/// The ramp of a large tensor: no two elements of neighbouring ranks are equal.
fn long_ramp(_p: i64, r: i64, i: i64) -> f64 {
    (10_000 * r + i) as f64
}

fn narrow(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(value).to_f64(),
        DType::BF16 => bf16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

fn vectors() -> Vec<Vector> {
    use DType::*;
    let row = |_p: i64| vec![1, 64];
    let rows2 = |_p: i64| vec![2, 64];
    let rows16 = |_p: i64| vec![16, 64];
    let square = |p: i64| vec![p, 64];
    let cell = |_p: i64| vec![1, 1];
    let from_previous: Expected = |p, r, i| Some(ramp(p, previous(p, r), i));
    let from_next: Expected = |p, r, i| Some(ramp(p, next(p, r), i));
    let ring = || vec![In(F32, row, ramp), Out(F32, row, from_previous)];
    let mut vectors = vec![
        vector("A1 put ring", program!("put_ring"), ring()),
        vector(
            "A2 put pipelined",
            program!("put_pipelined"),
            vec![
                In(F32, |_| vec![8, 128], long_ramp),
                Out(F32, |_| vec![8, 128], |p, r, i| Some(long_ramp(p, previous(p, r), i))),
            ],
        ),
        vector(
            "A3 put chunked",
            program!("put_chunked"),
            vec![
                In(F32, |_| vec![8, 64], long_ramp),
                Out(F32, |_| vec![8, 64], |p, r, i| Some(long_ramp(p, previous(p, r), i))),
            ],
        ),
        vector(
            "A4 put row subregion",
            program!("put_row"),
            vec![
                In(F32, rows2, ramp),
                Out(F32, rows2, |p, r, i| Some(if i < 64 { 0.0 } else { ramp(p, previous(p, r), i - 64) })),
            ],
        ),
        vector(
            "A5 put atomic add",
            program!("put_atomic"),
            vec![
                In(I32, |_| vec![16, 16], |_, r, i| (10 + 22 * r + 1000 * i) as f64),
                Out(
                    I32,
                    |_| vec![16, 16],
                    |p, r, i| (r == 0).then(|| (0..p).map(|q| 10 + 22 * q + 1000 * i).sum::<i64>() as f64),
                ),
            ],
        ),
        vector("A6 get ring", program!("get_ring"), vec![In(F32, row, ramp), Out(F32, row, from_next)]),
        vector(
            "A7 get row subregion",
            program!("get_row"),
            vec![
                In(F32, rows2, ramp),
                Out(F32, rows2, |p, r, i| Some(if i < 64 { 0.0 } else { ramp(p, next(p, r), i - 64) })),
            ],
        ),
        vector("A8 tile remote_store ring", program!("remote_store_ring"), ring()),
        vector(
            "A9 remote_store of two halves",
            program!("remote_store_halves"),
            vec![
                In(F32, |_| vec![1, 32], ramp),
                In(F32, |_| vec![1, 32], |p, r, i| ramp(p, r, i + 32)),
                Out(F32, row, from_previous),
            ],
        ),
        vector(
            "A10 remote_store of a computed value",
            program!("remote_store_computed"),
            vec![In(F32, row, ramp), Out(F32, row, |p, r, i| Some(2.0 * ramp(p, previous(p, r), i)))],
        ),
        vector(
            "A11 remote_store, then a reader task",
            program!("remote_store_two_tasks"),
            vec![
                In(BF16, square, |p, r, i| (r * 64 * p + i) as f64),
                Out(BF16, square, |p, r, i| {
                    let (source, column) = (previous(p, r), i % 64);
                    let sent = (source * 64 * p + source * 64 + column) as f64;
                    Some(if i / 64 == source { narrow(BF16, sent) } else { 0.0 })
                }),
            ],
        ),
        vector(
            "A12 A13 notified tag, three launches",
            program!("notify_tag"),
            vec![Out(I32, cell, |p, r, _| Some((previous(p, r) + 1) as f64))],
        ),
        vector("A14 credit reset", program!("credit_reset"), vec![Out(I32, cell, |_, _, _| Some(0.0))]),
        vector(
            "A17 window slice as source",
            program!("slice_source"),
            vec![In(F32, rows16, long_ramp), Out(F32, |_| vec![8, 64], |p, r, i| Some(long_ramp(p, r, i + 8 * 64)))],
        ),
        vector(
            "A18 window slice as target",
            program!("slice_target"),
            vec![In(F32, rows16, long_ramp), Out(F32, rows16, |p, r, i| Some(long_ramp(p, r, i)))],
        ),
        vector(
            "A19 compute on a window",
            program!("compute_on_window"),
            vec![
                In(F32, rows16, long_ramp),
                In(F16, rows16, |p, r, i| 0.5 * long_ramp(p, r, i)),
                Out(F32, rows16, |p, r, i| {
                    Some(narrow(F32, long_ramp(p, r, i) + narrow(F16, 0.5 * long_ramp(p, r, i))))
                }),
            ],
        ),
        vector(
            "B1 allreduce mesh",
            example!("allreduce"),
            vec![In(F32, |_| vec![1, 256], ramp), Out(F32, |_| vec![1, 256], |p, _, i| Some(ramp_sum(p, i)))],
        ),
        vector(
            "B2 allreduce ring",
            program!("allreduce_ring"),
            vec![In(F32, |p| vec![p, 768 / p], ramp), Out(F32, |p| vec![p, 768 / p], |p, _, i| Some(ramp_sum(p, i)))],
        ),
        vector(
            "B3 allgather pull",
            program!("allgather_pull"),
            vec![In(F32, row, ramp), Out(F32, |p| vec![1, p * 64], |p, _, i| Some(ramp(p, i / 64, i % 64)))],
        ),
        vector(
            "B4 reduce_scatter",
            program!("reduce_scatter"),
            vec![In(F32, |p| vec![1, p * 64], ramp), Out(F32, row, |p, r, i| Some(ramp_sum(p, r * 64 + i)))],
        ),
        vector(
            "B5 broadcast",
            program!("broadcast"),
            vec![In(F32, row, ramp), Out(F32, row, |p, _, i| Some(ramp(p, 0, i)))],
        ),
        vector(
            "B6 all_to_all push",
            program!("all_to_all_push"),
            vec![
                In(F32, square, |_, r, i| (1000 * r + 100 * (i / 64) + i % 64) as f64),
                Out(F32, square, |_, r, i| Some((1000 * (i / 64) + 100 * r + i % 64) as f64)),
            ],
        ),
    ];
    let tile = |_p: i64| vec![8, 8];
    let (one, all) = (|_p: i64| vec![1, 8], |p: i64| vec![p, 8]);
    let of_itself: Expected = |p, r, i| Some(ramp(p, r, i));
    let of_all: Expected = |p, _, i| Some(ramp(p, i / 8, i % 8));
    let shifts = || vec![In(F32, row, ramp), Out(F32, row, from_previous), Out(F32, row, from_next)];
    let sums = || vec![In(F32, all, ramp), Out(F32, all, |p, _, i| Some(ramp_sum(p, i)))];
    vectors.extend([
        vector(
            "G1 hello rank",
            example!("01_hello_rank"),
            vec![In(F32, tile, ramp), Out(F32, tile, |p, r, i| Some(ramp(p, r, i) + r as f64))],
        ),
        vector(
            "G2 levels",
            example!("02_levels"),
            vec![In(F32, tile, ramp), Out(F32, tile, |p, r, i| Some(ramp(p, r, i) * (r + 1) as f64))],
        ),
        vector("G3 window round trip", example!("03_window"), vec![In(F32, row, ramp), Out(F32, row, of_itself)]),
        vector(
            "G4 barrier",
            example!("04_barrier"),
            vec![Out(I32, |p| vec![p, 1], |_, r, i| Some(if i == r { 0.0 } else { 1.0 }))],
        ),
        vector("G5 remote tiles", example!("05_remote_tiles"), shifts()),
        vector("G6 put and get", example!("06_put_get"), shifts()),
        vector("G7 dynamic rank count", example!("07_dynamic_ranks"), vec![In(F32, one, ramp), Out(F32, all, of_all)]),
        vector("G8 all-reduce, mesh", example!("08_allreduce_mesh"), sums()),
        vector("G9 all-reduce, two phases", example!("09_allreduce_two_phase"), sums()),
        vector("G10 all-reduce, ring", example!("10_allreduce_ring"), sums()),
        vector("G11 all-reduce, collective", example!("11_allreduce_collective"), sums()),
        vector(
            "G12 broadcast",
            example!("12_broadcast"),
            vec![In(F32, one, ramp), Out(F32, one, |p, _, i| Some(ramp(p, 0, i)))],
        ),
        vector("G13 all-gather", example!("13_allgather"), vec![In(F32, one, ramp), Out(F32, all, of_all)]),
        vector(
            "G14 reduce-scatter",
            example!("14_reduce_scatter"),
            vec![In(F32, all, ramp), Out(F32, one, |p, r, i| Some(ramp_sum(p, 8 * r + i)))],
        ),
        vector(
            "G15 all-to-all",
            example!("15_all_to_all"),
            vec![In(F32, all, ramp), Out(F32, all, |p, r, i| Some(ramp(p, i / 8, 8 * r + i % 8)))],
        ),
        vector(
            "G16 composed",
            example!("16_composed"),
            vec![In(F32, all, ramp), Out(F32, all, |p, _, i| Some(ramp(p, 0, i) * (p * (p + 1) / 2 + 1) as f64))],
        ),
        vector(
            "two halves",
            example!("domains"),
            vec![
                In(F32, row, ramp),
                Out(F32, row, |p, r, i| {
                    let half = if r < p / 2 { 0..p / 2 } else { p / 2..p };
                    Some(half.map(|q| ramp(p, q, i)).sum())
                }),
            ],
        ),
    ]);
    vectors.push(Vector {
        name: "A15 credit reset, persistent",
        persistent: true,
        ..vector("", program!("credit_reset"), vec![Out(I32, cell, |_, _, _| Some(0.0))])
    });
    vectors.extend(collectives::vectors());
    vectors.extend(domains::vectors());
    vectors
}

/// Bytes around every buffer that must stay as they are.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xC3;

/// The parts of one host tensor that this process has, between guards.
struct Buffer {
    dtype: DType,
    shape: Vec<i64>,
    storage: Vec<u64>,
    bytes: usize,
}

impl Buffer {
    fn new(dtype: DType, part: Vec<i64>, local: &[i64], drives_all: bool) -> Self {
        let bytes = (part.iter().product::<i64>() * dtype.size()) as usize * local.len();
        let mut shape = part;
        if drives_all {
            shape.insert(0, local.len() as i64);
        }
        let guarded = bytes.next_multiple_of(8) + 2 * GUARD;
        Self { dtype, shape, storage: vec![u64::from_ne_bytes([GUARD_BYTE; 8]); guarded / 8], bytes }
    }

    fn all_bytes(&mut self) -> &mut [u8] {
        // SAFETY: a slice of u64 is a slice of eight times as many bytes.
        unsafe { std::slice::from_raw_parts_mut(self.storage.as_mut_ptr().cast(), self.storage.len() * 8) }
    }

    fn data(&mut self) -> &mut [u8] {
        let bytes = self.bytes;
        &mut self.all_bytes()[GUARD..GUARD + bytes]
    }

    fn set(&mut self, index: usize, value: f64) {
        let (dtype, size) = (self.dtype, self.dtype.size() as usize);
        let bytes: Vec<u8> = match dtype {
            DType::F32 => (value as f32).to_ne_bytes().into(),
            DType::F16 => f16::from_f64(value).to_ne_bytes().into(),
            DType::BF16 => bf16::from_f64(value).to_ne_bytes().into(),
            DType::I32 => (value as i32).to_ne_bytes().into(),
            other => unreachable!("no vector uses {other}"),
        };
        self.data()[index * size..][..size].copy_from_slice(&bytes);
    }

    fn value(&mut self, index: usize) -> f64 {
        let (dtype, size) = (self.dtype, self.dtype.size() as usize);
        let bytes = &self.data()[index * size..][..size];
        match dtype {
            DType::F32 => f64::from(f32::from_ne_bytes(bytes.try_into().unwrap())),
            DType::F16 => f16::from_ne_bytes(bytes.try_into().unwrap()).to_f64(),
            DType::BF16 => bf16::from_ne_bytes(bytes.try_into().unwrap()).to_f64(),
            DType::I32 => f64::from(i32::from_ne_bytes(bytes.try_into().unwrap())),
            other => unreachable!("no vector uses {other}"),
        }
    }

    fn check_guards(&mut self, name: &str) {
        let bytes = self.bytes;
        let all = self.all_bytes();
        let intact = all[..GUARD].iter().chain(&all[GUARD + bytes..]).all(|&b| b == GUARD_BYTE);
        assert!(intact, "{name}: bytes beside a tensor have changed");
    }
}

const LAUNCHES: u32 = 3;

/// A host whose ranks share two CPUs with those of all others answers slowly.
const HOSTS_PATIENCE: Duration = Duration::from_secs(300);

impl Vector {
    fn is_for(&self, nranks: u32) -> bool {
        self.worlds.is_empty() || self.worlds.contains(&nranks.into())
    }

    fn program(&self) -> Program {
        ir::parse::parse(&self.program, self.name)
            .unwrap_or_else(|d| panic!("{}", d.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("\n")))
    }

    /// The arguments of a launch, for these ranks of `p`.
    fn buffers(&self, p: i64, local: &[i64], drives_all: bool) -> Vec<Buffer> {
        let buffers = self.params.iter().map(|param| match *param {
            In(dtype, shape, formula) => {
                let mut buffer = Buffer::new(dtype, shape(p), local, drives_all);
                let elements = shape(p).iter().product::<i64>();
                for (part, &r) in local.iter().enumerate() {
                    for i in 0..elements {
                        buffer.set(part * elements as usize + i as usize, narrow(dtype, formula(p, r, i)));
                    }
                }
                buffer
            }
            Out(dtype, shape, _) => Buffer::new(dtype, shape(p), local, drives_all),
        });
        buffers.collect()
    }

    /// What a launch has left in its arguments is right.
    fn assert_right(&self, p: i64, local: &[i64], buffers: &mut [Buffer], launch: &str) {
        for (buffer, param) in buffers.iter_mut().zip(&self.params) {
            buffer.check_guards(self.name);
            let Out(_, shape, expected) = *param else { continue };
            let elements = shape(p).iter().product::<i64>();
            for (part, &r) in local.iter().enumerate() {
                for i in 0..elements {
                    if let Some(right) = expected(p, r, i) {
                        let got = buffer.value(part * elements as usize + i as usize);
                        assert_eq!(got, right, "{}, {p} ranks, {launch}: rank {r}, element {i}", self.name);
                    }
                }
            }
        }
    }
}

/// Runs a vector on the ranks of this process and checks what they got, three launches in a row.
fn run(world: &Arc<World>, vector: &Vector) {
    let name = vector.name;
    if !vector.is_for(world.nranks()) {
        return;
    }
    let p = i64::from(world.nranks());
    let (local, drives_all) = match world.rank() {
        Some(rank) => (vec![i64::from(rank)], false),
        None => ((0..p).collect(), true),
    };
    let options = CompileOptions { persistent: vector.persistent, ..CompileOptions::default() };
    let executable = Executable::compile(&vector.program(), world, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    for launch in 0..LAUNCHES {
        let mut buffers = vector.buffers(p, &local, drives_all);
        let args: Vec<Arg> = buffers
            .iter_mut()
            .map(|buffer| {
                let data = buffer.data().as_mut_ptr();
                Arg::Tensor(TensorArg { data, dtype: buffer.dtype, shape: &buffer.shape, strides: None })
            })
            .collect();
        executable.launch(&args).unwrap_or_else(|e| panic!("{name}, launch {launch}: {e}"));
        vector.assert_right(p, &local, &mut buffers, &format!("launch {launch}"));
    }
}

/// The same on cards, whose memory the arguments are.
fn run_on_cards(world: &Arc<World>, vector: &Vector) {
    let name = vector.name;
    if !vector.is_for(world.nranks()) {
        return;
    }
    let p = i64::from(world.nranks());
    let local: Vec<u32> = world.rank().map_or_else(|| (0..world.nranks()).collect(), |rank| vec![rank]);
    let options = CompileOptions { persistent: vector.persistent, ..CompileOptions::default() };
    let executable = Executable::compile(&vector.program(), world, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    for launch in 0..LAUNCHES {
        let mut parts: Vec<Vec<Buffer>> = local.iter().map(|&rank| vector.buffers(p, &[rank.into()], false)).collect();
        let residents: Vec<Resident> = (0..vector.params.len())
            .map(|param| {
                let Buffer { dtype, ref shape, .. } = parts[0][param];
                let resident = Resident::create_stacked(world, dtype, shape).unwrap();
                for (part, &rank) in parts.iter_mut().zip(&local) {
                    resident.copy_in(rank, part[param].data()).unwrap();
                }
                resident
            })
            .collect();
        let args: Vec<Arg> = residents.iter().map(Arg::Resident).collect();
        executable.launch(&args).unwrap_or_else(|e| panic!("{name}, launch {launch}: {e}"));
        for (part, &rank) in parts.iter_mut().zip(&local) {
            for (buffer, resident) in part.iter_mut().zip(&residents) {
                resident.copy_out(rank, buffer.data()).unwrap();
            }
            vector.assert_right(p, &[rank.into()], part, &format!("launch {launch}"));
        }
    }
}

/// Runs a vector as the language defines it, in several orders: the results are right, and nothing is found.
fn interpret(nranks: u32, vector: &Vector) {
    let (p, program) = (i64::from(nranks), vector.program());
    let all: Vec<i64> = (0..p).collect();
    let mut buffers = vector.buffers(p, &all, true);
    let mut parts = |buffer: &mut Buffer| {
        let data = buffer.data();
        check::Arg::Ranked(data.chunks(data.len() / nranks as usize).map(<[u8]>::to_vec).collect())
    };
    let args: Vec<check::Arg> = buffers.iter_mut().map(&mut parts).collect();
    let persistent = vector.persistent;
    let options = check::Options { nranks, launches: LAUNCHES, persistent, args: &args, ..check::Options::default() };
    for schedule in [Schedule::Choices(Vec::new()), Schedule::Random(1), Schedule::Pct(1)] {
        let outcome = check::run(&program, &options, &schedule).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        for (buffer, arg) in buffers.iter_mut().zip(&outcome.args) {
            let check::Arg::Ranked(parts) = arg else { panic!("the arguments come back as they were given") };
            buffer.data().copy_from_slice(&parts.concat());
        }
        vector.assert_right(p, &all, &mut buffers, &schedule.to_string());
    }
    for memory in [Memory::Host, Memory::Npu] {
        let options = check::Options { memory, schedules: 100, ..options.clone() };
        let report = check::check(&program, &options, &mut || true).unwrap_or_else(|e| panic!("{}: {e}", vector.name));
        let findings: Vec<String> = report.findings.iter().map(|finding| finding.diagnostic.to_string()).collect();
        assert!(findings.is_empty(), "{nranks} ranks, {memory:?}:\n{}", findings.join("\n"));
    }
}

fn over_interpreter(nranks: u32) {
    vectors().iter().filter(|vector| vector.is_for(nranks)).for_each(|vector| interpret(nranks, vector));
}

fn over_threads(nranks: u32) {
    let world = World::create(nranks, &WorldOptions::default()).unwrap();
    for vector in vectors() {
        run(&world, &vector);
    }
}

/// Every vector with ranks that are held up.
#[test]
fn threads_shaken() {
    for seed in 1..=20u64 {
        let cores_per_rank = if seed.is_multiple_of(3) { 2 } else { 1 };
        let options = WorldOptions { chaos_seed: seed, cores_per_rank, ..WorldOptions::default() };
        let world = World::create(2 + seed as u32 % 3, &options).unwrap();
        vectors().iter().for_each(|vector| run(&world, vector));
    }
}

fn over_processes(nranks: u32) {
    for outcome in Job::start("vectors", nranks).outcomes() {
        assert_eq!(outcome.done(), "");
    }
}

/// Each process on a host of its own.
fn over_hosts(nranks: u32) {
    spread(Job::over(Spread::Apart), nranks);
}

/// The same, with nothing but TCP between them.
fn over_hosts_by_tcp(nranks: u32) {
    spread(Job::over(Spread::Apart).with("UCX_TLS", "tcp,self"), nranks);
}

/// The same, with nothing but OpenUCX's shared memory.
fn over_hosts_by_shared_memory(nranks: u32) {
    spread(Job::over(Spread::Apart).with("UCX_TLS", "shm,self"), nranks);
}

/// Two processes a host.
fn over_pairs(nranks: u32) {
    spread(Job::over(Spread::Pairs), nranks);
}

/// Two processes a host, each of which is a network namespace.
fn over_namespaces(nranks: u32) {
    if namespaces_available() {
        spread(Job::over(Spread::Namespaces { ranks: 2 }), nranks);
    }
}

fn spread(job: Job, nranks: u32) {
    let mut job = job.patient(HOSTS_PATIENCE);
    job.spawn_world("vectors", nranks);
    for outcome in job.outcomes() {
        assert_eq!(outcome.done(), "");
    }
}

/// One process a card.
fn over_cards(nranks: u32) {
    for outcome in cards::job("cards", nranks).outcomes() {
        assert_eq!(outcome.done(), "");
    }
}

/// One process for all cards.
fn over_cards_of_a_process(nranks: u32) {
    assert_eq!(cards::job(&format!("{nranks} cards of a process"), 1).outcome(0).done(), "");
}

/// Not a test of its own: what each process of the others runs.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|scenario, me| {
        match scenario.split_once(" cards of a process") {
            Some((nranks, _)) => {
                let world = World::create(nranks.parse().unwrap(), &on_cards()).unwrap();
                vectors().iter().for_each(|vector| run_on_cards(&world, vector));
            }
            None if scenario == "cards" => {
                let world = me.join(&on_cards()).unwrap();
                vectors().iter().for_each(|vector| run_on_cards(&world, vector));
            }
            None => {
                let world = me.join(&WorldOptions::default()).unwrap();
                vectors().iter().for_each(|vector| run(&world, vector));
            }
        }
        Ok(String::new())
    });
}

macro_rules! suite {
    ($($name:ident: $over:ident($nranks:literal);)*) => {$(
        #[test]
        fn $name() {
            $over($nranks);
        }
    )*};
}

suite! {
    threads_1: over_threads(1);
    threads_2: over_threads(2);
    threads_3: over_threads(3);
    threads_4: over_threads(4);
    threads_8: over_threads(8);
    processes_1: over_processes(1);
    processes_2: over_processes(2);
    processes_3: over_processes(3);
    processes_4: over_processes(4);
    processes_8: over_processes(8);
    hosts_2: over_hosts(2);
    hosts_3: over_hosts(3);
    hosts_4: over_hosts(4);
    hosts_8: over_hosts(8);
    hosts_by_tcp_2: over_hosts_by_tcp(2);
    hosts_by_tcp_4: over_hosts_by_tcp(4);
    hosts_by_shared_memory_2: over_hosts_by_shared_memory(2);
    hosts_by_shared_memory_4: over_hosts_by_shared_memory(4);
    hosts_of_pairs_4: over_pairs(4);
    namespaces_2: over_namespaces(4);
    namespaces_4: over_namespaces(8);
    cards_2: over_cards(2);
    cards_4: over_cards(4);
    cards_of_a_process_2: over_cards_of_a_process(2);
    cards_of_a_process_4: over_cards_of_a_process(4);
    interpreted_1: over_interpreter(1);
    interpreted_2: over_interpreter(2);
    interpreted_3: over_interpreter(3);
    interpreted_4: over_interpreter(4);
}
