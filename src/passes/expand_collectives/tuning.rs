//! The table that `mode auto` follows.

use std::sync::OnceLock;

use super::Target;
use super::levels::Spread;
use crate::ir::Mode;

/// What was measured, by `make tune`.
const TABLE: &str = include_str!("tuning.txt");

/// Where ranks run, as the table sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    /// On one host; ranks count.
    Mapped,
    /// On hosts with equally many ranks, side by side; hosts count.
    Hosts,
    /// On hosts in some other way; ranks count.
    Remote,
}

impl Where {
    fn from_name(word: &str) -> Option<Self> {
        match word {
            "mapped" => Some(Self::Mapped),
            "hosts" => Some(Self::Hosts),
            "remote" => Some(Self::Remote),
            _ => None,
        }
    }
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
struct Line<'t> {
    op: &'t str,
    place: Where,
    count: i64,
    crowded: bool,
    first: Mode,
    up_to: i64,
    second: Mode,
}

impl<'t> Line<'t> {
    /// None if it is not a line of the table.
    fn parse(text: &'t str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[op, place, count, load, first, up_to, second] = words.as_slice() else { return None };
        Some(Self {
            op,
            place: Where::from_name(place)?,
            count: count.parse().ok()?,
            crowded: (load == "crowded" || load == "fits").then_some(load == "crowded")?,
            first: Mode::from_name(first)?,
            up_to: up_to.parse().ok()?,
            second: Mode::from_name(second)?,
        })
    }
}

fn lines() -> &'static [Line<'static>] {
    static LINES: OnceLock<Vec<Line>> = OnceLock::new();
    LINES.get_or_init(|| {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| Line::parse(line).unwrap_or_else(|| panic!("not a line of the table: {line}"))).collect()
    })
}

/// The mode for an op on `bytes` of data a rank.
pub(super) fn choose(op: &str, bytes: i64, spread: Spread, target: &Target) -> Mode {
    let (place, count) = match spread {
        Spread::OneHost => (Where::Mapped, i64::from(target.nranks)),
        Spread::Levels(levels) => (Where::Hosts, levels.hosts),
        Spread::Mixed => (Where::Remote, i64::from(target.nranks)),
    };
    let fitting = lines().iter().filter(|line| {
        let alike = line.op == op && line.place == place && line.crowded == target.crowded;
        alike && line.count <= count
    });
    let line = fitting.max_by_key(|line| line.count).expect("the table has a line from 1 on for every op");
    if bytes <= line.up_to { line.first } else { line.second }
}

/// Bytes of a partial result from which on it is worth another message to every host that each host combines only a part.
const TWO_STEPS_FROM: i64 = 16 << 10;

/// Hosts combine partial results of so many bytes in two steps: of two hosts, each would send as much in both ways.
pub(super) fn in_two_steps(bytes: i64, hosts: i64) -> bool {
    hosts > 2 && bytes >= TWO_STEPS_FROM
}

#[cfg(test)]
mod tests {
    use super::super::levels::Levels;
    use super::*;

    const OPS: [&str; 6] = ["allreduce", "reduce_scatter", "broadcast", "allgather", "all_to_all", "all_to_all_v"];

    #[test]
    fn every_op_has_a_choice_everywhere() {
        for op in OPS {
            let levels = Spread::Levels(Levels { hosts: 2, width: 4 });
            for (nranks, crowded, spread) in [
                (1, false, Spread::OneHost),
                (2, true, Spread::OneHost),
                (64, false, Spread::Mixed),
                (7, true, Spread::Mixed),
                (8, false, levels),
                (8, true, levels),
            ] {
                let target = Target { crowded, ..Target::new(nranks) };
                for bytes in [0, 8, 1 << 13, 1 << 40] {
                    let mode = choose(op, bytes, spread, &target);
                    let fits = match mode {
                        Mode::Mesh => true,
                        Mode::Direct => op != "allreduce",
                        Mode::Ring | Mode::TwoPhase => op == "allreduce",
                        Mode::Hierarchical => spread == levels && !op.starts_with("all_to_all"),
                        Mode::Auto => false,
                    };
                    assert!(fits, "{op} {bytes}: {mode}");
                }
            }
        }
    }

    #[test]
    fn a_line_has_seven_words() {
        assert!(Line::parse("allreduce mapped 2 fits mesh 4096 two_phase").is_some());
        for wrong in
            ["allreduce mapped 2 fits mesh 4096", "allreduce near 2 fits mesh 1 ring", "x mapped 2 fits mesh y ring"]
        {
            assert_eq!(Line::parse(wrong), None, "{wrong}");
        }
    }
}
