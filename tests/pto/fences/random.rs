//! Kernels of any kind.

use pld::codegen::pto::Target;
use pld::codegen::pto::check_fences::check;
use pld::codegen::pto::effects::Rules;
use pld::codegen::pto::fences::{insert, places, take_out};
use proptest::prelude::*;

use super::bodies::{self, Memories};
use crate::choices::Choices;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// What one pass puts in, the other one, which looks from the other side, finds complete and without one too many.
    #[test]
    fn both_passes_agree(stream in prop::collection::vec(any::<u32>(), 0..120), a5: bool) {
        let memories = Memories::new();
        let target = if a5 { Target::A5 } else { Target::A2A3 };
        let rules = Rules { program: &memories.program, target };
        let mut body = bodies::any(&memories, &mut Choices::new(stream));
        insert(&mut body, &rules);
        prop_assert_eq!(check("k", &body, &rules), Ok(()));
        for at in places(&body) {
            let mut lacking = body.clone();
            let fence = take_out(&mut lacking.code, at);
            prop_assert!(check("k", &lacking, &rules).is_err(), "{:?} at {} is not missed", fence, at);
        }
    }
}
