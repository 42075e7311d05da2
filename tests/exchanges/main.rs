//! Exchanges as engines run them: programs of `examples/pld` and vector F, many launches on the same windows, checked
//! against a reference that is computed on the host.
#![allow(missing_docs, reason = "a test is its own documentation")]

#[allow(dead_code, reason = "each test uses some of it")]
#[path = "../support/cards.rs"]
mod cards;
mod cp;
mod data;
#[path = "../support/join.rs"]
mod join;
mod moe;
mod ranked;
mod tp;
mod vector_f;

use std::sync::Arc;
use std::time::Duration;

use pld::ir;
use pld::runtime::{Callback, CallbackFn, CompileOptions, Executable, World, WorldOptions};
use pld_test_ranks::{Job, Spread, namespaces_available};

use join::Join;

/// Launches an exchange in a world many times, and checks what came of it.
type Scenario = fn(&Arc<World>);

/// Scenarios that also run between processes.
const SCENARIOS: &[(&str, Scenario)] = &[
    ("moe", moe::layers),
    ("vector_f", vector_f::small),
    ("vector_f_full", vector_f::full),
    ("cp", cp::epochs),
    ("tp", tp::layers),
    ("some moe", |world| moe::run(world, 6)),
    ("some cp", |world| cp::run(world, 6)),
    ("some tp", |world| tp::run(world, 4)),
];

/// The program with other sizes: each of `sizes` takes the place of a constant.
fn program(text: &str, sizes: &[(&str, i64)]) -> ir::Program {
    let mut text = text.to_owned();
    for (name, value) in sizes {
        let (head, rest) = text.split_once(&format!("const {name} = ")).unwrap_or_else(|| panic!("no const {name}"));
        let (_, tail) = rest.split_once('\n').expect("a line ends");
        text = format!("{head}const {name} = {value}\n{tail}");
    }
    ir::parse::parse(&text, "exchange.pld").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]))
}

/// Compiled with windows that stay, and with the engine's function of this name.
fn compile(program: &ir::Program, world: &Arc<World>, function: Option<(&str, CallbackFn)>) -> Arc<Executable> {
    let callback = |function| Callback { function, user_data: std::ptr::null_mut() };
    let callbacks = function.into_iter().map(|(name, function)| (name.into(), callback(function))).collect();
    compile_with(program, world, &CompileOptions { persistent: true, callbacks, ..CompileOptions::default() })
}

fn compile_with(program: &ir::Program, world: &Arc<World>, options: &CompileOptions) -> Arc<Executable> {
    Executable::compile(program, world, options).unwrap_or_else(|e| panic!("{e}"))
}

fn threads(nranks: u32, cores_per_rank: u32) -> Arc<World> {
    World::create(nranks, &WorldOptions { cores_per_rank, ..WorldOptions::default() }).unwrap()
}

/// One process a simulated card.
fn over_cards(scenario: &str, nranks: u32) {
    for outcome in cards::job(&format!("{scenario} on cards"), nranks).outcomes() {
        assert_eq!(outcome.done(), "");
    }
}

fn over_processes(scenario: &str, nranks: u32) {
    for outcome in Job::start(scenario, nranks).outcomes() {
        assert_eq!(outcome.done(), "");
    }
}

fn over_hosts(scenario: &str, spread: Spread, nranks: u32) {
    if matches!(spread, Spread::Namespaces { .. }) && !namespaces_available() {
        return;
    }
    // Far more than it takes ranks that share two CPUs with all others.
    let mut job = Job::over(spread).patient(Duration::from_secs(300));
    job.spawn_world(scenario, nranks);
    for outcome in job.outcomes() {
        assert_eq!(outcome.done(), "");
    }
}

/// Every exchange, a few times, with ranks that are held up.
fn shaken(seed: u64, make: impl FnOnce(&WorldOptions) -> Arc<World>) {
    let cores_per_rank = if seed.is_multiple_of(3) { 2 } else { 1 };
    let world = make(&WorldOptions { chaos_seed: seed, cores_per_rank, ..WorldOptions::default() });
    moe::run(&world, 8);
    vector_f::small(&world);
    cp::run(&world, 20);
    tp::run(&world, 8);
}

#[test]
fn shaken_threads() {
    for seed in 1..=20 {
        shaken(seed, |options| World::create(1 + seed as u32 % 4, options).unwrap());
    }
}

#[test]
fn shaken_processes() {
    over_processes("shaken", 3);
}

#[test]
fn shaken_hosts() {
    over_hosts("shaken", Spread::Apart, 3);
}

#[test]
fn shaken_hosts_of_pairs() {
    over_hosts("shaken", Spread::Pairs, 3);
}

/// Not a test of its own: what each process of `over_processes` runs.
#[test]
fn rank_process() {
    pld_test_ranks::rank_process(|name, me| {
        if name == "shaken" {
            for seed in 1..=10 {
                shaken(seed, |options| {
                    // Ranks need not agree.
                    let chaos_seed = if u64::from(me.rank()) <= seed % 3 { options.chaos_seed } else { 0 };
                    let options = WorldOptions { chaos_seed, ..options.clone() };
                    me.join_as(&seed.to_string(), me.rank(), me.nranks(), &options).unwrap()
                });
            }
            return Ok(String::new());
        }
        let (name, options) = match name.strip_suffix(" on cards") {
            Some(name) => (name, cards::on_cards()),
            None => (name, WorldOptions::default()),
        };
        let world = me.join(&options).unwrap();
        let scenario = SCENARIOS.iter().find(|(candidate, _)| *candidate == name).expect("a scenario").1;
        scenario(&world);
        Ok(String::new())
    });
}

