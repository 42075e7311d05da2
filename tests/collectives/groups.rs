//! Collectives of some ranks of a world: positions in the group count.

use pld::ir::DType;

use crate::case::{Case, Tensor, world};
use crate::numbers::{Number, encode};

/// Ranks that have windows of their own, in this order.
type Group = &'static [usize];

/// What rank `rank` of the world gives as element `i`.
fn value(rank: usize, i: usize) -> i64 {
    ((rank + 1) * 100_003 + i * 17) as i64
}

/// Elements of a row.
const WIDTH: usize = 6;

/// A call, and what a member of a group has then in row `row` and column `col`.
#[derive(Clone, Copy)]
struct Call {
    text: &'static str,
    /// Every group has as many rows as ranks; all but the sources of rows hold what `value` says.
    result: fn(Group, usize, usize, usize) -> i64,
}

fn at(row: usize, col: usize) -> usize {
    row * WIDTH + col
}

const CALLS: [Call; 5] = [
    Call {
        text: "allreduce sum data",
        result: |group, _, row, col| group.iter().map(|&rank| value(rank, at(row, col))).sum(),
    },
    Call {
        text: "reduce_scatter sum data",
        result: |group, me, row, col| match row == me {
            true => group.iter().map(|&rank| value(rank, at(row, col))).sum(),
            false => value(group[me], at(row, col)),
        },
    },
    Call { text: "broadcast data root 0", result: |group, _, row, col| value(group[0], at(row, col)) },
    Call { text: "allgather data <- own", result: |group, _, row, col| value(group[row], 7000 + at(0, col)) },
    Call { text: "all_to_all data <- rows", result: |group, me, row, col| value(group[row], 9000 + at(me, col)) },
];

fn ints(values: impl Iterator<Item = i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.for_each(|value| encode(DType::I32, Number::Int(value), &mut bytes));
    bytes
}

/// The same call in all groups.
fn case(nranks: usize, groups: &[Group], call: Call, mode: &str, host: bool) -> Case {
    let most = groups.iter().map(|group| group.len()).max().expect("there is a group");
    let untouched = |rank: usize, base: usize, rows: usize| ints((0..rows * WIDTH).map(|i| value(rank, base + i)));
    let tensor = |name: &str, base: usize, rows: usize| {
        let before: Vec<_> = (0..nranks).map(|rank| untouched(rank, base, rows)).collect();
        let (after, shape) = (before.clone(), vec![rows as i64, WIDTH as i64]);
        Tensor { name: name.into(), dtype: DType::I32, shape, before, after, tolerance: 0.0 }
    };
    let mut y = tensor("ys", 0, most);
    let mut entries = String::new();
    let mut body = String::new();
    for (g, group) in groups.iter().enumerate() {
        let n = group.len();
        for (me, &rank) in group.iter().enumerate() {
            let elements = (0..n).flat_map(|row| (0..WIDTH).map(move |col| (row, col)));
            let result = ints(elements.map(|(row, col)| (call.result)(group, me, row, col)));
            y.after[rank][..result.len()].copy_from_slice(&result);
        }
        let windows =
            format!("data: window[{n}, {WIDTH}] i32, own: window[1, {WIDTH}] i32, rows: window[{n}, {WIDTH}] i32");
        let tensors = format!(
            "y: tensor[{most}, {WIDTH}] i32 inout, x: tensor[1, {WIDTH}] i32 in, z: tensor[{most}, {WIDTH}] i32 in"
        );
        let publish = format!(
            "me = rank(data)
    put data[0, 0] @me <- y[0, 0] [{n}, {WIDTH}]
    put own @me <- x
    put rows[0, 0] @me <- z[0, 0] [{n}, {WIDTH}]"
        );
        let consume = format!("get y[0, 0] <- data[0, 0] @rank(data) [{n}, {WIDTH}]");
        let text = format!("{} mode {mode}", call.text);
        if host {
            entries += &format!(
                "entry publish{g}({tensors}, {windows}) {{ at publish {{ {publish} }} }}
entry consume{g}({tensors}, {windows}) {{ at consume {{ {consume} }} }}
"
            );
        } else {
            entries +=
                &format!("entry both{g}({tensors}, {windows}) {{ at both {{ {publish}\n {text}\n {consume} }} }}\n");
        }
        let ranks: Vec<String> = group.iter().map(|rank| rank.to_string()).collect();
        body += &format!("  group{g} = domain [{}]\n", ranks.join(", "));
        for (name, rows) in [("data", n), ("own", 1), ("rows", n)] {
            body += &format!(
                "  {name}{g}_buf = alloc_window [{rows}, {WIDTH}] i32 in group{g}
  {name}{g} = window {name}{g}_buf [{rows}, {WIDTH}] i32\n"
            );
        }
        let dispatch = |name: &str| -> String {
            let one = |&rank: &usize| {
                format!(
                    "  dispatch {name}{g}(ys[{rank}], xs[{rank}], zs[{rank}], data{g}, own{g}, rows{g}) device {rank}\n"
                )
            };
            group.iter().map(one).collect()
        };
        if host {
            let named = ["data", "own", "rows"]
                .iter()
                .fold(text, |text, name| text.replace(&format!("{name} "), &format!("{name}{g} ")));
            body += &(dispatch("publish") + "  " + &named + "\n" + &dispatch("consume"));
        } else {
            body += &dispatch("both");
        }
    }
    let host = format!(
        "host (ys: tensor[world, {most}, {WIDTH}] i32 inout, xs: tensor[world, 1, {WIDTH}] i32 in, zs: tensor[world, {most}, {WIDTH}] i32 in) {{\n{body}}}\n"
    );
    let tensors = vec![y, tensor("xs", 7000, 1), tensor("zs", 9000, most)];
    Case { text: format!("program groups\n{entries}{host}"), nranks: nranks as u32, tensors }
}

fn test(nranks: usize, groups: &[Group]) {
    test_on_hosts(nranks, nranks as u32, groups);
}

fn test_on_hosts(nranks: usize, ranks_per_host: u32, groups: &[Group]) {
    let world = world(nranks as u32);
    for call in CALLS {
        let direct = if call.text.starts_with("allreduce") { "two_phase" } else { "direct" };
        let levels = if call.text.starts_with("all_to_all") { "auto" } else { "hierarchical" };
        for mode in ["mesh", direct, levels] {
            for host in [false, true] {
                let case = case(nranks, groups, call, mode, host).on_hosts(ranks_per_host);
                case.interpret(3);
                case.launch(&world);
            }
        }
    }
}

/// C40: a group whose order is not ascending.
#[test]
fn c40_a_group_in_its_own_order() {
    test(6, &[&[5, 2]]);
}

#[test]
fn two_groups_at_once() {
    test(6, &[&[5, 2], &[0, 3, 1]]);
    test(4, &[&[0, 1], &[2, 3]]);
}

/// All of them are alone.
#[test]
fn groups_of_one() {
    test(3, &[&[2], &[0]]);
}

/// Side by side on hosts, in another order, on one of them, and unevenly.
#[test]
fn groups_on_hosts() {
    test_on_hosts(6, 3, &[&[0, 2, 3, 5], &[1, 4]]);
    test_on_hosts(6, 2, &[&[5, 4, 0, 1], &[2, 3]]);
    test_on_hosts(6, 3, &[&[5, 0, 1], &[4, 2]]);
}
