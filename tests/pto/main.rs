//! Kernels for NPUs: every program that the repository has becomes kernels of every target.

#[path = "../support/choices.rs"]
mod choices;
mod fences;
mod kernels;
mod programs;
#[path = "../support/random_scalars.rs"]
mod random_scalars;
#[path = "../support/random_transfers.rs"]
mod random_transfers;
#[path = "../support/ranks.rs"]
#[allow(dead_code, reason = "only memory and arguments are used")]
mod ranks;
mod runs;
#[path = "../support/text.rs"]
mod text;

use pld::codegen::pto::{Options, Target, export};

/// Worlds of these sizes.
const WORLDS: [u32; 3] = [2, 3, 4];

#[test]
fn every_program_becomes_kernels() {
    for (name, text) in programs::all() {
        for target in Target::ALL {
            for nranks in WORLDS {
                let Some(program) = programs::parsed(&text, nranks) else { continue };
                let options = Options { target, nranks, checked: true };
                let export = export(&program, &options);
                let module = export.unwrap_or_else(|error| panic!("{name} on {}: {error}", target.name())).module;
                assert!(!module.kernels.is_empty(), "{name}");
            }
        }
    }
}
