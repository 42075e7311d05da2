//! Kernels are built once, whoever wants them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pld::error::{ErrorKind, Result};
use pld::transport::hccl::compiler::{Architecture, Compiler, Source};

use super::{Processes, World, toolkit};
use crate::ranks::{Job, Rank, Scenario, list};

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("build", build),
    ("build_differently", build_differently),
    ("build_wrong", |_| {
        let wrong = Source { text: "int broken( {\n", ..SOURCE };
        Compiler::find()?.build(&wrong).map(|_| "built".into())
    }),
];

const SOURCE: Source<'static> = Source {
    name: "answer",
    text: "#include \"answer.hpp\"\nextern \"C\" int answer_sim() { return ANSWER; }\n",
    headers: &[("answer.hpp", "#define ANSWER 42\n")],
    architecture: Architecture::A2A3,
};

fn build(rank: &Rank) -> Result<String> {
    rank.say("ready");
    rank.hear("go");
    let file = Compiler::find()?.build(&SOURCE)?;
    assert_eq!(Compiler::find()?.build(&SOURCE)?, file);
    Ok(file.display().to_string())
}

/// Whatever goes into a kernel makes it another one.
fn build_differently(rank: &Rank) -> Result<String> {
    let found = Compiler::find()?;
    let sources = [
        SOURCE,
        Source { text: "extern \"C\" int answer_sim() { return 41; }\n", ..SOURCE },
        Source { headers: &[("answer.hpp", "#define ANSWER 43\n")], ..SOURCE },
        Source { architecture: Architecture::A5, ..SOURCE },
        Source { name: "other", ..SOURCE },
    ];
    let mut files = sources.iter().map(|source| found.build(source)).collect::<Result<Vec<_>>>()?;
    let values: Vec<_> = files.iter().map(|file| answer(file)).collect();
    assert_eq!(values, [42, 41, 43, 42, 42]);
    files.dedup();
    files.sort();
    assert_eq!(files.len(), 5);
    // PTO-ISA's headers too.
    let isa = rank.home().join("isa");
    let header = isa.join("include/pto/isa.hpp");
    fs::create_dir_all(header.parent().unwrap()).unwrap();
    for text in ["// one\n", "// another\n"] {
        fs::write(&header, text).unwrap();
        // SAFETY: the process has one thread that looks into the environment.
        unsafe { std::env::set_var("PTO_ISA_ROOT", &isa) };
        let file = Compiler::find()?.build(&SOURCE)?;
        assert!(!files.contains(&file));
        files.push(file);
    }
    Ok("passed".into())
}

/// What the built file says.
fn answer(file: &Path) -> i32 {
    let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    // SAFETY: the file is a library of the simulation, and its function has this type.
    unsafe {
        let symbol = libc::dlsym(libc::dlopen(path.as_ptr(), libc::RTLD_NOW), c"answer_sim".as_ptr());
        assert!(!symbol.is_null());
        std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> i32>(symbol)()
    }
}

/// A compiler that counts how often it compiles.
fn counting_compiler(home: &Path) -> PathBuf {
    let bin = home.join("bin");
    let real = toolkit::toolkit().join("bin");
    fs::create_dir(&bin).unwrap();
    for tool in ["ccec", "ld.lld"] {
        let count = format!("case $1 in --version) ;; *) echo run >> {}/{tool}.runs ;; esac", home.display());
        let script = format!("#!/bin/sh\n{count}\nexec {}/{tool} \"$@\"\n", real.display());
        fs::write(bin.join(tool), script).unwrap();
        fs::set_permissions(bin.join(tool), fs::Permissions::from_mode(0o700)).unwrap();
    }
    bin.join("ccec")
}

fn runs(home: &Path, tool: &str) -> usize {
    fs::read_to_string(home.join(format!("{tool}.runs"))).unwrap_or_default().lines().count()
}

