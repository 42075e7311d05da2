//! Random tile and transfer programs on several ranks against the interpreter.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::compare::{assert_same, is_valid};
use crate::random_transfers::transfers;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_transfers_mean_what_the_interpreter_says(choices in prop::collection::vec(any::<u32>(), 40..400)) {
        let (program, nranks, args) = transfers(choices);
        prop_assume!(is_valid(&program, nranks));
        assert_same(&program, nranks, &args, &[]);
    }
}
