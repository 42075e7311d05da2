//! Kernels for NPUs: every program that the repository has becomes kernels of every target.

#[path = "../support/choices.rs"]
mod choices;
mod fences;
mod kernels;
#[path = "../support/memory.rs"]
mod memory;
mod programs;
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
                if let Ok(dir) = std::env::var("PTO_OUT") {
                    std::fs::write(format!("{dir}/{name}_{nranks}_{}.cpp", target.name()), module.source).unwrap();
                    std::fs::write(format!("{dir}/{}", module.header.0), module.header.1).unwrap();
                }
            }
        }
    }
}
