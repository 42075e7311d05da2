use std::fs;

use crate::support::{Folder, examples, golden, pld};

fn example(name: &str) -> String {
    examples().join(name).to_str().unwrap().into()
}

#[test]
fn tasks_as_text_and_for_graphviz() {
    let layer = example("tp_gemm_allreduce.pld");
    golden("graph-tasks.txt", &pld(&format!("graph {layer}")).ok());
    golden("graph-tasks.dot", &pld(&format!("graph {layer} --format dot")).ok());
}

#[test]
fn signals_between_ranks() {
    golden("graph-signals.txt", &pld(&format!("graph --signals -n 3 {}", example("06_put_get.pld"))).ok());
    golden("graph-signals.dot", &pld(&format!("graph --signals -n 3 --format dot {}", example("06_put_get.pld"))).ok());
    let barrier = pld(&format!("graph --signals -n 4 {}", example("04_barrier.pld"))).ok();
    assert_eq!(barrier.matches("  after rank").count(), 4 * 3, "each from each other: {barrier}");
    let stuck = pld("graph --signals deadlock.pld");
    assert_eq!((stuck.code, stuck.stdout.as_str()), (Some(0), "rank 0 t\nrank 1 t\n"));
    assert!(stuck.stderr.contains("the run does not come to its end"), "{}", stuck.stderr);
}

/// The pictures are looked at by people; here only that all is in them.
#[test]
fn pictures_have_every_task_and_signal() {
    let folder = Folder::new();
    let moe = example("moe_dispatch_combine.pld");
    let draw = |args: &str| {
        let path = folder.text("picture.svg");
        assert_eq!(pld(&format!("graph {moe} -o {path}{args}")).ok(), "");
        fs::read_to_string(path).unwrap()
    };
    let tasks = draw("");
    for name in ["at route", "spmd push [BLOCKS]", "extern expert [N_LOCAL]", "slots: write, read"] {
        assert!(tasks.contains(&format!(">{name}</text>")), "{name} is not in\n{tasks}");
    }
    golden("graph-signals.svg", &draw(" --signals --set indices=0 --set tokens=3"));
    let signals = draw(" --signals -n 3 --set indices=0 --set tokens=3");
    for rank in 0..3 {
        assert!(signals.contains(&format!(">rank {rank}</text>")));
    }
    assert!(signals.contains("<title>rank 2 to rank 0: counted_buf: "), "{signals}");
    assert!(signals.contains("&gt;= epoch (line "), "signs of the language are escaped");
    for picture in [tasks, signals] {
        assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>\n"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
        let opened = picture.matches("<text").count();
        assert_eq!(opened, picture.matches("</text>").count());
    }
}

#[test]
fn an_output_that_cannot_be_written() {
    let stderr = pld("graph race.pld -o /nonexistent/x.svg").failed(4);
    assert_eq!(stderr, "error: /nonexistent/x.svg: No such file or directory (os error 2)\n");
}
