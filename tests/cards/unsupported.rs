//! What a card cannot do is refused by all ranks when they compile, with what could be done instead.

use pld::error::{ErrorKind, Result};
use pld::runtime::CompileOptions;
use pld_test_ranks::Rank;

use crate::join::Join;
use crate::programs::compile;
use crate::{Scenario, cards};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("too_large", |me| refused(me, TOO_LARGE)),
    ("writes_a_variable", |me| refused(me, VARIABLE)),
    ("adds_bf16", |me| refused(me, ADDS_BF16)),
    ("no_cann", |me| me.join(&cards::on_cards()).map(|_| String::new())),
];

const TOO_LARGE: &str = "program large
entry e(x: tensor[8, 4096] f32 inout) {
  at e {
    a = load x[0, 0] [8, 4096]
    b = load x[0, 0] [8, 4096]
    c = add a, b
    store c -> x[0, 0]
  }
}
host (xs: tensor[world, 8, 4096] f32 inout) { ranks r in 0..world { dispatch e(xs[r]) device r } }
";

const VARIABLE: &str = "program variable
entry e(x: tensor[4] i32 inout) {
  last = var i32 = 0
  at e { last = x[0] }
}
host (xs: tensor[world, 4] i32 inout) { ranks r in 0..world { dispatch e(xs[r]) device r } }
";

const ADDS_BF16: &str = "program adds
entry e(x: tensor[1, 64] bf16 in, w: window[1, 64] bf16) {
  at e {
    a = load x[0, 0] [1, 64]
    remote_store a -> w[0, 0] @0 add
  }
}
host (xs: tensor[world, 1, 64] bf16 in) {
  buf = alloc_window [1, 64] bf16
  ranks r in 0..world {
    w = window buf [1, 64] bf16
    dispatch e(xs[r], w) device r
  }
}
";

/// The message of refusal, which leaves a world that can go on.
fn refused(me: &Rank, text: &str) -> Result<String> {
    let world = me.join(&cards::on_cards())?;
    let error = compile(text, &world, &CompileOptions::default()).map(drop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    compile("program nothing\nhost () {\n}\n", &world, &CompileOptions::default())?.launch(&[])?;
    Ok(error.message)
}

fn refusal(scenario: &str, chip: &str) -> String {
    let mut job = cards::job_with(scenario, 2, &[("CANN_SIM_SOC", chip)]);
    let outcomes = job.outcomes();
    assert_eq!(outcomes[0], outcomes[1]);
    outcomes[0].done().to_owned()
}

#[test]
fn tiles_that_do_not_fit() {
    let message = refusal("too_large", "Ascend910B3");
    for part in ["a2a3", "393216", "196608"] {
        assert!(message.contains(part), "{message}");
    }
    let message = refusal("too_large", "Ascend950PR_9589");
    for part in ["a5", "393216", "262144"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_task_that_writes_a_variable_of_its_entry() {
    let message = refusal("writes_a_variable", "Ascend910B3");
    assert!(message.contains("last") && message.contains("tensor"), "{message}");
}

#[test]
fn bf16_is_not_added_by_a5() {
    let message = refusal("adds_bf16", "Ascend950PR_9589");
    assert!(message.contains("bf16") && message.contains("f32"), "{message}");
}

#[test]
fn a_machine_without_cann() {
    let job = |home: &str| cards::job_with("no_cann", 2, &[("ASCEND_HOME_PATH", home)]).outcomes();
    for outcome in job("/nowhere") {
        let message = outcome.failed("Unavailable");
        assert!(message.contains("libascendcl") && message.contains("/nowhere"), "{message}");
    }
}
