//! Compiles what rows need in C: the loop that the routing is compared with, as users compile; what an engine computes,
//! as `peers/install.sh` compiles the same; collectives in plain shared memory; and launches, in C and in C++.

fn main() {
    let compile = |file: &str, level: u32| {
        let mut build = cc::Build::new();
        build.file(file).opt_level(level).debug(false).warnings(true).include("../include");
        if file.ends_with(".cpp") {
            build.cpp(true).flag("-std=c++17").include("../bindings/cpp/include");
        }
        if level == 3 {
            build.flag("-march=native");
        }
        build.compile(file.rsplit('/').next().expect("a file has a name"));
        println!("cargo:rerun-if-changed={file}");
    };
    compile("rows/tasks/routing.c", 2);
    compile("rows/tasks/engine.c", 3);
    compile("rows/collectives/ideal.c", 3);
    compile("rows/core/launch.c", 2);
    compile("rows/core/launch.cpp", 2);
    println!("cargo:rerun-if-changed=rows/tasks/engine.h");
    println!("cargo:rerun-if-changed=../bindings/cpp/include");
    println!("cargo:rerun-if-changed=../include/pld.h");
}
