//! The verifier on whole programs: right ones give no finding, wrong ones give all of theirs.

#[path = "support/chaos.rs"]
mod chaos;
#[path = "support/programs.rs"]
mod programs;

use std::path::Path;

use pld::ir::parse::parse;
use pld::ir::*;
use pld::verify::{rules, verify};
use proptest::prelude::*;

const WORLDS: [Option<u32>; 6] = [None, Some(1), Some(2), Some(3), Some(4), Some(8)];

#[test]
fn examples_give_no_finding() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pld");
    let mut examples = 0;
    for entry in std::fs::read_dir(folder).expect("the examples are there") {
        let path = entry.expect("a directory entry").path();
        let text = std::fs::read_to_string(&path).expect("an example is text");
        let program = parse(&text, "example.pld").unwrap_or_else(|m| panic!("{}: {}", path.display(), m[0]));
        for world in WORLDS {
            let findings = verify(&program, world);
            assert!(findings.is_empty(), "{} at {world:?}: {}", path.display(), findings[0]);
        }
        examples += 1;
    }
    assert!(examples > 0);
}

#[test]
fn programs_of_documents_give_no_finding() {
    for document in ["docs/language.md", "docs/collectives.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
        let document = std::fs::read_to_string(path).expect("the document is there");
        let programs = document.split("```pld\n").skip(1).filter_map(|rest| rest.split("```").next());
        let programs: Vec<&str> = programs.collect();
        assert!(!programs.is_empty());
        for text in programs {
            let program = parse(text, "document.md").unwrap_or_else(|m| panic!("{}", m[0]));
            for world in WORLDS {
                let findings = verify(&program, world);
                assert!(findings.is_empty(), "{world:?}: {}", findings[0]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The random programs keep to the rules, but for waits that nobody ends: any other error is one of the verifier.
    #[test]
    fn right_programs_give_no_error(choices in proptest::collection::vec(any::<u8>(), 0..400)) {
        let program = programs::program(&choices);
        for world in WORLDS {
            let of_waits = [rules::NEVER_NOTIFIED.code, rules::EXPECTATION.code];
            let wrong = |d: &Diagnostic| d.severity == Severity::Error && !of_waits.contains(&d.code);
            let error = verify(&program, world).into_iter().find(wrong);
            if let Some(error) = error {
                return Err(TestCaseError::fail(format!("{world:?}: {error}\n{}", print::print(&program))));
            }
        }
    }

    /// Whatever the builder accepts gets an answer, the same each time, and in order.
    #[test]
    fn any_program_gets_its_findings(choices in proptest::collection::vec(any::<u8>(), 0..600)) {
        let program = chaos::program(&choices);
        for world in WORLDS {
            let findings = verify(&program, world);
            prop_assert_eq!(&findings, &verify(&program, world));
            for finding in findings {
                prop_assert!(!finding.message.contains("  "), "a name is missing: {}", finding);
            }
        }
    }
}
