//! `pld bench`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::console::{self, STRONG};
use crate::exit::{Exit, Failure, Result};
use crate::launch::{Finished, LaunchOptions, Prepared};
use crate::source::count;

const EXAMPLES: &str = "\
Examples:
  pld bench exchange.pld -n 4
  pld bench exchange.pld -n 2 --processes --rounds 1000 --json

The time of a rank is that of its part of a launch. The slowest rank of each round is the time
of the round, and the headline; the start skew of a round is from the first rank that begins to
the last one. All in microseconds.";

/// Measures launches of a program: each rank, the slowest one of each round, and how far apart they begin
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Bench {
    #[command(flatten)]
    options: LaunchOptions,
    /// Launches that are measured
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Launches before that
    #[arg(long, value_name = "N", default_value_t = 10)]
    warmup: u32,
    /// Print one JSON object instead, with times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// What a rank did in the rounds.
struct Times {
    rank: u32,
    /// Begin and end of its part of each round, in nanoseconds of one clock.
    rounds: Vec<(u64, u64)>,
}

/// Figures of a number of rounds, in nanoseconds.
struct Figures {
    min: u64,
    median: u64,
    mean: u64,
    max: u64,
}

impl Bench {
    /// Measures, and tells.
    pub fn run(self) -> Result<Exit> {
        let (name, nranks, times) = if self.options.processes { self.processes()? } else { self.launch()? };
        if let Some(folder) = &self.options.results {
            times.iter().try_for_each(|times| times.write(folder))?;
            return Ok(Exit::Ok);
        }
        let rounds = 0..self.rounds as usize;
        let of_round = |round: usize| times.iter().map(move |times| times.rounds[round]);
        let slowest = rounds.clone().map(|round| of_round(round).map(|(begin, end)| end - begin).max().unwrap_or(0));
        let skew = rounds.map(|round| {
            let begins = || of_round(round).map(|(begin, _)| begin);
            begins().max().unwrap_or(0) - begins().min().unwrap_or(0)
        });
        let (slowest, skew) = (Figures::of(slowest), Figures::of(skew));
        let ranks = times.iter().map(|t| (t.rank, Figures::of(t.rounds.iter().map(|(begin, end)| end - begin))));
        if self.json {
            let ranks: Vec<Value> =
                ranks.map(|(rank, figures)| json!({ "rank": rank, "ns": figures.json() })).collect();
            let all = json!({
                "program": name,
                "ranks": nranks,
                "rounds": self.rounds,
                "warmup": self.warmup,
                "slowest_ns": slowest.json(),
                "per_rank": ranks,
                "start_skew_ns": skew.json(),
            });
            console::print(format!("{all:#}\n"))?;
        } else {
            let (ranks_text, rounds) = (count(nranks as usize, "rank"), count(self.rounds as usize, "round"));
            let mut out = format!("{name}, {ranks_text}, {rounds}, in microseconds\n");
            _ = writeln!(out, "{:<14}{:>10} {:>10} {:>10} {:>10}", "", "min", "median", "mean", "max");
            _ = writeln!(out, "{STRONG}{}{STRONG:#}", slowest.row("slowest rank"));
            ranks.for_each(|(rank, figures)| _ = writeln!(out, "{}", figures.row(&format!("rank {rank}"))));
            _ = writeln!(out, "{}", skew.row("start skew"));
            console::print(out)?;
        }
        Ok(Exit::Ok)
    }

    /// In this process: all ranks, or the one that it is.
    fn launch(&self) -> Result<(String, u32, Vec<Times>)> {
        let Prepared { program, world, executable, mut arguments } = self.options.prepare(true)?;
        let ranks = world.rank().map_or(0..world.nranks(), |rank| rank..rank + 1);
        let mut times: Vec<Times> = ranks.map(|rank| Times { rank, rounds: Vec::new() }).collect();
        let all = self.warmup.saturating_add(self.rounds);
        let bar = console::progress(all.into(), &program.name);
        for launch in 1..=all {
            executable.launch(&arguments.of_launch(launch))?;
            if launch > self.warmup {
                for of_rank in &mut times {
                    of_rank.rounds.push(executable.time(of_rank.rank)?);
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok((program.name, world.nranks(), times))
    }

    /// In a process for each rank.
    fn processes(&self) -> Result<(String, u32, Vec<Times>)> {
        let (rounds, warmup) = (self.rounds.to_string(), self.warmup.to_string());
        let more = ["--rounds".into(), rounds.into(), "--warmup".into(), warmup.into()];
        let Finished { program, nranks, folder } = self.options.run_processes("bench", &more)?;
        let times = (0..nranks).map(|rank| Times::read(&folder.path, rank)).collect::<Result<_>>()?;
        Ok((program.name, nranks, times))
    }
}

impl Times {
    fn file(folder: &Path, rank: u32) -> PathBuf {
        folder.join(format!("rank-{rank}.times"))
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let path = Self::file(folder, self.rank);
        let lines: String = self.rounds.iter().map(|(begin, end)| format!("{begin} {end}\n")).collect();
        fs::write(&path, lines).map_err(|cause| Failure::file(&path, cause))
    }

    fn read(folder: &Path, rank: u32) -> Result<Self> {
        let path = Self::file(folder, rank);
        let text = fs::read_to_string(&path).map_err(|cause| Failure::file(&path, cause))?;
        let round = |line: &str| line.split_once(' ').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let rounds = text.lines().map(round).collect::<Option<_>>();
        Ok(Self { rank, rounds: rounds.ok_or_else(|| Failure::file(&path, "no times"))? })
    }
}

impl Figures {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        let (count, half) = (values.len(), values.len() / 2);
        let median = if count % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2 };
        Self { min: values[0], median, mean: values.iter().sum::<u64>() / count as u64, max: values[count - 1] }
    }

    fn row(&self, name: &str) -> String {
        let us = |ns: u64| ns as f64 / 1000.0;
        let [min, median, mean, max] = [self.min, self.median, self.mean, self.max].map(us);
        format!("{name:<14}{min:>10.1} {median:>10.1} {mean:>10.1} {max:>10.1}")
    }

    fn json(&self) -> Value {
        json!({ "min": self.min, "median": self.median, "mean": self.mean, "max": self.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_rounds() {
        let figures = Figures::of([9000, 1000, 2000, 4000].into_iter());
        assert_eq!((figures.min, figures.median, figures.mean, figures.max), (1000, 3000, 4000, 9000));
        assert_eq!(figures.row("rank 1"), "rank 1               1.0        3.0        4.0        9.0");
        assert_eq!(Figures::of([7].into_iter()).median, 7);
    }
}
