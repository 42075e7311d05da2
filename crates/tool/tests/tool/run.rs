use std::fs;

use serde_json::Value;

use crate::npy::{self, Npy, floats};
use crate::support::{Folder, examples, finish, pld, programs, tool};

/// What an example needs besides its text.
fn needs(name: &str) -> &'static str {
    match name {
        "moe_dispatch_combine.pld" => " --stub-externs --set indices=0 --set tokens=3",
        "tp_gemm_allreduce.pld" => " --stub-externs",
        _ => "",
    }
}

#[test]
fn every_example_is_the_same_with_threads_and_processes() {
    let mut count = 0;
    for entry in fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let run = |more: &str| pld(&format!("run {} -n 2{}{more}", path.display(), needs(name))).ok();
        let threads = run("");
        assert!(threads.lines().count() >= 2 && threads.lines().all(|line| line.contains(" crc32 ")), "{threads}");
        assert_eq!(run(" --processes --chaos 5"), threads, "{name}");
        assert_eq!(run(" --inputs random --seed 4 --cores 2"), run(" --inputs random --seed 4"), "{name}");
        count += 1;
    }
    assert!(count > 15, "{count} examples");
}

#[test]
fn more_ranks_than_cores() {
    let sum = examples().join("allreduce.pld");
    let out = pld(&format!("run {} -n 24 --launches 3", sum.display())).ok();
    let checksums: Vec<&str> = out.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert!(checksums.len() == 24 && checksums.iter().all(|sum| *sum == checksums[0]), "{out}");
    assert_eq!(pld(&format!("run {} -d 0,1,2", sum.display())).ok().lines().count(), 3);
    assert!(pld(&format!("run {} -d 0,1,0", sum.display())).failed(2).contains("names a device twice"));
}

#[test]
fn checksums_are_crc32_of_the_elements() {
    let out = pld("run scaled.pld --set N=3 --set xs=1.5 --set factor=2 --set twice=false").ok();
    // y[r, i] = 3 + r, n[r] = 1.
    let sum = |bytes: &[u8]| format!("{:08x}", crc32fast::hash(bytes));
    let wanted = [
        format!("ys rank 0 f32[3] crc32 {}\n", sum(&floats([3.0; 3]))),
        format!("ys rank 1 f32[3] crc32 {}\n", sum(&floats([4.0; 3]))),
        format!("ns rank 0 i64[1] crc32 {}\n", sum(&1i64.to_le_bytes())),
        format!("ns rank 1 i64[1] crc32 {}\n", sum(&1i64.to_le_bytes())),
    ];
    assert_eq!(out, wanted.concat());
}

/// `x` of 2 ranks, and `y` of the program `scaled` with factor 3.
fn golden_files(folder: &Folder) -> (String, String) {
    let x = |rank: usize, i: usize| 10.0 * rank as f32 + i as f32 + 0.25;
    let all = || (0..2).flat_map(|rank| (0..5).map(move |i| (rank, i)));
    let shape = "(2, 5)";
    npy::write(&folder.path("in.npz"), &[("xs", Npy("<f4", shape, floats(all().map(|(r, i)| x(r, i)))))]);
    let y = floats(all().map(|(r, i)| x(r, i) * 3.0 + r as f32));
    let n: Vec<u8> = [4i64, 4].iter().flat_map(|launch| launch.to_le_bytes()).collect();
    npy::write(&folder.path("out.npz"), &[("ys", Npy("<f4", shape, y)), ("ns", Npy("<i8", "(2, 1)", n))]);
    (folder.text("in.npz"), folder.text("out.npz"))
}

#[test]
fn files_bind_dimensions_and_are_compared() {
    let folder = Folder::new();
    let (input, expected) = golden_files(&folder);
    let base = format!("run scaled.pld --launches 4 --inputs {input} --expect {expected} --set twice=false");
    for more in ["", " --processes"] {
        let out = pld(&format!("{base} --set factor=3{more}")).ok();
        assert!(out.contains("ys rank 1 f32[5] crc32 ") && !out.contains("mismatch"), "{out}");
        let wrong = pld(&format!("{base} --set factor=3.5{more}"));
        assert_eq!(wrong.code, Some(1));
        let report = "mismatch: ys of rank 1: 5 of 5 elements not as expected\n    \
                      [4]: expected 43.75, is 50.875, off by 7.125\n    [3]: ";
        assert!(wrong.stdout.contains(report), "{}", wrong.stdout);
        assert!(wrong.stdout.contains("ys of rank 0: 5 of 5") && !wrong.stdout.contains("ns of"), "{}", wrong.stdout);
        pld(&format!("{base} --set factor=3.001 --rtol 0.01{more}")).ok();
        pld(&format!("{base} --set factor=3.001 --rtol 0 --atol 0.02{more}")).ok();
    }
}