macro_rules! on_cards {
    ($($name:ident = $scenario:literal on $nranks:literal;)*) => {$(
        #[test]
        fn $name() {
            over_cards($scenario, $nranks);
        }
    )*};
}

on_cards! {
    moe_on_2_cards = "some moe" on 2;
    moe_on_4_cards = "some moe" on 4;
    cp_on_2_cards = "some cp" on 2;
    cp_on_4_cards = "some cp" on 4;
    tp_on_2_cards = "some tp" on 2;
    tp_on_4_cards = "some tp" on 4;
    vector_f_on_2_cards = "vector_f" on 2;
    vector_f_on_4_cards = "vector_f" on 4;
    vector_f_full_on_2_cards = "vector_f_full" on 2;
    vector_f_full_on_4_cards = "vector_f_full" on 4;
}

const NAMESPACES: Spread = Spread::Namespaces { ranks: 2 };

macro_rules! over_hosts {
    ($($name:ident = $scenario:literal: $spread:expr, $nranks:literal;)*) => {$(
        #[test]
        fn $name() {
            over_hosts($scenario, $spread, $nranks);
        }
    )*};
}

over_hosts! {
    moe_on_2_hosts = "moe": Spread::Apart, 2;
    moe_on_3_hosts = "moe": Spread::Apart, 3;
    moe_on_2_hosts_of_pairs = "moe": Spread::Pairs, 4;
    moe_in_2_namespaces = "moe": NAMESPACES, 4;
    moe_in_4_namespaces = "some moe": NAMESPACES, 8;
    cp_on_2_hosts = "cp": Spread::Apart, 2;
    cp_on_3_hosts = "cp": Spread::Apart, 3;
    cp_on_2_hosts_of_pairs = "cp": Spread::Pairs, 4;
    cp_in_2_namespaces = "cp": NAMESPACES, 4;
    cp_in_4_namespaces = "some cp": NAMESPACES, 8;
    tp_on_2_hosts = "tp": Spread::Apart, 2;
    tp_on_3_hosts = "tp": Spread::Apart, 3;
    tp_on_2_hosts_of_pairs = "tp": Spread::Pairs, 4;
    tp_in_2_namespaces = "tp": NAMESPACES, 4;
    tp_in_4_namespaces = "some tp": NAMESPACES, 8;
    vector_f_on_2_hosts = "vector_f_full": Spread::Apart, 2;
    vector_f_on_3_hosts = "vector_f": Spread::Apart, 3;
    vector_f_on_2_hosts_of_pairs = "vector_f_full": Spread::Pairs, 4;
    vector_f_in_2_namespaces = "vector_f_full": NAMESPACES, 4;
    vector_f_in_4_namespaces = "vector_f": NAMESPACES, 8;
}

macro_rules! suite {
    ($($scenario:ident = $run:path: threads [$($threads:ident($nranks:literal, $cores:literal))*]
        processes [$($processes:ident($size:literal))*];)*) => {$(
        mod $scenario {
            $(
                #[test]
                fn $threads() {
                    $run(&super::super::threads($nranks, $cores));
                }
            )*
            $(
                #[test]
                fn $processes() {
                    super::super::over_processes(stringify!($scenario), $size);
                }
            )*
        }
    )*};
}

mod suites {
    suite! {
        moe = super::super::moe::layers:
            threads [one_rank(1, 1) two_ranks(2, 1) three_ranks(3, 1) four_ranks(4, 1) eight_ranks(8, 1)
                two_ranks_three_cores(2, 3) four_ranks_two_cores(4, 2)]
            processes [two_processes(2) three_processes(3) four_processes(4) eight_processes(8)];
        vector_f = super::super::vector_f::small:
            threads [one_rank(1, 1) two_ranks(2, 1) three_ranks(3, 1) four_ranks(4, 1) eight_ranks(8, 1)
                three_ranks_three_cores(3, 3)]
            processes [two_processes(2) three_processes(3) four_processes(4) eight_processes(8)];
        vector_f_full = super::super::vector_f::full:
            threads [two_ranks(2, 1) four_ranks(4, 1)]
            processes [two_processes(2) four_processes(4)];
        cp = super::super::cp::epochs:
            threads [one_rank(1, 1) two_ranks(2, 1) three_ranks(3, 1) four_ranks(4, 1) eight_ranks(8, 1)
                four_ranks_three_cores(4, 3)]
            processes [two_processes(2) three_processes(3) four_processes(4) eight_processes(8)];
        tp = super::super::tp::layers:
            threads [one_rank(1, 1) two_ranks(2, 1) three_ranks(3, 1) four_ranks(4, 1) eight_ranks(8, 1)
                two_ranks_two_cores(2, 2) four_ranks_two_cores(4, 2)]
            processes [two_processes(2) three_processes(3) four_processes(4) eight_processes(8)];
    }
}
