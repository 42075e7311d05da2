//! `pld-bench tune`: measures the algorithms of the collectives and writes the table by which the library chooses.

use std::fmt::Write;
use std::path::Path;

use crate::campaign::{Campaign, Plan};
use crate::rank::CPUS;
use crate::row::Row;
use crate::rows::collectives::{self, Call, Collective, RANKS};

/// Bytes for one rank that are tried; the fewest go along with the arrival of a mesh.
const SIZES: [usize; 7] = [48, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// Lines of the table that are measured here begin with the op and this.
const MEASURED: &str = "mapped";

/// What is measured.
pub fn rows() -> Vec<Row> {
    let calls = lines().into_iter().flat_map(|line| {
        let modes = modes(line.collective).iter();
        modes.flat_map(move |&mode| SIZES.map(|bytes| line.call(mode, bytes)))
    });
    calls.map(|call| collectives::trial(name(call), call)).collect()
}

fn name(call: Call) -> String {
    format!("tune/{}/{}", call.name(), call.mode)
}

/// The algorithms of a collective, that for little data first.
fn modes(collective: Collective) -> &'static [&'static str] {
    match collective {
        Collective::Barrier => &[],
        Collective::Allreduce => &["mesh", "two_phase", "ring"],
        _ => &["mesh", "direct"],
    }
}

/// What a line of the table is about.
#[derive(Clone, Copy)]
struct Line {
    collective: Collective,
    ranks: u32,
}

fn lines() -> Vec<Line> {
    let tuned = Collective::ALL.into_iter().filter(|&collective| !modes(collective).is_empty());
    tuned.flat_map(|collective| RANKS.map(|ranks| Line { collective, ranks })).collect()
}

impl Line {
    /// A call with so many bytes for one rank.
    fn call(self, mode: &'static str, for_one: usize) -> Call {
        use Collective::*;
        let bytes = match self.collective {
            ReduceScatter | AllToAll | AllToAllV => for_one * self.ranks as usize,
            Barrier | Allreduce | Broadcast | Allgather => for_one,
        };
        Call { collective: self.collective, ranks: self.ranks, bytes, mode }
    }

    fn crowded(self) -> bool {
        self.ranks > CPUS
    }

    /// The least number of ranks that it counts for: the first line of its kind counts for all.
    fn least_ranks(self) -> u32 {
        let same_kind = RANKS.into_iter().filter(|&ranks| (ranks > CPUS) == self.crowded());
        if same_kind.min() == Some(self.ranks) { 1 } else { self.ranks }
    }

    /// The line, by what was measured; None if too little was.
    fn text(self, campaign: &Campaign, rows: &[Row]) -> Option<String> {
        let modes = modes(self.collective);
        let time = |mode, bytes| {
            let name = name(self.call(mode, bytes));
            let row = rows.iter().find(|row| row.name == name)?;
            Some(campaign.outcome(row).value?.median)
        };
        let times = |bytes| modes.iter().map(|&mode| time(mode, bytes)).collect::<Option<Vec<f64>>>();
        // The table counts bytes of the whole tensor.
        let whole = |bytes| self.call(modes[0], bytes).window() * size_of::<f32>();
        let measured: Vec<(usize, Vec<f64>)> =
            SIZES.iter().filter_map(|&bytes| Some((whole(bytes), times(bytes)?))).collect();
        let choice = Choice::best(&measured)?;
        let load = if self.crowded() { "crowded" } else { "fits" };
        Some(format!(
            "{:<15} {:<10} {:<6} {load:<8} {:<6} {:<8} {}\n",
            self.collective.name(),
            MEASURED,
            self.least_ranks(),
            modes[choice.first],
            choice.up_to,
            modes[choice.second],
        ))
    }
}

/// One algorithm up to so many bytes, and another above.
#[derive(Debug, PartialEq)]
struct Choice {
    first: usize,
    up_to: usize,
    second: usize,
}

impl Choice {
    /// That which loses the least, over all sizes; of each is known how many bytes it has and how long each algorithm takes.
    fn best(measured: &[(usize, Vec<f64>)]) -> Option<Self> {
        let modes = measured.first()?.1.len();
        let loss =
            |times: &[f64], mode: usize| (times[mode] / times.iter().copied().fold(f64::INFINITY, f64::min)).ln();
        let pairs = (0..modes).flat_map(|first| (0..modes).map(move |second| (first, second)));
        let choices = pairs.flat_map(|(first, second)| {
            (0..measured.len()).map(move |turn| {
                let (below, above) = measured.split_at(turn);
                let lost = |part: &[(usize, Vec<f64>)], mode| part.iter().map(|(_, t)| loss(t, mode)).sum::<f64>();
                let up_to = below.last().map_or(0, |&(bytes, _)| bytes);
                (lost(below, first) + lost(above, second), Self { first, up_to, second })
            })
        });
        choices.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, choice)| choice)
    }
}

/// Measures `rows`, those of [`rows`], and rewrites the lines of the table at `path` that can be measured on one machine.
pub fn run(rows: &[Row], path: &Path, plan: &Plan) -> Result<(), String> {
    let place = |e| format!("{}: {e}", path.display());
    let before = std::fs::read_to_string(path).map_err(place)?;
    let campaign = Campaign::run(rows, &[], plan);
    if let Some((name, error)) = campaign.errors.iter().next() {
        return Err(format!("{name}: {error}"));
    }
    let mut table: String = before.lines().filter(|line| line.starts_with('#')).fold(String::new(), joined);
    for line in lines() {
        let text = line.text(&campaign, rows);
        table += &text.ok_or_else(|| format!("too few samples of {} count; try again", line.collective.name()))?;
    }
    let is_kept = |line: &&str| !line.starts_with('#') && line.split_whitespace().nth(1) != Some(MEASURED);
    let kept = before.lines().filter(is_kept);
    table += &kept.fold(String::new(), joined);
    std::fs::write(path, table).map_err(place)
}

fn joined(mut text: String, line: &str) -> String {
    writeln!(text, "{line}").expect("a string takes all");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(times: &[[f64; 2]]) -> Vec<(usize, Vec<f64>)> {
        times.iter().enumerate().map(|(i, times)| (64 << i, times.to_vec())).collect()
    }

    #[test]
    fn one_algorithm_for_little_and_one_for_much() {
        let times = measured(&[[1.0, 2.0], [2.0, 3.0], [4.0, 3.9], [9.0, 5.0]]);
        assert_eq!(Choice::best(&times), Some(Choice { first: 0, up_to: 128, second: 1 }));
    }

    #[test]
    fn noise_does_not_move_the_threshold_far() {
        let times = measured(&[[1.0, 2.0], [2.1, 2.0], [3.0, 4.0], [9.0, 5.0]]);
        assert_eq!(Choice::best(&times), Some(Choice { first: 0, up_to: 256, second: 1 }));
    }

    #[test]
    fn the_faster_one_everywhere() {
        assert_eq!(Choice::best(&measured(&[[3.0, 2.0], [4.0, 3.0]])).map(|c| (c.up_to, c.second)), Some((0, 1)));
        assert_eq!(Choice::best(&[]), None);
    }

    #[test]
    fn every_number_of_ranks_has_a_line() {
        for crowded in [false, true] {
            let of_kind = lines().into_iter().filter(|line| line.crowded() == crowded);
            let all: Vec<Line> = of_kind.filter(|line| line.collective == Collective::Allgather).collect();
            assert_eq!(all.iter().map(|line| line.least_ranks()).min(), Some(1));
        }
    }
}