#[test]
fn processes_build_together_once() {
    let mut world = World { job: Job::new() };
    let home = world.job.home().to_owned();
    let ccec = counting_compiler(&home);
    let more = [("PLD_CCEC", ccec.to_str().unwrap())];
    (0..4).for_each(|rank| world.spawn_rank("build", rank, 4, &more));
    world.job.hear_all("ready");
    world.job.say("go");
    let outcomes = world.outcomes();
    let file = outcomes[0].done();
    outcomes.iter().for_each(|outcome| assert_eq!(outcome.done(), file));
    assert_eq!((runs(&home, "ccec"), runs(&home, "ld.lld")), (1, 1));
    let kept = list(&home.join("cache"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    let files = list(&home.join("cache").join(&kept[0]));
    assert_eq!(files, ["answer.cpp", "answer.elf", "answer.hpp", "answer.o", "log.txt"]);
    // A later one finds it.
    world.spawn_rank("build", 0, 1, &more);
    assert_eq!(world.job.outcome(4).done(), file);
    assert_eq!(runs(&home, "ccec"), 1);
}

#[test]
fn what_differs_is_built_again() {
    World::start("build_differently", 1, Processes::One, &[]).succeed();
}

#[test]
fn a_kernel_that_does_not_compile() {
    let mut world = World { job: Job::new() };
    let home = world.job.home().to_owned();
    let ccec = counting_compiler(&home);
    let more = [("PLD_CCEC", ccec.to_str().unwrap())];
    (0..2).for_each(|rank| world.spawn_rank("build_wrong", rank, 2, &more));
    for outcome in world.outcomes() {
        let message = outcome.failed("Unsupported");
        let expected =
            format!("{} cannot build the kernels of answer (exit status: 1):\n    answer.cpp:1:", ccec.display());
        assert!(message.starts_with(&expected) && message.contains("int broken( {"), "{message}");
    }
    // Who waited for the one that failed has tried too.
    assert_eq!(runs(&home, "ccec"), 2);
    assert_eq!(list(&home.join("cache")), [""; 0]);
}

#[test]
fn where_built_kernels_are_kept() {
    let unnamed = ("PLD_KERNEL_CACHE", "");
    let home = std::env::temp_dir().join(format!("pld-test-cache-{}", std::process::id()));
    let home = home.to_str().unwrap();
    let variables: [&[_]; 3] = [
        &[("PLD_KERNEL_CACHE", home)],
        &[unnamed, ("XDG_CACHE_HOME", home), ("HOME", "/is/not/there")],
        &[unnamed, ("XDG_CACHE_HOME", ""), ("HOME", home)],
    ];
    for (variables, folder) in variables.into_iter().zip(["", "/pld", "/.cache/pld"]) {
        let mut world = World::start("build", 1, Processes::One, variables);
        world.job.say("go");
        let outcomes = world.outcomes();
        let file = outcomes[0].done();
        assert!(file.starts_with(&format!("{home}{folder}/answer-")), "{file}");
        fs::remove_dir_all(home).unwrap();
    }
    let mut world = World::start("build", 1, Processes::One, &[unnamed, ("XDG_CACHE_HOME", ""), ("HOME", "")]);
    world.job.say("go");
    let message = "no place for built kernels: set PLD_KERNEL_CACHE or HOME";
    assert_eq!(world.outcomes()[0].failed("Unavailable"), message);
}

#[test]
fn chips() {
    let of = |soc| Architecture::of(soc);
    for soc in ["Ascend910B1", "Ascend910B4-1", "Ascend910_9391"] {
        assert_eq!(of(soc), Ok(Architecture::A2A3), "{soc}");
    }
    assert_eq!(of("Ascend910_9589"), Ok(Architecture::A5));
    assert_eq!(of("Ascend950PR_9599"), Ok(Architecture::A5));
    let error = of("Ascend310P3").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.starts_with("no kernels are made for Ascend310P3; there are those for Ascend910"), "{error}");
}
