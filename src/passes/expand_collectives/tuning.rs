//! The table that `mode auto` follows.

use std::sync::OnceLock;

use super::Target;
use crate::ir::Mode;

/// What was measured, by `make tune`.
const TABLE: &str = include_str!("tuning.txt");

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
struct Line<'t> {
    op: &'t str,
    mapped: bool,
    ranks: i64,
    crowded: bool,
    first: Mode,
    up_to: i64,
    second: Mode,
}

impl<'t> Line<'t> {
    /// None if it is not a line of the table.
    fn parse(text: &'t str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[op, transport, ranks, load, first, up_to, second] = words.as_slice() else { return None };
        Some(Self {
            op,
            mapped: choice(transport, "mapped", "remote")?,
            ranks: ranks.parse().ok()?,
            crowded: choice(load, "crowded", "fits")?,
            first: Mode::from_name(first)?,
            up_to: up_to.parse().ok()?,
            second: Mode::from_name(second)?,
        })
    }
}

fn choice(word: &str, yes: &str, no: &str) -> Option<bool> {
    (word == yes || word == no).then_some(word == yes)
}

fn lines() -> &'static [Line<'static>] {
    static LINES: OnceLock<Vec<Line>> = OnceLock::new();
    LINES.get_or_init(|| {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| Line::parse(line).unwrap_or_else(|| panic!("not a line of the table: {line}"))).collect()
    })
}

/// The mode for an op on `bytes` of data a rank.
pub(super) fn choose(op: &str, bytes: i64, target: &Target) -> Mode {
    let fitting = lines().iter().filter(|line| {
        let alike = line.op == op && line.mapped == target.mapped && line.crowded == target.crowded;
        alike && line.ranks <= i64::from(target.nranks)
    });
    let line = fitting.max_by_key(|line| line.ranks).expect("the table has a line of one rank for every op");
    if bytes <= line.up_to { line.first } else { line.second }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [&str; 6] = ["allreduce", "reduce_scatter", "broadcast", "allgather", "all_to_all", "all_to_all_v"];

    #[test]
    fn every_op_has_a_choice_everywhere() {
        for op in OPS {
            for (nranks, crowded, mapped) in [(1, false, true), (2, true, true), (64, false, false), (7, true, false)] {
                let target = Target { crowded, mapped, ..Target::new(nranks) };
                for bytes in [0, 8, 1 << 13, 1 << 40] {
                    let mode = choose(op, bytes, &target);
                    let fits = match mode {
                        Mode::Mesh => true,
                        Mode::Direct => op != "allreduce",
                        Mode::Ring | Mode::TwoPhase => op == "allreduce",
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
