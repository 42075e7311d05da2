//! Vectors on comm domains: sets of ranks that share windows and number each other.

use std::fmt::Write;

use super::*;

/// What untouched elements of an output are: the bytes around it.
const UNTOUCHED: f64 = f32::from_ne_bytes([GUARD_BYTE; 4]) as f64;

/// A program whose ranks exchange within domains, with every op that names a peer: each domain is declared by a line
/// such as `domain [2, 0]`, or follows from a loop such as `ranks r in 0..2 {`.
fn exchange_within(domains: &[&str]) -> String {
    let mut text = String::from(
        "program domains

entry exchange(x: tensor[1, 64] f32 in, y: tensor[3, 64] f32 out, numbers: tensor[1, 2] i32 out,
               inbox: window[3, 64] f32, arrived: window[4, 1] i32) {
  at send {
    n = nranks(inbox)
    next = (rank(inbox) + 1) % n
    previous = (rank(inbox) + n - 1) % n
    numbers[0, 0] = rank(inbox)
    numbers[0, 1] = n
    put inbox[0, 0] @next <- x[0, 0] [1, 64]
    mine = load x[0, 0] [1, 64]
    remote_store mine -> inbox[1, 0] @next
    store mine -> inbox[2, 0]
    for peer in 0..n { notify arrived[0, 0] @peer += 1 }
    wait arrived[0, 0] >= n
    t = load inbox[0, 0] [2, 64]
    store t -> y[0, 0]
    u = remote_load inbox[2, 0] @next [1, 64]
    v = remote_load inbox[2, 0] @previous [1, 64]
    get y[2, 0] <- inbox[2, 0] @previous [1, 64]
    u = sub u, v
    w = load y[1, 0] [1, 64]
    w = add w, u
    store w -> y[1, 0]
  }
}

host (xs: tensor[world, 1, 64] f32 in,
",
    );
    for i in 0..domains.len() {
        let end = if i + 1 < domains.len() { "," } else { ") {" };
        _ = writeln!(text, "      y{i}: tensor[world, 3, 64] f32 out, n{i}: tensor[world, 1, 2] i32 out{end}");
    }
    for (i, domain) in domains.iter().enumerate() {
        let (declaration, within, header) = match domain.strip_prefix("domain ") {
            Some(_) => {
                let condition = domain.trim_start_matches("domain [").trim_end_matches(']').split(", ");
                let condition: Vec<String> = condition.map(|rank| format!("r == {rank}")).collect();
                let header = format!("ranks r in 0..world {{\n    if {} {{", condition.join(" or "));
                (format!("  group{i} = {domain}\n"), format!(" in group{i}"), header)
            }
            None => (String::new(), String::new(), domain.to_string()),
        };
        let close = "}".repeat(header.matches('{').count());
        _ = writeln!(
            text,
            "{declaration}  inbox{i} = alloc_window [3, 64] f32{within}
  arrived{i} = alloc_window [4, 1] i32{within}
  {header}
    inbox = window inbox{i} [3, 64] f32
    arrived = window arrived{i} [4, 1] i32
    dispatch exchange(xs[r], y{i}[r], n{i}[r], inbox, arrived) device r
  {close}"
        );
    }
    text + "}\n"
}

/// What a rank gets in a domain: rows from the one before, and the sum with the difference of its neighbours.
fn exchanged(members: Vec<i64>, p: i64, r: i64, i: i64) -> f64 {
    let n = members.len() as i64;
    let Some(number) = members.iter().position(|&member| member == r) else { return UNTOUCHED };
    let neighbour = |distance: i64| members[((number as i64 + distance + n) % n) as usize];
    let of = |rank| ramp(p, rank, i % 64);
    match i / 64 {
        1 => of(neighbour(-1)) + of(neighbour(1)) - of(neighbour(-1)),
        _ => of(neighbour(-1)),
    }
}

/// A rank's number in a domain, and how many there are.
fn numbers(members: Vec<i64>, r: i64, i: i64) -> f64 {
    let untouched = f64::from(i32::from_ne_bytes([GUARD_BYTE; 4]));
    let number = members.iter().position(|&member| member == r);
    number.map_or(untouched, |number| if i == 0 { number as f64 } else { members.len() as f64 })
}

macro_rules! domains {
    ($name:literal in $worlds:expr; $($text:literal is $members:expr;)*) => {{
        let mut params = vec![In(DType::F32, |_| vec![1, 64], ramp)];
        $(
            params.push(Out(DType::F32, |_| vec![3, 64], |p, r, i| Some(exchanged(($members)(p), p, r, i))));
            params.push(Out(DType::I32, |_| vec![1, 2], |p, r, i| Some(numbers(($members)(p), r, i))));
        )*
        Vector {
            name: $name,
            program: exchange_within(&[$($text),*]).into(),
            params,
            persistent: false,
            worlds: &$worlds,
        }
    }};
}

fn swapped(p: i64, first: i64, r: i64, i: i64) -> f64 {
    if (first..first + 2).contains(&r) { ramp(p, 2 * first + 1 - r, i) } else { UNTOUCHED }
}

pub fn vectors() -> Vec<Vector> {
    let row = |_p: i64| vec![1, 64];
    vec![
        Vector {
            worlds: &[3],
            ..vector(
                "A16 overlapping domains",
                include_str!("overlapping_domains.pld"),
                vec![
                    In(DType::F32, row, ramp),
                    Out(DType::F32, row, |p, r, i| Some(swapped(p, 0, r, i))),
                    Out(DType::F32, row, |p, r, i| Some(swapped(p, 1, r, i))),
                ],
            )
        },
        domains! { "overlapping halves, a domain of all, a domain of one" in [];
            "ranks r in 0..world / 2 + 1 {" is |p: i64| (0..p / 2 + 1).collect::<Vec<_>>();
            "ranks r in world / 2..world {" is |p: i64| (p / 2..p).collect::<Vec<_>>();
            "ranks r in 0..world {" is |p: i64| (0..p).collect::<Vec<_>>();
            "ranks r in world - 1..world {" is |p: i64| vec![p - 1];
        },
        domains! { "pairs of 4" in [4];
            "ranks r in 0..2 {" is |_| vec![0, 1];
            "ranks r in 2..4 {" is |_| vec![2, 3];
        },
        domains! { "pairs of 8" in [8];
            "ranks r in 0..2 {" is |_| vec![0, 1];
            "ranks r in 2..4 {" is |_| vec![2, 3];
            "ranks r in 4..6 {" is |_| vec![4, 5];
            "ranks r in 6..8 {" is |_| vec![6, 7];
        },
        domains! { "every other rank, all but one" in [3, 4, 8];
            "ranks r in 0..world { if r % 2 == 0 {" is |p: i64| (0..p).filter(|r| r % 2 == 0).collect::<Vec<_>>();
            "ranks r in 0..world { if r % 2 != 0 {" is |p: i64| (0..p).filter(|r| r % 2 != 0).collect::<Vec<_>>();
            "ranks r in 0..world { if r != 1 {" is |p: i64| (0..p).filter(|r| *r != 1).collect::<Vec<_>>();
        },
        domains! { "declared, in any order" in [3, 4, 8];
            "domain [0, 2]" is |_| vec![0, 2];
            "domain [2, 0]" is |_| vec![2, 0];
            "domain [1, 2, 0]" is |_| vec![1, 2, 0];
            "domain [1]" is |_| vec![1];
        },
    ]
}