#[test]
fn json_has_the_worst_elements() {
    let folder = Folder::new();
    let (input, expected) = golden_files(&folder);
    let ran =
        pld(&format!("run scaled.pld --inputs {input} --expect {expected} --set twice=false --set factor=inf --json"));
    assert_eq!(ran.code, Some(1));
    let all: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&all["program"], &all["ranks"], &all["launches"]), (&"scaled".into(), &2.into(), &1.into()));
    let tensor = &all["tensors"][1];
    assert_eq!((&tensor["name"], &tensor["rank"], &tensor["dtype"]), (&"ys".into(), &1.into(), &"f32".into()));
    assert!(tensor["shape"] == serde_json::json!([5]) && tensor["crc32"].as_str().map(str::len) == Some(8));
    let wrong = &all["mismatches"][0];
    assert_eq!((&wrong["name"], &wrong["count"], &wrong["elements"]), (&"ys".into(), &5.into(), &5.into()));
    let worst = &wrong["worst"][0];
    assert_eq!((&worst["index"], &worst["actual"]), (&serde_json::json!([0]), &"inf".into()));
    assert_eq!((&worst["expected"], &worst["off"]), (&serde_json::json!(0.75), &"inf".into()));
    assert_eq!(all["mismatches"][2]["worst"][0]["expected"], 4, "ns, by launches");
}

#[test]
fn outputs_are_files_for_numpy() {
    let folder = Folder::new();
    for more in ["", " --processes"] {
        let out = folder.text("written.npz");
        pld(&format!("run scaled.pld -n 3 --set N=2 --set xs=0.5 --set twice=true --output {out}{more}")).ok();
        let (header, bytes) = npy::read(&folder.path("written.npz"), "ys");
        assert_eq!(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, ), }");
        assert_eq!(bytes, floats([1.0, 1.0, 3.0, 3.0, 5.0, 5.0]));
        // What is written is what is expected next time.
        pld(&format!("run scaled.pld -n 3 --set N=2 --set xs=0.5 --set twice=true --expect {out}")).ok();
    }
    let cp = examples().join("cp_prefill_exchange.pld");
    pld(&format!("run {} --output {}", cp.display(), folder.text("bf16.npz"))).ok();
    assert!(npy::read(&folder.path("bf16.npz"), "context").0.starts_with("{'descr': '<u2'"));
    assert!(pld("run scaled.pld --output /nonexistent/o.npz").failed(4).contains("/nonexistent/o.npz: No such file"));
}

