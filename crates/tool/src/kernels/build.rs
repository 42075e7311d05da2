//! The CMake file of kernels.

use pld::codegen::pto::{Module, Target};
use pld::transport::hccl::compiler::{Architecture, LINKER_ARGUMENTS};

const TEMPLATE: &str = include_str!("CMakeLists.txt");

/// What builds a module, with CANN's compiler or for this machine.
pub fn build_file(module: &Module, target: Target) -> String {
    let name = module.file.strip_suffix(".cpp").unwrap_or(&module.file);
    let (architecture, generation) = match target {
        Target::A2A3 => (Architecture::A2A3, "2"),
        Target::A5 => (Architecture::A5, "5"),
    };
    TEMPLATE
        .replace("@NAME@", name)
        .replace("@COMPILER_ARGUMENTS@", &architecture.compiler_arguments().join(" "))
        .replace("@LINKER_ARGUMENTS@", &LINKER_ARGUMENTS.join(" "))
        .replace("@GENERATION@", generation)
        .replace("@UB_BYTES@", &target.ub_bytes().to_string())
}
