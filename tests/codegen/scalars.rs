//! Random scalar programs against the interpreter.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::compare::{assert_same, is_valid};
use crate::random_scalars::{args, program};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_scalar_programs_mean_what_the_interpreter_says(choices in prop::collection::vec(any::<u32>(), 0..300)) {
        let program = program(choices);
        prop_assume!(is_valid(&program, 1));
        assert_same(&program, 1, &args(), &[]);
    }
}