#[test]
fn files_that_do_not_fit() {
    let folder = Folder::new();
    let mistake = |name: &str, arrays: &[(&str, Npy)], more: &str| {
        npy::write(&folder.path(name), arrays);
        pld(&format!("run scaled.pld --inputs {}{more}", folder.text(name))).failed(2)
    };
    let three = || floats([1.0; 6]);
    let xs = |descr, shape, bytes| [("xs", Npy(descr, shape, bytes))];
    let stderr = mistake("type.npz", &xs("<f8", "(2, 3)", vec![0; 48]), "");
    assert!(stderr.ends_with("type.npz: xs: float32[2, 3] is needed, not float64[2, 3]\n"), "{stderr}");
    let stderr = mistake("ranks.npz", &xs("<f4", "(2, 3)", three()), " -n 3");
    assert!(stderr.ends_with("ranks.npz: xs: float32[3, 3] is needed, not float32[2, 3]\n"), "{stderr}");
    let stderr = mistake("flat.npz", &xs("<f4", "(6,)", three()), "");
    assert!(stderr.contains("is needed, not float32[6]"), "{stderr}");
    let stderr = mistake("name.npz", &[("x", Npy("<f4", "(2, 3)", three()))], "");
    assert!(stderr.ends_with("name.npz: the program has no tensor x; it has xs, ys, ns\n"), "{stderr}");
    let stderr = mistake("missing.npz", &[("ys", Npy("<f4", "(2, 3)", three()))], "");
    assert!(stderr.ends_with("missing.npz: xs is missing: float32[2, 3]\n"), "{stderr}");
    let both = [("xs", Npy("<f4", "(2, 3)", three())), ("ys", Npy("<f4", "(2, 2)", floats([0.0; 4])))];
    let stderr = mistake("dims.npz", &both, "");
    assert!(stderr.ends_with("dims.npz: ys has 2 for N, which is 3 already\n"), "{stderr}");
    let stderr = mistake("set.npz", &xs("<f4", "(2, 3)", three()), " --set N=4");
    assert!(stderr.ends_with("set.npz: xs has 3 for N, which is 4 already\n"), "{stderr}");

    let no_zip = folder.write("no.npz", "no zip");
    assert!(pld(&format!("run scaled.pld --inputs {no_zip}")).failed(4).contains("no.npz: no npz file"));
    npy::write(&folder.path("expect.npz"), &[("ys", Npy("<f4", "(2, 7)", floats([0.0; 14])))]);
    let stderr = pld(&format!("run scaled.pld --expect {}", folder.text("expect.npz"))).failed(2);
    assert!(stderr.ends_with("ys: a shape of [2, 4] is needed, not [2, 7]\n"), "{stderr}");
    npy::write(&folder.path("expect.npz"), &[("xs", Npy("<f4", "(2, 4)", floats([0.0; 8])))]);
    let stderr = pld(&format!("run scaled.pld --expect {}", folder.text("expect.npz"))).failed(2);
    assert!(stderr.ends_with("the program writes no tensor xs; it writes ys, ns\n"), "{stderr}");
    npy::write(&folder.path("expect.npz"), &[]);
    let stderr = pld(&format!("run scaled.pld --expect {}", folder.text("expect.npz"))).failed(2);
    assert!(stderr.ends_with("there is nothing in it to compare with\n"), "{stderr}");
}

#[test]
fn settings_that_do_not_fit() {
    let mistake = |set: &str| pld(&format!("run scaled.pld --set {set}")).failed(2);
    assert!(mistake("N").contains("NAME=VALUE is needed"));
    assert!(mistake("N=-1").contains("N is a dimension, 0 or more"));
    assert!(mistake("factor=two").contains("factor is f32"));
    assert!(mistake("twice=1").contains("twice is bool"));
    assert!(mistake("launch=1.5").contains("launch is i32"));
    assert!(mistake("launch=3000000000").contains("launch is 3000000000, which is no i32"));
    assert!(mistake("M=1").contains("the program has xs, ys, ns, factor, twice, launch, N to set"));
    assert!(pld("run race.pld --set D=8").failed(2).contains("D is a constant of the program"));
}

#[test]
fn functions_of_an_engine_are_missing() {
    for more in ["", " --processes"] {
        let stderr = pld(&format!("run engine.pld{more}")).failed(3);
        let wanted = "error: engine.pld calls functions of an engine, which are not in its text: gemm, quantize; \
                      with --stub-externs they do nothing\n";
        assert_eq!(stderr, wanted);
        assert_eq!(pld(&format!("run engine.pld --stub-externs{more}")).ok().lines().count(), 2);
    }
}

#[test]
fn launches_that_fail_say_why() {
    // Nobody is late: it is the exchange that is wrong.
    let threads = pld("run deadlock.pld --timeout 0.2").failed(3);
    assert!(threads.starts_with("error: rank ") && threads.contains("go[0]"), "{threads}");
    let ran = pld("run deadlock.pld --timeout 0.2 --processes");
    assert!(ran.code == Some(3) && ran.stderr.contains("] error: rank "), "{ran:?}");
    assert!(ran.stderr.contains("ended with exit code 3"), "{ran:?}");
    let unsound = pld("run unsound.pld --processes").failed(1);
    assert_eq!(unsound.matches("PLD-V030").count(), 1, "said once, not by every rank: {unsound}");
    assert!(pld("run scaled.pld --join").failed(2).contains("the environment names no rank"), "not a rank of a job");
}

#[test]
fn standard_input_for_all_ranks() {
    let text = fs::read_to_string(programs().join("scaled.pld")).unwrap();
    let threads = finish(tool(["run", "-"]), &text).ok();
    assert_eq!(finish(tool(["run", "-", "--processes"]), &text).ok(), threads);
}
