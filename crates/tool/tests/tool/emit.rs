use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Folder, Ran, examples, finish, golden, pld, tool};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn kernels_and_all_that_stands_beside_them() {
    let folder = Folder::new();
    let kernels = folder.path("kernels");
    let example = examples().join("moe_dispatch_combine.pld");
    let text = fs::read_to_string(example).unwrap();
    let ran = finish(tool(["emit", "--target", "a2a3", "-n", "4", "-", "-o", kernels.to_str().unwrap()]), &text);
    let names = ["moe_dispatch_combine.cpp", "pld_kernel.hpp", "pld_scalar.hpp", "manifest.json", "CMakeLists.txt"];
    assert_eq!(ran.ok(), names.map(|name| format!("{}\n", kernels.join(name).display())).concat());
    let [source, header, _, manifest, build] = names.map(|name| fs::read_to_string(kernels.join(name)).unwrap());
    assert!(
        source.contains("extern \"C\" __global__ AICORE void moe_push(") && source.contains("(<stdin>:"),
        "{source}"
    );
    assert!(header.contains("struct CommContext"));
    golden("emit-manifest.json", &manifest);
    golden("emit-CMakeLists.txt", &build);
}

#[test]
fn targets_and_checks_are_chosen() {
    let folder = Folder::new();
    let emit = |more: &str, name: &str| {
        let (example, kernels) = (examples().join("16_composed.pld"), folder.text(name));
        pld(&format!("emit {more} -n 4 {} -o {kernels}", example.display())).ok();
        fs::read_to_string(folder.path(name).join("composed.cpp")).unwrap()
    };
    let (checked, unchecked) = (emit("--target a5", "checked"), emit("--target a5 --unchecked", "unchecked"));
    assert!(checked.contains("for 4 ranks on a5.\n") && checked.contains("pld::is_stopped(stop)"), "{checked}");
    assert!(unchecked.contains("for 4 ranks on a5, unchecked.\n") && unchecked.contains("TWAIT("), "{unchecked}");
    // The vector unit of an A5 waits for itself.
    assert!(!checked.contains("pipe_barrier(PIPE_V)") && emit("--target a2a3", "old").contains("pipe_barrier(PIPE_V)"));
}

const ENTRY: &str = "program mistake
entry e(x: tensor[300, 512] f32 in, w: window[512, 512] bf16) {
  at t {
BODY
  }
}
host (xs: tensor[world, 300, 512] f32 in) {
  buf = alloc_window [512, 512] bf16
  ranks r in 0..world {
    w = window buf [512, 512] bf16
    dispatch e(xs[r], w) device r
  }
}
";

#[test]
fn what_a_target_cannot_do_is_said_and_nothing_is_written() {
    let folder = Folder::new();
    let refused = |target: &str, body: &str| {
        let file = folder.write("mistake.pld", ENTRY.replace("BODY", body));
        let said = pld(&format!("emit --target {target} {file} -o {}", folder.text("kernels"))).failed(2);
        assert!(!folder.path("kernels").exists());
        said
    };
    let large = "    a = load x[0, 0] [300, 512]\n    b = cast a bf16\n    store b -> w[0, 0]";
    let said = refused("a2a3", large);
    assert!(said.contains("mistake.pld") && said.contains("a2a3 has 196608"), "{said}");
    let said = refused("a5", large);
    assert!(said.contains("a5 has 262144"), "{said}");
    let adds = "    a = full bf16 [1, 512] 1.0\n    remote_store a -> w[0, 0] @0 add";
    let said = refused("a5", adds);
    assert!(said.contains("bf16") && said.contains("a5"), "{said}");
    assert!(pld("emit --target a4 race.pld -o kernels").failed(2).contains("[possible values: a2a3, a5]"));
    assert!(pld("emit --target a5 -n 65 race.pld -o kernels").failed(2).contains("65 is not in 1..=64"));
    assert!(pld("emit --target a5 unsound.pld -o kernels").failed(1).contains("PLD-V030"));
    assert!(pld("emit --target a5 race.pld -o race.pld/kernels").failed(4).contains("race.pld/kernels"));
}

/// A copy of PTO-ISA and a toolkit, as far as kernels need them: those of the simulation.
fn with_toolkit() -> Folder {
    let folder = Folder::new();
    symlink(repository().join("tests/pto_sim"), folder.path("include")).unwrap();
    symlink(repository().join("tests/cann_sim/bin"), folder.path("bin")).unwrap();
    folder
}

/// Runs CMake in a folder.
fn cmake(folder: &Folder, args: &[&str]) -> Ran {
    let mut command = Command::new("cmake");
    command.args(args).current_dir(folder.path("")).env_remove("ASCEND_HOME_PATH").env_remove("PTO_ISA_ROOT");
    finish(command, "")
}

#[test]
fn the_compiler_of_the_toolkit_builds_them() {
    let folder = with_toolkit();
    let toolkit = format!("-DASCEND_HOME_PATH={}", folder.path("").display());
    for target in ["a2a3", "a5"] {
        let (example, build) = (examples().join("allreduce.pld"), format!("build-{target}"));
        pld(&format!("emit --target {target} {} -o {}", example.display(), folder.text(target))).ok();
        cmake(&folder, &["-S", target, "-B", &build, &toolkit]).ok();
        cmake(&folder, &["--build", &build]).ok();
        assert!(folder.path(&build).join("l3_allreduce.elf").exists());
    }
    let said = cmake(&folder, &["-S", "a5", "-B", "none"]).failed(1);
    assert!(said.contains("set PTO_ISA_ROOT to a copy of PTO-ISA"), "{said}");
    let root = format!("-DPTO_ISA_ROOT={}", folder.path("").display());
    let said = cmake(&folder, &["-S", "a5", "-B", "none", &root]).failed(1);
    assert!(said.contains("set ASCEND_HOME_PATH to the CANN toolkit, or"), "{said}");
}

/// Builds the kernels of all programs of a folder for this machine.
fn all_build(programs: &str, target: &str) {
    let folder = with_toolkit();
    let mut lists = String::from("cmake_minimum_required(VERSION 3.18)\nproject(all LANGUAGES CXX)\n");
    let mut names = Vec::new();
    for file in fs::read_dir(repository().join(programs)).unwrap() {
        let path = file.unwrap().path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".pld")) else { continue };
        let ranks = if name.contains("domains") { 4 } else { 2 + names.len() % 3 };
        pld(&format!("emit --target {target} -n {ranks} {} -o {}", path.display(), folder.text(name))).ok();
        lists += &format!("add_subdirectory({name})\n");
        names.push(name.to_owned());
    }
    assert!(names.len() > 20, "{names:?}");
    folder.write("CMakeLists.txt", lists);
    let root = format!("-DPTO_ISA_ROOT={}", folder.path("").display());
    cmake(&folder, &["-S", ".", "-B", "build", "-DPLD_CPU_SIM=ON", &root]).ok();
    for name in names {
        let build = folder.path("build").join(&name);
        cmake(&folder, &["--build", build.to_str().unwrap()]).ok();
        let is_built = |file: fs::DirEntry| file.file_name().to_string_lossy().ends_with(".so");
        assert!(fs::read_dir(build).unwrap().any(|file| is_built(file.unwrap())), "{name}");
    }
}

#[test]
fn examples_build_for_a2a3() {
    all_build("examples/pld", "a2a3");
}

#[test]
fn vectors_build_for_a5() {
    all_build("tests/conformance", "a5");
}
