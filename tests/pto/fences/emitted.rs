//! Fences of every kernel that the repository's programs become.

use pld::codegen::pto::check_fences::check;
use pld::codegen::pto::effects::Rules;
use pld::codegen::pto::fences::{places, take_out};
use pld::codegen::pto::{Export, Options, Target, bodies, export};
use pld::error::ErrorKind;

use crate::programs;

/// Whichever fence a kernel loses, it is missed: none is there for nothing, and none is lost in silence.
#[test]
fn each_fence_is_missed() {
    let mut counts = (0, 0);
    for (name, text) in programs::all() {
        for target in Target::ALL {
            let options = Options { target, nranks: 4, checked: true };
            let Some(program) = programs::parsed(&text, options.nranks) else { continue };
            let exported = export(&program, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
            let Export { program, layout, .. } = exported;
            let kernels = bodies(&program, &layout, &options).expect("they were made before");
            let rules = Rules { program: &program, target };
            for (kernel, body) in kernels {
                counts.0 += 1;
                for at in places(&body) {
                    let mut lacking = body.clone();
                    let fence = take_out(&mut lacking.code, at);
                    let Err(error) = check(&kernel, &lacking, &rules) else {
                        panic!("{name}: {fence:?} at {at} of {kernel} is not missed");
                    };
                    let is_named = error.message.starts_with(&format!("kernel {kernel} lacks a fence between "));
                    assert!(error.kind == ErrorKind::Internal && is_named, "{error}");
                    counts.1 += 1;
                }
            }
        }
    }
    let (kernels, fences) = counts;
    assert!(kernels > 100 && fences > 1000, "{kernels} kernels, {fences} fences");
}
