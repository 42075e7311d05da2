//! Collectives between simulated cards, one process a card: the published vectors, and what the targets cannot do.

use pld::error::{ErrorKind, Result};
use pld::runtime::{CompileOptions, Executable, World};
use pld_test_ranks::Rank;

use crate::calls::{Form, case};
use crate::case::{Case, program};
use crate::join::Join;
use crate::processes::Scenario;
use crate::{cards, matrix, rows, vectors};
use pld::ir::DType;

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("C1 to C3 on cards", |me| run(me, |n| vectors::c1_to_c3().iter().map(|v| v.in_task(n)).collect())),
    ("C4 to C6 on cards", |me| run(me, |n| vectors::c4_to_c6().iter().map(|v| v.in_task(n)).collect())),
    ("C7 to C11 on cards", |me| run(me, |n| vectors::c7_to_c11().iter().map(|v| v.in_task(n)).collect())),
    ("C12 on cards", |me| run(me, |n| vec![rows::c12_in_task(n)])),
    ("C13 to C15 on cards", |me| run(me, |n| vectors::c13_to_c15().iter().map(|v| v.in_task(n)).collect())),
    ("all kinds on cards", |me| run(me, all_kinds)),
    ("types on cards", types),
];

fn run(me: &Rank, cases: impl Fn(u32) -> Vec<Case>) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    for case in cases(me.nranks()) {
        let executable = case.compile(&world, &CompileOptions::default());
        case.launch_on_card(&world, &executable, me.rank() as usize)?;
    }
    Ok("right".into())
}

/// Every kind of collective for the types that cards compute with.
fn all_kinds(nranks: u32) -> Vec<Case> {
    let dtypes = [DType::F32, DType::F16, DType::BF16, DType::I32].into_iter();
    dtypes.map(|dtype| case(&matrix::calls(nranks, dtype, 515), nranks, Form::Host { cores: 2 }, true)).collect()
}

/// A type that the vector unit does not add is computed element by element, or refused by all ranks with the reason.
fn types(me: &Rank) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let mut left = Vec::new();
    for dtype in [DType::I8, DType::I64] {
        let case = case(&matrix::calls(me.nranks(), dtype, 17), me.nranks(), Form::Task, true);
        match compile(&case, &world) {
            Ok(executable) => {
                case.launch_on_card(&world, &executable, me.rank() as usize)?;
                left.push(format!("{dtype} right"));
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unsupported, "{}", error.message);
                left.push(format!("{dtype}: {}", error.message));
            }
        }
    }
    Ok(left.join("; "))
}

fn compile(case: &Case, world: &std::sync::Arc<World>) -> Result<std::sync::Arc<Executable>> {
    Executable::compile(&program(&case.text), world, &CompileOptions::default())
}

fn assert_right(scenario: &str, nranks: u32) {
    for outcome in cards::job(scenario, nranks).outcomes() {
        assert_eq!(outcome.done(), "right");
    }
}

macro_rules! vectors {
    ($($name:ident = $scenario:literal on $nranks:literal;)*) => {$(
        #[test]
        fn $name() {
            assert_right($scenario, $nranks);
        }
    )*};
}

vectors! {
    c1_to_c3_on_2_cards = "C1 to C3 on cards" on 2;
    c1_to_c3_on_4_cards = "C1 to C3 on cards" on 4;
    c4_to_c6_on_2_cards = "C4 to C6 on cards" on 2;
    c4_to_c6_on_4_cards = "C4 to C6 on cards" on 4;
    c7_to_c11_on_2_cards = "C7 to C11 on cards" on 2;
    c7_to_c11_on_4_cards = "C7 to C11 on cards" on 4;
    c12_on_2_cards = "C12 on cards" on 2;
    c12_on_4_cards = "C12 on cards" on 4;
    c13_to_c15_on_2_cards = "C13 to C15 on cards" on 2;
    c13_to_c15_on_4_cards = "C13 to C15 on cards" on 4;
    all_kinds_on_2_cards = "all kinds on cards" on 2;
    all_kinds_on_3_cards = "all kinds on cards" on 3;
}

#[test]
fn types_that_cards_lack() {
    let outcomes = cards::job("types on cards", 2).outcomes();
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0].done(), "?");
}
