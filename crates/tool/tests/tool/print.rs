use crate::support::{examples, finish, golden, pld, tool};

fn example(name: &str) -> String {
    examples().join(name).to_str().unwrap().into()
}

#[test]
fn a_program_after_each_pass() {
    let collectives = example("task_collectives.pld");
    let after = |pass: &str| pld(&format!("print --after {pass} -n 3 {collectives}")).ok();
    assert!(after("parse").contains("reduce_scatter") && after("verify") == after("parse"));
    let expanded = after("expand_collectives");
    assert!(!expanded.contains("reduce_scatter sum") && expanded.contains("notify"), "{expanded}");
    // What is printed is a program again, with nothing left to expand.
    assert_eq!(finish(tool(["print", "--after", "expand_collectives", "-n", "3", "-"]), &expanded).ok(), expanded);
    let on_hosts = pld(&format!("print --after expand_collectives -n 4 --ranks-per-host 2 {collectives}")).ok();
    assert!(on_hosts.contains("_shards") && !expanded.contains("_shards"), "{on_hosts}");
    golden("print-windows.txt", &after("plan_windows"));
    golden("print-tasks.txt", &pld(&format!("print --after task_graph {}", example("tp_gemm_allreduce.pld"))).ok());
}

#[test]
fn an_unsound_program_prints_only_as_it_was_read() {
    assert!(pld("print --after parse unsound.pld").ok().contains("y[4] = x[0]"));
    let ran = pld("print unsound.pld");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(
        ran.stderr.contains("PLD-V030") && ran.stderr.ends_with("error: unsound.pld: 2 errors\n"),
        "{}",
        ran.stderr
    );
    assert!(pld("print --after dinner race.pld").failed(2).contains("expand_collectives"));
}
